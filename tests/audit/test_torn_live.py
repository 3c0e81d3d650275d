"""`audit` on real brokers that hold what no worker writes: a part that Kafka's own tool aborted, and the like."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.kafka import kafka_jars
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import OutRecord
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.machine.java import require_java
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.contract.clusters import RealProducer
from tests.sandbox_fixtures import PAIR, PATIENCE_S, group_flags, rest, slow_config

pytestmark = pytest.mark.live
YEAR_2100_MS = 4_102_444_800_000


@dataclass
class Connector:
    """A connector that never ran: all that is in its topic and of its offsets, a test has written."""

    stack: Stack
    name: str

    @property
    def offsets_topic(self) -> str:
        return str(self.stack.state.topics[PAIR]["offset"])

    def key(self, shard: str = "0") -> bytes:
        return json.dumps([self.name, {"shard": shard}], separators=(",", ":")).encode()

    def producer(self, transactional_id: str | None = None) -> RealProducer:
        """A producer with an open transaction; by default task 0's."""
        return RealProducer(self.stack.bootstrap_servers, transactional_id or f"{PAIR}-{self.name}-0")

    def transaction(self, producer: RealProducer, *partitions: int, shard: str = "0", begin: bool = False) -> None:
        """Records in the output topic's partitions, and a source offset; `begin`: after another transaction."""
        if begin:
            producer._producer.begin_transaction()
        for partition in partitions:
            producer.send(self.name, partition, b"k")
        producer.send(self.offsets_topic, 0, self.key(shard), b'{"n":1}')

    def audit(self, invoke: Invoke) -> tuple[str, set[str], int, Any]:
        """Verdict, codes and exit code, and the document."""
        words = ("audit", "--connector", self.name, "--topic", self.name, "--since", "beginning", "-o", "json")
        done = invoke(*group_flags(self.stack, PAIR), *words)
        (found,) = done.json()["data"]["connectors"]
        return found["verdict"], {row["code"] for row in done.json()["data"]["rows"]}, done.exit_code, found


@pytest.fixture
def connector(pair: Stack, unique: str) -> Iterator[Connector]:
    url = pair.urls(PAIR)[0]
    settings = ClientSettings((pair.bootstrap_servers,))
    with KafkaTopicClient(settings, deadline=Deadline.after(PATIENCE_S)) as topics:
        topics.create(
            unique, partitions=2, replication_factor=1, config={"message.timestamp.after.max.ms": str(1 << 62)}
        )
    made = {"name": unique, "config": slow_config(unique, tasks=1), "initial_state": "STOPPED"}  # KIP-980, Kafka 3.7+
    rest(f"{url}/connectors", "POST", made)
    try:
        yield Connector(pair, unique)
    finally:
        rest(f"{url}/connectors/{unique}", "DELETE")


def test_an_honest_neighbour_is_acquitted(connector: Connector, invoke: Invoke) -> None:
    task = connector.producer()
    connector.transaction(task, 0, 1)
    task.commit()
    connector.transaction(task, 1, begin=True)
    task.commit()
    assert connector.audit(invoke)[:3] == ("exactly_once", set(), 0)


def test_a_part_that_kafkas_own_tool_aborted(connector: Connector, invoke: Invoke) -> None:
    """`kafka-transactions.sh abort` on one partition of a transaction that is committed afterwards."""
    task = connector.producer()
    connector.transaction(task, 0, 1)
    task.commit()
    connector.transaction(task, 0, 1, begin=True)
    java = require_java(os.environ)
    words = [
        str(java.executable), "-cp", os.pathsep.join(map(str, kafka_jars(java))),
        "org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", connector.stack.bootstrap_servers,
        "abort", "--topic", connector.name, "--partition", "1", "--start-offset", "2",
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    task.commit()
    verdict, codes, exit_code, found = connector.audit(invoke)
    assert (verdict, codes, exit_code) == ("not_exactly_once", {"transaction_torn"}, 3)
    assert found["records"] == 3


def test_offsets_without_records(connector: Connector, invoke: Invoke) -> None:
    task = connector.producer()
    connector.transaction(task, 0)
    task.commit()
    connector.transaction(task, begin=True)
    task.commit()
    assert connector.audit(invoke)[:3] == ("unproven", set(), 7)


def test_two_tasks_on_one_source_partition(connector: Connector, invoke: Invoke) -> None:
    zombie, heir = connector.producer(f"{PAIR}-{connector.name}-1"), connector.producer()
    for begin in (False, True):
        for task in (zombie, heir):
            connector.transaction(task, 0, begin=begin)
            task.commit()
    assert connector.audit(invoke)[:3] == ("not_exactly_once", {"source_partition_shared"}, 3)


def test_a_group_whose_name_begins_alike(connector: Connector, invoke: Invoke) -> None:
    """`pair-eu` has a connector of the same name, which writes to the same topic; its offsets are elsewhere."""
    task, other = connector.producer(), connector.producer(f"{PAIR}-eu-{connector.name}-0")
    connector.transaction(task, 0)
    task.commit()
    other.send(connector.name, 0, b"k")
    other.commit()
    assert connector.audit(invoke)[:3] == ("unproven", {"foreign_producer"}, 7)


def test_a_plain_record_of_the_year_2100(connector: Connector, invoke: Invoke) -> None:
    """It lies between two transactions, so it is of the window whatever its time is."""
    task = connector.producer()
    connector.transaction(task, 0)
    task.commit()
    settings = ClientSettings((connector.stack.bootstrap_servers,))
    with KafkaTopicClient(settings, deadline=Deadline.after(PATIENCE_S)) as topics:
        topics.write([OutRecord(connector.name, b"k", b"plain", 0, timestamp_ms=YEAR_2100_MS)])
    connector.transaction(task, 0, begin=True)
    task.commit()
    words = ("audit", "--connector", connector.name, "--topic", connector.name, "--since", "1h", "-o", "json")
    done = invoke(*group_flags(connector.stack, PAIR), *words, "--until", "2099-01-01T00:00:00Z")
    assert {row["code"] for row in done.json()["data"]["rows"]} == {"batch_not_transactional"}
    assert done.exit_code == 3
