"""`upgrade apply` on workers in memory: the order, the gates after each step, and a kill at every call."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Event
from eosctl.errors import EosctlError, ExitCode, RefusedError, StalePlanError, UsageError
from eosctl.group.gather import observe_workers
from eosctl.observation.gather import observe_upgrade
from eosctl.upgrade.drivers import DriverResult
from eosctl.upgrade.drivers.commands import PrintDriver
from eosctl.upgrade.plan import make_plan, plan_file_text, read_plan
from eosctl.upgrade.roll.prepare import RollRequest, prepare_roll
from eosctl.upgrade.roll.report import plan_report
from eosctl.upgrade.roll.roll import apply_roll
from eosctl.upgrade.status import upgrade_status, verify_upgrade
from tests.fakes.faults import Call, worth_a_kill
from tests.fakes.rolling import W1, W2, W3, FakeDriver, RollWorld, came_to_its_end, outcomes, roll, world

FENCING = "org.apache.kafka.connect.errors.ConnectException: Failed to perform zombie fencing"


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
    assert report.data.losses
    assert verify_upgrade(there.app(tmp_path), Mode.DISABLED).exit_code is ExitCode.OK, "the same members as then"


@pytest.mark.parametrize(("before", "target"), [("disabled", Mode.ENABLED), ("enabled", Mode.DISABLED)])
def test_killed_anywhere_a_second_run_ends_as_if_nothing_had_happened(
    tmp_path: Path, before: str, target: Mode
) -> None:
    """Whatever a kill can leave. None is enabled beside a disabled one."""
    there = world(w1=before, w2=before)
    app, driver = there.app(tmp_path / "undisturbed"), FakeDriver(there)
    kills = worth_a_kill(there.kill, partial(roll, app, driver, target), partial(there.left, app.state_dir))
    assert (len(kills) > 20, there.kill.ticks > 40) == (True, True), "fewer than that were never made"
    for kill_at in kills:
        there = world(w1=before, w2=before)
        there.kill.at = kill_at
        app, driver = there.app(tmp_path / str(kill_at)), FakeDriver(there)
        assert not came_to_its_end(app, driver, target)
        ends_as_if_nothing_had_happened(there, app, target)


def test_interrupted_anywhere_a_second_run_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """Ctrl-C at every third call: what eosctl does then leaves more than a kill does.

    A second run is made for all that a first one can leave: what it finds is the same wherever it was cut off between.
    """
    kill_at = 0
    gone_on_from: set[object] = set()
    while True:
        kill_at += 3
        there = world(w1="disabled", w2="disabled")
        there.kill.error, there.kill.at = KeyboardInterrupt, kill_at
        app, driver = there.app(tmp_path / "state"), FakeDriver(there)
        if came_to_its_end(app, driver, Mode.ENABLED):
            break
        left = there.left(app.state_dir)
        if left not in gone_on_from:
            gone_on_from.add(left)
            ends_as_if_nothing_had_happened(there, app, Mode.ENABLED)
        shutil.rmtree(app.state_dir)
    assert kill_at > 40, "fewer calls than that were never made"
    assert len(gone_on_from) > 10, "they differ at least from step to step"


def ends_as_if_nothing_had_happened(there: RollWorld, app: App, target: Mode) -> None:
    """What a run that was cut off has left is gone on from."""
    where, driver, there.kill.at = f"cut off at call {there.kill.ticks}", FakeDriver(there), None
    begun = any("begin" in path.read_text() for path in app.state_dir.rglob("*.ndjson"))
    if begun:
        with pytest.raises(RefusedError, match="not finished; done: "):
            roll(app, driver, target)
    again = roll(app, driver, target, resume=begun)
    assert again.exit_code is ExitCode.OK, (where, again.problems)
    assert set(there.workers.values()) == {target.value}, where
    assert verify_upgrade(app, target).exit_code is ExitCode.OK, where
    assert len(there.starts) <= 2 * 2 + 1, f"{where}: one step at most is done twice"


def test_after_ctrl_c_the_rows_so_far_are_reported(tmp_path: Path) -> None:
    """Only the error was left, and not what had been done to which worker, nor from which copy to go back."""
    there = world(w1="disabled", w2="disabled")

    def press_ctrl_c(_call: Call) -> None:
        if len(there.starts) == 2:
            raise KeyboardInterrupt

    there.connect.before("start_worker", press_ctrl_c)
    app, driver = there.app(tmp_path), FakeDriver(there)
    report = roll(app, driver)
    assert report.exit_code is ExitCode.INTERRUPTED
    assert outcomes(report) == [
        ("preparing", W2, "done"), ("preparing", W1, "failed"), ("enabled", W2, "not_reached"),
        ("enabled", W1, "not_reached"),
    ]  # fmt: skip
    assert [problem.code for problem in report.problems] == ["interrupted", "upgrade_unfinished"]
    assert str(report.problems[1].hint).startswith("Go on: eosctl upgrade apply --resume")
    assert report.rows[1].detail == "interrupted"


@pytest.mark.parametrize(
    ("traces", "exit_code", "restarts", "complaint"),
    [
        ([FENCING], ExitCode.OK, ["a"], ""),
        ([FENCING, FENCING], ExitCode.PARTIAL, ["a"], "a failed in fencing again"),
        (["java.io.IOException: disk"], ExitCode.PARTIAL, [], "a/0 is FAILED: java.io.IOException: disk"),
        (
            [f"{FENCING} TransactionalIdAuthorizationException"],
            ExitCode.PARTIAL,
            [],
            "a/0 is FAILED: the connector's principal may not use its transactional ids",
        ),
    ],
)
def test_tasks_that_failed_in_fencing_are_restarted_once(
    tmp_path: Path, traces: list[str], exit_code: ExitCode, restarts: list[str], complaint: str
) -> None:
    there = world(w1="preparing", w2="preparing")
    left = list(traces)

    def fail(_call: Call) -> None:
        if left:
            there.connector.fail(trace=left.pop(0))

    there.connect.after("start_task", fail)
    report = roll(there.app(tmp_path), FakeDriver(there))
    assert (report.exit_code, there.restarts) == (exit_code, restarts)
    assert complaint in (report.problems[0].message if report.problems else "")


class StartsTwice(FakeDriver):
    """After the first pass had settled, the task is started once more: MirrorMaker writes its configs then."""

    def files(self, _workers: Sequence[str]) -> Sequence[Path]:
        there = self.world
        said = [event.message for event in there.events if event.message]
        if said and said[-1].endswith("preparing, everything as before") and len(there.starts) == 2:
            there.time.later(5, there.hold_task("UNASSIGNED"))
            there.events.append(Event("started once more"))
        return ()


def test_a_task_that_starts_once_more_between_the_passes_is_waited_for(tmp_path: Path) -> None:
    """One look between the passes met it UNASSIGNED, and that was the end of the roll."""
    there = world(w1="disabled", w2="disabled")
    report = roll(there.app(tmp_path), StartsTwice(there))
    assert "started once more" in [event.message for event in there.events]
    assert (report.exit_code, {outcome for *_who, outcome in outcomes(report)}) == (ExitCode.OK, {"done"})


def test_a_group_that_never_settles_is_a_timeout_that_says_what_is_awaited(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    there.after_start.append(lambda _url: let_go.append(there.hold_task("UNASSIGNED")))
    let_go: list[Callable[[], None]] = []
    report = roll(there.app(tmp_path), FakeDriver(there))
    assert report.exit_code is ExitCode.PARTIAL
    assert "not settled after 60 s; still waiting: a/0 is UNASSIGNED" in report.problems[0].message
    assert "scheduled.rebalance.max.delay.ms" in str(report.problems[0].hint)
    there.after_start.clear()
    for each in let_go:
        each()
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
    there.connector.fail()
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
    there.connect.modes[W3] = "disabled"
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


class Controller(FakeDriver):
    """Restarts all workers of a pass by itself, each under another URL, as a Deployment does with its pods."""

    at_once: ClassVar[bool] = True

    def bring(self, _app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
        self.world.kill.tick()
        for url in list(self.world.workers):
            self.world.stop(url)
            renamed = url.replace("8083", str(9000 + len(self.world.starts)))
            self.world.files[renamed] = mode.value
            self.world.kill.tick()
            self.world.start(renamed)
        return DriverResult("rolled out")


def test_a_controller_restarts_a_whole_pass_and_workers_come_back_under_other_names(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    report = roll(there.app(tmp_path), Controller(there))
    assert report.exit_code is ExitCode.OK, report.problems
    assert [mode for _url, mode in there.starts] == ["preparing", "preparing", "enabled", "enabled"]
    assert {outcome for _mode, _worker, outcome in outcomes(report)} == {"done"}


@pytest.mark.parametrize(
    ("leaves", "comes_back", "awaited"),
    [
        ([], [], "not restarted yet: http://w1:8083, http://w2:8083"),
        ([W2], [W2], "not restarted yet: http://w1:8083"),
        ([W1, W2], [W2], "1 of 2 members"),
    ],
)
def test_a_controller_must_have_restarted_all_of_them(
    tmp_path: Path, leaves: list[str], comes_back: list[str], awaited: str
) -> None:
    there = world(w1="disabled", w2="disabled")

    class Lazy(Controller):
        def bring(self, _app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
            for url in leaves:
                there.stop(url)
            for url in comes_back:
                there.files[url] = mode.value
                there.start(url)
            return DriverResult("rolled out")

    report = roll(there.app(tmp_path), Lazy(there))
    assert report.exit_code is ExitCode.PARTIAL
    assert report.problems[0].message.endswith(f"not settled after 120 s; still waiting: {awaited}")


def test_a_controller_that_was_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    app = there.app(tmp_path / "undisturbed")
    for kill_at in worth_a_kill(there.kill, partial(roll, app, Controller(there)), partial(there.left, app.state_dir)):
        there = world(w1="disabled", w2="disabled")
        there.kill.at = kill_at
        app = there.app(tmp_path / str(kill_at))
        assert not came_to_its_end(app, Controller(there), Mode.ENABLED)
        there.kill.at = None
        begun = any("begin" in path.read_text() for path in app.state_dir.rglob("*.ndjson"))
        there.settle()
        if len(there.workers) < 2:  # a pod is being made: its controller goes on without eosctl
            there.start(there.pod_to_come())
            there.settle()
        again = roll(app, Controller(there), resume=begun)
        assert again.exit_code is ExitCode.OK, (kill_at, again.problems)
        assert set(there.workers.values()) == {"enabled"}, f"cut off at call {kill_at}"


def test_a_person_is_told_and_waited_for_without_end(tmp_path: Path) -> None:
    there = world(w1="enabled", w2="enabled")
    app = there.app(tmp_path)
    asked: list[str] = []

    class Person(PrintDriver, frozen=True):
        def bring(self, app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
            asked.append(workers[0])
            there.files[workers[0]] = mode.value
            return super().bring(app, workers, mode)

    def hours_later(wanted_s: float) -> None:
        there.time.sleep(600 * wanted_s)
        if asked and there.time.now_s > 7200 * len(asked) and there.workers[asked[-1]] == "enabled":
            there.stop(asked[-1])
            there.start(asked[-1])

    slow = replace(app, clock=replace(app.clock, sleep_s=hours_later))
    assert roll(slow, Person(), Mode.PREPARING).exit_code is ExitCode.OK
    assert asked == [W2, W1]
    assert set(there.workers.values()) == {"preparing"}
