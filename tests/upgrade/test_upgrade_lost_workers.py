"""`upgrade apply` while workers freeze, stay away, join, or come back as something else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Event, Standing
from eosctl.errors import ConnectError, EosctlError, ExitCode, UnreachableError
from eosctl.report import Report
from eosctl.upgrade.drivers import DriverResult
from eosctl.upgrade.roll.prepare import RollRequest, prepare_roll
from eosctl.upgrade.roll.report import plan_report
from eosctl.upgrade.rows import UnderWayPart
from eosctl.upgrade.status import upgrade_status
from tests.fakes.faults import Call
from tests.fakes.rolling import W1, W2, W3, FakeDriver, outcomes, roll, world


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
    assert {row.worker: (row.mode, row.roll) for row in status.rows} == {
        W1: ("not_enabled", "not begun"),
        W2: ("preparing", "brought to preparing"),
        W3: ("absent", "under way to preparing"),
    }
    assert status.data.roll.under_way == UnderWayPart(mode=Mode.PREPARING, workers=[W3])
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

    def freeze(_call: Call) -> None:
        if len(there.starts) == 1 and W2 in there.workers:
            there.connect.frozen.add(who)

    there.connect.after("join" if state == "PreparingRebalance" else "rebalance", freeze)
    app, driver = there.app(tmp_path), FakeDriver(there)
    failed = roll(app, driver)
    assert failed.exit_code is ExitCode.PARTIAL
    assert [outcome for *_where, outcome in outcomes(failed)] == ["failed", *["not_reached"] * 5]
    awaited = f"{who} is unreachable" if state == "Stable" else f"the group is {state}; no answer from {who}"
    assert failed.problems[0].message == f"{W2}: not settled after 60 s; still waiting: {awaited}"
    assert there.time.now_s < 60 + 20, "one look more at the most"
    assert f"{W2}: waiting: {awaited}" in [event.message for event in there.events]
    there.connect.frozen.clear()
    there.settle()
    assert roll(there.app(tmp_path), driver, None, resume=True).exit_code is ExitCode.OK
    assert set(there.workers.values()) == {"enabled"}


def test_a_silent_worker_is_named_also_while_another_is_not_back(tmp_path: Path) -> None:
    there = world(w1="enabled", w2="enabled")

    class Lazy(FakeDriver):
        """Says that it has restarted the worker; meanwhile another one freezes."""

        def bring(self, _app: App, _workers: Sequence[str], _mode: Mode) -> DriverResult:
            there.connect.frozen.add(W1)
            return DriverResult("restarted")

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
            there.connect.frozen.add(W1)
        elif thaws and event.message == f"{W3}: not yet restarted, waiting: no answer from {W1}":
            there.connect.frozen.clear()

    done = roll(replace(app, on_event=listen), driver)
    waits = [event.standings for event in there.events if event.message.startswith(f"{W3}: not yet restarted")]
    assert waits == [(Standing(W3, "preparing", "to come"),)], "a line of the live table"
    if thaws:
        assert (done.exit_code, set(there.workers.values())) == (ExitCode.OK, {"enabled"})
        return
    assert done.exit_code is ExitCode.PARTIAL
    assert there.starts == [(W2, "preparing")]
    assert done.problems[0].message == f"{W3} was not restarted: no answer from {W1}, for 60 s"
    there.connect.frozen.clear()
    there.settle()
    assert roll(there.app(tmp_path), driver, None, resume=True).exit_code is ExitCode.OK
    assert [mode for _url, mode in there.starts] == ["preparing"] * 3 + ["enabled"] * 3


def test_the_worker_whose_turn_it_is_need_not_answer(tmp_path: Path) -> None:
    """To restart it is what helps; only the others must be well."""
    there = world(w1="disabled", w2="disabled", w3="disabled")

    def listen(event: Event) -> None:
        there.events.append(event)
        if event.message == f"{W2}: preparing, everything as before":
            there.connect.frozen.add(W3)

    there.connect.after("stop_worker", lambda call: there.connect.frozen.discard(str(call.what[0])))
    assert roll(replace(there.app(tmp_path), on_event=listen), FakeDriver(there)).exit_code is ExitCode.OK
    assert not [event.message for event in there.events if "not yet restarted" in event.message]


def test_nobody_is_restarted_in_the_middle_of_a_rebalance(tmp_path: Path) -> None:
    """Nobody knows then who leads: the leader was taken for one like the others, and not left to the end."""
    there = world(w1="disabled", w2="disabled", w3="disabled")
    waits = f"{W1}, {W3}: not yet restarted, waiting: the group is PreparingRebalance"

    def listen(event: Event) -> None:
        there.events.append(event)
        if event.message == f"{W2}: preparing, everything as before":
            there.connect.rebalance(12)
        elif event.message == waits:
            assert [url for url, _mode in there.starts] == [W2]

    assert roll(replace(there.app(tmp_path), on_event=listen), FakeDriver(there)).exit_code is ExitCode.OK
    assert waits in [event.message for event in there.events]
    assert [url for url, _mode in there.starts][:3] == [W2, W3, W1]


def test_a_worker_that_comes_back_in_another_mode_stops_the_roll(tmp_path: Path) -> None:
    """Its configuration came from elsewhere: waiting would not change it."""
    there = world(w1="enabled", w2="enabled")
    report = roll(there.app(tmp_path), FakeDriver(there, forgets={W2}), Mode.PREPARING)
    assert report.exit_code is ExitCode.PARTIAL
    assert "gate mode_proven: http://w2:8083 is back, and enabled instead of preparing" in report.problems[0].message
    assert outcomes(report) == [("preparing", W2, "failed"), ("preparing", W1, "not_reached")]
    assert there.time.now_s < 5
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
            there.connect.modes[W3] = there.files[W3] = "disabled"

    there.after_start.append(join)
    app, driver = there.app(tmp_path), FakeDriver(there)
    stopped = roll(app, driver)
    assert stopped.exit_code is ExitCode.PARTIAL
    assert "no worker may become enabled now: http://w3:8083 is not_enabled" in stopped.problems[0].message
    assert "enabled" not in there.workers.values()
    assert roll(app, driver, resume=True).exit_code is ExitCode.OK
    assert set(there.workers.values()) == {"enabled"}
    assert there.starts[2] == (W3, "preparing")


def test_a_worker_restarted_in_another_mode_between_two_runs_is_brought_there_again(tmp_path: Path) -> None:
    """What a former run brought it to counts only while it is the same member: beside it W1 would become enabled."""
    there = world(w1="disabled", w2="disabled", w3="disabled")
    there.crashes.add(W3)
    app, driver = there.app(tmp_path), FakeDriver(there)
    roll(app, driver)
    assert modes(upgrade_status(app))[W2] == "preparing"
    there.stop(W2)
    there.files[W2] = "disabled"
    there.start(W2)
    assert modes(upgrade_status(app))[W2] == "not_enabled"
    assert roll(app, driver, None, resume=True).exit_code is ExitCode.OK
    assert [mode for url, mode in there.starts if url == W2] == ["preparing", "disabled", "preparing", "enabled"]


def modes(status: Report) -> dict[str, str]:
    return {str(row.worker): str(row.mode) for row in status.rows}


def test_a_worker_lost_between_two_runs_forbids_to_go_on(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled", w3="disabled")
    there.crashes.add(W3)
    app, driver = there.app(tmp_path), FakeDriver(there)
    roll(app, driver)
    there.stop(W2)
    report = plan_report(app, prepare_roll(app, RollRequest(resume=True), driver))
    assert report.exit_code is ExitCode.REFUSED
    assert any(W2 in problem.message for problem in report.problems)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("root", ConnectError("GET / answered 404")),
        ("root", UnreachableError("no answer in time")),
    ],
)
def test_an_answer_that_is_missing_for_a_moment_between_the_passes_is_waited_for(
    tmp_path: Path, call: str, error: EosctlError
) -> None:
    """`the version is not known` of a worker that had just come back ended the roll in the middle, with exit 7."""
    there = world(w1="disabled", w2="disabled")
    silent_until_s: list[float] = []

    def listen(event: Event) -> None:
        there.events.append(event)
        if event.message == f"{W1}: preparing, everything as before":
            silent_until_s.append(there.time.now_s + 8.0)

    def be_silent(made: Call) -> None:
        if made.what[0] == W1 and silent_until_s and there.time.now_s < silent_until_s[0]:
            raise error

    there.connect.before(call, be_silent)
    done = roll(replace(there.app(tmp_path), on_event=listen), FakeDriver(there))
    assert (done.exit_code, set(there.workers.values())) == (ExitCode.OK, {"enabled"})
    assert [event.message for event in there.events if event.message.startswith("waiting: gate ")]


def test_an_answer_that_stays_away_ends_the_roll_when_its_time_is_over(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    silent: list[bool] = []

    def listen(event: Event) -> None:
        silent.extend([True] if event.message == f"{W1}: preparing, everything as before" else [])

    def be_silent(made: Call) -> None:
        if made.what[0] == W1 and silent:
            raise ConnectError("GET / answered 404")

    there.connect.before("root", be_silent)
    stopped = roll(replace(there.app(tmp_path), on_event=listen), FakeDriver(there))
    assert stopped.exit_code is ExitCode.PARTIAL
    assert f"the version of {W1} is not known" in stopped.problems[0].message
    assert "enabled" not in there.workers.values()
    assert 60 <= there.time.now_s < 120
