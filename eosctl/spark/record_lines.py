"""What a migration will replace, as lines of a record file: the backup that `offsets restore` takes.

The lines are made in tasks and land in files before the driver touches them: millions of rows that were fetched through
the driver's JVM would need a heap of their size.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkContext

from eosctl.core.migration import topic_of
from eosctl.core.record_file import UNKNOWN, backup_line
from eosctl.spark.parts import SENDS
from eosctl.spark.snapshots import batches_of, fresh_folder, parquet_files
from eosctl.spark.tasks import run_tasks

_BLOCK_BYTES = 1 << 20
_COLUMNS = (
    *("action", "topic", "key", "value", "partition", "partitions"),
    *("target_exists", "target_offset", "target_timestamp_ms", "before"),
)


def backup_blocks(context: SparkContext, snapshot: Path, *, cluster_id: str | None) -> Iterator[bytes]:
    """The record file, in blocks of bytes.

    For each decision of a snapshot that sends something: what the target has now, and as `written` what replaces it. A
    key that the target does not have is a tombstone on the partition where it will be written: writing that undoes the
    migration.
    """
    files, folder = parquet_files(snapshot / "decisions"), fresh_folder(snapshot / "backup")

    def write_lines(number: int) -> Iterator[pa.RecordBatch]:
        with (folder / f"part-{number:05}").open("w", encoding="utf-8", newline="\n") as file:
            for batch in batches_of(files[number], _COLUMNS):
                rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                file.writelines(f"{_line(cluster_id, *row)}\n" for action, *row in rows if action in SENDS)
        yield from ()

    run_tasks(context, len(files), write_lines)
    return _blocks_of(folder)


def _blocks_of(folder: Path) -> Iterator[bytes]:
    """What the files of a folder hold, one after the other; each goes when it is read."""
    for part in sorted(folder.glob("part-*")):
        with part.open("rb") as file:
            yield from iter(partial(file.read, _BLOCK_BYTES), b"")
        part.unlink()


def _line(
    cluster_id: str | None, topic: str, key: bytes, value: bytes | None, partition: Any, partitions: int,
    exists: bool, offset: Any, timestamp_ms: Any, before: bytes | None,
) -> str:  # fmt: skip
    from confluent_kafka import murmur2

    if not exists:
        partition, offset, timestamp_ms, before = murmur2(key, partitions), UNKNOWN, UNKNOWN, None
    return backup_line(
        topic_of(topic), partition, offset, timestamp_ms, key, before, written=value, cluster_id=cluster_id
    )
