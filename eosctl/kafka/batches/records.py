"""The records of ranges of offsets as columns, by eosctl's own Fetch: a third of what librdkafka and its objects take.

    for piece in RecordReading(cluster, ranges, settings=…, timeout=…): piece.columns

Raises OldFormatError for message sets from before Kafka 0.11, which only librdkafka reads here. Isolation is that of
Kafka's consumer (`CompletedFetch`, Kafka 4.3): a broker reports which transactions of what it sends were aborted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.engine.reading.batches import BatchDecoder, Piece
from eosctl.engine.reading.heads import Batches, batches_in
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.kafka.batches.fetching import FetchPass
from eosctl.kafka.batches.source import PartitionReading, RangePositions, pass_sound
from eosctl.kafka.cluster import Cluster
from eosctl.wire.log.fetch_messages import Isolation, PartitionData


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
        return self._taken.rest()

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._pieces)


class _Records(RangePositions):
    """Makes pieces of responses."""

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        super().__init__(ranges)
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
