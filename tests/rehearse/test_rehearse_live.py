"""Rehearsals on real brokers and workers: the source that is built in, and one that declares what it is not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline, Event
from eosctl.errors import ExitCode
from eosctl.rehearse.ground import Ground
from eosctl.rehearse.plan import RehearsalRequest, plan_rehearsal
from eosctl.rehearse.proof import audit_connector
from eosctl.rehearse.rows import FaultRow, FaultVerdict
from eosctl.rehearse.rules import GivenConnector
from eosctl.rehearse.run import rehearse_on
from eosctl.sandbox.stack import Stack
from eosctl.target import Target
from tests.conftest import Invoke
from tests.rehearse.rehearsing import rehearse, rows_of
from tests.sandbox_fixtures import PAIR, PATIENCE_S, rest, slow_config

pytestmark = pytest.mark.live


def left_behind(folder: Path) -> list[str]:
    """The processes that were started in a folder and still run, and sandboxes that are still there."""
    running = [
        path.name
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and str(folder).encode() in _command_line(path)
    ]
    sandboxes = folder / "state" / "eosctl" / "sandbox"
    return running + [path.name for path in sandboxes.iterdir() if path.is_dir()]


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_the_built_in_source_is_exactly_once(invoke: Invoke, tmp_path: Path) -> None:
    """Through the audit of all that it delivered; nothing of the sandbox is left."""
    page = tmp_path / "page.html"
    faults = ("--faults", "restart-tasks,stop-resume", "--workers", "1")
    outcome = rehearse(invoke, tmp_path, *faults, "--report", str(page))
    rows = rows_of(outcome)
    assert {name: row["verdict"] for name, row in rows.items()} == dict.fromkeys(
        ("restart-tasks", "stop-resume"), "exactly_once"
    ), outcome.stdout
    assert (outcome.exit_code, outcome.json()["data"]["summary"]["verdict"]) == (0, "exactly_once")
    assert all(row["recovered_ms"] is not None for row in rows.values())
    assert "exactly once" in page.read_text()
    assert left_behind(tmp_path) == []


@dataclass
class OnPair:
    """A stage that others have set: nothing is started, and nothing stopped."""

    ground: Ground

    def open(self) -> None:
        self.ground.await_well(within_s=PATIENCE_S, ready=lambda: True)

    def close(self) -> None:
        return


def test_a_source_that_declares_support_and_cheats_is_found_out(pair: Stack, tmp_path: Path, unique: str) -> None:
    """It says SUPPORTED, Connect believes it, and its tasks are RUNNING after every fault."""
    url, events = pair.urls(PAIR)[0], list[Event]()
    config = slow_config(f"topic-{unique}", tasks=1, poll_ms=200, cheat="null-offsets")
    topics = pair.state.topics[PAIR]
    target = Target(
        client=ClientSettings(bootstrap_servers=(pair.bootstrap_servers,)), connect_urls=tuple(pair.urls(PAIR)),
        group_id=PAIR, config_topic=topics["config"], offset_topic=topics["offset"],
    )  # fmt: skip
    app = App(target, Deadline.after(PATIENCE_S), tmp_path, on_event=events.append)
    ground = Ground(app, pair.directory, unique, config, group=PAIR)
    given = GivenConnector(unique, config)
    asked = RehearsalRequest(seed=1, connector=given, start_mode=Mode.ENABLED, faults=("restart-tasks",))
    rest(f"{url}/connectors/{unique}/config", "PUT", config)
    try:
        plan = plan_rehearsal(asked)
        report = rehearse_on(OnPair(ground), app, plan, audit=audit_connector, on_row=lambda _row: None)
    finally:
        rest(f"{url}/connectors/{unique}", "DELETE")
    (row,) = report.rows_of(FaultRow)
    assert (report.exit_code, row.verdict) == (ExitCode.FINDINGS, FaultVerdict.NOT_EXACTLY_ONCE), row
    assert "transaction_without_offsets" in {each.code for each in row.findings}
