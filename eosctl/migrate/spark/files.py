"""Files of records as sources and as the target of a migration: NDJSON record files, and Parquet.

They are read and written on the driver, streaming, so that their size does not matter. Needs no Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eosctl.core.records import UNKNOWN, Record, read_records, record_line
from eosctl.engine.columns import batch_of_rows
from eosctl.engine.reading.newest import Fold, records_table
from eosctl.errors import EosctlError, InputFileError
from eosctl.machine.files import write_whole

_ROWS_AT_ONCE = 50_000
_LINE_BYTES = 60
"""The fewest bytes of a line of a record file, member names included."""
Item = TypeVar("Item")
_PARQUET = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("timestamp_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
_NEEDED = ("partition", "key", "value")
_TYPES = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp_ms": pa.int64(),
    "key": pa.binary(),
    "value": pa.binary(),
}


def is_parquet(path: str) -> bool:
    """Tell by its name whether a file is Parquet; all others are record files (NDJSON)."""
    return path.endswith(".parquet")


def read_file(path: str) -> Iterator[Record]:
    """Yield the records of a file; without offsets each gets its place in the file: the later record is newer.

    Raises InputFileError for a file that is unreadable or has no records of Kafka, for records of several topics, or
    some with offsets and some without: these can't be compared.
    """
    topic: str | None = None
    has_offsets = False
    for place, record in enumerate(read_parquet(path) if is_parquet(path) else _of_lines(path)):
        knows_offset = record.offset != UNKNOWN
        if topic is None:
            topic, has_offsets = record.topic, knows_offset
        if record.topic != topic:
            raise InputFileError(
                f"{path} holds records of the topics {topic} and {record.topic}", hint="One file per topic, please."
            )
        if knows_offset != has_offsets:
            raise InputFileError(
                f"{path} holds records with an offset and records without, so that it is not known which are newer",
                hint=f"Record {place + 1} is the first that differs. Give all of them offsets, or none.",
            )
        yield record if knows_offset else record._replace(offset=place)


def record_count(path: str) -> int:
    """Return the maximum number of records in a file, without reading it. Raises InputFileError.

    Parquet knows the number; for lines it follows from the size.
    """
    with _readable(path):
        if not is_parquet(path):
            return Path(path).stat().st_size // _LINE_BYTES
        from pyarrow import dataset

        return int(dataset.dataset(path, format="parquet").count_rows())


def folds_of(path: str, name: str, *, partitions: int) -> Iterator[Fold]:
    """Yield the records of a file, some at a time and in its order, under the topic `name`.

    A partition and key may occur several times, in any order of their offsets.
    """
    for piece in _pieces(read_file(path)):
        yield Fold(records_table(name, piece, partitions=partitions), 0, len(piece), {name: partitions})


def _pieces(rows: Iterator[Item]) -> Iterator[list[Item]]:
    while piece := list(islice(rows, _ROWS_AT_ONCE)):
        yield piece


def write_file(path: str, records: Iterable[Record]) -> int:
    """Write a file whole or not at all, synced, and return its number of records. Raises EosctlError."""
    count, write = 0, _write_parquet if is_parquet(path) else _write_lines

    def counted() -> Iterator[Record]:
        nonlocal count
        for record in records:
            count += 1
            yield record

    try:
        write_whole(Path(path), lambda file: write(file, counted()))
    except OSError as exc:
        raise EosctlError(f"cannot write {path}: {exc.strerror or exc}", hint="Check space and rights.") from exc
    return count


def _of_lines(path: str) -> Iterator[Record]:
    with _readable(path), open(path, "rb") as file:
        yield from read_records(file, name=path)


def read_parquet(path: str | Path) -> Iterator[Record]:
    """Yield the records of a Parquet file, or of a folder of them in order of their names.

    The time is `timestamp_ms` or Spark's own `timestamp`; `topic` is needed if there are several; all columns but
    `partition`, `key` and `value` may be absent. Raises InputFileError.
    """
    from pyarrow import dataset

    with _readable(path):
        source = dataset.dataset(path, format="parquet")
        names = source.schema.names
        missing = [name for name in _NEEDED if name not in names]
        if missing:
            raise InputFileError(
                f"{path} has no column {', '.join(missing)}", hint=f"It has: {', '.join(names) or 'none'}."
            )
        for batch in source.to_batches(batch_size=_ROWS_AT_ONCE):
            yield from _rows(batch)


def _rows(batch: pa.RecordBatch) -> Iterator[Record]:
    columns: dict[str, Any] = {name: batch.column(name) for name in batch.schema.names}
    if "timestamp_ms" not in columns and "timestamp" in columns:
        columns["timestamp_ms"] = columns["timestamp"]
    nothing = [None] * batch.num_rows
    rows = (_typed(name, columns[name]).to_pylist() if name in columns else nothing for name in _TYPES)
    for topic, partition, offset, timestamp_ms, key, value in zip(*rows, strict=True):
        yield Record(
            topic or "",
            partition,
            UNKNOWN if offset is None else offset,
            UNKNOWN if timestamp_ms is None else timestamp_ms,
            key,
            value,
        )


def _typed(name: str, column: pa.Array) -> pa.Array:
    """Convert a column of records to its type; raises the errors that `_readable` translates.

    Numbers are never cut or made of text.
    """
    kind, least = _TYPES[name], 0 if name == "partition" else UNKNOWN
    if name == "timestamp_ms" and pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", tz="UTC")).cast(kind)
    if pa.types.is_integer(kind):
        if not pa.types.is_integer(column.type):
            raise pa.ArrowTypeError(f"column {name} is of type {column.type}")
        if name == "partition" and column.null_count:
            raise pa.ArrowInvalid("a record has no partition")
        if (pc.min(column).as_py() or 0) < least:
            raise pa.ArrowInvalid(f"column {name} has {pc.min(column)}")
    return column.cast(kind)


@contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    """Translate the errors of reading a file into InputFileError."""
    try:
        yield
    except OSError as exc:
        raise InputFileError(f"cannot read {path}: {exc.strerror or exc}", hint="Check the path.") from exc
    except (pa.ArrowException, ValueError) as exc:  # a name that is not UTF-8
        raise InputFileError(
            f"{path} is no Parquet file of Kafka records: {exc}",
            hint="Needed: binary key and value, whole numbers as partition, offset and timestamp_ms.",
        ) from exc


def _write_lines(file: IO[bytes], records: Iterable[Record]) -> None:
    for record in records:
        file.write(f"{record_line(record)}\n".encode())


def _write_parquet(file: IO[bytes], records: Iterable[Record]) -> None:
    rows = ((r.topic, r.partition, r.timestamp_ms, r.key, r.value) for r in records)
    with pq.ParquetWriter(file, _PARQUET) as writer:
        for piece in _pieces(rows):
            writer.write_batch(batch_of_rows(piece, _PARQUET))
