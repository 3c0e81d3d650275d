"""Reads a topic from its beginning to bounds that were fixed before, as Connect's KafkaBasedLog does, but never hangs.

Aborted records and control markers occupy offsets without being delivered: a partition is done when the consumer's
position has passed the bound (a record behind it, or librdkafka's end-of-partition event), never at a certain record.
"""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Bounds, Record, Sieve
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.engine.reading.ranges import CONSUMER, Run, runs_of
from eosctl.errors import BrokerError
from eosctl.events import Event, OnEvent
from eosctl.kafka.access import Access
from eosctl.kafka.topics.librdkafka import ErrorLog, Properties, client_properties, error_of, quiet_logger, translate

_BATCH = 5000
_BATCH_TIMEOUT_S = 0.1  # consume() waits this long for a full batch even at the end of all partitions
_PROGRESS_EVERY_S = 0.5


def reader_properties(settings: ClientSettings, *, isolation: str) -> Properties:
    """Consumer properties for a bounded read (`CONSUMER`), with a queue that bounds what is in memory."""
    return client_properties(settings) | {
        **CONSUMER,
        "isolation.level": isolation,
        "queued.max.messages.kbytes": 16_384,
        "max.partition.fetch.bytes": 1 << 20,
    }


class TopicReader:
    """One bounded read of one topic; `bounds` hold begin and, by isolation, the end (`lso` or `end`)."""

    def __init__(
        self,
        settings: ClientSettings,
        topic: str,
        bounds: Sequence[Bounds],
        *,
        isolation: str,
        deadline: Deadline,
        on_event: OnEvent,
        sieve: Sieve | None = None,
        renews: bool = False,
    ) -> None:
        committed = isolation == "read_committed"
        self._stop = {bound.partition: bound.lso if committed else bound.end for bound in bounds}
        self._position = {bound.partition: bound.begin for bound in bounds}
        self._open = {p for p, stop in self._stop.items() if self._position[p] < stop}
        self._settings, self._topic, self._isolation = settings, topic, isolation
        self._deadline, self._on_event, self._sieve = deadline, on_event, sieve
        self._renews = renews
        self._errors = ErrorLog(deadline.clock.monotonic_s)
        self.records_read = 0

    def read_all(self) -> tuple[Record, ...]:
        """Every record, in partition, then offset order."""
        with collector_paused():
            return tuple(chain.from_iterable(_in_order(self._batches(), sorted(self._stop), newest_per_key=False)))

    def read_newest(self) -> tuple[Record, ...]:
        """The newest record of each key in each partition, in order; memory grows with the keys, not with the log.

        Records without a key can't supersede each other and are all kept.
        """
        with collector_paused():
            return tuple(chain.from_iterable(_in_order(self._batches(), sorted(self._stop), newest_per_key=True)))

    def _batches(self) -> Iterator[Sequence[Record]]:
        """What the sieve keeps of the records below the bounds, a list for each batch: a call per record is slow."""
        if not self._open:
            return
        with self._consumer() as consumer:
            self._assign(consumer, self._open)
            yield from self._sieved(self._consume(consumer, timeout_s=_BATCH_TIMEOUT_S))

    def _sieved(self, batches: Iterator[Sequence[Run]]) -> Iterator[Sequence[Record]]:
        records = (self._records([message for _place, run in runs for message in run]) for runs in batches)
        return records if self._sieve is None else map(self._sieve, records)

    @contextmanager
    def _consumer(self) -> Iterator[Consumer]:
        properties = reader_properties(self._settings, isolation=self._isolation) | {"error_cb": self._errors}
        try:
            consumer = Consumer(properties, logger=quiet_logger())
        except KafkaException as exc:
            raise translate(error_of(exc), f"reading topic {self._topic}") from exc
        try:
            yield consumer
        finally:
            consumer.close()

    def _assign(self, consumer: Consumer, partitions: Iterable[int]) -> None:
        consumer.assign([TopicPartition(self._topic, each, self._position[each]) for each in sorted(partitions)])

    def _consume(self, consumer: Consumer, *, timeout_s: float) -> Iterator[Sequence[Run]]:
        reported_s = self._deadline.clock.monotonic_s()
        while self._open:
            left = sum(self._stop[partition] - self._position[partition] for partition in self._open)
            batch = consumer.consume(min(_BATCH, left), timeout=timeout_s)
            open_before = frozenset(self._open)
            yield self._take(batch)
            if closed := open_before - self._open:
                consumer.pause([TopicPartition(self._topic, partition) for partition in closed])
            self._check(progress=bool(batch))
            if self._deadline.clock.monotonic_s() - reported_s >= _PROGRESS_EVERY_S:
                reported_s = self._deadline.clock.monotonic_s()
                self._report()
        self._report()

    def _take(self, batch: Sequence[Any]) -> list[Run]:
        """Moves the positions past `batch`; the messages in it that lie below the bounds, by partition as they came.

        Every record passes here and in `_records`: what is written out, and what is distinguished afterwards, is so
        because a call or a condition more is paid for by the million.
        """
        good = [message for message in batch if message.error() is None]
        if len(good) < len(batch):
            for message in batch:
                if message.error() is not None:
                    self._heed(message.error(), message)
        inside = list[Run]()
        for place, run in runs_of(good):
            partition = place[1]
            stop = self._stop[partition]
            if run[-1].offset() >= stop:
                run = run[: bisect_left(run, stop, key=lambda message: message.offset())]
                self._advance(partition, stop)
            else:
                self._advance(partition, run[-1].offset() + 1)
            if run:
                inside.append((place, run))
                self.records_read += len(run)
        return inside

    def _records(self, messages: Sequence[Any]) -> list[Record]:
        """A record without a timestamp has -1 in librdkafka too."""
        new, cls, topic = tuple.__new__, Record, self._topic
        return [
            new(
                cls,
                (
                    topic,
                    message.partition(),
                    message.offset(),
                    message.timestamp()[1],
                    message.key(),
                    message.value(),
                    tuple(headers) if (headers := message.headers()) else (),
                ),
            )
            for message in messages
        ]

    def _heed(self, error: KafkaError, message: Message) -> None:

        if error.code() == KafkaError._PARTITION_EOF:
            self._advance(_number(message.partition()), _number(message.offset()))
        elif error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            pass  # librdkafka looks for the coordinator of a group that is never used
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise BrokerError(
                f"topic {self._topic} changed while it was read: {error.str()}", hint="Run the command again."
            )
        else:
            access = Access("READ", "Topic", self._topic, self._settings)
            raise translate(error, f"reading topic {self._topic}", access=access)

    def _advance(self, partition: int, position: int) -> None:
        self._position[partition] = max(self._position[partition], min(position, self._stop[partition]))
        if position >= self._stop[partition]:
            self._open.discard(partition)

    def _check(self, *, progress: bool) -> None:
        """Raises when no time is left, or when waiting longer is useless."""
        if progress:
            self._errors.clear()
            if self._renews:
                self._deadline = Deadline.after(self._deadline.timeout_s, self._deadline.clock)
        elif self._open:
            self._errors.check(f"reading topic {self._topic}")
        if self._open and self._deadline.expired():
            partition = min(self._open)
            self._deadline.check(
                f"reading topic {self._topic}: partition {partition} is at offset {self._position[partition]}, "
                f"to be read to {self._stop[partition]} ({counted(len(self._open), 'unfinished partition')})"
            )

    def _report(self) -> None:
        """Progress in records; what is left is counted in offsets, so the total shrinks to the truth as gaps show."""
        left = sum(stop - self._position[partition] for partition, stop in self._stop.items())
        total = self.records_read + left
        self._on_event(Event(f"reading {self._topic}", done=self.records_read, total=total, unit="records"))


def _in_order(
    batches: Iterable[Sequence[Record]], partitions: Sequence[int], *, newest_per_key: bool
) -> Iterator[Sequence[Record]]:
    """The records of each partition, in offset order."""
    if not newest_per_key:
        found: dict[int, list[Record]] = {partition: [] for partition in partitions}
        for batch in batches:
            for record in batch:
                found[record[1]].append(record)
        yield from found.values()
        return
    newest: dict[int, dict[bytes | int, Record]] = {partition: {} for partition in partitions}
    for batch in batches:
        for record in batch:  # its fields by number: a name costs as much as the rest of the line
            newest[record[1]][record[2] if record[4] is None else record[4]] = record
    for by_key in newest.values():
        yield sorted(by_key.values(), key=itemgetter(2))


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keeps Python's cycle collector from walking millions of records over and over; they hold no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _number(value: int | None) -> int:
    """A field that confluent-kafka types as optional but always fills in consumed messages."""
    return -1 if value is None else value
