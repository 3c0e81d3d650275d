"""The way from columns to Kafka: the partition of each row, the order of rows, and how a producer gets them.

`kafka.topics.writer` sends them, in transactions. A commit fails if one record of its transaction failed: only the last
record of each partition reports its delivery, for its offset.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.record_file import sendable_headers
from eosctl.core.records import Record
from eosctl.engine.columns import SENT, batch_of_columns, filter_rows, one_array, row_numbers
from eosctl.engine.keys.homes import homes_by
from eosctl.engine.reading.headers import headers_of

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


def _more_of(rows: pa.Table, on_last: OnDelivery | None) -> list[tuple[Any, ...]]:
    """Return the further arguments of `produce` for each record: callback twice, timestamp and headers."""
    more: list[tuple[Any, ...]] = [()] * len(rows)
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
    """Return (row, topic, partition) for the first row of each partition."""
    places = pa.table({"topic": rows["topic"], "partition": rows["partition"]})
    grouped = places.append_column("row", row_numbers(len(rows))).group_by(places.column_names)
    firsts = grouped.aggregate([("row", "min")]).select(["row_min", *places.column_names])
    return sorted(zip(*(column.to_pylist() for column in firsts.columns), strict=True))
