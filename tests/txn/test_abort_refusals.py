"""What `txn abort` leaves alone: each danger has a code in the rows, exit code 6, and a flag that waives only that."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eosctl.core.allowances import Waiver
from eosctl.core.ids import TransactionalId
from eosctl.core.transaction_log import TOPIC, coordinator_partition
from eosctl.errors import ExitCode, StalePlanError, UnauthorizedError
from eosctl.report import Report
from eosctl.txn.apply import apply_end, prepare_abort_hanging, prepare_end
from eosctl.txn.plan import EndRequest, HangingRequest, plan_end
from tests.fakes.txn_stage import Stage

DAY_MS = 86_400_000
DENIED = UnauthorizedError("not allowed to read __transaction_state")


@pytest.fixture
def old(stage: Stage) -> Stage:
    """The live transaction of g-c-1 wrote last an hour ago."""
    age(stage, 3_600_000)
    return stage


def age(stage: Stage, age_ms: int) -> None:
    for partition in (0, 1):
        for producer in stage.cluster.state.log("t", partition).producers:
            stage.hang(producer, "t", partition, age_ms=age_ms)


def single(stage: Stage, *waived: Waiver) -> Report:
    return _ended(stage, EndRequest("t", 0, start_offset=0, waived=frozenset(waived)))


def hanging(stage: Stage, *waived: Waiver) -> Report:
    return _ended(stage, HangingRequest("t", waived=frozenset(waived)))


def _ended(stage: Stage, request: EndRequest | HangingRequest) -> Report:
    """The result where something may be aborted, else the plan."""
    if isinstance(request, EndRequest):
        plan = prepare_end(stage.app, request)
    else:
        plan = prepare_abort_hanging(stage.app, request)
    return plan.report() if plan.apply is None else plan.apply()


def refused(report: Report) -> list[list[str]]:
    return [row.refused for row in report.rows]


@pytest.mark.parametrize("abort", [single, hanging])
def test_a_live_transaction_whose_id_may_be_hidden(old: Stage, abort: Callable[..., Report]) -> None:
    """DESCRIBE on all ids but this one: its live transaction was aborted, which its producer then committed torn."""
    old.cluster.deny_describe.add("g-c-1")
    old.topics.fail_next("read", DENIED)
    report = abort(old)
    assert (refused(report), report.exit_code) == ([["id_may_be_hidden"]] * 2, ExitCode.REFUSED)
    assert old.cluster.count("WriteTxnMarkers") == 0
    old.topics.fail_next("read", DENIED)
    assert [row.outcome for row in abort(old, Waiver.HIDDEN_ID).rows] == ["aborted", "aborted"]


@pytest.mark.parametrize("abort", [single, hanging])
def test_a_live_transaction_whose_id_only_the_log_shows(old: Stage, abort: Callable[..., Report]) -> None:
    old.cluster.deny_describe.add("g-c-1")
    report = abort(old)
    assert (refused(report), report.exit_code) == ([["coordinator_has_it"]] * 2, ExitCode.REFUSED)
    assert {row.transactional_id for row in report.rows} == {"g-c-1"}
    assert old.cluster.count("WriteTxnMarkers") == 0


def test_a_fence_is_not_advised_where_the_end_is_decided(stage: Stage) -> None:
    """It is answered CONCURRENT_TRANSACTIONS until the coordinator has written the end."""
    known = stage.cluster.state.transactions["g-c-1"]
    assert "eosctl fence" in str(single(stage).problems[0].hint)
    known.state, known.looks_left = "PrepareAbort", 10**9
    ending = single(stage)
    assert (refused(ending), ending.exit_code) == ([["coordinator_has_it"]] * 2, ExitCode.REFUSED)
    assert "eosctl fence" not in str(ending.problems[0].hint)


@pytest.mark.parametrize("seen", [True, False], ids=["its topic is seen", "its topic is not seen"])
def test_a_live_transaction_whose_coordinator_is_away(old: Stage, seen: bool) -> None:
    """A partition without a leader is silently missing from a listing where one may not DESCRIBE the topic."""
    old.timeout_s = 6.0  # half of it is waited; the rest has to do on a busy machine
    partition = coordinator_partition(TransactionalId("g-c-1"), 50)
    old.cluster.state.leaderless.add((TOPIC, partition))
    if not seen:
        old.cluster.deny_topics.add(TOPIC)
    report = single(old)
    assert (refused(report), report.exit_code) == ([["coordinator_unread"]] * 2, ExitCode.REFUSED)
    every = hanging(old)
    assert (every.rows, every.exit_code) == ([], ExitCode.PARTIAL)
    assert old.cluster.count("WriteTxnMarkers") == 0
    assert single(old, Waiver.HIDDEN_ID).exit_code is ExitCode.REFUSED
    assert [row.outcome for row in single(old, Waiver.UNREAD_COORDINATOR).rows] == ["aborted", "aborted"]


@pytest.mark.parametrize("abort", [single, hanging])
@pytest.mark.parametrize("log_read", [True, False])
def test_a_part_of_a_committed_transaction(stage: Stage, abort: Callable[..., Report], log_read: bool) -> None:
    """It was committed on t-1 and its marker on t-0 was lost: the abort lost what the coordinator had promised."""
    stage.cluster.state.lose_markers("g-c-1", written=[("t", 1)])
    if not log_read:
        stage.topics.fail_next("read", DENIED)
    report = abort(stage)
    assert (refused(report), report.exit_code) == ([["commit_decided"]], ExitCode.REFUSED)
    assert [(row.decided, row.decided_by) for row in report.rows] == [("commit", "log" if log_read else "coordinator")]
    assert "txn complete" in str(report.problems[0].hint)
    assert stage.cluster.count("WriteTxnMarkers") == 0
    assert single(stage, Waiver.FORCE, Waiver.HIDDEN_ID, Waiver.UNSEEN_PARTS).exit_code is ExitCode.REFUSED
    assert [row.outcome for row in abort(stage, Waiver.LOSE_COMMITTED).rows] == ["aborted"]


@pytest.mark.parametrize("abort", [single, hanging])
def test_what_may_have_been_committed_is_said_where_it_can_t_be_known(
    stage: Stage, abort: Callable[..., Report]
) -> None:
    """The producer has gone on since, and the log can't be read."""
    stage.cluster.state.lose_markers("g-c-1")
    stage.cluster.state.transactions["g-c-1"].producer_epoch += 4
    stage.topics.fail_next("read", DENIED)
    report = abort(stage)
    assert [row.outcome for row in report.rows] == ["aborted", "aborted"]
    assert [problem.code for problem in report.problems] == ["decision_unknown"]


def test_record_times_of_the_future_hide_no_hanging_transaction(stage: Stage) -> None:
    """A source that gives times of tomorrow made transactions that were never found, of any age."""
    stage.cluster.state.forget("g-c-1")
    age(stage, -DAY_MS)
    assert [row.outcome for row in hanging(stage).rows] == ["aborted", "aborted"]


def test_parts_that_can_t_be_seen(stage: Stage) -> None:
    """The other part may be what a coordinator has committed."""
    state = stage.cluster.state
    state.open_transaction("two", ("t", 0), ("u", 0))
    state.forget("two")
    stage.cluster.deny_read.add("u")
    request = EndRequest("t", 0, start_offset=1)
    report = _ended(stage, request)
    assert (refused(report), report.exit_code) == ([["parts_unseen"]], ExitCode.REFUSED)
    for waiver in (Waiver.UNSEEN_PARTS, Waiver.ONLY_THIS_PARTITION):
        plan = prepare_end(stage.app, EndRequest("t", 0, start_offset=1, waived=frozenset({waiver})))
        assert plan.apply is not None
    assert [problem.code for problem in plan.report().problems] == ["part_ended_alone"]


def test_topics_that_may_be_hidden(stage: Stage) -> None:
    """Brokers list no topic that one may not DESCRIBE, and do not say so."""
    stage.cluster.state.forget("g-c-1")
    stage.cluster.deny_topics.add("eosctl-nobody-has-this-topic")
    assert refused(single(stage)) == [["parts_unseen"]] * 2


def test_what_the_log_names_whole_needs_no_other_topic(stage: Stage) -> None:
    """An abort that was decided: its partitions are in the record, so that nothing else is to be seen."""
    stage.cluster.state.lose_markers("g-c-1", commit=False)
    stage.cluster.deny_topics.add("eosctl-nobody-has-this-topic")
    report = single(stage)
    assert [(row.outcome, row.decided) for row in report.rows] == [("aborted", "abort")] * 2
    assert report.exit_code is ExitCode.OK


def test_a_part_that_is_committed_meanwhile_makes_all_of_it_stale(stage: Stage) -> None:
    """Nothing refused the plan; then a coordinator's marker arrived on one partition."""
    stage.cluster.state.forget("g-c-1")
    plan = plan_end(stage.app, EndRequest("t", 0, start_offset=0))
    (producer_id,) = stage.cluster.state.log("t", 1).producers
    stage.cluster.state.log("t", 1).mark((producer_id, 8), commit=True)
    with pytest.raises(StalePlanError):
        apply_end(stage.app, plan)
    assert stage.cluster.count("WriteTxnMarkers") == 0
