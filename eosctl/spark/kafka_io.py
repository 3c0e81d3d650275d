"""Kafka into and out of DataFrames: confluent-kafka inside `mapInArrow` tasks, in fixed offset ranges.

Ends are decided on the driver and never here: a task that asked for "latest" would see another end on every attempt.
Keys and values stay binary. Runs on executors: imports nothing of eosctl but `eosctl.core`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from eosctl.core.offset_keys import key_owner
from eosctl.core.offset_records import is_nothing
from eosctl.spark.record_counts import RecordCounts, TaskCount
from eosctl.spark.tasks import task_number

RECORDS = (
    "topic string, partition int, offset long, timestamp_ms long, key binary, value binary, nothing boolean, "
    "at_home boolean, versions long, connector string, name_start int, name_end int"
)
"""Rows of `read_newest`. `nothing`: the value is a deletion (`is_nothing`); `at_home`: the key is where Connect's
producer puts it. `versions` counts the records that a row stands for: its own, and older ones of its key that the task
dropped; `connector`, `name_start`, `name_end` are `key_owner`'s, null for a key that is nobody's."""

PLACED = "topic string, partition int, key binary, value binary"
"""Rows of `placed`: records to write, each with its partition."""

WRITTEN = "task int, topic string, partition int, written long, tombstones long, last_offset long"
"""Rows of `write_records`: what one task's transaction committed to one partition."""


def _arrow_schema(columns: str) -> pa.Schema:
    """The Arrow schema of Spark's "name type, name type, ..."."""
    types = {"string": pa.string, "int": pa.int32, "long": pa.int64, "binary": pa.binary, "boolean": pa.bool_}
    return pa.schema([(name, types[kind]()) for name, kind in map(str.split, columns.split(","))])


ARROW_RECORDS = _arrow_schema(RECORDS)
_ARROW_WRITTEN = _arrow_schema(WRITTEN)
Row = tuple[str, int, bytes, bytes | None]
"""(topic, partition, key, value) of a record to write."""

Counts = dict[tuple[str, int], tuple[int, int, int]]
"""(topic, partition) -> (records written, tombstones among them, offset of the last)."""

Newest = dict[tuple[str, int], dict[bytes | None, list[Any]]]
"""(topic, partition) -> key -> [the newest message, how many there were]."""

KEYS_AT_ONCE = 1_000_000
_BATCH_ROWS = 10_000
_CONSUMER = {
    "group.id": "eosctl-unused",  # librdkafka wants one; nothing is ever committed
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    "fetch.wait.max.ms": 50,
    "fetch.queue.backoff.ms": 0,
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 65_536,
    "enable.metrics.push": False,
}
_PRODUCER = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 20,
    "allow.auto.create.topics": False,
    "transaction.timeout.ms": 600_000,
    "enable.metrics.push": False,
}


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets `begin` (included) to `end` (excluded) of one of the topic's `partitions`; `end` is at most its LSO.

    `name` is the topic's in the rows, where that is not `topic`: two clusters may have one of the same name.
    """

    topic: str
    partition: int
    begin: int
    end: int
    partitions: int = 1
    name: str | None = None


def read_ranges(
    client: Mapping[str, Any],
    ranges: Sequence[OffsetRange],
    *,
    stall_timeout_s: float = 60.0,
    keys_at_once: int = KEYS_AT_ONCE,
    count: TaskCount | None = None,
) -> Iterator[pa.RecordBatch]:
    """The newest record per partition and key of `ranges`, as batches of RECORDS; see `read_keys`."""
    topics = {r.topic: (r.name or r.topic, r.partitions) for r in ranges}
    for newest in read_keys(client, ranges, stall_timeout_s=stall_timeout_s, keys_at_once=keys_at_once, count=count):
        yield from _batches(newest, topics)


def read_keys(
    client: Mapping[str, Any],
    ranges: Sequence[OffsetRange],
    *,
    stall_timeout_s: float = 60.0,
    keys_at_once: int = KEYS_AT_ONCE,
    count: TaskCount | None = None,
) -> Iterator[Newest]:
    """Reads `ranges` with one consumer, committed records only; `client` are librdkafka properties.

    At most `keys_at_once` keys are held before they are given away: then a partition and key may come more than once,
    and the newest is still among them. Raises RuntimeError when a partition yields nothing for `stall_timeout_s`, which
    is what an end beyond the LSO, or a recreated topic, looks like.
    """
    newest: Newest = {(r.topic, r.partition): {} for r in ranges}
    held = 0
    for message in _messages(client, ranges, stall_timeout_s, count):
        keys = newest[message.topic(), message.partition()]
        kept = keys.get(message.key())
        if kept is None:
            keys[message.key()] = [message, 1]
            held += 1
        else:
            kept[0], kept[1] = message, kept[1] + 1
        if held >= keys_at_once:
            yield newest
            held = 0
            for one in newest.values():
                one.clear()
    yield newest


def _messages(
    client: Mapping[str, Any], ranges: Sequence[OffsetRange], stall_timeout_s: float, count: TaskCount | None = None
) -> Iterator[Any]:
    """Every committed message inside `ranges`; stops each partition at its end, markers and gaps included."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

    todo = {(r.topic, r.partition): r.end for r in ranges}
    if not todo:
        return
    consumer = Consumer({**client, **_CONSUMER})
    try:
        consumer.assign([TopicPartition(r.topic, r.partition, r.begin) for r in ranges])
        progress_s = time.monotonic()
        while todo:
            messages: list[Any] = consumer.consume(_BATCH_ROWS, timeout=0.1)
            for message in messages:
                error, where = message.error(), (message.topic(), message.partition())
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                if where not in todo:
                    continue
                if error is None and message.offset() < todo[where]:
                    progress_s = time.monotonic()
                    yield message
                # an end-of-partition event stands at the next offset, markers and aborted records passed
                if message.offset() + (error is None) >= todo[where]:
                    progress_s = time.monotonic()
                    del todo[where]
                    consumer.pause([TopicPartition(*where)])
            if count is not None:
                count.tell(partial(_passed, consumer, ranges, todo), last=not todo)
            if todo and time.monotonic() - progress_s > stall_timeout_s:
                raise RuntimeError(f"no records for {stall_timeout_s:g} s, still to read: {_named(todo)}")
    finally:
        consumer.close()


def _passed(consumer: Any, ranges: Sequence[OffsetRange], todo: Mapping[tuple[str, int], int]) -> int:
    """How many offsets of `ranges` are behind the consumer: markers and gaps too, so that it ends at their length."""
    from confluent_kafka import TopicPartition

    positions = {(at.topic, at.partition): at.offset for at in consumer.position([TopicPartition(*w) for w in todo])}
    return sum(min(max(positions.get((r.topic, r.partition), r.end), r.begin), r.end) - r.begin for r in ranges)


def _named(todo: Mapping[tuple[str, int], int]) -> str:
    shown = [f"{topic}-{partition} up to offset {end}" for (topic, partition), end in sorted(todo.items())]
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more partitions" if len(shown) > 5 else "")


def _batches(newest: Newest, topics: Mapping[str, tuple[str, int]]) -> Iterator[pa.RecordBatch]:
    rows = (
        (topics[topic], partition, key, message, versions)
        for (topic, partition), keys in newest.items()
        for key, (message, versions) in keys.items()
    )
    while some := list(islice(rows, _BATCH_ROWS)):
        named, partitions, keys, messages, versions = zip(*some, strict=True)
        times_ms = (message.timestamp() for message in messages)
        yield records_batch(
            [name for name, _size in named],
            partitions,
            [message.offset() for message in messages],
            [time_ms if kind else -1 for kind, time_ms in times_ms],
            keys,
            [message.value() for message in messages],
            sizes=[size for _name, size in named],
            versions=versions,
        )


def records_batch(
    topics: Sequence[str],
    partitions: Sequence[int],
    offsets: Sequence[int],
    times_ms: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    *,
    sizes: Sequence[int],
    versions: Sequence[int],
) -> pa.RecordBatch:
    """A batch of RECORDS from its columns; `sizes` are the topics' numbers of partitions."""
    from confluent_kafka import murmur2

    owners = [key_owner(key) or (None, None, None) for key in keys]
    placed = zip(keys, sizes, partitions, strict=True)
    columns = (
        *(topics, partitions, offsets, times_ms, keys, values),
        [is_nothing(value) for value in values],
        [key is not None and murmur2(key, size) == partition for key, size, partition in placed],
        versions,
        *zip(*owners, strict=True),
    )
    return _batch_of(columns, ARROW_RECORDS)


def arrow_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as one batch of `schema`; there is at least one."""
    return _batch_of(tuple(zip(*rows, strict=True)), schema)


def _batch_of(columns: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


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
