"""A real worker: what `connectors diff` says before a config is changed is what happens, and doctor names it after."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eosctl.kafka.topics.store import KafkaTopicClient
from tests.conftest import Invoke, Outcome
from tests.sandbox_fixtures import FileSource, once_there

pytestmark = pytest.mark.live
CHANGED = "source_partitions_changed"


def statuses(outcome: Outcome) -> dict[str, str]:
    return {row["source_partition"]["filename"]: row["status"] for row in outcome.json()["data"]["rows"]}


def test_what_is_said_before_is_what_happens(
    topics: KafkaTopicClient, invoke: Invoke, target_flags: list[str], file_source: FileSource, tmp_path: Path
) -> None:
    def diff(**changes: str) -> Outcome:
        file = tmp_path / "connector.json"
        file.write_text(json.dumps({"name": file_source.name, "config": {**file_source.config(), **changes}}))
        return invoke(*target_flags, "connectors", "diff", str(file), "-o", "json")

    def found() -> list[Mapping[str, Any]]:
        rows = invoke(*target_flags, "doctor", "-o", "json").json()["data"]["rows"]
        return [row for row in rows if (row["subject"], row["code"]) == (file_source.name, CHANGED)]

    def delivered(count: int) -> int:
        return len(once_there(count, lambda: topics.read(file_source.topic).records))

    old = str(file_source.path)
    file_source.append("one", "two")
    file_source.put()
    file_source.wait_position(8)
    assert delivered(2) == 2
    assert diff().exit_code == 0
    harmless = diff(**{"tasks.max": "2"})
    assert (harmless.exit_code, statuses(harmless), harmless.json()["data"]["errors"]) == (3, {old: "stays"}, [])
    assert "config_not_valid" in [each["code"] for each in diff(**{"tasks.max": "0"}).json()["errors"]]
    file_source.put(**{"errors.tolerance": "all"})
    assert found() == []

    moved = file_source.path.with_name(f"{file_source.path.name}-moved")
    shutil.copy(old, moved)
    outcome = diff(file=str(moved))
    assert (outcome.exit_code, statuses(outcome)) == (3, {old: "goes", str(moved): "new"})
    file_source.put(file=str(moved))
    assert delivered(4) == 4  # it started over
    file_source.wait_position(8)
    [row] = found()
    assert row["severity"] == "warning"
    assert row["evidence"]["properties"] == ["file"]
    assert row["evidence"]["left_behind"] == [{"filename": old}]
    assert row["evidence"]["source_partitions"] == [{"filename": str(moved)}]
    back = diff(file=old)
    assert statuses(back) == {old: "stays", str(moved): "goes"}
