"""Decides whether ACLs allow a right, as Kafka's authorizer does (`StandardAuthorizerData`, Kafka 3.3 to 4.3).

A DENY always wins; READ, WRITE, DELETE and ALTER include DESCRIBE, and ALTER_CONFIGS includes DESCRIBE_CONFIGS, but
only where they are allowed: a denied READ denies no DESCRIBE.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum, unique

from msgspec import Struct

from eosctl.core.acls.lines import Acl
from eosctl.core.acls.table import CLUSTER, Right

ANY_PRINCIPAL = "User:*"
_PREFIXED = "PREFIXED"
_INCLUDED_IN = {
    "DESCRIBE": {"READ", "WRITE", "DELETE", "ALTER"},
    "DESCRIBE_CONFIGS": {"ALTER_CONFIGS"},
}


@unique
class RightVerdict(StrEnum):
    """The ACLs' verdict on a right; in the two that name hosts, it depends on where the client runs."""

    ALLOWED = "allowed"
    MISSING = "missing"
    DENIED = "denied"
    ALLOWED_TO_HOSTS = "allowed_to_hosts"
    DENIED_TO_HOSTS = "denied_to_hosts"


class RightJudgement(Struct, frozen=True):
    """A right of a principal, the verdict, and the ACLs that decided it."""

    right: Right
    principal: str
    verdict: RightVerdict
    because: tuple[Acl, ...] = ()


class AclIndex:
    """The cluster's ACLs, found by pattern and principal: one right asks for few of them, whatever their number."""

    def __init__(self, acls: Iterable[Acl]) -> None:
        self._acls = tuple(acls)
        self._on = defaultdict[tuple[str, str, str], dict[str, list[int]]](dict)
        self._lengths = defaultdict[str, set[int]](set)
        denying = defaultdict[tuple[str, str], list[tuple[str, int]]](list)
        for number, acl in enumerate(self._acls):
            of_principals = self._on[acl.pattern_type, acl.resource_type, acl.name]
            of_principals.setdefault(acl.principal, []).append(number)
            if acl.pattern_type == _PREFIXED:
                self._lengths[acl.resource_type].add(len(acl.name))
            if acl.permission == "DENY":
                denying[acl.resource_type, acl.principal].append((acl.name, number))
        self._denying = {of: sorted(names) for of, names in denying.items()}
        self.allowed_principals = frozenset(acl.principal for acl in self._acls if acl.permission == "ALLOW")

    def about(self, right: Right, principals: Collection[str]) -> list[Acl]:
        """Return every ACL of `principals` that could allow or deny any of `right`, in their order."""
        found = {number for on in self._patterns(right) for each in principals for number in on.get(each, ())}
        if right.pattern_type == _PREFIXED:  # a DENY on one of its names takes some of it away
            for each in principals:
                names = self._denying.get((right.resource_type, each), [])
                for name, number in names[bisect_left(names, (right.name, -1)) :]:
                    if not name.startswith(right.name):
                        break
                    found.add(number)
        return [self._acls[number] for number in sorted(found)]

    def is_guarded(self, right: Right) -> bool:
        """Check whether an ACL, of whatever principal, covers all of `right`."""
        firsts = (self._acls[next(iter(on.values()))[0]] for on in self._patterns(right))
        return any(acl.resource_type == right.resource_type and _covers(acl, right) for acl in firsts)

    def _patterns(self, right: Right) -> Iterator[Mapping[str, Sequence[int]]]:
        """Yield, for each pattern that may match `right`, its ACLs by principal."""
        for kind in (right.resource_type, "Cluster") if right.operation == "CREATE" else (right.resource_type,):
            keys = [("LITERAL", kind, name) for name in {right.name, "*", CLUSTER}]
            keys += [(_PREFIXED, kind, right.name[:length]) for length in self._lengths.get(kind, ())]
            yield from (self._on[key] for key in dict.fromkeys(keys) if key in self._on)


def judge(right: Right, principal: str, acls: AclIndex) -> RightJudgement:
    """Decide whether `principal` has `right`, and by which ACLs."""
    matching = acls.about(right, (principal, ANY_PRINCIPAL))
    denying = [acl for acl in matching if acl.permission == "DENY" and _denies(acl, right)]
    allowing = [acl for acl in matching if acl.permission == "ALLOW" and _allows(acl, right)]
    everywhere = [acl for acl in allowing if acl.host == "*"]
    if denied := [acl for acl in denying if acl.host == "*"]:
        return RightJudgement(right, principal, RightVerdict.DENIED, tuple(denied))
    if not allowing:
        return RightJudgement(right, principal, RightVerdict.MISSING)
    if denying:
        return RightJudgement(right, principal, RightVerdict.DENIED_TO_HOSTS, tuple(denying))
    if not everywhere:
        return RightJudgement(right, principal, RightVerdict.ALLOWED_TO_HOSTS, tuple(allowing))
    return RightJudgement(right, principal, RightVerdict.ALLOWED, tuple(everywhere))


def is_certain(judgement: RightJudgement, acls: AclIndex, *, super_users: bool, open_to_all: bool) -> bool:
    """Check whether a right that no ACL gives, or that one denies, can't be given by something else.

    With `super_users`, some unknown principals need no ACL: a principal without any may be one of them. With
    `open_to_all` (`allow.everyone.if.no.acl.found`), all principals may use a resource that no ACL covers.
    """
    if judgement.verdict not in (RightVerdict.MISSING, RightVerdict.DENIED):
        return False
    right = judgement.right
    named = judgement.principal in acls.allowed_principals
    return (named or not super_users) and (not open_to_all or acls.is_guarded(right))


def acl_of(right: Right, principal: str) -> Acl:
    """Return the ACL that grants `principal` exactly `right`, on every host."""
    return Acl(principal, right.operation, right.resource_type, right.name, right.pattern_type)


def _allows(acl: Acl, right: Right) -> bool:
    """Check whether an ALLOW covers all of `right`. CREATE on the cluster also allows creating topics."""
    if right.operation == "CREATE" and acl.operation in ("CREATE", "ALL") and acl.resource_type == "Cluster":
        return acl.name == CLUSTER
    included = {right.operation, "ALL"} | _INCLUDED_IN.get(right.operation, set())
    return acl.operation in included and acl.resource_type == right.resource_type and _covers(acl, right)


def _denies(acl: Acl, right: Right) -> bool:
    """Check whether a DENY takes away any of `right`."""
    if acl.operation not in (right.operation, "ALL") or acl.resource_type != right.resource_type:
        return False
    overlaps = right.pattern_type == _PREFIXED and acl.name.startswith(right.name)
    return overlaps or _covers(acl, right)


def _covers(acl: Acl, right: Right) -> bool:
    """Check whether the ACL's pattern matches every name that the right's pattern matches."""
    if acl.pattern_type == _PREFIXED:
        return right.name.startswith(acl.name)
    return acl.name == "*" or (right.pattern_type == "LITERAL" and acl.name == right.name)
