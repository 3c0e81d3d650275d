"""The progress of a scan and the offsets that it found missing; sends no requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

from eosctl.core.batches import OLD_FORMAT, Batch, Place, ScanPlan, Unseen, UnseenReason
from eosctl.kafka.batches.source import PartitionReading
from eosctl.wire.log.batches import decode_batches
from eosctl.wire.log.fetch_messages import PartitionData

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
