"""Whether ACLs allow a right, as Kafka's authorizer decides it (`StandardAuthorizerData`, Kafka 3.3 to 4.3).

A DENY always wins; READ, WRITE, DELETE and ALTER include DESCRIBE, and ALTER_CONFIGS includes DESCRIBE_CONFIGS, but
only where they are allowed: a denied READ denies no DESCRIBE.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum, unique

from eosctl.core.acl import Acl
from eosctl.core.acl_table import CLUSTER, Right

ANY_PRINCIPAL = "User:*"
_INCLUDED_IN = {
    "DESCRIBE": {"READ", "WRITE", "DELETE", "ALTER"},
    "DESCRIBE_CONFIGS": {"ALTER_CONFIGS"},
}


@unique
class Verdict(StrEnum):
    """What ACLs say of a right; the two that name hosts depend on where the client runs."""

    ALLOWED = "allowed"
    MISSING = "missing"
    DENIED = "denied"
    ALLOWED_TO_HOSTS = "allowed_to_hosts"
    DENIED_TO_HOSTS = "denied_to_hosts"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A right of a principal, the verdict, and the ACLs that decided it."""

    right: Right
    principal: str
    verdict: Verdict
    because: tuple[Acl, ...] = ()


class AclIndex:
    """The cluster's ACLs, found by what they are about: one right asks for few of them, whatever their number."""

    def __init__(self, acls: Iterable[Acl]) -> None:
        self._acls = tuple(acls)
        self._literal = defaultdict[tuple[str, str], list[int]](list)
        self._prefixed = defaultdict[tuple[str, str], list[int]](list)
        self._denying = defaultdict[str, list[int]](list)
        self._lengths = defaultdict[str, set[int]](set)
        self.allowed_principals = frozenset(acl.principal for acl in self._acls if acl.permission == "ALLOW")
        for number, acl in enumerate(self._acls):
            by_name = self._prefixed if acl.pattern_type == "PREFIXED" else self._literal
            by_name[acl.resource_type, acl.name].append(number)
            if acl.pattern_type == "PREFIXED":
                self._lengths[acl.resource_type].add(len(acl.name))
            if acl.permission == "DENY":
                self._denying[acl.resource_type].append(number)

    def about(self, right: Right) -> list[Acl]:
        """Every ACL that could allow or deny any of `right` to somebody, in their order."""
        kinds = (right.resource_type, "Cluster") if right.operation == "CREATE" else (right.resource_type,)
        return [self._acls[number] for number in sorted({number for kind in kinds for number in self._of(kind, right)})]

    def _of(self, kind: str, right: Right) -> Iterator[int]:
        for name in (right.name, "*", CLUSTER):
            yield from self._literal.get((kind, name), ())
        for length in self._lengths.get(kind, ()):
            yield from self._prefixed.get((kind, right.name[:length]), ())
        if right.pattern_type == "PREFIXED":  # a DENY on one of its names takes some of it away
            yield from self._denying.get(kind, ())


def judge(right: Right, principal: str, acls: AclIndex) -> Judgement:
    """Whether `principal` has `right`, and by which ACLs."""
    matching = [acl for acl in acls.about(right) if acl.principal in (principal, ANY_PRINCIPAL)]
    denying = [acl for acl in matching if acl.permission == "DENY" and _denies(acl, right)]
    allowing = [acl for acl in matching if acl.permission == "ALLOW" and _allows(acl, right)]
    everywhere = [acl for acl in allowing if acl.host == "*"]
    if denied := [acl for acl in denying if acl.host == "*"]:
        return Judgement(right, principal, Verdict.DENIED, tuple(denied))
    if not allowing:
        return Judgement(right, principal, Verdict.MISSING)
    if denying:
        return Judgement(right, principal, Verdict.DENIED_TO_HOSTS, tuple(denying))
    if not everywhere:
        return Judgement(right, principal, Verdict.ALLOWED_TO_HOSTS, tuple(allowing))
    return Judgement(right, principal, Verdict.ALLOWED, tuple(everywhere))


def is_certain(judgement: Judgement, acls: AclIndex, *, super_users: bool, open_to_all: bool) -> bool:
    """Whether a right that no ACL gives, or one denies, can't come from elsewhere.

    With `super_users` some principals, nobody tells which, need no ACL: who has none of its own may be one. With
    `open_to_all` (`allow.everyone.if.no.acl.found`) everybody may do everything to what no ACL is about.
    """
    if judgement.verdict not in (Verdict.MISSING, Verdict.DENIED):
        return False
    right = judgement.right
    named = judgement.principal in acls.allowed_principals
    guarded = any(acl.resource_type == right.resource_type and _covers(acl, right) for acl in acls.about(right))
    return (named or not super_users) and (guarded or not open_to_all)


def acl_of(right: Right, principal: str) -> Acl:
    """The ACL that grants `right`, no more, to `principal` on every host."""
    return Acl(principal, right.operation, right.resource_type, right.name, right.pattern_type)


def _allows(acl: Acl, right: Right) -> bool:
    """Whether an ALLOW covers all of `right`. Topics may also be created by who has CREATE on the cluster."""
    if right.operation == "CREATE" and acl.operation in ("CREATE", "ALL") and acl.resource_type == "Cluster":
        return acl.name == CLUSTER
    included = {right.operation, "ALL"} | _INCLUDED_IN.get(right.operation, set())
    return acl.operation in included and acl.resource_type == right.resource_type and _covers(acl, right)


def _denies(acl: Acl, right: Right) -> bool:
    """Whether a DENY takes away any of `right`."""
    if acl.operation not in (right.operation, "ALL") or acl.resource_type != right.resource_type:
        return False
    overlaps = right.pattern_type == "PREFIXED" and acl.name.startswith(right.name)
    return overlaps or _covers(acl, right)


def _covers(acl: Acl, right: Right) -> bool:
    """Whether the ACL's pattern matches every name that the right's pattern matches."""
    if acl.pattern_type == "PREFIXED":
        return right.name.startswith(acl.name)
    return acl.name == "*" or (right.pattern_type == "LITERAL" and acl.name == right.name)
