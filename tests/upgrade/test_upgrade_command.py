"""`eosctl upgrade plan` as a person runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted

WHERE = ("-b", "localhost:1", "-g", "g")
WRONG_NAME = {"offsets.topic": "mine"}


def cluster(mode: str, **config: str) -> ConfigWorld:
    """Two workers in `mode`, with a source connector."""
    return ConfigWorld(
        records=config_records(*created("orders", 1, record=1)),
        described=[compacted(CONFIG_TOPIC, 1), compacted("connect-offsets", 25, replication_factor=1)],
        connectors={"orders": "source"},
        configs={"orders": config},
        modes={"http://w1:8083": mode, "http://w2:8083": mode},
    )


@pytest.mark.parametrize(("name", "mode", "target"), [("up", "disabled", "enabled"), ("back", "enabled", "disabled")])
@pytest.mark.parametrize("output", ["text", "json"])
def test_output(
    invoke: Any, golden: Callable[[str, str], None], name: str, mode: str, target: str, output: str
) -> None:
    outcome = invoke(
        "upgrade", "plan", "--to", target, *WHERE, "-o", output, **cluster(mode, **WRONG_NAME).surroundings
    )
    assert (outcome.exit_code, outcome.stderr) == (3, "")
    golden(f"upgrade/{name}.{'json' if output == 'json' else 'txt'}", outcome.stdout)


def test_a_plan_without_a_failing_gate_exits_0(invoke: Any) -> None:
    good = cluster("disabled")
    assert invoke("upgrade", "plan", "--to", "enabled", *WHERE, **good.surroundings).exit_code == 0


def test_a_target_has_to_be_named_and_known(invoke: Any) -> None:
    assert invoke("upgrade", "plan", *WHERE).exit_code == 2
    assert invoke("upgrade", "plan", "--to", "on", *WHERE).exit_code == 2


@pytest.mark.parametrize("command", ["plan", "verify"])
def test_where_kubernetes_is_means_nothing_without_a_workload(invoke: Any, command: str) -> None:
    outcome = invoke("upgrade", command, "--to", "enabled", "--namespace", "kafka", *WHERE)
    assert (outcome.exit_code, "--namespace needs --workload" in outcome.stderr) == (2, True), outcome


def test_gates_that_pass_are_in_wide_and_in_json(invoke: Any) -> None:
    """Text listed all, twenty-eight of which said that they pass or do not matter."""
    there = cluster("disabled", **WRONG_NAME)
    text, wide, document = (
        invoke("upgrade", "plan", "--to", "enabled", "-o", output, *WHERE, **there.surroundings)
        for output in ("text", "wide", "json")
    )
    gates = {each["id"]: each["status"] for each in document.json()["data"]["gates"]}
    passed = [name for name, status in gates.items() if status == "pass"]
    assert len(passed) > 20
    assert [name for name in passed if f"{name}: " in text.stdout] == []
    assert [name for name in gates if f"{name}: " not in wide.stdout] == []
    assert [name for name in gates if name not in passed and f"{name}: " not in text.stdout] == []
    assert f"{len(passed)} of {len(gates)} pass (-o wide shows them)" in text.stdout
