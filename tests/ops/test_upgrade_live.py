"""The plan for two real workers that are disabled, followed step by step until both are enabled."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.core.upgrade import Mode
from eosctl.core.worker_config import parse_worker_config
from eosctl.deadline import Deadline
from eosctl.errors import ExitCode
from eosctl.ops.app import App
from eosctl.ops.upgrade import plan_upgrade
from eosctl.profiles import Target
from eosctl.report import Report
from eosctl.sandbox.settings import Eos, GroupSpec, StackSpec
from eosctl.sandbox.stack import Stack
from tests.sandbox_fixtures import rest, wait_until

pytestmark = pytest.mark.live

GROUP = "rolling"


@pytest.fixture
def rolling(tmp_path: Path) -> Iterator[Stack]:
    """A broker and two workers, both disabled."""
    group = GroupSpec(GROUP, (Eos.DISABLED, Eos.DISABLED))
    stack = Stack.up(StackSpec(groups=(group,)), tmp_path / "stack", name="rolling", environ=os.environ)
    try:
        yield stack
    finally:
        stack.down()


def plan(stack: Stack, *, files: bool) -> Report:
    """A plan to `enabled`, made while the group is stable."""
    configs = [Path(node.config) for node in stack.state.of_kind("worker")] if files else []
    target = Target(
        client=ClientSettings(bootstrap_servers=(stack.bootstrap_servers,)),
        group_id=GROUP,
        config_topic=f"{GROUP}-configs",
        offset_topic=f"{GROUP}-offsets",
        worker_configs=tuple(parse_worker_config(path.read_text(), source=str(path)) for path in configs),
    )

    def stable_plan() -> Any:
        app = App(target=target, deadline=Deadline.after(60), state_dir=Path("unused"))
        report = plan_upgrade(app, Mode.ENABLED)
        known = sum(bool(row["leader"]) for row in report.rows) == 1 and len(report.rows) == 2
        return known and gate(report, "connectors_healthy") == "pass" and report

    report = wait_until(stable_plan, what="a stable group of two workers with a healthy connector")
    assert isinstance(report, Report)
    return report


def gate(report: Report, gate_id: str) -> str:
    gates = report.data["gates"]
    assert isinstance(gates, list)
    return str({each["id"]: each["status"] for each in gates}[gate_id])


def passes(report: Report) -> list[tuple[str, list[str]]]:
    listed = report.data["passes"]
    assert isinstance(listed, list)
    return [(each["mode"], [step["worker"] for step in each["steps"]]) for each in listed]


def follow(stack: Stack, mode: str, workers: list[str]) -> None:
    """Restarts the workers in the order of the plan, each in the mode of the pass."""
    for url in workers:
        (node,) = [each for each in stack.state.of_kind("worker") if each.address == url]
        stack.restart_node(node.name, mode=Eos(mode))


def test_two_disabled_workers_become_enabled_by_following_the_plan(rolling: Stack, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("one\n", encoding="utf-8")
    config = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(path), "topic": "t"}
    rest(f"{rolling.urls(GROUP)[0]}/connectors/c/config", "PUT", config)

    first = plan(rolling, files=False)
    leader = next(str(row["worker"]) for row in first.rows if row["leader"])
    other = next(str(row["worker"]) for row in first.rows if not row["leader"])
    assert [row["mode"] for row in first.rows] == ["not_enabled", "not_enabled"]
    assert passes(first) == [("preparing", [other, leader]), ("enabled", [other, leader])]
    assert (first.exit_code, gate(first, "connector_support")) == (ExitCode.OK, "pass")

    follow(rolling, *passes(first)[0])
    second = plan(rolling, files=True)
    assert [row["mode"] for row in second.rows] == ["preparing", "preparing"]
    assert [mode for mode, _workers in passes(second)] == ["enabled"]

    follow(rolling, *passes(second)[0])
    done = plan(rolling, files=False)
    assert [row["mode"] for row in done.rows] == ["enabled", "enabled"]
    assert (passes(done), done.exit_code, gate(done, "modes_proven")) == ([], ExitCode.OK, "pass")
