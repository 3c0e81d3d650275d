"""A worker whose file names another topic than its group's: a finding of every check, and a stop for every write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.doctor_scene import OFFSETS, WHERE, cluster

SAID = "other.properties: offset.storage.topic=elsewhere, and the group has connect-offsets: "


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """-w of the group's worker, and of one with another offsets topic."""
    given = []
    for name, topic in (("right", OFFSETS), ("again", OFFSETS), ("other", "elsewhere")):
        path = tmp_path / f"{name}.properties"
        path.write_text(
            f"bootstrap.servers=localhost:1\ngroup.id=g\nconfig.storage.topic=connect-configs\n"
            f"offset.storage.topic={topic}\nrest.advertised.host.name=w1\n"
        )
        given += ["-w", str(path)]
    return given


def findings(document: Any, words: tuple[str, ...]) -> list[tuple[str, str]]:
    if words[:2] == ("upgrade", "plan"):
        return [(gate["id"], gate["evidence"]) for gate in document["data"]["gates"] if gate["status"] == "fail"]
    return [(row["code"], row["message"]) for row in document["data"]["rows"] if row["severity"] == "error"]


@pytest.mark.parametrize(
    "words",
    [("doctor",), ("connectors", "check"), ("connectors", "check", "--connector", "orders"),
     ("upgrade", "plan", "--to", "enabled"), ("upgrade", "verify", "--to", "enabled")],
    ids=" ".join,
)  # fmt: skip
def test_a_worker_with_another_offsets_topic_is_a_finding(
    invoke: Invoke, files: list[str], words: tuple[str, ...]
) -> None:
    """It was a usage error, so that nothing was looked at; connectors check had no word for it."""
    there = cluster()
    done = invoke(*words, *WHERE, *files, "-o", "json", **there.surroundings)
    said = [evidence for code, evidence in findings(done.json(), words) if code == "worker_files"]
    assert [SAID in each for each in said] == [True], done.stdout
    assert done.exit_code == 3
    assert "warning: the worker configs disagree on offset.storage.topic" in done.stderr


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_nothing_is_written_where_the_files_disagree(invoke: Invoke, files: list[str], more: tuple[str, ...]) -> None:
    there = cluster()
    line = ("offsets", "set", "--connector", "orders", "--partition", '{"f":"a"}', "--offset", '{"n":1}')
    how = ("--via", "topic", "--force-running", *(more or ("--yes",)))
    done = invoke(*line, *how, *WHERE, *files, **there.surroundings)
    assert (done.exit_code, there.topics.writes) == (0 if more else 2, 0)
    assert "Name the group's with --config-topic or --offset-topic" in done.stderr
    named = invoke(*line, *how, *WHERE, *files, "--offset-topic", OFFSETS, "-o", "json", **there.surroundings)
    envelope_of(named, "offsets-set-plan" if more else "offsets-set-result")
    assert there.topics.writes == (0 if more else 1)
