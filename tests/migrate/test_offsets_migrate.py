"""`eosctl offsets migrate` and `verify` as typed: what is refused before Spark starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.offsets.migration import ConnectorRoute, MigrationPlan, PlannedTopic, Tally, plan_file_text
from eosctl.core.offsets.views import Policy

PLAN = MigrationPlan(
    cluster_id="cluster",
    group_id="g",
    policy=Policy.KEEP_TARGET,
    sources=(PlannedTopic("connect-offsets", "id", 25, 1),),
    targets=(PlannedTopic("offsets-a", None, 25, 1),),
    routes=(ConnectorRoute("a", "a", "offsets-a"),),
    tally=Tally(1, 0, 0, 0, 0, 1, 0, 0, {"write": 1, "delete": 0, "keep": 0, "conflict": 0}),
    snapshot_base="/nowhere",
    sample=(
        {
            "key": '["a",{"f":"x"}]',
            "connector": "a",
            "source_partition": {"f": "x"},
            "action": "write",
            "reason": "missing",
            "before": None,
            "after": {"position": 1},
            "target": {"topic": "offsets-a", "partition": 3},
        },
    ),
)


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(plan_file_text(PLAN))
    return path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "which connectors?"),
        (["--all", "--connector", "a"], "which connectors?"),
        (["--all", "--rename", "a"], "not of the form"),
        (["--all", "--rename", "a=b", "--rename", "a=c"], "twice"),
        (["--all", "--conflict", "guess"], "keep-target"),
        (["--plan", "PLAN", "--all"], "--plan can't be combined with planning options"),
        (["--plan", "PLAN", "--plan-out", "x"], "--plan can't be combined with planning options"),
        (["--plan", "missing.json"], "cannot read missing.json"),
    ],
)
def test_usage(invoke: Any, plan_file: Path, words: list[str], message: str) -> None:
    words = [str(plan_file) if word == "PLAN" else word for word in words]
    outcome = invoke("offsets", "migrate", "-b", "127.0.0.1:1", *words)
    assert outcome.exit_code == 2
    assert message in outcome.stderr


def test_a_plan_is_shown_and_refused_without_a_terminal(invoke: Any, plan_file: Path) -> None:
    outcome = invoke("offsets", "migrate", "-b", "127.0.0.1:1", "--plan", str(plan_file))
    assert outcome.exit_code == 6
    assert 'write   a          {"f":"x"}' in outcome.stderr
    assert "there is no terminal" in outcome.stderr


def test_a_plan_without_knowing_who_runs_is_refused(invoke: Any, plan_file: Path) -> None:
    outcome = invoke("offsets", "migrate", "-b", "127.0.0.1:1", "--plan", str(plan_file), "--yes")
    assert outcome.exit_code == 6
    assert "--workers-down" in outcome.stderr


def test_dry_run_of_a_plan_file(invoke: Any, plan_file: Path) -> None:
    outcome = invoke("offsets", "migrate", "-b", "127.0.0.1:1", "--plan", str(plan_file), "--dry-run", "-o", "json")
    assert outcome.exit_code == 0
    document = outcome.json()
    assert document["kind"] == "offsets-migrate-plan"
    assert document["data"]["summary"]["counts"] == {"write": 1, "delete": 0, "keep": 0, "conflict": 0}
    assert document["data"]["plan"] == PLAN.digest()
    assert document["data"]["rows"] == [json.loads(json.dumps(row)) for row in PLAN.sample]


@pytest.mark.parametrize("command", [["migrate", "--plan"], ["verify"]])
def test_a_changed_plan_is_no_plan(invoke: Any, plan_file: Path, command: list[str]) -> None:
    plan_file.write_text(plan_file.read_text().replace("offsets-a", "offsets-b"))
    outcome = invoke("offsets", *command, str(plan_file), "-b", "127.0.0.1:1")
    assert outcome.exit_code == 2
    assert "digest does not match" in outcome.stderr
