"""The scan of batch headers that `eosctl audit` makes, beside clients that read the same topic, as whole processes.

One topic of 12 partitions, transactions of lz4 batches of about 16 KB. Beside it ConsoleConsumer to nowhere, which is
told how many records there are; librdkafka by confluent-kafka, raw values thrown away; and a replay of the scan's own
requests over one socket, whose answers nobody looks at. Goals, as medians of paired ratios: at most 0.5 of
ConsoleConsumer, at most 1.2 of the replay; at most 150 MiB, whatever the size.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.kafka import kafka_jars
from benchmarks.pairs import compare, compile_sources
from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.machine.java import require_java
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack

TOPIC, PARTITIONS = "audited", 12
_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_VALUE_BYTES, _TRANSACTION_RECORDS = 1000, 10_000
_BATCH_BYTES = 32_768
"""Before compression: half of each value can't be compressed."""


def main() -> None:
    """Starts a broker, fills the topic, runs every comparison, prints ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=512, help="size of the topic in the log, about")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    compile_sources()
    java = require_java(os.environ)
    jars = kafka_jars(java)
    with tempfile.TemporaryDirectory() as name:
        stack = Stack.up(StackSpec(groups=()), Path(name) / "stack", name="benchmark", environ=os.environ)
        try:
            records = fill(stack.bootstrap_servers, arguments.megabytes)
            recorded = Path(name) / "requests"
            scan = [sys.executable, "-m", "benchmarks.audit.scan", stack.bootstrap_servers, TOPIC]
            subprocess.run([*scan, "--record", str(recorded)], check=True)
            console = [
                str(java.executable), "-Xshare:auto", "-Xmx512M", "-cp", os.pathsep.join(map(str, jars)), _CONSUMER,
                "--bootstrap-server", stack.bootstrap_servers, "--topic", TOPIC, "--from-beginning",
                "--max-messages", str(records), "--timeout-ms", "60000",
            ]  # fmt: skip
            others = {
                "raw socket copy (goal 1.2)": [
                    sys.executable, "-m", "benchmarks.audit.replay", stack.bootstrap_servers, str(recorded)
                ],
                "librdkafka": [sys.executable, "-m", "benchmarks.audit.consume", stack.bootstrap_servers, TOPIC],
                "ConsoleConsumer (goal 0.5)": console,
            }  # fmt: skip
            for other, command in others.items():
                print(f"\n{arguments.megabytes:,} MB, {records:,} records", flush=True)
                compare("eosctl's scan", lambda: scan, other, lambda command=command: command, runs=arguments.runs)  # type: ignore[misc]
        finally:
            stack.down()


def fill(bootstrap: str, megabytes: int) -> int:
    """Writes the topic in transactions; how many records that were."""
    with KafkaTopicClient(ClientSettings(bootstrap_servers=(bootstrap,)), deadline=Deadline.after(120)) as store:
        store.create(TOPIC, partitions=PARTITIONS, replication_factor=1, config={})
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "benchmark-fill",
            "compression.type": "lz4",
            "batch.size": _BATCH_BYTES,
            "linger.ms": 100,
            "enable.metrics.push": False,
            "log_level": 0,
        }
    )
    producer.init_transactions(60)
    records = megabytes * 1_000_000 // (_VALUE_BYTES // 2)
    noise = random.Random(7).randbytes(1 << 20)  # noqa: S311 - not for secrets
    half = _VALUE_BYTES // 2
    for start in range(0, records, _TRANSACTION_RECORDS):
        producer.begin_transaction()
        for number in range(start, min(start + _TRANSACTION_RECORDS, records)):
            at = number * 7919 % (len(noise) - half)
            while True:
                try:
                    producer.produce(TOPIC, noise[at : at + half] + bytes(half), partition=number // 32 % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.commit_transaction(120)
    return records


if __name__ == "__main__":
    main()
