"""What doctor says of commands that were cut off on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.errors import ConnectError, ExitCode
from eosctl.ops.app import App
from eosctl.ops.doctor import examine
from eosctl.ops.journal import journal_of
from eosctl.ops.unfinished import unfinished_work
from tests.fakes.faults import KilledError
from tests.fakes.rolling import FakeDriver, roll
from tests.fakes.rolling import world as roll_world
from tests.fakes.switching import NAME, OWN, SwitchWorld, switch


def test_a_switch_that_failed_is_the_first_that_doctor_names(app: App, world: SwitchWorld) -> None:
    """It said nothing of a connector that a failed command had left STOPPED."""
    world.connect.fail_next("put_connector_config", ConnectError("500: try again"))
    assert switch(app, OWN).exit_code is ExitCode.PARTIAL
    first = examine(app).rows[0]
    assert (first["check"], first["code"], first["severity"], first["subject"]) == (
        ("unfinished", "switch_unfinished", "error", NAME)
    )
    assert "the connector is STOPPED, and was RUNNING before" in str(first["message"])
    words = f"eosctl offsets switch --connector {NAME} --to"
    assert first["fix"] == f"`{words} {OWN}` goes on, `{words} global` goes back."
    assert switch(app, OWN).exit_code is ExitCode.OK
    assert "switch_unfinished" not in [row["code"] for row in examine(app).rows]


def test_what_is_at_work_now_is_no_error(app: App, world: SwitchWorld) -> None:
    world.connect.fail_next("put_connector_config", ConnectError("500: try again"))
    switch(app, OWN)
    with journal_of(app, "offsets-switch", NAME, cluster_id=world.cluster_id).hold("it"):
        [finding] = unfinished_work(app, world.cluster_id, states=[(NAME, "STOPPED")])
    assert (finding.severity, finding.fix) == ("info", "Wait for it.")


def test_an_upgrade_that_was_cut_off_is_named(tmp_path: Path) -> None:
    there = roll_world(w1="disabled", w2="disabled")
    there.kill.at = 30
    app = there.app(tmp_path)
    with pytest.raises(KilledError):
        roll(app, FakeDriver(there))
    [finding] = unfinished_work(app, there.cluster_id, states=[])
    assert (finding.code, finding.severity) == ("upgrade_unfinished", "error")
    assert finding.fix.startswith("`eosctl upgrade apply --driver sandbox --resume` goes on")
    there.kill.at = None
    assert roll(app, FakeDriver(there), resume=True).exit_code is ExitCode.OK
    assert list(unfinished_work(app, there.cluster_id, states=[])) == []
