"""The snapshot of one side of a migration: what reading tasks found, in a Parquet file that each writes itself.

Rows that went through the JVM to be written there would be copied twice more; once they are here, Spark reads them like
any others. A file is there whole or not at all, and a task that is tried again writes the same one.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import SparkContext

from eosctl.core.offsets.migration_results import Snapshot
from eosctl.migrate.spark.record_counts import RecordCounts
from eosctl.migrate.spark.records.arrow_rows import arrow_batch
from eosctl.migrate.spark.records.kafka_io import ARROW_RECORDS, KEYS_AT_ONCE, Seen, read_ranges
from eosctl.migrate.spark.records.offset_ranges import ClientProperties, OffsetRange
from eosctl.migrate.spark.tasks import run_tasks

_ROWS_AT_ONCE = 50_000
_FOUND = pa.schema([("host", pa.string()), ("found", pa.string())])
_LANDED = pa.schema([("connectors", pa.list_(pa.string())), ("in_place", pa.bool_()), ("records", pa.int64())])


def fresh_folder(folder: Path) -> Path:
    """`folder`, empty: what an earlier run left goes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def hosts_without(context: SparkContext, folder: Path, *, tasks: int) -> list[str]:
    """The hosts where a task does not find in `folder` what this process has just put there.

    A folder of the same name is not the same folder: each task shows what the file says.
    """
    token = uuid4().hex
    file = folder / f".shared-{token}"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(token)

    def look(_number: int) -> Iterator[pa.RecordBatch]:
        found = None
        with suppress(OSError):
            found = file.read_text()
        yield arrow_batch([(platform.node(), found)], _FOUND)

    try:
        rows = run_tasks(context, tasks, look)
    finally:
        file.unlink(missing_ok=True)
    return sorted({row.host for row in rows if row.found != token})


def part_file(folder: Path, number: int) -> Path:
    """The Parquet file of task `number`."""
    return folder / f"part-{number:05}.parquet"


def parquet_files(folder: Path) -> list[Path]:
    """The files of a folder that tasks, or Spark itself, have written."""
    return sorted(folder.glob("part-*.parquet"))


def land_bins(
    context: SparkContext,
    client: ClientProperties,
    bins: Sequence[Sequence[OffsetRange]],
    folder: Path,
    *,
    counts: RecordCounts,
    first: int = 0,
) -> Snapshot:
    """Reads each bin in a task of its own, into the files from number `first` on.

    `client` are librdkafka properties; `counts` are told how many offsets are read.
    """
    settings = dict(client)

    def land_bin(number: int) -> Iterator[pa.RecordBatch]:
        seen = Seen()
        batches = read_ranges(settings, bins[number], count=counts.of_task(number), seen=seen)
        found = land(batches, part_file(folder, first + number))
        yield arrow_batch([(sorted(found.connectors), found.in_place, seen.records)], _LANDED)

    rows = run_tasks(context, len(bins), land_bin)
    return united(Snapshot(frozenset(row.connectors), row.in_place, row.records) for row in rows)


def united(snapshots: Iterable[Snapshot]) -> Snapshot:
    """What several snapshots hold together."""
    everything = list(snapshots)
    connectors = frozenset[str]().union(*(one.connectors for one in everything))
    in_place = all(one.in_place for one in everything)
    return Snapshot(connectors, in_place, sum(one.records for one in everything))


def land(batches: Iterable[pa.RecordBatch], file: Path) -> Snapshot:
    """Writes batches of RECORDS to `file`, and reports what they hold; `records` is for who reads them to say."""
    connectors, rows, in_place = set[str](), 0, True
    with whole_file(file, ARROW_RECORDS) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
            connectors.update(pc.unique(batch.column("connector")).drop_null().to_pylist())
            in_place = in_place and pc.all(batch.column("at_home")).as_py()
    return Snapshot(frozenset(connectors), in_place and rows < KEYS_AT_ONCE)  # else some keys may be there twice


def batches_of(file: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The batches of one file; with `columns`, these in their order."""
    with pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(_ROWS_AT_ONCE, columns=columns):
            yield batch.select(columns) if columns else batch


@contextmanager
def whole_file(file: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """A Parquet writer whose file appears under its name when the block ends well."""
    draft = file.with_name(f".{file.name}.{uuid4().hex}")  # Spark and Arrow pass over names that begin with a dot
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    try:
        with pq.ParquetWriter(draft, schema, use_dictionary=texts) as writer:
            yield writer
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
