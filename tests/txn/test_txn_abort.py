"""`txn abort` against a cluster that speaks the protocol: which transaction, the marker, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.ids import ProducerId
from eosctl.errors import ExitCode, NotFoundError, StalePlanError, UnreachableError, UsageError
from eosctl.ports import TopicClient
from eosctl.txn.apply import apply_end
from eosctl.txn.plan import EndRequest, plan_end
from eosctl.wire.error_codes import TOPIC_AUTHORIZATION_FAILED
from tests.fakes.broker import Seen
from tests.fakes.txn_stage import Stage
from tests.schema_check import faults_of


@pytest.fixture
def hanging(stage: Stage) -> Stage:
    """The transaction of g-c-1 on t-0 alone, its id forgotten."""
    stage.cluster.state.log("t", 1).mark((only_producer(stage), 8), commit=False)
    stage.cluster.state.forget("g-c-1")
    return stage


def only_producer(stage: Stage) -> int:
    return next(iter(stage.cluster.state.log("t", 0).producers))


def test_aborting_a_hanging_transaction_moves_the_lso(hanging: Stage) -> None:
    plan = plan_end(hanging.app, EndRequest("t", 0, start_offset=0))
    (planned,) = plan.report(hanging.app).rows
    assert (planned.reason, planned.lso_before) == ("no_transactional_id", 0)
    report = apply_end(hanging.app, plan)
    assert report.exit_code == ExitCode.OK
    assert (report.rows[0].outcome, report.rows[0].lso_before, report.rows[0].lso_after) == ("aborted", 0, 2)


def test_aborting_by_producer(hanging: Stage) -> None:
    request = EndRequest("t", 0, producer_id=ProducerId(only_producer(hanging)), producer_epoch=8, coordinator_epoch=0)
    assert apply_end(hanging.app, plan_end(hanging.app, request)).rows[0].outcome == "aborted"


def test_a_transaction_its_coordinator_knows_is_refused_unless_forced(stage: Stage) -> None:
    refused = plan_end(stage.app, EndRequest("t", 0, start_offset=0)).report(stage.app)
    assert refused.exit_code is ExitCode.REFUSED
    assert [(row.partition, row.refused) for row in refused.rows] == [
        (0, ["coordinator_has_it"]),
        (1, ["coordinator_has_it"]),
    ]
    assert "eosctl fence g-c-1" in str(refused.problems[0].hint)
    plan = plan_end(stage.app, EndRequest("t", 0, start_offset=0, waived=frozenset({Waiver.FORCE})))
    shown = plan.report(stage.app)
    assert ([problem.code for problem in shown.problems], shown.exit_code) == (["not_hanging"], ExitCode.OK)
    assert [row.outcome for row in apply_end(stage.app, plan).rows] == ["aborted", "aborted"]


def test_a_newer_coordinator_epoch_on_the_partition_fails_the_marker(hanging: Stage) -> None:
    hanging.cluster.state.log("t", 0).producers[only_producer(hanging)].coordinator_epoch = 3
    request = EndRequest("t", 0, producer_id=ProducerId(only_producer(hanging)), producer_epoch=8, coordinator_epoch=1)
    report = apply_end(hanging.app, plan_end(hanging.app, request))
    assert (report.rows[0].outcome, report.exit_code) == ("failed", ExitCode.FAILED)
    assert "newer coordinator epoch" in str(report.problems[0].hint)
    assert report.rows[0].lso_after == 0


@pytest.mark.parametrize(
    ("named", "at_leader", "sent"),
    [
        ({"start_offset": 0}, -1, 0),
        ({"start_offset": 0}, 3, 3),
        ({"producer_epoch": 8, "coordinator_epoch": 4}, 3, 4),
        ({"producer_epoch": 8, "coordinator_epoch": -1}, -1, 0),
    ],
)
def test_the_coordinator_epoch_of_the_marker(hanging: Stage, named: Any, at_leader: int, sent: int) -> None:
    """What Kafka's own tool sends: 0 where the partition has seen no coordinator yet, which the leader calls -1.

    With --coordinator-epoch -1, as `txn producers` shows it, -1 was sent.
    """
    producer_id = only_producer(hanging)
    at_partition = hanging.cluster.state.log("t", 0).producers[producer_id]
    at_partition.coordinator_epoch = at_leader
    if "producer_epoch" in named:
        named = {**named, "producer_id": producer_id}
    plan = plan_end(hanging.app, EndRequest("t", 0, **named))
    assert plan.report(hanging.app).rows[0].coordinator_epoch == sent
    assert apply_end(hanging.app, plan).rows[0].outcome == "aborted"
    assert at_partition.coordinator_epoch == sent


def _still_open(stage: Stage) -> None:
    """The leader took the marker, and has the transaction open all the same."""
    stage.cluster.state.log("t", 0).producers[only_producer(stage)].start_offset = 0


def _next_one_open(stage: Stage) -> None:
    """The same producer has begun another transaction."""
    stage.cluster.state.log("t", 0).producers[only_producer(stage)].start_offset = 40


def _silent(stage: Stage) -> None:
    stage.cluster.fail_next("DescribeProducers", TOPIC_AUTHORIZATION_FAILED)


@pytest.mark.parametrize(
    ("then", "outcome", "exit_code", "problems"),
    [
        (_still_open, "aborted_not_confirmed", ExitCode.PARTIAL, ["unconfirmed"]),
        (_silent, "aborted_not_confirmed", ExitCode.PARTIAL, ["unconfirmed"]),
        (_next_one_open, "aborted", ExitCode.OK, []),
    ],
)
def test_that_it_is_aborted_is_read_back_and_not_believed(
    hanging: Stage, then: Callable[[Stage], None], outcome: str, exit_code: ExitCode, problems: list[str]
) -> None:
    """An abort that nothing confirms ended with exit code 1, as one that had failed."""
    plan = plan_end(hanging.app, EndRequest("t", 0, start_offset=0))

    def once_marked(seen: Seen, answer: bytes) -> bytes:
        if seen.api == "WriteTxnMarkers":
            then(hanging)
        return answer

    hanging.cluster.tamper = once_marked
    report = apply_end(hanging.app, plan)
    assert (report.rows[0].outcome, report.exit_code) == (outcome, exit_code)
    assert [problem.code for problem in report.problems] == problems


def test_what_was_aborted_is_told_although_the_offsets_cannot_be_read_any_more(hanging: Stage) -> None:
    """The marker was written, and the command, and with it the audit log, told of a failure only."""

    def no_broker(_app: App) -> TopicClient:
        raise UnreachableError("no broker answers")

    plan = plan_end(hanging.app, EndRequest("t", 0, start_offset=0))
    report = apply_end(replace(hanging.app, open_topics=no_broker), plan)
    (row,) = report.rows
    assert faults_of(json.loads(json.dumps(report.envelope()))) == []
    assert (row.outcome, row.lso_after, report.exit_code) == ("aborted", None, ExitCode.OK)
    assert [(problem.code, problem.severity) for problem in report.problems] == [("unreachable", "warning")]


@pytest.mark.parametrize(
    "now", [{"start_offset": -1}, {"start_offset": 40}, {"producer_epoch": 9}], ids=["ended", "another one", "newer"]
)
def test_a_transaction_that_ended_meanwhile_makes_the_plan_stale(hanging: Stage, now: dict[str, int]) -> None:
    plan = plan_end(hanging.app, EndRequest("t", 0, start_offset=0))
    for member, value in now.items():
        setattr(hanging.cluster.state.log("t", 0).producers[only_producer(hanging)], member, value)
    with pytest.raises(StalePlanError, match="the transaction has ended, or its producer has gone on"):
        apply_end(hanging.app, plan)
    assert hanging.cluster.count("WriteTxnMarkers") == 0


def test_a_plan_for_another_cluster_is_stale(hanging: Stage) -> None:
    plan = plan_end(hanging.app, EndRequest("t", 0, start_offset=0))
    hanging.cluster.state.cluster_id = "another"
    with pytest.raises(StalePlanError, match="the plan was made for cluster fake-cluster-id"):
        apply_end(hanging.app, plan)
    assert hanging.cluster.count("WriteTxnMarkers") == 0


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"start_offset": 0, "producer_id": 1},
        {"producer_id": 1, "producer_epoch": 0},
        {"start_offset": 0, "producer_id": 1, "producer_epoch": 0, "coordinator_epoch": 0},
    ],
)
def test_an_abort_names_one_transaction(stage: Stage, more: Any) -> None:
    with pytest.raises(UsageError):
        plan_end(stage.app, EndRequest("t", 0, **more))


def test_an_abort_of_nothing_is_not_found(hanging: Stage) -> None:
    """Neither where nothing begins, nor of an older epoch, nor of a producer that has none open."""
    producer_id = only_producer(hanging)
    named: list[Any] = [{"start_offset": 7}, {"producer_id": producer_id, "producer_epoch": 7, "coordinator_epoch": 0}]
    for each in named:
        with pytest.raises(NotFoundError, match="no such open transaction"):
            plan_end(hanging.app, EndRequest("t", 0, **each))
    hanging.cluster.state.log("t", 0).producers[producer_id].start_offset = -1
    with pytest.raises(NotFoundError, match="no such open transaction"):
        plan_end(hanging.app, EndRequest("t", 0, None, ProducerId(producer_id), 8, 0))
