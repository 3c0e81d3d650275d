"""Planned writes as columns: rows are made only for those that are shown or looked at one by one.

Parts of a large plan may lie on the disk (`files.SpilledTable`); counts over all of them are made at the beginning.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, islice, zip_longest
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.offsets.records import decode_key
from eosctl.core.offsets.views import KeyAction, PlannedWrite
from eosctl.core.records import Record
from eosctl.core.wording import encodable
from eosctl.engine.backups.file import AT_ONCE
from eosctl.engine.columns import SENT, arrow_schema, batch_of_columns, dictionary_of, filter_rows, one_array
from eosctl.engine.files import SpilledTable, tables_of
from eosctl.engine.keys import homes_of
from eosctl.engine.reading.heads import headers_of, headers_text, headers_texts
from eosctl.engine.rule import sent

WRITES = arrow_schema(
    "connector string, topic string, partition int, key binary, action string, reason string, conflict boolean, "
    "after value, headers string, before_partition int, before_offset long, before_timestamp_ms long, before value, "
    "replaced_offset long, replaced_timestamp_ms long, replaced value, replaced_headers string"
)
"""PlannedWrite as columns: `before_partition` and `replaced_offset` are null if there is no such record. Headers are
the member of a record file, null for none."""
_SENT_OF = {"value": "after"}
Shown = tuple[PlannedWrite, str | None]
"""A write and its outcome."""


class PlannedWrites:
    """The writes of a plan, in order, as parts of WRITES."""

    def __init__(self, parts: Iterable[pa.Table | SpilledTable] = (), *, only_sends: bool = False) -> None:
        self._parts = tuple(parts)
        self._only_sends, self._sends = only_sends, self if only_sends else None
        self._digest = ""
        self.actions, self.reasons, self.conflicts = Counter[KeyAction](), Counter[str](), 0
        connectors, topics = set[str](), set[str]()
        for table in self.tables():
            for row in pc.value_counts(table["action"]).to_pylist():
                self.actions[KeyAction(row["values"])] += row["counts"]
            self.reasons.update({row["values"]: row["counts"] for row in pc.value_counts(table["reason"]).to_pylist()})
            self.conflicts += pc.sum(table["conflict"]).as_py() or 0
            sends = sent(table)
            connectors |= set(pc.unique(sends["connector"]).drop_null().to_pylist())
            topics |= set(pc.unique(sends["topic"]).to_pylist())
        self.connectors, self.topics = sorted(connectors), sorted(topics)
        """The connectors and topics of the writes that put a record."""

    @classmethod
    def of(cls, writes: Sequence[PlannedWrite]) -> PlannedWrites:
        """Return writes that were planned one by one."""
        return cls([_table_of(writes)])

    def followed_by(self, others: PlannedWrites) -> PlannedWrites:
        """Return these writes and then the others; no key may be in both."""
        return PlannedWrites((*self._parts, *others._parts))

    def count_parts(self) -> int:
        """Return the number of `tables`."""
        return len(self._parts)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the parts, one after the other."""
        return map(sent, tables_of(self._parts)) if self._only_sends else tables_of(self._parts)

    def sends(self) -> PlannedWrites:
        """Return the writes that put a record, in order."""
        if self._sends is None:
            self._sends = PlannedWrites(self._parts, only_sends=True)
        return self._sends

    def __len__(self) -> int:
        return self.actions.total()

    def __iter__(self) -> Iterator[PlannedWrite]:
        return (write for table in self.tables() for write in rows_of(table))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlannedWrites):
            return NotImplemented
        if len(self) != len(other):
            return False
        if [*map(len, self._parts)] == [*map(len, other._parts)]:
            tables = zip(self.tables(), other.tables(), strict=True)
            return all(one.equals(another) for one, another in tables)
        mine, others = (pa.concat_tables([WRITES.empty_table(), *writes.tables()]) for writes in (self, other))
        return bool(mine.equals(others))

    __hash__ = None  # type: ignore[assignment] # as a list

    def because(self, reason: str) -> list[PlannedWrite]:
        """Return the writes with this reason."""
        chosen = (table.filter(pc.equal(table["reason"], reason)) for table in self.tables())
        return [write for table in chosen for write in rows_of(table)]

    def misplaced(self, sizes: Mapping[str, int]) -> list[PlannedWrite]:
        """Return the writes that put a record for a connector's key that lies on a partition other than Connect's
        choice.

        `sizes` are the topics' numbers of partitions.
        """
        found = list[PlannedWrite]()
        for table in self.sends().tables():
            there = table.filter(pc.and_(pc.is_valid(table["connector"]), pc.is_valid(table["before_partition"])))
            counts = dictionary_of(one_array(there["topic"]), dict(sizes), pa.int32())
            homes = homes_of(one_array(there["key"]), one_array(counts))
            found += rows_of(there.filter(pc.not_equal(there["before_partition"], homes)))
        return found

    def in_order_of_sending(self) -> Iterator[pa.Table]:
        """Yield the records (SENT) that are put: deletions first, topic by topic as planned.

        Workers that read uncommitted records must not fall back on an offset that is about to be deleted.
        """
        return in_order_of_sending(self.sends().tables)

    def digest(self) -> str:
        """Compute the digest, `sha256:…`, of what is done to each key."""
        if not self._digest:
            sha256 = hashlib.sha256()
            for table in self.tables():
                for batch in _without_nulls(table).to_batches(AT_ONCE):
                    sha256.update(batch.serialize())
            self._digest = f"sha256:{sha256.hexdigest()}"
        return self._digest

    def first(self, limit: int, outcomes: Iterable[pa.Array] = (), *, settled: Collection[str] = ()) -> list[Shown]:
        """Return the first writes to show, with their outcomes: an array of text for each part, or none yet.

        If there are more than `limit`, writes whose outcome is not `settled` come first, then those that change
        something, then those that keep.
        """
        found: list[tuple[int, Shown]] = []
        good = pa.array(list(settled), pa.string())
        for table, outcome in zip_longest(self.tables(), outcomes):
            texts = pa.nulls(len(table), pa.string()) if outcome is None else outcome
            ranks = pc.add(
                pc.if_else(pc.is_in(texts, value_set=good), 2, 0),
                pc.if_else(pc.equal(table["action"], KeyAction.KEEP.value), 1, 0),
            )
            places = chain.from_iterable(
                pc.indices_nonzero(pc.equal(ranks, rank))[:limit].to_pylist() for rank in range(4)
            )
            wanted = pa.array(sorted(islice(places, limit)), pa.int64())
            rows = zip(rows_of(table.take(wanted)), texts.take(wanted).to_pylist(), strict=True)
            found += zip(one_array(ranks).take(wanted).to_pylist(), rows, strict=True)
        shown = found if len(self) <= limit else nsmallest(limit, found, key=itemgetter(0))
        return [row for _rank, row in shown]


def in_order_of_sending(tables: Callable[[], Iterable[pa.Table]]) -> Iterator[pa.Table]:
    """Yield the records (SENT) that some WRITES put: the deletions of all tables, then the others."""
    for is_next in (pc.is_null, pc.is_valid):
        for table in tables():
            some = filter_rows(table, is_next(table["after"]))
            yield pa.table({name: some[_SENT_OF.get(name, name)] for name in SENT.names}, schema=SENT)


def _without_nulls(writes: pa.Table) -> pa.Table:
    """Return what is done to each key, with the same bytes for the same actions.

    There are no nulls in it: the bitmap that marks them is padded with bits that mean nothing.
    """
    columns = dict(zip(writes.column_names, writes.combine_chunks().columns, strict=True))
    names = ["topic", "partition", "key", "action", "after"]
    digested = {name: columns[name] for name in names} | {
        "keyless": pc.is_null(columns["key"]).cast(pa.int8()),
        "deletes": pc.is_null(columns["after"]).cast(pa.int8()),
    }
    return pa.table(
        {name: pc.fill_null(column, b"") if name in ("key", "after") else column for name, column in digested.items()}
    )


def _table_of(writes: Sequence[PlannedWrite]) -> pa.Table:
    columns: dict[str, Any] = {
        "connector": [write.key.connector and encodable(write.key.connector) for write in writes],
        "topic": [write.topic for write in writes],
        "partition": [write.partition for write in writes],
        "key": [write.key.raw for write in writes],
        "action": [write.action.value for write in writes],
        "reason": [write.reason for write in writes],
        "conflict": [write.conflict for write in writes],
        "after": [write.after for write in writes],
        "headers": [headers_text(write.headers) for write in writes],
        "before_partition": [write.before and write.before.partition for write in writes],
        "replaced_headers": [headers_text(write.replaces.headers) if write.replaces else None for write in writes],
    }
    for name in ("offset", "timestamp_ms", "value"):
        last = "" if name == "value" else f"_{name}"
        columns[f"before{last}"] = [write.before and getattr(write.before, name) for write in writes]
        columns[f"replaced{last}"] = [write.replaces and getattr(write.replaces, name) for write in writes]
    return pa.Table.from_batches([batch_of_columns([columns[name] for name in WRITES.names], WRITES)])


def rows_of(table: pa.Table) -> Iterator[PlannedWrite]:
    """Yield WRITES one by one."""
    for batch in table.to_batches(AT_ONCE):
        for row in batch.to_pylist():
            key, topic = decode_key(row["key"]), row["topic"]
            before = replaces = None
            if row["before_partition"] is not None:
                place = row["before_partition"], row["before_offset"], row["before_timestamp_ms"]
                before = Record(topic, *place, row["key"], row["before"])
            if row["replaced_offset"] is not None:
                place = row["partition"], row["replaced_offset"], row["replaced_timestamp_ms"]
                headers = headers_of(row["replaced_headers"])
                replaces = Record(topic, *place, row["key"], row["replaced"], headers)
            yield PlannedWrite(
                KeyAction(row["action"]), row["reason"], key, topic, row["partition"], before, row["after"], replaces,
                row["conflict"], headers_of(row["headers"]),
            )  # fmt: skip


def writes_of(columns: Mapping[str, Any], *, before: Any, replaced: Any) -> pa.Table:
    """Complete the first columns of WRITES.

    `before` and `replaced` have the columns of the newest record of each key, and of the one on its partition.
    """
    found = dict(columns) | {"before_partition": before["partition"]}
    for name in ("offset", "timestamp_ms", "value"):
        last = "" if name == "value" else f"_{name}"
        found |= {f"before{last}": before[name], f"replaced{last}": replaced[name]}
    found["replaced_headers"] = headers_texts(replaced["headers"])
    return pa.table([found[name] for name in WRITES.names], schema=WRITES)


def places_in(rows: pa.Table) -> dict[str, set[int]]:
    """Return the partitions of each topic that occur in some rows."""
    found: dict[str, set[int]] = {}
    for place in rows.group_by(["topic", "partition"]).aggregate([]).to_pylist():
        found.setdefault(place["topic"], set()).add(place["partition"])
    return found


def replaced(table: pa.Table) -> pa.Table:
    """Return the records that some WRITES replace, as a backup keeps them; a key without a record has no offset."""
    columns = {
        **{name: table[name] for name in ("topic", "partition", "key")},
        **{name: table[f"replaced_{name}"] for name in ("offset", "timestamp_ms", "headers")},
        "value": table["replaced"],
        "written": table["after"],
    }
    return pa.table(columns)
