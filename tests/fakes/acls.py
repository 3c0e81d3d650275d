"""An in-memory AclStore; tests/contract/test_acl_store.py runs the same suite on it and on a real broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eosctl.core.acl import Acl
from eosctl.errors import EosctlError


class FakeAclStore:
    """ACLs in a list; `refuse` is raised by every question, `created` is what was added."""

    def __init__(
        self, acls: Iterable[Acl] = (), *, refuse: EosctlError | None = None, cluster_id: str = "fake-cluster"
    ) -> None:
        self.acls, self.created = list(acls), list[Acl]()
        self.refuse, self._cluster_id = refuse, cluster_id

    def __enter__(self) -> FakeAclStore:
        return self

    def __exit__(self, *_exc: object) -> None:
        return None

    def cluster_id(self) -> str:
        return self._cluster_id

    def describe(self) -> Sequence[Acl]:
        if self.refuse:
            raise self.refuse
        return sorted(self.acls, key=lambda acl: (acl.resource_type, acl.name, acl.principal, acl.operation, acl.host))

    def create(self, acls: Iterable[Acl]) -> None:
        if self.refuse:
            raise self.refuse
        new = [acl for acl in acls if acl not in self.acls]
        self.acls += new
        self.created += new
