"""What `fence` did: each id fenced, failed or unconfirmed, and never what the plan did not say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.transactions import FenceAnswer
from eosctl.deadline import Event
from eosctl.errors import ExitCode, RefusedError, StalePlanError, UnreachableError
from eosctl.fence.gather import FenceRequest
from eosctl.fence.plan import apply_fence, plan_fence
from eosctl.ports import TransactionAdmin
from eosctl.report import Report
from eosctl.wire import error_codes as codes_of_kafka
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import created
from tests.fakes.fence_stage import Stage, outcomes, row
from tests.reports import codes


def test_fencing_gives_what_java_gives(stage: Stage) -> None:
    """Empty e -> e+1; Ongoing e -> aborted, then e+2; an unknown id is skipped."""
    report = stage.fence("g-c-0", "g-c-1", "nosuch")
    assert outcomes(report) == {"g-c-0": "fenced", "g-c-1": "fenced", "nosuch": "skipped_unknown"}
    assert row(report, "g-c-0")["after"] == {"producer_id": 1, "producer_epoch": 5}
    assert row(report, "g-c-1")["after"]["producer_epoch"] == 10
    assert stage.brokers.state.log("t", 0).producers[row(report, "g-c-1")["after"]["producer_id"]].start_offset == -1
    assert stage.brokers.state.transactions["g-c-0"].timeout_ms == 30_000
    assert "nosuch" not in stage.brokers.state.transactions
    assert (report.exit_code, codes(report)) == (ExitCode.OK, [])
    assert stage.events[-1] == Event("fencing", done=2, total=2, unit="ids")


def test_unknown_ids_are_created_only_when_told_to(stage: Stage) -> None:
    assert row(stage.fence("nosuch", create_unknown=True), "nosuch")["after"]["producer_epoch"] == 0
    assert stage.events == [Event("fencing", done=1, total=1, unit="ids")]


def test_a_transaction_that_flink_opens_between_plan_and_apply_makes_the_plan_stale(stage: Stage) -> None:
    stage.brokers.state.transactions["job-0-7"] = FakeTransaction(21, 0)
    app = stage.app()
    plan = plan_fence(app, FenceRequest((TransactionalId("g-c-0"), TransactionalId("job-0-7"))))
    stage.brokers.state.open_transaction("job-0-7", ("t", 1), epoch=2)
    with pytest.raises(StalePlanError, match="job-0-7 has opened a transaction") as caught:
        apply_fence(app, plan)
    assert caught.value.hint
    assert stage.brokers.count("InitProducerId") == 0


def test_an_id_of_flink_that_cannot_be_seen_again_is_not_fenced(stage: Stage) -> None:
    """It counted as one without a transaction."""
    stage.brokers.state.transactions["job-0-7"] = FakeTransaction(21, 0)
    app = stage.app()
    plan = plan_fence(app, FenceRequest((TransactionalId("job-0-7"),)))
    stage.brokers.state.open_transaction("job-0-7", ("t", 1), epoch=2)
    stage.brokers.fail_next("DescribeTransactions", codes_of_kafka.UNKNOWN_SERVER_ERROR)
    with pytest.raises(RefusedError, match=r"job-0-7.*UNKNOWN_SERVER_ERROR") as caught:
        apply_fence(app, plan)
    assert "--discard-prepared" in str(caught.value.hint)
    assert stage.brokers.count("InitProducerId") == 0


def test_a_task_that_starts_between_plan_and_apply_makes_the_plan_stale(stage: Stage) -> None:
    app = stage.app()
    plan = plan_fence(app, FenceRequest((TransactionalId("g-c-0"),)))
    stage.runs(("c", 0))
    with pytest.raises(StalePlanError, match="task 0 of connector c") as caught:
        apply_fence(app, plan)
    assert "--live" in str(caught.value.hint)
    assert stage.brokers.count("InitProducerId") == 0


def test_live_sets_aside_a_task_that_starts_between_plan_and_apply(stage: Stage) -> None:
    app = stage.app()
    plan = plan_fence(app, FenceRequest((TransactionalId("g-c-0"),), live=True))
    stage.runs(("c", 0))
    assert outcomes(apply_fence(app, plan)) == {"g-c-0": "fenced"}


def test_the_coordinators_of_the_plan_are_asked_without_looking_for_them_again(stage: Stage) -> None:
    app = stage.app()
    plan = plan_fence(app, FenceRequest((TransactionalId("g-c-0"),), live=True, unknown_liveness=True))
    looked = stage.brokers.count("FindCoordinator")
    assert outcomes(apply_fence(app, plan)) == {"g-c-0": "fenced"}
    assert stage.brokers.count("FindCoordinator") == looked


def test_what_cannot_be_known_any_more_at_apply_is_refused_as_at_plan(stage: Stage) -> None:
    """FAILED at the plan, RUNNING and a REST interface that is silent at apply: the task used to be fenced."""
    stage.runs(("c", 0), state="FAILED")
    app = stage.app()
    plan = plan_fence(app, FenceRequest((TransactionalId("g-c-0"),)))
    stage.runs(("c", 0))
    stage.connect.fail_always("connectors", UnreachableError("w1 is silent"))
    with pytest.raises(RefusedError, match=r"cannot fence g-c-0: .*w1 is silent"):
        apply_fence(app, plan)
    assert stage.brokers.count("InitProducerId") == 0


@pytest.mark.parametrize(("flags", "refused"), [({"live": True}, True), ({"unknown_liveness": True}, False)])
def test_the_flag_for_what_cannot_be_known_holds_at_apply(stage: Stage, flags: Any, refused: bool) -> None:
    app = stage.app()
    plan = plan_fence(app, FenceRequest((TransactionalId("g-c-0"),), **flags))
    stage.brokers.fail_next("DescribeGroups", codes_of_kafka.GROUP_AUTHORIZATION_FAILED)
    if refused:
        with pytest.raises(RefusedError, match="the members of group g are unknown"):
            apply_fence(app, plan)
    else:
        assert outcomes(apply_fence(app, plan)) == {"g-c-0": "fenced"}


def test_an_epoch_that_moves_between_plan_and_apply_does_not(stage: Stage) -> None:
    """With KIP-890 every transaction raises the epoch: a zombie would make every plan stale."""
    app = stage.app()
    plan = plan_fence(app, FenceRequest((TransactionalId("g-c-0"),)))
    stage.brokers.state.transactions["g-c-0"].producer_epoch += 3
    assert outcomes(apply_fence(app, plan)) == {"g-c-0": "fenced"}


def test_another_cluster_or_another_record_makes_the_plan_stale(stage: Stage) -> None:
    stage.configs(created("c", 1, record=1))
    app = stage.app()
    plan = plan_fence(app, FenceRequest(connector="c"))
    waived = plan_fence(app, FenceRequest(connector="c", live=True, unknown_liveness=True))  # no group is asked for
    for each in (plan, waived):
        with pytest.raises(StalePlanError, match="this is another one"):
            apply_fence(app, replace(each, cluster_id="was-another"))
    stage.configs(created("c", 1, record=2))
    with pytest.raises(StalePlanError, match="was 1 in the plan and is 2 now") as caught:
        apply_fence(app, plan)
    assert caught.value.hint
    assert stage.brokers.count("InitProducerId") == 0


@pytest.mark.parametrize(
    ("denied", "exit_code"),
    [({"g-c-0"}, ExitCode.PARTIAL), ({"g-c-0", "g-c-1"}, ExitCode.UNAUTHORIZED)],
    ids=["one of two", "both"],
)
@pytest.mark.parametrize("operation", ["describe", "write"])
def test_a_missing_right_fails_its_ids_only(
    stage: Stage, operation: str, denied: set[str], exit_code: ExitCode
) -> None:
    getattr(stage.brokers, f"deny_{operation}").update(denied)
    report = stage.fence("g-c-0", "g-c-1")
    expected = {name: "failed" if name in denied else "fenced" for name in ("g-c-0", "g-c-1")}
    assert (outcomes(report), report.exit_code) == (expected, exit_code)
    assert row(report, "g-c-0")["error"]["code"] == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    (problem,) = report.problems
    assert problem.code == "not_authorized"
    assert f"Missing: {operation.upper()} on TransactionalId" in str(problem.hint)
    operations = "--operation Describe --operation Write" if operation == "describe" else "--operation Write"
    line = f"--allow-principal User:alice {operations} --transactional-id g-c-0"
    assert line in str(problem.hint)


def test_a_lost_answer_is_sent_again_and_the_result_is_true(stage: Stage) -> None:
    stage.brokers.lose_answers("InitProducerId")
    report = stage.fence("g-c-0")
    assert outcomes(report) == {"g-c-0": "fenced"}
    now = stage.brokers.state.transactions["g-c-0"]
    assert row(report, "g-c-0")["after"] == {"producer_id": now.producer_id, "producer_epoch": now.producer_epoch}


def test_at_the_deadline_the_coordinator_is_asked_what_it_has(stage: Stage) -> None:
    """An abort that does not end in time: unconfirmed, with the state that DescribeTransactions gives."""
    stage.brokers.state.late_markers = 10**6
    stage.timeout_s = 0.7
    report = stage.fence("g-c-0", "g-c-1")
    assert outcomes(report) == {"g-c-0": "fenced", "g-c-1": "unconfirmed"}
    assert "now PrepareAbort" in row(report, "g-c-1")["error"]["message"]
    assert report.exit_code == ExitCode.PARTIAL
    assert codes(report) == ["transaction_not_ended", "unconfirmed"]


@pytest.mark.parametrize(("leaderless", "cause"), [([("t", 0)], "t-0 has no leader"), ([], "can't be told")])
def test_why_an_id_does_not_move_is_said(stage: Stage, leaderless: list[tuple[str, int]], cause: str) -> None:
    """Its error was "; now PrepareAbort…", with nothing before it."""
    stage.brokers.state.late_markers = 10**6
    stage.brokers.state.supported["metadata.version"] = 27  # of 4.1
    stage.brokers.state.leaderless.update(leaderless)
    stage.timeout_s = 0.7
    report = stage.fence("g-c-1")
    assert row(report, "g-c-1")["error"]["message"].startswith("CONCURRENT_TRANSACTIONS; now PrepareAbort")
    [why] = [each for each in report.problems if each.code == "transaction_not_ended"]
    assert cause in why.message
    assert report.exit_code == ExitCode.UNREACHABLE


def route(*answers: FenceAnswer | BaseException) -> Callable[[App, Sequence[str]], Iterator[FenceAnswer]]:
    """A way of fencing that gives these answers, then breaks as told."""

    def give(_app: App, _ids: Sequence[str]) -> Iterator[FenceAnswer]:
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            yield answer

    return give


def unanswered_as(report: Report) -> tuple[str, int, str]:
    """Code, Kafka's code and message of the id that got no answer."""
    error = row(report, "g-d-0")["error"]
    return error["code"], error["kafka_code"], error["message"].partition(";")[0]


def test_ctrl_c_reports_what_was_done(stage: Stage) -> None:
    app = stage.app()
    plan = plan_fence(
        app, FenceRequest((TransactionalId("g-c-0"), TransactionalId("g-d-0"), TransactionalId("nosuch")))
    )
    asked = stage.brokers.count("DescribeTransactions")
    report = apply_fence(
        app, plan, route=route(FenceAnswer(TransactionalId("g-c-0"), None, ProducerId(1), 5), KeyboardInterrupt())
    )
    assert stage.brokers.count("DescribeTransactions") == asked, "whoever pressed Ctrl-C wants no more requests"
    assert outcomes(report) == {"g-c-0": "fenced", "g-d-0": "unconfirmed", "nosuch": "skipped_unknown"}
    assert report.exit_code == ExitCode.INTERRUPTED
    assert unanswered_as(report) == ("INTERRUPTED", -1, "interrupted before the answer came")
    assert "1 of 3 ids fenced, 1 without an answer" in report.problems[0].message
    assert report.problems[0].hint


def test_an_id_without_an_answer_is_not_called_fenced_nor_left_as_planned(stage: Stage) -> None:
    app = stage.app()
    plan = plan_fence(app, FenceRequest((TransactionalId("g-c-0"), TransactionalId("g-d-0"))))
    report = apply_fence(app, plan, route=route(FenceAnswer(TransactionalId("g-c-0"), None, ProducerId(1), 5)))
    assert outcomes(report) == {"g-c-0": "fenced", "g-d-0": "unconfirmed"}
    assert unanswered_as(report) == ("NO_ANSWER", -1, "no answer came for this id")
    assert report.exit_code == ExitCode.PARTIAL


def test_what_breaks_half_way_does_not_hide_what_was_done(stage: Stage) -> None:
    app = stage.app()
    plan = plan_fence(app, FenceRequest((TransactionalId("g-c-0"), TransactionalId("g-d-0"))))
    report = apply_fence(
        app,
        plan,
        route=route(
            FenceAnswer(TransactionalId("g-c-0"), None, ProducerId(1), 5), UnreachableError("all brokers gone")
        ),
    )
    assert outcomes(report) == {"g-c-0": "fenced", "g-d-0": "unconfirmed"}
    assert report.exit_code == ExitCode.PARTIAL
    assert report.problems[0].message == "all brokers gone"
    assert unanswered_as(report) == ("UNREACHABLE", -1, "all brokers gone")


def test_an_answer_read_back_is_marked_so(stage: Stage) -> None:
    """The answer was lost for good, but the coordinator shows our mark and a new epoch."""

    def lose(app: App, ids: Sequence[TransactionalId]) -> Iterator[FenceAnswer]:
        with app.transactions() as admin:
            for answer in admin.fence(ids, transaction_timeout_ms=30_000):
                yield FenceAnswer(answer.transactional_id, None, confirmed=False)

    app = stage.app()
    report = apply_fence(app, plan_fence(app, FenceRequest((TransactionalId("g-c-0"),))), route=lose)
    assert (row(report, "g-c-0")["outcome"], row(report, "g-c-0")["confirmed_by"]) == ("fenced", "read_back")
    assert row(report, "g-c-0")["after"] == {"producer_id": 1, "producer_epoch": 5}
    assert report.exit_code == ExitCode.OK


def test_ids_that_cannot_be_asked_for_again_stay_unconfirmed(stage: Stage) -> None:
    def lose(_app: App, ids: Sequence[TransactionalId]) -> Iterator[FenceAnswer]:
        gone.append("all brokers")
        yield from (FenceAnswer(each, None, confirmed=False) for each in ids)

    def open_transactions(app: App) -> TransactionAdmin:
        if gone:
            left_s.append(app.deadline.remaining_s())
            raise UnreachableError("all brokers gone")
        return stage.brokers.open_transactions(app)

    gone: list[str] = []
    left_s: list[float] = []
    app = replace(stage.app(), open_transactions=open_transactions)
    report = apply_fence(app, plan_fence(app, FenceRequest((TransactionalId("g-c-0"),))), route=lose)
    assert (outcomes(report), left_s) == ({"g-c-0": "unconfirmed"}, [5.0])
    assert [event.warning for event in stage.events][-1:] == [True]


def test_many_ids_give_rows_in_the_order_asked(stage: Stage) -> None:
    ids = [f"many-{number}" for number in range(3000)]
    for number, name in enumerate(ids):
        stage.brokers.state.transactions[name] = FakeTransaction(10_000 + number, 0)
    report = stage.fence(*reversed(ids))
    assert [row.transactional_id for row in report.rows] == ids[::-1]
    assert report.summary.counts == {"fenced": 3000}
    assert [row.outcome for row in report.rows[:2]] == ["fenced", "fenced"]
    assert [event.done for event in stage.events if event.total == 3000] == list(range(100, 3001, 100))
