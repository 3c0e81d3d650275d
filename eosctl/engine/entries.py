"""Backups as columns: in parts of whole partitions where there are many, which wait on the disk; and what restoring
each of their keys does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.offsets.decision import KeyAction
from eosctl.core.records import Headers, Record
from eosctl.engine.columns import arrow_schema, nothings, numbered, one_array, same
from eosctl.engine.files import Spilled
from eosctl.engine.owners import owners_of
from eosctl.engine.planned import WRITES, headers_at
from eosctl.engine.rule import places_of

ENTRIES = arrow_schema(
    "topic string, partition int, offset long, timestamp_ms long, key binary, value value, headers string, "
    "written value, knows_written boolean"
)
"""The records that a backup keeps; `offset` is null for a key that had none, `written` what was put over it, as far as
the file shows."""
PART_ROWS, PART_BYTES = 500_000, 1 << 28


@dataclass(frozen=True, slots=True)
class _Slices:
    """Rows of several tables on the disk."""

    places: Sequence[tuple[Spilled, int, int]]

    def __len__(self) -> int:
        return sum(count for _spilled, _first, count in self.places)

    def table(self) -> pa.Table:
        """The rows."""
        return pa.concat_tables(spilled.table().slice(first, count) for spilled, first, count in self.places)


class BackupEntries:
    """Many ENTRIES in parts: all of a partition is in one part, and a part has few enough to be in memory."""

    def __init__(self, pieces: Iterable[pa.RecordBatch], folder: Path) -> None:
        """Reads `pieces`, few rows each; `folder` is for what does not fit. Raises OSError."""
        self.count = self.unchecked = 0
        self.has_keyless = False
        self.topics: set[str] = set()
        self._small: pa.Table | None = None
        groups, held = list[Spilled](), list[pa.Table]()
        found: dict[tuple[str, int], list[tuple[Spilled, int, int]]] = {}
        for piece in map(_as_table, pieces):
            self._count(piece)
            held.append(piece)
            if sum(map(len, held)) >= PART_ROWS or sum(one.nbytes for one in held) >= PART_BYTES:
                groups.append(_by_place(held, folder, found))
                held = []
        if groups and held:
            _by_place(held, folder, found)
        elif held:
            self._small = pa.concat_tables(held)
        self._parts = list(_parts_of(found))

    def _count(self, piece: pa.Table) -> None:
        self.count += len(piece)
        self.unchecked += pc.sum(pc.invert(piece["knows_written"])).as_py() or 0
        self.has_keyless = self.has_keyless or piece["key"].null_count > 0
        self.topics |= set(pc.unique(piece["topic"]).to_pylist())

    def tables(self) -> Iterator[pa.Table]:
        """The parts; one that fits is in the order of the file."""
        if self._small is not None:
            yield self._small
        for part in self._parts:
            yield part.table()
            for spilled, _first, _count in part.places:
                spilled.forget()

    def is_large(self) -> bool:
        """Whether there are several parts."""
        return bool(self._parts)


def _by_place(
    held: Sequence[pa.Table], folder: Path, found: dict[tuple[str, int], list[tuple[Spilled, int, int]]]
) -> Spilled:
    table = pa.concat_tables(held).sort_by([("topic", "ascending"), ("partition", "ascending")])
    spilled = Spilled(table, folder)
    places = table.select(["topic", "partition"]).append_column("row", numbered(len(table)))
    for place in places.group_by(["topic", "partition"]).aggregate([("row", "min"), ("row", "count")]).to_pylist():
        slices = found.setdefault((place["topic"], place["partition"]), [])
        slices.append((spilled, place["row_min"], place["row_count"]))
    return spilled


def _parts_of(found: Mapping[tuple[str, int], Sequence[tuple[Spilled, int, int]]]) -> Iterator[_Slices]:
    part: list[tuple[Spilled, int, int]] = []
    for _place, slices in sorted(found.items()):
        if part and len(_Slices([*part, *slices])) > PART_ROWS:
            yield _Slices(part)
            part = []
        part += slices
    if part:
        yield _Slices(part)


def _as_table(piece: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([piece])


def without_absent(entries: pa.Table, topics: Collection[str]) -> pa.Table:
    """Without the keys that had no record, of topics other than these."""
    there = pc.is_in(entries["topic"], value_set=pa.array(list(topics), pa.string()))
    return entries.filter(pc.or_(there, pc.is_valid(entries["offset"])))


def keys_of(entries: pa.Table, topic: str) -> list[bytes]:
    """The keys of one topic."""
    found: list[bytes] = entries["key"].filter(pc.equal(entries["topic"], topic)).to_pylist()
    return found


def values_of(tables: Iterable[pa.Table], places: Collection[tuple[str, bytes, int]]) -> Mapping[Any, bytes | None]:
    """What ENTRIES have in some places: topic, key and partition."""
    keys = pa.array([key for _topic, key, _partition in places], pa.binary())
    some = (table.filter(pc.is_in(table["key"], value_set=keys)).to_pylist() for table in tables)
    return {(row["topic"], row["key"], row["partition"]): row["value"] for rows in some for row in rows}


class Mismatched(NamedTuple):
    """A key that has not, or can't be seen to have, what was `expected`; None is no value, `found` a record."""

    topic: str
    partition: int
    key: bytes | None
    expected: bytes | None
    actual: bytes | None
    found: bool
    hidden: bool


def mismatched(
    entries: pa.Table, records: pa.Table, hidden: Collection[Record], *, before: bool
) -> Iterator[Mismatched]:
    """The keys of ENTRIES that have another value than was written, or than was there `before`."""
    there = there_of(entries, records)
    expected = entries["value"] if before else entries["written"]
    wrong = pc.invert(same(there["value"], expected))
    behind = {(each.topic, each.partition, each.key) for each in hidden}
    if behind:
        places = zip(*(entries[name].to_pylist() for name in ("topic", "partition", "key")), strict=True)
        wrong = pc.or_(wrong, pa.array([place in behind for place in places], pa.bool_()))
    columns = [entries["topic"], entries["partition"], entries["key"], expected, there["value"]]
    rows = (column.filter(wrong).to_pylist() for column in [*columns, pc.is_valid(there["offset"])])
    for topic, partition, key, should, actual, found in zip(*rows, strict=True):
        yield Mismatched(topic, partition, key, should, actual, found, (topic, partition, key) in behind)


def there_of(entries: pa.Table, records: pa.Table) -> pa.Table:
    """What `records` (RECORDS, newest of each place) have in the place of each of the ENTRIES; null for nothing."""
    return records.take(places_of(entries, records))


Places = Mapping[tuple[str, int, int], Headers]
"""The headers of records, by topic, partition and offset."""


def restored(entries: pa.Table, records: pa.Table, headers: Places, *, overwrite_newer: bool) -> pa.Table:
    """What restoring some ENTRIES does, as WRITES; `records` are the newest of each place in their topics.

    Someone else wrote where what is there is not what the file says was written.
    """
    there = there_of(entries, records)
    wanted, current = entries["value"], there["value"]
    newer = pc.and_(entries["knows_written"], pc.invert(same(current, entries["written"])))
    equal = same(current, wanted)
    newer = pc.and_not(newer, equal)
    back = pc.if_else(pc.is_null(wanted), KeyAction.DELETE.value, KeyAction.WRITE.value)
    action = pc.if_else(equal, KeyAction.KEEP.value, back)
    if not overwrite_newer:
        action = pc.if_else(newer, KeyAction.CONFLICT.value, action)
    reason: Any = pc.if_else(nothings(one_array(wanted)), "deleted_before", "restored")
    reason = pc.if_else(pc.is_null(entries["offset"]), "absent_before", reason)
    reason = pc.if_else(equal, "equal", pc.if_else(newer, "written_since", reason))
    taken = pc.is_in(action, value_set=pa.array([KeyAction.WRITE.value, KeyAction.DELETE.value]))
    columns = {name: entries[name] for name in ("topic", "partition", "key", "headers")} | {
        "connector": owners_of(one_array(entries["key"])),
        "action": action,
        "reason": reason,
        "conflict": newer,
        "after": pc.if_else(taken, wanted, current),
        "before_partition": there["partition"],
        "replaced_headers": headers_at(entries["topic"], there["partition"], there["offset"], headers),
    }
    for name in ("offset", "timestamp_ms", "value"):
        last = "" if name == "value" else f"_{name}"
        columns[f"before{last}"] = columns[f"replaced{last}"] = there[name]
    return pa.table([columns[name] for name in WRITES.names], schema=WRITES)
