"""Tables on the disk: whole files of Arrow's IPC format, records by parts of the work, and rows that exceed memory.

A file is written whole or not at all.

A key belongs to one part of the work, where all its records come together, wherever they were read. Records that were
read are kept in a folder by that part (`KeyParts`): every task finds all records of its keys, whichever reader has read
them. Each reader writes one file, however much it reads, whose last batch has the place of each part in it: every part
looks into every file.

Rows that do not fit into memory are divided into parts that do, and wait on the disk. All rows of a group are in one
part.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eosctl.core.offsets import migration
from eosctl.core.offsets.migration import Parts, Snapshot
from eosctl.engine.columns import RECORDS, VALUES, dictionary_of, in_one_piece, row_numbers, row_sizes
from eosctl.engine.keys import hash_column, homes_by, renamed
from eosctl.engine.reading.newest import Fold
from eosctl.machine.files import make_folder, write_whole
from eosctl.machine.side_by_side import two_at_a_time

_ROWS_AT_ONCE = 100_000


class KeyParts(Struct, frozen=True):
    """The assignment of keys to parts of the work.

    A key belongs to the part that has its partition, in a topic of as many partitions as there are numbers in `parts`,
    under the new name of its connector, if `renames` has one. Of a topic with that many partitions, a part has whole
    partitions, as far as their keys are where they should be.
    """

    parts: Parts
    renames: Mapping[str, str] = {}

    def size(self) -> int:
        """Return the number of partitions that keys are distributed over."""
        return sum(map(len, self.parts))

    def split(self, fold: Fold) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield each part with records of it, which are not copied more than needed; a part may come several times."""
        for batch in fold.records.to_batches(max_chunksize=_ROWS_AT_ONCE):
            yield from self._split(batch, fold.sizes)

    def _split(self, records: pa.RecordBatch, sizes: Mapping[str, int]) -> Iterator[tuple[int, pa.RecordBatch]]:
        numbers = self._numbers(records, sizes) if len(self.parts) > 1 else pa.array([0] * len(records))
        found = sorted(pc.unique(numbers).to_pylist())
        if len(found) < 2:
            yield from ((number, records) for number in found)
            return
        counts = {row["values"]: row["counts"] for row in pc.value_counts(numbers).to_pylist()}
        in_order, begin = records.take(pc.sort_indices(numbers)), 0
        for number in found:
            yield number, in_order.slice(begin, counts[number])
            begin += counts[number]

    def _numbers(self, records: pa.RecordBatch, sizes: Mapping[str, int]) -> pa.Array:
        """Return the part of each record; a record without a key belongs to the first part."""
        topics, keys, connectors = (records[name] for name in ("topic", "key", "connector"))
        size = self.size()
        found, partitions = records["at_home"], records["partition"]
        if set(sizes.values()) != {size}:
            found = pc.and_(found, pc.equal(dictionary_of(topics, dict(sizes), pa.int32()), size))
        if self.renames:
            changed = pc.is_in(connectors, value_set=pa.array(list(self.renames), pa.string()))
            found = pc.and_(found, pc.invert(changed))
        places = partitions
        if not pc.all(found).as_py():
            other = pc.invert(found)
            given = keys.filter(other)
            final = renamed(given, connectors.filter(other), self.renames)
            hashes = records["hash"].filter(other) if final is given else hash_column(final)
            homes = homes_by(hashes, size).fill_null(0)
            places = pc.replace_with_mask(partitions, other, homes)
        number_of = {place: number for number, part in enumerate(self.parts) for place in part}
        return pa.array([number_of[place] for place in range(size)], pa.int32()).take(places)


_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
"""Columns repeat themselves: compressing them takes less time than writing all their bytes to a disk."""
ROWS_AT_ONCE = 100_000
"""The most rows of a batch."""
_ALIGNMENT = 64
"""Arrow's alignment of buffers, which are used where they lie in the file."""


def write_table(file: Path, table: pa.Table) -> None:
    """Write a table into a file."""
    write_batches(file, table.schema, [table])


def write_batches(file: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write tables into a file, one after the other, each as one batch or, if it has many rows, as several."""

    def write(draft: IO[bytes]) -> None:
        with pa.ipc.new_file(draft, schema, options=_COMPRESSED) as writer:
            for table in tables:
                writer.write_table(table, max_chunksize=ROWS_AT_ONCE)

    write_whole(file, write, synced=False)


def read_table(file: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table, or some of its `columns`, from a file; raises KeyError if it lacks one of them.

    Columns that are not compressed stay in the file for as long as they are used.
    """
    with pa.memory_map(str(file)) as source:
        found = _opened(source, columns).read_all()
        return found if columns is None else found.select(columns)


def tables_in(file: Path, columns: Sequence[str], *, batches: Sequence[int] | None = None) -> Iterator[pa.Table]:
    """Yield all batches of a file, or some, in tables of about ROWS_AT_ONCE rows; an empty table if there are none."""
    with pa.memory_map(str(file)) as source:
        found = _opened(source, columns)
        held, is_first = list[pa.RecordBatch](), True
        for number in range(found.num_record_batches) if batches is None else batches:
            held.append(found.get_batch(number))
            if sum(map(len, held)) >= ROWS_AT_ONCE:
                yield pa.Table.from_batches(held).select(columns)
                held, is_first = [], False
        if held or is_first:
            yield pa.Table.from_batches(held, found.schema).select(columns)


def metadata_of(file: Path) -> Mapping[bytes, bytes]:
    """Return the metadata of a file's schema, without reading any row."""
    with pa.memory_map(str(file)) as source:
        return pa.ipc.open_file(source).schema.metadata or {}


def _opened(source: pa.NativeFile, columns: Sequence[str] | None) -> pa.ipc.RecordBatchFileReader:
    found = pa.ipc.open_file(source)
    if columns is None:
        return found
    if missing := set(columns).difference(found.schema.names):
        raise KeyError(*sorted(missing))
    wanted = [found.schema.get_field_index(name) for name in columns]
    return pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=wanted))


class SpillFile:
    """A file without a name that tables are put into; it disappears with the process, and threads may share it."""

    def __init__(self, folder: Path) -> None:
        """Use `folder`, which is made with the first table, as the file is."""
        self.folder = folder
        self._descriptor: int | None = None
        self._lock = threading.Lock()

    def put(self, table: pa.Table) -> SpilledTable:
        """Append a table. Raises OSError if it can't be written."""
        with self._lock:
            if self._descriptor is None:
                self._descriptor = _unnamed_file(self.folder)
                weakref.finalize(self, os.close, self._descriptor)
            with open(self._descriptor, "r+b", closefd=False) as file:
                begin = file.seek(-(-file.seek(0, os.SEEK_END) // _ALIGNMENT) * _ALIGNMENT)
                with pa.ipc.new_stream(file, table.schema) as writer:
                    writer.write_table(table)
                return SpilledTable(self, begin, file.tell() - begin, len(table))

    def get(self, begin: int, size: int) -> pa.Table:
        """Read a table back.

        The memory that it takes is given back when nothing of it is in use any more.
        """
        with pa.memory_map(f"/dev/fd/{self._descriptor}") as source:
            source.seek(begin)
            return pa.ipc.open_stream(source.read_buffer(size)).read_all()


def _unnamed_file(folder: Path) -> int:
    make_folder(folder)
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.dup(file.fileno())


class SpilledTable(Struct, frozen=True):
    """A table with this number of `rows` in a spool, which stays for as long."""

    spool: SpillFile
    begin: int
    size: int
    rows: int

    def __len__(self) -> int:
        return self.rows

    def table(self) -> pa.Table:
        """Read the table, as `SpillFile.get` does."""
        return self.spool.get(self.begin, self.size)


def tables_of(parts: Iterable[pa.Table | SpilledTable]) -> Iterator[pa.Table]:
    """Yield the tables of parts that are in memory or in a spool."""
    return (part if isinstance(part, pa.Table) else part.table() for part in parts)


def spilled_if_several(tables: Iterable[pa.Table], spool: SpillFile) -> Iterator[pa.Table | SpilledTable]:
    """Yield the only table, or put each of several into the spool; raises OSError if that can't be written."""
    one, several = one_or_several(tables)
    if one is not None:
        yield one
    yield from map(spool.put, several)


def one_or_several(tables: Iterable[pa.Table]) -> tuple[pa.Table | None, Iterator[pa.Table]]:
    """Return the only table, or an iterator over several, none of which is held here longer than needed."""
    tables = iter(tables)
    first = list(islice(tables, 2))
    if len(first) == 1:
        return first[0], iter(())
    return None, chain(_drained(first), tables)


def _drained(tables: list[pa.Table]) -> Iterator[pa.Table]:
    while tables:
        yield tables.pop(0)


def part_file(folder: Path, number: int) -> Path:
    """Return the file of part `number`."""
    return folder / f"part-{number:05}.arrow"


def part_files(folder: Path) -> list[Path]:
    """Return the files of all parts, in order."""
    return sorted(folder.glob("part-*.arrow"))


def land(folder: Path, number: int, folds: Iterable[Fold], places: KeyParts) -> Snapshot:
    """Write what reader `number` has read into a file of `folder`; a second attempt replaces the first."""
    found, part_bytes = list[Snapshot](), Counter[int]()
    about = _FileIndex()

    def write(draft: IO[bytes]) -> None:
        with pa.ipc.new_file(draft, RECORDS, options=_COMPRESSED) as writer:
            for fold in folds:
                for part, batch in places.split(fold):
                    writer.write_batch(batch)
                    about.add(part)
                    part_bytes[part] += batch.nbytes
                about.older += fold.older
                found.append(Snapshot(frozenset(fold.connectors()), fold.in_place(), fold.read))
            writer.write_batch(about.batch())

    write_whole(folder / f"{number:05}.arrow", write, synced=False)
    return Snapshot.united([*found, Snapshot(part_bytes=part_bytes)])


def read_part(folder: Path, number: int) -> pa.Table:
    """Read all RECORDS of the keys of part `number`; a partition and key may be there several times."""
    batches = [RECORDS.empty_table()]
    for file in _reader_files(folder):
        with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as reader:
            found = [reader.get_batch(place) for place in _read_index(reader).parts.get(number, ())]
        batches.append(pa.Table.from_batches(found, RECORDS))
    return pa.concat_tables(batches)


def older_in(folder: Path) -> int:
    """Count the records that the readers have left out for newer ones of the same keys."""
    older = 0
    for file in _reader_files(folder):
        with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as reader:
            older += _read_index(reader).older
    return older


def next_reader(folder: Path) -> int:
    """Return the number of the next reader that writes a file into `folder`."""
    return 1 + max((int(file.stem) for file in _reader_files(folder)), default=-1)


def _reader_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]*.arrow"))


@dataclass(slots=True)
class _FileIndex:
    """The index of a reader's file: the batches of each of its `parts`, and how many `older` records were left out."""

    parts: dict[int, list[int]] = field(default_factory=dict)
    older: int = 0
    batches: int = 0

    def add(self, part: int) -> None:
        """Note the part of the file's next batch."""
        self.parts.setdefault(part, []).append(self.batches)
        self.batches += 1

    def batch(self) -> pa.RecordBatch:
        """Return the last batch of the file: one row, with the index as its value."""
        text = json.dumps({"parts": list(self.parts.items()), "older": self.older})
        values = {"value": pa.array([text.encode()], VALUES)}
        return pa.record_batch([values.get(one.name, pa.nulls(1, one.type)) for one in RECORDS], schema=RECORDS)


def _read_index(reader: pa.ipc.RecordBatchFileReader) -> _FileIndex:
    found = json.loads(reader.get_batch(reader.num_record_batches - 1)["value"][0].as_py())
    return _FileIndex(dict(found["parts"]), found["older"])


PART_RECORDS, PART_BYTES = migration.PART_RECORDS // 2, migration.PART_BYTES // 2
"""The limits of a part: two parts are in memory at a time."""


def in_large_pieces(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Join tables until each has as many rows as a part, or a few more; the last one may have fewer."""
    held, rows, size = list[pa.Table](), 0, 0
    for piece in pieces:
        held.append(piece)
        rows, size = rows + len(piece), size + piece.nbytes
        if rows >= PART_RECORDS or size >= PART_BYTES:
            yield pa.concat_tables(held)
            held, rows, size = [], 0, 0
    if rows:
        yield pa.concat_tables(held)


class _Slice(NamedTuple):
    """Neighbouring rows of table `number` on the disk, and about how many bytes they have."""

    number: int
    spilled: SpilledTable
    first: int
    rows: int
    size: int

    def table(self) -> pa.Table:
        """Read the rows."""
        return self.spilled.table().slice(self.first, self.rows)


_OnDisk = tuple[SpilledTable, Sequence[tuple[Any, ...]]]
"""A table group by group, with the key of each group, its first row, the number of its rows, and their size."""


class Grouped:
    """Many rows in parts: all rows of a group are in one part, and a part fits into memory.

    A group with more than PART_RECORDS, or PART_BYTES, is a part by itself.
    """

    def __init__(
        self,
        tables: Iterable[pa.Table],
        spool: SpillFile,
        *,
        by: Sequence[str],
        in_order: Callable[[pa.Table], pa.Table],
    ) -> None:
        """Sort several `tables` (`in_large_pieces`) into the spool; raises OSError if it can't be written.

        Rows with the same values in the columns `by` are a group; `in_order` brings the rows of a group together.
        """
        self._by, self._in_order = list(by), in_order
        self._small, several = one_or_several(tables)
        on_disk = list(two_at_a_time(partial(self._spilled, spool=spool), several))
        self._parts = list(_parts_of(on_disk))

    def _spilled(self, table: pa.Table, spool: SpillFile) -> _OnDisk:
        table = in_one_piece(self._in_order(table))
        groups = table.select(self._by)
        groups = groups.append_column("row", row_numbers(len(table))).append_column("size", row_sizes(table))
        found = groups.group_by(self._by).aggregate([("row", "min"), ([], "count_all"), ("size", "sum")])
        return spool.put(table), list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def tables(self) -> Iterator[pa.Table]:
        """Yield the parts; a single one keeps the order of its rows."""
        if self._small is not None:
            yield self._small
        for part in self._parts:
            yield pa.concat_tables(each.table() for each in part)

    def count_parts(self) -> int:
        """Return the number of `tables`."""
        return len(self._parts) or 1

    def is_large(self) -> bool:
        """Tell whether there are parts that wait on the disk."""
        return bool(self._parts)


def _parts_of(tables: Sequence[_OnDisk]) -> Iterator[Sequence[_Slice]]:
    """Yield the groups in order, as many together as fit into a part.

    Rows of them that are neighbours in one table stay neighbours.
    """
    groups: dict[tuple[object, ...], list[_Slice]] = {}
    for number, (spilled, found) in enumerate(tables):
        for *group, first, rows, size in found:
            groups.setdefault(tuple(group), []).append(_Slice(number, spilled, first, rows, size))
    part, rows, size = dict[int, _Slice](), 0, 0
    for _group, slices in sorted(groups.items()):
        more_rows, more_size = sum(each.rows for each in slices), sum(each.size for each in slices)
        if part and (rows + more_rows > PART_RECORDS or size + more_size > PART_BYTES):
            yield sorted(part.values())
            part, rows, size = {}, 0, 0
        rows, size = rows + more_rows, size + more_size
        for each in slices:
            before = part.get(each.number, each._replace(rows=0, size=0))
            part[each.number] = before._replace(rows=before.rows + each.rows, size=before.size + each.size)
    if part:
        yield sorted(part.values())
