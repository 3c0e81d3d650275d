"""Rows that do not fit into memory, in parts that do: what belongs together is in one part, and waits on the disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from eosctl.core.offsets import migration
from eosctl.engine.columns import in_one_piece, numbered, row_sizes
from eosctl.engine.files import Spilled, Spool, one_or_several
from eosctl.machine.side_by_side import two_at_a_time

PART_RECORDS, PART_BYTES = migration.PART_RECORDS // 2, migration.PART_BYTES // 2
"""Of a part at most: two of them are looked at at a time."""


def in_large_pieces(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows as tables with as many as a part has, or a few more; the last one may have less."""
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
    """Rows that stand together of table `number` on the disk, and about how many bytes they have."""

    number: int
    spilled: Spilled
    first: int
    rows: int
    size: int

    def table(self) -> pa.Table:
        """The rows."""
        return self.spilled.table().slice(self.first, self.rows)


_OnDisk = tuple[Spilled, Sequence[tuple[Any, ...]]]
"""A table group by group; of each group the values that make it one, its first row, the number of its rows, and their
size."""


class Grouped:
    """Many rows in parts: all of a group are in one part, and a part has few enough to be in memory.

    A group with more than PART_RECORDS, or PART_BYTES, is a part by itself.
    """

    def __init__(
        self,
        tables: Iterable[pa.Table],
        spool: Spool,
        *,
        by: Sequence[str],
        in_order: Callable[[pa.Table], pa.Table],
    ) -> None:
        """Of several `tables`, `in_large_pieces`, all go to the spool; raises OSError where it can't be written.

        Rows with the same values in the columns `by` are a group, and `in_order` puts it together.
        """
        self._by, self._in_order = list(by), in_order
        self._small, several = one_or_several(tables)
        on_disk = list(two_at_a_time(partial(self._spilled, spool=spool), several))
        self._parts = list(_parts_of(on_disk))

    def _spilled(self, table: pa.Table, spool: Spool) -> _OnDisk:
        table = in_one_piece(self._in_order(table))
        groups = table.select(self._by)
        groups = groups.append_column("row", numbered(len(table))).append_column("size", row_sizes(table))
        found = groups.group_by(self._by).aggregate([("row", "min"), ([], "count_all"), ("size", "sum")])
        return spool.put(table), list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def tables(self) -> Iterator[pa.Table]:
        """The parts; one that fits is in the order in which it came."""
        if self._small is not None:
            yield self._small
        for part in self._parts:
            yield pa.concat_tables(each.table() for each in part)

    def count_parts(self) -> int:
        """How many `tables` there are."""
        return len(self._parts) or 1

    def is_large(self) -> bool:
        """Whether there are parts that wait on the disk."""
        return bool(self._parts)


def _parts_of(tables: Sequence[_OnDisk]) -> Iterator[Sequence[_Slice]]:
    """Groups in order, as many together as fit: what they have in one table stands together there too."""
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
