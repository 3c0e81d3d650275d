"""One leader from which batches are fetched: its connection, the pending request, and the order of its partitions.

Requests belong to no fetch session (KIP-227): a bounded pass moves every partition with every response, so that a
session would spare few bytes, and it would take one of the broker's slots from clients that stay. Partitions take turns
at being first in the request: brokers fill a response in that order, and give a large batch to the first only.

The progress of a scan, and the offsets that it found missing, are kept without sending requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.java.properties import whole_number
from eosctl.core.records import OLD_FORMAT, Batch, Place, ScanPlan, Unseen, UnseenReason
from eosctl.deadline import Clock
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.errors import BrokerError
from eosctl.kafka.native.connection import Connection, Pending
from eosctl.kafka.topics.stream import Leader
from eosctl.wire.frames import FrameMemory
from eosctl.wire.log.batches import decode_batches
from eosctl.wire.log.fetch_messages import (
    FETCH,
    TOPIC_IDS_FROM,
    FetchRequest,
    FetchResponse,
    Isolation,
    PartitionData,
    PartitionFetch,
    TopicFetch,
)
from eosctl.wire.primitives import NO_ID

ANSWER_BYTES = 8 << 20
PARTITION_BYTES = 1 << 20
_MAX_WAIT_MS = 500


class FetchTerms(Struct, frozen=True):
    """The isolation of a fetch, and its sizes in bytes.

    Without `partition_bytes`, a request for few partitions fetches more of each.
    """

    isolation: Isolation
    answer_bytes: int = ANSWER_BYTES
    partition_bytes: int | None = None

    @classmethod
    def by(cls, settings: ClientSettings, isolation: Isolation) -> FetchTerms:
        """Read the terms from a client's settings, which may limit sizes under librdkafka's names."""
        return cls(
            isolation,
            _number(settings, "fetch.max.bytes") or ANSWER_BYTES,
            _number(settings, "max.partition.fetch.bytes"),
        )


def _number(settings: ClientSettings, name: str) -> int | None:
    return whole_number(settings.extra.get(name, ""))


@dataclass(slots=True)
class PartitionReading:
    """A partition that is read: next offset, stop, leader, and the number of empty responses, with their reason."""

    place: Place
    position: int
    stop: int
    leader: Leader
    empty: int = 0
    why_not: str = ""


class Source:
    """The partitions that one broker leads; it has one pending request at a time."""

    def __init__(self, connection: Connection, readings: Iterable[PartitionReading], terms: FetchTerms) -> None:
        self.connection, self._terms = connection, terms
        self.readings = deque(readings)
        self._room = FrameMemory(min(terms.answer_bytes, ANSWER_BYTES) + (1 << 16))
        self._pending: Pending[FetchResponse] | None = None
        self._names: dict[UUID, str] = {}
        self.rests_until_s = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether a request is under way."""
        return self._pending is not None

    def ask(self) -> None:
        """Send the next request."""
        with_ids = all(each.leader.topic_id != NO_ID for each in self.readings)
        version = self.connection.version_of(FETCH)
        self._names = {each.leader.topic_id: each.place[0] for each in self.readings}
        self._pending = self.connection.send(
            FETCH, self._request(), version=version if with_ids else min(version, TOPIC_IDS_FROM - 1)
        )

    def answer(self) -> tuple[FetchResponse, dict[Place, PartitionData]]:
        """Receive the response; the first partition goes to the end of the queue.

        Its views are valid until the next response.
        """
        pending, self._pending = self._pending, None
        if pending is None:
            raise RuntimeError("an answer was awaited to no request")
        response = self.connection.receive_in(self._room, pending)
        self.readings.rotate(-1)
        return response, {
            (topic.topic or self._names.get(topic.topic_id, ""), part.partition_index): part
            for topic in response.responses
            for part in topic.partitions
        }

    def rest(self, throttle_ms: int, clock: Clock) -> None:
        """Send no request for a while: the broker throttles a client that is over its quota (KIP-219)."""
        if throttle_ms:
            self.rests_until_s = clock.monotonic_s() + throttle_ms / 1000

    def leave(self) -> None:
        """Abort the connection if a response is still pending: it is of no use to others."""
        if self._pending is not None:
            self.connection.stream.abort()

    def lose(self) -> None:
        """Abort the connection and stop reading here."""
        self._pending = None
        self.readings.clear()
        self.connection.stream.abort()

    def _request(self) -> FetchRequest:
        topics: list[TopicFetch] = []
        most = self._terms.partition_bytes or max(PARTITION_BYTES, self._terms.answer_bytes // len(self.readings))
        for each in self.readings:
            topic, partition = each.place
            asked = PartitionFetch(partition, each.leader.epoch, each.position, partition_max_bytes=most)
            if topics and topics[-1].topic == topic:
                topics[-1] = topics[-1]._replace(partitions=(*topics[-1].partitions, asked))
            else:
                topics.append(TopicFetch(topic, each.leader.topic_id, (asked,)))
        return FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=self._terms.answer_bytes,
            isolation_level=self._terms.isolation,
            topics=tuple(topics),
        )


_LAST_OFFSET = itemgetter(Batch._fields.index("last_offset"))


def batches_of(reading: PartitionReading, part: PartitionData, *, check_crc: bool = False) -> Sequence[Batch]:
    """Return the whole and sound batches fetched from a partition, and move the position behind them.

    Raises ProtocolError.
    """
    if part.records is None:
        return ()
    topic, partition = reading.place
    batches = decode_batches(
        part.records, topic=topic, partition=partition, position=reading.position, check_crc=check_crc
    )
    lasts = list(map(_LAST_OFFSET, batches))
    sound = pass_sound(reading, lasts, lambda row: batches[row].base_offset, end=part.high_watermark)
    return batches if sound == len(batches) else batches[:sound]


def pass_sound(reading: PartitionReading, lasts: Sequence[int], base_of: Callable[[int], int], *, end: int) -> int:
    """Count the sound batches among those with these last offsets, and move the reading's position behind them."""
    sound = _count_sound(lasts, end=end)
    if sound:
        reading.position = max(reading.position, lasts[sound - 1] + 1)
    if sound < len(lasts):
        reading.why_not = f"a batch there says that its offsets are {base_of(sound)} to {lasts[sound]}"
    return sound


def _count_sound(lasts: Sequence[int], *, end: int) -> int:
    """Count the batches before the first one with impossible offsets: behind the log's end, or behind its successor's.

    One corrupt header would pass for a gap of compaction that covers all the rest. A batch that was appended after the
    end was looked up is only requested again. There are many batches: the usual case is recognised without a step for
    each.
    """
    if not lasts or (lasts[-1] < end and lasts == sorted(lasts)):
        return len(lasts)
    for row, last in enumerate(lasts):
        if last >= end or last > min(lasts[row + 1 : row + 2], default=last):
            return row
    return len(lasts)


class RangePositions:
    """How far each range is read; nothing of a range may be skipped."""

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        self._ranges = ranges
        self.positions = {(one.topic, one.partition): one.begin for one in ranges}

    def rest(self) -> list[OffsetRange]:
        """Return the parts of the ranges that are not read yet."""
        positions = self.positions
        return [replace(one, begin=min(positions[one.topic, one.partition], one.end)) for one in self._ranges]

    def finish(self, place: Place, stop: int) -> None:
        """Set the position to the partition's end."""
        self.positions[place] = stop

    def skip(self, place: Place, to: int, reason: UnseenReason, detail: str = "") -> None:
        """Raise BrokerError if offsets would be skipped: one of them could be the newest of a key."""
        if self.positions[place] >= to:
            return
        topic, partition = place
        why = detail or f"offsets {self.positions[place]} to {to - 1} are {reason.value}"
        raise BrokerError(
            f"topic {topic} changed while it was read: partition {partition}: {why}", hint="Run the command again."
        )


class SeenBatches:
    """The progress of a scan; `positions` has the next offset of each partition, and moves with each batch yielded."""

    def __init__(self, plan: ScanPlan, *, check_crc: bool = False) -> None:
        self._check_crc = check_crc
        self.positions = {(span.topic, span.partition): span.first for span in plan.spans}
        self._unseen = list(plan.unseen)
        self._compacted: dict[Place, Unseen] = {}

    def unseen(self) -> Sequence[Unseen]:
        """Return the unseen offsets: the plan's, those found since, and one entry per partition for compaction."""
        return (*self._unseen, *(self._compacted[place] for place in sorted(self._compacted)))

    def take(self, reading: PartitionReading, part: PartitionData) -> Sequence[Batch]:
        """Return the batches fetched from a partition."""
        return batches_of(reading, part, check_crc=self._check_crc)

    def give(self, chunks: Sequence[tuple[PartitionReading, Sequence[Batch]]]) -> Iterator[Batch]:
        """Yield the batches of some partitions."""
        for reading, batches in chunks:
            yield from self._of_partition(reading.place, batches, reading.stop)

    def _of_partition(self, place: Place, batches: Sequence[Batch], stop: int) -> Iterator[Batch]:
        """Yield the batches of a partition that lie, at least in part, between its position and `stop`."""
        positions = self.positions
        position = positions[place]
        for batch in batches:
            base, last = batch[2], batch[3]
            if last < position:
                continue
            if base >= stop:
                return
            if base > position:
                self._hole(place, position, base - 1, base - position)
            missing = last - base + 1 - batch.records
            if missing and not batch.is_control and batch.magic >= OLD_FORMAT:
                self._hole(place, base, last, missing)
            positions[place] = position = last + 1
            yield batch

    def finish(self, place: Place, stop: int) -> None:
        """Record a gap up to `stop`, behind which nothing more is read."""
        position = self.positions[place]
        if position < stop:
            self._hole(place, position, stop - 1, stop - position)
            self.positions[place] = stop

    def skip(self, place: Place, to: int, reason: UnseenReason, detail: str = "") -> None:
        """Record that offsets before `to` can't be read any more."""
        position = self.positions[place]
        if position < to:
            self._unseen.append(Unseen(*place, reason, position, to - 1, to - position, detail))
            self.positions[place] = to

    def _hole(self, place: Place, first: int, last: int, offsets: int) -> None:
        known = self._compacted.get(place)
        if known is not None:
            first, offsets = known.first_offset or 0, (known.offsets or 0) + offsets
        self._compacted[place] = Unseen(*place, UnseenReason.COMPACTED, first, last, offsets)
