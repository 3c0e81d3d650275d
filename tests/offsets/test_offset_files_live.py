"""`lint` on a topic with everything in it, and KIP-875 bodies in and out, on a real broker and a real worker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from eosctl.core.ids import TransactionalId
from eosctl.core.offsets.names import partition_for
from eosctl.core.records import OutRecord
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke, Outcome
from tests.sandbox_fixtures import PATIENCE_S, FileSource, rest

pytestmark = pytest.mark.live

Eosctl = Callable[..., Outcome]
PARTITIONS = 7


@pytest.fixture
def eosctl(invoke: Invoke, target_flags: list[str]) -> Eosctl:
    """Runs `eosctl offsets …` against the stack."""
    return lambda *words: invoke(*target_flags, "offsets", *words)


@contextmanager
def open_transaction(stack: Stack, transactional_id: str, topic: str, key: bytes) -> Iterator[None]:
    """Aborts one record, then holds a transaction with another open for as long as the block lasts."""
    producer = Producer(
        {
            "bootstrap.servers": stack.bootstrap_servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 600_000,  # not over before a loaded machine has come to the end of the block
            "partitioner": "murmur2",
        }
    )
    producer.init_transactions(PATIENCE_S)
    for ending in (producer.abort_transaction, None):
        producer.begin_transaction()
        producer.produce(topic, key=key, value=b"aborted or open")
        producer.flush(PATIENCE_S)
        if ending is not None:
            ending(PATIENCE_S)
    try:
        yield
    finally:
        producer.abort_transaction(PATIENCE_S)


def by_code(document: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in document["data"]["rows"]:
        found.setdefault(row["code"], []).append(row)
    return found


def test_lint_of_a_topic_with_everything_in_it(
    stack: Stack, topics: KafkaTopicClient, eosctl: Eosctl, unique: str, tmp_path: Path
) -> None:
    topic, key = f"lint-{unique}", f'["{unique}",{{"f":"a"}}]'.encode()
    home = partition_for(key, PARTITIONS)
    topics.create(topic, partitions=PARTITIONS, replication_factor=1, config={"cleanup.policy": "compact"})
    bad_keys = (b"junk", b"{}", b'["c"]', b"[1,{}]", b'["c",1]')
    gone = f'["{unique}",{{"f":"gone"}}]'.encode()
    topics.write(
        [
            *(OutRecord(topic, bad, b"{}") for bad in bad_keys),
            OutRecord(topic, key, b'{"n":1}', partition=(home + 1) % PARTITIONS),
            OutRecord(topic, f'["{unique}",{{"f":"v"}}]'.encode(), b"{nope"),
            OutRecord(topic, gone, b'{"n":1}'),
            OutRecord(topic, gone, None),
        ]
    )
    behind, line = f'["{unique}",{{"f":"open"}}]'.encode(), tmp_path / "line.ndjson"
    with open_transaction(stack, f"{unique}-open", topic, behind):
        done = eosctl("lint", "--store", topic, "-o", "json")
        differing = eosctl("diff", "--connector", unique, "global", topic, "-o", "json").json()["data"]["rows"]
        line.write_text(json.dumps({"topic": topic, "partition": 0, "key": behind.decode(), "value": "{}"}))
        refused = eosctl("import", str(line), "--store", topic, "--yes")
    statuses = {row["key"]: row["status"] for row in differing}
    assert (statuses[behind.decode()], statuses[key.decode()]) == ("hidden", "only_right")
    assert (refused.exit_code, "an open transaction hides newer offsets" in refused.stderr) == (6, True)
    found = by_code(done.json())
    assert done.exit_code == 3
    faults = ("not_json", "not_a_list", "wrong_size", "connector_not_text", "partition_not_a_map")
    expected = {f"key_{fault}" for fault in faults} | {"wrong_partition", "value_not_json", "open_transaction"}
    assert set(found) == expected | {"single_replica", "partition_count"}, "aborted records and tombstones are fine"
    blocked = found["open_transaction"][0]
    assert blocked["subject"] == f"{topic}-{partition_for(behind, PARTITIONS)}"
    assert blocked["evidence"]["transactional_id"] == f"{unique}-open"
    assert blocked["evidence"]["lso"] == blocked["evidence"]["start_offset"]

    path = tmp_path / "repair.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in found["wrong_partition"][0]["evidence"]["repair"]))
    assert eosctl("import", str(path), "--store", topic, "--keep-partitions", "--yes").exit_code == 0
    mended = by_code(eosctl("lint", "--store", topic, "-o", "json").json())
    assert "wrong_partition" not in mended
    assert "open_transaction" not in mended
    assert [row["severity"] for row in mended["several_partitions"]] == ["warning"]


def test_lint_of_a_topic_that_is_not_compacted(topics: KafkaTopicClient, eosctl: Eosctl, unique: str) -> None:
    """Only such a topic takes records without a key."""
    topic = f"plain-{unique}"
    topics.create(topic, partitions=1, replication_factor=1, config={"cleanup.policy": "delete"})
    topics.write([OutRecord(topic, None, b"{}", partition=0)])
    assert {"not_compacted", "key_null"} <= set(by_code(eosctl("lint", "--store", topic, "-o", "json").json()))


def test_bodies_go_to_a_worker_and_come_from_one(eosctl: Eosctl, file_source: FileSource, tmp_path: Path) -> None:
    file_source.append("line 1", "line 2")
    file_source.put()
    file_source.wait_position(14)
    file_source.stop_and_wait()
    of_worker = f"{file_source.url}/connectors/{file_source.name}/offsets"
    which = ("--connector", file_source.name)

    body = json.loads(eosctl("export", "--store", "global", *which, "--format", "rest").stdout)
    assert body == rest(of_worker)
    assert "altered successfully" in rest(of_worker, "PATCH", body)["message"]
    assert rest(of_worker) == body

    body["offsets"][0]["offset"]["position"] = 7
    path = tmp_path / "body.json"
    path.write_text(json.dumps(body))
    assert eosctl("import", str(path), "--store", "global", *which, "--yes").exit_code == 0
    assert rest(of_worker) == body
    [row] = eosctl("get", *which, "--rest", "-o", "json").json()["data"]["rows"]
    assert row["rest"] == {"status": "same", "offset": {"position": 7}}


def test_an_export_fills_an_empty_topic(topics: KafkaTopicClient, eosctl: Eosctl, unique: str, tmp_path: Path) -> None:
    source, copy, path = f"from-{unique}", f"copy-{unique}", str(tmp_path / "all.ndjson")
    keys = [f'["{unique}",{{"f":"{number}"}}]'.encode() for number in range(5)]
    topics.create(source, partitions=PARTITIONS, replication_factor=1, config={"cleanup.policy": "compact"})
    topics.create(copy, partitions=PARTITIONS, replication_factor=1, config={"cleanup.policy": "compact"})
    topics.write([OutRecord(source, key, b'{"n":%d}' % n) for n in range(3) for key in keys])
    topics.write([OutRecord(source, keys[0], None)], transactional_id=TransactionalId(f"{unique}-w"))
    exported = eosctl("export", "--store", source, "--all-records", path, "-o", "json").json()
    assert exported["data"]["summary"]["records"] == 16
    done = eosctl("import", path, "--store", copy, "--yes", "-o", "json").json()
    assert (done["exit_code"], done["data"]["summary"]["written"]) == (0, 5)
    before, after = (
        {(r.partition, r.key, r.value) for r in topics.read(topic, newest_per_key=True).records}
        for topic in (source, copy)
    )
    assert before == after
