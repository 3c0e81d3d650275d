"""An in-memory AclClient; tests/contract/test_acl_store.py runs the same suite on it and on a real broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eosctl.app import App
from eosctl.core.acls.lines import Acl
from eosctl.errors import BrokerError, EosctlError
from tests.fakes.faults import Faults


class FakeAclStore(Faults):
    """ACLs in a list; `refuse` is raised by every question, `created` is what was added.

    What is created is described only after so many looks as `late` says: a broker hears of it a moment later. Besides
    the methods of AclClient, Faults knows `acl`: one of those that are created.
    """

    def __init__(
        self, acls: Iterable[Acl] = (), *, refuse: EosctlError | None = None, cluster_id: str = "fake-cluster"
    ) -> None:
        super().__init__()
        self.acls, self.created = list(acls), list[Acl]()
        self.late = 0
        self._cluster_id, self._looks = cluster_id, 0
        self._to_come = list[tuple[int, Acl]]()
        if refuse:
            self.fail_always("describe", refuse)
            self.fail_always("create", refuse)

    def open(self, _app: App) -> FakeAclStore:
        """App's door."""
        return self

    def __enter__(self) -> FakeAclStore:
        return self

    def __exit__(self, *_exc: object) -> None:
        return None

    def cluster_id(self) -> str:
        with self.call("cluster_id"):
            return self._cluster_id

    def describe(self) -> Sequence[Acl]:
        with self.call("describe"):
            self._looks += 1
            self.acls += [acl for due, acl in self._to_come if due < self._looks]
            self._to_come = [(due, acl) for due, acl in self._to_come if due >= self._looks]
            return sorted(
                self.acls, key=lambda acl: (acl.resource_type, acl.name, acl.principal, acl.operation, acl.host)
            )

    def create(self, acls: Iterable[Acl]) -> dict[Acl, EosctlError]:
        failed: dict[Acl, EosctlError] = {}
        with self.call("create", acls):
            for acl in acls:
                try:
                    self._create(acl)
                except EosctlError as exc:
                    failed[acl] = exc
        return failed

    def _create(self, acl: Acl) -> None:
        with self.call("acl", acl):
            if ":" not in acl.principal:
                raise BrokerError(
                    f"creating ACLs failed: INVALID_REQUEST: Could not parse principal from {acl.principal}"
                )
            if acl not in [*self.acls, *(coming for _due, coming in self._to_come)]:
                self.created.append(acl)
                self._to_come.append((self._looks + self.late, acl))
