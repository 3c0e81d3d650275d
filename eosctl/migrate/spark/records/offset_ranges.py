"""Ranges of offsets, and one consumer of confluent-kafka that reads them from end to end.

Ends are decided on the driver and never here: a task that asked for "latest" would see another end on every attempt.
Runs on executors: imports nothing of eosctl but `eosctl.core`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from eosctl.core.wording import counted
from eosctl.engine.ranges import OffsetRange as OffsetRange
from eosctl.migrate.spark.record_counts import TaskProgress

ClientProperties = Mapping[str, Any]
"""librdkafka's configuration, callbacks included."""
Message = Any
"""A message of confluent-kafka, whose types say that each of its parts may be missing."""
OpenConsumer = Callable[[ClientProperties], Any]
"""confluent-kafka's Consumer: librdkafka properties to one that is ready."""

_AT_ONCE = 10_000
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


def read_messages(
    client: ClientProperties,
    ranges: Sequence[OffsetRange],
    *,
    stall_timeout_s: float,
    count: TaskProgress | None = None,
    open_consumer: OpenConsumer | None = None,
) -> Iterator[Any]:
    """Every committed message inside `ranges`; stops each partition at its end, markers and gaps included.

    Raises RuntimeError when nothing comes for `stall_timeout_s`; KafkaException where librdkafka said why.
    """
    if not ranges:
        return
    with closing(_Reading(client, ranges, open_consumer)) as reading:
        reading.begin()
        progress_s = time.monotonic()
        while reading.ends:
            yield from reading.next_messages()
            if reading.moved:
                progress_s = time.monotonic()
            if count is not None:
                count.tell(reading.passed, last=not reading.ends)
            if reading.ends and time.monotonic() - progress_s > stall_timeout_s:
                raise reading.stalled(stall_timeout_s)


class _Reading:
    """One consumer on its way through ranges.

    `ends` has those that it has not read to their end, `moved` whether its last step brought it nearer to one.
    """

    def __init__(
        self, client: ClientProperties, ranges: Sequence[OffsetRange], open_consumer: OpenConsumer | None
    ) -> None:
        from confluent_kafka import Consumer

        self.ends = {(r.topic, r.partition): r.end for r in ranges}
        self.moved = False
        self._ranges = ranges
        self._faults: list[Any] = []
        self._consumer = (open_consumer or Consumer)({**client, **_CONSUMER, "error_cb": self._faults.append})

    def begin(self) -> None:
        """Takes the partitions, each from its range's beginning."""
        from confluent_kafka import TopicPartition

        self._consumer.assign([TopicPartition(r.topic, r.partition, r.begin) for r in self._ranges])

    def next_messages(self) -> list[Message]:
        """What comes next that is inside the ranges, or nothing after a moment; raises KafkaException."""
        received = self._consumer.consume(_AT_ONCE, timeout=0.1)
        if received:
            self._faults.clear()  # who answers is not down any more
        to_read = len(self.ends)
        inside = [message for message in received if self._is_inside(message)]
        self.moved = bool(inside) or len(self.ends) < to_read
        return inside

    def _is_inside(self, message: Message) -> bool:
        """Whether it is a record of the ranges; whatever stands at the end of one, or behind it, ends its partition.

        An end-of-partition event stands at the next offset, markers and aborted records passed.
        """
        is_record = message.error() is None
        if not is_record:
            _refuse_fault(message.error())
        where = message.topic(), message.partition()
        end = self.ends.get(where)
        if end is None:
            return False
        next_offset = message.offset() + is_record
        if next_offset >= end:
            self._leave(where)
        return is_record and next_offset <= end

    def _leave(self, where: tuple[str, int]) -> None:
        from confluent_kafka import TopicPartition

        del self.ends[where]
        self._consumer.pause([TopicPartition(*where)])

    def passed(self) -> int:
        """How many offsets are behind the consumer: markers and gaps too, so that it ends at the ranges' length."""
        from confluent_kafka import TopicPartition

        places = self._consumer.position([TopicPartition(*where) for where in self.ends])
        positions = {(place.topic, place.partition): place.offset for place in places}
        at = ((positions.get((r.topic, r.partition), r.end), r) for r in self._ranges)
        return sum(min(max(position, r.begin), r.end) - r.begin for position, r in at)

    def stalled(self, timeout_s: float) -> Exception:
        """Why nothing came for so long: librdkafka's last fault, if it had one."""
        from confluent_kafka import KafkaException

        if self._faults:
            return KafkaException(self._faults[-1])
        return RuntimeError(f"no records for {timeout_s:g} s, still to read: {_named(self.ends)}")

    def close(self) -> None:
        """Closes the consumer."""
        self._consumer.close()


def _refuse_fault(error: Any) -> None:
    """Raises KafkaException unless `error` is an event, or about the group, which is never used."""
    from confluent_kafka import KafkaError, KafkaException

    if error.code() not in (KafkaError._PARTITION_EOF, KafkaError.GROUP_AUTHORIZATION_FAILED):
        raise KafkaException(error)


def _named(ends: Mapping[tuple[str, int], int]) -> str:
    shown = [f"{topic}-{partition} up to offset {end}" for (topic, partition), end in sorted(ends.items())]
    return ", ".join(shown[:5]) + (f" and {counted(len(shown) - 5, 'more partition')}" if len(shown) > 5 else "")
