"""`upgrade apply` on workers in memory: the order, the gates after each step, and a kill at every call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from eosctl.core.upgrade import Mode
from eosctl.core.upgrade_plan import make_plan, plan_file_text, read_plan
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError, RefusedError, StalePlanError, UsageError
from eosctl.events import Event, Standing
from eosctl.ops.app import App
from eosctl.ops.upgrade_apply import RollRequest, prepare_roll
from eosctl.ops.upgrade_drivers import Acted, Driver
from eosctl.ops.upgrade_drivers.by_hand import PrintDriver
from eosctl.ops.upgrade_observe import observe_upgrade
from eosctl.ops.upgrade_report import plan_report
from eosctl.ops.upgrade_roll import apply_roll
from eosctl.ops.upgrade_status import upgrade_status, verify_upgrade
from eosctl.ops.workers import observe_workers
from eosctl.report import Report
from tests.fakes.rolling import W1, W2, W3, FakeDriver, world
from tests.fakes.switching import KilledError

FENCING = "org.apache.kafka.connect.errors.ConnectException: Failed to perform zombie fencing"


def roll(app: App, driver: Driver, target: Mode | None = Mode.ENABLED, **request: Any) -> Report:
    return apply_roll(app, prepare_roll(app, RollRequest(target, settle_timeout_s=60.0, **request), driver))


def outcomes(report: Report) -> list[tuple[object, object, object]]:
    return [(row["mode"], row["worker"], row["outcome"]) for row in report.rows]


def test_preparing_everywhere_then_enabled_with_the_leader_last(tmp_path: Path) -> None:
    """The leader of the second pass is another one than that of the first: it is looked up each time."""
    there = world(w1="disabled", w2="disabled", w3="disabled")
    report = roll(there.app(tmp_path), FakeDriver(there))
    assert report.exit_code is ExitCode.OK
    assert there.starts == [
        (W2, "preparing"), (W3, "preparing"), (W1, "preparing"),
        (W1, "enabled"), (W3, "enabled"), (W2, "enabled"),
    ]  # fmt: skip
    assert {outcome for _mode, _worker, outcome in outcomes(report)} == {"done"}
    assert verify_upgrade(there.app(tmp_path), Mode.ENABLED).exit_code is ExitCode.OK


def test_back_through_preparing_and_the_losses_are_said(tmp_path: Path) -> None:
    there = world(w1="enabled", w2="enabled")
    report = roll(there.app(tmp_path), FakeDriver(there), Mode.DISABLED)
    assert [mode for _url, mode in there.starts] == ["preparing", "preparing", "disabled", "disabled"]
    assert report.data["losses"]
    assert verify_upgrade(there.app(tmp_path), Mode.DISABLED).exit_code is ExitCode.OK, "the same members as then"


@pytest.mark.parametrize(
    ("before", "target", "ending"),
    [
        ("disabled", Mode.ENABLED, "killed"),
        ("enabled", Mode.DISABLED, "killed"),
        ("disabled", Mode.ENABLED, "interrupted"),
    ],
)
def test_cut_off_anywhere_a_second_run_ends_as_if_nothing_had_happened(
    tmp_path: Path, before: str, target: Mode, ending: str
) -> None:
    """Every call is the last one once. Never is a worker enabled beside a disabled one: the fake looks."""
    error: type[BaseException] = KilledError if ending == "killed" else KeyboardInterrupt
    kill_at = 0
    while True:
        kill_at += 1
        there = world(w1=before, w2=before)
        there.break_with = error
        there.kill_at = kill_at
        app, driver = there.app(tmp_path / str(kill_at)), FakeDriver(there)
        try:
            roll(app, driver, target)
        except (KilledError, KeyboardInterrupt, InterruptedByUserError):
            there.kill_at = None
        else:
            break
        begun = any("begin" in path.read_text() for path in app.state_dir.rglob("*.ndjson"))
        if begun:
            with pytest.raises(RefusedError, match="not finished; done: "):
                roll(app, driver, target)
        again = roll(app, driver, target, resume=begun)
        assert again.exit_code is ExitCode.OK, (kill_at, again.problems)
        assert set(there.workers.values()) == {target.value}, f"cut off at call {kill_at}"
        assert verify_upgrade(app, target).exit_code is ExitCode.OK, f"cut off at call {kill_at}"
        assert len(there.starts) <= 2 * 2 + 1, f"cut off at call {kill_at}: one step at most is done twice"
    assert kill_at > 40, "fewer calls than that were never made"


def test_a_worker_that_does_not_come_back_stops_the_roll(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled", w3="disabled")
    there.crashes.add(W3)
    app, driver = there.app(tmp_path), FakeDriver(there)
    failed = roll(app, driver)
    assert failed.exit_code is ExitCode.PARTIAL
    assert outcomes(failed)[:3] == [
        ("preparing", W2, "done"), ("preparing", W3, "failed"), ("preparing", W1, "not_reached"),
    ]  # fmt: skip
    assert "did not come up" in failed.problems[0].message
    assert "--resume" in str(failed.problems[1].hint)
    status = upgrade_status(app)
    assert {row["worker"]: row["roll"] for row in status.rows} == {W1: "not begun", W2: "brought to preparing"}
    assert isinstance(status.data["roll"], dict)
    assert status.data["roll"]["under_way"] == {"mode": "preparing", "workers": [W3]}
    done = roll(app, driver, None, resume=True)
    assert done.exit_code is ExitCode.OK
    assert outcomes(done)[0] == ("preparing", W2, "done_before")
    assert set(there.workers.values()) == {"enabled"}


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance"])
@pytest.mark.parametrize("who", [W1, W2])
def test_a_worker_that_freezes_is_named_and_waited_for_no_longer_than_said(
    tmp_path: Path, who: str, state: str
) -> None:
    """In a rebalance that a frozen worker held up only the rebalance used to be told."""
    there = world(w1="disabled", w2="disabled", w3="disabled")

    def freeze(_url: str) -> None:
        if not there.frozen and len(there.starts) == 1:
            there.frozen, there.group_state = {who}, state

    there.after_start.append(freeze)
    app, driver = there.app(tmp_path), FakeDriver(there)
    failed = roll(app, driver)
    assert failed.exit_code is ExitCode.PARTIAL
    assert [outcome for *_where, outcome in outcomes(failed)] == ["failed", *["not_reached"] * 5]
    awaited = f"{who} is unreachable" if state == "Stable" else f"the group is {state}; no answer from {who}"
    assert failed.problems[0].message == f"{W2}: not settled after 60 s; still waiting: {awaited}"
    assert there.time.now_s < 60 + 20, "one look more at the most"
    assert f"{W2}: waiting: {awaited}" in [event.message for event in there.events]
    there.frozen, there.group_state = set(), "Stable"
    assert roll(app, driver, None, resume=True).exit_code is ExitCode.OK
    assert set(there.workers.values()) == {"enabled"}


def test_a_silent_worker_is_named_also_while_another_is_not_back(tmp_path: Path) -> None:
    there = world(w1="enabled", w2="enabled")

    class Lazy(FakeDriver):
        """Says that it has restarted the worker; meanwhile another one freezes."""

        def bring(self, _app: App, _workers: Sequence[str], _mode: Mode) -> Acted:
            there.frozen = {W1}
            return Acted("restarted")

    failed = roll(there.app(tmp_path), Lazy(there), Mode.PREPARING)
    awaited = f"still waiting: not restarted yet: {W2}; no answer from {W1}"
    assert (failed.exit_code, failed.problems[0].message.endswith(awaited)) == (ExitCode.PARTIAL, True)


@pytest.mark.parametrize("thaws", [True, False])
def test_while_one_is_frozen_no_other_is_restarted(tmp_path: Path, thaws: bool) -> None:
    """It froze just after a step had settled; the next worker used to be taken down beside it."""
    there = world(w1="disabled", w2="disabled", w3="disabled")
    app, driver = there.app(tmp_path), FakeDriver(there)

    def listen(event: Event) -> None:
        there.events.append(event)
        if event.message == f"{W2}: preparing, everything as before":
            there.frozen = {W1}
        elif thaws and event.message == f"{W3}: not yet restarted, waiting: no answer from {W1}":
            there.frozen = set()

    done = roll(replace(app, on_event=listen), driver)
    waits = [event.standings for event in there.events if event.message.startswith(f"{W3}: not yet restarted")]
    assert waits == [(Standing(W3, "preparing", "to come"),)], "a line of the live table"
    if thaws:
        assert (done.exit_code, set(there.workers.values())) == (ExitCode.OK, {"enabled"})
        return
    assert done.exit_code is ExitCode.PARTIAL
    assert there.starts == [(W2, "preparing")]
    assert done.problems[0].message == f"{W3} was not restarted: no answer from {W1}, for 60 s"
    there.frozen = set()
    assert roll(app, driver, None, resume=True).exit_code is ExitCode.OK
    assert [mode for _url, mode in there.starts] == ["preparing"] * 3 + ["enabled"] * 3


def test_a_worker_that_comes_back_in_another_mode_stops_the_roll(tmp_path: Path) -> None:
    """Its configuration came from elsewhere: waiting would not change it."""
    there = world(w1="enabled", w2="enabled")
    report = roll(there.app(tmp_path), FakeDriver(there, forgets={W2}), Mode.PREPARING)
    assert report.exit_code is ExitCode.PARTIAL
    assert "gate mode_proven: http://w2:8083 is back, and enabled instead of preparing" in report.problems[0].message
    assert (outcomes(report), there.time.now_s) == (
        [("preparing", W2, "failed"), ("preparing", W1, "not_reached")],
        0.0,
    )
    again = roll(there.app(tmp_path), FakeDriver(there), resume=True, target=None)
    assert (again.exit_code, set(there.workers.values())) == (ExitCode.OK, {"preparing"})


def test_a_disabled_worker_is_found_out_when_it_leads(tmp_path: Path) -> None:
    """From outside, preparing and disabled differ by one thing: who leads claims a transactional id, or not."""
    there = world(w1="disabled", w2="disabled")
    report = roll(there.app(tmp_path), FakeDriver(there, forgets={W2}))
    assert report.exit_code is ExitCode.PARTIAL
    assert outcomes(report)[1] == ("preparing", W1, "failed")
    assert "has not claimed its transactional id" in report.problems[0].message
    assert "enabled" not in there.workers.values()


def test_a_worker_that_joins_in_between_gets_the_first_pass_too(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")

    def join(_url: str) -> None:
        if len(there.starts) == 2 and W3 not in there.workers:
            there.workers = {**there.workers, W3: "disabled"}
            there.files[W3] = "disabled"

    there.after_start.append(join)
    app, driver = there.app(tmp_path), FakeDriver(there)
    stopped = roll(app, driver)
    assert stopped.exit_code is ExitCode.PARTIAL
    assert "no worker may become enabled now: http://w3:8083 is not_enabled" in stopped.problems[0].message
    assert "enabled" not in there.workers.values()
    assert roll(app, driver, resume=True).exit_code is ExitCode.OK
    assert set(there.workers.values()) == {"enabled"}
    assert there.starts[2] == (W3, "preparing")


@pytest.mark.parametrize(
    ("traces", "exit_code", "restarts", "complaint"),
    [
        ([FENCING], ExitCode.OK, ["a"], ""),
        ([FENCING, FENCING], ExitCode.PARTIAL, ["a"], "a failed in fencing again"),
        (["java.io.IOException: disk"], ExitCode.PARTIAL, [], "a/0 is FAILED: java.io.IOException: disk"),
        ([f"{FENCING} TransactionalIdAuthorizationException"], ExitCode.PARTIAL, [], "a/0 is FAILED"),
    ],
)
def test_tasks_that_failed_in_fencing_are_restarted_once(
    tmp_path: Path, traces: list[str], exit_code: ExitCode, restarts: list[str], complaint: str
) -> None:
    there = world(w1="preparing", w2="preparing")
    left = list(traces)

    def fail(_url: str) -> None:
        if left:
            there.traces["a"] = left.pop(0)

    there.after_start.append(fail)
    there.after_restart = fail
    report = roll(there.app(tmp_path), FakeDriver(there))
    assert (report.exit_code, there.restarts) == (exit_code, restarts)
    assert complaint in (report.problems[0].message if report.problems else "")


def test_a_group_that_never_settles_is_a_timeout_that_says_what_is_awaited(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    there.after_start.append(lambda _url: setattr(there, "task_state", "UNASSIGNED"))
    report = roll(there.app(tmp_path), FakeDriver(there))
    assert report.exit_code is ExitCode.PARTIAL
    assert "not settled after 60 s; still waiting: a/0 is UNASSIGNED" in report.problems[0].message
    assert "scheduled.rebalance.max.delay.ms" in str(report.problems[0].hint)
    there.task_state = "RUNNING"
    there.after_start.clear()
    assert roll(there.app(tmp_path), FakeDriver(there), resume=True).exit_code is ExitCode.OK


@pytest.mark.parametrize(
    ("request_", "error", "complaint"),
    [
        ({"resume": True}, RefusedError, "no unfinished upgrade"),
        ({"target": None}, UsageError, "the mode is not named"),
    ],
)
def test_what_is_refused(tmp_path: Path, request_: dict[str, Any], error: type[EosctlError], complaint: str) -> None:
    there = world(w1="disabled", w2="disabled")
    request = RollRequest(**{"target": Mode.ENABLED, **request_})
    with pytest.raises(error, match=complaint):
        prepare_roll(there.app(tmp_path), request, FakeDriver(there))
    assert there.starts == []


def test_a_failing_gate_forbids_the_roll_before_it_begins(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    there.task_state = "FAILED"
    app = there.app(tmp_path)
    report = plan_report(app, prepare_roll(app, RollRequest(Mode.ENABLED), FakeDriver(there)))
    assert report.exit_code is ExitCode.REFUSED
    assert [problem.code for problem in report.problems] == ["connectors_healthy"]
    assert there.starts == []


def test_a_stale_plan_is_refused(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    app = there.app(tmp_path)
    group = observe_workers(app)
    seen = observe_upgrade(app, group, Mode.ENABLED).workers
    text = plan_file_text(make_plan(seen, Mode.ENABLED, kafka_cluster_id="cluster-1", group_id="g"))
    plan = read_plan(text, path="plan.json")
    prepared = prepare_roll(app, RollRequest(plan=plan), FakeDriver(there))
    there.workers = {**there.workers, W3: "disabled"}
    with pytest.raises(StalePlanError, match="http://w3:8083 was not there and is not_enabled"):
        prepare_roll(app, RollRequest(plan=plan), FakeDriver(there))
    with pytest.raises(StalePlanError, match="http://w3:8083"):
        apply_roll(app, prepared)
    assert there.starts == []


def test_resume_holds_to_the_plan_and_the_mode_it_began_with(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    there.crashes.add(W2)
    app, driver = there.app(tmp_path), FakeDriver(there)
    roll(app, driver)
    other = make_plan((), Mode.ENABLED, kafka_cluster_id="x", group_id="g")
    for request, complaint in [
        (RollRequest(Mode.DISABLED, resume=True), "leads to enabled, not to disabled"),
        (RollRequest(plan=other, resume=True), "begun with another plan"),
    ]:
        with pytest.raises(RefusedError, match=complaint):
            prepare_roll(app, request, driver)
    there.start(W2)
    assert roll(app, driver, Mode.DISABLED, start_over=True).exit_code is ExitCode.OK
    assert set(there.workers.values()) == {"disabled"}


def test_beside_a_running_one_it_says_who_is_at_work(tmp_path: Path) -> None:
    """It used to say only that an upgrade was not finished, and to offer --resume and --start-over."""
    there = world(w1="disabled", w2="disabled")
    app, driver = there.app(tmp_path), FakeDriver(there)
    seen: list[str] = []

    def look(_url: str) -> None:
        for resume in (False, True):
            with pytest.raises(RefusedError) as caught:
                roll(app, driver, resume=resume)
            seen.append(caught.value.message)
        seen.append(upgrade_status(app).problems[-1].message)

    there.after_start.append(look)
    assert roll(app, driver).exit_code is ExitCode.OK
    at_work = f"another eosctl is at work on the upgrade of group g (process {os.getpid()}, since 1970-01-01T00:00:00"
    assert [message.startswith(at_work) for message in seen] == [True, True, False] * 4
    assert all(f"eosctl is at work on it now (process {os.getpid()}, " in message for message in seen[2::3])
    assert upgrade_status(app).problems == []


def test_a_worker_lost_between_two_runs_forbids_to_go_on(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled", w3="disabled")
    there.crashes.add(W3)
    app, driver = there.app(tmp_path), FakeDriver(there)
    roll(app, driver)
    there.stop(W2)
    report = plan_report(app, prepare_roll(app, RollRequest(resume=True), driver))
    assert report.exit_code is ExitCode.REFUSED
    assert any(W2 in problem.message for problem in report.problems)


class Controller(FakeDriver):
    """Restarts all workers of a pass by itself, each under another URL, as a Deployment does with its pods."""

    at_once: ClassVar[bool] = True

    def bring(self, _app: App, workers: Sequence[str], mode: Mode) -> Acted:
        self.world.tick()
        for url in list(self.world.workers):
            self.world.stop(url)
            renamed = url.replace("8083", str(9000 + len(self.world.starts)))
            self.world.files[renamed] = mode.value
            self.world.tick()
            self.world.start(renamed)
        return Acted("rolled out")


def test_a_controller_restarts_a_whole_pass_and_workers_come_back_under_other_names(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    report = roll(there.app(tmp_path), Controller(there))
    assert report.exit_code is ExitCode.OK, report.problems
    assert [mode for _url, mode in there.starts] == ["preparing", "preparing", "enabled", "enabled"]
    assert {outcome for _mode, _worker, outcome in outcomes(report)} == {"done"}


def test_a_controller_that_was_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    kill_at = 0
    while True:
        kill_at += 1
        there = world(w1="disabled", w2="disabled")
        there.kill_at = kill_at
        app = there.app(tmp_path / str(kill_at))
        try:
            roll(app, Controller(there))
        except KilledError:
            there.kill_at = None
        else:
            break
        begun = any("begin" in path.read_text() for path in app.state_dir.rglob("*.ndjson"))
        if len(there.workers) < 2:  # a pod is being made: its controller goes on without eosctl
            there.start(there.pod_to_come())
        again = roll(app, Controller(there), resume=begun)
        assert again.exit_code is ExitCode.OK, (kill_at, again.problems)
        assert set(there.workers.values()) == {"enabled"}, f"cut off at call {kill_at}"


def test_a_person_is_told_and_waited_for_without_end(tmp_path: Path) -> None:
    there = world(w1="enabled", w2="enabled")
    app = there.app(tmp_path)
    asked: list[str] = []

    class Person(PrintDriver):
        def bring(self, app: App, workers: Sequence[str], mode: Mode) -> Acted:
            asked.append(workers[0])
            there.files[workers[0]] = mode.value
            return super().bring(app, workers, mode)

    def hours_later(wanted_s: float) -> None:
        there.time.now_s += 600 * wanted_s
        if there.time.now_s > 7200 * len(asked) and there.workers[asked[-1]] == "enabled":
            there.stop(asked[-1])
            there.start(asked[-1])

    slow = replace(app, clock=replace(app.clock, sleep_s=hours_later))
    assert roll(slow, Person(), Mode.PREPARING).exit_code is ExitCode.OK
    assert asked == [W2, W1]
    assert set(there.workers.values()) == {"preparing"}
