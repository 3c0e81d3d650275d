"""The offsets-topic reader beside `ConsoleConsumer`, whole processes in turn on one real broker.

The topic looks like an offsets topic of many connectors: 25 partitions, keys and values as Connect writes them, one
record in five superseded, some tombstones, half of the records in transactions. `ConsoleConsumer` is told how many
records there are and reads them to nowhere; eosctl folds them into the newest per key. Goals, as medians of paired
ratios: eosctl at most 0.5 of ConsoleConsumer, read_committed at most 1.1 of read_uncommitted, and an export of records
with a header each (a `traceparent`, as tracing adds it) at most 2 of one without.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.kafka import kafka_jars
from benchmarks.pairs import compare
from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.machine.java import Java, require_java
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack

TOPIC, _WITH_HEADERS = "connect-offsets", "connect-offsets-traced"
_SUPERSEDED_EVERY, _TOMBSTONE_EVERY, _TRANSACTION_SIZE = 5, 50, 1_000
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def main() -> None:
    """Starts a broker, fills the topic, runs every comparison, prints ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    java = require_java(os.environ)
    jars = kafka_jars(java)
    with tempfile.TemporaryDirectory() as name:
        stack = Stack.up(StackSpec(groups=()), Path(name) / "stack", name="benchmark", environ=os.environ)
        try:
            fill(stack.bootstrap_servers, arguments.records)
            contest(stack.bootstrap_servers, java, jars, records=arguments.records, runs=arguments.runs)
            fill(stack.bootstrap_servers, arguments.records, topic=_WITH_HEADERS)
            headers(stack.bootstrap_servers, records=arguments.records, runs=arguments.runs)
        finally:
            stack.down()


def contest(bootstrap: str, java: Java, jars: list[Path], *, records: int, runs: int) -> None:
    """ConsoleConsumer against eosctl, then eosctl against itself without isolation."""
    class_path = os.pathsep.join(map(str, jars))
    console = [
        str(java.executable), "-Xshare:auto", "-Xmx512M", "-cp", class_path, CONSUMER,
        "--bootstrap-server", bootstrap, "--topic", TOPIC, "--from-beginning", "--max-messages", str(records),
        "--isolation-level", "read_committed",
    ]  # fmt: skip
    ours = {
        isolation: [sys.executable, "-m", "benchmarks.read_offsets.reader", bootstrap, TOPIC, isolation, str(records)]
        for isolation in ("read_committed", "read_uncommitted")
    }
    print(f"\n{records:,} records, read_committed (goal 0.5)")
    compare("eosctl", lambda: ours["read_committed"], "ConsoleConsumer", lambda: console, runs=runs)
    print(f"\n{records:,} records, what isolation costs (goal 1.1)")
    compare(
        "eosctl, read_committed", lambda: ours["read_committed"],
        "eosctl, read_uncommitted", lambda: ours["read_uncommitted"], runs=runs,
    )  # fmt: skip


def headers(bootstrap: str, *, records: int, runs: int) -> None:
    """Records with a header each against those without."""
    for name, more in (("newest of each key", ()), ("--all-records", ("--all-records",))):
        wanted = [sys.executable, "-m", "eosctl", "offsets", "export", *more, "-b", bootstrap, "--store"]
        traced, plain = [*wanted, _WITH_HEADERS], [*wanted, TOPIC]
        print(f"\n{records:,} records with a header each, offsets export, {name} (goal 2)")
        compare("with a header each", traced.copy, "without", plain.copy, runs=runs)


def fill(
    bootstrap: str,
    count: int,
    records: Iterator[tuple[bytes, bytes | None]] | None = None,
    *,
    connectors: int = 40,
    per_batch: int = 10_000,
    topic: str = TOPIC,
) -> None:
    """Writes `count` records to a new topic, the first half plainly, the second in transactions.

    None are like those of so many sources with many tables. A batch has at most `per_batch` of them.
    """
    with KafkaTopicClient(ClientSettings(bootstrap_servers=(bootstrap,)), deadline=Deadline.after(120)) as store:
        store.create(topic, partitions=25, replication_factor=1, config={"cleanup.policy": "compact"})
    settings = {
        "bootstrap.servers": bootstrap,
        "partitioner": "murmur2",
        "linger.ms": 20,
        "batch.num.messages": per_batch,
        "queue.buffering.max.messages": 2_000_000,
        "enable.metrics.push": False,
        "log_level": 0,
    }
    records, plain = records or records_of(count, connectors=connectors), Producer(settings)
    traces = itertools.count()

    def produce(producer: Producer, key: bytes, value: bytes | None) -> None:
        if topic != _WITH_HEADERS:
            producer.produce(topic, value, key)
            return
        trace = b"00-%032x-%016x-01" % ((next(traces),) * 2)
        producer.produce(topic, value, key, headers={"traceparent": trace})

    for key, value in islice(records, count // 2):
        produce(plain, key, value)
        plain.poll(0)
    plain.flush(120)
    exact = Producer(settings | {"transactional.id": "benchmark-fill"})
    exact.init_transactions(30)
    for _start in range(count // 2, count, _TRANSACTION_SIZE):
        exact.begin_transaction()
        for key, value in islice(records, _TRANSACTION_SIZE):
            produce(exact, key, value)
        exact.commit_transaction(60)


def records_of(count: int, *, connectors: int = 40) -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values as Debezium-like sources with many tables have them."""
    for number in range(count):
        superseding = number % _SUPERSEDED_EVERY == 0
        table = number // 10 * 5 + 1 if superseding else number  # 1, 6, 11, …: twice more each
        key = b'["inventory-source-%02d",{"database":"shop","table":"orders_%07d"}]' % (table % connectors, table)
        value = (
            None if number % _TOMBSTONE_EVERY == 1 else b'{"lsn":%d,"txId":%d,"snapshot":false}' % (9 * number, number)
        )
        yield key, value


def names_of(connectors: int) -> list[str]:
    """The connectors that `records_of` has records of, of so many: tables that others supersede are never first."""
    return [f"inventory-source-{number:02d}" for number in range(connectors) if number % _SUPERSEDED_EVERY]


if __name__ == "__main__":
    main()
