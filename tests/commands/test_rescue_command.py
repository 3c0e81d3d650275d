"""`eosctl rescue` and `eosctl task-counts write` as a person runs them: whole output, exit codes, the question."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.rescue_scene import Scene, rescue_scene, stop

Invoke = Any
Golden = Callable[[str, str], None]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with rescue_scene(tmp_path) as built:
        yield built


@pytest.fixture
def run(invoke: Invoke, scene: Scene) -> Invoke:
    """`eosctl ARGS…` on the scene."""

    def command(*args: str, **more: Any) -> Any:
        app = scene.app
        doors = {name: getattr(app, name) for name in ("open_transactions", "open_topics", "open_worker")}
        flags = ["-b", ",".join(scene.broker.bootstrap_servers), "-u", next(iter(scene.connect.modes)), "-g", "g"]
        return invoke(*args, *flags, doors=doors, clock=scene.time.clock(), **more)

    return command


def without_paths(text: str) -> str:
    """The text with the paths of backup and journal, which are others in every run, cut to their names."""
    text = re.sub(r"/\S*/journals/([a-z-]+)-\S+\.ndjson", r"JOURNALS/\1.ndjson", text)
    return re.sub(r"/\S*/backups/([a-z-]+)-\S+\.ndjson", r"BACKUPS/\1.ndjson", text)


@pytest.mark.parametrize("output", ["text", "json"])
def test_rescue(run: Invoke, golden: Golden, output: str) -> None:
    end = "json" if output == "json" else "txt"
    plan = run("rescue", "--connector", "c", "--dry-run", "-o", output)
    golden(f"rescue/plan.{end}", without_paths(plan.stdout))
    result = run("rescue", "--connector", "c", "--yes", "-o", output)
    golden(f"rescue/result.{end}", without_paths(result.stdout))
    nothing = run("rescue", "--connector", "c", "--yes")
    golden("rescue/nothing.txt", nothing.stdout)
    assert [each.exit_code for each in (plan, result, nothing)] == [0, 0, 0]


@pytest.mark.parametrize("output", ["text", "json"])
def test_write(run: Invoke, scene: Scene, golden: Golden, output: str) -> None:
    stop(scene)
    end = "json" if output == "json" else "txt"
    plan = run("task-counts", "write", "c", "--count", "5", "--dry-run", "-o", output)
    golden(f"task-counts/write-plan.{end}", plan.stdout)
    result = run("task-counts", "write", "c", "--count", "5", "--yes", "-o", output)
    golden(f"task-counts/write-result.{end}", without_paths(result.stdout))
    nothing = run("task-counts", "write", "c", "--count", "5", "--yes", "-o", "json")
    assert [each.exit_code for each in (plan, result, nothing)] == [0, 0, 0]
    assert nothing.json()["data"]["rows"][0]["outcome"] == "unchanged"
    assert "Connect can do this itself" in plan.stderr


@pytest.mark.parametrize("words", [("rescue", "--connector", "c"), ("task-counts", "write", "c", "--count", "5")])
@pytest.mark.parametrize(("answer", "can_ask"), [("n\n", True), ("", True), ("", False)])
def test_without_a_yes_nothing_is_written(
    run: Invoke, scene: Scene, words: tuple[str, ...], answer: str, can_ask: bool
) -> None:
    if words[0] == "task-counts":
        stop(scene)
    outcome = run(*words, input=answer, can_ask=can_ask)
    assert outcome.exit_code == 6
    assert scene.records() == []
    assert scene.broker.count("InitProducerId") == 0


def test_refusals_are_a_document_too(run: Invoke, scene: Scene) -> None:
    scene.connect.connectors["c"].failed = set()
    for words in (("rescue", "--connector", "c"), ("task-counts", "write", "c", "--count", "1")):
        outcome = run(*words, "--yes", "-o", "json")
        assert outcome.exit_code == 6
        document = json.loads(outcome.stdout)
        assert (document["status"], document["errors"][0]["code"]) == ("refused", "refused")
        assert document["errors"][0]["hint"]


@pytest.mark.parametrize("count", ["-1", "10001", "x"])
def test_an_impossible_count_is_a_usage_error(run: Invoke, count: str) -> None:
    assert run("task-counts", "write", "c", "--count", count).exit_code == 2
