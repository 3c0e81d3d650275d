"""kill -9 of an offsets write on a real broker: all of it is there or nothing, and the next run says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eosctl.kafka.topic_store import KafkaTopicStore
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke

pytestmark = pytest.mark.live

OFFSETS = 8_000


def test_all_of_it_or_nothing(
    stack: Stack, topics: KafkaTopicStore, invoke: Invoke, unique: str, tmp_path: Path
) -> None:
    topic, path = f"killed-{unique}", tmp_path / "offsets.ndjson"
    topics.create(topic, partitions=5, replication_factor=1, config={"cleanup.policy": "compact"})
    keys = [f'["{unique}",{{"f":{number}}}]' for number in range(OFFSETS)]
    records = [{"topic": topic, "partition": 0, "key": key, "value": "{}"} for key in keys]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    where = ["-b", stack.bootstrap_servers, "-g", unique]
    command = [*where, "offsets", "import", str(path), "--store", topic, "--force-running", "--yes", "-o", "json"]
    _kill_in_the_middle(command, topics, topic, state=tmp_path / "state")

    ended = invoke(*where, "fence", f"eosctl-offsets-{unique}-writer", "--yes")
    assert ended.exit_code == 0, ended.stderr
    assert len(topics.read(topic, newest_per_key=True).records) in (0, OFFSETS)

    again = invoke(*command)
    assert again.exit_code == 0, again.stderr
    assert "offsets-import of" in again.stderr
    assert "was cut off before its end was seen" in again.stderr
    assert again.json()["data"]["summary"].get("written", 0) in (0, OFFSETS), "all was to be done still, or nothing"
    assert len(topics.read(topic, newest_per_key=True).records) == OFFSETS


def _kill_in_the_middle(command: list[str], topics: KafkaTopicStore, topic: str, *, state: Path) -> None:
    """Kills the process as soon as the topic holds anything, committed or not."""
    environ = {**os.environ, "XDG_STATE_HOME": str(state)}
    with subprocess.Popen(
        [sys.executable, "-m", "eosctl", *command],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        deadline_s = time.monotonic() + 60
        while not any(bound.end for bound in topics.bounds(topic)):
            assert process.poll() is None, "it ended before it wrote anything"
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
