"""`eosctl upgrade plan` as a person runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eosctl.core.records import TopicDescription
from tests.fakes.config_cluster import CONFIG_TOPIC, FakeCluster, config_records, created

WHERE = ("-b", "localhost:1", "-g", "g")


def cluster(mode: str) -> FakeCluster:
    """Two workers in `mode`, with a source connector that has a property of the wrong name."""
    compact = {"cleanup.policy": "compact"}
    return FakeCluster(
        records=config_records(*created("orders", 1, record=1)),
        topics={
            CONFIG_TOPIC: TopicDescription(CONFIG_TOPIC, "id", 1, 3, compact),
            "connect-offsets": TopicDescription("connect-offsets", "id", 25, 1, compact),
        },
        connectors={"orders": "source"},
        configs={"orders": {"offsets.topic": "mine"}},
        workers={"http://w1:8083": mode, "http://w2:8083": mode},
    )


@pytest.mark.parametrize(("name", "mode", "target"), [("up", "disabled", "enabled"), ("back", "enabled", "disabled")])
@pytest.mark.parametrize("output", ["text", "json"])
def test_output(
    invoke: Any, golden: Callable[[str, str], None], name: str, mode: str, target: str, output: str
) -> None:
    outcome = invoke("upgrade", "plan", "--to", target, *WHERE, "-o", output, doors=cluster(mode).doors())
    assert (outcome.exit_code, outcome.stderr) == (3, "")
    golden(f"upgrade/{name}.{'json' if output == 'json' else 'txt'}", outcome.stdout)


def test_a_plan_without_a_failing_gate_exits_0(invoke: Any) -> None:
    good = cluster("disabled")
    good.configs = {}
    assert invoke("upgrade", "plan", "--to", "enabled", *WHERE, doors=good.doors()).exit_code == 0


def test_a_target_has_to_be_named_and_known(invoke: Any) -> None:
    assert invoke("upgrade", "plan", *WHERE).exit_code == 2
    assert invoke("upgrade", "plan", "--to", "on", *WHERE).exit_code == 2
