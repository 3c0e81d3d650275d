"""`eosctl audit` of what a connector's tasks wrote, beside ConsoleConsumer to nowhere, as whole processes.

One topic of 12 partitions: transactions of four tasks, each with its source offset in the offsets topic, in lz4 batches
of at most 16 KB. ConsoleConsumer is told how many records there are, and reads the output topic only. The writer is
Java's (needs a JDK): of Python's clients none gives each transaction an epoch of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.kafka import CONSUMER, compile_java, kafka_jars
from benchmarks.pairs import compare, compile_sources
from benchmarks.stacks import own_folder, stack_in
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import OutRecord
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.machine.java import require_java
from eosctl.sandbox.stack import Stack

GROUP, CONNECTOR, TASKS = "connect-eos", "orders", 4
TOPIC, CONFIGS, OFFSETS = "audited", "audited-configs", "audited-offsets"
_PARTITIONS = {TOPIC: 12, CONFIGS: 1, OFFSETS: 25}
_HERE = Path(__file__).parent
_RECORD_BYTES = 500
"""In the log, compressed."""


def main() -> None:
    """Start a broker, write the logs, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=2000, help="size of the topic in the log, about")
    parser.add_argument("--per-transaction", type=int, default=1000, help="records in a transaction")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    compile_sources()
    java = require_java(os.environ)
    with own_folder() as folder, stack_in(folder) as stack:
        records = write_logs(stack, folder, arguments.megabytes, per_transaction=arguments.per_transaction)
        console = [
            str(java.executable), "-Xshare:auto", "-Xmx512M", "-cp", os.pathsep.join(map(str, kafka_jars(java))),
            CONSUMER, "--bootstrap-server", stack.bootstrap_servers, "--topic", TOPIC, "--from-beginning",
            "--max-messages", str(records), "--timeout-ms", "60000",
        ]  # fmt: skip
        print(f"{arguments.megabytes:,} MB, {records:,} records, {arguments.per_transaction:,} a transaction")
        compare("eosctl audit", lambda: audit_line(stack), "ConsoleConsumer", lambda: console, runs=arguments.runs)


def write_logs(stack: Stack, folder: Path, megabytes: int, *, per_transaction: int = 1000) -> int:
    """Write the connector's config, and what its tasks write, into new topics; return the number of their records."""
    settings = ClientSettings(bootstrap_servers=(stack.bootstrap_servers,))
    with KafkaTopicClient(settings, deadline=Deadline.after(120)) as store:
        for topic, partitions in _PARTITIONS.items():
            store.create(topic, partitions=partitions, replication_factor=1, config={})
        store.write(_config_records())
    java = require_java(os.environ)
    class_path = os.pathsep.join([str(folder), *map(str, kafka_jars(java))])
    compile_java(_HERE / "WriteTransactions.java", java=java, class_path=class_path, directory=folder)
    records = megabytes * 1_000_000 // _RECORD_BYTES // TASKS * TASKS
    writer = [str(java.executable), "-Xmx512M", "-cp", class_path, "WriteTransactions", stack.bootstrap_servers]
    numbers = map(str, (TASKS, records, per_transaction))
    subprocess.run([*writer, TOPIC, OFFSETS, GROUP, CONNECTOR, *numbers], check=True, stderr=subprocess.DEVNULL)
    return records


def _config_records() -> Iterator[OutRecord]:
    """Yield what a leader writes of a connector; no worker runs here."""
    config = {"name": CONNECTOR, "connector.class": "FileStreamSource", "tasks.max": str(TASKS), "topic": TOPIC}
    pairs: list[tuple[str, object]] = [(f"connector-{CONNECTOR}", {"properties": config})]
    pairs += [(f"task-{CONNECTOR}-{task}", {"properties": {**config, "task.class": "T"}}) for task in range(TASKS)]
    pairs += [(f"commit-{CONNECTOR}", {"tasks": TASKS}), (f"tasks-fencing-{CONNECTOR}", {"task-count": TASKS})]
    for key, value in pairs:
        yield OutRecord(CONFIGS, key.encode(), json.dumps(value, separators=(",", ":")).encode(), 0)


def audit_line(stack: Stack) -> Sequence[str]:
    """Return the line of an audit of all that is there; it fails unless that is exactly_once."""
    where = ["-b", stack.bootstrap_servers, "-g", GROUP, "--config-topic", CONFIGS, "--offset-topic", OFFSETS]
    asked = ["--connector", CONNECTOR, "--topic", TOPIC, "--since", "beginning", "--timeout", "10m"]
    return [sys.executable, "-m", "eosctl", "audit", *where, *asked]


if __name__ == "__main__":
    main()
