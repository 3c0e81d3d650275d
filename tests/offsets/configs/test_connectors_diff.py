"""`eosctl connectors diff`: what a new config means, with its exit codes, on topics and workers in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.offsets.names import partition_for
from eosctl.errors import UnreachableError
from tests.conftest import Invoke, Outcome
from tests.fakes.offset_topics import GLOBAL, OWN, OffsetWorld

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
LIVE = {"connector.class": FILE_SOURCE, "file": "/data/a", "topic": "t", "tasks.max": "1"}
A = b'["c",{"filename":"/data/a"}]'


@pytest.fixture
def world() -> OffsetWorld:
    """Connector c has an offset of the one file of its config."""
    world = OffsetWorld()
    world.topics.add_topic(GLOBAL, 5, {"cleanup.policy": "compact"})
    world.topics.put(GLOBAL, A, b'{"position":7}')
    world.connect.add("c", LIVE)
    return world


def diff(
    invoke: Invoke, world: OffsetWorld, tmp_path: Path, changes: Mapping[str, str], *more: str, output: str = "json"
) -> Outcome:
    file = tmp_path / "c.json"
    live = world.connect.connectors["c"].config
    file.write_text(json.dumps({"name": "c", "config": {**live, "name": "c", **changes}}))
    words = ("connectors", "diff", str(file), *world.flags, *more, "-o", output)
    return invoke(*words, **world.surroundings)


def rows(outcome: Outcome) -> list[tuple[Any, str, Any]]:
    return [(row["source_partition"], row["status"], row["offset"]) for row in outcome.json()["data"]["rows"]]


def codes(outcome: Outcome) -> list[str]:
    return [each["code"] for each in outcome.json()["errors"]]


def test_what_does_not_differ_exits_0(invoke: Invoke, world: OffsetWorld, tmp_path: Path) -> None:
    outcome = diff(invoke, world, tmp_path, {})
    assert outcome.exit_code == 0, outcome.stderr
    assert rows(outcome) == [({"filename": "/data/a"}, "stays", {"position": 7})]
    assert outcome.json()["data"]["properties"] == []


def test_another_file_starts_over(invoke: Invoke, world: OffsetWorld, tmp_path: Path) -> None:
    outcome = diff(invoke, world, tmp_path, {"file": "/data/b"})
    assert outcome.exit_code == 3
    assert rows(outcome) == [
        ({"filename": "/data/a"}, "goes", {"position": 7}),
        ({"filename": "/data/b"}, "new", None),
    ]
    assert "starts_over" in codes(outcome)
    data = outcome.json()["data"]
    assert data["summary"]["starts_over"] is True
    assert data["errors"] == []
    [part] = data["properties"]
    assert (part["name"], part["change"], part["before"], part["after"]) == ("file", "changed", "/data/a", "/data/b")


def test_a_setting_of_connect_differs_and_nothing_becomes_of_offsets(
    invoke: Invoke, world: OffsetWorld, tmp_path: Path
) -> None:
    outcome = diff(invoke, world, tmp_path, {"tasks.max": "2"})
    assert outcome.exit_code == 3
    assert [status for _partition, status, _offset in rows(outcome)] == ["stays"]
    assert outcome.json()["data"]["summary"]["starts_over"] is False
    assert codes(outcome) == []


def test_an_unknown_class_exits_7(invoke: Invoke, world: OffsetWorld, tmp_path: Path) -> None:
    world.connect.add("c", {**LIVE, "connector.class": "com.example.Source"})
    outcome = diff(invoke, world, tmp_path, {"file": "/data/b"})
    assert outcome.exit_code == 7
    assert [status for _partition, status, _offset in rows(outcome)] == ["unknown"]
    assert outcome.json()["data"]["summary"]["starts_over"] is None
    assert diff(invoke, world, tmp_path, {"tasks.max": "2"}).exit_code == 7  # some have a source partition per task
    assert diff(invoke, world, tmp_path, {"errors.tolerance": "all"}).exit_code == 3


def test_without_an_offset_an_unknown_class_may_start_over_all_the_same(
    invoke: Invoke, world: OffsetWorld, tmp_path: Path
) -> None:
    world.topics.put(GLOBAL, A, None)
    world.connect.add("c", {**LIVE, "connector.class": "com.example.Source"})
    assert diff(invoke, world, tmp_path, {"tasks.max": "2"}).exit_code == 3
    outcome = diff(invoke, world, tmp_path, {"file": "/data/b"})
    assert (outcome.exit_code, rows(outcome)) == (7, [])
    assert outcome.json()["data"]["summary"]["starts_over"] is None


def test_offsets_in_a_topic_that_is_not_known_are_not_missing(
    invoke: Invoke, world: OffsetWorld, tmp_path: Path
) -> None:
    world.connect.add("c", {**LIVE, "offsets.storage.topic": "${env:TOPIC}"})
    outcome = diff(invoke, world, tmp_path, {"file": "/data/b"})
    assert outcome.exit_code == 3  # what it leaves behind is certain
    assert [status for _partition, status, _offset in rows(outcome)] == ["goes", "unknown"]
    assert outcome.json()["data"]["summary"]["starts_over"] is None


def test_a_reference_is_shown_and_not_guessed(invoke: Invoke, world: OffsetWorld, tmp_path: Path) -> None:
    outcome = diff(invoke, world, tmp_path, {"file": "${file:/x:path}", "db.password": "canary"})
    assert outcome.exit_code == 7
    found = {part["name"]: part["after"] for part in outcome.json()["data"]["properties"]}
    assert found == {"file": "${file:/x:path}", "db.password": "***"}
    text = diff(invoke, world, tmp_path, {"db.password": "canary"}, output="text")
    assert "+ db.password=***" in text.stdout
    assert "canary" not in text.stdout + text.stderr


def test_another_offsets_topic_without_the_offset_starts_over(
    invoke: Invoke, world: OffsetWorld, tmp_path: Path
) -> None:
    own = {"offsets.storage.topic": OWN}
    assert [status for _partition, status, _offset in rows(diff(invoke, world, tmp_path, own))] == ["new"]
    world.topics.add_topic(OWN, 5, {"cleanup.policy": "compact"})
    world.topics.put(OWN, A, b'{"position":7}')
    outcome = diff(invoke, world, tmp_path, own)
    assert [status for _partition, status, _offset in rows(outcome)] == ["stays"]
    assert outcome.json()["data"]["properties"][0]["meaning"] is not None
    world.topics.put(OWN, b'["c",{"filename":"/data/b"}]', b'{"position":1}')
    assert rows(diff(invoke, world, tmp_path, {**own, "file": "/data/b"})) == [
        ({"filename": "/data/a"}, "goes", {"position": 7}),
        ({"filename": "/data/b"}, "stays", None),
    ]
    unknown = diff(invoke, world, tmp_path, {"offsets.storage.topic": "${env:TOPIC}"})
    assert unknown.exit_code == 7


def test_an_offset_that_a_transaction_hides_is_not_missing(invoke: Invoke, world: OffsetWorld, tmp_path: Path) -> None:
    key = b'["c",{"filename":"/data/b"}]'
    world.topics.open_transaction(GLOBAL, partition_for(key, 5))
    world.topics.put(GLOBAL, key, b'{"position":1}')
    outcome = diff(invoke, world, tmp_path, {"file": "/data/b"})
    assert {partition["filename"]: status for partition, status, _offset in rows(outcome)} == {
        "/data/a": "goes",
        "/data/b": "stays",
    }


def test_a_worker_that_objects_is_heard(invoke: Invoke, world: OffsetWorld, tmp_path: Path) -> None:
    world.connect.add("c", {**LIVE, "connector.class": "com.example.Source"})
    outcome = diff(invoke, world, tmp_path, {"tasks.max": "many", "where": "x"})
    assert "config_not_valid" in codes(outcome)
    assert outcome.exit_code == 3


def test_a_worker_that_does_not_answer_validates_nothing(invoke: Invoke, world: OffsetWorld, tmp_path: Path) -> None:
    world.connect.fail_always("validate", UnreachableError("no answer"))
    outcome = diff(invoke, world, tmp_path, {"file": "/data/b"})
    assert outcome.exit_code == 3
    assert "config_not_validated" in codes(outcome)
    assert outcome.json()["data"]["errors"] is None


def test_a_worker_that_was_not_named_gets_no_config(invoke: Invoke, world: OffsetWorld, tmp_path: Path) -> None:
    asked: list[object] = []
    world.connect.before("validate", asked.append)
    world.topics.add_topic("connect-configs", 1)
    world.topics.put("connect-configs", b"connector-c", json.dumps({"properties": LIVE}).encode())
    file = tmp_path / "c.json"
    file.write_text(json.dumps({"name": "c", "config": {**LIVE, "file": "/data/b"}}))
    outcome = invoke("connectors", "diff", str(file), "-b", "memory:9092", "-g", "connect", "-o", "json",
                     **world.surroundings)  # fmt: skip
    assert (outcome.exit_code, asked) == (3, [])
    assert "config_not_validated" in codes(outcome)


def test_an_unknown_connector_and_a_sink(invoke: Invoke, world: OffsetWorld, tmp_path: Path) -> None:
    file = tmp_path / "d.json"
    file.write_text(json.dumps({"name": "d", "config": LIVE}))
    assert invoke("connectors", "diff", str(file), *world.flags, **world.surroundings).exit_code == 1
    world.connect.add("d", {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector"})
    assert invoke("connectors", "diff", str(file), *world.flags, **world.surroundings).exit_code == 6
    assert invoke("connectors", "diff", str(tmp_path / "none"), *world.flags, **world.surroundings).exit_code == 2
