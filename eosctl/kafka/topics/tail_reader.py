"""Reads the last records of many topics by one consumer: a look at what is in them, not a read of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Bounds, Record
from eosctl.deadline import Deadline
from eosctl.kafka.access import Access
from eosctl.kafka.topics.librdkafka import ErrorLog, error_of, quiet_logger, translate
from eosctl.kafka.topics.reader import reader_properties

_BATCH, _BATCH_TIMEOUT_S = 500, 0.1
_FETCH_BYTES = 1 << 16

Place = tuple[str, int]
"""A topic and a partition."""


def read_tails(
    settings: ClientSettings, bounds: Mapping[str, Sequence[Bounds]], *, offsets: int, deadline: Deadline
) -> dict[str, tuple[Record, ...]]:
    """The committed records among the last `offsets` offsets of each partition, in partition, then offset order.

    What retention removes meanwhile is left out. Raises UnauthorizedError, UnreachableError, DeadlineError.
    """
    found: dict[str, list[Record]] = {topic: [] for topic in bounds}
    stop = {(topic, bound.partition): bound.lso for topic, each in bounds.items() for bound in each}
    begin = {(topic, bound.partition): bound.begin for topic, each in bounds.items() for bound in each}
    start = {place: max(begin[place], end - offsets) for place, end in stop.items() if end > begin[place]}
    if start:
        _read(settings, start, stop, found, deadline)
    return {topic: tuple(sorted(records, key=lambda it: (it.partition, it.offset))) for topic, records in found.items()}


def _read(
    settings: ClientSettings,
    start: Mapping[Place, int],
    stop: Mapping[Place, int],
    found: Mapping[str, list[Record]],
    deadline: Deadline,
) -> None:
    errors = ErrorLog(deadline.clock.monotonic_s)
    properties = reader_properties(settings, isolation="read_committed")
    try:
        consumer = Consumer(
            properties | {"max.partition.fetch.bytes": _FETCH_BYTES, "error_cb": errors}, logger=quiet_logger()
        )
    except KafkaException as exc:
        raise translate(error_of(exc), "looking at the newest records") from exc
    try:
        consumer.assign([TopicPartition(topic, partition, at) for (topic, partition), at in sorted(start.items())])
        left = set(start)
        while left:
            batch = consumer.consume(_BATCH, timeout=_BATCH_TIMEOUT_S)
            for message in batch:
                _take(message, left, stop, found, settings)
            if batch:
                errors.clear()
            elif left:
                errors.check("looking at the newest records")
                deadline.check(f"looking at the newest records of {min(left)[0]}")
    finally:
        consumer.close()


def _take(
    message: Any,
    left: set[Place],
    stop: Mapping[Place, int],
    found: Mapping[str, list[Record]],
    settings: ClientSettings,
) -> None:
    topic, partition, offset, error = message.topic(), message.partition(), message.offset(), message.error()
    if error is None:
        if offset < stop[topic, partition]:
            headers = tuple(message.headers() or ())
            timestamp_ms = message.timestamp()[1]
            record = Record(topic, partition, offset, timestamp_ms, message.key(), message.value(), headers)
            found[topic].append(record)
        if offset + 1 >= stop[topic, partition]:
            left.discard((topic, partition))
    elif error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
        left.discard((topic, partition))
    elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # of a group that is never used
        raise translate(error, f"reading topic {topic}", access=Access("READ", "Topic", topic, settings))
