"""Runs of a topic's records, some at a time and in order, as columns that become lines of a record file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eosctl.core.records import Record
from eosctl.engine.backups.file import few_at_once
from eosctl.engine.columns import LINES, filter_rows, one_array
from eosctl.engine.keys import owners_of
from eosctl.engine.reading.batches import Piece
from eosctl.engine.reading.heads import headers_of, headers_text, headers_texts
from eosctl.engine.reading.ranges import OffsetRange

_LINES_AT_ONCE = 10_000
"""Memory for more lines is requested from the system anew each time, which takes a third of the time."""
_ORDER = [("partition", "ascending"), ("offset", "ascending")]


class RecordRun(Struct, frozen=True):
    """A run of a topic's records as LINES, by partition, then offset; `read` is how many were read for them."""

    rows: pa.Table
    read: int

    def __len__(self) -> int:
        return len(self.rows)

    def tombstones(self) -> int:
        """Count the records without a value."""
        return int(self.rows["value"].null_count)

    def of_connectors(self, connectors: Collection[str]) -> RecordRun:
        """Keep only the records of these connectors."""
        owners = owners_of(one_array(self.rows["key"]))
        wanted = pc.is_in(owners, value_set=pa.array(list(connectors), pa.string()))
        return RecordRun(filter_rows(self.rows, wanted), self.read)

    def changed(self, beginnings: Sequence[bytes], change: Callable[[Record], Record]) -> tuple[RecordRun, int]:
        """Change the records whose keys have one of these beginnings; also return how many values changed."""
        keys = one_array(self.rows["key"])
        concerned = pc.fill_null(_begin_with(keys, beginnings), fill_value=False)
        if not pc.any(concerned).as_py():
            return self, 0
        before = _records_of(self.rows.filter(concerned))
        after = list(map(change, before))
        values = one_array(self.rows["value"])
        values = pc.replace_with_mask(values, concerned, pa.array([each.value for each in after], values.type))
        rows = self.rows.set_column(self.rows.column_names.index("value"), "value", values)
        return RecordRun(rows, self.read), sum(one is not other for one, other in zip(before, after, strict=True))

    def blocks(self) -> Iterator[pa.Table]:
        """Yield the rows in tables of the size for which `record_lines` is fastest."""
        return few_at_once(self.rows, rows=_LINES_AT_ONCE)

    def records(self) -> list[Record]:
        """Return the records one by one."""
        return _records_of(self.rows)


def record_run(topic: str, ranges: Sequence[OffsetRange], pieces: Iterable[Piece]) -> RecordRun:
    """Return the records of some pieces of a topic's `ranges`, all together."""
    tables = [_lines_of(topic, ranges, piece) for piece in pieces]
    rows = pa.concat_tables([LINES.empty_table(), *tables])
    return RecordRun(rows if len(ranges) == 1 else rows.sort_by(_ORDER), len(rows))


def newest_run(records: pa.Table, *, read: int) -> RecordRun:
    """Return RECORDS of one topic, the newest of `read` records."""
    rows = records.select(LINES.names[:-1]).append_column("headers", headers_texts(records["headers"]))
    return RecordRun(rows.sort_by(_ORDER), read)


def run_of_records(records: Sequence[Record], *, read: int) -> RecordRun:
    """Return records that are in memory, in their order."""
    columns = list(zip(*records, strict=True)) or [()] * len(LINES)
    arrays = [pa.array(column, field.type) for column, field in zip(columns[:-1], LINES, strict=False)]
    texts = pa.array(map(headers_text, columns[-1]), LINES.field("headers").type)
    return RecordRun(pa.Table.from_arrays([*arrays, texts], schema=LINES), read)


def _lines_of(topic: str, ranges: Sequence[OffsetRange], piece: Piece) -> pa.Table:
    places, *columns, headers = piece.columns.columns
    partitions = pa.array([one.partition for one in ranges], pa.int32()).take(places)
    topics = pa.repeat(pa.scalar(topic, pa.string()), len(places))
    return pa.Table.from_arrays([topics, partitions, *columns, headers_texts(headers)], schema=LINES)


def _records_of(rows: pa.Table) -> list[Record]:
    *columns, texts = (rows[name].to_pylist() for name in LINES.names)
    return list(map(Record, *columns, map(headers_of, texts)))


def _begin_with(keys: pa.Array, beginnings: Sequence[bytes]) -> pa.Array:
    found = pa.repeat(pa.scalar(value=False), len(keys))
    for beginning in beginnings:
        found = pc.or_(found, pc.starts_with(keys, beginning))
    return found
