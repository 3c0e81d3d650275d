"""Columns of keys: the partition of each, its connector, its row in another table, and its form under a new name.

The partition is the one that Connect's producer chooses: murmur2 of a whole column at once. Each step hashes one word
of every key. Tests hold it to `core.offsets.names.murmur2`. A list of Python's bytes, as `confluent_kafka.murmur2`
requires, takes twice the time and several times the memory.

Rows of one table are looked up in another by topic, key and partition. Hashes of keys and numbers of rows, sorted
together, bring rows that can be the same next to each other; nearly all tables have the hashes. Arrow's `index_in`,
which puts the bytes into a hash table, takes twice as long.

For connectors and new names, Arrow handles the usual form of keys, Python the others one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eosctl.core.java.json import string_text
from eosctl.core.offsets.records import PLAIN_KEY, key_owner, quoted_name, renamed_key
from eosctl.engine.columns import cut_column, cuts_of, one_array, same

Hashes = npt.NDArray[np.uint32]

_KEYS_AT_ONCE = 1 << 14
"""Keys hashed together: intermediate results stay in the processor's cache."""
_LONG = 1 << 10
"""Bytes of a key above which it is hashed by itself: keys hashed together take the steps of the longest."""
_SEED, _MULTIPLIER = np.uint32(0x9747B28C), np.uint32(0x5BD1E995)
_POSITIVE = np.uint32(0x7FFFFFFF)
_WORD = np.dtype("<u4")


def home_of(key: bytes, partitions: int) -> int:
    """Compute `core.offsets.names.partition_for`, at a hundred times the speed."""
    from confluent_kafka import murmur2

    return murmur2(key, partitions)


def homes_of(keys: pa.Array, partitions: pa.Array | int) -> pa.Array:
    """Return the partition of each key, in topics with these numbers of partitions; null for no key."""
    return homes_by(hash_column(keys), partitions)


def homes_by(hashes: pa.Array, partitions: pa.Array | int) -> pa.Array:
    """Return the partition of each key, given the keys' hashes (`hash_column`)."""
    found: Hashes = hashes.fill_null(0).to_numpy(zero_copy_only=False)
    sizes: Any = partitions
    if not isinstance(partitions, int):
        sizes = partitions.fill_null(1).to_numpy(zero_copy_only=False)
    homes = (found & _POSITIVE).astype(np.int32) % sizes
    return pa.array(homes.astype(np.int32, copy=False), mask=nulls_of(hashes))


def hash_column(keys: pa.Array) -> pa.Array:
    """Return `hashes_of` as a column; null for no key."""
    return pa.array(hashes_of(keys), mask=nulls_of(keys))


def hashes_of(keys: pa.Array) -> Hashes:
    """Compute murmur2 of each key (`org.apache.kafka.common.utils.Utils.murmur2`, Kafka 4.3); 0 for no key."""
    found = np.zeros(len(keys), np.uint32)
    if not len(keys) or keys.null_count == len(keys):
        return found
    starts, lengths, data = cuts_of(keys)
    if len(data) < 4:  # no word fits in, and a view of words needs one
        data = np.concatenate([data, np.zeros(4, np.uint8)])
    for first in range(0, len(keys), _KEYS_AT_ONCE):
        some = slice(first, first + _KEYS_AT_ONCE)
        found[some] = _hashed(data, starts[some], lengths[some])
    if keys.null_count:
        found[nulls_of(keys)] = 0
    return found


def _hashed(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Hashes:
    """Hash keys that lie in `data`; each long one by itself."""
    is_long = lengths > _LONG
    if is_long.any():
        found = np.empty(len(starts), np.uint32)
        found[~is_long] = _hashed(data, starts[~is_long], lengths[~is_long])
        for number in np.flatnonzero(is_long):
            found[number] = _long_hash(data[starts[number] : starts[number] + lengths[number]])
        return found
    words = np.ndarray((len(data) - 3,), _WORD, data, 0, (1,))  # the word that begins at each byte
    at, state = starts.copy(), _SEED ^ lengths.astype(np.uint32)
    whole = lengths >> 2
    least = int(whole.min(initial=_LONG))
    for _step in range(least):
        state = _stepped(state, words[at])
        at += 4
    longer, step = np.flatnonzero(whole > least), least
    while len(longer):
        state[longer] = _stepped(state[longer], words[at[longer]])
        at[longer] += 4
        step += 1
        longer = longer[whole[longer] > step]
    return _ended(_with_rest(state, data, at, lengths & 3))


def _stepped(state: Hashes, words: Hashes) -> Hashes:
    words = words * _MULTIPLIER
    words ^= words >> np.uint32(24)
    words *= _MULTIPLIER
    words ^= state * _MULTIPLIER
    return words


def _with_rest(
    state: Hashes, data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64], rest: npt.NDArray[np.int64]
) -> Hashes:
    """Combine the state with the last one to three bytes of each key."""
    for count in (3, 2, 1):
        some = np.flatnonzero(rest >= count)
        state[some] ^= data[at[some] + (count - 1)].astype(np.uint32) << np.uint32(8 * (count - 1))
    some = np.flatnonzero(rest)
    state[some] *= _MULTIPLIER
    return state


def _ended(state: Hashes) -> Hashes:
    state ^= state >> np.uint32(13)
    state *= _MULTIPLIER
    state ^= state >> np.uint32(15)
    return state


def _long_hash(key: npt.NDArray[np.uint8]) -> int:
    """Hash one key with confluent-kafka, which returns the hash modulo a number of partitions."""
    from confluent_kafka import murmur2

    return murmur2(key.tobytes(), _POSITIVE.item()) or (_POSITIVE.item() if murmur2(key.tobytes(), 2) else 0)


def nulls_of(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Tell which rows of a column are null; None if no row is."""
    return column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None


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


_PATTERN = f"^{PLAIN_KEY}$".replace("?P<connector>", "?:")
_NAME_FROM, _BEHIND_NAME = 2, b'",'
_COMMA_FIRST = b'[",'
"""The beginning of a key whose connector's name begins with a comma: its first `",` is not behind the name."""


def owners_of(keys: pa.BinaryArray) -> pa.Array:
    """Return the connector of each key, as `key_owner` does; null for a key of no connector."""
    matches = pc.and_not(pc.match_substring_regex(keys, _PATTERN), pc.starts_with(keys, _COMMA_FIRST))
    is_plain = pc.fill_null(matches, fill_value=False)
    names = _names_in(keys, is_plain)
    if pc.all(is_plain).as_py() is not False:
        return names
    is_odd = pc.invert(is_plain)
    owners = (key_owner(key) for key in keys.filter(is_odd).to_pylist())
    odd = pa.array([owner and owner.connector for owner in owners], pa.string())
    return pc.replace_with_mask(names, is_odd, odd)


def _names_in(keys: pa.BinaryArray, is_plain: pa.Array) -> pa.Array:
    """Cut the connectors out of the plain `keys`: a pattern that captures the name takes twice as long."""
    if not len(keys):
        return pa.array([], pa.string())
    starts, _lengths, data = cuts_of(keys)
    ends: npt.NDArray[np.integer[Any]] = (
        pc.find_substring(keys, _BEHIND_NAME).fill_null(0).to_numpy(zero_copy_only=False)
    )
    wanted = is_plain.to_numpy(zero_copy_only=False)
    cuts = np.zeros(2 * len(keys) + 1, np.int64)
    cuts[:-1:2], cuts[1::2] = starts + np.where(wanted, _NAME_FROM, 0), starts + np.where(wanted, ends, 0)
    cuts[-1] = cuts[-2]
    rows = pa.array(np.arange(0, len(cuts) - 1, 2), mask=~wanted)
    return cut_column(cuts, data).take(rows).cast(pa.string())


def renamed(keys: pa.Array, connectors: pa.Array, renames: Mapping[str, str]) -> pa.Array:
    """Put each connector's new name into its keys; all other bytes stay."""
    if not renames:
        return keys
    changes = pc.is_in(connectors, value_set=pa.array(list(renames), pa.string()))
    if not pc.any(changes).as_py():
        return keys
    quoted = {old: quoted_name(new) for old, new in renames.items()}
    plain = {old: string_text(old).encode("utf-8") for old in renames}
    rows = zip(keys.filter(changes).to_pylist(), connectors.filter(changes).to_pylist(), strict=True)
    new = [
        b"[" + quoted[name] + key[1 + len(plain[name]) :]
        if key.startswith(plain[name], 1) and key.startswith(b",", 1 + len(plain[name]))
        else _renamed(key, renames)
        for key, name in rows
    ]
    return pc.replace_with_mask(keys, changes, pa.array(new, keys.type))


def _renamed(key: bytes, renames: Mapping[str, str]) -> bytes:
    owner = key_owner(key)
    return key if owner is None else renamed_key(key, owner, renames[owner.connector])
