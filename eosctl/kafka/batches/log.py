"""The batches and the records of a log over eosctl's own wire, against real brokers.

NativeBatchLog is `eosctl.ports.BatchLog`: one pass over the batches of a plan, by their headers; a partition that has
no leader for the timeout is unseen.

RecordReading gives the records of ranges of offsets as columns, by eosctl's own Fetch: a third of what
librdkafka and its objects take.

    for piece in RecordReading(cluster, ranges, settings=…, timeout=…): piece.columns

Raises OldFormatError for message sets from before Kafka 0.11, which only librdkafka reads here. Isolation is that of
Kafka's consumer (`CompletedFetch`, Kafka 4.3): a broker reports which transactions of what it sends were aborted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Self

from msgspec.structs import replace

from eosctl.core.acls.lines import grant_hint
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Batch, Place, ScanPlan, Span, Unseen, UnseenReason, Window
from eosctl.core.transactions import KafkaFault
from eosctl.deadline import Deadline
from eosctl.engine.reading.batches import BatchDecoder, Piece
from eosctl.engine.reading.heads import Batches, batches_in
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.errors import BrokerError, NotFoundError, UnauthorizedError
from eosctl.kafka.batches.fetching import FetchPass, LogBounds, read_log_bounds
from eosctl.kafka.batches.source import PartitionReading, SeenBatches, pass_sound
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.session import Connections
from eosctl.kafka.topics.partition_leaders import count_partitions
from eosctl.wire.error_codes import TOPIC_AUTHORIZATION_FAILED
from eosctl.wire.log.fetch_messages import Isolation, PartitionData


class NativeScan:
    """An iterable that can be iterated once; `timeout` begins anew whenever something is read."""

    def __init__(
        self,
        cluster: Cluster,
        plan: ScanPlan,
        *,
        settings: ClientSettings,
        timeout: Deadline,
        check_crc: bool,
    ) -> None:
        self._seen = SeenBatches(plan, check_crc=check_crc)
        stops = {(each.topic, each.partition): each.stop for each in plan.spans if each.first < each.stop}
        self._batches = FetchPass(cluster, self._seen, stops, settings=settings, timeout=timeout)

    def positions(self) -> Mapping[Place, int]:
        """Return the next offset of each partition."""
        return self._seen.positions

    def unseen(self) -> Sequence[Unseen]:
        """Return the offsets that were not seen so far."""
        return self._seen.unseen()

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)


class NativeBatchLog:
    """Connects at its first request; one thread may use it, for one scan at a time."""

    def __init__(
        self,
        settings: ClientSettings,
        *,
        deadline: Deadline,
        connections: Connections | None = None,
    ) -> None:
        self._settings, self._deadline = settings, deadline
        self._cluster = Cluster(settings, deadline=deadline, connections=connections)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._cluster.close()

    def plan(self, topics: Collection[str], window: Window) -> ScanPlan:
        """Plan a scan of `window` with its current first and last offsets.

        Partitions without a responding leader are unseen. Raises NotFoundError, UnauthorizedError, UnreachableError.
        """
        counts = count_partitions(self._cluster, topics, self._settings)
        for topic in topics:
            if topic not in counts:
                raise NotFoundError(f"topic {topic} does not exist", hint="Names are case-sensitive.")
        places = [(topic, number) for topic in topics for number in range(counts[topic])]
        times_ms = [each for each in (window.since_ms, window.until_ms) if each is not None]
        found = read_log_bounds(self._cluster, places, times_ms=times_ms)
        spans: list[Span] = []
        unseen: list[Unseen] = []
        for place in places:
            answer = found[place]
            if isinstance(answer, KafkaFault):
                unseen.append(self._unread(place, answer))
            else:
                span, missing = _span(place, answer, window)
                spans.append(span)
                unseen += missing
        return ScanPlan(tuple(spans), tuple(unseen))

    def scan(self, plan: ScanPlan, *, check_crc: bool = False) -> NativeScan:
        """Scan the plan's partitions."""
        return NativeScan(
            self._cluster, plan,
            settings=self._settings, timeout=self._deadline, check_crc=check_crc,
        )  # fmt: skip

    def _unread(self, place: Place, why: KafkaFault) -> Unseen:
        if why.code == TOPIC_AUTHORIZATION_FAILED:
            hint = grant_hint("DESCRIBE", "Topic", [place[0]], settings=self._settings, then="READ")
            raise UnauthorizedError(f"not allowed to describe topic {place[0]}", hint=hint)
        return Unseen(*place, UnseenReason.UNREADABLE, detail=str(why))


def _span(place: Place, bounds: LogBounds, window: Window) -> tuple[Span, list[Unseen]]:
    """Return the readable part of the window, and the offsets of it before the log's start."""
    times = iter(bounds.of_times)
    since = next(times) if window.since_ms is not None else window.since_offset or 0
    stop = next(times) if window.until_ms is not None else window.until_offset
    first = min(max(since, bounds.start), bounds.end)
    stop = bounds.end if stop is None else min(stop, bounds.end)
    span = Span(*place, first, max(first, stop), bounds.start, bounds.last_stable, bounds.end)
    if since >= bounds.start:
        return span, []
    last = min(bounds.start, bounds.end if window.until_offset is None else window.until_offset) - 1
    return span, [Unseen(*place, UnseenReason.REMOVED, since, last, last + 1 - since)] if last >= since else []


class RecordReading:
    """An iterable of Piece that can be iterated once; a piece has records of several ranges, by their numbers.

    Raises DeadlineError when `timeout` is over, which begins anew whenever something is read unless the reading is
    `limited`; UnauthorizedError; BrokerError where offsets of the ranges are gone, or a topic was created again.
    """

    def __init__(
        self,
        cluster: Cluster,
        ranges: Sequence[OffsetRange],
        *,
        settings: ClientSettings,
        timeout: Deadline,
        committed: bool = True,
        limited: bool = False,
    ) -> None:
        self._ranges, self._taken = ranges, _Records(ranges)
        self._pieces = FetchPass(
            cluster,
            self._taken,
            {(one.topic, one.partition): one.end for one in ranges if one.begin < one.end},
            settings=settings,
            timeout=timeout,
            isolation=Isolation.COMMITTED if committed else Isolation.UNCOMMITTED,
            limited=limited,
            whole=True,
        )

    def passed(self) -> int:
        """Count the offsets that are read, including markers and gaps; in the end this is the ranges' length."""
        return sum(one.end - one.begin for one in self._ranges) - sum(one.end - one.begin for one in self.rest())

    def rest(self) -> list[OffsetRange]:
        """Return the parts of the ranges that are not read yet."""
        positions = self._taken.positions
        return [replace(one, begin=min(positions[one.topic, one.partition], one.end)) for one in self._ranges]

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._pieces)


class _Records:
    """Makes pieces of responses."""

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        self.positions = {(one.topic, one.partition): one.begin for one in ranges}
        self._number_of = {(one.topic, one.partition): number for number, one in enumerate(ranges)}

    def take(self, reading: PartitionReading, part: PartitionData) -> Batches | None:
        """Return the batches whose records a consumer sees; raises ProtocolError, and OldFormatError."""
        if part.records is None:
            return None
        topic, partition = reading.place
        batches = batches_in(part.records, topic=topic, partition=partition)
        bases, lasts = batches.heads["base_offset"], batches.lasts().tolist()
        sound = pass_sound(reading, lasts, lambda row: int(bases[row]), end=part.high_watermark)
        return batches.some(slice(sound)).visible(part.aborted_transactions or ())

    def give(self, chunks: Sequence[tuple[PartitionReading, Batches | None]]) -> Iterator[Piece]:
        """Yield all records of a response together, or in several pieces if much of it was compressed."""
        decoder = BatchDecoder()
        for reading, batches in chunks:
            if batches is not None:
                first = self.positions[reading.place]
                yield from decoder.add(self._number_of[reading.place], batches, first=first, stop=reading.stop)
        yield from decoder.pieces()
        self.positions.update((reading.place, reading.position) for reading, _batches in chunks)

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
