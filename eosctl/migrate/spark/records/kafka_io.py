"""Reading Kafka in tasks, with confluent-kafka, in fixed offset ranges; `kafka_writes` is the other direction.

Ends are decided on the driver and never here: a task that asked for "latest" would see another end on every attempt.
Keys and values stay binary. Runs on executors: imports nothing of eosctl but `eosctl.core`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa

from eosctl.core.offsets.records import is_nothing
from eosctl.core.wording import counted
from eosctl.migrate.spark.record_counts import TaskProgress
from eosctl.migrate.spark.records.arrow_rows import arrow_schema, batch_of_columns
from eosctl.migrate.spark.records.key_owners import owners_of

RECORDS = (
    "topic string, partition int, offset long, timestamp_ms long, key binary, value binary, nothing boolean, "
    "at_home boolean, versions long, connector string, name_start int, name_end int"
)
"""Rows of `read_newest`. `nothing`: the value is a deletion (`is_nothing`); `at_home`: the key is where Connect's
producer puts it. `versions` counts the records that a row stands for: its own, and older ones of its key that the task
dropped; `connector`, `name_start`, `name_end` are `key_owner`'s, null for a key that is nobody's."""

ARROW_RECORDS = arrow_schema(RECORDS)
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


@dataclass(slots=True)
class Seen:
    """How many records came to a reader so far, whatever became of them."""

    records: int = 0


def read_ranges(
    client: Mapping[str, Any],
    ranges: Sequence[OffsetRange],
    *,
    stall_timeout_s: float = 60.0,
    keys_at_once: int = KEYS_AT_ONCE,
    count: TaskProgress | None = None,
    seen: Seen | None = None,
) -> Iterator[pa.RecordBatch]:
    """The newest record per partition and key of `ranges`, as batches of RECORDS; see `read_keys`."""
    topics = {r.topic: (r.name or r.topic, r.partitions) for r in ranges}
    for newest in read_keys(
        client, ranges, stall_timeout_s=stall_timeout_s, keys_at_once=keys_at_once, count=count, seen=seen
    ):
        yield from _batches(newest, topics)


def read_keys(
    client: Mapping[str, Any],
    ranges: Sequence[OffsetRange],
    *,
    stall_timeout_s: float = 60.0,
    keys_at_once: int = KEYS_AT_ONCE,
    count: TaskProgress | None = None,
    seen: Seen | None = None,
) -> Iterator[Newest]:
    """Reads `ranges` with one consumer, committed records only; `client` are librdkafka properties.

    At most `keys_at_once` keys are held before they are given away: then a partition and key may come more than once,
    and the newest is still among them. Raises RuntimeError when a partition yields nothing for `stall_timeout_s`, which
    is what an end beyond the LSO, or a recreated topic, looks like; KafkaException where librdkafka said why.
    """
    newest: Newest = {(r.topic, r.partition): {} for r in ranges}
    seen, held = seen or Seen(), 0
    for number, message in enumerate(_messages(client, ranges, stall_timeout_s, count), start=1):
        seen.records = number
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
    client: Mapping[str, Any], ranges: Sequence[OffsetRange], stall_timeout_s: float, count: TaskProgress | None = None
) -> Iterator[Any]:
    """Every committed message inside `ranges`; stops each partition at its end, markers and gaps included."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

    todo = {(r.topic, r.partition): r.end for r in ranges}
    if not todo:
        return
    failures: list[Any] = []
    consumer = Consumer({**client, **_CONSUMER, "error_cb": failures.append})
    harmless = (KafkaError._PARTITION_EOF, KafkaError.GROUP_AUTHORIZATION_FAILED)  # of a group that is never used
    try:
        consumer.assign([TopicPartition(r.topic, r.partition, r.begin) for r in ranges])
        progress_s = time.monotonic()
        while todo:
            messages: list[Any] = consumer.consume(_BATCH_ROWS, timeout=0.1)
            if messages:  # who answers is not down any more
                failures.clear()
            for message in messages:
                error, where = message.error(), (message.topic(), message.partition())
                if error is not None and error.code() not in harmless:
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
                if failures:
                    raise KafkaException(failures[-1])
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
    return ", ".join(shown[:5]) + (f" and {counted(len(shown) - 5, 'more partition')}" if len(shown) > 5 else "")


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

    keys_column = pa.array(keys, pa.binary())
    placed = zip(keys, sizes, partitions, strict=True)
    columns = (
        *(topics, partitions, offsets, times_ms, keys_column, values),
        [is_nothing(value) for value in values],
        [key is not None and murmur2(key, size) == partition for key, size, partition in placed],
        versions,
        *owners_of(keys_column),
    )
    return batch_of_columns(columns, ARROW_RECORDS)
