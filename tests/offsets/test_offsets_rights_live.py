"""An offsets write without the right to the transactional id: nothing is written, and what grants it is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined]  # not listed as re-exported

from tests.secure_user import Scene

pytestmark = pytest.mark.live


def test_a_write_names_the_transactional_id_that_it_may_not_use(scene: Scene, tmp_path: Path) -> None:
    topic = scene.topic(f"{scene.unique}-offsets", **{"cleanup.policy": "compact"})
    scene.grant(ResourceType.TOPIC, topic, "READ")
    path = tmp_path / "offsets.ndjson"
    line = {"topic": topic, "partition": 0, "key": f'["{scene.unique}",{{"f":"a"}}]', "value": '{"n":1}'}
    path.write_text(json.dumps(line) + "\n")
    command = ["offsets", "import", str(path), "--store", topic, "-g", scene.unique, "--force-running", "--yes"]
    refused = scene.run(*command, "-o", "json")
    assert refused.exit_code == 5, refused.stderr
    document = refused.json()
    assert [row["outcome"] for row in document["data"]["rows"]] == ["failed"]
    assert [error["code"] for error in document["errors"]] == ["not_authorized"]
    assert f"TransactionalId eosctl-offsets-{scene.unique}-writer" in document["errors"][0]["message"]
    assert scene.super("offsets", "export", "--store", topic).stdout == ""

    scene.apply_hint(refused, "WRITE on TransactionalId")
    no_topic = scene.run(*command, "-o", "json")
    assert (no_topic.exit_code, no_topic.json()["errors"][0]["code"]) == (5, "not_authorized"), no_topic.stderr
    scene.apply_hint(no_topic, "WRITE on Topic")
    allowed = scene.run(*command, "-o", "json")
    assert allowed.exit_code == 0, allowed.stderr
    assert allowed.json()["data"]["summary"]["written"] == 1
