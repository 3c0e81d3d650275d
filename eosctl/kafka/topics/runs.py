"""Ranges of offsets by librdkafka, to ends that were fixed before: as Connect's KafkaBasedLog reads, but never hangs.

    for runs in RunReading(settings, ranges, timeout=…, limited=True): ...

Aborted records and control markers occupy offsets without being delivered: a partition is done when a record behind its
end has come, or librdkafka's end-of-partition event there, never at a certain record.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Place
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.engine.reading.ranges import Message, OffsetRange, ProgressMeter, learn_topics
from eosctl.errors import BrokerError
from eosctl.kafka.access import Access
from eosctl.kafka.topics.librdkafka import (
    DOWN_S,
    ErrorLog,
    Properties,
    client_properties,
    error_of,
    quiet_logger,
    translate,
)

Run = tuple[Place, Sequence[Message]]
"""Messages of one partition, in the order of its log."""
OpenConsumer = Callable[[Properties], Any]
"""A function that makes confluent-kafka's Consumer from librdkafka properties."""

_AT_ONCE = 10_000
_MOMENT_S = 0.1
_CONSUMER = {
    "group.id": "eosctl-unused",  # librdkafka wants one; nothing is ever committed
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    "fetch.wait.max.ms": 10,  # the event at the end of a partition comes with an answer without records
    "fetch.queue.backoff.ms": 20,
    "queued.min.messages": 100_000,  # more are read no faster, and each takes 400 bytes besides its own
    "queued.max.messages.kbytes": 16_384,  # which bounds what is in memory
}
"""librdkafka's properties for a bounded read: assign only, nothing committed; 2.7 times the speed of the defaults.

`fetch.queue.backoff.ms` matters most: by default a partition rests a second whenever the local queue is full; with 0
librdkafka checks the queue all the time, and uses a core for it.
"""


def consumer_properties(settings: ClientSettings, *, committed: bool) -> Properties:
    """Return the properties of a consumer for a bounded read."""
    isolation = "read_committed" if committed else "read_uncommitted"
    return client_properties(settings) | {**_CONSUMER, "isolation.level": isolation}


class RunReading:
    """An iterable that can be iterated once: every message inside `ranges`, some at a time.

    Raises DeadlineError when `timeout` is over, which begins anew whenever something is read unless the reading is
    `limited`; UnauthorizedError, UnreachableError, NotFoundError; BrokerError where offsets of a range are gone, unless
    it `skips_gone`, and so ends there. `properties` are more of librdkafka's, `read` is the number of messages.
    """

    def __init__(
        self,
        settings: ClientSettings,
        ranges: Sequence[OffsetRange],
        *,
        timeout: Deadline,
        limited: bool,
        committed: bool = True,
        skips_gone: bool = False,
        progress: ProgressMeter | None = None,
        properties: Mapping[str, object] | None = None,
        open_consumer: OpenConsumer | None = None,
    ) -> None:
        self.read = self._at = 0
        self._ranges = [one for one in ranges if one.begin < one.end]
        self._ends = {(one.topic, one.partition): one.end for one in self._ranges}
        self._positions = {(one.topic, one.partition): one.begin for one in self._ranges}
        self._settings, self._committed, self._properties = settings, committed, properties or {}
        self._deadline, self._limited, self._skips_gone, self._progress = timeout, limited, skips_gone, progress
        self._open = open_consumer or (lambda properties: Consumer(properties, logger=quiet_logger()))
        # a reading without a limit also waits for brokers that are restarted
        self._errors = ErrorLog(timeout.clock.monotonic_s, patience_s=DOWN_S if limited else timeout.timeout_s)
        topics = {one.topic for one in self._ranges}
        self._topics = len(topics)
        self._doing = f"reading topic {topics.pop()}" if len(topics) == 1 else f"reading {len(topics)} topics"

    def __iter__(self) -> Iterator[Sequence[Run]]:
        """Yield runs of one partition each; no runs where nothing arrived for a moment."""
        if not self._ends:
            return
        with closing(self._opened()) as consumer:
            learn_topics(consumer, self._topics, self._deadline)
            consumer.assign([TopicPartition(*place, position) for place, position in self._positions.items()])
            while self._ends:
                before = set(self._ends)
                received = consumer.consume(1, timeout=_MOMENT_S)  # which waits until it has as many as it is asked for
                if received:
                    received += consumer.consume(_AT_ONCE, timeout=0)
                runs = self._inside(received)
                yield runs
                if over := before - self._ends.keys():
                    consumer.pause([TopicPartition(*place) for place in sorted(over)])
                if received:
                    self._errors.clear()  # a broker that responds is no longer down
                self._check(is_nearer=bool(runs or over) or self._passes_by(consumer))
                if self._progress is not None:
                    self._progress.tell(self.passed, last=not self._ends)

    def passed(self) -> int:
        """Count the offsets that are read, including markers and gaps; in the end this is the ranges' length."""
        return sum(self._positions[one.topic, one.partition] - one.begin for one in self._ranges)

    def _opened(self) -> Any:
        properties = consumer_properties(self._settings, committed=self._committed)
        try:
            return self._open({**properties, **self._properties, "error_cb": self._errors})
        except KafkaException as exc:
            raise translate(error_of(exc), self._doing) from exc

    def _inside(self, received: Sequence[Message]) -> list[Run]:
        """Return the messages that are inside their ranges.

        Every message passes here: further distinctions come afterwards, because each call or condition here is paid for
        by the million.
        """
        records = [message for message in received if message.error() is None]
        found = list[Run]()
        for place, run in runs_of(records):
            end = self._ends.get(place)
            if end is None:
                continue
            if run[-1].offset() >= end:
                run = run[: bisect_left(run, end, key=lambda message: message.offset())]
                self._advance(place, end)
            else:
                self._advance(place, run[-1].offset() + 1)
            if run:
                self.read += len(run)
                found.append((place, run))
        if len(records) < len(received):
            for message in received:  # events after records: a partition that is over has no more
                if message.error() is not None:
                    self._handle_event(message)
        return found

    def _handle_event(self, message: Message) -> None:
        """Apply an event or an error of a partition.

        An end-of-partition event has the next offset, with markers and aborted records passed.
        """
        error, place = message.error(), (message.topic(), message.partition())
        if error.code() == KafkaError._PARTITION_EOF:
            self._advance(place, message.offset())
        elif error.code() == KafkaError._AUTO_OFFSET_RESET and self._skips_gone:
            self._advance(place, self._ends.get(place, 0))
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise BrokerError(
                f"topic {place[0]} changed while it was read: {error.str()}", hint="Run the command again."
            )
        elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # of a group that is never used
            access = Access("READ", "Topic", place[0] or "", self._settings)
            raise translate(error, f"reading topic {place[0]}", access=access)

    def _advance(self, place: Place, position: int) -> None:
        end = self._ends.get(place)
        if end is None:
            return
        self._positions[place] = max(self._positions[place], min(position, end))
        if position >= end:
            del self._ends[place]

    def _passes_by(self, consumer: Any) -> bool:
        """Return whether librdkafka has advanced since the last call, even if only by aborted records and markers."""
        places = consumer.position([TopicPartition(*place) for place in self._ends])
        before, self._at = self._at, sum(max(place.offset, 0) for place in places)
        return self._at > before

    def _check(self, *, is_nearer: bool) -> None:
        """Raise an error if no time is left, or if waiting longer is useless."""
        if is_nearer and not self._limited:
            self._deadline = Deadline.after(self._deadline.timeout_s, self._deadline.clock)
        elif not is_nearer:
            self._errors.check(self._doing)
        if self._ends and self._deadline.expired():
            topic, partition = place = min(self._ends)
            because = "" if (reason := self._errors.reason()) is None else f"; {reason}"
            raise self._deadline.passed(
                f"reading topic {topic}: partition {partition} is at offset {self._positions[place]}, to be read to "
                f"{self._ends[place]} ({counted(len(self._ends), 'unfinished partition')}){because}"
            )


def runs_of(messages: Sequence[Message]) -> Iterator[Run]:
    """Cut messages where the next one is of another partition: they come in long runs."""
    places = zip([message.topic() for message in messages], [message.partition() for message in messages], strict=True)
    start = 0
    for place, same in groupby(places):
        stop = start + len(list(same))
        yield place, messages[start:stop]
        start = stop
