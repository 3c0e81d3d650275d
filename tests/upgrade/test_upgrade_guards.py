"""Whether a roll may begin, be resumed, or go on to its next pass, when things changed since it was last looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Event
from eosctl.errors import ExitCode, RefusedError, StalePlanError, UsageError
from eosctl.upgrade.drivers.commands import PrintDriver
from eosctl.upgrade.plan import make_plan
from eosctl.upgrade.roll.prepare import RollRequest, prepare_roll
from eosctl.upgrade.roll.report import plan_report
from eosctl.upgrade.roll.roll import apply_roll
from tests.fakes.rolling import W1, W2, W3, FakeDriver, RollWorld, outcomes, roll, world


def listening(app: App, there: RollWorld, message: str, happens: Callable[[], object]) -> App:
    """The App, and something that happens once when it tells `message`."""

    def listen(event: Event) -> None:
        if event.message == message and message not in [seen.message for seen in there.events]:
            happens()
        there.events.append(event)

    return replace(app, on_event=listen)


def test_a_gate_that_fails_while_the_plan_is_read_refuses_it(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    app = there.app(tmp_path)
    prepared = prepare_roll(app, RollRequest(Mode.ENABLED), FakeDriver(there))
    there.connector.fail()
    with pytest.raises(RefusedError, match=r"gate connectors_healthy fails: .*; nothing was written"):
        apply_roll(app, prepared)
    assert there.starts == []


def test_a_roll_that_another_run_brought_further_is_not_gone_on_with_as_planned(tmp_path: Path) -> None:
    """The step that was open is done by then, and another one is open: what was agreed to would be done twice."""
    there = world(w1="disabled", w2="disabled", w3="disabled")
    there.crashes.add(W2)
    app, driver = there.app(tmp_path), FakeDriver(there)
    roll(app, driver)
    agreed_to = prepare_roll(app, RollRequest(resume=True), driver)
    there.crashes.add(W3)
    roll(app, driver, None, resume=True)
    starts = list(there.starts)
    with pytest.raises(StalePlanError, match="the group changed since the plan was shown"):
        apply_roll(app, agreed_to)
    assert there.starts == starts


def test_no_pass_begins_while_a_gate_fails(tmp_path: Path) -> None:
    """The last step of the pass before had settled, and then a task failed."""
    there = world(w1="disabled", w2="disabled")
    last = f"{W1}: preparing, everything as before"
    app = listening(there.app(tmp_path), there, last, there.connector.fail)
    report = roll(app, FakeDriver(there))
    assert report.exit_code is ExitCode.PARTIAL
    assert report.problems[0].message.startswith("no worker may become enabled now: gate connectors_healthy fails: ")
    assert set(there.workers.values()) == {"preparing"}


def test_a_worker_that_is_not_in_the_plan_forbids_the_next_pass_whatever_its_mode(tmp_path: Path) -> None:
    """What it was started with, and whether it is meant to stay, nobody has looked at."""
    there = world(w1="disabled", w2="disabled")

    def join() -> None:
        there.files[W3] = "enabled"
        there.start(W3)
        there.settle()

    app = listening(there.app(tmp_path), there, f"{W1}: preparing, everything as before", join)
    report = roll(app, FakeDriver(there))
    assert report.problems[0].message == (
        f"no worker may become enabled now: {W3} joined the group since the plan was made"
    )
    assert [url for url, mode in there.starts if mode == "enabled"] == [W3]
    assert roll(there.app(tmp_path), FakeDriver(there), None, resume=True).exit_code is ExitCode.OK
    assert set(there.workers.values()) == {"enabled"}


def test_a_group_whose_only_worker_did_not_come_up_is_resumed(tmp_path: Path) -> None:
    """It has no members then, which no other roll could begin with."""
    there = world(w1="disabled")
    there.crashes.add(W1)
    app, driver = there.app(tmp_path), FakeDriver(there)
    assert roll(app, driver).exit_code is ExitCode.PARTIAL
    assert there.workers == {}
    assert roll(app, driver, None, resume=True).exit_code is ExitCode.OK
    assert there.workers == {W1: "enabled"}


def test_a_worker_that_froze_between_two_runs_forbids_to_go_on(tmp_path: Path) -> None:
    """Beside the one whose step is open, it would be the second that is down."""
    there = world(w1="disabled", w2="disabled", w3="disabled")
    there.crashes.add(W3)
    app, driver = there.app(tmp_path), FakeDriver(there)
    roll(app, driver)
    there.settle()
    there.connect.frozen.add(W1)
    report = plan_report(app, prepare_roll(app, RollRequest(resume=True), driver))
    assert report.exit_code is ExitCode.REFUSED
    (refusal,) = [problem for problem in report.problems if problem.code == "members_known"]
    assert W1 in refusal.message
    there.connect.frozen.clear()
    assert outcomes(roll(there.app(tmp_path), driver, None, resume=True))[0] == ("preparing", W2, "done_before")


def test_a_person_who_was_cut_off_is_told_again(tmp_path: Path) -> None:
    """Whoever resumes may not know what was asked for; the worker itself is not restarted by eosctl."""
    there = world(w1="enabled", w2="enabled")
    app = there.app(tmp_path)

    def interrupted(_wanted_s: float) -> None:
        raise KeyboardInterrupt

    clock = replace(app.clock, sleep_s=interrupted)
    assert roll(replace(app, clock=clock), PrintDriver(), Mode.PREPARING).exit_code is ExitCode.INTERRUPTED
    asked = [event.message for event in there.events if event.message.startswith("NOW: ")]
    assert len(asked) == 1

    def restart(url: str) -> None:
        there.files[url] = "preparing"
        there.stop(url)
        there.start(url)

    there.time.later(10, lambda: restart(W2))
    there.time.later(20, lambda: restart(W1))
    assert roll(app, PrintDriver(), None, resume=True).exit_code is ExitCode.OK
    told = [event.message for event in there.events if event.message.startswith("NOW: ")]
    assert told == [*asked * 2, asked[0].replace(W2, W1)]


def test_a_plan_leads_where_it_leads(tmp_path: Path) -> None:
    there = world(w1="disabled")
    app = there.app(tmp_path)
    plan = make_plan((), Mode.ENABLED, kafka_cluster_id="cluster-1", group_id="g")
    with pytest.raises(UsageError, match="the plan leads to enabled, not to preparing"):
        prepare_roll(app, RollRequest(Mode.PREPARING, plan=plan), FakeDriver(there))


def test_a_driver_looks_at_all_members_before_anything_is_changed(tmp_path: Path) -> None:
    """Also at those that are in the right mode already: what they are told to be is one more thing to know of them."""
    there = world(w1="enabled", w2="disabled")
    driver = FakeDriver(there)
    prepare_roll(there.app(tmp_path), RollRequest(Mode.ENABLED), driver)
    assert driver.checked == [(W1, W2)]
