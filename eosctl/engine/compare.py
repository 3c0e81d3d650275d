"""Comparison of the records that exist now with those that should exist, by decisions and by planned writes.

A quicker check comes first: a log has exactly the records that were sent, in the order in which each writer sent them.
No key is looked up for it. If the check fails, for whatever reason, nothing is wrong yet: then keys are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eosctl.core.offsets.migration import Comparison, Mismatch
from eosctl.core.offsets.views import mismatch
from eosctl.core.records import Record
from eosctl.engine.columns import NO_BYTES, filter_rows, meaning, one_array, same
from eosctl.engine.keys import places_of, rows_of
from eosctl.engine.reading.batches import Piece
from eosctl.engine.reading.heads import headers_texts
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.engine.rule import is_sent, sent
from eosctl.engine.write import by_partition, partitions_of


def expected_in_target(decisions: pa.Table) -> pa.Table:
    """Return the value that the target should have for each key; null for none.

    The value that is sent, else the one from `before`.
    """
    before = meaning(decisions["before"], decisions["before_nothing"])
    value = pc.if_else(is_sent(decisions), decisions["value"], before)
    keys = decisions.select(["connector", "topic", "key"])
    return keys.append_column("expected", value).append_column("before", before)


def expected_in_source(decisions: pa.Table) -> pa.Table:
    """Return the value that the source should still have for each key."""
    columns = {"connector": decisions["connector"], "topic": decisions["source_topic"]}
    keys = pc.coalesce(decisions["source_key"], decisions["key"])
    return pa.table({**columns, "key": keys, "expected": decisions["value"]})


def compare(expected: pa.Table, now: pa.Table, *, side: str, limit: int, since: bool = False) -> Comparison:
    """Compare `now` (RECORDS, newest of each key) with `expected`, and keep the first mismatches by topic and key.

    With `since`, `now` has only records since the decisions, and a key without one has its value from `before`. That is
    no evidence of a write, and is not taken for one: the value sent differs from the one before (`rule.decide`).
    """
    there = rows_of(expected, now)
    found = now.take(there)
    actual = meaning(found["value"], found["nothing"])
    if since:
        actual = pc.if_else(pc.is_valid(there), actual, expected["before"])
    differs = pc.invert(same(expected["expected"], actual))
    rows = pa.table(
        {
            **{name: expected[name] for name in ("connector", "topic", "key", "expected")},
            "actual": actual,
            "partition": found["partition"],
            "found": pc.or_(pc.is_valid(there), pc.is_valid(actual)),
        }
    ).filter(differs)
    first = (_mismatch(side, row) for row in first_rows(rows, ["topic", "key"], limit).to_pylist())
    return Comparison(len(expected), len(rows), tuple(first))


def _mismatch(side: str, row: dict[str, object]) -> Mismatch:
    found = row.pop("found")
    status = mismatch(row["expected"], row["actual"], found=bool(found)).value  # type: ignore[arg-type]
    return Mismatch(side=side, status=status, **row)  # type: ignore[arg-type] # the columns are its members


def first_rows(rows: pa.Table, order: list[str], limit: int) -> pa.Table:
    """Return the first rows in the order of some columns."""
    keys = [(name, "ascending") for name in order]
    return rows.take(pc.select_k_unstable(rows.select(order), k=min(limit, len(rows)), sort_keys=keys))


def foreign(records: pa.Table, decisions: pa.Table, *, claimed: bool = False) -> pa.Table:
    """Return the `records` (RECORDS of the target) that the decisions did not send.

    With `claimed`, only those of keys for which the decisions send something.
    """
    ours = sent(decisions)
    there = rows_of(records, ours)
    is_claimed = pc.is_valid(there)
    value = meaning(records["value"], records["nothing"])
    is_ours = pc.and_(is_claimed, same(value, ours["value"].take(there)))
    wanted = pc.and_not(is_claimed, is_ours) if claimed else pc.invert(is_ours)
    return records.filter(wanted)


def unwritten(decisions: pa.Table, now: pa.Table) -> pa.Table:
    """Return the decisions that send something which the target (RECORDS, newest of each key) does not have yet."""
    ours = sent(decisions)
    there = rows_of(ours, now)
    found = now.take(there)
    value = meaning(found["value"], found["nothing"])
    return ours.filter(pc.invert(pc.and_(pc.is_valid(there), same(ours["value"], value))))


def stale_copies(target: pa.Table, decisions: pa.Table) -> pa.Table:
    """Return the target's live RECORDS of keys that are sent, on other partitions than they are sent to."""
    ours = sent(decisions)
    there = rows_of(target, ours)
    stays = ours["partition"].take(there)
    is_copy = pc.fill_null(pc.not_equal(target["partition"], stays), fill_value=False)
    return target.filter(pc.and_(is_copy, pc.invert(target["nothing"])))


def without_cleaned(records: pa.Table, stale: pa.Table) -> pa.Table:
    """Drop from the target's `records` the tombstones in places of `stale` copies: we wrote those."""
    return filter_rows(records, pc.invert(pc.and_(_is_in(records, stale), records["nothing"])))


def with_younger_tombstones(now: pa.Table, records: pa.Table, stale: pa.Table, decisions: pa.Table) -> pa.Table:
    """Return `now` with the keys deleted for which one of our tombstones is younger than the value that was written.

    Readers that go by time, as every view and plan does, see such a key as deleted. `now` is RECORDS, newest of each
    key, `without_cleaned`; `records` are the newest of each key with these tombstones. A key whose deletion was sent
    does not count as deleted by a tombstone on another partition.
    """
    ours = sent(decisions)
    ours = ours.filter(pc.is_valid(ours["value"]))
    shadows = records.filter(pc.and_(_is_in(records, stale), records["nothing"]))
    shadows = shadows.filter(pc.is_valid(rows_of(shadows, ours)))
    if not len(shadows):
        return now
    return pa.concat_tables([now.filter(pc.is_null(rows_of(now, shadows))), shadows])


def uncleaned(records: pa.Table, stale: pa.Table, decisions: pa.Table, *, limit: int) -> Comparison:
    """Report the `stale` copies that `records` of the target still have.

    A key is compared where it is written, not here.
    """
    left = records.filter(pc.and_(_is_in(records, stale), pc.invert(records["nothing"])))
    owners = decisions["connector"].take(rows_of(left, decisions))
    columns = {name: left[name] for name in ("topic", "key", "partition")}
    columns |= {"connector": owners, "actual": left["value"], "found": pa.repeat(pa.scalar(value=True), len(left))}
    columns["expected"] = pa.repeat(NO_BYTES, len(left))
    first = first_rows(pa.table(columns), ["topic", "key"], limit).to_pylist()
    return Comparison(0, len(left), tuple(_mismatch("target", row) for row in first))


def _is_in(records: pa.Table, stale: pa.Table) -> pa.Array:
    """Tell for each record whether its topic, partition and key are those of a stale copy."""
    some = records.filter(pc.is_in(records["key"], value_set=one_array(stale["key"])))
    if not len(some):
        return pa.repeat(pa.scalar(value=False), len(records))
    places = set(zip(*(stale[name].to_pylist() for name in ("topic", "partition", "key")), strict=True))
    rows = zip(*(records[name].to_pylist() for name in ("topic", "partition", "key")), strict=True)
    return pa.array([row in places for row in rows], pa.bool_())


class RecordsSince(Struct, frozen=True):
    """The records that some topics got since a plan was made, for the topics that exist.

    `records` (RECORDS) are the newest of each partition and key, `hidden` the records behind open transactions,
    `blocked` the topics and partitions that have these.
    """

    topics: Sequence[str]
    records: pa.Table
    hidden: Sequence[Record]
    blocked: frozenset[tuple[str, int]]


class WriteCheck(Struct, frozen=True):
    """For each write that puts a record, whether its partition has its value now; null if that can't be seen.

    `behind` counts the writes that lie behind another producer's open transaction: they are committed, but no committed
    reader gets them before it ends.
    """

    holds: pa.BooleanArray
    behind: int = 0

    def lacks(self) -> bool:
        """Tell whether a write certainly has another value."""
        return bool(pc.any(pc.invert(self.holds)).as_py())


def all_written(count: int) -> WriteCheck:
    """Return a WriteCheck of `count` writes, all of which are there."""
    return WriteCheck(pa.repeat(pa.scalar(value=True), count))


def check_writes(sends: pa.Table, since: RecordsSince, *, accepted: bool) -> WriteCheck:
    """Decide for each of the WRITES in `sends`, which put a record, whether its value is on its partition.

    Only a record that came since the plan shows that a write happened: the record from before may have the same value.
    Null if an open transaction hides a record of the key, or may hide ours, unless the hidden record is ours and was
    `accepted`.
    """
    there = places_of(sends, since.records)
    found = since.records["value"].take(there)
    holds = one_array(pc.and_(pc.is_valid(there), same(found, sends["after"])))
    headers = headers_texts(since.records["headers"].take(there))
    holds = one_array(pc.and_(holds, pc.or_(pc.is_null(there), same(headers, sends["headers"]))))
    count = len(sends)
    if since.blocked:
        places = zip(sends["topic"].to_pylist(), sends["partition"].to_pylist(), strict=True)
        may_hide = pa.array([place in since.blocked for place in places], pa.bool_())
        holds = pc.if_else(pc.and_not(may_hide, holds), pa.scalar(None, pa.bool_()), holds)
    behind = 0
    if since.hidden:
        last = {(each.topic, each.partition, each.key): each.value for each in since.hidden}
        rows = zip(*(sends[name].to_pylist() for name in ("topic", "partition", "key", "after")), strict=True)
        ours = [(accepted and last[place] == row[3]) or None if (place := row[:3]) in last else False for row in rows]
        behind = sum(each is True for each in ours)
        is_hidden = pa.array([each is not False for each in ours], pa.bool_())
        holds = pc.if_else(is_hidden, pa.array([each or None for each in ours], pa.bool_()), holds)
    if set(pc.unique(sends["topic"]).to_pylist()) - set(since.topics):
        exists = pc.is_in(sends["topic"], value_set=pa.array(list(since.topics), pa.string()))
        holds = pc.if_else(exists, holds, pa.repeat(pa.scalar(value=False), count))
    return WriteCheck(one_array(holds), behind)


def aborted(sends: pa.Table, found: WriteCheck, uncommitted: pa.Table) -> int:
    """Count the writes that certainly have another value and are in `uncommitted` (RECORDS, newest of each partition
    and key).
    """
    lost = sends.filter(pc.fill_null(pc.invert(found.holds), fill_value=False))
    lost = lost.filter(pc.is_in(lost["topic"], value_set=pc.unique(one_array(uncommitted["topic"]))))
    there = places_of(lost, uncommitted)
    return pc.sum(same(uncommitted["value"].take(there), lost["after"])).as_py() or 0


def outcomes(table: pa.Table, found: WriteCheck | None, *, missing: str) -> pa.Array:
    """Return the outcome of each of some WRITES: `missing` for one that is certainly not there."""
    sends = one_array(is_sent(table))
    unseen, count = pa.scalar("unconfirmed"), pc.sum(sends).as_py() or 0
    texts: object = pa.repeat(unseen, count)
    if found is not None:
        texts = pc.if_else(found.holds, "written", missing)
        texts = pc.fill_null(texts, unseen)
    return pc.replace_with_mask(pa.repeat("unchanged", len(table)), sends, one_array(texts))


def counts_of(outcomes: Sequence[pa.Array]) -> Mapping[str, int]:
    """Count each outcome."""
    found = pc.value_counts(pa.chunked_array(outcomes, pa.string())).to_pylist()
    return {row["values"]: row["counts"] for row in found}


@dataclass(slots=True)
class _Sent:
    """The records that one writer has sent to a partition, and how many of them were found."""

    keys: pa.Array
    values: pa.Array
    headers: pa.Array
    found: int = 0

    def begins_with(self, key: object) -> bool:
        return not self.found and bool(self.keys[0].as_py() == key)

    def goes_on_with(self, records: pa.RecordBatch) -> bool:
        """Tell whether these records (PIECE) are the next ones, and go past them."""
        first, self.found = self.found, self.found + len(records)
        if self.found > len(self.keys):
            return False
        here = slice(first, self.found)
        return (
            records["key"].equals(self.keys[here])
            and bool(pc.all(same(records["value"], self.values[here])).as_py())
            and headers_texts(records["headers"]).equals(self.headers[here])
        )

    def is_complete(self) -> bool:
        return self.found == len(self.keys)


def _sent(rows: pa.Table) -> _Sent:
    has_headers = "headers" in rows.column_names
    headers = one_array(rows["headers"]) if has_headers else pa.nulls(len(rows), pa.string())
    return _Sent(one_array(rows["key"]), one_array(rows["value"]), headers)


class SentInOrder:
    """The records that several writers have sent into `ranges`.

    `tables` are their rows (SENT; `headers` may be missing).
    """

    def __init__(self, tables: Iterable[pa.Table], ranges: Sequence[OffsetRange]) -> None:
        number_of = {(one.topic, one.partition): number for number, one in enumerate(ranges)}
        self._to_come: defaultdict[int, list[_Sent]] = defaultdict(list)
        self._of_writer: dict[tuple[int, int], _Sent] = {}
        for table in tables:
            for place, rows in partitions_of(by_partition(table)):
                if (number := number_of.get(place)) is not None:
                    self._to_come[number].append(_sent(rows))

    def count_in(self, pieces: Iterable[Piece]) -> int | None:
        """Return the number of records in `pieces` if they are exactly the records that were sent, else None."""
        found = 0
        for piece in pieces:
            if not self._has_next(piece):
                return None
            found += len(piece.columns)
        return found if self._is_complete() else None

    def _has_next(self, piece: Piece) -> bool:
        """Tell whether the records of a piece are the next ones of each of their writers."""
        for place, writer, first, behind in _runs(piece):
            records = piece.columns.slice(first, behind - first)
            sent = self._of_writer.get((place, writer)) or self._claimed(place, writer, records["key"][0].as_py())
            if sent is None or not sent.goes_on_with(records):
                return False
        return True

    def _is_complete(self) -> bool:
        """Tell whether all records have been found."""
        return not any(self._to_come.values()) and all(sent.is_complete() for sent in self._of_writer.values())

    def _claimed(self, place: int, writer: int, key: object) -> _Sent | None:
        """Find a writer's records for a partition by their first key, and assign them to the writer."""
        for number, found in enumerate(self._to_come[place]):
            if found.begins_with(key):
                self._of_writer[place, writer] = self._to_come[place].pop(number)
                return found
        return None


def is_all_there(pieces: Iterable[Piece], tables: Iterable[pa.Table], ranges: Sequence[OffsetRange]) -> bool:
    """Tell whether the records in `ranges` are exactly those that one writer sent: the rows of `tables` in order."""
    return SentInOrder([pa.concat_tables(tables)], ranges).count_in(pieces) is not None


def _runs(piece: Piece) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number of the range, producer id, first row, end row) of neighbouring records of one writer."""
    places, writers = piece.columns["place"].to_numpy(), piece.producers
    if not len(places):
        return
    ends = np.flatnonzero((places[1:] != places[:-1]) | (writers[1:] != writers[:-1])) + 1
    firsts = [0, *ends.tolist()]
    for first, behind in zip(firsts, [*firsts[1:], len(places)], strict=True):
        yield int(places[first]), int(writers[first]), first, behind
