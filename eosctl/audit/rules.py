"""What the log of a connector's topics shows, partition by partition, and what that proves. Pure.

The offsets topics come first: then whether a transaction has offsets is known when its records pass, and nothing of it
is kept. Whose producer ids they are is only asked for at the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique

from eosctl.audit import codes
from eosctl.audit.log.committed_offsets import CommittedOffsets, Has
from eosctl.audit.log.mirror import Mirror, MirrorOffset
from eosctl.audit.log.segments import Part
from eosctl.audit.log.tallies import Tallies, WrittenBy
from eosctl.core.batches import Batch, Place, Window
from eosctl.core.ids import ProducerId


@unique
class Unjudged(StrEnum):
    """Why nobody can say whether a transaction is as it must be; said of how many."""

    LOST = "{count} without offsets are from a time of which the offsets topic has lost records"
    CUT = "{count} without offsets may have begun before what was read"
    SHARED = "{count} of a producer epoch that others share may have the offsets of others"
    TORN = "{count} may have ended where nothing could be read"
    UNCOMPARED = "what was copied can't be compared with the source where records or offsets were not read"


@dataclass(slots=True)
class OffsetsPartition:
    """A partition of an offsets topic: `values` and `deletions` are where the connector's offsets are, sorted.

    `mirrored` are the offsets of a MirrorMaker, by where they lie, for `mirror`. `is_global`: while the connector has a
    topic of its own, its worker keeps copies of the offsets here, without transactions (`ConnectorOffsetBackingStore`,
    Kafka 3.3+).
    """

    committed: CommittedOffsets
    tallies: Tallies
    values: Sequence[int]
    deletions: Sequence[int]
    is_in_use: bool
    mirror: Mirror | None = None
    mirrored: Mapping[int, MirrorOffset] = field(default_factory=dict)
    is_global: bool = False
    _plain: list[Batch] = field(default_factory=list)
    _has: dict[ProducerId, Has] = field(default_factory=dict)
    _copied: dict[ProducerId, list[MirrorOffset]] = field(default_factory=dict)

    def data(self, batch: Batch) -> None:
        """A batch of offsets of anybody."""
        has = Has.NOTHING
        if _any_within(self.values, batch):
            has |= Has.OFFSET if self.is_in_use else Has.ELSEWHERE
        if _any_within(self.deletions, batch):
            has |= Has.DELETION
        if not has:
            return
        if batch.is_transactional:
            if self.mirror is not None:
                self._note_mirrored(batch)
            self._has[batch.producer_id] = self._has.get(batch.producer_id, Has.NOTHING) | has
        elif has & Has.OFFSET:
            self._plain.append(batch)
            if self.mirror is not None:  # by whom it may be: the next transaction goes on from there
                for at in _within(self.values, batch):
                    if at in self.mirrored:
                        self.mirror.note(batch.producer_id, batch.producer_epoch, self.mirrored[at])

    def close(self, window: Window) -> None:
        """All topics were read: which offsets are copies is known now, and of which time the outputs are."""
        for batch in self._plain:
            if _is_of(batch, window) and not (
                self.is_global and self.committed.were_elsewhere_at(batch.max_timestamp_ms)
            ):
                self.tallies.batch(codes.OFFSETS_WITHOUT_TRANSACTION, batch)

    def _note_mirrored(self, batch: Batch) -> None:
        there = self._copied.setdefault(batch.producer_id, [])
        there += [self.mirrored[at] for at in _within(self.values, batch) if at in self.mirrored]

    def ended(self, part: Part) -> None:
        """A transaction that had a part here."""
        self._note(part)

    def unmarked(self, part: Part) -> None:
        """A transaction whose end is lost: that is the connector's only if it has offsets of it."""
        if self._has.get(part.producer_id) and not part.is_torn:
            self.tallies.part(codes.COMMIT_MARKERS_MISSING, part)
        self._note(part)

    def went_back(self, batch: Batch, newer_epoch: int) -> None:  # noqa: ARG002 - as Sink has it
        """What brokers must refuse."""
        if _any_within(self.values, batch):
            self.tallies.batch(codes.EPOCH_WENT_BACK, batch)

    def left_open(self, part: Part) -> None:
        """A transaction whose end lies behind what was read."""
        self._note(part)

    def _note(self, part: Part) -> None:
        has, copied = self._has.pop(part.producer_id, Has.NOTHING), self._copied.pop(part.producer_id, ())
        if self.mirror is not None and (part.is_committed or part.marker is None):
            for offset in copied:
                self.mirror.note(part.producer_id, part.epoch, offset, part.ended_ms)
        if has:
            self.committed.note(part, has)
        if has & Has.ELSEWHERE and part.is_committed:
            self.tallies.part(codes.OFFSETS_ELSEWHERE, part)


@dataclass(slots=True)
class OutputPartitions:
    """All partitions of the output topics: what each producer wrote, and what is wrong with it.

    `unjudged` is how many parts of a producer nobody can judge, and why. What ended before `since_ms` is not asked for.
    """

    committed: CommittedOffsets
    tallies: Tallies
    written: dict[ProducerId, WrittenBy] = field(default_factory=dict)
    bytes: int = 0
    unjudged: Counter[tuple[ProducerId, Unjudged]] = field(default_factory=Counter)
    since_ms: int = -1
    mirror: Mirror | None = None
    _zombies: set[tuple[str, int, ProducerId]] = field(default_factory=set)

    def data(self, batch: Batch) -> None:
        """A batch of records."""
        self.bytes += batch.size_bytes
        known = self.written.get(batch.producer_id)
        if known is None:
            known = self.written[batch.producer_id] = WrittenBy(batch.producer_id)
        known.batch(batch)
        if not batch.is_transactional:
            self.tallies.batch(codes.BATCH_NOT_TRANSACTIONAL, batch)
        if batch.crc_ok is False:
            self.tallies.batch(codes.CRC_WRONG, batch)

    def ended(self, part: Part) -> None:
        """A transaction that had a part in one of the partitions."""
        self.written[part.producer_id].ended(part, is_settled=part.ended_ms <= self.committed.settled_ms)
        place = (part.topic, part.partition, part.producer_id)
        if place in self._zombies:
            self._zombies.discard(place)
            if part.is_committed:
                self.tallies.part(codes.ZOMBIE_WROTE, part)
        if not part.is_committed:
            self.tallies.part(codes.TRANSACTION_ABORTED, part)
            return
        if self.mirror is not None:
            self.mirror.committed(part)
        for each in self.committed.without(part):
            self._without_offsets(each)

    def close(self) -> None:
        """All partitions were read."""
        for producer_id, parts, unsure in self.committed.finish():
            for part in parts:
                self._without_offsets(part)
            if unsure:
                self.unjudged[producer_id, Unjudged.SHARED] += unsure
        if self.mirror is not None:
            self.unjudged.update((producer_id, Unjudged.UNCOMPARED) for producer_id in self.mirror.uncompared.values())

    def _without_offsets(self, part: Part) -> None:
        if part.ended_ms < self.since_ms:
            return
        if self.committed.is_missing_from(part):
            self.unjudged[part.producer_id, Unjudged.LOST] += 1
        elif part.is_cut or (part.is_torn and not part.has_own_epoch):
            self.unjudged[part.producer_id, Unjudged.CUT] += 1
        else:
            self.tallies.part(codes.TRANSACTION_WITHOUT_OFFSETS, part)

    def unmarked(self, part: Part) -> None:
        """A transaction whose end is lost."""
        if part.is_torn:
            self.unjudged[part.producer_id, Unjudged.TORN] += 1
        else:
            self.tallies.part(codes.COMMIT_MARKERS_MISSING, part)

    def went_back(self, batch: Batch, newer_epoch: int) -> None:  # noqa: ARG002 - as Sink has it
        """What brokers must refuse."""
        self.tallies.batch(codes.EPOCH_WENT_BACK, batch)
        if batch.is_transactional:
            self._zombies.add((batch.topic, batch.partition, batch.producer_id))
        else:
            self.tallies.batch(codes.ZOMBIE_WROTE, batch)

    def is_over(self, part: Part) -> bool:
        """Whether the transaction of an open part was committed so long ago that its marker must be there."""
        newest = self.written[part.producer_id].newest_committed
        return self.committed.is_committed(part.producer_id, part.epoch) or newest >= part.epoch

    def left_open(self, part: Part, *, ended_since: bool | None = False) -> None:
        """A transaction without an end in what was read; whether it has one behind that, None if nobody can say."""
        self.written[part.producer_id].left_open(part)
        if ended_since or (ended_since is False and not self.is_over(part)):
            self.tallies.part(codes.TRANSACTION_OPEN, part)
        elif ended_since is None or part.is_torn:
            self.unjudged[part.producer_id, Unjudged.TORN] += 1
        else:
            self.tallies.part(codes.COMMIT_MARKERS_MISSING, part)


def successors_overtaken(
    written: Collection[WrittenBy], *, same_id: Collection[Collection[ProducerId]]
) -> Iterator[tuple[Place, ProducerId, ProducerId, int]]:
    """Producers that wrote to a partition after another one that had taken over their transactional id.

    Gives the partition, the older and the newer producer, and the offset where the older one last wrote.
    """
    by_id = {each.producer_id: each for each in written}
    for producers in same_id:
        for older in producers:
            for newer in producers:
                yield from _overtaken(by_id.get(older), by_id.get(newer))


def _overtaken(older: WrittenBy | None, newer: WrittenBy | None) -> Iterator[tuple[Place, ProducerId, ProducerId, int]]:
    if older is None or newer is None or older is newer:
        return
    for place, (first, last, _count) in older.places.items():
        theirs = newer.places.get(place)
        if theirs is not None and first < theirs[0] < last:
            yield place, older.producer_id, newer.producer_id, last


def _is_of(batch: Batch, window: Window) -> bool:
    """More is read than the window, for the sake of transactions that begin before it."""
    is_older = window.since_ms is not None and batch.max_timestamp_ms < window.since_ms
    return not is_older and (window.until_ms is None or batch.first_timestamp_ms < window.until_ms)


def _any_within(offsets: Sequence[int], batch: Batch) -> bool:
    at = bisect_left(offsets, batch.base_offset)
    return at < len(offsets) and offsets[at] <= batch.last_offset


def _within(offsets: Sequence[int], batch: Batch) -> Iterator[int]:
    at = bisect_left(offsets, batch.base_offset)
    while at < len(offsets) and offsets[at] <= batch.last_offset:
        yield offsets[at]
        at += 1
