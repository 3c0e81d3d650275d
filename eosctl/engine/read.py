"""From a consumer to columns: the newest record of each partition and key of some ranges of offsets.

    for fold in read_newest(client_properties, [OffsetRange("connect-offsets", 0, begin, lso, partitions=25), …]):
        fold.records     # a pyarrow.Table of `columns.RECORDS`
        fold.older       # how many records of the same keys it stands for besides

There is one fold, and each partition and key is in it once, unless the keys would not fit into memory: then there are
more, a key may be in several, and the newest of it is in the last of these (`rule.newest_per_key` finds it). Memory is
that of the keys, however many records they have. Needs no group, no rights but to read, and no Spark.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.records import Bounds, Headers, Record
from eosctl.engine.columns import RECORDS, VALUES, batch_of_columns, nothings
from eosctl.engine.owners import owners_of
from eosctl.engine.ranges import ClientProperties, Message, OffsetRange, OpenConsumer, Place, ProgressMeter, read_runs

KEYS_AT_ONCE = 1_000_000
BYTES_AT_ONCE = 1 << 29
_ROWS_AT_ONCE = 50_000
_COLUMNS = pa.schema(
    [
        ("place", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", VALUES),
    ]
)


@dataclass(frozen=True, slots=True)
class Fold:
    """The newest `records` of some keys, and how many `older` ones of the same keys there were besides.

    `read` is how many came altogether, counted as they came; `sizes` are the topics' numbers of partitions.
    """

    records: pa.Table
    older: int
    read: int
    sizes: Mapping[str, int]

    def connectors(self) -> set[str]:
        """Whose offsets there are."""
        return set(pc.unique(self.records["connector"]).drop_null().to_pylist())

    def in_place(self) -> bool:
        """Whether every key is where Connect's producer puts it; no key has no such place."""
        return pc.all(self.records["at_home"].filter(pc.is_valid(self.records["key"]))).as_py() is not False


@dataclass(frozen=True, slots=True)
class TopicColumns:
    """The outcome of reading a topic, or some of its partitions, up to bounds that were fixed at the start.

    `records` (RECORDS) have each partition and key once, the newest; `headers` are those of records that have any, by
    partition and offset. The bounds are those of all partitions.
    """

    topic: str
    bounds: tuple[Bounds, ...]
    records: pa.Table
    headers: Mapping[tuple[int, int], Headers]

    def blocked(self) -> tuple[Bounds, ...]:
        """The partitions where an open transaction hides what comes behind it."""
        return tuple(bound for bound in self.bounds if bound.lso < bound.end)


def all_records(reads: Iterable[TopicColumns]) -> pa.Table:
    """The records of several topics, as RECORDS."""
    return pa.concat_tables([RECORDS.empty_table(), *(read.records for read in reads)])


def read_newest(
    client: ClientProperties,
    ranges: Sequence[OffsetRange],
    *,
    stall_timeout_s: float = 60.0,
    keys_at_once: int = KEYS_AT_ONCE,
    progress: ProgressMeter | None = None,
    open_consumer: OpenConsumer | None = None,
) -> Iterator[Fold]:
    """Reads `ranges` with one consumer, committed records only; `client` are librdkafka properties.

    Raises what `read_runs` raises.
    """
    runs = read_runs(client, ranges, stall_timeout_s=stall_timeout_s, progress=progress, open_consumer=open_consumer)
    folding = Folding(ranges)
    for place, messages in runs:
        folding.add(place, messages)
        if folding.is_full(keys_at_once):
            yield folding.fold()
            folding = Folding(ranges)
    yield folding.fold()


def records_table(topic: str, records: Iterable[Record], *, partitions: int, bare: bool = False) -> pa.Table:
    """Records that are in memory, as RECORDS of a topic that has so many partitions; `bare` as in `Folding`."""
    columns = list(zip(*(record[1:6] for record in records), strict=True)) or [()] * 5
    types = (pa.int32(), pa.int64(), pa.int64(), pa.binary(), VALUES)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    topics = pa.repeat(pa.scalar(topic, pa.string()), len(arrays[0]))
    sizes = pa.repeat(pa.scalar(partitions, pa.int32()), len(topics))
    return _as_records(topics, arrays, sizes, bare=bare)


def homes_of(keys: Sequence[bytes | None], partitions: Iterable[int]) -> list[int | None]:
    """Where Connect's producer puts each of the keys of topics with so many partitions; no key has no such place."""
    from confluent_kafka import murmur2

    return [None if key is None else murmur2(key, size) for key, size in zip(keys, partitions, strict=False)]


def home_of(key: bytes, partitions: int) -> int:
    """`core.offsets.murmur2.partition_for`, at a hundred times the speed."""
    from confluent_kafka import murmur2

    return murmur2(key, partitions)


class Folding:
    """Columns of messages as they come; rows that are superseded go whenever they are more than the others, in number
    or in bytes.

    Of `ranges` it needs the topic, the partition and how many there are.
    """

    def __init__(
        self, ranges: Sequence[OffsetRange], *, bytes_at_once: int = BYTES_AT_ONCE, bare: bool = False
    ) -> None:
        """`bare`: nobody asks where a key should be (`at_home`) nor whose it is (`connector`): they are null."""
        self._ranges, self._bare = ranges, bare
        self._number_of: dict[Place, int] = {(one.topic, one.partition): i for i, one in enumerate(ranges)}
        self._newest: list[dict[bytes | None, int]] = [{} for _ in ranges]
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._keys = self._older = self._read = self._kept_bytes = 0
        self._bytes_at_once = self._compact_at_bytes = bytes_at_once

    def held_bytes(self) -> int:
        """How much there is by now, with what is superseded."""
        return self._kept_bytes

    def is_full(self, keys_at_once: int) -> bool:
        """Whether it is time to give away what is held: not for what goes if it is superseded, if that is much."""
        if self._kept_bytes < self._bytes_at_once:
            return self._keys >= keys_at_once
        if self._rows > self._keys:
            self._compact()
        return self._keys >= keys_at_once or self._kept_bytes >= self._bytes_at_once * 3 // 4

    def add(self, place: Place, messages: Sequence[Message]) -> None:
        """A run of messages of one partition, in the order of its log."""
        number, count = self._number_of[place], len(messages)
        keys = [message.key() for message in messages]
        times = [message.timestamp() for message in messages]
        batch = batch_of_columns(
            [
                pa.repeat(pa.scalar(number, pa.int32()), count),
                [message.offset() for message in messages],
                [time_ms if kind else -1 for kind, time_ms in times],
                keys,
                [message.value() for message in messages],
            ],
            _COLUMNS,
        )
        newest = self._newest[number]
        self._keys -= len(newest)
        newest.update(zip(keys, range(self._rows, self._rows + count), strict=True))
        self._keys += len(newest)
        self._batches.append(batch)
        self._rows += count
        self._read += count
        self._kept_bytes += batch.nbytes
        many_bytes = self._kept_bytes >= self._compact_at_bytes and self._rows > self._keys
        if many_bytes or self._rows >= 2 * self._keys + _ROWS_AT_ONCE:
            self._compact()

    def fold(self) -> Fold:
        """What there is by now, which is held no more."""
        rows = self._rows_that_count()
        self._newest.clear()
        self._let_go(rows)
        pieces = [[batch.column(name) for batch in self._batches] for name in _COLUMNS.names]
        self._batches = []
        found = [_joined(pieces.pop(0), field.type) for field in _COLUMNS]
        places = found[0]
        names = pa.array([one.name or one.topic for one in self._ranges], pa.string())
        sizes = pa.array([one.partitions for one in self._ranges], pa.int32())
        partitions = pa.array([one.partition for one in self._ranges], pa.int32())
        columns = [partitions.take(places), *found[1:]]
        records = _as_records(names.take(places), columns, sizes.take(places), bare=self._bare)
        return Fold(records, self._older, self._read, {one.name or one.topic: one.partitions for one in self._ranges})

    def _compact(self) -> None:
        """Lets go of what is superseded, and goes on with what is left."""
        rows = self._rows_that_count()
        if len(rows) < self._rows:
            moved = array("q", bytes(8 * self._rows))
            for number, row in enumerate(rows):
                moved[row] = number
            for newest in self._newest:
                newest.update(zip(newest, map(moved.__getitem__, newest.values()), strict=True))
            self._let_go(rows)
        self._kept_bytes = sum(batch.nbytes for batch in self._batches)
        self._compact_at_bytes = 2 * self._kept_bytes + self._bytes_at_once

    def _rows_that_count(self) -> list[int]:
        """The rows that nothing supersedes, in order."""
        return sorted(chain.from_iterable(newest.values() for newest in self._newest))

    def _let_go(self, rows: Sequence[int]) -> None:
        """Keeps some rows, batch by batch: a copy of all would take as much again while it is made."""
        if len(rows) < self._rows:
            self._batches = list(_larger(_taken(self._batches, rows)))
            self._older, self._rows = self._older + self._rows - len(rows), len(rows)


def _taken(batches: list[pa.RecordBatch], rows: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Some rows, in order, of all `batches`, which are gone then."""
    first = begin = 0
    batches.reverse()
    while batches:
        batch = batches.pop()
        end = bisect_left(rows, first + len(batch), begin)
        if end - begin == len(batch):
            yield batch
        elif end > begin:
            yield batch.take(pa.array([row - first for row in rows[begin:end]], pa.int64()))
        first, begin = first + len(batch), end


def _larger(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches that are not small, but for the last: else there were ever more of them."""
    some, rows = list[pa.RecordBatch](), 0
    for batch in batches:
        some.append(batch)
        rows += len(batch)
        if rows >= _ROWS_AT_ONCE:
            yield pa.concat_batches(some)
            some, rows = [], 0
    if some:
        yield pa.concat_batches(some)


def _joined(arrays: list[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays(arrays) if arrays else pa.array([], kind)


def _as_records(topics: pa.Array, columns: Sequence[pa.Array], sizes: pa.Array, *, bare: bool) -> pa.Table:
    """`columns` are partition, offset, timestamp_ms, key and value."""
    partitions, _offsets, _times_ms, keys, values = columns
    if bare:
        found = [pa.nulls(len(keys), RECORDS.field(name).type) for name in ("at_home", "connector")]
    else:
        found = [pc.fill_null(pc.equal(_homes(keys, sizes), partitions), fill_value=False), owners_of(keys)]
    return pa.Table.from_arrays([topics, *columns, nothings(values), *found], schema=RECORDS)


def _homes(keys: pa.Array, sizes: pa.Array) -> pa.Array:
    """`homes_of`, some at a time: as Python's bytes the keys take as much again."""
    homes = [pa.array([], pa.int32())]
    for first in range(0, len(keys), _ROWS_AT_ONCE):
        some, partitions = (column.slice(first, _ROWS_AT_ONCE).to_pylist() for column in (keys, sizes))
        homes.append(pa.array(homes_of(some, partitions), pa.int32()))
    return pa.concat_arrays(homes)
