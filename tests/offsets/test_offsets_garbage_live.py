"""A topic of many records, garbage included: what list, lint and export say equals an independent count."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from eosctl.core.records import OutRecord
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke

pytestmark = pytest.mark.live

RECORDS, KEYS, CONNECTORS = 40_000, 2_000, 30
GARBAGE = (b"junk %d", b"{}%d", b'{"k":%d}', b'["c",%d]', b"[%d,{}]", b'["c",{},%d]', b"\xff\xfe%d")


def _pair(number: int) -> tuple[bytes, bytes | None]:
    """Key and value of the record with this number: one in ten is garbage, one in ten a deletion."""
    key = number % KEYS
    if number % 10 == 3:
        return GARBAGE[key % len(GARBAGE)] % key, b"\x00"
    value = None if number % 10 == 7 else b'{"position":%d}' % number
    return b'["g%d",{"file":"%d"}]' % (key % CONNECTORS, key), value


def test_what_is_told_of_many_records_is_what_was_written(
    stack: Stack, topics: KafkaTopicClient, invoke: Invoke, unique: str, tmp_path: Path
) -> None:
    topic, path = f"garbage-{unique}", tmp_path / "all.ndjson"
    topics.create(topic, partitions=7, replication_factor=1, config={"cleanup.policy": "compact"})
    pairs = [_pair(number) for number in range(RECORDS)]
    topics.write(OutRecord(topic, key, value) for key, value in pairs)
    newest = dict(pairs)
    garbage = {key for key, value in newest.items() if value == b"\x00"}
    where = ["-b", stack.bootstrap_servers, "--offset-topic", topic, "--config-topic", f"none-{unique}"]

    listed = invoke(*where, "offsets", "list", "-o", "json").json()["data"]
    assert listed["summary"]["source_partitions"] == len(newest) - len(garbage)
    assert listed["summary"]["ignored_keys"] == len(garbage) == len(listed["ignored"])
    assert {row["key"].encode(): row["effective"]["runtime"] for row in listed["rows"]} == {
        key: None if value is None else json.loads(value) for key, value in newest.items() if key not in garbage
    }

    linted = invoke(*where, "offsets", "lint", "--store", topic, "-o", "json").json()
    codes = Counter(linted["data"]["summary"]["codes"])
    assert linted["exit_code"] == 3
    assert sum(count for code, count in codes.items() if code.startswith("key_")) == len(garbage)
    assert max(Counter(row["code"] for row in linted["data"]["rows"]).values()) <= linted["data"]["rows_per_code"]

    exported = invoke(*where, "offsets", "export", "--store", topic, str(path), "-o", "json").json()["data"]["summary"]
    assert (exported["records"], exported["records_read"]) == (len(newest), RECORDS)
    assert exported["tombstones"] == sum(value is None for value in newest.values())
    assert len(path.read_bytes().splitlines()) == len(newest)
