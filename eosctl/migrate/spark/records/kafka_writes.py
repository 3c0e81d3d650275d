"""Writing Kafka in tasks, with confluent-kafka: in transactions, and every delivery report counted.

Keys and values stay binary. Runs on executors: imports nothing of eosctl but `eosctl.core`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from eosctl.migrate.spark.record_counts import RecordCounts, TaskProgress
from eosctl.migrate.spark.records.arrow_rows import arrow_batch, arrow_schema
from eosctl.migrate.spark.records.offset_ranges import ClientProperties
from eosctl.migrate.spark.tasks import task_number

PLACED = "topic string, partition int, key binary, value binary"
"""Rows of `placed`: records to write, each with its partition."""

WRITTEN = "task int, topic string, partition int, written long, tombstones long, last_offset long"
"""Rows of `write_records`: what one task's transaction committed to one partition."""


_ARROW_WRITTEN = arrow_schema(WRITTEN)
Row = tuple[str, int, bytes, bytes | None]
"""(topic, partition, key, value) of a record to write."""

Counts = dict[tuple[str, int], tuple[int, int, int]]
"""(topic, partition) -> (records written, tombstones among them, offset of the last)."""

_TRANSACTION_TIMEOUT_S = 600
_FLUSH_S = 0.9 * _TRANSACTION_TIMEOUT_S
_FIRST_BYTES, _GROWTH, _AROUND_BYTES = 1 << 18, 4, 100
_MOMENT_S, _LONG_S = _TRANSACTION_TIMEOUT_S / 40, _TRANSACTION_TIMEOUT_S / 4
_PRODUCER = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 20,
    "allow.auto.create.topics": False,
    "transaction.timeout.ms": 1000 * _TRANSACTION_TIMEOUT_S,
    "message.timeout.ms": 1000 * _TRANSACTION_TIMEOUT_S,  # a quota may hold a record up for as long
    "enable.metrics.push": False,
}


def write_records(
    rows: DataFrame,
    client: ClientProperties,
    *,
    transactional_id: str,
    tasks: int,
    counts: RecordCounts | None = None,
) -> DataFrame:
    """Writes `rows` (topic, partition, partitions, key, value) and yields WRITTEN per task and partition.

    Each Kafka partition, and so each key, belongs to exactly one task, and each task has one transactional id
    (`write_task`). Tasks that shared partitions would cost the broker a marker each, several times the time. Every
    action on the result writes again: collect it once. `counts` are told how many records are confirmed.
    """
    settings = dict(client)

    def write_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return write_task(settings, transactional_id, batches, counts)

    return placed(rows).repartition(tasks, "topic", "partition").mapInArrow(write_batches, WRITTEN)


def write_task(
    client: ClientProperties, transactional_id: str, batches: Iterable[pa.RecordBatch], counts: RecordCounts | None
) -> Iterator[pa.RecordBatch]:
    """Writes batches of PLACED under `<transactional_id>-<task>`; batches of WRITTEN.

    A retried task has its predecessor's id, and fences it.
    """
    task = task_number()
    count = counts.of_task(task) if counts else None
    confirmed = write_transaction(client, f"{transactional_id}-{task}", _rows_of(batches), count)
    lines = [(task, *where, *numbers) for where, numbers in sorted(confirmed.items())]
    if lines:
        yield arrow_batch(lines, _ARROW_WRITTEN)


def placed(rows: DataFrame) -> DataFrame:
    """`rows` (topic, partition, partitions, key, value) as PLACED: where `partition` was null, Connect's producer's."""

    def place(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(placed_batch, batches)

    return rows.select("topic", "partition", "partitions", "key", "value").mapInArrow(place, PLACED)


def placed_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """One batch of `placed`."""
    from confluent_kafka import murmur2

    given, sizes, keys = (batch.column(name).to_pylist() for name in ("partition", "partitions", "key"))
    partitions = [
        murmur2(key, size) if partition is None else partition
        for partition, size, key in zip(given, sizes, keys, strict=True)
    ]
    columns = [batch.column("topic"), pa.array(partitions, pa.int32()), batch.column("key"), batch.column("value")]
    return pa.RecordBatch.from_arrays(columns, names=["topic", "partition", "key", "value"])


def _rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def write_transaction(
    client: ClientProperties,
    transactional_id: str,
    rows: Iterable[Row],
    count: TaskProgress | None = None,
    *,
    open_producer: Callable[[ClientProperties], Any] | None = None,
    now_s: Callable[[], float] = time.monotonic,
) -> Counts:
    """Writes `rows`, one transaction after the other, and returns what was confirmed.

    Nothing is opened for no rows, and one transaction is enough where nothing holds the writer up: see `_Pace`. Raises
    KafkaException or RuntimeError after aborting what is open, as far as the broker answers.
    """
    from confluent_kafka import KafkaException, Producer

    iterator = iter(rows)
    first = next(iterator, None)
    if first is None:
        return {}
    producer = (open_producer or Producer)({**client, **_PRODUCER, "transactional.id": transactional_id})
    _until_done(producer.init_transactions)
    sender = _Sender(producer, count)
    waiting, pace = chain((first,), iterator), _Pace(now_s)
    try:
        while (row := next(waiting, None)) is not None:
            producer.begin_transaction()
            sender.send(pace.some(chain((row,), waiting)))
            _until_done(producer.commit_transaction, timeout_s=_FLUSH_S)
            pace.over()
    except BaseException:
        producer.purge()
        with suppress(KafkaException):  # the first error is the one to report; who comes next fences what stays open
            _until_done(producer.abort_transaction, timeout_s=10.0)
        raise
    sender.tell(last=True)
    return sender.confirmed


class _Pace:
    """How many bytes go into one transaction: few at first, and four times as many whenever that took but a moment.

    Brokers hold up a writer that is over its quota for as long as they like, and end a transaction that is open for
    longer than its timeout: what goes into one must fit, whatever the quota is.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s, self._bytes, self._begun_s = now_s, _FIRST_BYTES, 0.0

    def some(self, rows: Iterator[Row]) -> Iterator[Row]:
        """The rows of the next transaction; it takes none that it does not give."""
        self._begun_s, left = self._now_s(), self._bytes
        for row in rows:
            yield row
            left -= len(row[2]) + len(row[3] or b"") + _AROUND_BYTES
            if left <= 0:
                return

    def over(self) -> None:
        """The transaction is committed."""
        took_s = self._now_s() - self._begun_s
        if took_s < _MOMENT_S:
            self._bytes *= _GROWTH
        elif took_s > _LONG_S:
            self._bytes = max(self._bytes // _GROWTH, _AROUND_BYTES)


class _Sender:
    """Sends the records of one transaction after the other; `confirmed` is what delivery reports told of all."""

    def __init__(self, producer: Any, count: TaskProgress | None) -> None:
        self._producer, self._count, self._sent, self._failures = producer, count, 0, list[str]()
        self.confirmed: Counts = {}

    def send(self, rows: Iterable[Row]) -> None:
        """Sends and awaits all reports; raises RuntimeError for an undelivered record."""
        for topic, partition, key, value in rows:
            produce = partial(self._producer.produce, topic, value, key, partition, self._on_delivery)
            _with_room(self._producer, produce)
            self._sent += 1
            if self._sent % 1000 == 0:
                self._producer.poll(0)
                self.tell()
        left = self._producer.flush(_FLUSH_S)
        if self._failures or left or _written(self.confirmed) != self._sent:
            undelivered = left + len(self._failures)
            raise RuntimeError(f"{undelivered} of {self._sent} records were not delivered: {self._failures[:3]}")

    def tell(self, *, last: bool = False) -> None:
        """Says how many are confirmed so far."""
        if self._count is not None:
            self._count.tell(partial(_written, self.confirmed), last=last)

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failures.append(f"{message.topic()}-{message.partition()}: {error.str()} ({error.name()})")
            return
        where = message.topic(), message.partition()
        written, tombstones, last = self.confirmed.get(where, (0, 0, -1))
        self.confirmed[where] = written + 1, tombstones + (message.value() is None), max(last, message.offset())


def _written(confirmed: Counts) -> int:
    return sum(written for written, _, _ in confirmed.values())


def _with_room(producer: Any, produce: Callable[[], None]) -> None:
    """Calls `produce`, waiting while librdkafka's queue is full."""
    while True:
        try:
            return produce()
        except BufferError:
            producer.poll(0.5)


def _until_done(step: Callable[[float], None], *, timeout_s: float = 120.0) -> None:
    """Calls a transactional step until it is done; librdkafka asks for a repetition of what it may repeat."""
    from confluent_kafka import KafkaException

    give_up_s = time.monotonic() + timeout_s
    while True:
        try:
            return step(10.0)
        except KafkaException as exc:
            if not exc.args[0].retriable() or time.monotonic() > give_up_s:
                raise
