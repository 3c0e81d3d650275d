"""What grows in `offsets migrate` with topics, keys and tasks: computed from its plan files and from Kafka's formats.

No broker and no Spark. docs/background/bulk-at-scale.md says which of its numbers come from here, and which were
measured.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from eosctl.core.offsets.migration import (
    ConnectorRoute,
    MigrationPlan,
    PlannedTopic,
    Tally,
    plan_file_text,
    read_plan,
    writers_of,
)
from eosctl.core.offsets.views import Policy
from eosctl.core.records import Bounds
from eosctl.engine.write import QuotaPace, by_partition

_NAME = "offsets-orders-{:05}-postgres-source"
"""Of a topic; the connector's is what follows the first dash."""
_PART_RECORDS = 500_000
"""Records in a part at most, as `parts_of` divides them."""
_TRANSACTION_RECORD_LIMIT = 1_048_588
"""What a broker takes in one record of `__transaction_state` (`max.message.bytes`), Kafka 4.3."""


def main() -> None:
    """Print a table per question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000_000)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--brokers", type=int, default=12)
    parser.add_argument("--key-bytes", type=int, default=100)
    parser.add_argument("--value-bytes", type=int, default=60)
    arguments = parser.parse_args()
    plans(arguments.keys, arguments.topics)
    transactions(arguments.topics)
    of_a_task(arguments.keys, arguments.topics, arguments.key_bytes, arguments.value_bytes)
    connections(arguments.brokers)
    files(arguments.keys)
    disk(arguments.keys, arguments.key_bytes + arguments.value_bytes)


def plans(keys: int, topics: int) -> None:
    """Print the size of the plan file, and what the driver needs to write and to read it."""
    print("plan file: topics, partitions each | size | CPU to write and to read it | memory to read it")
    for count in (topics // 10, topics):
        for partitions in (1, 3, 25):
            plan = planned(keys, count, partitions)
            begun_s = time.process_time()
            text = plan_file_text(plan)
            read_plan(text, path="plan.json")
            spent_s = time.process_time() - begun_s
            print(
                f"  {count:6,} {partitions:3} | {len(text) / 1e6:6.1f} MB | {spent_s:5.1f} s "
                f"| {_peak_mib(text):5.0f} MiB",
                flush=True,
            )


def _peak_mib(text: str) -> float:
    """Return what reading the plan takes beside the text."""
    tracemalloc.start()
    try:
        read_plan(text, path="plan.json")
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def planned(keys: int, topics: int, partitions: int) -> MigrationPlan:
    """Return a plan from one topic with 25 partitions into as many topics as connectors."""
    names = [_NAME.format(number) for number in range(topics)]
    source = PlannedTopic("connect-offsets", "source", 25, 3, _bounds(25, keys // 25))
    targets = tuple(PlannedTopic(name, None, partitions, 3, _bounds(partitions, 0)) for name in names)
    connectors = [name.partition("-")[2] for name in names]
    groups = [(connector, "write", keys // topics, keys // topics, 0) for connector in connectors]
    read = [(source.name, connector, keys // topics) for connector in connectors]
    return MigrationPlan(
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        group_id="connect-cluster",
        policy=Policy.KEEP_TARGET,
        sources=(source,),
        targets=targets,
        routes=tuple(ConnectorRoute(*each) for each in zip(connectors, connectors, names, strict=True)),
        tally=Tally.of(groups, records=keys, keys=read, sources=[source], routed=connectors, scattered=0),
        snapshot_base="/srv/eosctl",
        planned_at="2026-11-22T00:00:00Z",
    )


def _bounds(partitions: int, end: int) -> tuple[Bounds, ...]:
    return tuple(Bounds(number, 0, end, end) for number in range(partitions))


def transactions(topics: int) -> None:
    """Print the size of the coordinator's record of a transaction's partitions: TransactionLogValue, version 0.

    Per topic the length and the bytes of its name, the number of partitions, and four bytes for each of these.
    """
    print("one transaction over so many partitions of each of the topics | its record | the broker takes it")
    name_bytes = len(_NAME.format(0))
    for each in (1, 3, 7, 13, 25):
        record_bytes = 40 + topics * (2 + name_bytes + 4 + 4 * each)
        print(f"  {topics:,} x {each:2} | {record_bytes / 1e6:4.2f} MB | {record_bytes <= _TRANSACTION_RECORD_LIMIT}")


def of_a_task(keys: int, topics: int, key_bytes: int, value_bytes: int) -> None:
    """Print how many transactions a task needs, if none takes long: they grow, and have a limit of partitions."""
    print("partitions of each of the topics | partitions that a task writes | its transactions")
    parts = max(1, keys // _PART_RECORDS)
    for each in (1, 3, 25):
        plan = replace(planned(keys, topics, each), parts=tuple((number,) for number in range(parts)))
        alone = writers_of(plan)
        places = alone[0] if alone else [(topic.topic, one) for topic in plan.targets for one in range(each)]
        dealt = np.arange(keys // parts) % len(places)
        rows = pa.table(
            {
                "topic": pa.array([topic for topic, _partition in places]).take(dealt),
                "partition": pa.array([partition for _topic, partition in places]).take(dealt),
                "key": pa.repeat(bytes(key_bytes), len(dealt)),
                "value": pa.repeat(bytes(value_bytes), len(dealt)),
            }
        )
        pieces = QuotaPace(lambda: 0.0).pieces(by_partition(rows))
        print(f"  {each:2} | {len(places):,} | {sum(1 for _piece in pieces)}", flush=True)


def connections(brokers: int) -> None:
    """Print connections: a task's consumer, then its producer, talks to each broker; the bootstrap comes on top."""
    print("cores of the executors | connections at a time")
    for cores in (16, 64, 200):
        print(f"  {cores:3} | {cores * (brokers + 1):,}")


_AROUND = {"source": 49, "decisions": 203}
"""Bytes beside key and value in memory; those of keys that are sent are read back without a file."""
_COMPRESSION = 3.5
"""Of keys and values like those of `benchmarks.migrate`: 167 bytes of a record in memory were 42 in its file, 321 of a
decision 93. A backup, which is Parquet, has less than a tenth of that."""


def disk(keys: int, record_bytes: int) -> None:
    """Print what is in the snapshot folder in the end; of a target that was empty."""
    print(f"snapshot folder of {keys:,} keys, key and value {record_bytes} bytes")
    for name, around in _AROUND.items():
        print(f"  {name:14} {keys * (record_bytes + around) / _COMPRESSION / 1e9:6,.0f} GB")
    together = len(_AROUND) * record_bytes + sum(_AROUND.values())
    print(f"  {'together':14} {keys * together / _COMPRESSION / 1e9:6,.0f} GB")


def files(keys: int) -> None:
    """Print how many readers' files, one for each partition of the source, the tasks of all parts look into."""
    print("records | files of a side | parts | files opened to decide")
    for count in (keys // 1_000, keys // 100, keys // 10, keys):
        readers, parts = 25, max(1, count // _PART_RECORDS)
        print(f"  {count:13,} | {readers:5,} | {parts:5,} | {readers * parts:9,}")


if __name__ == "__main__":
    main()
