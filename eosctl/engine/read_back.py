"""What became of planned writes, of what their topics have since the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.records import Record
from eosctl.engine.columns import one_array, same
from eosctl.engine.rule import is_sent, places_of


@dataclass(frozen=True, slots=True)
class Since:
    """What some topics have since a plan was made, of those that are there: `records` (RECORDS) are the newest of each
    partition and key, `hidden` those behind open transactions, `blocked` the topics and partitions that have these."""

    topics: Sequence[str]
    records: pa.Table
    hidden: Sequence[Record]
    blocked: frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Held:
    """Whether each write that puts a record now has its value on its partition; null where that can't be seen.

    `behind` counts those that lie behind somebody's open transaction: committed, but no committed reader gets them
    before it ends.
    """

    holds: pa.BooleanArray
    behind: int = 0

    def lacks(self) -> bool:
        """Whether one certainly has another value."""
        return bool(pc.any(pc.invert(self.holds)).as_py())


def held(sends: pa.Table, since: Since, *, accepted: bool) -> Held:
    """`sends` are WRITES that put a record.

    Null where an open transaction hides a record of the key, or may hide ours, unless what it hides is ours and was
    `accepted`.
    """
    there = places_of(sends, since.records)
    found = since.records["value"].take(there)
    holds = one_array(same(pc.if_else(pc.is_valid(there), found, sends["replaced"]), sends["after"]))
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
    return Held(one_array(holds), behind)


def aborted(sends: pa.Table, found: Held, uncommitted: pa.Table) -> int:
    """How many of those that certainly have another value are in `uncommitted` (RECORDS, newest of each place)."""
    lost = sends.filter(pc.fill_null(pc.invert(found.holds), fill_value=False))
    lost = lost.filter(pc.is_in(lost["topic"], value_set=pc.unique(one_array(uncommitted["topic"]))))
    there = places_of(lost, uncommitted)
    return pc.sum(same(uncommitted["value"].take(there), lost["after"])).as_py() or 0


def outcomes(table: pa.Table, found: Held | None, *, missing: str) -> pa.Array:
    """The outcome of each of some WRITES: `missing` for one that is certainly not there."""
    sends = one_array(is_sent(table))
    unseen, count = pa.scalar("unconfirmed"), pc.sum(sends).as_py() or 0
    texts: Any = pa.repeat(unseen, count)
    if found is not None:
        texts = pc.if_else(found.holds, "written", missing)
        texts = pc.fill_null(texts, unseen)
    return pc.replace_with_mask(pa.repeat("unchanged", len(table)), sends, one_array(texts))


def counts_of(outcomes: Sequence[pa.Array]) -> Mapping[str, int]:
    """How often there is each outcome."""
    found = pc.value_counts(pa.chunked_array(outcomes, pa.string())).to_pylist()
    return {row["values"]: row["counts"] for row in found}
