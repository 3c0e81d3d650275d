"""What a migration will replace, as lines of a record file: the backup that `offsets restore` takes.

The lines are made by Spark's tasks and land in files before the driver touches them: millions of rows that were fetched
through the driver's JVM would need a heap of their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from eosctl.core.migration import topic_of
from eosctl.core.record_file import UNKNOWN, encode_bytes, record_line
from eosctl.core.records import Record

_COLUMNS = (
    *("topic", "key", "value", "partition", "partitions"),
    *("target_exists", "target_offset", "target_timestamp_ms", "before"),
)
_LINE = pa.schema([("value", pa.string())])


def backup_lines(sent: DataFrame, folder: Path, *, cluster_id: str | None) -> Iterator[str]:
    """For each of `sent` (DECISIONS): what the target has now, and as `written` the value that will replace it.

    A key that the target does not have is a tombstone on the partition where it will be written: writing that undoes
    the migration. The lines land in `folder` first.
    """

    def lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                made = [_line(cluster_id, *row) for row in rows]
                yield pa.RecordBatch.from_arrays([pa.array(made, pa.string())], schema=_LINE)

    sent.select(*_COLUMNS).mapInArrow(lines, "value string").write.mode("overwrite").text(str(folder))
    return _lines_of(folder)


def _lines_of(folder: Path) -> Iterator[str]:
    for part in sorted(folder.glob("part-*")):
        with part.open(encoding="utf-8", newline="\n") as file:
            yield from (line.removesuffix("\n") for line in file)


def _line(
    cluster_id: str | None, topic: str, key: bytes, value: bytes | None, partition: Any, partitions: int,
    exists: bool, offset: Any, timestamp_ms: Any, before: bytes | None,
) -> str:  # fmt: skip
    from confluent_kafka import murmur2

    if exists:
        there = Record(topic_of(topic), partition, offset, timestamp_ms, key, before)
    else:
        there = Record(topic_of(topic), murmur2(key, partitions), UNKNOWN, UNKNOWN, key, None)
    return record_line(there, {"written": encode_bytes(value), "cluster_id": cluster_id})
