"""Reading Kafka in tasks: the newest record of each key, as rows; `kafka_writes` is the other direction.

Keys and values stay binary. Runs on executors: imports nothing of eosctl but `eosctl.core`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from eosctl.core.offsets.records import is_nothing
from eosctl.migrate.spark.record_counts import TaskProgress
from eosctl.migrate.spark.records.arrow_rows import arrow_schema, batch_of_columns
from eosctl.migrate.spark.records.key_owners import owners_of
from eosctl.migrate.spark.records.offset_ranges import (
    ClientProperties,
    Message,
    OffsetRange,
    OpenConsumer,
    read_messages,
)

RECORDS = (
    "topic string, partition int, offset long, timestamp_ms long, key binary, value binary, nothing boolean, "
    "at_home boolean, versions long, connector string, name_start int, name_end int"
)
"""Rows of `read_newest`. `nothing`: the value is a deletion (`is_nothing`); `at_home`: the key is where Connect's
producer puts it. `versions` counts the records that a row stands for: its own, and older ones of its key that the task
dropped; `connector`, `name_start`, `name_end` are `key_owner`'s, null for a key that is nobody's."""

ARROW_RECORDS = arrow_schema(RECORDS)
Newest = dict[tuple[str, int], dict[bytes | None, list[Message]]]
"""(topic, partition) -> key -> [the newest message, how many there were]."""

KEYS_AT_ONCE = 1_000_000
_BATCH_ROWS = 10_000


@dataclass(slots=True)
class Seen:
    """How many records came to a reader so far, whatever became of them."""

    records: int = 0


def read_ranges(
    client: ClientProperties,
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
    client: ClientProperties,
    ranges: Sequence[OffsetRange],
    *,
    stall_timeout_s: float = 60.0,
    keys_at_once: int = KEYS_AT_ONCE,
    count: TaskProgress | None = None,
    seen: Seen | None = None,
    open_consumer: OpenConsumer | None = None,
) -> Iterator[Newest]:
    """Reads `ranges` with one consumer, committed records only; `client` are librdkafka properties.

    At most `keys_at_once` keys are held before they are given away: then a partition and key may come more than once,
    and the newest is still among them. Raises RuntimeError when a partition yields nothing for `stall_timeout_s`, which
    is what an end beyond the LSO, or a recreated topic, looks like; KafkaException where librdkafka said why.
    """
    newest: Newest = {(r.topic, r.partition): {} for r in ranges}
    seen, held = seen or Seen(), 0
    messages = read_messages(client, ranges, stall_timeout_s=stall_timeout_s, count=count, open_consumer=open_consumer)
    for number, message in enumerate(messages, start=1):
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
