"""Ids whose coordinator does not end their transaction: what is claimed of them, and on what evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.transaction_log import TOPIC
from eosctl.core.transactions import Coordinator, TransactionDescription, TransactionState
from eosctl.txn.unended import LATE_MS, EndEvidence, Obstacle, UnendedTransaction, is_suspect, unended_finding
from tests.fakes.transactions import NOW_MS, Scene, scene

STUCK = TransactionalId("g-orders-1")
LEVEL_OF = {"4.1": 27}
Invoke = Any


def state_of(state: str, *, epoch: int = 9, started_ms: int = NOW_MS - 3_600_000) -> TransactionDescription:
    return TransactionDescription(
        STUCK, Coordinator(1, "b", 9092), TransactionState(state), ProducerId(7), epoch, 60_000, started_ms,
        (("sink", 0),),
    )  # fmt: skip


OLD: dict[str, Any] = {"release": (4, 1), "transaction_version": 2}


@pytest.mark.parametrize(
    ("state", "epoch", "around", "obstacle"),
    [
        ("PrepareCommit", 9, {"headless": ("sink-0",), "ended_at": ("a-0",), **OLD}, Obstacle.NO_LEADER),
        ("PrepareCommit", 9, {"headless": ("sink-0",)}, Obstacle.NO_LEADER),
        ("PrepareCommit", 9, {"headless": ("sink-0",), "release": (4, 3)}, Obstacle.UNKNOWN),  # it waits for none
        ("PrepareAbort", 9, {"below_min_isr": ("sink-0",)}, Obstacle.BELOW_MIN_ISR),
        (
            "PrepareCommit",
            9,
            {"log_below_min_isr": f"{TOPIC}-3", "ended_at": ("a-0",), **OLD},
            Obstacle.END_NOT_WRITTEN,
        ),
        ("PrepareCommit", 9, {"open_at": ("sink-0",), **OLD}, Obstacle.UNKNOWN),
        ("PrepareCommit", 9, {"ended_at": ("sink-0",), **OLD}, Obstacle.UNKNOWN),
        ("PrepareCommit", 9, {}, Obstacle.UNKNOWN),
        ("Ongoing", 32_766, OLD, Obstacle.HIGHEST_EPOCH),
        ("Ongoing", 32_766, {**OLD, "release": (4, 3)}, Obstacle.UNKNOWN),
        ("Ongoing", 32_765, OLD, Obstacle.UNKNOWN),
        ("Ongoing", 9, {"log_below_min_isr": f"{TOPIC}-3"}, Obstacle.END_NOT_WRITTEN),
        ("Ongoing", 9, {"headless": ("sink-0",)}, Obstacle.UNKNOWN),  # an abort is decided without its partitions
    ],
)
def test_the_most_probable_cause(state: str, epoch: int, around: dict[str, Any], obstacle: Obstacle) -> None:
    each = UnendedTransaction(state_of(state, epoch=epoch), NOW_MS - 90_000, around=EndEvidence(**around))
    finding = unended_finding(each, now_ms=NOW_MS)
    assert each.obstacle() is obstacle
    assert (finding.code, finding.severity, finding.certain) == ("transaction_not_ended", "error", True)
    assert (finding.evidence["cause"], finding.evidence["not_ended_for_ms"]) == (obstacle.value, 90_000)


@pytest.mark.parametrize(
    ("state", "late_ms", "is_one"),
    [
        ("PrepareCommit", 0, True),
        ("PrepareAbort", 0, True),
        ("Ongoing", 60_000 + LATE_MS, False),
        ("Ongoing", 60_001 + LATE_MS, True),
        ("CompleteCommit", 3_600_000, False),
        ("Empty", 3_600_000, False),
    ],
)
def test_which_are_looked_at_again(state: str, late_ms: int, is_one: bool) -> None:
    assert is_suspect(state_of(state, started_ms=NOW_MS - late_ms), NOW_MS) == is_one


@pytest.fixture
def stage() -> Iterator[Scene]:
    """The coordinators keep their log."""
    with scene() as built:
        state = built.brokers.state
        state.add_topic(TOPIC, 50)
        state.keeps_log = True
        yield built


def prepared(stage: Scene, *, seconds: float = 3600, logged: bool = True) -> None:
    """So long ago the coordinator has decided to commit, and no marker is written."""
    state = stage.brokers.state
    known = state.transactions[STUCK]
    known.state, known.looks_left, known.started_ms = "PrepareCommit", 10**9, NOW_MS - 3_600_000
    stage.time.now_s = NOW_MS / 1000 - seconds
    if logged:
        state.log_of(STUCK, client_version=2)
    stage.time.now_s = NOW_MS / 1000


def hanging(invoke: Invoke, stage: Scene, exit_code: int, *more: str) -> dict[str, Any]:
    outcome = invoke("txn", "hanging", *more, *stage.flags, "-o", "json", **stage.surroundings)
    assert outcome.exit_code == exit_code, outcome.stdout + outcome.stderr
    return dict(outcome.json())


def test_an_id_that_stands_in_prepare_commit_for_an_hour_is_found(invoke: Invoke, stage: Scene) -> None:
    """`txn hanging` said that no transaction hangs, and exited 0."""
    prepared(stage)
    told = hanging(invoke, stage, 3)
    [row] = told["data"]["rows"]
    assert (row["topic"], row["partition"], row["transactional_id"]) == ("sink", 0, STUCK)
    assert (row["reason"], row["state"], row["not_ended_for_ms"]) == ("not_ended", "PrepareCommit", 3_600_000)
    assert told["data"]["summary"]["not_ended"] == 1
    assert [each["code"] for each in told["errors"]] == ["transaction_not_ended"]
    assert hanging(invoke, stage, 3, "--topic", "sink")["data"]["rows"] == [row]
    assert hanging(invoke, stage, 0, "--topic", TOPIC)["data"]["rows"] == []


def test_a_moment_ago_is_no_finding(invoke: Invoke, stage: Scene) -> None:
    prepared(stage, seconds=59)
    assert hanging(invoke, stage, 0)["data"]["rows"] == []


def test_one_that_ends_between_the_looks_is_none(invoke: Invoke, stage: Scene) -> None:
    prepared(stage)
    stage.brokers.tamper = lambda seen, frame: _end(stage, seen.api, frame)
    assert hanging(invoke, stage, 0)["data"]["rows"] == []


def _end(stage: Scene, api: str, frame: bytes) -> bytes:
    """The markers are written right after the first look at the id."""
    if api == "DescribeTransactions":
        stage.brokers.state.write_markers()
    return frame


def test_since_when_is_not_claimed_where_the_log_does_not_say(invoke: Invoke, stage: Scene) -> None:
    """The start of the transaction says nothing about when its end was decided."""
    prepared(stage, logged=False)
    told = hanging(invoke, stage, 7)
    [row] = told["data"]["rows"]
    assert (row["reason"], row["not_ended_for_ms"], row["state"]) == ("not_checked", None, "PrepareCommit")
    assert told["data"]["summary"]["not_ended"] == 0


def test_a_coordinator_that_was_not_asked_is_no_proof_that_none_hangs(invoke: Invoke) -> None:
    """It exited with 7, below "No transaction is hanging."."""
    built = Scene(nodes=3)
    with built.brokers:
        built.brokers.frozen = {built.brokers.state.nodes[2]}
        outcome = invoke("txn", "hanging", *built.flags, "--timeout", "4s", **built.surroundings)
    assert outcome.exit_code == 7
    assert "No transaction is hanging" not in outcome.stdout
    assert "not everything could be seen" in outcome.stdout


def test_brokers_that_list_no_ids_are_no_proof_either(invoke: Invoke, stage: Scene) -> None:
    """It exited with 0: what no coordinator ends was not looked for."""
    stage.brokers.left_out = dict.fromkeys(stage.brokers.state.nodes, frozenset(range(62, 600)))
    told = hanging(invoke, stage, 7)
    assert (told["data"]["rows"], [each["code"] for each in told["errors"]]) == ([], ["unsupported"])


def causes(invoke: Invoke, stage: Scene) -> list[tuple[str, str, object, str]]:
    rows = invoke("doctor", "--for", "streams", *stage.flags, "-o", "json", **stage.surroundings).json()["data"]["rows"]
    found = [row for row in rows if row["code"] == "transaction_not_ended"]
    return [(row["check"], row["subject"], row["evidence"]["cause"], row["severity"]) for row in found]


def test_a_partition_without_a_leader_is_the_cause(invoke: Invoke, stage: Scene) -> None:
    prepared(stage)
    stage.brokers.state.supported["metadata.version"] = LEVEL_OF["4.1"]
    stage.brokers.state.leaderless.add(("sink", 0))
    assert causes(invoke, stage) == [("transactions", STUCK, "partition_without_leader", "error")]


def test_where_its_partitions_are_well_the_cause_is_not_known(invoke: Invoke, stage: Scene) -> None:
    """Of brokers of 4.0 and 4.1 it would have been KAFKA-19999, which no release has."""
    prepared(stage)
    state = stage.brokers.state
    state.supported["metadata.version"] = LEVEL_OF["4.1"]
    known = state.transactions[STUCK]
    state.log("sink", 0).mark((known.producer_id, known.producer_epoch), commit=True)
    assert causes(invoke, stage) == [("transactions", STUCK, "unknown", "error")]


def test_a_transaction_that_is_open_long_after_its_timeout_is_found(invoke: Invoke, stage: Scene) -> None:
    state = stage.brokers.state
    state.supported["metadata.version"] = LEVEL_OF["4.1"]
    known = state.transactions[STUCK]
    known.started_ms, known.producer_epoch = NOW_MS - 600_000, 32_766
    assert causes(invoke, stage) == [("transactions", STUCK, "KAFKA-20090", "error")]
    known.timeout_ms = 2**31 - 1
    assert causes(invoke, stage) == []


def test_doctor_of_a_group_names_it_once(invoke: Invoke, stage: Scene) -> None:
    """It was silent, or said that brokers abort it at its timeout."""
    prepared(stage)
    outcome = invoke("doctor", *stage.flags, "-o", "json", **stage.surroundings)
    assert outcome.exit_code == 3
    rows = outcome.json()["data"]["rows"]
    about = [row["code"] for row in rows if STUCK in row["message"] or row["subject"] in (STUCK, "orders/1")]
    assert about == ["transaction_not_ended"]
