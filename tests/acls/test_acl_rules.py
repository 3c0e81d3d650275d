"""What Kafka's authorizer would say: patterns, wildcards, DENY, hosts, and operations that include others."""

from __future__ import annotations

import pytest

from eosctl.acls.rules import AclIndex, RightVerdict, acl_of, is_certain, judge
from eosctl.core.acls.lines import Acl
from eosctl.core.acls.table import Right

W = "User:w"
TOPIC = Right("producer", "WRITE", "Topic", "orders", "")
DESCRIBE = Right("admin", "DESCRIBE", "Topic", "orders", "")
IDS = Right("producer", "WRITE", "TransactionalId", "g-c-", "", pattern_type="PREFIXED")
CREATE = Right("admin", "CREATE", "Topic", "orders", "", to_create=True)


def acl(operation: str = "WRITE", name: str = "orders", **more: str) -> Acl:
    return Acl(more.pop("principal", W), operation, more.pop("resource_type", "Topic"), name, **more)


@pytest.mark.parametrize(
    ("right", "acls", "verdict"),
    [
        (TOPIC, [], "missing"),
        (TOPIC, [acl()], "allowed"),
        (TOPIC, [acl("ALL")], "allowed"),
        (TOPIC, [acl("READ")], "missing"),
        (TOPIC, [acl(name="orders2")], "missing"),
        (TOPIC, [acl(name="*")], "allowed"),
        (TOPIC, [acl(name="*", pattern_type="PREFIXED")], "missing"),  # a prefix that is a star, not a wildcard
        (TOPIC, [acl(name="ord", pattern_type="PREFIXED")], "allowed"),
        (TOPIC, [acl(name="orders", pattern_type="PREFIXED")], "allowed"),
        (TOPIC, [acl(name="ord")], "missing"),
        (TOPIC, [acl(resource_type="Group")], "missing"),
        (TOPIC, [acl(principal="User:*")], "allowed"),
        (TOPIC, [acl(principal="User:other")], "missing"),
        (TOPIC, [acl(principal="Group:w")], "missing"),
        # hosts
        (TOPIC, [acl(host="10.0.0.1")], "allowed_to_hosts"),
        (TOPIC, [acl(host="10.0.0.1"), acl(principal="User:*")], "allowed"),
        (TOPIC, [acl(), acl(permission="DENY", host="10.0.0.1")], "denied_to_hosts"),
        (TOPIC, [acl(permission="DENY", host="10.0.0.1")], "missing"),
        # DENY wins, however it is written
        (TOPIC, [acl(), acl(permission="DENY")], "denied"),
        (TOPIC, [acl(), acl("ALL", permission="DENY", principal="User:*")], "denied"),
        (TOPIC, [acl(), acl(permission="DENY", name="*")], "denied"),
        (TOPIC, [acl(), acl(permission="DENY", name="o", pattern_type="PREFIXED")], "denied"),
        (TOPIC, [acl(), acl("READ", permission="DENY")], "allowed"),
        (TOPIC, [acl(), acl(permission="DENY", principal="User:other")], "allowed"),
        # what is included when it is allowed is not denied with it
        *((DESCRIBE, [acl(operation)], "allowed") for operation in ("DESCRIBE", "READ", "WRITE", "DELETE", "ALTER")),
        *((DESCRIBE, [acl(operation)], "missing") for operation in ("CREATE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")),
        (DESCRIBE, [acl(), acl("READ", permission="DENY")], "allowed"),
        (DESCRIBE, [acl(), acl("DESCRIBE", permission="DENY")], "denied"),
        # a prefixed right wants a pattern that covers all of it, and is denied by one that takes a part
        (IDS, [acl(name="g-c-", resource_type="TransactionalId", pattern_type="PREFIXED")], "allowed"),
        (IDS, [acl(name="g-", resource_type="TransactionalId", pattern_type="PREFIXED")], "allowed"),
        (IDS, [acl(name="*", resource_type="TransactionalId")], "allowed"),
        (IDS, [acl(name="g-c-", resource_type="TransactionalId")], "missing"),
        (IDS, [acl(name="g-c-0", resource_type="TransactionalId", pattern_type="PREFIXED")], "missing"),
        (
            IDS,
            [
                acl(name="g-", resource_type="TransactionalId", pattern_type="PREFIXED"),
                acl(name="g-c-7", resource_type="TransactionalId", permission="DENY"),
            ],
            "denied",
        ),
        # topics may be created by who may create any
        (CREATE, [acl("CREATE")], "allowed"),
        (CREATE, [acl("CREATE", "kafka-cluster", resource_type="Cluster")], "allowed"),
        (CREATE, [acl("ALL", "kafka-cluster", resource_type="Cluster")], "allowed"),
        (CREATE, [acl("ALTER", "kafka-cluster", resource_type="Cluster")], "missing"),
    ],
)
def test_judge(right: Right, acls: list[Acl], verdict: str) -> None:
    judgement = judge(right, W, AclIndex(acls))
    assert judgement.verdict == RightVerdict(verdict)
    assert bool(judgement.because) == (verdict != "missing")


@pytest.mark.parametrize("right", [TOPIC, DESCRIBE, IDS, CREATE])
def test_what_is_granted_is_enough(right: Right) -> None:
    assert judge(right, W, AclIndex([acl_of(right, W)])).verdict is RightVerdict.ALLOWED
    assert judge(right, "User:other", AclIndex([acl_of(right, W)])).verdict is RightVerdict.MISSING


OF_W, OF_OTHERS = acl(name="payments"), acl(principal="User:other")
DENY = acl(permission="DENY")


@pytest.mark.parametrize(
    ("acls", "super_users", "open_to_all", "certain"),
    [
        ([], False, False, True),
        ([], True, False, False),
        ([OF_W], True, False, True),  # who needs no ACL is given none
        ([], False, True, False),
        ([OF_OTHERS], False, True, True),
        ([OF_OTHERS], True, True, False),
        ([OF_W, OF_OTHERS], True, True, True),
        ([DENY], False, False, True),
        ([DENY], True, False, False),  # a super user is not even denied anything
        ([DENY, OF_W], True, False, True),
        ([acl(host="10.0.0.1")], False, False, False),
        ([acl()], False, False, False),
    ],
)
def test_what_may_come_from_elsewhere_is_not_certainly_lacking(
    acls: list[Acl], super_users: bool, open_to_all: bool, certain: bool
) -> None:
    index = AclIndex(acls)
    assert is_certain(judge(TOPIC, W, index), index, super_users=super_users, open_to_all=open_to_all) is certain


@pytest.mark.parametrize(
    ("right", "asked"),
    [
        (IDS, [acl("WRITE", "g-c-", resource_type="TransactionalId", pattern_type="PREFIXED")]),
        (TOPIC, [acl()]),
        (CREATE, [acl("CREATE", "kafka-cluster", resource_type="Cluster")]),
    ],
)
def test_few_acls_are_looked_at_however_many_there_are(right: Right, asked: list[Acl]) -> None:
    """Ten thousand principals with an ACL on all names made `acls check --all` run for minutes."""
    everywhere = [("Cluster", "kafka-cluster"), ("Topic", "*"), ("TransactionalId", "*"), ("Topic", right.name)]
    others = [
        acl("ALL", name, principal=f"User:{number}", resource_type=kind)
        for kind, name in everywhere
        for number in range(100)
    ]
    denied = [
        acl(name=f"{other}-{number}", resource_type=right.resource_type, permission="DENY", principal="User:*")
        for number in range(100)
        for other in ("a", "z")
    ]
    index = AclIndex([*others, *asked, *denied])
    assert index.about(right, (W, "User:*")) == asked
    assert index.is_guarded(right)
