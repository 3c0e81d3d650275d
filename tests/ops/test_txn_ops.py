"""txn against a cluster that speaks the protocol: listings, filters, hanging transactions and their end."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.core.transaction_log import TOPIC
from eosctl.deadline import Deadline
from eosctl.errors import (
    ExitCode,
    NotFoundError,
    RefusedError,
    StalePlanError,
    UnreachableError,
    UnsupportedError,
    UsageError,
)
from eosctl.ops.app import App
from eosctl.ops.ports import TopicStore
from eosctl.ops.txn import ListFilter, describe_transactions, find_coordinators, list_transactions
from eosctl.ops.txn_abort import AbortRequest, apply_abort, plan_abort
from eosctl.ops.txn_log import LogRequest, read_transaction_log
from eosctl.ops.txn_partitions import find_hanging_transactions, list_producers
from eosctl.profiles import Target
from eosctl.report import Report
from eosctl.wire.error_codes import TOPIC_AUTHORIZATION_FAILED
from tests.fakes.broker import FakeCluster, Seen
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.topics import FakeTopicStore
from tests.schema_check import faults_of

HOUR_MS = 3_600_000


@dataclass
class Stage:
    cluster: FakeCluster
    topics: FakeTopicStore
    group_id: str | None = "g"
    events: list[Any] = field(default_factory=list)

    @property
    def app(self) -> App:
        return App(
            Target(client=ClientSettings(self.cluster.bootstrap_servers), group_id=self.group_id),
            Deadline.after(20),
            Path("unused"),
            on_event=self.events.append,
            open_topics=self.topics.open,
        )

    def hang(self, producer_id: int, topic: str = "t", partition: int = 0, *, age_ms: int = HOUR_MS) -> None:
        """Makes a producer's transaction on a partition as old as that."""
        producer = self.cluster.state.log(topic, partition).producers[producer_id]
        producer.last_timestamp_ms = int(time.time() * 1000) - age_ms


@pytest.fixture
def stage() -> Iterator[Stage]:
    """g-c-0 idle; g-c-1 with an open transaction on t-0 and t-1; a leader; something else."""
    with FakeCluster(brokers=2) as cluster:
        state = cluster.state
        state.transactions["g-c-0"] = FakeTransaction(1, 4)
        state.open_transaction("g-c-1", ("t", 0), ("t", 1), epoch=8)
        state.transactions["connect-cluster-g"] = FakeTransaction(5, 0, "CompleteCommit")
        state.transactions["zzz"] = FakeTransaction(6, 0)
        state.add_topic(TOPIC, 50)
        yield Stage(cluster, FakeTopicStore(state))


def ids(report: Report) -> list[str]:
    return [str(row["transactional_id"]) for row in report.rows]


def test_a_listing_is_sorted_and_attributed(stage: Stage) -> None:
    report = list_transactions(stage.app, ListFilter())
    assert ids(report) == ["connect-cluster-g", "g-c-0", "g-c-1", "zzz"]
    assert [row["owner"]["kind"] for row in report.rows] == ["leader", "task", "task", "other"]  # type: ignore[index]
    assert report.rows[2]["state"] == "Ongoing"
    assert (report.rows[2]["producer_epoch"], report.rows[2]["partitions"]) == (None, None)
    assert report.summary == {"ids": 4, "counts": {"Empty": 2, "Ongoing": 1, "CompleteCommit": 1}}


@pytest.mark.parametrize("client_side", [False, True], ids=["brokers", "here"])
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ListFilter(states=("Ongoing", "Empty")), ["g-c-0", "g-c-1", "zzz"]),
        (ListFilter(producer_ids=(5, 6)), ["connect-cluster-g", "zzz"]),
        (ListFilter(pattern="g-.*"), ["g-c-0", "g-c-1"]),
        (ListFilter(pattern="g-c"), []),
        (ListFilter(open_longer_than_ms=HOUR_MS), ["g-c-1"]),
        (ListFilter(open_longer_than_ms=3 * HOUR_MS), []),
        (ListFilter(states=("Empty",), pattern=".*0"), ["g-c-0"]),
    ],
    ids=["state", "producer id", "pattern", "pattern matches the whole id", "duration", "too long", "both"],
)
def test_filters_mean_the_same_wherever_they_are_applied(
    stage: Stage, wanted: ListFilter, expected: list[str], client_side: bool
) -> None:
    """With --client-side what had ended was listed as open: its start is still told."""
    transactions = stage.cluster.state.transactions
    transactions["g-c-1"].started_ms -= 2 * HOUR_MS
    transactions["connect-cluster-g"].started_ms = transactions["g-c-1"].started_ms
    assert ids(list_transactions(stage.app, replace(wanted, client_side=client_side))) == expected


@pytest.mark.parametrize(
    ("wanted", "release"), [(ListFilter(pattern=".*"), "4.1"), (ListFilter(open_longer_than_ms=1), "3.8")]
)
def test_a_filter_the_broker_lacks_is_refused_unless_done_here(stage: Stage, wanted: ListFilter, release: str) -> None:
    stage.cluster.versions["ListTransactions"] = (0, 0)
    with pytest.raises(UnsupportedError, match=release) as caught:
        list_transactions(stage.app, wanted)
    assert "--client-side" in str(caught.value.hint)
    assert list_transactions(stage.app, replace(wanted, client_side=True)).exit_code == ExitCode.OK


def test_a_bad_pattern_is_a_usage_error(stage: Stage) -> None:
    with pytest.raises(UsageError):
        list_transactions(stage.app, ListFilter(pattern="(", client_side=True))


def test_describe_gives_everything_a_listing_lacks(stage: Stage) -> None:
    report = describe_transactions(stage.app, ["g-c-1", "g-c-1"])
    (row,) = report.rows
    assert row["partitions"] == [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
    assert (row["producer_epoch"], row["transaction_timeout_ms"]) == (8, 60_000)
    assert row["owner"] == {"kind": "task", "connector": "c", "task": 1, "application": None}
    assert isinstance(row["age_ms"], int)


@pytest.mark.parametrize(
    ("asked", "denied", "exit_code"),
    [
        (["g-c-0", "nosuch"], set(), ExitCode.PARTIAL),
        (["nosuch"], set(), ExitCode.FAILED),
        (["g-c-0"], {"g-c-0"}, ExitCode.UNAUTHORIZED),
        (["g-c-0", "g-c-1"], {"g-c-0"}, ExitCode.PARTIAL),
    ],
)
def test_describing_what_is_unknown_or_denied(
    stage: Stage, asked: list[str], denied: set[str], exit_code: ExitCode
) -> None:
    stage.cluster.deny_describe.update(denied)
    report = describe_transactions(stage.app, asked)
    assert report.exit_code == exit_code
    assert len(report.rows) + len(report.problems) == len(asked)
    if denied:
        assert "--operation Describe --transactional-id g-c-0" in str(report.problems[0].hint)


def test_coordinators_with_hash_and_partition(stage: Stage) -> None:
    report = find_coordinators(stage.app, ["connect-cluster-foo", "polygenelubricants"])
    assert [(row["hash"], row["partition"]) for row in report.rows] == [(1336017424, 24), (-(2**31), 0)]
    assert {row["host"] for row in report.rows} == {"127.0.0.1"}
    assert report.summary["partitions"] == 50


def test_producers_of_a_topic_are_named(stage: Stage) -> None:
    report = list_producers(stage.app, "t", None)
    assert [(row["partition"], row["transactional_id"], row["start_offset"]) for row in report.rows] == [
        (0, "g-c-1", 0),
        (1, "g-c-1", 0),
    ]
    assert report.summary == {"producers": 2, "open": 2}
    assert len(list_producers(stage.app, "t", 1).rows) == 1
    for topic, partition in (("nosuch", None), ("t", 2)):
        with pytest.raises(NotFoundError):
            list_producers(stage.app, topic, partition)


def test_long_is_not_hanging(stage: Stage) -> None:
    stage.hang(stage.cluster.state.transactions["g-c-1"].producer_id)
    report = find_hanging_transactions(stage.app, None)
    assert (report.rows, report.exit_code) == ([], ExitCode.OK)
    assert report.summary == {"partitions": 52, "open_too_long": 1, "hanging": 0}


@pytest.mark.parametrize("reason", ["no_transactional_id", "partition_not_in_transaction"])
@pytest.mark.parametrize("topic", ["t", None])
def test_what_a_coordinator_forgot_is_hanging(stage: Stage, reason: str, topic: str | None) -> None:
    state = stage.cluster.state
    producer_id = state.transactions["g-c-1"].producer_id
    stage.hang(producer_id)
    if reason == "no_transactional_id":
        del state.transactions["g-c-1"]
    else:
        state.transactions["g-c-1"].partitions.remove(("t", 0))
    report = find_hanging_transactions(stage.app, topic)
    assert [(row["partition"], row["reason"], row["start_offset"]) for row in report.rows] == [(0, reason, 0)]
    assert report.exit_code == ExitCode.FINDINGS
    assert find_hanging_transactions(stage.app, topic, max_transaction_timeout_ms=2 * HOUR_MS).rows == []


def test_an_owner_that_may_not_be_seen_looks_like_none_and_that_is_said(stage: Stage) -> None:
    """Brokers leave ids out of listings without DESCRIBE: a running transaction was called hanging, without a word."""
    stage.hang(stage.cluster.state.transactions["g-c-1"].producer_id)
    stage.cluster.deny_describe.add("g-c-1")
    report = find_hanging_transactions(stage.app, "t")
    assert [row["reason"] for row in report.rows] == ["no_transactional_id"]
    assert [(problem.code, problem.severity) for problem in report.problems] == [("ids_may_be_hidden", "warning")]
    plan = plan_abort(stage.app, AbortRequest("t", 0, start_offset=0))
    assert [problem.code for problem in plan.report(stage.app).problems] == ["ids_may_be_hidden"]


@pytest.fixture
def hanging(stage: Stage) -> Stage:
    """The transaction of g-c-1, its id forgotten."""
    stage.cluster.state.transactions.pop("g-c-1")
    return stage


def only_producer(stage: Stage) -> int:
    return next(iter(stage.cluster.state.log("t", 0).producers))


def test_aborting_a_hanging_transaction_moves_the_lso(hanging: Stage) -> None:
    plan = plan_abort(hanging.app, AbortRequest("t", 0, start_offset=0))
    (planned,) = plan.report(hanging.app).rows
    assert (planned["reason"], planned["lso_before"]) == ("no_transactional_id", 0)
    report = apply_abort(hanging.app, plan)
    assert report.exit_code == ExitCode.OK
    assert (report.rows[0]["outcome"], report.rows[0]["lso_before"], report.rows[0]["lso_after"]) == ("aborted", 0, 2)


def test_aborting_by_producer(hanging: Stage) -> None:
    request = AbortRequest("t", 0, producer_id=only_producer(hanging), producer_epoch=8, coordinator_epoch=0)
    assert apply_abort(hanging.app, plan_abort(hanging.app, request)).rows[0]["outcome"] == "aborted"


def test_a_transaction_its_coordinator_knows_is_refused_unless_forced(stage: Stage) -> None:
    with pytest.raises(RefusedError, match="g-c-1 has it open") as caught:
        plan_abort(stage.app, AbortRequest("t", 0, start_offset=0))
    assert "eosctl fence g-c-1" in str(caught.value.hint)
    plan = plan_abort(stage.app, AbortRequest("t", 0, start_offset=0, force=True))
    assert [problem.code for problem in plan.report(stage.app).problems] == ["not_hanging"]


def test_a_newer_coordinator_epoch_on_the_partition_fails_the_marker(hanging: Stage) -> None:
    hanging.cluster.state.log("t", 0).producers[only_producer(hanging)].coordinator_epoch = 3
    request = AbortRequest("t", 0, producer_id=only_producer(hanging), producer_epoch=8, coordinator_epoch=1)
    report = apply_abort(hanging.app, plan_abort(hanging.app, request))
    assert (report.rows[0]["outcome"], report.exit_code) == ("failed", ExitCode.FAILED)
    assert "newer coordinator epoch" in str(report.problems[0].hint)
    assert report.rows[0]["lso_after"] == 0


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
    plan = plan_abort(hanging.app, AbortRequest("t", 0, **named))
    assert plan.report(hanging.app).rows[0]["coordinator_epoch"] == sent
    assert apply_abort(hanging.app, plan).rows[0]["outcome"] == "aborted"
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
        (_still_open, "unconfirmed", ExitCode.FAILED, ["unconfirmed"]),
        (_silent, "unconfirmed", ExitCode.FAILED, ["unconfirmed"]),
        (_next_one_open, "aborted", ExitCode.OK, []),
    ],
)
def test_that_it_is_aborted_is_read_back_and_not_believed(
    hanging: Stage, then: Callable[[Stage], None], outcome: str, exit_code: ExitCode, problems: list[str]
) -> None:
    """An abort that nothing confirms ended with exit code 1 and without a word."""
    plan = plan_abort(hanging.app, AbortRequest("t", 0, start_offset=0))

    def once_marked(seen: Seen, answer: bytes) -> bytes:
        if seen.api == "WriteTxnMarkers":
            then(hanging)
        return answer

    hanging.cluster.tamper = once_marked
    report = apply_abort(hanging.app, plan)
    assert (report.rows[0]["outcome"], report.exit_code) == (outcome, exit_code)
    assert [problem.code for problem in report.problems] == problems


def test_what_was_aborted_is_told_although_the_offsets_cannot_be_read_any_more(hanging: Stage) -> None:
    """The marker was written, and the command, and with it the audit log, told of a failure only."""

    def no_broker(_app: App) -> TopicStore:
        raise UnreachableError("no broker answers")

    plan = plan_abort(hanging.app, AbortRequest("t", 0, start_offset=0))
    report = apply_abort(replace(hanging.app, open_topics=no_broker), plan)
    (row,) = report.rows
    assert faults_of(json.loads(json.dumps(report.envelope()))) == []
    assert (row["outcome"], row["lso_after"], report.exit_code) == ("aborted", None, ExitCode.OK)
    assert [(problem.code, problem.severity) for problem in report.problems] == [("unreachable", "warning")]


@pytest.mark.parametrize(
    "now", [{"start_offset": -1}, {"start_offset": 40}, {"producer_epoch": 9}], ids=["ended", "another one", "newer"]
)
def test_a_transaction_that_ended_meanwhile_makes_the_plan_stale(hanging: Stage, now: dict[str, int]) -> None:
    plan = plan_abort(hanging.app, AbortRequest("t", 0, start_offset=0))
    for member, value in now.items():
        setattr(hanging.cluster.state.log("t", 0).producers[only_producer(hanging)], member, value)
    with pytest.raises(StalePlanError, match="the transaction has ended, or its producer has gone on"):
        apply_abort(hanging.app, plan)
    assert hanging.cluster.count("WriteTxnMarkers") == 0


def test_a_plan_for_another_cluster_is_stale(hanging: Stage) -> None:
    plan = plan_abort(hanging.app, AbortRequest("t", 0, start_offset=0))
    hanging.cluster.state.cluster_id = "another"
    with pytest.raises(StalePlanError, match="the plan was made for cluster fake-cluster-id"):
        apply_abort(hanging.app, plan)
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
        plan_abort(stage.app, AbortRequest("t", 0, **more))


def test_an_abort_of_nothing_is_not_found(hanging: Stage) -> None:
    """Neither where nothing begins, nor of an older epoch, nor of a producer that has none open."""
    producer_id = only_producer(hanging)
    named = [{"start_offset": 7}, {"producer_id": producer_id, "producer_epoch": 7, "coordinator_epoch": 0}]
    for each in named:
        with pytest.raises(NotFoundError, match="no such open transaction"):
            plan_abort(hanging.app, AbortRequest("t", 0, **each))
    hanging.cluster.state.log("t", 0).producers[producer_id].start_offset = -1
    with pytest.raises(NotFoundError, match="no such open transaction"):
        plan_abort(hanging.app, AbortRequest("t", 0, None, producer_id, 8, 0))


def log(stage: Stage, transactional_id: str, value: bytes | None) -> None:
    """What a coordinator writes into its partition 3."""
    name = transactional_id.encode()
    stage.topics.put(TOPIC, struct.pack(">hh", 0, len(name)) + name, value, partition=3)


def state_bytes(epoch: int, status: int = 0) -> bytes:
    return struct.pack(">hqhib", 0, 7, epoch, 30_000, status) + struct.pack(">iqq", -1, 1_700_000_000_000, -1)


def test_the_log_is_decoded_and_what_is_not_is_told(stage: Stage) -> None:
    log(stage, "g-c-0", state_bytes(1))
    log(stage, "g-c-1", state_bytes(2, status=5))
    log(stage, "g-c-0", state_bytes(3))
    log(stage, "gone", None)
    log(stage, "bad", b"\0\x09")
    report = read_transaction_log(stage.app, LogRequest())
    rows = [(row["transactional_id"], row["producer_epoch"], row["state"]) for row in report.rows]
    assert rows == [("g-c-1", 2, "CompleteAbort"), ("g-c-0", 3, "Empty"), ("gone", None, None)]
    assert report.rows[1]["last_update_ms"] == 1_700_000_000_000
    assert report.exit_code == ExitCode.PARTIAL
    assert report.problems[0].message.startswith("__transaction_state-3@4: ")
    everything = read_transaction_log(stage.app, LogRequest(all_records=True))
    assert [row["offset"] for row in everything.rows] == [0, 1, 2, 3]
    assert ids(read_transaction_log(stage.app, LogRequest(("g-c-1",)))) == ["g-c-1"]
    assert ids(read_transaction_log(stage.app, LogRequest(prefix="g-"))) == ["g-c-1", "g-c-0"]
