"""The newest record of each partition and key of some ranges of offsets, of records that come as columns.

    for fold in folded(pieces, [OffsetRange("connect-offsets", 0, begin, lso, partitions=25), …]):
        fold.records     # a pyarrow.Table of `columns.RECORDS`
        fold.older       # how many older records of the same keys were read

There is one fold, with each partition and key once, unless the keys would not fit into memory: then there are more, and
a key may be in several, with its newest record in the last of these (`rule.newest_per_key` finds it). Memory is that of
the keys, however many records they have. Nothing is read here, and nothing depends on Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eosctl.core.records import Bounds, Record
from eosctl.engine.columns import RECORDS, VALUES, are_nothing, batch_of_columns, one_batch, same
from eosctl.engine.keys import (
    Hashes,
    are_alike,
    hash_column,
    hashes_of,
    homes_by,
    nulls_of,
    numbers_in,
    owners_of,
    sorted_by_hash,
)
from eosctl.engine.reading.batches import PIECE, Piece
from eosctl.engine.reading.heads import Integers, raw_headers
from eosctl.engine.reading.ranges import Message, OffsetRange

KEYS_AT_ONCE = 1_000_000
BYTES_AT_ONCE = 1 << 29
Flags = npt.NDArray[np.bool_]

_ROWS_AT_ONCE = 50_000
_FULL = 0.75
"""The most of the limits that rows may take after superseded ones are dropped: else all are given away."""


class Fold(Struct, frozen=True):
    """The newest `records` of some keys, and the number of `older` ones of the same keys.

    `read` is the number of all records, counted as they came; `sizes` are the topics' numbers of partitions.
    """

    records: pa.Table
    older: int
    read: int
    sizes: Mapping[str, int]

    def connectors(self) -> set[str]:
        """Return the connectors that have offsets."""
        return set(pc.unique(self.records["connector"]).drop_null().to_pylist())

    def in_place(self) -> bool:
        """Tell whether every key is where Connect's producer puts it; records without a key don't count."""
        return pc.all(self.records["at_home"].filter(pc.is_valid(self.records["key"]))).as_py() is not False


class TopicColumns(Struct, frozen=True):
    """The result of reading a topic, or some of its partitions, up to bounds that were fixed at the start.

    `records` (RECORDS) has the newest record of each partition and key. The bounds are those of all partitions.
    """

    topic: str
    bounds: tuple[Bounds, ...]
    records: pa.Table

    def blocked(self) -> tuple[Bounds, ...]:
        """Return the partitions where an open transaction hides the records behind it."""
        return tuple(bound for bound in self.bounds if bound.lso < bound.end)


def all_records(reads: Iterable[TopicColumns]) -> pa.Table:
    """Return the records of several topics, as RECORDS."""
    return pa.concat_tables([RECORDS.empty_table(), *(read.records for read in reads)])


def folded(
    pieces: Iterable[pa.RecordBatch],
    ranges: Sequence[OffsetRange],
    *,
    keys_at_once: int = KEYS_AT_ONCE,
    bare: bool = False,
) -> Iterator[Fold]:
    """Yield the newest of the records (PIECE) that come from `ranges`, those of a partition in the order of its log."""
    folding = Folding(ranges, keys_at_once=keys_at_once, bare=bare)
    for piece in pieces:
        folding.add(piece)
        if folding.is_full():
            yield folding.fold()
            folding = Folding(ranges, keys_at_once=keys_at_once, bare=bare)
    yield folding.fold()


def records_table(topic: str, records: Iterable[Record], *, partitions: int, bare: bool = False) -> pa.Table:
    """Return records that are in memory, as RECORDS of a topic with `partitions` partitions; `bare` as in `Folding`."""
    *columns, headers = list(zip(*(record[1:] for record in records), strict=True)) or [()] * 6
    types = (pa.int32(), pa.int64(), pa.int64(), VALUES, VALUES)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    arrays.append(pa.array(map(raw_headers, headers), VALUES))
    topics = pa.repeat(pa.scalar(topic, pa.string()), len(arrays[0]))
    sizes = pa.repeat(pa.scalar(partitions, pa.int32()), len(topics))
    return _as_records(topics, arrays, sizes, hash_column(arrays[3]), bare=bare)


class Folding:
    """The newest of records that come as columns.

    Superseded rows are dropped whenever they are more than the others, in number or in bytes. Of `ranges`, to which the
    records' places are numbers, it needs the topic, the partition and the number of partitions.
    """

    def __init__(
        self,
        ranges: Sequence[OffsetRange],
        *,
        keys_at_once: int = KEYS_AT_ONCE,
        bytes_at_once: int = BYTES_AT_ONCE,
        bare: bool = False,
        keyless: bool = False,
    ) -> None:
        """Start with no records.

        `bare`: the connector of each key is not needed: the column `connector` is null. `keyless`: all records without
        a key stay.
        """
        self._ranges, self._bare, self._keyless = ranges, bare, keyless
        self._batches: list[pa.RecordBatch] = []
        self._hashes: list[Hashes] = []
        self._rows = self._keys = self._older = self._read = self._kept_bytes = 0
        self._keys_at_once, self._bytes_at_once = keys_at_once, bytes_at_once
        self._compact_at_rows, self._compact_at_bytes = _ROWS_AT_ONCE, bytes_at_once

    def held_bytes(self) -> int:
        """Return the size of all rows held, superseded ones included."""
        return self._kept_bytes

    def is_full(self) -> bool:
        """Tell whether to give away the rows held: not if dropping the superseded ones frees much."""
        if self._kept_bytes < self._bytes_at_once and self._rows < self._keys_at_once:
            return False
        if self._rows > self._keys:
            self._compact()
        return self._keys >= self._keys_at_once * _FULL or self._kept_bytes >= self._bytes_at_once * _FULL

    def add(self, piece: pa.RecordBatch) -> None:
        """Add records (PIECE), those of a partition in the order of its log."""
        self._batches.append(piece)
        self._hashes.append(hashes_of(piece["key"]))
        self._rows += len(piece)
        self._read += len(piece)
        self._kept_bytes += piece.nbytes
        if self._rows > self._keys and (
            self._kept_bytes >= self._compact_at_bytes or self._rows >= self._compact_at_rows
        ):
            self._compact()

    def fold(self) -> Fold:
        """Return the records held, and let go of them."""
        self._let_go()
        batches, self._batches = list(_larger(self._batches))[::-1], []
        hashes, self._hashes, first = np.concatenate([np.zeros(0, np.uint32), *self._hashes]), [], 0
        found = [RECORDS.empty_table()]
        while batches:
            piece = batches.pop()
            found.append(self._records_of(piece, hashes[first : first + len(piece)]))
            first += len(piece)
        sizes = {one.name or one.topic: one.partitions for one in self._ranges}
        return Fold(pa.concat_tables(found), self._older, self._read, sizes)

    def _records_of(self, piece: pa.RecordBatch, hashes: Hashes) -> pa.Table:
        places, *columns = piece.columns
        of_ranges = [(one.name or one.topic, one.partition, one.partitions) for one in self._ranges]
        kinds = (pa.string(), pa.int32(), pa.int32())
        names, partitions, sizes = (
            pa.array(facts, kind).take(places) for facts, kind in zip(zip(*of_ranges, strict=True), kinds, strict=True)
        )
        of_keys = pa.array(hashes, mask=nulls_of(piece["key"]))
        return _as_records(names, [partitions, *columns], sizes, of_keys, bare=self._bare)

    def _compact(self) -> None:
        """Drop superseded rows, and start counting from the rest."""
        self._let_go()
        self._keys = self._rows
        self._kept_bytes = sum(batch.nbytes for batch in self._batches)
        self._compact_at_bytes = 2 * self._kept_bytes + self._bytes_at_once
        self._compact_at_rows = 2 * self._keys + _ROWS_AT_ONCE

    def _let_go(self) -> None:
        """Drop superseded rows batch by batch: a copy of all rows would double the memory while it is made."""
        counts = superseded(self._batches, self._hashes, keyless=self._keyless)
        if counts is None:
            return
        kept = np.ones(self._rows, np.bool_)
        kept[counts] = False
        batches, hashes, ends = self._batches[::-1], self._hashes, np.cumsum([len(each) for each in self._batches])
        self._batches, self._hashes = [], []
        which = np.split(kept, ends[:-1])
        self._batches = list(_larger(_filtered(batches, which)))
        self._hashes = [np.concatenate(hashes)[kept]]
        self._older, self._rows = self._older + len(counts), self._rows - len(counts)


def superseded(batches: Sequence[pa.RecordBatch], hashes: Sequence[Hashes], *, keyless: bool) -> Integers | None:
    """Return the numbers of the rows that have the partition and key of a later one; None if there are none.

    With `keyless`, rows without a key differ from each other.
    """
    if not batches:
        return None
    places = np.concatenate([batch["place"].to_numpy() for batch in batches])
    ordered = sorted_by_hash(np.concatenate(hashes), places)
    goes_on = np.append(are_alike(ordered), values=False)  # the next one has the same hash
    if not goes_on.any():
        return None
    alike = np.insert(goes_on[:-1], 0, values=False) | goes_on
    rows, goes_on = numbers_in(ordered[alike]), goes_on[alike]
    keys, places = pa.concat_arrays([batch["key"] for batch in batches]).take(pa.array(rows)), places[rows]
    is_key = keys.is_valid().to_numpy(zero_copy_only=False) if keyless else np.True_
    differs = goes_on & ~_are_as_next(keys, places)
    older, doubtful = goes_on & is_key, _with_neighbours(differs, goes_on)
    if doubtful.any():
        older[doubtful] = _are_older(keys.filter(pa.array(doubtful)), places[doubtful], keyless=keyless)
    return np.sort(rows[older]) if older.any() else None


def _are_as_next(keys: pa.Array, places: Integers) -> Flags:
    """Tell for each row but the last whether its key and place are those of the next."""
    found: Flags = same(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False)
    return np.append(found & (places[:-1] == places[1:]), values=False)


def _with_neighbours(some: Flags, goes_on: Flags) -> Flags:
    """Extend `some` to whole runs: a row that `goes_on` has the next one in its run."""
    if not some.any():
        return some
    runs = np.cumsum(np.insert(~goes_on[:-1], 0, values=False))
    return np.isin(runs, runs[some])


def _are_older(keys: pa.Array, places: Integers, *, keyless: bool) -> Flags:
    """Tell for each row whether a later one has its place and key."""
    later = set[tuple[int, bytes | None]]()
    found = np.zeros(len(keys), np.bool_)
    pairs = list(zip(places.tolist(), keys.to_pylist(), strict=True))
    for number, pair in reversed(list(enumerate(pairs))):
        found[number] = pair in later and not (keyless and pair[1] is None)
        later.add(pair)
    return found


def _filtered(batches: list[pa.RecordBatch], which: Sequence[npt.NDArray[np.bool_]]) -> Iterator[pa.RecordBatch]:
    """Yield some rows of each of `batches`, which is emptied from the end."""
    for wanted in which:
        batch = batches.pop()
        if wanted.all():
            yield batch
        elif wanted.any():
            yield batch.filter(pa.array(wanted))


def _larger(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches, but for the last: else there were ever more of them."""
    some, rows = list[pa.RecordBatch](), 0
    for batch in batches:
        some.append(batch)
        rows += len(batch)
        if rows >= _ROWS_AT_ONCE:
            yield one_batch(some)
            some, rows = [], 0
    if some:
        yield one_batch(some)


def piece_of(number: int, messages: Sequence[Message]) -> Piece:
    """Convert messages of confluent-kafka, all of the partition of that number."""
    times = [message.timestamp() for message in messages]
    columns = [
        pa.repeat(pa.scalar(number, pa.int32()), len(messages)),
        [message.offset() for message in messages],
        [time_ms if kind else -1 for kind, time_ms in times],
        [message.key() for message in messages],
        [message.value() for message in messages],
        [raw_headers(tuple(message.headers() or ())) for message in messages],
    ]
    return Piece(batch_of_columns(columns, PIECE), np.full(len(messages), -1))


def _as_records(
    topics: pa.Array, columns: Sequence[pa.Array], sizes: pa.Array, hashes: pa.Array, *, bare: bool
) -> pa.Table:
    """Return RECORDS of columns: partition, offset, timestamp_ms, key, value and headers; `hashes` are of the keys."""
    partitions, _offsets, _times_ms, keys, values, _headers = columns
    at_home = pc.fill_null(pc.equal(homes_by(hashes, sizes), partitions), fill_value=False)
    owners = pa.nulls(len(keys), pa.string()) if bare else owners_of(keys)
    return pa.Table.from_arrays([topics, *columns, are_nothing(values), hashes, at_home, owners], schema=RECORDS)
