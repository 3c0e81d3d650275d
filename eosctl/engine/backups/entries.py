"""Backups as columns, and what restoring each key does.

A backup that doesn't fit into memory is split into parts of whole partitions, which wait on the disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eosctl.core.offsets.views import KeyAction
from eosctl.core.records import Record
from eosctl.engine.columns import (
    VALUES,
    are_nothing,
    arrow_schema,
    batch_of_columns,
    dictionary_of,
    filter_rows,
    meaning,
    one_array,
    same,
)
from eosctl.engine.files import Grouped, SpillFile, in_large_pieces
from eosctl.engine.keys import Hashes, hash_column, homes_by, owners_of, places_of, rows_of
from eosctl.engine.planned import places_in, writes_of
from eosctl.engine.write import by_partition

ENTRIES = arrow_schema(
    "topic string, partition int, offset long, timestamp_ms long, key binary, value value, headers string, "
    "written value, knows_written boolean"
)
"""The records that a backup keeps; `offset` is null for a key that had none, `written` the value that replaced it, as
far as the file shows."""


def entries_of(backup: pa.RecordBatch) -> pa.RecordBatch:
    """Convert BACKUP to ENTRIES."""
    knows = pa.repeat(pa.scalar(value=True), backup.num_rows)
    return batch_of_columns([*backup.columns, knows], ENTRIES)


def unlisted(keys: pa.Array) -> list[bytes]:
    """Return the keys that are no JSON list; the keys of offsets are JSON lists."""
    found: list[bytes] = keys.filter(pc.invert(pc.starts_with(keys, "["))).to_pylist()
    return found


class BackupEntries(Grouped):
    """The ENTRIES of a backup with the `hash` of each key, in parts of whole partitions: see Grouped."""

    def __init__(self, pieces: Iterable[pa.RecordBatch], spool: SpillFile) -> None:
        """Read `pieces`, which have few rows each; `spool` takes what does not fit into memory. Raises OSError."""
        self.count = self.unchecked = 0
        self.has_keyless = False
        self.partitions: dict[str, set[int]] = {}
        tables = in_large_pieces(map(self._counted, pieces))
        in_order = partial(_with_hashes, in_order=by_partition)
        super().__init__(tables, spool, by=("topic", "partition"), in_order=in_order)

    def _counted(self, piece: pa.RecordBatch) -> pa.Table:
        self.count += len(piece)
        self.unchecked += pc.sum(pc.invert(piece["knows_written"])).as_py() or 0
        self.has_keyless = self.has_keyless or piece["key"].null_count > 0
        table = pa.Table.from_batches([piece])
        for topic, partitions in places_in(table).items():
            self.partitions.setdefault(topic, set()).update(partitions)
        return table

    def tables(self) -> Iterator[pa.Table]:
        """Yield the parts."""
        return (table if "hash" in table.column_names else _with_hashes(table) for table in super().tables())

    @cached_property
    def hashes(self) -> Hashes:
        """The hashes of all keys, sorted."""
        found = [one_array(table["hash"]).fill_null(0).to_numpy(zero_copy_only=False) for table in self.tables()]
        return np.sort(np.concatenate(found))

    def among(self, records: pa.Table) -> pa.Table:
        """Return the rows of RECORDS whose topic and key the backup keeps, on any partition."""
        if not len(records):
            return records
        kept = np.zeros(len(records), np.bool_)
        for table in self.tables():
            keys = table.select(["topic", "key", "hash"]).group_by(["topic", "key", "hash"]).aggregate([])
            kept |= rows_of(records, keys).is_valid().to_numpy(zero_copy_only=False)
        return records.filter(pa.array(kept))

    def possibly(self, records: pa.Table) -> pa.Table:
        """Return the rows of RECORDS whose hash is that of a kept key: the only ones `among` has to look at."""
        if not len(records):
            return records
        wanted = one_array(records["hash"]).fill_null(0).to_numpy(zero_copy_only=False)
        at = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        return records.filter(pa.array(self.hashes[at] == wanted))


def _with_hashes(table: pa.Table, *, in_order: Callable[[pa.Table], pa.Table] = lambda table: table) -> pa.Table:
    table = in_order(table)
    return table.append_column("hash", hash_column(one_array(table["key"])))


def without_absent(entries: pa.Table, topics: Collection[str]) -> pa.Table:
    """Drop the keys that had no record, except in these topics."""
    there = pc.is_in(entries["topic"], value_set=pa.array(list(topics), pa.string()))
    return filter_rows(entries, pc.or_(there, pc.is_valid(entries["offset"])))


def count_away(entries: pa.Table, sizes: Mapping[str, int]) -> Counter[str]:
    """Count per topic the offsets of ENTRIES, with hashes, that lie on another partition than Connect's producer uses.

    `sizes` are the topics' numbers of partitions now.
    """
    partitions = dictionary_of(one_array(entries["topic"]), dict(sizes), pa.int32())
    homes = homes_by(one_array(entries["hash"]), partitions)
    is_away = pc.and_(pc.not_equal(homes, entries["partition"]), pc.starts_with(entries["key"], "["))
    found = pc.value_counts(one_array(entries["topic"].filter(is_away))).to_pylist()
    return Counter({row["values"]: row["counts"] for row in found})


def keys_of(entries: pa.Table, topic: str) -> list[bytes]:
    """Return the keys of one topic."""
    found: list[bytes] = entries["key"].filter(pc.equal(entries["topic"], topic)).to_pylist()
    return found


def values_of(tables: Iterable[pa.Table], places: Collection[tuple[str, bytes, int]]) -> Mapping[Any, bytes | None]:
    """Return the values that ENTRIES have for some triples of topic, key and partition."""
    keys = pa.array([key for _topic, key, _partition in places], VALUES)
    some = (table.filter(pc.is_in(table["key"], value_set=keys)).to_pylist() for table in tables)
    return {(row["topic"], row["key"], row["partition"]): row["value"] for rows in some for row in rows}


class Mismatched(Struct, frozen=True):
    """A key whose value is not, or can't be seen to be, what was `expected`.

    `expected` and `actual` are None for no value; `found` is False if there is no record. `partition` is where the
    newest record of the key is. `older`: it is the record from before, so the same value was not written once more.
    """

    topic: str
    partition: int
    key: bytes | None
    expected: bytes | None
    actual: bytes | None
    found: bool
    older: bool
    hidden: bool


class PresentRecords(Struct, frozen=True):
    """The records that topics have by now for some ENTRIES.

    `there` (columns of RECORDS) has one row per entry: the record on the partition and key of the entry, or nulls.
    `elsewhere` (RECORDS, each topic and key once) has the records on partitions where the backup does not have the key.
    `hidden` are the records behind open transactions, on any partition.
    """

    there: pa.Table
    elsewhere: pa.Table
    hidden: Sequence[Record] = ()

    def later(self, entries: pa.Table) -> pa.Table | None:
        """Return for each of the ENTRIES the newer record of its key on another partition, null for none.

        Between partitions the timestamp says which is newer, as in `rule.newest_per_key`.
        """
        if not len(self.elsewhere):
            return None
        at = rows_of(entries, self.elsewhere)
        found, times = self.elsewhere.take(at), self.there["timestamp_ms"]
        is_newer = pc.or_(
            pc.greater(found["timestamp_ms"], times),
            pc.and_(pc.equal(found["timestamp_ms"], times), found["at_home"]),
        )
        is_newer = pc.or_(pc.fill_null(is_newer, fill_value=False), pc.is_null(self.there["offset"]))
        at = pc.if_else(is_newer, at, pa.scalar(None, at.type))
        return self.elsewhere.take(one_array(at)) if at.null_count < len(at) else None


def mismatches(entries: pa.Table, now: PresentRecords, *, before: bool) -> Iterator[Mismatched]:
    """Yield the keys of ENTRIES whose value is not the one that was written, or was there `before`.

    If the value written was there before as well, only a record's offset shows that it came later. The newest record of
    a key counts, on whichever partition.
    """
    there, later = now.there, now.later(entries)
    expected = entries["value"] if before else entries["written"]
    wrong, older = pc.invert(same(there["value"], expected)), pa.repeat(pa.scalar(value=False), len(entries))
    if not before:
        came_before = pc.fill_null(pc.less_equal(there["offset"], entries["offset"]), fill_value=False)
        older = pc.and_not(pc.and_(came_before, same(entries["value"], expected)), wrong)
    partitions, actual, found = entries["partition"], there["value"], pc.is_valid(there["offset"])
    if later is not None:
        differs = pc.and_(pc.is_valid(later["offset"]), pc.invert(_means(later, expected)))
        if before:  # where nothing is in the place now, what is elsewhere may have been there before as well
            differs = pc.and_(differs, found)
        partitions = pc.if_else(differs, later["partition"], partitions)
        actual, found = pc.if_else(differs, later["value"], actual), pc.or_(found, differs)
        wrong, older = pc.or_(wrong, differs), pc.and_not(older, differs)
    wrong = pc.or_(wrong, older)
    behind = {(each.topic, each.key) for each in now.hidden}
    if behind:
        keys = zip(entries["topic"].to_pylist(), entries["key"].to_pylist(), strict=True)
        wrong = pc.or_(wrong, pa.array([key in behind for key in keys], pa.bool_()))
    columns = [entries["topic"], partitions, entries["key"], expected, actual, found, older]
    rows = (column.filter(wrong).to_pylist() for column in columns)
    for topic, partition, key, should, value, is_there, is_older in zip(*rows, strict=True):
        yield Mismatched(topic, partition, key, should, value, is_there, is_older, (topic, key) in behind)


def _means(records: pa.Table, values: Any) -> Any:
    """Tell for each of some RECORDS whether its value means the same as the value beside it."""
    return same(meaning(records["value"], records["nothing"]), meaning(values, are_nothing(one_array(values))))


_THERE = ["partition", "offset", "timestamp_ms", "value", "headers"]
"""The columns needed of a present record; the rest would be copied for nothing."""


def look_at(entries: pa.Table, records: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return for each of the ENTRIES the record on its partition and key (`there`), and all other RECORDS.

    `records` are the newest of each partition and key.
    """
    places = places_of(entries, records)
    others = np.ones(len(records), np.bool_)
    others[places.drop_null().to_numpy()] = False
    return records.select(_THERE).take(places), records.filter(pa.array(others))


def restored(entries: pa.Table, now: PresentRecords, *, overwrite_newer: bool) -> pa.Table:
    """Plan the restoring of some ENTRIES, as WRITES.

    Another producer has written since if the present record is not the one that the file says was written, or if a
    newer record of the key, on another partition, has another value.
    """
    there, later = now.there, now.later(entries)
    wanted, current = entries["value"], there["value"]
    newer = pc.and_(entries["knows_written"], pc.invert(same(current, entries["written"])))
    equal = same(current, wanted)
    newer, before = pc.and_not(newer, equal), {name: there[name] for name in _THERE}
    if later is not None:
        is_later = pc.is_valid(later["offset"])
        is_absent = pc.and_(pc.is_null(wanted), pc.is_null(there["offset"]))  # as it was before
        differs = pc.and_(pc.and_not(is_later, is_absent), pc.invert(_means(later, wanted)))
        is_foreign = pc.and_(differs, pc.invert(_means(later, entries["written"])))
        newer = pc.or_(newer, pc.and_(entries["knows_written"], is_foreign))
        equal = pc.and_not(equal, differs)
        before = {name: pc.if_else(is_later, later[name], there[name]) for name in _THERE}
    back = pc.if_else(pc.is_null(wanted), KeyAction.DELETE.value, KeyAction.WRITE.value)
    action = pc.if_else(equal, KeyAction.KEEP.value, back)
    if not overwrite_newer:
        action = pc.if_else(newer, KeyAction.CONFLICT.value, action)
    reason: Any = pc.if_else(are_nothing(one_array(wanted)), "deleted_before", "restored")
    reason = pc.if_else(pc.is_null(entries["offset"]), "absent_before", reason)
    reason = pc.if_else(equal, "equal", pc.if_else(newer, "written_since", reason))
    taken = pc.is_in(action, value_set=pa.array([KeyAction.WRITE.value, KeyAction.DELETE.value]))
    columns = {name: entries[name] for name in ("topic", "partition", "key", "headers")} | {
        "connector": owners_of(one_array(entries["key"])),
        "action": action,
        "reason": reason,
        "conflict": newer,
        "after": pc.if_else(taken, wanted, before["value"]),
    }
    return writes_of(columns, before=before, replaced=there)
