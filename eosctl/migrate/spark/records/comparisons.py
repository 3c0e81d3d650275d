"""Reading back one part of a migration's target, and comparing it with what was decided for its keys.

Everything here runs in tasks; rows never pass through the JVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.offsets.decision import mismatch
from eosctl.core.offsets.migration_results import Comparison, Mismatch
from eosctl.core.offsets.records import is_nothing
from eosctl.migrate.spark.record_counts import TaskProgress
from eosctl.migrate.spark.records.arrow_rows import arrow_schema
from eosctl.migrate.spark.records.kafka_io import Newest, read_keys
from eosctl.migrate.spark.records.offset_ranges import ClientProperties, Message, OffsetRange
from eosctl.migrate.spark.records.parts import is_sent
from eosctl.migrate.spark.records.transforms import MISMATCHES
from eosctl.migrate.spark.snapshots import batches_of, part_file

COMPARED = pa.schema(
    [
        ("whole", pa.bool_()),
        ("compared", pa.int64()),
        ("differing", pa.int64()),
        ("mismatches", pa.list_(pa.struct(list(arrow_schema(MISMATCHES))))),
    ]
)
"""The one row of `compare_part`; `mismatches` are the first of those that differ, by topic and key.

`whole` is false where a key was found in a place where another part may have it too: then the part says nothing.
"""

_COLUMNS = ("connector", "topic", "key", "value", "before", "before_nothing", "action")
_Now = Mapping[tuple[str, bytes | None], Any]
"""Topic and key -> the newest message."""


def compare_part(
    client: ClientProperties,
    ranges: Sequence[OffsetRange],
    folder: Path,
    number: int,
    *,
    limit: int,
    count: TaskProgress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Reads the `ranges` of the target that are one part's, and compares them with its decisions, as COMPARED."""
    found = list(read_keys(client, ranges, count=count))
    yield _row(compare_found(found, ranges, part_file(folder / "decisions", number), limit=limit))


def compare_found(
    found: Sequence[Newest], ranges: Sequence[OffsetRange], decisions: Path, *, limit: int
) -> Comparison | None:
    """Compares what the `ranges` of one part were `found` to hold; None where a key may be in another part too."""
    if len(found) > 1 or not in_place(found[-1], {one.topic: one.partitions for one in ranges}):
        return None
    now = newest_of(found[-1], {one.topic: one.name or one.topic for one in ranges})
    return compare(batches_of(decisions, _COLUMNS), now, limit=limit)


def in_place(newest: Newest, partitions: Mapping[str, int]) -> bool:
    """Whether every key is where Connect's producer puts it."""
    from confluent_kafka import murmur2

    return all(
        key is not None and murmur2(key, partitions[topic]) == partition
        for (topic, partition), keys in newest.items()
        for key in keys
    )


def newest_of(newest: Newest, names: Mapping[str, str]) -> _Now:
    """The newest messages of keys that each are on one partition; `names` are those that the plan calls topics by."""
    return {
        (names[topic], key): message
        for (topic, _partition), keys in newest.items()
        for key, (message, _versions) in keys.items()
    }


def compare(decisions: Iterable[pa.RecordBatch], now: _Now, *, limit: int) -> Comparison:
    """How what the target has `now` differs from `decisions`, with the first mismatches by topic and key."""
    compared, differing, first = 0, 0, list[Mismatch]()
    for batch in decisions:
        found = list(_mismatches(batch, now))
        compared += batch.num_rows
        differing += len(found)
        first = sorted([*first, *found], key=lambda one: (one.topic, one.key))[:limit]
    return Comparison(compared, differing, tuple(first))


def _mismatches(batch: pa.RecordBatch, now: _Now) -> Iterator[Mismatch]:
    columns = (batch.column("connector"), batch.column("topic"), batch.column("key"), _expected(batch))
    for connector, topic, key, expected in zip(*(column.to_pylist() for column in columns), strict=True):
        message: Message = now.get((topic, key))
        is_there = message is not None  # one without a value is false itself
        actual = _meaning(message.value()) if is_there else None
        if actual != expected:
            status = mismatch(expected, actual, found=is_there).value
            partition = message.partition() if is_there else None
            yield Mismatch("target", status, connector, topic, partition, key, expected, actual)


def _expected(batch: pa.RecordBatch) -> pa.Array:
    """What the target should have of each key: what is sent, else what it had; null for nothing."""
    before = pc.if_else(batch.column("before_nothing"), pa.scalar(None, pa.binary()), batch.column("before"))
    return pc.if_else(is_sent(batch), batch.column("value"), before)


def _meaning(value: bytes | None) -> bytes | None:
    return None if is_nothing(value) else value


def _row(found: Comparison | None) -> pa.RecordBatch:
    comparison = found or Comparison(0, 0, ())
    row = {
        "whole": found is not None,
        "compared": comparison.compared,
        "differing": comparison.differing,
        "mismatches": [asdict(one) for one in comparison.mismatches],
    }
    return pa.RecordBatch.from_pylist([row], schema=COMPARED)
