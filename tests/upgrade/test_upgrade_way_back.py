"""The way back from an upgrade, when it is needed: tasks failed in the new mode, or a worker never came up in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.config import parse_worker_config
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Event
from eosctl.errors import EosctlError, ExitCode, RefusedError, UsageError
from eosctl.report import Report
from eosctl.upgrade.drivers import DriverResult
from eosctl.upgrade.drivers.commands import PrintDriver
from eosctl.upgrade.plan import plan_upgrade
from eosctl.upgrade.roll.prepare import PreparedRoll, RollRequest, prepare_roll
from eosctl.upgrade.roll.report import plan_report
from eosctl.upgrade.status import upgrade_status, verify_upgrade
from tests.fakes.faults import Call, KilledError
from tests.fakes.rolling import W1, W2, W3, FakeDriver, RollWorld, outcomes, roll, world


def back(**more: object) -> RollRequest:
    return RollRequest(Mode.DISABLED, start_over=True, **more)  # type: ignore[arg-type]


def blocked_by(prepared: PreparedRoll) -> list[str]:
    return [gate.id for gate in prepared.blocking]


def findings(report: Report) -> list[tuple[object, object]]:
    return [(row.code, row.subject) for row in report.rows if row.code == "wrong_mode"]


def one_died_becoming_enabled(tmp_path: Path) -> tuple[RollWorld, App, FakeDriver]:
    """Three workers; W2 was given its new file, and did not come up again."""
    there = world(w1="disabled", w2="disabled", w3="disabled")
    there.after_start.append(lambda _url: there.crashes.add(W2) if len(there.starts) == 3 else None)
    app, driver = there.app(tmp_path), FakeDriver(there)
    assert roll(app, driver).exit_code is ExitCode.PARTIAL
    there.settle()
    assert there.files[W2] == "enabled"
    return there, app, driver


@pytest.mark.parametrize("ends", ["in the middle", "at its end"])
def test_what_failed_since_the_upgrade_began_is_no_reason_to_stay(tmp_path: Path, ends: str) -> None:
    """`connectors_healthy` used to refuse the very way back that the failed upgrade printed."""
    there = world(w1="disabled", w2="disabled")

    def fails_when_enabled(_call: Call | None = None) -> None:
        if there.workers.get(there.connector.tasks[0].url) == "enabled":
            there.connector.fail(trace="TransactionalIdAuthorizationException")

    app, driver = there.app(tmp_path), FakeDriver(there)
    if ends == "in the middle":
        there.connect.after("start_task", fails_when_enabled)
        failed = roll(app, driver)
        assert failed.exit_code is ExitCode.PARTIAL
        assert "eosctl upgrade apply --to disabled --driver sandbox --start-over" in str(failed.problems[1].hint)
    else:
        assert roll(app, driver).exit_code is ExitCode.OK
        fails_when_enabled()
    done = roll(there.app(tmp_path), driver, Mode.DISABLED, start_over=True)
    assert (done.exit_code, set(there.workers.values())) == (ExitCode.OK, {"disabled"}), done.problems
    assert there.connector.tasks[0].state == "RUNNING"


def test_on_the_way_back_what_fails_anew_stops_it_and_is_no_reason_to_stay_either(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    app, driver = there.app(tmp_path), FakeDriver(there)
    roll(app, driver)
    there.after_start.append(lambda _url: there.connector.fail(trace="boom"))
    stopped = roll(app, driver, Mode.DISABLED)
    assert "gate connectors_healthy: a/0 is FAILED: boom" in stopped.problems[0].message
    done = roll(there.app(tmp_path), driver, None, resume=True)
    assert (done.exit_code, set(there.workers.values())) == (ExitCode.OK, {"disabled"}), done.problems


def test_without_an_upgrade_before_it_a_failed_task_still_forbids_to_go_down(tmp_path: Path) -> None:
    there = world(w1="enabled", w2="enabled")
    there.connector.fail()
    assert blocked_by(prepare_roll(there.app(tmp_path), back(), FakeDriver(there))) == ["connectors_healthy"]


def test_a_worker_that_died_becoming_enabled_is_missed(tmp_path: Path) -> None:
    """It was in no plan: apply and verify were exit code 0, and its next start was enabled beside disabled ones."""
    there, app, _driver = one_died_becoming_enabled(tmp_path)
    rows = {row.worker: (row.mode, row.evidence) for row in plan_upgrade(app, Mode.DISABLED).rows}
    assert rows[W2] == ("absent", ["it left the group, and may come back preparing or enabled"])
    assert plan_upgrade(app, Mode.DISABLED).exit_code is ExitCode.FINDINGS
    assert {row.worker: row.mode for row in upgrade_status(app).rows}[W2] == "absent"
    assert ("wrong_mode", W2) in findings(verify_upgrade(app, Mode.DISABLED))
    by_hand = plan_report(app, prepare_roll(app, back(), PrintDriver()))
    assert (by_hand.exit_code, [each.code for each in by_hand.problems]) == (ExitCode.REFUSED, ["members_known"])
    assert "--accept-gone" in str(by_hand.problems[0].hint)
    there.start(W2)
    there.settle()
    assert ("wrong_mode", W2) in findings(verify_upgrade(app, Mode.DISABLED)), "it is seen, and enabled"
    assert blocked_by(prepare_roll(app, back(), PrintDriver())) == []


@pytest.mark.parametrize("with_file", [False, True])
def test_the_way_back_gives_a_dead_worker_its_mode_before_any_other_gets_it(tmp_path: Path, with_file: bool) -> None:
    """With its file `members_known` refused; then it was given its mode, and left dead with exit code 0."""
    there, app, driver = one_died_becoming_enabled(tmp_path)
    if with_file:
        file = tmp_path / "w2.properties"
        file.write_text("group.id=g\nlisteners=http://w2:8083\nexactly.once.source.support=enabled\n")
        config = parse_worker_config(file.read_text(), source=str(file))
        app = there.app(tmp_path, worker_configs=(config,))
    order: list[tuple[str, str]] = []
    there.after_start.append(lambda url: order.append((url, there.files[W2])))
    plan = plan_report(app, prepare_roll(app, back(), driver))
    assert plan.exit_code is ExitCode.OK
    assert [row.actions for row in plan.rows if row.worker == W2] == [
        [
            "it is no member of the group: its mode is set first, and it is started last",
            "restart http://w2:8083 as disabled",
        ]
    ]
    done = roll(app, driver, Mode.DISABLED, start_over=True)
    assert (done.exit_code, set(there.workers)) == (ExitCode.OK, {W1, W2, W3}), done.problems
    assert set(there.workers.values()) == {"disabled"}
    assert ("disabled", W2, "done") in outcomes(done)
    assert [file for url, file in order[-3:]] == ["disabled"] * 3, "before the first other one"
    assert order[-1][0] == W2, "it is started last"
    assert findings(verify_upgrade(there.app(tmp_path), Mode.DISABLED)) == []


def test_the_copy_of_a_dead_worker_s_file_is_named(tmp_path: Path) -> None:
    """It is made when the mode is set, and the worker is started long after."""
    there, app, _driver = one_died_becoming_enabled(tmp_path)

    class Copies(FakeDriver):
        def set_alone(self, app: App, worker: str, mode: Mode) -> DriverResult:
            return replace(super().set_alone(app, worker, mode), backup="/copy")

    done = roll(app, Copies(there), Mode.DISABLED, start_over=True)
    assert [row.backup for row in done.rows if row.worker == W2] == ["/copy"]


def test_a_dead_worker_that_does_not_start_again_is_said_and_given_up_by_name(tmp_path: Path) -> None:
    """The others are back by then, and its mode is set whenever it starts."""
    there, app, driver = one_died_becoming_enabled(tmp_path)
    there.crashes.add(W2)
    stopped = roll(app, driver, Mode.DISABLED, start_over=True)
    assert stopped.exit_code is ExitCode.PARTIAL
    assert there.workers == {W1: "disabled", W3: "disabled"}
    assert (there.files[W2], outcomes(stopped)[-1][2]) == ("disabled", "done")
    assert ("disabled", W2, "failed") in outcomes(stopped)
    there.crashes.add(W2)
    assert roll(app, driver, None, resume=True).exit_code is ExitCode.PARTIAL
    done = roll(app, driver, None, resume=True, gone=frozenset({W2}))
    assert (done.exit_code, there.workers) == (ExitCode.OK, {W1: "disabled", W3: "disabled"}), done.problems


def test_cut_off_before_a_dead_worker_is_started_a_second_run_starts_it(tmp_path: Path) -> None:
    """Its mode was set, and nobody else was to be changed: the roll had nothing left to do."""
    there, app, driver = one_died_becoming_enabled(tmp_path)

    class Killed(FakeDriver):
        def bring(self, app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
            if list(workers) == [W2]:
                raise KilledError
            return super().bring(app, workers, mode)

    def kill(event: Event) -> None:
        if event.message == f"{W3}: disabled, everything as before":
            raise KilledError

    with pytest.raises(KilledError):
        roll(replace(app, on_event=kill), driver, Mode.DISABLED, start_over=True)
    with pytest.raises(KilledError):
        roll(app, Killed(there), None, resume=True)
    assert W2 not in there.workers
    done = roll(app, driver, None, resume=True)
    assert (done.exit_code, set(there.workers)) == (ExitCode.OK, {W1, W2, W3}), done.problems
    assert set(there.workers.values()) == {"disabled"}


@pytest.mark.parametrize("written", [False, True])
def test_cut_off_while_a_dead_worker_is_set_a_second_run_ends_it(tmp_path: Path, written: bool) -> None:
    there, app, driver = one_died_becoming_enabled(tmp_path)

    class Killed(FakeDriver):
        def set_alone(self, app: App, worker: str, mode: Mode) -> DriverResult:
            if written:
                super().set_alone(app, worker, mode)
            raise KilledError

    with pytest.raises(KilledError):
        roll(app, Killed(there), Mode.DISABLED, start_over=True)
    assert (set(there.workers.values()), there.files[W2]) == ({"preparing"}, "disabled" if written else "enabled")
    done = roll(app, driver, None, resume=True)
    assert (done.exit_code, set(there.workers)) == (ExitCode.OK, {W1, W2, W3}), done.problems
    assert set(there.workers.values()) == {"disabled"}
    assert outcomes(done)[-3] == ("disabled", W2, "done")


def test_where_its_mode_cannot_be_set_nobody_else_is_changed_either(tmp_path: Path) -> None:
    """Its host may be gone with it: that is for a person to say."""
    there, app, _driver = one_died_becoming_enabled(tmp_path)

    class Unreachable(FakeDriver):
        def set_alone(self, _app: App, _worker: str, _mode: Mode) -> DriverResult:
            raise EosctlError("ssh: no route to host")

    stopped = roll(app, Unreachable(there), Mode.DISABLED, start_over=True)
    assert (stopped.exit_code, set(there.workers.values())) == (ExitCode.PARTIAL, {"preparing"})
    assert str(stopped.problems[0].hint).startswith(f"--accept-gone {W2} goes on without it")
    assert roll(app, Unreachable(there), None, resume=True, gone=frozenset({W2})).exit_code is ExitCode.OK
    assert set(there.workers.values()) == {"disabled"}


def test_a_worker_that_is_gone_for_good_is_given_up_by_name(tmp_path: Path) -> None:
    there, app, _driver = one_died_becoming_enabled(tmp_path)
    gone = frozenset({W2})
    with pytest.raises(UsageError, match="no upgrade of this group knows that worker") as caught:
        prepare_roll(app, back(gone=frozenset({"http://w9:8083"})), FakeDriver(there))
    assert W2 in str(caught.value.hint)
    with pytest.raises(RefusedError, match="it is a member of the group"):
        prepare_roll(app, back(gone=frozenset({W1})), FakeDriver(there))
    done = roll(app, FakeDriver(there), Mode.DISABLED, start_over=True, gone=gone)
    assert (done.exit_code, there.files[W2]) == (ExitCode.OK, "enabled"), "nobody touched it"
    assert W2 not in {worker for _mode, worker, _outcome in outcomes(done)}
    assert findings(verify_upgrade(there.app(tmp_path), Mode.DISABLED)) == []


def test_an_upgrade_goes_on_without_a_worker_that_is_given_up(tmp_path: Path) -> None:
    """Its own step was open: it could only be forgotten together with all that was done."""
    there, app, driver = one_died_becoming_enabled(tmp_path)
    done = roll(app, driver, None, resume=True, gone=frozenset({W2}))
    assert (done.exit_code, there.workers) == (ExitCode.OK, {W1: "enabled", W3: "enabled"}), done.problems
    assert verify_upgrade(there.app(tmp_path), Mode.ENABLED).exit_code is ExitCode.OK
