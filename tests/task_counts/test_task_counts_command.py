"""`eosctl task-counts` as a person runs it: whole output, exit codes, help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.records import record_line
from tests.fakes.config_topic import config_records, created
from tests.fakes.config_world import ConfigWorld

WHERE = ("-b", "localhost:1", "-g", "g", "-u", "http://w1:8083")


def cluster(**changes: Any) -> ConfigWorld:
    """A healthy connector, a record that is too low, a deleted connector, a sink, a record as in the KIP's text."""
    there = ConfigWorld(
        records=config_records(
            ("session-key", {"key": "c2VjcmV0", "algorithm": "HmacSHA256", "creation-timestamp": 1}),
            *created("orders", 2, record=2),
            *created("payments", 3, record=1),
            *created("gone", 1, record=1),
            ("connector-gone", None),
            ("target-state-gone", None),
            *created("sink", 1, config={"connector.class": "FileStreamSinkConnector", "db.password": "hunter2"}),
            ("task-count-orders", {"tasks": 2}),
        ),
        known_ids=[f"g-{connector}-{task}" for connector in ("orders", "payments") for task in range(2)],
        connectors={"orders": "source", "payments": "source", "sink": "sink"},
        modes={"http://w1:8083": "enabled"},
        **changes,
    )
    there.brokers.state.open_transaction("g-payments-2", ("payments", 0))
    return there


@pytest.mark.parametrize(
    ("name", "args", "exit_code"),
    [
        ("list", ("list",), 0),
        ("show", ("show", "payments"), 0),
        ("validate", ("validate",), 3),
        ("replay", ("replay", "--topic"), 0),
    ],
)
@pytest.mark.parametrize("output", ["text", "json"])
def test_output(
    invoke: Any, golden: Callable[[str, str], None], name: str, args: tuple[str, ...], exit_code: int, output: str
) -> None:
    outcome = invoke("task-counts", *args, *WHERE, "-o", output, **cluster().surroundings)
    assert (outcome.exit_code, outcome.stderr) == (exit_code, "")
    assert "hunter2" not in outcome.stdout
    assert "c2VjcmV0" not in outcome.stdout
    golden(f"task-counts/{name}.{'json' if output == 'json' else 'txt'}", outcome.stdout)


def test_replay_wants_either_a_file_or_the_topic(invoke: Any, tmp_path: Path) -> None:
    file = tmp_path / "configs.ndjson"
    file.touch()
    assert invoke("task-counts", "replay").exit_code == 2
    assert invoke("task-counts", "replay", str(file), "--topic").exit_code == 2
    assert invoke("task-counts", "replay", str(tmp_path / "missing")).exit_code == 2


def test_replay_of_a_file_and_of_stdin_needs_no_cluster(invoke: Any, tmp_path: Path) -> None:
    text = "".join(record_line(record) + "\n" for record in cluster().records)
    file = tmp_path / "configs.ndjson"
    file.write_text(text, encoding="utf-8")
    from_file = invoke("task-counts", "replay", str(file), "-o", "json")
    from_stdin = invoke("task-counts", "replay", "-", "-o", "json", input=text)
    from_topic = invoke("task-counts", "replay", "--topic", *WHERE, "-o", "json", **cluster().surroundings)
    assert [each.stderr for each in (from_file, from_stdin, from_topic)] == ["", "", ""]
    states = [outcome.json()["data"]["state"] for outcome in (from_file, from_stdin, from_topic)]
    assert states[0] == states[1] == states[2]
    assert from_file.exit_code == 0


def test_the_text_of_a_replay_names_commits_that_came_before_their_config(invoke: Any) -> None:
    """Compaction left the config behind the tasks; only JSON had a word of it."""
    records = [
        ("task-orders-0", {"properties": {"a": "0"}}),
        ("commit-orders", {"tasks": 1}),
        ("connector-orders", {"properties": {"connector.class": "X", "name": "orders"}}),
    ]
    text = "".join(record_line(record) + "\n" for record in config_records(*records))
    state = invoke("task-counts", "replay", "-", "-o", "json", input=text).json()["data"]["state"]
    assert state["commits_without_connector"] == [1]
    assert "at offset 1: workers of 3.7.1" in invoke("task-counts", "replay", "-", input=text).stdout
    assert "at offset" not in invoke("task-counts", "replay", "-", input=text.partition("\n")[0] + "\n").stdout
