"""Writing Kafka in tasks, with confluent-kafka: a transaction per task, and every delivery report counted.

Keys and values stay binary. Runs on executors: imports nothing of eosctl but `eosctl.core`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from eosctl.spark.arrow_rows import arrow_batch, arrow_schema
from eosctl.spark.record_counts import RecordCounts, TaskCount
from eosctl.spark.tasks import task_number

PLACED = "topic string, partition int, key binary, value binary"
"""Rows of `placed`: records to write, each with its partition."""

WRITTEN = "task int, topic string, partition int, written long, tombstones long, last_offset long"
"""Rows of `write_records`: what one task's transaction committed to one partition."""


_ARROW_WRITTEN = arrow_schema(WRITTEN)
Row = tuple[str, int, bytes, bytes | None]
"""(topic, partition, key, value) of a record to write."""

Counts = dict[tuple[str, int], tuple[int, int, int]]
"""(topic, partition) -> (records written, tombstones among them, offset of the last)."""

_PRODUCER = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 20,
    "allow.auto.create.topics": False,
    "transaction.timeout.ms": 600_000,
    "enable.metrics.push": False,
}


def write_records(
    rows: DataFrame,
    client: Mapping[str, Any],
    *,
    transactional_id: str,
    tasks: int,
    counts: RecordCounts | None = None,
) -> DataFrame:
    """Writes `rows` (topic, partition, partitions, key, value) and yields WRITTEN per task and partition.

    Each Kafka partition, and so each key, belongs to exactly one task, and each task commits one transaction
    (`write_task`). Tasks that shared partitions would cost the broker a marker each, several times the time. Every
    action on the result writes again: collect it once. `counts` are told how many records are confirmed.
    """
    settings = dict(client)

    def write_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return write_task(settings, transactional_id, batches, counts)

    return placed(rows).repartition(tasks, "topic", "partition").mapInArrow(write_batches, WRITTEN)


def write_task(
    client: Mapping[str, Any], transactional_id: str, batches: Iterable[pa.RecordBatch], counts: RecordCounts | None
) -> Iterator[pa.RecordBatch]:
    """Writes batches of PLACED in one transaction under `<transactional_id>-<task>`; batches of WRITTEN.

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
    client: Mapping[str, Any], transactional_id: str, rows: Iterable[Row], count: TaskCount | None = None
) -> Counts:
    """Writes `rows` in one transaction and returns what was confirmed.

    Nothing is opened for no rows. Raises KafkaException or RuntimeError after aborting, as far as the broker answers.
    """
    from confluent_kafka import KafkaException, Producer

    iterator = iter(rows)
    first = next(iterator, None)
    if first is None:
        return {}
    producer = Producer({**client, **_PRODUCER, "transactional.id": transactional_id})
    _until_done(producer.init_transactions)
    producer.begin_transaction()
    try:
        counts = _produce(producer, first, iterator, count)
        _until_done(producer.commit_transaction)
    except BaseException:
        producer.purge()
        with suppress(KafkaException):  # the first error is the one to tell; who comes next fences what stays open
            _until_done(producer.abort_transaction, timeout_s=10.0)
        raise
    return counts


def _produce(producer: Any, first: Row, rest: Iterable[Row], count: TaskCount | None) -> Counts:
    """Produces and flushes; returns what delivery reports confirmed. Raises RuntimeError for an undelivered record."""
    sent, failures = 0, list[str]()
    confirmed: Counts = {}

    def on_delivery(error: Any, message: Any) -> None:
        if error is not None:
            failures.append(f"{message.topic()}-{message.partition()}: {error.str()}")
            return
        where = message.topic(), message.partition()
        written, tombstones, last = confirmed.get(where, (0, 0, -1))
        confirmed[where] = written + 1, tombstones + (message.value() is None), max(last, message.offset())

    for topic, partition, key, value in chain((first,), rest):
        _with_room(producer, partial(producer.produce, topic, value, key, partition, on_delivery))
        sent += 1
        if sent % 1000 == 0:
            producer.poll(0)
            if count is not None:
                count.tell(partial(_written, confirmed))
    left = producer.flush(60)
    if count is not None:
        count.tell(partial(_written, confirmed), last=True)
    if failures or left or _written(confirmed) != sent:
        raise RuntimeError(f"{left + len(failures)} of {sent} records were not delivered: {failures[:3]}")
    return confirmed


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
