"""The way from columns to Kafka: order and partition of rows, sizes of transactions, and what a producer gets.

`kafka.topics.writer` sends the rows, in transactions. A commit fails if one record of its transaction failed: only the
last record of each partition reports its delivery, for its offset.

One transaction of offset writes has everything, unless that is very much. Brokers abort a transaction that is open for
minutes, workers that read the topic to its end wait as long, and the records of one transaction are in memory here. The
coordinator keeps the topics and partitions of a transaction in one record, which may have 1 MiB (`max.message.bytes` of
__transaction_state; TransactionLogValue, Kafka 4.3).

Tables in files are sorted by target partition: a reader of some partitions reads little else. The schema has the
partitions at the ends of each batch.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise, starmap
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.records import Place, Record, sendable_headers
from eosctl.engine.columns import SENT, batch_of_columns, filter_rows, in_one_piece, one_array
from eosctl.engine.files import ROWS_AT_ONCE, metadata_of, write_batches
from eosctl.engine.keys import homes_by
from eosctl.engine.reading.heads import headers_of

OnDelivery = Callable[[Any, Any], None]
"""A callback with confluent-kafka's error, or None, and its message."""

TRANSACTION_S = 600
"""The timeout of a transaction sized by `QuotaPace`, after which the coordinator may abort it."""
_FIRST_BYTES, _GROWTH, _AROUND_BYTES = 1 << 18, 4, 100
_MOMENT_S, _LONG_S = TRANSACTION_S / 40, TRANSACTION_S / 4
_TOMBSTONES_AT_ONCE = 50_000
_POLL_EVERY, _FULL_POLL_S = 1000, 0.1
_PARTITIONS_AT_ONCE = 2000
"""The most partitions of one transaction: the coordinator keeps them all in one record, which takes 1 MiB
(`max.message.bytes` of __transaction_state). With the longest name, a partition of a topic of its own has 260 bytes."""


def placed(decisions: pa.Table) -> pa.Table:
    """Return the records of decisions; `partition` is where the target has the key, else where Connect puts it."""
    given = one_array(decisions["partition"])
    is_new = pc.is_null(given)
    new = decisions.select(["hash", "partitions"]).filter(is_new)
    homes = homes_by(one_array(new["hash"]), one_array(new["partitions"]))
    partitions = pc.replace_with_mask(given, is_new, homes)
    return decisions.select(["topic", "partition", "key", "value"]).set_column(1, "partition", partitions)


def tombstones(copies: Iterable[Record], *, timestamp_ms: int) -> Iterator[pa.Table]:
    """Yield tombstones (SENT, stamped) that delete some records on their partitions."""
    copies = iter(copies)
    while some := list(islice(copies, _TOMBSTONES_AT_ONCE)):
        topics, partitions, keys = zip(*((each.topic, each.partition, each.key) for each in some), strict=True)
        nothing = [None] * len(some)
        rows = pa.Table.from_batches([batch_of_columns([topics, partitions, keys, nothing, nothing], SENT)])
        yield stamped(rows, timestamp_ms)


def stamped(rows: pa.Table, timestamp_ms: int) -> pa.Table:
    """Add a timestamp to all rows; without it each record gets the time of the machine that sends it."""
    return rows.append_column("timestamp_ms", pa.repeat(pa.scalar(timestamp_ms, pa.int64()), len(rows)))


def by_partition(rows: pa.Table) -> pa.Table:
    """Sort rows by topic and partition: few partitions are in more than one transaction, and each costs a marker."""
    order = sorting(place_numbers(rows))
    return rows if order is None else rows.take(pa.array(order))


def place_numbers(rows: pa.Table) -> npt.NDArray[np.int64]:
    """Return a number for the topic and partition of each row, in the order of these."""
    topics = one_array(rows["topic"]).dictionary_encode()
    ranks = pc.rank(topics.dictionary, tiebreaker="first").take(topics.indices).to_numpy().astype(np.int64)
    numbers: npt.NDArray[np.int64] = (ranks << 32) + one_array(rows["partition"]).to_numpy()
    return numbers


def sorting(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """Return the stable order of rows by their numbers; None if they are sorted already."""
    return None if (numbers[1:] >= numbers[:-1]).all() else np.argsort(numbers, kind="stable")


def deletions_first(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield the tombstones, then the other rows, both by partition."""
    for is_next in (pc.is_null, pc.is_valid):
        yield by_partition(filter_rows(rows, is_next(rows["value"])))


class QuotaPace:
    """The number of bytes per transaction: few at first, and four times as many after each quick transaction.

    Brokers delay a writer that is over its quota for as long as they like, and abort a transaction that is open for
    longer than its timeout: each transaction must fit, whatever the quota is. Nor may one have too many partitions.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s, self._bytes = now_s, _FIRST_BYTES

    def pieces(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows of each transaction; it is over when the next rows are asked for."""
        ends = pc.cumulative_sum(record_sizes(rows)).to_pylist()
        firsts = [*(first for first, *_ in first_rows_of(rows)), len(rows)]
        begin = 0
        while begin < len(ends):
            begun_s, done = self._now_s(), ends[begin - 1] if begin else 0
            later = firsts[min(bisect_right(firsts, begin) - 1 + _PARTITIONS_AT_ONCE, len(firsts) - 1)]
            end = min(bisect_left(ends, done + self._bytes, lo=begin) + 1, later)
            yield rows.slice(begin, end - begin)
            self._took(self._now_s() - begun_s)
            begin = end

    def _took(self, took_s: float) -> None:
        if took_s < _MOMENT_S:
            self._bytes *= _GROWTH
        elif took_s > _LONG_S:
            self._bytes = max(self._bytes // _GROWTH, _AROUND_BYTES)


def produce_rows(producer: Any, rows: pa.Table, *, on_last: OnDelivery) -> Iterator[int]:
    """Hand rows (SENT) to `producer`, partition by partition, and yield the number handed over since the last time.

    `headers` may be missing, and `timestamp_ms` be there. It also yields while librdkafka's queue is full. `on_last` is
    called with the outcome of the last record of each partition. Raises KafkaException.
    """
    produce = producer.produce
    for (topic, partition), some in partitions_of(rows):
        for first in range(0, len(some), _POLL_EVERY):
            piece = some.slice(first, _POLL_EVERY)
            keys, values = piece["key"].to_pylist(), piece["value"].to_pylist()
            more = _more_of(piece, on_last if first + len(piece) == len(some) else None)
            for key, value, others in zip(keys, values, more, strict=True):
                while True:
                    try:
                        if others:
                            produce(topic, value, key, partition, *others)
                        else:  # nearly always, in half of the time
                            produce(topic, value, key, partition)
                        break
                    except BufferError:
                        producer.poll(_FULL_POLL_S)
                        yield 0
            producer.poll(0)
            yield len(piece)


def _more_of(rows: pa.Table, on_last: OnDelivery | None) -> list[tuple[object, ...]]:
    """Return the further arguments of `produce` for each record: callback twice, timestamp and headers."""
    more: list[tuple[object, ...]] = [()] * len(rows)
    if on_last is not None:
        more[-1] = (on_last,)
    has_headers = "headers" in rows.column_names and rows["headers"].null_count < len(rows)
    if not (has_headers or "timestamp_ms" in rows.column_names):
        return more
    nothing = [None] * len(rows)
    texts = rows["headers"].to_pylist() if has_headers else nothing
    times = rows["timestamp_ms"].to_pylist() if "timestamp_ms" in rows.column_names else nothing
    for number, (text, time_ms) in enumerate(zip(texts, times, strict=True)):
        if text is not None or time_ms is not None:
            headers = () if text is None else (sendable_headers(headers_of(text)),)
            more[number] = (*(more[number] or (None,)), None, time_ms or 0, *headers)
    return more


def partitions_of(rows: pa.Table) -> Iterator[tuple[tuple[str, int], pa.Table]]:
    """Yield the rows of each partition; they are neighbours."""
    for (first, topic, partition), (end, *_) in pairwise([*first_rows_of(rows), (len(rows), "", -1)]):
        yield (topic, partition), rows.slice(first, end - first)


def record_sizes(rows: pa.Table) -> pa.Array:
    """Estimate the size of each record in bytes."""
    lengths = [pc.fill_null(pc.binary_length(rows[name]), 0).cast(pa.int64()) for name in ("key", "value")]
    return one_array(pc.add(pc.add(*lengths), _AROUND_BYTES))


def first_rows_of(rows: pa.Table) -> list[tuple[int, str, int]]:
    """Return (row, topic, partition) for the first row of each partition, by row."""
    topics, partitions = one_array(rows["topic"]), one_array(rows["partition"])
    numbers, others = partitions.to_numpy(), pc.not_equal(topics[1:], topics[:-1])
    changes = (numbers[1:] != numbers[:-1]) | others.to_numpy(zero_copy_only=False)
    begins = np.flatnonzero(np.append(True, changes)) if len(rows) else np.zeros(0, np.int64)
    firsts = dict[tuple[str, int], int]()
    places = topics.take(begins).to_pylist(), numbers[begins].tolist()
    for row, topic, partition in zip(begins.tolist(), *places, strict=True):
        firsts.setdefault((topic, partition), row)
    return [(row, *place) for place, row in firsts.items()]


MOST_RECORDS, MOST_BYTES, MOST_PARTITION_BYTES = 200_000, 1 << 28, 1 << 19
_AROUND_TOPIC, _OF_PARTITION = 10, 4


def in_transactions(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows (SENT) of one transaction after the other, in order."""
    some, room = list[pa.Table](), _TransactionSize()
    for table in tables:
        while len(table):
            if count := room.take(table):
                some.append(table.slice(0, count))
            table = table.slice(count)
            if len(table):
                yield pa.concat_tables(some)
                some, room = [], _TransactionSize()
    if some:
        yield pa.concat_tables(some)


def are_several(tables: Iterable[pa.Table]) -> bool:
    """Tell whether the rows are too many for one transaction."""
    return any(True for _second in islice(in_transactions(tables), 1, 2))


@dataclass(slots=True)
class _TransactionSize:
    """The contents of the current transaction, by number and size."""

    records: int = 0
    size: int = 0
    places_size: int = 0
    places: set[object] = field(default_factory=set)

    def take(self, table: pa.Table) -> int:
        """Add as many of the first rows as fit, and return their number; an empty transaction takes at least one."""
        rows = table.slice(0, MOST_RECORDS - self.records)
        ends = pc.cumulative_sum(record_sizes(rows)).to_pylist()
        count = bisect_right(ends, MOST_BYTES - self.size)
        if not self.records:
            count = max(count, 1)
        count = self._take_places(rows.slice(0, count))
        if count:
            self.records, self.size = self.records + count, self.size + ends[count - 1]
        return count

    def _take_places(self, rows: pa.Table) -> int:
        """Add partitions in order, and return the number of rows before the first one whose partition does not fit."""
        for first, topic, partition in first_rows_of(rows):
            if (topic, partition) in self.places:
                continue
            more = _OF_PARTITION + (0 if topic in self.places else _AROUND_TOPIC + len(topic))
            if self.places and self.places_size + more > MOST_PARTITION_BYTES:
                return first
            self.places |= {topic, (topic, partition)}
            self.places_size += more
        return len(rows)


_BATCHES = b"batches"
_FEW_ROWS = 1_000
"""The fewest rows of a batch, except for the last one: partitions with fewer rows share one."""


def write_by_place(file: Path, rows: pa.Table, places: pa.Table, *, readers: int) -> None:
    """Write `rows` into a file for `readers` readers, sorted by the (topic, partition) of each row in `places`.

    Each batch costs a millisecond. A reader of some partitions also gets the rows that share a batch with the first and
    the last of them.
    """
    numbers, rows = place_numbers(places), in_one_piece(rows)
    order = sorting(numbers)

    def some(first: int, end: int) -> pa.Table:
        return rows.slice(first, end - first) if order is None else rows.take(pa.array(order[first:end]))

    def place(row: int) -> list[object]:
        number = row if order is None else int(order[row])
        return [places["topic"][number].as_py(), places["partition"][number].as_py()]

    few = max(_FEW_ROWS, len(rows) // (4 * readers))
    cuts = _cuts(numbers if order is None else numbers[order], few)
    ends = json.dumps([[*place(first), *place(end - 1)] for first, end in cuts])
    write_batches(file, rows.schema.with_metadata({_BATCHES: ends}), starmap(some, cuts))


def _cuts(numbers: npt.NDArray[np.int64], few: int) -> list[tuple[int, int]]:
    """Return (first row, end row) of each batch, given the sorted numbers of the rows' places.

    A batch ends with a place, once it has at least `few` rows; one place may have several batches.
    """
    cuts = [0]
    for begin in [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]:
        if begin - cuts[-1] >= few or begin == len(numbers):
            cuts += [*range(cuts[-1] + ROWS_AT_ONCE, begin, ROWS_AT_ONCE), begin]
    return list(pairwise(dict.fromkeys(cuts)))


def batches_to(file: Path, places: Collection[Place]) -> Sequence[int] | None:
    """Return the numbers of the batches that may have rows for one of `places`.

    None if the file does not say, as files of earlier versions of eosctl don't.
    """
    ends = metadata_of(file).get(_BATCHES)
    if ends is None:
        return None
    wanted = sorted(places)
    return [
        number
        for number, (topic, partition, last_topic, last_partition) in enumerate(json.loads(ends))
        if bisect_left(wanted, (topic, partition)) < bisect_right(wanted, (last_topic, last_partition))
    ]
