"""What commands about transactions say where a broker is gone: the others' rows, what is missing, and exit code 7."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.ids import TransactionalId
from eosctl.core.transaction_log import TOPIC, coordinator_partition
from eosctl.errors import ExitCode, UnreachableError
from eosctl.fence.gather import FenceRequest
from eosctl.fence.plan import apply_fence, plan_fence
from eosctl.report import Report
from eosctl.txn.apply import apply_end
from eosctl.txn.list import ListFilter, describe_transactions, find_coordinators, list_transactions
from eosctl.txn.log import LogRequest, read_transaction_log
from eosctl.txn.open_transactions import find_open_transactions
from eosctl.txn.partitions import find_hanging_transactions, list_producers
from eosctl.txn.plan import EndRequest, plan_end
from eosctl.wire.error_codes import INVALID_PRODUCER_EPOCH, NETWORK_EXCEPTION, NONE, REQUEST_TIMED_OUT
from tests.fakes.broker import Seen
from tests.fakes.world import World
from tests.reports import text_of
from tests.schema_check import faults_of

PARTITIONS = 6
SEEN, LOST = TransactionalId("g-c-0"), TransactionalId("g-c-1")
HIDDEN = coordinator_partition(LOST, PARTITIONS)
HOUR_S = 3600.0


@pytest.fixture
def world() -> World:
    """Ids g-c-0 and g-c-1, each with a transaction of an hour ago, on t-0 and on t-1."""
    assert coordinator_partition(SEEN, PARTITIONS) != HIDDEN
    built = World()
    state = built.brokers.state
    state.add_topic(TOPIC, PARTITIONS)
    state.open_transaction(SEEN, ("t", 0), epoch=1)
    state.open_transaction(LOST, ("t", 1), epoch=1)
    built.time.sleep(HOUR_S)
    return built


def lose_coordinator(world: World) -> None:
    """The partition of __transaction_state that has g-c-1 goes offline."""
    world.brokers.state.leaderless.add((TOPIC, HIDDEN))


def said(report: Report) -> list[str]:
    """The messages of what was not checked; the report is one that its schema allows."""
    assert faults_of(json.loads(json.dumps(report.envelope()))) == []
    return [problem.message for problem in report.problems if problem.code == "not_checked"]


def ids(report: Report) -> list[object]:
    return [row.transactional_id for row in report.rows]


LEADERLESS = f"partition {HIDDEN} of {TOPIC} has no leader"


@pytest.mark.parametrize(
    "look",
    [
        lambda app: list_transactions(app, ListFilter()),
        lambda app: list_transactions(app, ListFilter(pattern="g-.*", client_side=True)),
        lambda app: plan_fence(app, FenceRequest(prefix="g-c-")).report(app),
        lambda app: plan_fence(app, FenceRequest(pattern="g-.*")).report(app),
        lambda app: apply_fence(app, plan_fence(app, FenceRequest(prefix="g-c-"))),
    ],
    ids=["list", "list here", "prefix", "match", "fenced"],
)
def test_ids_are_found_beside_those_of_an_offline_partition(world: World, look: Callable[[App], Report]) -> None:
    """One partition without a leader made all of them wait to the deadline, and fail."""
    assert len(look(world.app()).rows) == 2
    lose_coordinator(world)
    report = look(world.app())
    assert (ids(report), report.exit_code) == ([SEEN], ExitCode.PARTIAL)
    assert said(report) == [f"some transactional ids are not known: LEADER_NOT_AVAILABLE: {LEADERLESS}"]


def test_nothing_listed_is_partial_too_where_something_may_be_missing(world: World) -> None:
    lose_coordinator(world)
    report = plan_fence(world.app(), FenceRequest(prefix="nosuch")).report(world.app())
    assert (len(report.rows), report.exit_code) == (0, ExitCode.PARTIAL)


@pytest.mark.parametrize(("look", "rows"), [(describe_transactions, [LOST, SEEN]), (find_coordinators, [SEEN])])
def test_ids_that_were_named_are_rows_or_problems(
    world: World, look: Callable[[App, list[str]], Report], rows: list[str]
) -> None:
    """`txn describe` had a problem and no row for an id whose coordinator is not there."""
    lose_coordinator(world)
    report = look(world.app(), [LOST, SEEN])
    assert (ids(report), report.exit_code) == (rows, ExitCode.PARTIAL)
    if look is describe_transactions:
        assert [row.state for row in report.rows] == ["not_checked", "Ongoing"]
        alone = look(world.app(), [LOST])
        assert (ids(alone), alone.exit_code) == ([LOST], ExitCode.UNREACHABLE)
    assert any(f"{LOST}: COORDINATOR_NOT_AVAILABLE" in problem.message for problem in report.problems)


def test_a_partition_without_a_leader_is_a_row_that_was_not_checked(world: World) -> None:
    """`txn hanging` waited to the deadline for one partition, and told nothing of the others."""
    state = world.brokers.state
    del state.transactions[SEEN]
    state.leaderless.add(("t", 1))
    report = find_hanging_transactions(world.app(), "t")
    assert [(row.partition, row.reason) for row in report.rows] == [
        (0, "no_transactional_id"),
        (1, "not_checked"),
    ]
    assert (report.summary.hanging, report.exit_code) == (1, ExitCode.FINDINGS)
    assert said(report) == [
        "could not ask for the producers of t-1: LEADER_NOT_AVAILABLE: t-1 has no leader",
    ]


def test_a_live_transaction_of_an_offline_coordinator_is_not_called_hanging(world: World) -> None:
    """Its id is in no listing, as that of a transaction that everybody has forgotten."""
    lose_coordinator(world)
    report = find_hanging_transactions(world.app(), "t")
    assert [(row.topic, row.partition, row.reason) for row in report.rows] == [("t", 1, "not_checked")]
    assert (report.summary.hanging, report.exit_code) == (0, ExitCode.PARTIAL)
    assert said(report) == [f"some transactional ids are not known: LEADER_NOT_AVAILABLE: {LEADERLESS}"]


def test_producers_of_the_other_partitions_are_told(world: World) -> None:
    world.brokers.state.leaderless.add(("t", 1))
    report = list_producers(world.app(), "t", None)
    assert [(row.partition, row.transactional_id, row.reason or None) for row in report.rows] == [
        (0, SEEN, None),
        (1, None, "not_checked"),
    ]
    assert (report.summary.producers, report.exit_code) == (1, ExitCode.PARTIAL)
    assert len(said(report)) == 1
    world.brokers.state.leaderless.add(("t", 0))
    report = list_producers(world.app(), "t", None)
    assert [row.reason for row in report.rows] == ["not_checked"] * 2
    assert report.exit_code is ExitCode.UNREACHABLE
    assert said(report) == ["could not ask for the producers of t-0, t-1: LEADER_NOT_AVAILABLE"]


def test_producers_are_told_although_their_ids_can_not_be_listed(world: World) -> None:
    lose_coordinator(world)
    report = list_producers(world.app(), "t", None)
    assert (ids(report), report.exit_code) == ([SEEN, None], ExitCode.PARTIAL)
    world.brokers.state.leaderless |= {(TOPIC, number) for number in range(PARTITIONS)}
    report = list_producers(world.app(), "t", None)
    assert (ids(report), report.exit_code) == ([None, None], ExitCode.PARTIAL)


def test_the_log_of_the_other_partitions_is_read(world: World) -> None:
    """`txn log` is for when a coordinator does not answer; it waited to the deadline for its partition, and failed."""
    for partition in (0, 1):
        name = f"id-{partition}".encode()
        key = b"\0\0" + len(name).to_bytes(2, "big") + name
        world.topics.put(TOPIC, key, None, partition=partition)
    world.brokers.state.leaderless |= {(TOPIC, 1), (TOPIC, 3)}
    report = read_transaction_log(world.app(), LogRequest())
    assert [(row.partition, row.transactional_id, row.state) for row in report.rows] == [
        (0, "id-0", None),
        (1, None, "not_checked"),
        (3, None, "not_checked"),
    ]
    assert (report.summary.rows, report.exit_code) == (1, ExitCode.PARTIAL)
    assert said(report) == [f"partitions 1, 3 of {TOPIC} could not be read: partition 1 of topic {TOPIC} has no leader"]
    world.brokers.state.leaderless |= {(TOPIC, number) for number in range(PARTITIONS)}
    with pytest.raises(UnreachableError):
        read_transaction_log(world.app(), LogRequest())


def abort(**more: Any) -> EndRequest:
    return EndRequest("t", 1, start_offset=0, **more)


def test_what_an_offline_coordinator_may_have_open_is_not_aborted_unless_that_is_waived(world: World) -> None:
    """Live transactions of an offline partition look like none: the marker was written under a running producer."""
    lose_coordinator(world)
    refused = plan_end(world.app(), abort()).report(world.app())
    assert ([row.refused for row in refused.rows], refused.exit_code) == ([["coordinator_unread"]], ExitCode.REFUSED)
    assert LEADERLESS in refused.problems[0].message
    plan = plan_end(world.app(), abort(waived=frozenset({Waiver.UNREAD_COORDINATOR})))
    shown = plan.report(world.app())
    assert [(each.code, each.severity) for each in shown.problems] == [("coordinator_unread", "warning")]
    assert apply_end(world.app(), plan).rows[0].outcome == "aborted"


def test_a_partition_without_a_leader_may_have_more_of_the_transaction(world: World) -> None:
    """One part was aborted, whatever the other one was."""
    state = world.brokers.state
    del state.transactions[LOST]
    state.leaderless.add(("t", 0))
    refused = plan_end(world.app(), abort()).report(world.app())
    assert ([row.refused for row in refused.rows], refused.exit_code) == ([["parts_unseen"]], ExitCode.REFUSED)
    for waiver in (Waiver.UNSEEN_PARTS, Waiver.ONLY_THIS_PARTITION):
        plan = plan_end(world.app(), abort(waived=frozenset({waiver})))
        assert plan.report(world.app()).exit_code is ExitCode.OK
    report = apply_end(world.app(), plan)
    assert (report.rows[0].outcome, report.exit_code) == ("aborted", ExitCode.OK)


def after_the_marker(world: World, then: Callable[[], None]) -> None:
    """What happens to the brokers once the marker is written."""

    def answered(seen: Seen, frame: bytes) -> bytes:
        if seen.api == "WriteTxnMarkers":
            then()
        return frame

    world.brokers.tamper = answered


def test_a_marker_that_nobody_confirms_any_more_is_written_all_the_same(world: World) -> None:
    """The leader went away before the read-back: exit code 4, and a row that said `failed`."""
    del world.brokers.state.transactions[LOST]
    app = world.app()
    plan = plan_end(app, abort())
    leader = world.brokers.state.leader(1)
    after_the_marker(world, lambda: world.brokers.stop_broker(leader, noticed=False))
    report = apply_end(app, plan)
    (row,) = report.rows
    assert (row.outcome, row.error, report.exit_code) == ("aborted_not_confirmed", None, ExitCode.PARTIAL)
    assert report.problems[0].message == "the marker was written, and nothing confirms that t-1 has it"
    assert "aborted, not confirmed" in text_of(report)
    assert app.deadline.remaining_s() >= 50, "the read-back has a few seconds of its own"


@pytest.mark.parametrize("done", [True, False])
def test_a_marker_whose_answer_is_lost_is_read_back(world: World, done: bool) -> None:
    """It was called failed, whether it was written or not."""
    del world.brokers.state.transactions[LOST]
    app = world.app()
    plan = plan_end(app, abort())
    if done:
        world.brokers.lose_answers("WriteTxnMarkers", 10**6)
    else:
        world.brokers.fail_next("WriteTxnMarkers", REQUEST_TIMED_OUT)
    report = apply_end(app, plan)
    (row,) = report.rows
    expected = ("aborted", ExitCode.OK) if done else ("unconfirmed", ExitCode.UNREACHABLE)
    assert (row.outcome, report.exit_code) == expected
    assert [problem.code for problem in report.problems] == ([] if done else ["unconfirmed"])
    assert world.brokers.count("WriteTxnMarkers") > 1 or not done


@pytest.mark.parametrize("done", [True, False])
def test_a_marker_whose_answer_is_lost_and_that_is_then_refused_is_not_known(world: World, done: bool) -> None:
    """It was called failed, whether it was written or not. That it has ended may be another one's doing."""
    del world.brokers.state.transactions[LOST]
    app = world.app()
    plan = plan_end(app, abort())
    world.brokers.lose_answers("WriteTxnMarkers")
    world.brokers.fail_next("WriteTxnMarkers", NONE if done else NETWORK_EXCEPTION, INVALID_PRODUCER_EPOCH)
    report = apply_end(app, plan)
    (row,) = report.rows
    assert (row.outcome, report.exit_code) == ("unconfirmed", ExitCode.PARTIAL)
    assert [problem.code for problem in report.problems] == ["unconfirmed"]


def test_a_holder_whose_id_is_not_listed_is_not_said_to_have_none(world: World) -> None:
    """`offsets lint` advised `txn abort` for it."""
    lose_coordinator(world)
    (bound,) = [each for each in world.topics.bounds("t") if each.partition == 1]
    (found,), (problem,) = find_open_transactions(world.app(), [("t", bound)])
    assert (found.producer, found.transactional_id) == (None, None)
    assert (problem.code, problem.severity) == ("producers_unknown", "warning")
    assert LEADERLESS in problem.message
