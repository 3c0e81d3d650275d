"""Ranges of offsets, and one consumer of confluent-kafka that reads them from end to end.

Ends are decided by who plans and never here: a task that asked for "latest" would see another end on every attempt.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import groupby
from typing import Any, Protocol

from eosctl.core.frozen import frozen
from eosctl.core.wording import counted

ClientProperties = Mapping[str, Any]
"""librdkafka's configuration, callbacks included."""
Message = Any
"""A message of confluent-kafka, whose types say that each of its parts may be missing."""
OpenConsumer = Callable[[ClientProperties], Any]
"""confluent-kafka's Consumer: librdkafka properties to one that is ready."""
Place = tuple[str, int]
"""A topic's name and a partition."""
Run = tuple[Place, Sequence[Message]]
"""Messages of one partition, in the order of its log."""

_AT_ONCE = 10_000
_FEW_TOPICS = 20
CONSUMER = {
    "group.id": "eosctl-unused",  # librdkafka wants one; nothing is ever committed
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    "fetch.wait.max.ms": 50,
    "fetch.queue.backoff.ms": 20,
    "queued.min.messages": 100_000,  # more are read no faster, and each takes 400 bytes besides its own
    "queued.max.messages.kbytes": 65_536,
    "enable.metrics.push": False,
}
"""librdkafka's properties for a bounded read: assign only, nothing committed; 2.7 times the speed of the defaults.

`fetch.queue.backoff.ms` matters most: by default a partition rests a second whenever the local queue is full; with 0
librdkafka asks itself all the time whether it still is, and takes a core for it."""


class StalledError(RuntimeError):
    """Nothing came for so long that nothing is waited for any more."""


class ProgressMeter(Protocol):
    """Is told how far something is."""

    def tell(self, count: Callable[[], int], *, last: bool = False) -> None:
        """May ask `count` for the number; for the `last` time it does."""


@frozen
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


def partitions_together(offsets: Mapping[int, int], most: int) -> Iterator[Sequence[int]]:
    """The partitions of `offsets`, how many each has, in order: as many together as have no more than `most`."""
    part: list[int] = []
    for partition, count in offsets.items():
        if part and sum(offsets[each] for each in part) + count > most:
            yield part
            part = []
        part.append(partition)
    if part:
        yield part


def read_runs(
    client: ClientProperties,
    ranges: Sequence[OffsetRange],
    *,
    stall_timeout_s: float = 60.0,
    progress: ProgressMeter | None = None,
    open_consumer: OpenConsumer | None = None,
    isolation: str = "read_committed",
) -> Iterator[tuple[Place, Sequence[Message]]]:
    """Every message inside `ranges`, in runs of one partition in the order of its log.

    Stops each partition at its end, markers and gaps included; `client` are librdkafka properties. Raises StalledError
    when no partition comes nearer to its end for `stall_timeout_s`, which is what an end beyond the LSO, or a recreated
    topic, looks like; KafkaException where librdkafka said why.
    """
    if not ranges:
        return
    with closing(_Reading({**client, **CONSUMER, "isolation.level": isolation}, ranges, open_consumer)) as reading:
        reading.begin()
        progress_s = time.monotonic()
        while reading.ends:
            yield from reading.next_runs()
            if reading.moved or reading.went_on():
                progress_s = time.monotonic()
            if progress is not None:
                progress.tell(reading.passed, last=not reading.ends)
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
        self._passed = 0
        self._ranges = ranges
        self._faults: list[Any] = []
        self._consumer = (open_consumer or Consumer)({**client, "error_cb": self._faults.append})

    def begin(self) -> None:
        """Takes the partitions, each from its range's beginning."""
        from confluent_kafka import TopicPartition

        learn_topics(self._consumer, len({r.topic for r in self._ranges}))
        self._consumer.assign([TopicPartition(r.topic, r.partition, r.begin) for r in self._ranges])

    def next_runs(self) -> Iterator[tuple[Place, Sequence[Message]]]:
        """What comes next that is inside the ranges, or nothing after a moment; raises KafkaException."""
        received = self._consumer.consume(_AT_ONCE, timeout=0.1)
        to_read, self.moved = len(self.ends), False
        events = [message for message in received if message.error() is not None]
        records = [message for message in received if message.error() is None] if events else received
        if received:
            self._faults.clear()  # who answers is not down any more
        for place, run in runs_of(records):
            inside = self._inside(place, run)
            if inside:
                self.moved = True
                yield place, inside
        for message in events:
            self._note_event(message, message.error())
        self.moved = self.moved or len(self.ends) < to_read

    def _inside(self, place: Place, run: Sequence[Message]) -> Sequence[Message]:
        """The messages of a run that are of its range; one at its end, or behind it, ends the partition."""
        end = self.ends.get(place)
        if end is None:
            return []
        if run[-1].offset() + 1 < end:
            return run
        self._leave(place)
        return run[: bisect_left(run, end, key=lambda message: message.offset())]

    def _note_event(self, message: Message, error: Any) -> None:
        """An end-of-partition event stands at the next offset, markers and aborted records passed."""
        _refuse_fault(error)
        place = message.topic(), message.partition()
        end = self.ends.get(place)
        if end is not None and message.offset() >= end:
            self._leave(place)

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

    def went_on(self) -> bool:
        """Whether more is passed than when this was asked last, if only aborted records."""
        before, self._passed = self._passed, self.passed()
        return self._passed > before

    def stalled(self, timeout_s: float) -> Exception:
        """Why nothing came for so long: librdkafka's last fault, if it had one."""
        from confluent_kafka import KafkaException

        if self._faults:
            return KafkaException(self._faults[-1])
        return StalledError(f"no records for {timeout_s:g} s, still to read: {_named(self.ends)}")

    def close(self) -> None:
        """Closes the consumer."""
        self._consumer.close()


def learn_topics(client: Any, count: int) -> None:
    """Has a client of confluent-kafka ask once where all topics are, where it will need many of them.

    librdkafka asks for each topic when it first needs it, and each time again for all that it still waits for: of a
    thousand topics that is half of a writer's CPU. Where the broker does not answer, it finds them that way.
    """
    from confluent_kafka import KafkaException

    if count > _FEW_TOPICS:
        with suppress(KafkaException):
            client.list_topics(timeout=10.0)


def runs_of(messages: Sequence[Message]) -> Iterator[Run]:
    """Messages cut where the next one is of another partition: they come in long runs."""
    places = zip([message.topic() for message in messages], [message.partition() for message in messages], strict=True)
    start = 0
    for place, same in groupby(places):
        stop = start + len(list(same))
        yield place, messages[start:stop]
        start = stop


def _refuse_fault(error: Any) -> None:
    """Raises KafkaException unless `error` is an event, or about the group, which is never used."""
    from confluent_kafka import KafkaError, KafkaException

    if error.code() not in (KafkaError._PARTITION_EOF, KafkaError.GROUP_AUTHORIZATION_FAILED):
        raise KafkaException(error)


def _named(ends: Mapping[tuple[str, int], int]) -> str:
    shown = [f"{topic}-{partition} up to offset {end}" for (topic, partition), end in sorted(ends.items())]
    return ", ".join(shown[:5]) + (f" and {counted(len(shown) - 5, 'more partition')}" if len(shown) > 5 else "")
