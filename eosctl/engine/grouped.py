"""Rows that do not fit into memory, in parts that do: all rows of a group are in one part.

The parts wait on the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from eosctl.core.offsets import migration
from eosctl.engine.columns import in_one_piece, row_numbers, row_sizes
from eosctl.engine.files import SpilledTable, SpillFile, one_or_several
from eosctl.machine.side_by_side import two_at_a_time

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
    groups: dict[tuple[Any, ...], list[_Slice]] = {}
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
