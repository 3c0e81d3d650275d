"""`rescue` over a broker that speaks the protocol, topics and workers in memory."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.deadline import Deadline, Event
from eosctl.errors import ConnectError, ExitCode, NotFoundError, RefusedError, StalePlanError
from eosctl.fence.rules import FENCE_TRANSACTION_TIMEOUT_MS
from eosctl.report import Report
from eosctl.rescue.apply import apply_rescue
from eosctl.rescue.plan import plan_rescue
from eosctl.rescue.rows import show_rescue
from eosctl.rescue.rules import RescueVerdict
from tests.fakes.config_topic import created
from tests.fakes.faults import KilledError, worth_a_kill
from tests.fakes.rescue_scene import TRACE, URL, Scene, stop


def steps(report: Report) -> list[tuple[object, object]]:
    return [(row.action, row.outcome) for row in report.rows]


def test_rescue_fences_writes_restarts_and_watches(scene: Scene) -> None:
    plan = plan_rescue(scene.app(), "c")
    shown = show_rescue(scene.app(), plan)
    assert steps(shown) == [(name, "planned") for name in ("fence", "write", "restart", "watch")]
    assert "2 FAILED in zombie fencing" in str(shown.data.seen)
    report = apply_rescue(scene.app(), plan)
    assert (steps(report), report.exit_code) == (
        [(name, "done") for name in ("fence", "write", "restart", "watch")],
        ExitCode.OK,
    )
    assert scene.records() == [("eosctl-config-g", b'{"task-count":2}')]
    assert scene.timeouts() == [60_000, 60_000, FENCE_TRANSACTION_TIMEOUT_MS]
    assert report.data.cure == {
        "admin.override.retry.backoff.ms": "10",
        "admin.override.retry.backoff.max.ms": "10",
    }
    again = plan_rescue(scene.app(), "c")
    assert (show_rescue(scene.app(), again).rows, show_rescue(scene.app(), again).data.cure) == ([], {})


def test_rescue_goes_on_where_it_was_interrupted(scene: Scene) -> None:
    scene.connect.fail_next("restart", ConnectError("500: Failed to write to config topic"))
    report = apply_rescue(scene.app(), plan_rescue(scene.app(), "c"))
    assert report.exit_code is ExitCode.PARTIAL
    assert steps(report) == [("fence", "done"), ("write", "done"), ("restart", "failed"), ("watch", "planned")]
    assert [problem.code for problem in report.problems] == ["connect_error", "rescue_again"]
    plan = plan_rescue(scene.app(), "c")
    shown = show_rescue(scene.app(), plan)
    assert [problem.code for problem in shown.problems] == ["rescue_unfinished"]
    assert (
        "was begun at 2023-11-14T22:13:20.000Z and not finished; done then: fence, write" in shown.problems[0].message
    )
    rest = apply_rescue(scene.app(), plan)
    assert steps(rest) == [
        ("fence", "done_before"), ("write", "done_before"), ("restart", "done"), ("watch", "done"),
    ]  # fmt: skip
    assert rest.rows[0].detail == "3 ids fenced"
    assert len(scene.records()) == 1
    assert show_rescue(scene.app(), plan_rescue(scene.app(), "c")).problems == []


def test_killed_anywhere_a_second_run_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """Whatever a kill can leave, before and after the effect of each call; then the next run goes on."""

    def run(scene: Scene) -> None:
        apply_rescue(scene.app(), plan_rescue(scene.app(), "c"))

    scene = Scene(state_dir=tmp_path / "undisturbed")
    kills = worth_a_kill(scene.kill, partial(run, scene), partial(scene.left, scene.state_dir))
    assert (len(kills) > 12, scene.kill.ticks > 40) == (True, True), "fewer than that were never made"
    for kill_at in kills:
        scene = Scene(state_dir=tmp_path / str(kill_at))
        scene.kill.at = kill_at
        with pytest.raises(KilledError):
            run(scene)
        scene.kill.at = None
        plan = plan_rescue(scene.app(), "c")
        began = any(b'"begin"' in path.read_bytes() for path in scene.state_dir.rglob("journals/*"))
        unfinished = [problem.code for problem in show_rescue(scene.app(), plan).problems]
        assert unfinished == (["rescue_unfinished"] if began and plan.steps else []), f"killed at call {kill_at}"
        again = apply_rescue(scene.app(), plan)
        assert again.exit_code is ExitCode.OK, f"killed at call {kill_at}: {again.problems}"
        assert scene.records() == [("eosctl-config-g", b'{"task-count":2}')], f"killed at call {kill_at}"
        assert scene.timeouts() == [60_000, 60_000, FENCE_TRANSACTION_TIMEOUT_MS], f"killed at call {kill_at}"
        healed = plan_rescue(scene.app(), "c")
        assert (healed.steps, healed.verdict) == ((), RescueVerdict.HEALTHY), f"killed at call {kill_at}"


def test_after_a_kill_running_is_still_not_believed(scene: Scene) -> None:
    """Without the epochs that the journal has, tasks that REST calls RUNNING would pass for healed."""
    scene.tasks_take_ids = False

    def die(event: Event) -> None:
        if event.message.startswith("watch"):
            raise KilledError

    app = replace(scene.app(), on_event=die)
    with pytest.raises(KilledError):
        apply_rescue(app, plan_rescue(app, "c"))
    assert plan_rescue(scene.app(), "c").verdict is RescueVerdict.RESTART, (
        "REST still shows what was before the restart"
    )
    scene.time.sleep(1)
    plan = plan_rescue(scene.app(), "c")
    assert (plan.verdict, plan.steps) == (RescueVerdict.WATCH, ("watch",))
    report = apply_rescue(scene.app(), plan)
    assert (steps(report)[-1], report.exit_code) == (("watch", "failed"), ExitCode.UNREACHABLE)
    for task in (0, 1):
        scene.take_id(task)
    assert apply_rescue(scene.app(), plan_rescue(scene.app(), "c")).exit_code is ExitCode.OK
    assert plan_rescue(scene.app(), "c").verdict is RescueVerdict.HEALTHY


def test_ids_that_could_not_be_seen_before_the_restart_are_not_taken_since(scene: Scene) -> None:
    """Any state after it was another one, so that tasks which never took their ids passed for healed."""
    scene.tasks_take_ids = False
    hidden = scene.brokers.deny_describe
    scene.topics.after("write", lambda _call: hidden.update({"g-c-0", "g-c-1"}))
    scene.connect.after("restart", lambda _call: hidden.clear())
    report = apply_rescue(scene.app(), plan_rescue(scene.app(), "c"))
    assert steps(report)[1:] == [("write", "done"), ("restart", "failed"), ("watch", "planned")]
    assert report.exit_code is ExitCode.PARTIAL


def test_the_journal_of_another_task_set_counts_for_nothing(scene: Scene) -> None:
    scene.connect.fail_next("restart", ConnectError("500"))
    apply_rescue(scene.app(), plan_rescue(scene.app(), "c"))
    for key, value in created("c", 2):
        scene.keep_config(key, value)
    plan = plan_rescue(scene.app(), "c")
    assert (plan.verdict, plan.state.begun, show_rescue(scene.app(), plan).problems) == (
        RescueVerdict.FENCE,
        None,
        [],
    )


def test_a_refusal_says_what_a_rescue_that_was_cut_off_had_done(scene: Scene) -> None:
    scene.connect.fail_next("restart", ConnectError("500"))
    apply_rescue(scene.app(), plan_rescue(scene.app(), "c"))
    scene.connector.fail(trace="NullPointerException")
    with pytest.raises(RefusedError, match=r"begun before and not finished; done then: fence, write"):
        plan_rescue(scene.app(), "c")


def test_two_rescues_at_once_are_kept_apart(scene: Scene) -> None:
    plan = plan_rescue(scene.app(), "c")
    with plan.state.journal.hold("it"), pytest.raises(RefusedError, match="another eosctl is at work on connector c"):
        apply_rescue(scene.app(), plan)
    assert scene.records() == []


def test_an_interruption_leaves_a_report_and_a_journal(scene: Scene) -> None:
    def press_ctrl_c(event: Event) -> None:
        if event.message.startswith("restart"):
            raise KeyboardInterrupt

    report = apply_rescue(replace(scene.app(), on_event=press_ctrl_c), plan_rescue(scene.app(), "c"))
    assert (report.exit_code, steps(report)[2]) == (ExitCode.INTERRUPTED, ("restart", "failed"))
    assert plan_rescue(scene.app(), "c").steps == ("restart", "watch")


def test_running_is_believed_only_of_tasks_that_took_their_ids(scene: Scene) -> None:
    """Connect shows tasks as RUNNING while they wait for a fencing round."""
    scene.tasks_take_ids = False
    report = apply_rescue(scene.app(), plan_rescue(scene.app(), "c"))
    assert (steps(report)[-1], report.exit_code) == (("watch", "failed"), ExitCode.PARTIAL)
    assert "2 tasks without the id that is theirs" in report.problems[0].message


def test_a_worker_of_another_cluster_ends_no_watch(scene: Scene) -> None:
    """The first of several given URLs, unreachable when the rescue was planned, may lead anywhere when it answers."""
    plan = plan_rescue(scene.app(), "c")
    scene.connect.after("restart", lambda _call: setattr(scene.connect, "kafka_cluster_id", "elsewhere"))
    report = apply_rescue(scene.app(), plan)
    assert (steps(report)[-1], report.exit_code) == (("watch", "failed"), ExitCode.PARTIAL)
    assert "uses Kafka cluster elsewhere" in report.problems[0].message


def test_with_followers_rescue_waits_until_the_leaders_round_is_over(scene: Scene) -> None:
    """A follower's task gives up after 30 s; the round that it asked for goes on, and fences whoever runs by then."""
    scene.connect.modes = {"http://other:8083": "enabled", URL: "enabled"}
    scene.connect.down.add("http://other:8083")
    app = scene.app()
    rounds = iter([0, 1])

    def sleep(seconds: float) -> None:
        scene.time.sleep(seconds)
        if seconds == 5.0 and (task := next(rounds, None)) is not None:
            scene.take_id(task, timeout_ms=90_000)

    clock = replace(app.clock, sleep_s=sleep)
    app = replace(app, clock=clock, deadline=Deadline.after(30, clock))
    plan = plan_rescue(app, "c")
    assert steps(show_rescue(app, plan))[0] == ("wait", "planned")
    report = apply_rescue(app, plan)
    assert steps(report)[0] == ("wait", "done")
    assert "waited 105 s" in str(report.rows[0].detail)  # 90 s after the commit, two moves, and a still 5 s


def test_ids_that_cannot_be_seen_are_not_at_rest(scene: Scene) -> None:
    """No id was touched, as none could be seen."""
    scene.connect.modes = {"http://other:8083": "enabled", URL: "enabled"}
    scene.connect.down.add("http://other:8083")
    app = scene.app()
    plan = plan_rescue(app, "c")
    scene.brokers.deny_describe |= {"g-c-0", "g-c-1", "g-c-2"}
    report = apply_rescue(app, plan)
    assert steps(report)[0] == ("wait", "failed")


def one_runs(scene: Scene) -> None:
    scene.connector.heal()
    scene.connector.fail(0, trace=TRACE)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (one_runs, "1 FAILED, 1 RUNNING"),
        (lambda scene: scene.connector.fail(trace="NullPointerException"), "0 FAILED in zombie"),
        (stop, "target state STOPPED"),
        (lambda scene: scene.connect.rebalance(math.inf), "the group g is PreparingRebalance"),
        (lambda scene: scene.connect.modes.clear(), "the group g is Empty"),
    ],
)
def test_what_rescue_refuses(scene: Scene, change: object, said: str) -> None:
    assert callable(change)
    change(scene)
    with pytest.raises(RefusedError, match=said):
        plan_rescue(scene.app(), "c")


def test_rescue_of_a_connector_that_is_healed_meanwhile_is_stale(scene: Scene) -> None:
    plan = plan_rescue(scene.app(), "c")
    scene.connector.heal()
    with pytest.raises(StalePlanError, match="no record was written"):
        apply_rescue(scene.app(), plan)
    assert scene.records() == []


def test_a_new_task_set_during_the_rescue_gets_no_record(scene: Scene) -> None:
    """Somebody puts a new config while ids are fenced: the old count would be a false record for the new tasks."""
    app = scene.app()

    def put_meanwhile(event: Event) -> None:
        if event.message.startswith("write"):
            scene.commit(2)

    report = apply_rescue(replace(app, on_event=put_meanwhile), plan_rescue(app, "c"))
    assert (report.exit_code, report.problems[0].code) == (ExitCode.PARTIAL, "stale_plan")
    assert steps(report)[:2] == [("fence", "done"), ("write", "failed")]
    assert "eosctl-config-g" not in [transactional_id for transactional_id, _value in scene.records()]


def test_a_record_that_differs_is_reported_with_what_to_do(scene: Scene) -> None:
    """It said that the record "is differs", and no more."""
    plan = plan_rescue(scene.app(), "c")
    scene.topics.after("write", lambda _call: scene.commit(2))
    report = apply_rescue(scene.app(), plan)
    assert ("write", "failed") in steps(report)
    assert any("`eosctl connectors stop c`" in str(problem.hint) for problem in report.problems)


def test_unknown_connectors_are_named(scene: Scene) -> None:
    with pytest.raises(NotFoundError, match="no connector 'nope'"):
        plan_rescue(scene.app(), "nope")
