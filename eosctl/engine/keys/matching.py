"""Look-up of one table's rows in another, by topic, key and partition.

Hashes of keys and numbers of rows, sorted together, bring rows that can be the same next to each other; nearly all
tables have the hashes. Arrow's `index_in`, which puts the bytes into a hash table, takes twice as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eosctl.engine.columns import one_array, same
from eosctl.engine.keys.homes import Hashes, hashes_of

Sorted = npt.NDArray[np.uint64]
"""Sorted hashes, with the number of the row in the lower half of each."""
Numbers = npt.NDArray[np.int64]

_SPREAD, _HALF, _LOWER = np.uint32(0x9E3779B1), np.uint64(32), np.uint64(0xFFFFFFFF)


def rows_of(rows: pa.Table, others: pa.Table) -> pa.Array:
    """Return for each of `rows` the row of `others` with its topic and key, null if there is none.

    A topic and key is in `others` at most once.
    """
    return _found(rows, others, by_partition=False)


def places_of(rows: pa.Table, others: pa.Table) -> pa.Array:
    """Return for each of `rows` the row of `others` with its topic, partition and key, as `rows_of`."""
    return _found(rows, others, by_partition=True)


def sorted_by_hash(hashes: Hashes, places: npt.NDArray[np.integer[Any]]) -> Sorted:
    """Sort rows so that those with the same hash and place are neighbours, in their order."""
    mixed = hashes ^ (places.astype(np.uint32) * _SPREAD)
    found = mixed.astype(np.uint64) << _HALF | np.arange(len(mixed), dtype=np.uint64)
    found.sort()
    return found


def are_alike(found: Sorted) -> npt.NDArray[np.bool_]:
    """Tell for each row but the first whether hash and place are those of the row before.

    Nearly no rows that differ are alike.
    """
    hashes = found >> _HALF
    alike: npt.NDArray[np.bool_] = hashes[1:] == hashes[:-1]
    return alike


def are_repeated(rows: pa.Table) -> pa.Array:
    """Mark the rows that may have the topic and key of another row.

    Their hashes are the same, as those of nearly no other rows are.
    """
    hashes = hashes_in(rows, one_array(rows["key"]))
    if len(topics := pc.unique(rows["topic"])) > 1:
        hashes = hashes ^ (_topics_in(rows, one_array(topics)).astype(np.uint32) * _SPREAD)
    found = np.sort(hashes)
    again = np.unique(found[1:][found[1:] == found[:-1]])
    if not len(again):
        return pa.repeat(pa.scalar(value=False), len(rows))
    return pc.is_in(pa.array(hashes), value_set=pa.array(again))


def numbers_in(found: Sorted) -> Numbers:
    """Return the numbers of the rows."""
    return (found & _LOWER).astype(np.int64)


def _found(rows: pa.Table, others: pa.Table, *, by_partition: bool) -> pa.Array:
    if not (len(rows) and len(others)):
        return pa.nulls(len(rows), pa.int32())
    mine, theirs = _sides(rows, others, by_partition=by_partition)
    there, doubtful = _candidates(mine, theirs)
    found = pa.array(there, mask=there < 0)
    is_same: npt.NDArray[np.bool_] = same(mine.keys, theirs.keys.take(found)).to_numpy(zero_copy_only=False)
    there[~(is_same & (mine.places == theirs.places[there]))] = -1
    for number, right in _settled(mine, theirs, *doubtful):
        there[number] = right
    return pa.array(there.astype(np.int32), mask=there < 0)


class _Side(Struct, frozen=True):
    """Keys with their hashes, and a number for the topic (and the partition) of each; below 0 for unknown topics."""

    keys: pa.Array
    hashes: Hashes
    places: Numbers


def _sides(rows: pa.Table, others: pa.Table, *, by_partition: bool) -> tuple[_Side, _Side]:
    topics = pc.unique(others["topic"])
    if not by_partition:
        return _side(rows, topics, 0, 1), _side(others, topics, 0, 1)
    mine, theirs = (one_array(side["partition"]).to_numpy(zero_copy_only=False) for side in (rows, others))
    size = 1 + max(int(mine.max()), int(theirs.max()))
    return _side(rows, topics, mine, size), _side(others, topics, theirs, size)


def _side(table: pa.Table, topics: pa.Array, partitions: Any, size: int) -> _Side:
    """Return one side of a look-up; `size` is larger than all `partitions`."""
    keys = one_array(table["key"])
    return _Side(keys, hashes_in(table, keys), _topics_in(table, topics) * size + partitions)


def hashes_in(table: pa.Table, keys: pa.Array) -> Hashes:
    """Return the hashes of a table's keys, from its column `hash` if it has one."""
    if "hash" not in table.column_names:
        return hashes_of(keys)
    found: Hashes = one_array(table["hash"]).fill_null(0).to_numpy(zero_copy_only=False)
    return found


def _topics_in(table: pa.Table, topics: pa.Array) -> Numbers:
    """Return the number of each row's topic; -1 for a topic that is not in `topics`."""
    if len(topics) == 1 and pc.all(pc.equal(table["topic"], topics[0])).as_py():
        return np.zeros(len(table), np.int64)
    found = one_array(pc.fill_null(pc.index_in(table["topic"], value_set=topics), -1))
    numbers: Numbers = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _candidates(mine: _Side, theirs: _Side) -> tuple[Numbers, tuple[Numbers, Numbers]]:
    """Return for each of mine the first of theirs with its hash and place, -1 for none.

    Where several of theirs have it, the numbers of these rows of mine and of theirs are returned as well.
    """
    count = len(theirs.keys)
    found = sorted_by_hash(np.concatenate([theirs.hashes, mine.hashes]), np.concatenate([theirs.places, mine.places]))
    numbers, begins = numbers_in(found), np.arange(len(found))
    begins[1:][are_alike(found)] = 0
    np.maximum.accumulate(begins, out=begins)  # theirs stand before mine
    at = np.flatnonzero(numbers >= count)
    firsts, of_mine = begins[at], numbers[at] - count
    first = numbers[firsts]
    there = np.empty(len(at), np.int64)
    there[of_mine] = np.where(first < count, first, -1)
    several = (first < count) & (numbers[np.minimum(firsts + 1, at)] < count)
    of_theirs = numbers[np.isin(begins, firsts[several]) & (numbers < count)] if several.any() else numbers[:0]
    return there, (of_mine[several], of_theirs)


def _settled(mine: _Side, theirs: _Side, some: Numbers, candidates: Numbers) -> Iterator[tuple[int, int]]:
    """Yield for `some` of mine the number of the one among the `candidates` that is the same, -1 for none."""
    known = dict[tuple[int, bytes | None], int]()
    for number, key in zip(candidates.tolist(), _taken(theirs, candidates), strict=True):
        known.setdefault(key, number)
    for number, key in zip(some.tolist(), _taken(mine, some), strict=True):
        yield number, known.get(key, -1)


def _taken(side: _Side, numbers: Numbers) -> Iterator[tuple[int, bytes | None]]:
    """Return place and key of some rows."""
    return zip(side.places[numbers].tolist(), side.keys.take(pa.array(numbers)).to_pylist(), strict=True)
