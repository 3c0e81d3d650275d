"""Backups as columns: in parts of whole partitions where there are many, which wait on the disk; and what restoring
each of their keys does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.offsets.decision import KeyAction
from eosctl.core.records import Record
from eosctl.engine.columns import VALUES, arrow_schema, batch_of_columns, nothings, one_array, same, those
from eosctl.engine.files import Spool
from eosctl.engine.grouped import Grouped, in_large_pieces
from eosctl.engine.keys.matching import places_of
from eosctl.engine.keys.owners import owners_of
from eosctl.engine.planned import WRITES
from eosctl.engine.reading.headers import headers_texts
from eosctl.engine.write import by_partition

ENTRIES = arrow_schema(
    "topic string, partition int, offset long, timestamp_ms long, key binary, value value, headers string, "
    "written value, knows_written boolean"
)
"""The records that a backup keeps; `offset` is null for a key that had none, `written` what was put over it, as far as
the file shows."""


def entries_of(backup: pa.RecordBatch) -> pa.RecordBatch:
    """BACKUP as ENTRIES."""
    knows = pa.repeat(pa.scalar(value=True), backup.num_rows)
    return batch_of_columns([*backup.columns, knows], ENTRIES)


def unlisted(keys: pa.Array) -> list[bytes]:
    """Those keys that are no list in JSON, as those of offsets are."""
    found: list[bytes] = keys.filter(pc.invert(pc.starts_with(keys, "["))).to_pylist()
    return found


class BackupEntries(Grouped):
    """Many ENTRIES in parts of whole partitions: see Grouped."""

    def __init__(self, pieces: Iterable[pa.RecordBatch], spool: Spool) -> None:
        """Reads `pieces`, few rows each; `spool` is for what does not fit. Raises OSError."""
        self.count = self.unchecked = 0
        self.has_keyless = False
        self.topics: set[str] = set()
        tables = in_large_pieces(map(self._counted, pieces))
        super().__init__(tables, spool, by=("topic", "partition"), in_order=by_partition)

    def _counted(self, piece: pa.RecordBatch) -> pa.Table:
        self.count += len(piece)
        self.unchecked += pc.sum(pc.invert(piece["knows_written"])).as_py() or 0
        self.has_keyless = self.has_keyless or piece["key"].null_count > 0
        self.topics |= set(pc.unique(piece["topic"]).to_pylist())
        return pa.Table.from_batches([piece])


def without_absent(entries: pa.Table, topics: Collection[str]) -> pa.Table:
    """Without the keys that had no record, of topics other than these."""
    there = pc.is_in(entries["topic"], value_set=pa.array(list(topics), pa.string()))
    return those(entries, pc.or_(there, pc.is_valid(entries["offset"])))


def keys_of(entries: pa.Table, topic: str) -> list[bytes]:
    """The keys of one topic."""
    found: list[bytes] = entries["key"].filter(pc.equal(entries["topic"], topic)).to_pylist()
    return found


def values_of(tables: Iterable[pa.Table], places: Collection[tuple[str, bytes, int]]) -> Mapping[Any, bytes | None]:
    """What ENTRIES have in some places: topic, key and partition."""
    keys = pa.array([key for _topic, key, _partition in places], VALUES)
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


_THERE = ["partition", "offset", "timestamp_ms", "value", "headers"]
"""What is asked for of a record that is there; the rest would be copied for nothing."""


def there_of(entries: pa.Table, records: pa.Table) -> pa.Table:
    """What `records` (RECORDS, newest of each place) have in the place of each of the ENTRIES; null for nothing."""
    return records.select(_THERE).take(places_of(entries, records))


def restored(entries: pa.Table, records: pa.Table, *, overwrite_newer: bool) -> pa.Table:
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
        "replaced_headers": headers_texts(there["headers"]),
    }
    for name in ("offset", "timestamp_ms", "value"):
        last = "" if name == "value" else f"_{name}"
        columns[f"before{last}"] = columns[f"replaced{last}"] = there[name]
    return pa.table([columns[name] for name in WRITES.names], schema=WRITES)
