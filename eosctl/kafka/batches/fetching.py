"""One pass over partitions with a pending request at every leader, and ListOffsets for the partitions' bounds.

The next request is sent before a response is processed, so brokers work while the caller does. Partitions whose leader
moved, or fell silent, are looked up again once the others are read. A `ResponseHandler` processes the responses.

ListOffsets to their leaders gives the first and last offsets of partitions, and their offsets for times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from eosctl.core.acls.lines import grant_hint
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Place, UnseenReason
from eosctl.core.transactions import KafkaFault
from eosctl.deadline import Deadline
from eosctl.errors import BrokerError, DeadlineError, UnauthorizedError, UnreachableError
from eosctl.kafka.batches.source import FetchTerms, PartitionReading, Source
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import LEADER_RETRIES, ask_until_settled, fault, wait_s
from eosctl.kafka.native.coordinators import ask_each_broker
from eosctl.kafka.topics.partition_leaders import describe_leaders
from eosctl.kafka.topics.stream import Address, Leader
from eosctl.wire.api import AnyApi
from eosctl.wire.cluster_messages import METADATA, MetadataRequest, MetadataResponse
from eosctl.wire.error_codes import (
    INCONSISTENT_TOPIC_ID,
    NONE,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_name,
)
from eosctl.wire.log.fetch_messages import (
    EARLIEST,
    LATEST,
    LIST_OFFSETS,
    Isolation,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetLookup,
    PartitionData,
    TopicOffsetLookups,
)
from eosctl.wire.primitives import NO_ID

MOVING = LEADER_RETRIES | {
    *(UNKNOWN_LEADER_EPOCH, OFFSET_NOT_AVAILABLE),
    *(UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID),
}
"""Faults of partitions whose leader is not settled, or does not know them yet."""
_REMOTE_TIMEOUT_MS = 30_000
"""The time that a broker may search remote storage for the offset of a time; it is Java's request timeout."""
_WITHOUT_TOPIC = MOVING - {UNKNOWN_TOPIC_OR_PARTITION}


class LogBounds(Struct, frozen=True):
    """Log start, last stable offset and high watermark of a partition, the offsets of the requested times, its leader.

    A time that is later than all records has the high watermark.
    """

    start: int
    last_stable: int
    end: int
    of_times: tuple[int, ...]
    leader: Leader


def read_log_bounds(
    cluster: Cluster, places: Iterable[Place], *, times_ms: Sequence[int] = ()
) -> dict[Place, LogBounds | KafkaFault]:
    """Return the bounds of each partition, or the fault of its leader.

    Leaders are asked again until they are settled.
    """

    def ask_once(pending: list[Place]) -> Mapping[Place, LogBounds | KafkaFault]:
        return bounds_at(cluster, describe_leaders(cluster, pending), times_ms=times_ms)

    return ask_until_settled(
        places, ask_once, retriable=_WITHOUT_TOPIC, deadline=cluster.deadline(), within=cluster.within
    )


def bounds_at(
    cluster: Cluster, leaders: Mapping[Place, Leader | KafkaFault], *, times_ms: Sequence[int] = ()
) -> dict[Place, LogBounds | KafkaFault]:
    """Return the bounds of each partition, by one question to its leader, or the fault."""
    located = {place: each if isinstance(each, KafkaFault) else each.address for place, each in leaders.items()}
    known = {place: each for place, each in leaders.items() if isinstance(each, Leader)}
    return ask_each_broker(
        cluster,
        located,
        lambda address, batch: _ask(cluster, address, {each: known[each] for each in batch}, times_ms),
    )


def _ask(
    cluster: Cluster, address: Address, leaders: Mapping[Place, Leader], times_ms: Sequence[int]
) -> dict[Place, LogBounds | KafkaFault]:
    """Return the bounds of partitions that one broker leads.

    The end is requested before the LSO, and the LSO is cut to it: a transaction that begins in between lies behind the
    end, and must not look like one that blocks.
    """
    requests = _requests(leaders, times_ms)
    return _read(cluster.use(address, lambda connection: connection.pipeline(LIST_OFFSETS, requests)), leaders)


def bounds_with_metadata(
    cluster: Cluster, address: Address, leaders: Mapping[Place, Leader], about: MetadataRequest
) -> tuple[MetadataResponse, dict[Place, LogBounds | KafkaFault]]:
    """Return metadata, and the bounds of partitions that one broker led a while ago, in one round trip.

    Bounds count only where the metadata has the same leader still.
    """
    asked: list[tuple[AnyApi, object]] = [(METADATA, about), *((LIST_OFFSETS, each) for each in _requests(leaders, ()))]
    metadata, *answers = cluster.use(address, lambda connection: connection.call_together(asked))
    cluster.learn(metadata)
    return metadata, _read(answers, leaders)


def _requests(leaders: Mapping[Place, Leader], times_ms: Sequence[int]) -> list[ListOffsetsRequest]:
    asked = [(EARLIEST, Isolation.UNCOMMITTED), (LATEST, Isolation.UNCOMMITTED), (LATEST, Isolation.COMMITTED)]
    asked += [(time_ms, Isolation.UNCOMMITTED) for time_ms in times_ms]
    return [_request(leaders, timestamp, isolation) for timestamp, isolation in asked]


def _read(
    answers: Sequence[ListOffsetsResponse], leaders: Mapping[Place, Leader]
) -> dict[Place, LogBounds | KafkaFault]:
    found = [_by_place(answer) for answer in answers]
    return {place: _bounds([each.get(place) for each in found], leader) for place, leader in leaders.items()}


def _request(leaders: Mapping[Place, Leader], timestamp: int, isolation: Isolation) -> ListOffsetsRequest:
    topics: defaultdict[str, list[OffsetLookup]] = defaultdict(list)
    for (topic, partition), leader in leaders.items():
        topics[topic].append(OffsetLookup(partition, leader.epoch, timestamp))
    queries = tuple(TopicOffsetLookups(topic, tuple(each)) for topic, each in topics.items())
    return ListOffsetsRequest(isolation_level=isolation, topics=queries, timeout_ms=_REMOTE_TIMEOUT_MS)


def _by_place(answer: ListOffsetsResponse) -> dict[Place, int | KafkaFault]:
    return {
        (topic.name, each.partition_index): each.offset if each.error_code == NONE else fault(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }


def _bounds(found: Sequence[int | KafkaFault | None], leader: Leader) -> LogBounds | KafkaFault:
    offsets = [each for each in found if isinstance(each, int)]
    if len(offsets) < len(found):
        faults = (each for each in found if isinstance(each, KafkaFault))
        return next(faults, fault(UNKNOWN_TOPIC_OR_PARTITION, "the broker's answer leaves this partition out"))
    start, end, last_stable, *of_times = offsets
    return LogBounds(start, min(last_stable, end), end, tuple(end if each < 0 else each for each in of_times), leader)


C = TypeVar("C")
T = TypeVar("T", covariant=True)

_EMPTY_ANSWERS = 4
"""The number of empty responses in a row after which no batch is expected: compaction took all of them, or the broker's
remote storage is slower than a fetch waits.
"""

Chunk = tuple[PartitionReading, C]
"""A partition, with the result of a taker for one response."""


class ResponseHandler(Protocol[C, T]):
    """The consumer of the responses of a pass: makes the items that the pass yields."""

    @property
    def positions(self) -> Mapping[Place, int]:
        """The next offset of each partition, behind the items yielded so far."""

    def take(self, reading: PartitionReading, part: PartitionData) -> C:
        """Read the batches of a part without an error, and move the reading's position behind the whole ones."""

    def give(self, chunks: Sequence[tuple[PartitionReading, C]]) -> Iterator[T]:
        """Yield the items made of one response, and move the positions.

        Views of the response are valid until then.
        """

    def finish(self, place: Place, stop: int) -> None:
        """Note that there is nothing more up to `stop`."""

    def skip(self, place: Place, to: int, reason: UnseenReason, detail: str = "") -> None:
        """Note that offsets before `to` can't be read; raises an error if they must be."""


class FetchPass(Generic[C, T]):
    """An iterable that can be iterated once.

    `timeout` begins anew whenever something is read, unless the pass is `limited`: then it covers the whole pass. When
    it is over, the rest is skipped, if anything was read at all; nothing of a `whole` pass may be skipped.
    """

    def __init__(
        self,
        cluster: Cluster,
        taker: ResponseHandler[C, T],
        stops: Mapping[Place, int],
        *,
        settings: ClientSettings,
        timeout: Deadline,
        isolation: Isolation = Isolation.UNCOMMITTED,
        limited: bool = False,
        whole: bool = False,
        leaders: Mapping[Place, Leader] | None = None,
    ) -> None:
        """Begin a pass; `stops` are the first offsets that are not read, `leaders` those that were just looked up."""
        self._cluster, self._taker, self._settings, self._timeout = cluster, taker, settings, timeout
        self._deadline, self._limited, self._whole = timeout, limited, whole
        self._terms = FetchTerms.by(settings, isolation)
        self._stops = dict(stops)
        self._bytes_read = 0
        self._leaders: dict[Place, Leader] = {}
        self._looked_up = {place: leaders[place] for place in self._stops if leaders and place in leaders}
        self._why: dict[Place, str] = {}
        self._unreachable: dict[Place, UnreachableError] = {}
        self._out_of_range: set[Place] = set()

    def __iter__(self) -> Iterator[T]:
        retry = 0
        while self._stops:
            before = self._bytes_read
            yield from self._read_from(self._locate())
            if not self._stops:
                break
            retry = 0 if self._bytes_read > before else retry + 1
            if self._deadline.expired():
                self._give_up()
                break
            self._deadline.sleep(wait_s(retry))

    # -- where to read

    def _locate(self) -> Mapping[Address, Sequence[PartitionReading]]:
        """Return the partitions that are still to be read, by the broker that leads them."""
        readings: defaultdict[Address, list[PartitionReading]] = defaultdict(list)
        try:
            self._find_range()
            found = self._looked_up or describe_leaders(self._cluster, self._stops)
            self._looked_up = {}
        except (UnreachableError, DeadlineError) as exc:
            self._note(self._stops, exc)
            return readings
        for place, leader in found.items():
            if isinstance(leader, KafkaFault):
                self._why[place] = str(leader)
                continue
            ids = {self._leaders.setdefault(place, leader).topic_id, leader.topic_id} - {NO_ID}
            if len(ids) > 1:
                raise BrokerError(
                    f"topic {place[0]} was deleted and created again while it was read", hint="Run the command again."
                )
            readings[leader.address].append(
                PartitionReading(place, self._taker.positions[place], self._stops[place], leader)
            )
        return readings

    def _find_range(self) -> None:
        """Look up the log bounds of partitions whose offsets brokers refused.

        Such an offset lies before the log's start by now, or behind its end after an election.
        """
        for place, bounds in read_log_bounds(self._cluster, self._out_of_range).items():
            if isinstance(bounds, KafkaFault):
                self._why[place] = str(bounds)
                continue
            self._out_of_range.discard(place)
            stop = self._stops[place]
            self._taker.skip(place, min(bounds.start, stop), UnseenReason.REMOVED)
            if bounds.end < self._taker.positions[place]:
                detail = f"the log ends at offset {bounds.end} now: what was behind it is lost"
                self._taker.skip(place, stop, UnseenReason.UNREADABLE, detail)
            if self._taker.positions[place] >= stop:
                del self._stops[place]

    def _give_up(self) -> None:
        """Skip the partitions that are left when the time is over.

        Raises DeadlineError or UnreachableError where they must be read.
        """
        if self._whole or not self._bytes_read:
            topic, partition = place = min(self._stops)
            if self._whole and (lost := self._unreachable.get(place)) is not None:
                raise UnreachableError(f"reading {topic}-{partition}: {lost.message}", hint=lost.hint) from lost
            raise self._deadline.passed(f"reading {topic}-{partition}: {self._why.get(place, 'no answer')}")
        for place, stop in self._stops.items():
            self._taker.skip(place, stop, UnseenReason.UNREADABLE, self._why.get(place, "no answer in time"))
        self._stops.clear()

    # -- reading

    def _read_from(self, located: Mapping[Address, Sequence[PartitionReading]]) -> Iterator[T]:
        """Yield the items of all partitions up to their stops, except for those that are lost on the way."""
        with ExitStack() as stack:
            sources: list[Source] = []
            for address, readings in located.items():
                with self._losing(readings):
                    connection = stack.enter_context(self._cluster.connection(address))
                    sources.append(Source(connection, readings, self._terms))
            try:
                while sources:
                    self._ask(sources)
                    self._rest(sources)
                    for source in [each for each in sources if each.is_waiting]:
                        chunks = self._answer(source, sources)
                        self._ask([source])
                        yield from self._taker.give(chunks)
                        self._finish(reading for reading, _taken in chunks)
                    sources = [source for source in sources if source.readings]
            finally:
                for source in sources:
                    source.leave()

    def _ask(self, sources: Sequence[Source]) -> None:
        """Send the next request to each broker that is idle and not resting."""
        now_s = self._deadline.clock.monotonic_s()
        for source in [each for each in sources if each.readings]:
            if not source.is_waiting and source.connection.is_ending():
                source.readings.clear()  # a login that ends is made again; what is left here is found in the next round
            elif not source.is_waiting and source.rests_until_s <= now_s:
                with self._losing(source.readings, source):
                    source.ask()

    def _rest(self, sources: Sequence[Source]) -> None:
        """Sleep if no broker may be sent a request, and none has a request to respond to."""
        if not any(source.is_waiting or not source.readings for source in sources):
            rests_until_s = min(source.rests_until_s for source in sources)
            self._deadline.sleep(max(rests_until_s - self._deadline.clock.monotonic_s(), 0.0))

    def _answer(self, source: Source, sources: Sequence[Source]) -> list[Chunk[C]]:
        """Receive the next response and return its chunks.

        Partitions that were read to their stops, or moved, are removed from the source.
        """
        chunks: list[Chunk[C]] = []
        with self._losing(source.readings, source):
            answer, parts = source.answer()
            if answer.error_code != NONE:
                raise BrokerError(f"fetching from {source.connection.broker} failed: {error_name(answer.error_code)}")
            before = {reading.place: reading.position for reading in source.readings}
            for reading in list(source.readings):
                part = parts.get(reading.place)
                if part is None or part.error_code != NONE:
                    source.readings.remove(reading)
                    self._handle_fault(reading.place, part)
                    continue
                self._bytes_read += len(part.records or b"")
                chunks.append((reading, self._taker.take(reading, part)))
            gets_on = any(reading.position > before[reading.place] for reading, _taken in chunks)
            for reading, _taken in chunks:
                is_empty = not gets_on and not answer.throttle_time_ms
                self._count_empty(source, reading, parts[reading.place].high_watermark, is_empty=is_empty)
            if answer.throttle_time_ms or gets_on:
                self._renew(sources, throttle_ms=answer.throttle_time_ms)
            source.rest(answer.throttle_time_ms, self._deadline.clock)
        return chunks

    def _count_empty(self, source: Source, reading: PartitionReading, end: int, *, is_empty: bool) -> None:
        """Remove a partition that was read to its stop, or for which response after response brings nothing."""
        reading.empty = reading.empty + 1 if is_empty else 0
        if is_empty and end < reading.stop:
            source.readings.remove(reading)
            self._why[reading.place] = f"the log ends at offset {end} now"
        elif reading.empty >= _EMPTY_ANSWERS:
            source.readings.remove(reading)
            self._skip(reading.place, reading.why_not or "the broker gives no batches from there on")
        elif reading.position >= reading.stop:
            source.readings.remove(reading)

    def _handle_fault(self, place: Place, part: PartitionData | None) -> None:
        """Note why a partition is not read here.

        It moved, or its offset is gone, or it can't be read at all.
        """
        code = UNKNOWN_SERVER_ERROR if part is None else part.error_code
        self._why[place] = "the broker's answer leaves it out" if part is None else error_name(code)
        if code == TOPIC_AUTHORIZATION_FAILED:
            hint = grant_hint("READ", "Topic", [place[0]], settings=self._settings)
            raise UnauthorizedError(f"not allowed to read topic {place[0]}", hint=hint)
        if code == OFFSET_OUT_OF_RANGE:
            self._out_of_range.add(place)
        elif part is not None and code not in MOVING:
            self._skip(place, self._why[place])

    def _skip(self, place: Place, why: str) -> None:
        self._taker.skip(place, self._stops.pop(place), UnseenReason.UNREADABLE, why)

    def _finish(self, readings: Iterable[PartitionReading]) -> None:
        """Finish those of some partitions that are read to their stops."""
        for reading in readings:
            if reading.position >= reading.stop:
                self._taker.finish(reading.place, reading.stop)
                del self._stops[reading.place]

    @contextmanager
    def _losing(self, readings: Collection[PartitionReading], source: Source | None = None) -> Iterator[None]:
        """Catch the errors of an unreachable broker in a block: its partitions wait for the next round."""
        try:
            yield
        except (UnreachableError, DeadlineError) as exc:
            self._note([reading.place for reading in readings], exc)
            if source is not None:
                source.lose()

    def _note(self, places: Iterable[Place], exc: UnreachableError | DeadlineError) -> None:
        """Note why partitions are not read; a deadline replaces no earlier reason, which says more."""
        for place in places:
            if isinstance(exc, DeadlineError):
                self._why.setdefault(place, exc.message)
            else:
                self._why[place], self._unreachable[place] = exc.message, exc

    def _renew(self, sources: Sequence[Source], *, throttle_ms: int) -> None:
        """Start the timeout anew after progress.

        The time for which a broker throttles the client is added.
        """
        if self._limited:
            return
        self._deadline = Deadline.after(self._timeout.timeout_s + throttle_ms / 1000, self._timeout.clock)
        self._cluster.renew(self._deadline)
        for source in sources:
            source.connection.stream.deadline = self._deadline
