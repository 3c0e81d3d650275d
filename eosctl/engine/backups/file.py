"""Backups of many keys as one Parquet file, and the lines of a record file made from columns.

A backup is written and read a few rows at a time, and accepted as a whole or refused. Any reader of Parquet can look
into one. The file's metadata records for eosctl that it is a backup, of which cluster, and how many records it keeps.
Each page has a checksum.

The lines of a record file can have the value that was written over each record.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import asdict

from eosctl.core.kept.plan_file import json_of, typed
from eosctl.core.records import UNKNOWN, bytes_text
from eosctl.engine.columns import arrow_schema, one_array
from eosctl.engine.keys import owners_of
from eosctl.errors import InputFileError

AT_ONCE = 50_000
"""Rows converted from columns at a time."""
_BYTES_AT_ONCE = 1 << 26
_FIRST_PLAIN = 0x20
"""The first character that JSON does not escape by its number."""
_BACKSLASH = 0x5C


def few_at_once(table: pa.Table, *, rows: int = AT_ONCE) -> Iterator[pa.Table]:
    """Yield the rows of a table in slices of at most `rows` rows and 64 MiB; a single row may be larger.

    As text they are several times as long, and a column ends at 2 GiB.
    """
    for begin in range(0, len(table), rows):
        yield from _small_enough(table.slice(begin, rows))


def _small_enough(table: pa.Table) -> Iterator[pa.Table]:
    if len(table) < 2 or table.nbytes <= _BYTES_AT_ONCE:
        yield table
        return
    half = len(table) // 2
    yield from _small_enough(table.slice(0, half))
    yield from _small_enough(table.slice(half))


def record_lines(rows: pa.Table) -> bytes:
    """Return records as lines: topic, partition, offset, timestamp_ms, key, value, and `headers` if any.

    `offset` is null or -1 if there is no record, `headers` are their member's JSON or null.
    """
    return _lines(rows, "}\n")


def backup_lines(rows: pa.Table, *, cluster_id: str | None) -> bytes:
    """Return records as lines like `record_lines`, with `written`, the value that was written over each."""
    written = json_texts(one_array(rows["written"]))
    return _lines(rows, ',"written":', *written, f',"cluster_id":{json.dumps(cluster_id)}}}\n')


Piece: TypeAlias = "str | pa.Array"
"""A piece of all lines: the text that all have, or a column with the text of each. They are joined once, at the end."""


def _lines(rows: pa.Table, *more: Piece) -> bytes:
    batch = {name: one_array(rows[name]) for name in rows.column_names}
    headers: Piece = ""
    if "headers" in batch and batch["headers"].null_count < len(rows):
        headers = pc.fill_null(pc.binary_join_element_wise(',"headers":', batch["headers"], ""), "")
    pieces = [
        _beginnings(batch["topic"], batch["partition"]),
        *_number("offset", batch["offset"]), *_number("timestamp_ms", batch["timestamp_ms"]),
        ',"key":', *json_texts(batch["key"]), ',"value":', *json_texts(batch["value"]), headers, *more,
    ]  # fmt: skip
    lines = pc.binary_join_element_wise(*_fewer(pieces), "")
    text: bytes = lines.buffers()[2].slice(0, pc.sum(pc.binary_length(lines)).as_py() or 0).to_pybytes()
    return text


def _fewer(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Join neighbouring texts: each piece takes time in every line."""
    for is_text, some in groupby(pieces, key=lambda piece: isinstance(piece, str)):
        if is_text:
            yield "".join(some)
        else:
            yield from some


def _beginnings(topics: pa.Array, partitions: pa.Array) -> Piece:
    """Return the beginning of each line, up to its offset; there are few distinct ones, and often one."""
    of_topics, of_partitions = topics.dictionary_encode(), partitions.dictionary_encode()
    names = [json.dumps(name, ensure_ascii=False) for name in of_topics.dictionary.to_pylist()]
    numbers = of_partitions.dictionary.to_pylist()
    texts = [f'{{"topic":{name},"partition":{number}' for name in names for number in numbers]
    if len(texts) == 1:
        return texts[0]
    places = pc.add(pc.multiply(of_topics.indices, len(numbers)), of_partitions.indices)
    return pa.array(texts, pa.string()).take(places)


def _number(name: str, numbers: pa.Array) -> list[Piece]:
    """Return `,"name":number` where the number is known, else an empty text."""
    known = pc.fill_null(pc.not_equal(numbers, UNKNOWN), fill_value=False)
    pieces = [f',"{name}":', numbers.cast(pa.string())]
    if pc.all(known).as_py():
        return pieces
    return [pc.if_else(known, pc.binary_join_element_wise(*pieces, ""), "")]


def json_texts(values: pa.Array) -> list[Piece]:
    """Return `bytes_text` of a column.

    All at once, unless a value is not UTF-8 or has characters that JSON escapes by number.
    """
    try:
        text = values.cast(pa.string())
    except pa.ArrowInvalid:
        text = None
    if text is None or (_characters(text) < _FIRST_PLAIN).any():
        return [pa.array([bytes_text(value) for value in values.to_pylist()], pa.string())]
    if (_characters(text) == _BACKSLASH).any():  # to look costs little of what it costs to replace none
        text = pc.replace_substring(text, "\\", "\\\\")
    text = pc.replace_substring(text, '"', '\\"')
    pieces = ['"', text, '"']
    return pieces if not text.null_count else [pc.fill_null(pc.binary_join_element_wise(*pieces, ""), "null")]


def _characters(texts: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the bytes of texts, without copying them."""
    if not len(texts):
        return np.empty(0, np.uint8)
    _valid, offsets, data = texts.buffers()
    begins = np.frombuffer(offsets, np.int32)[texts.offset :]
    return np.frombuffer(data or b"", np.uint8)[begins[0] : begins[len(texts)]]


BACKUP = arrow_schema(
    "topic string, partition int, offset long, timestamp_ms long, key binary, value value, headers string, "
    "written value"
)
"""The columns of a backup, for each key: the record that was there, and the value `written` over it. `offset` is null
if there was none, `timestamp_ms` if it has no time; `headers` are the member of a record file, null for none."""

_MAGIC = b"PAR1"
_ABOUT = b"eosctl.backup"
_FORMAT = 1


class _BackupMetadata(Struct, frozen=True):
    """The metadata of a backup file; `records` is written last, so it is there only if all records were written."""

    format: int
    cluster_id: str | None
    records: int


def write_tables(file: IO[bytes], tables: Iterable[pa.Table], *, cluster_id: str | None) -> int:
    """Write rows that have the columns of BACKUP, of which `headers` may be missing, and return their number."""
    from pyarrow import parquet

    records = 0
    with parquet.ParquetWriter(
        file,
        BACKUP,
        compression="zstd",
        use_dictionary=["topic"],
        write_statistics=["topic", "partition"],
        write_page_checksum=True,
    ) as writer:
        for table in tables:
            for some in few_at_once(table):
                writer.write_table(_as_backup(some))
                records += len(some)
        about = _BackupMetadata(_FORMAT, cluster_id, records)
        writer.add_key_value_metadata({_ABOUT: json.dumps(asdict(about)).encode()})
    return records


def _as_backup(rows: pa.Table) -> pa.Table:
    columns = {name: rows[name] for name in BACKUP.names if name in rows.column_names}
    columns.setdefault("headers", pa.nulls(len(rows), pa.string()))
    for name in ("offset", "timestamp_ms"):
        unknown = pc.equal(columns[name], UNKNOWN)
        columns[name] = pc.if_else(unknown, pa.scalar(None, pa.int64()), columns[name])
    return pa.table([columns[name] for name in BACKUP.names], schema=BACKUP)


def is_columnar(path: Path) -> bool:
    """Tell by its first bytes whether a file is Parquet.

    False for a file that can't be read, or can't be read twice, like a pipe.
    """
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


class BackupFile(Struct, frozen=True):
    """A backup in Parquet that is whole, as far as its end shows, with its cluster and its number of `records`."""

    path: Path
    cluster_id: str | None
    records: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows as BACKUP, a few at a time. Raises InputFileError if the file is damaged."""
        from pyarrow import parquet

        found = 0
        with _readable(self.path), parquet.ParquetFile(self.path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(AT_ONCE, columns=BACKUP.names):
                found += batch.num_rows
                yield batch.select(BACKUP.names).cast(BACKUP)
        if found != self.records:
            raise _damaged(self.path, f"it has {found:,} records, and had {self.records:,}")

    def tables(self, connectors: Collection[str] = ()) -> Iterator[pa.Table]:
        """Yield the rows, so few at a time that they fit into memory as lines; with `connectors`, only the rows of
        these.
        """
        for batch in self.batches():
            if connectors:
                wanted = pa.array(list(connectors), pa.string())
                batch = batch.filter(pc.is_in(owners_of(batch["key"]), value_set=wanted))
            yield from few_at_once(pa.Table.from_batches([batch]))

    def lines(self) -> Iterator[bytes]:
        """Yield the backup as lines of a record file, many at a time. Raises InputFileError."""
        return (backup_lines(some, cluster_id=self.cluster_id) for some in self.tables())


def open_backup(path: str | Path) -> BackupFile:
    """Open a backup in Parquet.

    Raises InputFileError for a file that is unreadable, cut off, no backup, or from a newer eosctl.
    """
    from pyarrow import parquet

    path = Path(path)
    with _readable(path), parquet.ParquetFile(path) as file:
        text, names = (file.metadata.metadata or {}).get(_ABOUT), file.schema_arrow.names
    about = _read_metadata(path, text)
    missing = [name for name in BACKUP.names if name not in names]
    if missing:
        raise _not_a_backup(path, f"it has no column {', '.join(missing)}")
    return BackupFile(path, about.cluster_id, about.records)


def _read_metadata(path: Path, text: bytes | None) -> _BackupMetadata:
    if text is None:
        raise _not_a_backup(path, "eosctl's own metadata are missing")
    try:
        about = typed(json_of(text), _BackupMetadata)
    except ValueError as exc:
        raise _not_a_backup(path, f"its metadata can't be read: {exc}") from exc
    if about.format > _FORMAT:
        raise InputFileError(
            f"{path} is a backup of format {about.format}, and this eosctl reads {_FORMAT}",
            hint="Use the version of eosctl that wrote it, or a newer one.",
        )
    return about


def _not_a_backup(path: Path, why: str) -> InputFileError:
    return InputFileError(
        f"{path} is a Parquet file, but not a backup that eosctl wrote: {why}",
        hint="`eosctl offsets migrate --from FILE.parquet` reads Parquet files of records.",
    )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Translate the errors of reading a file into InputFileError."""
    try:
        yield
    except (pa.ArrowException, ValueError) as exc:  # a name that is not UTF-8
        raise _damaged(path, str(exc)) from exc
    except OSError as exc:
        if exc.errno is None:  # Arrow's own, of what it found in the file
            raise _damaged(path, str(exc)) from exc
        raise InputFileError(f"cannot read {path}: {exc.strerror or exc}", hint="Check the path.") from exc


def _damaged(path: Path, reason: str) -> InputFileError:
    return InputFileError(
        f"{path} is cut off or damaged: {reason.splitlines()[0]}",
        hint="Copy it again from where it was made. Nothing was written to Kafka.",
    )
