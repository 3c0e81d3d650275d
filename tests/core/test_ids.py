"""Transactional ids: formatting, and attribution that admits what can't be known."""

from __future__ import annotations

import pytest

from eosctl.core.ids import (
    FLINK_SINK,
    KAFKA_STREAMS,
    Owner,
    TransactionalId,
    application_of,
    groups_of_task,
    leader_transactional_id,
    may_be_task,
    own_transactional_id,
    owner_of,
    task_of,
    task_transactional_id,
    task_transactional_ids,
)

UUID = "0b7a1c9e-4f3d-4b62-9a55-2f6c8d1e7a90"
HASH = "cbc357ccb763df2852fee8c4fc7d55f2"


def test_formats_are_connects_own() -> None:
    assert task_transactional_id("connect-eos", "a-b", 3) == "connect-eos-a-b-3"
    assert leader_transactional_id("connect-eos") == "connect-cluster-connect-eos"
    assert task_transactional_ids("g", "c", 2) == ["g-c-0", "g-c-1"]
    assert task_transactional_ids("g", "c", 0) == []


@pytest.mark.parametrize(
    ("transactional_id", "group", "connectors", "owner"),
    [
        ("g-c-0", "g", (), Owner("task", "c", 0)),
        ("g-a-b-12", "g", (), Owner("task", "a-b", 12)),
        ("g-a-b-12", "g", ("a-b",), Owner("task", "a-b", 12)),
        ("g-a-b-12", "g", ("other",), Owner("other")),
        ("connect-cluster-g", "g", (), Owner("leader")),
        ("connect-cluster-g", "h", (), Owner("other")),
        # a task of group `connect`, or the leader of group `x-0`?
        ("connect-cluster-x-0", "connect", (), Owner("ambiguous")),
        ("connect-cluster-x-0", "connect", ("cluster-x",), Owner("task", "cluster-x", 0)),
        ("connect-cluster-x-0", "connect", ("c",), Owner("other")),
        ("connect-cluster-7", "7", (), Owner("leader")),
        ("connect-cluster-connect-7", "connect-7", (), Owner("leader")),
        ("g-c-01", "g", (), Owner("other")),
        ("g-c-", "g", (), Owner("other")),
        ("g--0", "g", (), Owner("other")),
        ("g-c-٣", "g", (), Owner("other")),
        ("g-c-x", "g", (), Owner("other")),
        ("g-c-9999999999999", "g", (), Owner("other")),
        ("g-c-1-0", "g", (), Owner("task", "c-1", 0)),
        ("g-c-1-0", "g", ("c",), Owner("other", application=FLINK_SINK)),
        ("g-c-1-0", None, (), Owner("other", application=FLINK_SINK)),
        ("g-app-0_1", "g", (), Owner("other", application=KAFKA_STREAMS)),
        ("eosctl-offsets-g-writer", "g", (), Owner("eosctl")),
        ("eosctl-offsets-writer", None, (), Owner("eosctl")),
        ("eosctl-config-g", "g", ("c",), Owner("eosctl")),
        ("eosctl-migrate-0123456789abcdef-0", "g", (), Owner("eosctl")),
        ("eosctl-migrate-0123456789012345-7", None, (), Owner("eosctl")),  # the shape of Flink's ids, too
        (
            "eosctl-migrate-0123456789abcdef-0",
            "eosctl",
            ("migrate-0123456789abcdef",),
            Owner("task", "migrate-0123456789abcdef", 0),
        ),
        ("eosctl-migrate-0123456789abcdef-0", "eosctl", ("c",), Owner("eosctl")),
        ("eosctl-migrate-notes-0", "eosctl", (), Owner("task", "migrate-notes", 0)),
        ("eosctl-other-0", "g", (), Owner("other")),
        ("anything", None, (), Owner("other")),
        ("", "g", (), Owner("other")),
    ],
)
def test_owner(transactional_id: TransactionalId, group: str | None, connectors: tuple[str, ...], owner: Owner) -> None:
    """eosctl's own ids were "other", or a Flink job's by their shape: who cut off a write was not to be seen."""
    assert owner_of(transactional_id, group, connectors) == owner


TASK = Owner("task", "c", 0)


@pytest.mark.parametrize(
    ("connectors", "groups", "owner"),
    [
        ((), {"connect-cluster"}, TASK),
        (("c",), {"connect-cluster"}, TASK),
        (("d",), {"connect-cluster"}, Owner("other")),  # of a connector that is no more, or of nobody that is known
        (("c",), None, TASK),
        ((), None, Owner("ambiguous")),
        (("c",), {"connect-cluster", "c-0"}, Owner("ambiguous")),
        ((), {"connect-cluster", "c-0"}, Owner("ambiguous")),
        (("d",), {"connect-cluster", "c-0"}, Owner("other")),
        (("d",), None, Owner("other")),
    ],
)
def test_an_id_is_ambiguous_only_where_a_group_and_a_connector_fit(
    connectors: tuple[str, ...], groups: set[str] | None, owner: Owner
) -> None:
    """Task 0 of connector c of group connect-cluster, or the leader of group c-0."""
    assert owner_of(TransactionalId("connect-cluster-c-0"), "connect-cluster", connectors, groups=groups) == owner
    assert (
        owner_of(TransactionalId("connect-cluster-connect-cluster"), "connect-cluster", connectors, groups=groups).kind
        == "leader"
    )


OTHER, AMBIGUOUS = Owner("other"), Owner("ambiguous")
EU, BOTH = "connect-cluster-eu-orders-0", {"connect-cluster", "connect-cluster-eu"}


@pytest.mark.parametrize(
    ("transactional_id", "group", "connectors", "groups", "owner"),
    [
        (EU, "connect-cluster", ("orders",), BOTH, OTHER),
        (EU, "connect-cluster", (), BOTH, AMBIGUOUS),
        (
            EU,
            "connect-cluster",
            ("eu-orders",),
            BOTH,
            Owner("task", "eu-orders", 0),
        ),
        (EU, "connect-cluster-eu", ("orders",), BOTH, Owner("task", "orders", 0)),
        (EU, "connect-cluster", (), {"connect-cluster"}, Owner("task", "eu-orders", 0)),
        ("g-eu-orders-0", "g", ("orders",), {"g", "g-eu"}, OTHER),
        ("g-eu-orders-0", "g", (), {"g", "g-eu"}, AMBIGUOUS),
        ("g-eu-orders-0", "g", (), {"g"}, Owner("task", "eu-orders", 0)),
        ("g-eu-orders-0", "g-eu", (), {"g", "g-eu"}, AMBIGUOUS),
        ("g-eu-orders-0", "g", (), None, Owner("task", "eu-orders", 0)),
    ],
)
def test_an_id_that_looks_like_the_groups_is_not_its_own_for_that(
    transactional_id: str, group: str, connectors: tuple[str, ...], groups: set[str] | None, owner: Owner
) -> None:
    """With group connect-cluster every id of group connect-cluster-eu was a task of ours, though no connector is it."""
    assert owner_of(TransactionalId(transactional_id), group, connectors, groups=groups) == owner


@pytest.mark.parametrize(
    ("transactional_id", "groups"),
    [
        ("g-c-0", ["g"]),
        ("g-eu-c-0", ["g", "g-eu"]),
        ("g--0", []),
        ("-c-0", []),
        ("g-0", []),
        ("g-c-x", []),
        ("", []),
    ],
)
def test_the_groups_of_which_an_id_can_be_a_tasks(transactional_id: str, groups: list[str]) -> None:
    assert groups_of_task(TransactionalId(transactional_id)) == groups
    assert [group for group in groups if task_of(TransactionalId(transactional_id), group) is None] == []


@pytest.mark.parametrize(
    ("transactional_id", "group", "work", "of_any"),
    [
        ("g-c-0", "g", ("c", 0), True),
        ("g-a-b-12", "g", ("a-b", 12), True),
        ("g-a-b-12", "g-a", ("b", 12), True),
        ("g-a-b-12", "h", None, True),
        ("g-c-01", "g", None, False),
        ("g--0", "g", None, False),
        ("g-0", "g", None, False),
        ("connect-cluster-g", "connect", None, False),
        ("", "g", None, False),
    ],
)
def test_ids_that_can_be_a_tasks(
    transactional_id: TransactionalId, group: str, work: tuple[str, int] | None, of_any: bool
) -> None:
    assert task_of(transactional_id, group) == work
    assert may_be_task(transactional_id) is of_any


@pytest.mark.parametrize(
    ("transactional_id", "application"),
    [
        ("orders-sink-0-1", FLINK_SINK),
        ("orders-sink-12-9223372036854775807", FLINK_SINK),
        ("two\nlines-0-1", FLINK_SINK),
        (f"Sink: Kafka-{HASH}-42", FLINK_SINK),
        (f"app-{UUID}-1", KAFKA_STREAMS),
        (f"app-1-{UUID}-12", KAFKA_STREAMS),
        ("app-0_1", KAFKA_STREAMS),
        ("app-1-10_31", KAFKA_STREAMS),
        ("a_b-0-1", FLINK_SINK),
        ("0_1-x-1", None),
        (f"x-{UUID[-12:]}-1", None),  # the end of a UUID alone
        ("x-٣-0-1", FLINK_SINK),
        ("0-1", None),
        ("-0-1", None),
        ("job-0-01", None),  # Java prints no leading zero
        ("job-0--1", None),
        ("job-0-1-", None),
        ("job-٣-1", None),
        ("job-1", None),
        (f"{UUID}-1", None),  # no application.id
        (f"app-{UUID.upper()}-1", None),
        ("app-0_", None),
        ("app-00_1", None),
        ("app_0_1", None),
        ("connect-cluster-x-0-1", None),  # the leader of group x-0-1
        (own_transactional_id("g"), None),
        ("", None),
    ],
)
def test_the_shapes_of_other_applications(transactional_id: TransactionalId, application: str | None) -> None:
    assert application_of(transactional_id) == application


def test_a_number_of_thousands_of_digits_is_no_task() -> None:
    """`int` refuses more than 4,300 digits: one such id ended `txn list` with a traceback."""
    assert owner_of(TransactionalId("g-c-" + "1" * 5000), "g").kind == "other"
