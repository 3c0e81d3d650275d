"""The table of rights: what Kafka's documentation and the code of Connect ask for, name by name."""

from __future__ import annotations

import pytest

from eosctl.core.acls.table import CONNECT_ROLES, EOSCTL_ROLES, ROLES, ConnectorScope, GroupScope, required_rights

CONNECTOR = ConnectorScope("c", 2, "offsets-c", ("out", "in*"))
SCOPE = GroupScope("g", "configs", "offsets", "status", (CONNECTOR,))


def rights(*roles: str, mode: str = "enabled", scope: GroupScope = SCOPE, needed: bool = False) -> set[tuple[str, ...]]:
    return {
        (right.role, right.operation, right.resource_type, right.name)
        for right in required_rights(scope, roles, mode=mode)
        if not (needed and (right.optional or right.to_create))
    }


def test_a_worker_needs_its_group_its_topics_and_the_leader_id() -> None:
    topics = [(operation, topic) for topic in ("configs", "offsets", "status") for operation in ("READ", "WRITE")]
    expected = {("worker", operation, "Topic", topic) for operation, topic in topics}
    expected |= {("worker", "DESCRIBE", "Topic", topic) for topic in ("configs", "offsets", "status")}
    expected |= {("worker", operation, "TransactionalId", "connect-cluster-g") for operation in ("WRITE", "DESCRIBE")}
    expected.add(("worker", "READ", "Group", "g"))
    assert rights("worker", needed=True) == expected
    assert rights("worker", mode="preparing", needed=True) == expected


def test_an_observer_reads_the_status_topic_and_need_not() -> None:
    """Ages of what is UNASSIGNED, and the states of a dedicated MirrorMaker, are in it alone."""
    read = ("observer", "READ", "Topic", "status")
    assert read in rights("observer")
    assert read not in rights("observer", needed=True)


@pytest.mark.parametrize("role", ["producer", "admin"])
def test_every_task_id_is_needed_by_who_writes_and_by_who_fences(role: str) -> None:
    ids = {(operation, name) for _, operation, kind, name in rights(role) if kind == "TransactionalId"}
    assert ids == {(operation, f"g-c-{task}") for operation in ("WRITE", "DESCRIBE") for task in (0, 1)}
    assert not [kind for _, _, kind, _ in rights(role, mode="preparing") if kind == "TransactionalId"]


def test_offsets_and_output_topics() -> None:
    topics = {entry for entry in rights("producer", "consumer", "admin", needed=True) if entry[2] == "Topic"}
    assert topics == {
        *(("producer", operation, "Topic", topic) for operation in ("WRITE", "DESCRIBE") for topic in ("out", "in")),
        *(("producer", operation, "Topic", "offsets-c") for operation in ("WRITE", "DESCRIBE")),
        *(("consumer", operation, "Topic", "offsets-c") for operation in ("READ", "DESCRIBE")),
        ("admin", "DESCRIBE", "Topic", "offsets-c"),
    }


def test_a_star_makes_a_prefix_and_nothing_else_does() -> None:
    found = {
        right.name: right.pattern_type for right in required_rights(SCOPE, ["producer"]) if right.role == "producer"
    }
    assert {name: kind for name, kind in found.items() if kind != "LITERAL"} == {"in": "PREFIXED"}
    all_topics = GroupScope("g", "a", "b", "c", (ConnectorScope("c", 1, "b", ("*",)),))
    assert {r.pattern_type for r in required_rights(all_topics, ["producer"]) if r.name == "*"} == {"LITERAL"}


def test_one_prefix_for_all_tasks_ends_in_a_dash() -> None:
    scope = GroupScope("g", "a", "b", "s", (ConnectorScope("c", 0, "b"),), prefixed=True)
    ids = [right for right in required_rights(scope, ["producer"]) if right.resource_type == "TransactionalId"]
    assert [(right.name, right.pattern_type) for right in ids] == [("g-c-", "PREFIXED")] * 2


def test_old_brokers_want_idempotent_writes() -> None:
    old = GroupScope("g", "a", "b", "s", (), old_brokers=True)
    wanted = {("worker", "IDEMPOTENT_WRITE", "Cluster", "kafka-cluster")}
    assert rights("worker", scope=old) - rights("worker", scope=GroupScope("g", "a", "b", "s")) == wanted


def test_connectors_that_share_a_topic_need_it_once() -> None:
    two = tuple(ConnectorScope(name, 1, "offsets") for name in ("a", "b"))
    found = required_rights(GroupScope("g", "configs", "offsets", "status", two), ROLES)
    keys = [(right.role, right.operation, right.resource_type, right.name) for right in found]
    assert len(keys) == len(set(keys))


def test_every_role_needs_something_and_says_why() -> None:
    assert {right.role for right in required_rights(SCOPE, ROLES)} == set(ROLES)
    assert all(right.note for right in required_rights(SCOPE, ROLES))
    assert {right.since for right in required_rights(SCOPE, EOSCTL_ROLES)} == {None}
    since = {right.since for right in required_rights(SCOPE, CONNECT_ROLES) if right.resource_type == "TransactionalId"}
    assert since == {"3.3"}


def test_who_only_looks_may_change_nothing() -> None:
    assert {operation for _, operation, _, _ in rights("observer")} == {"READ", "DESCRIBE", "DESCRIBE_CONFIGS"}
