"""txn against a cluster that speaks the protocol: listings, filters, hanging transactions and the log."""

from __future__ import annotations

import struct

import pytest
from msgspec.structs import replace

from eosctl.core.ids import Owner, ProducerId, TransactionalId
from eosctl.core.transaction_log import TOPIC
from eosctl.errors import ExitCode, NotFoundError, UnsupportedError, UsageError
from eosctl.output.rows import Place
from eosctl.report import Report
from eosctl.txn.list import ListFilter, describe_transactions, find_coordinators, list_transactions
from eosctl.txn.log import LogRequest, read_transaction_log
from eosctl.txn.partitions import find_hanging_transactions, list_producers
from eosctl.txn.plan import EndRequest, plan_end
from eosctl.txn.rows import HangingSummary, ListSummary, ProducersSummary
from tests.fakes.txn_stage import HOUR_MS, Stage


def ids(report: Report) -> list[str]:
    return [str(row.transactional_id) for row in report.rows]


def test_a_listing_is_sorted_and_attributed(stage: Stage) -> None:
    report = list_transactions(stage.app, ListFilter())
    assert ids(report) == ["connect-cluster-g", "g-c-0", "g-c-1", "zzz"]
    assert [row.owner.kind for row in report.rows] == ["leader", "task", "task", "other"]
    assert report.rows[2].state == "Ongoing"
    assert (report.rows[2].producer_epoch, report.rows[2].partitions) == (None, None)
    assert report.summary == ListSummary(ids=4, counts={"Empty": 2, "Ongoing": 1, "CompleteCommit": 1})


def test_a_state_of_a_newer_broker_is_listed_as_unknown(stage: Stage) -> None:
    stage.cluster.state.transactions["zzz"].state = "PrepareSomethingNew"
    for report in (
        list_transactions(stage.app, ListFilter()),
        describe_transactions(stage.app, [TransactionalId("zzz")]),
    ):
        assert [row.state for row in report.rows if row.transactional_id == "zzz"] == ["Unknown"]


@pytest.mark.parametrize("client_side", [False, True], ids=["brokers", "here"])
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ListFilter(states=("Ongoing", "Empty")), ["g-c-0", "g-c-1", "zzz"]),
        (ListFilter(producer_ids=(ProducerId(5), ProducerId(6))), ["connect-cluster-g", "zzz"]),
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
    report = describe_transactions(stage.app, [TransactionalId("g-c-1"), TransactionalId("g-c-1")])
    (row,) = report.rows
    assert row.partitions == [Place(topic="t", partition=0), Place(topic="t", partition=1)]
    assert (row.producer_epoch, row.transaction_timeout_ms) == (8, 60_000)
    assert row.owner == Owner(kind="task", connector="c", task=1, application=None)
    assert isinstance(row.age_ms, int)


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
    stage: Stage, asked: list[TransactionalId], denied: set[str], exit_code: ExitCode
) -> None:
    stage.cluster.deny_describe.update(denied)
    report = describe_transactions(stage.app, asked)
    assert report.exit_code == exit_code
    told = [row for row in report.rows if row.state != "not_checked"]
    assert len(told) + len(report.problems) == len(asked)
    assert {str(row.transactional_id) for row in report.rows if row not in told} == denied
    if denied:
        assert "--operation Describe --transactional-id g-c-0" in str(report.problems[0].hint)


def test_coordinators_with_hash_and_partition(stage: Stage) -> None:
    report = find_coordinators(
        stage.app, [TransactionalId("connect-cluster-foo"), TransactionalId("polygenelubricants")]
    )
    assert [(row.hash, row.partition) for row in report.rows] == [(1336017424, 24), (-(2**31), 0)]
    assert {row.host for row in report.rows} <= {"broker-1", "broker-2"}
    assert report.summary.partitions == 50


def test_producers_of_a_topic_are_named(stage: Stage) -> None:
    report = list_producers(stage.app, "t", None)
    assert [(row.partition, row.transactional_id, row.start_offset) for row in report.rows] == [
        (0, "g-c-1", 0),
        (1, "g-c-1", 0),
    ]
    assert report.summary == ProducersSummary(producers=2, open=2)
    assert len(list_producers(stage.app, "t", 1).rows) == 1
    for topic, partition in (("nosuch", None), ("t", 2)):
        with pytest.raises(NotFoundError):
            list_producers(stage.app, topic, partition)


def test_long_is_not_hanging(stage: Stage) -> None:
    stage.hang(stage.cluster.state.transactions["g-c-1"].producer_id)
    report = find_hanging_transactions(stage.app, None)
    assert (report.rows, report.exit_code) == ([], ExitCode.OK)
    assert report.summary == HangingSummary(partitions=52, open_too_long=1, hanging=0)


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
    assert [(row.partition, row.reason, row.start_offset) for row in report.rows] == [(0, reason, 0)]
    assert report.exit_code == ExitCode.FINDINGS
    assert find_hanging_transactions(stage.app, topic, max_transaction_timeout_ms=2 * HOUR_MS).rows == []


def test_an_owner_that_may_not_be_seen_looks_like_none_and_that_is_said(stage: Stage) -> None:
    """Brokers leave ids out of listings without DESCRIBE: a running transaction was called hanging, without a word."""
    stage.hang(stage.cluster.state.transactions["g-c-1"].producer_id)
    stage.cluster.deny_describe.add("g-c-1")
    report = find_hanging_transactions(stage.app, "t")
    assert [row.reason for row in report.rows] == ["no_transactional_id"]
    assert [(problem.code, problem.severity) for problem in report.problems] == [("ids_may_be_hidden", "warning")]
    shown = plan_end(stage.app, EndRequest("t", 0, start_offset=0)).report(stage.app)
    assert ([problem.code for problem in shown.problems], shown.exit_code) == (["coordinator_has_it"], ExitCode.REFUSED)


def log(stage: Stage, transactional_id: str, value: bytes | None) -> None:
    """What a coordinator writes into its partition 3."""
    name = transactional_id.encode()
    stage.topics.put(TOPIC, struct.pack(">hh", 0, len(name)) + name, value, partition=3)


def state_bytes(epoch: int, status: int = 0) -> bytes:
    return struct.pack(">hqhib", 0, 7, epoch, 30_000, status) + struct.pack(">iqq", -1, 1_700_000_000_000, -1)


@pytest.fixture
def empty_log(stage: Stage) -> Stage:
    stage.cluster.state.add_topic(TOPIC, 50)
    return stage


def test_the_log_is_decoded_and_what_is_not_is_told(empty_log: Stage) -> None:
    stage = empty_log
    log(stage, "g-c-0", state_bytes(1))
    log(stage, "g-c-1", state_bytes(2, status=5))
    log(stage, "g-c-0", state_bytes(3))
    log(stage, "gone", None)
    log(stage, "bad", b"\0\x09")
    report = read_transaction_log(stage.app, LogRequest())
    rows = [(row.transactional_id, row.producer_epoch, row.state) for row in report.rows]
    assert rows == [("g-c-1", 2, "CompleteAbort"), ("g-c-0", 3, "Empty"), ("gone", None, None)]
    assert report.rows[1].last_update_ms == 1_700_000_000_000
    assert report.exit_code == ExitCode.PARTIAL
    assert report.problems[0].message.startswith("__transaction_state-3@4: ")
    everything = read_transaction_log(stage.app, LogRequest(all_records=True))
    assert [row.offset for row in everything.rows] == [0, 1, 2, 3]
    assert ids(read_transaction_log(stage.app, LogRequest((TransactionalId("g-c-1"),)))) == ["g-c-1"]
    assert ids(read_transaction_log(stage.app, LogRequest(prefix="g-"))) == ["g-c-1", "g-c-0"]


def test_a_log_of_which_nothing_can_be_decoded_is_a_failure(empty_log: Stage) -> None:
    stage = empty_log
    log(stage, "bad", b"\0\x09")
    report = read_transaction_log(stage.app, LogRequest())
    assert (report.rows, report.exit_code, len(report.problems)) == ([], ExitCode.FAILED, 1)
