"""The way back that an upgrade prints, and leaves in the audit log."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.workers.modes import Mode
from eosctl.errors import ExitCode
from eosctl.upgrade.roll.prepare import RollRequest, prepare_roll
from eosctl.upgrade.roll.report import plan_report
from eosctl.upgrade.roll.undo import origin_of
from tests.conftest import Invoke
from tests.fakes.rolling import W2, FakeDriver, roll, world

DISABLED, PREPARING, ENABLED = Mode.DISABLED, Mode.PREPARING, Mode.ENABLED


@pytest.mark.parametrize(
    ("modes", "origin"),
    [
        ([DISABLED, DISABLED], DISABLED),
        ([PREPARING, PREPARING], PREPARING),
        ([ENABLED, ENABLED], ENABLED),
        ([DISABLED, PREPARING], DISABLED),
        ([Mode.NOT_ENABLED, DISABLED], DISABLED),
        ([PREPARING, ENABLED], None),
        ([DISABLED, Mode.UNKNOWN], None),
        ([Mode.UNREACHABLE], None),
        ([DISABLED, Mode.ABSENT], DISABLED),
        ([Mode.ABSENT], None),
        ([], None),
    ],
)
def test_the_mode_to_go_back_to(modes: list[Mode], origin: Mode | None) -> None:
    assert origin_of(modes) is origin


@pytest.mark.parametrize(
    ("before", "target", "undo"),
    [
        ("disabled", ENABLED, "eosctl upgrade apply --to disabled --driver sandbox --sandbox 'my one'"),
        ("enabled", DISABLED, "eosctl upgrade apply --to enabled --driver sandbox --sandbox 'my one'"),
    ],
)
def test_an_upgrade_tells_its_way_back(tmp_path: Path, before: str, target: Mode, undo: str) -> None:
    """It had none, and `history` had nothing to show."""
    there = world(w1=before, w2=before)
    app, driver, options = there.app(tmp_path), FakeDriver(there), ("--sandbox", "my one")
    planned = plan_report(app, prepare_roll(app, RollRequest(target, driver_options=options), driver))
    assert planned.data.undo == f"{undo} --start-over", "whoever needs the plan's was killed"
    done = roll(app, driver, target, driver_options=options)
    assert (done.exit_code, done.data.undo) == (ExitCode.OK, undo)
    back = Mode(shlex.split(undo)[4])
    assert roll(app, driver, back).exit_code is ExitCode.OK
    assert set(there.workers.values()) == {before}


@pytest.mark.parametrize("ends", ["Ctrl-C", "crash"])
def test_the_hints_of_one_that_was_cut_off_can_be_pasted(tmp_path: Path, ends: str) -> None:
    """They left out what the driver needs, and said so; and gates would have had to be accepted again."""
    there = world(w1="disabled", w2="disabled")
    app, driver = there.app(tmp_path), FakeDriver(there)
    given: dict[str, Any] = {"driver_options": ("--sandbox", "my one"), "accepted": frozenset({"worker_health"})}
    go_on = "eosctl upgrade apply --resume --driver sandbox --sandbox 'my one' --accept-gate worker_health"
    if ends == "crash":
        there.crashes.add(W2)
    else:
        there.kill.error, there.kill.at = KeyboardInterrupt, 40
    hint = str(roll(app, driver, **given).problems[1].hint)
    assert hint.splitlines()[0] == f"Go on: {go_on}"
    assert hint.splitlines()[1].startswith("Go back: eosctl upgrade apply --to disabled --driver sandbox --sandbox")


def test_one_that_was_cut_off_goes_back_to_where_it_began(tmp_path: Path) -> None:
    """What the workers are then, half of them preparing, is not where they came from."""
    there = world(w1="disabled", w2="disabled")
    there.crashes.add(W2)
    app, driver = there.app(tmp_path), FakeDriver(there)
    stopped = roll(app, driver)
    assert stopped.exit_code is ExitCode.PARTIAL
    assert stopped.data.undo == "eosctl upgrade apply --to disabled --driver sandbox --start-over"
    there.start(W2)
    done = roll(app, driver, resume=True)
    assert (done.exit_code, done.data.undo) == (
        ExitCode.OK, "eosctl upgrade apply --to disabled --driver sandbox"
    )  # fmt: skip


def test_the_way_back_is_a_command_line(invoke: Invoke) -> None:
    """With the options of the driver, and names as a shell takes them."""
    there = world(w1="disabled", w2="disabled")
    where = ["-b", "localhost:1", "-g", "g"]
    given = ["--driver", "command", "--restart-command", "restart {host}", "--set-config-command", "set 'a b' {mode}"]
    planned = invoke(
        "upgrade", "apply", "--to", "enabled", *given, *where, "--dry-run", "-o", "json", **there.surroundings
    )
    undo = planned.json()["data"]["undo"]
    enabled = world(w1="enabled", w2="enabled")
    back = invoke(*shlex.split(undo)[1:], *where, "--dry-run", "-o", "json", **enabled.surroundings)
    assert back.exit_code == 0, back.stderr
    assert back.json()["data"]["summary"]["target_mode"] == "disabled"
    assert back.json()["data"]["rows"][0]["actions"] == ["run set 'a b' preparing", "run restart w2"]
