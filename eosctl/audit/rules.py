"""Judges the log of a connector's topics, partition by partition. Pure.

The offsets topics come first, so that it is known whether a transaction has offsets when its records pass. A
transaction's parts in several partitions come together in the ledger, and are judged when all of them were read.
The owners of the producer ids are only looked up at the end.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique

from eosctl.audit import codes
from eosctl.audit.log.ledger import Has, Ledger, SourcePartitions
from eosctl.audit.log.mirror import Mirror, MirrorOffset
from eosctl.audit.log.segments import Part, PartitionFold
from eosctl.audit.log.tallies import TORN, Tallies, WrittenBy
from eosctl.core.findings import WARNING
from eosctl.core.ids import ProducerId
from eosctl.core.records import Batch, Place, ScanPlan, Span, Unseen, Window
from eosctl.errors import EosctlError


@unique
class Unjudged(StrEnum):
    """A reason why transactions can't be judged; it is reported with their number."""

    LOST = "{count} without offsets are from a time of which the offsets topic has lost records"
    BEFORE = "{count} without offsets ended before the first offsets that are there: their topic may have been deleted"
    CUT = "{count} without offsets may have begun before what was read"
    SHARED = "{count} of a producer epoch that others share may have the offsets of others"
    TORN = "{count} may have ended where nothing could be read"
    UNMARKED = "{count} of a producer epoch that others share may lack a marker in a partition"
    PARTLY = "{count} with an aborted part may have been committed elsewhere"
    RECORDLESS = "{count} committed offsets and may have no record in the topics that were read"
    UNCOMPARED = "what was copied can't be compared with the source where records or offsets were not read"


@dataclass(slots=True)
class ConnectorOffsets:
    """The positions of the connector's offsets in one partition of an offsets topic, sorted; no record is kept.

    `keys` numbers the offset key of each of `values`. `deletions` are the positions of deleted offsets, `mirrored` the
    contents of a MirrorMaker's. `went_back` are those that precede the formerly committed one in a known source, and
    deletions of existing offsets: the records in between are read again.
    """

    values: array[int] = field(default_factory=lambda: array("q"))
    keys: array[int] = field(default_factory=lambda: array("i"))
    deletions: array[int] = field(default_factory=lambda: array("q"))
    mirrored: dict[int, MirrorOffset] = field(default_factory=dict)
    went_back: set[int] = field(default_factory=set)


@dataclass(slots=True)
class OffsetsPartition:
    """A partition of an offsets topic, `of` which are the connector's offsets; `key_names` are the keys by number.

    `is_global`: while the connector has a topic of its own, its worker keeps copies of the offsets here, without
    transactions (`ConnectorOffsetBackingStore`, Kafka 3.3+). More is read than `window`, for the sake of transactions
    that begin before it: what ended outside of it is context, and is not judged.
    """

    ledger: Ledger
    tallies: Tallies
    of: ConnectorOffsets
    key_names: Sequence[bytes]
    sources: SourcePartitions
    is_in_use: bool
    mirror: Mirror | None = None
    is_global: bool = False
    window: Window = field(default_factory=Window)
    _marked_ms: int = -1
    _plain: list[tuple[Batch, int]] = field(default_factory=list)
    _pending: dict[tuple[ProducerId, int], list[Batch]] = field(default_factory=dict)

    def data(self, batch: Batch) -> None:
        """Take a batch of offsets, of any producer."""
        has = self._has(batch)
        if not has:
            return
        if batch.is_transactional:
            self._pending.setdefault((batch.producer_id, batch.producer_epoch), []).append(batch)
        elif has & Has.OFFSET:
            self._plain.append((batch, self._marked_ms))
            self._note_mirrored(batch)  # by whom it may be: the next transaction goes on from there

    def _note_mirrored(self, batch: Batch, ended_ms: int = -1) -> None:
        if self.mirror is None:
            return
        for at in _within(self.of.values, batch):
            if (copied := self.of.mirrored.get(self.of.values[at])) is not None:
                self.mirror.note(batch.producer_id, batch.producer_epoch, copied, ended_ms)

    def _has(self, batch: Batch) -> int:
        has = Has.NOTHING
        if _any_within(self.of.values, batch):
            has |= Has.OFFSET if self.is_in_use else Has.ELSEWHERE
        if _any_within(self.of.deletions, batch):
            has |= Has.DELETION
        return has

    def close(self, window: Window) -> None:
        """Judge the plain batches, once all topics are read: copies and the time of the outputs are known then."""
        for batch, after_ms in self._plain:
            if _is_of(batch, window, after_ms=after_ms) and not (
                self.is_global and self.ledger.were_elsewhere_at(batch.max_timestamp_ms)
            ):
                self.tallies.batch(codes.OFFSETS_WITHOUT_TRANSACTION, batch)

    def ended(self, part: Part) -> None:
        """Take a transaction that had a part here."""
        self._note_marker(part.ended_ms)
        self.ledger.recognise(part)
        has = self._note(part)
        if not has or not self._is_judged(part):
            return
        if part.is_unmarked:
            self.tallies.part(codes.COMMIT_MARKERS_MISSING, part, severity=WARNING)
        if has & Has.ELSEWHERE and part.is_committed:
            self.tallies.part(codes.OFFSETS_ELSEWHERE, part)
        if has & (Has.OFFSET | Has.ELSEWHERE) and part.is_committed:
            self.tallies.part(codes.FOREIGN_OFFSETS, part, at_ms=part.ended_ms)  # dropped where it is the connector's

    def bare_marker(self, marker: Batch, *, may_be_cut: bool) -> None:  # noqa: ARG002 - as Sink has it
        """Take a marker of a transaction without a batch here."""
        self._note_marker(marker.max_timestamp_ms)

    def lost(self, part: Part) -> None:
        """Take a part whose end lies in a hole."""
        self._note(part)

    def went_back(self, batch: Batch, newer_epoch: int) -> None:  # noqa: ARG002 - as Sink has it
        """Take what brokers must refuse."""
        since_ms = self.window.since_ms
        if _any_within(self.of.values, batch) and (since_ms is None or self._marked_ms >= since_ms):
            self.tallies.batch(codes.EPOCH_WENT_BACK, batch)

    def left_open(self, part: Part) -> None:
        """Take a transaction whose end lies behind what was read."""
        self._note(part)

    def _note_marker(self, at_ms: int) -> None:
        """Note the brokers' time: plain batches before a marker that precedes the window are not part of it."""
        self._marked_ms = at_ms
        if self._plain and self.window.since_ms is not None and at_ms < self.window.since_ms:
            self._plain.clear()

    def _is_judged(self, part: Part) -> bool:
        since_ms, until_ms = self.window.since_ms, self.window.until_ms
        return (since_ms is None or part.ended_ms >= since_ms) and (until_ms is None or part.ended_ms < until_ms)

    def _note(self, part: Part) -> int:
        has = Has.NOTHING
        batches = self._pending.pop((part.producer_id, part.epoch), ())
        for batch in batches:
            has |= self._has(batch)
            if part.is_committed or part.marker is None:
                self._note_mirrored(batch, part.ended_ms)
        if has:
            self.ledger.note_offsets(part, has)
        if part.is_committed and self._is_judged(part):
            for batch in batches:
                self._commit(batch, part)
        return has

    def _commit(self, batch: Batch, part: Part) -> None:
        for at in _within(self.of.values, batch):
            self.sources.commit(self.key_names[self.of.keys[at]], part)
        if self.of.went_back and any(at in self.of.went_back for at in range(batch.base_offset, batch.last_offset + 1)):
            self.ledger.went_back.append(part)


@dataclass(slots=True)
class OutputPartitions:
    """All partitions of the output topics: what each producer wrote, and what is wrong with it.

    `unjudged` is how many parts of a producer nobody can judge, and why. `without_offsets_records` are producers of
    transactions that have not even the record that Connect writes for a source offset of null. Up to `proven_since_ms`
    some transaction has no records, or no offsets, and these may have been removed, or lie before the window.
    """

    ledger: Ledger
    tallies: Tallies
    written: dict[ProducerId, WrittenBy] = field(default_factory=dict)
    bytes: int = 0
    unjudged: Counter[tuple[ProducerId, Unjudged]] = field(default_factory=Counter)
    without_offsets_records: set[ProducerId] = field(default_factory=set)
    mirror: Mirror | None = None
    proven_since_ms: int = -1
    _zombies: set[tuple[str, int, ProducerId]] = field(default_factory=set)
    _aborted_last: dict[tuple[str, int, ProducerId], Part] = field(default_factory=dict)

    def data(self, batch: Batch) -> None:
        """Take a batch of records."""
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
        """Take a transaction that had a part in one of the partitions."""
        self.ledger.recognise(part)
        self.written[part.producer_id].ended(part, is_new=self.ledger.note_output(part))
        place = (part.topic, part.partition, part.producer_id)
        if place in self._zombies:
            self._zombies.discard(place)
            if part.is_committed:
                self.tallies.part(codes.ZOMBIE_WROTE, part)
        if part.is_unmarked:
            self.tallies.part(codes.COMMIT_MARKERS_MISSING, part, severity=WARNING)
        if not part.is_committed:
            self.tallies.part(codes.TRANSACTION_ABORTED, part)
            self._aborted_last[place] = part
            return
        self._aborted_last.pop(place, None)
        if self.mirror is not None:
            self.mirror.committed(part)
        for each in self.ledger.without(part):
            self._without_offsets(each)

    def bare_marker(self, marker: Batch, *, may_be_cut: bool) -> None:
        """Take a marker of a transaction without a batch here.

        A commit that follows an abort under the same epoch is the coordinator's: another client aborted the part.
        """
        producer_id = marker.producer_id
        self.ledger.bare_marker(marker, may_be_cut=may_be_cut)
        part = self._aborted_last.pop((marker.topic, marker.partition, producer_id), None)
        if not marker.commit:
            return
        if may_be_cut:
            self.proven_since_ms = max(self.proven_since_ms, marker.max_timestamp_ms)
        elif part is not None and part.epoch == marker.producer_epoch:
            self._found_torn([part])
        elif self.ledger.has_shared(producer_id, marker.producer_epoch):
            self.unjudged[producer_id, Unjudged.PARTLY] += 1

    def close(self) -> None:
        """Judge what is left once all partitions have been read."""
        for producer_id, parts, unsure in self.ledger.finish_shared():
            for part in parts:
                self._without_offsets(part)
            if unsure:
                self.unjudged[producer_id, Unjudged.SHARED] += unsure
        if self.mirror is not None:
            self.unjudged.update((producer_id, Unjudged.UNCOMPARED) for producer_id in self.mirror.uncompared.values())
        self._judge_aborted()
        for part in self.ledger.went_back:
            # a worker sets offsets for an operator under the id of task 0, and writes no record (KIP-875)
            severity = WARNING if self.ledger.has_only_offsets(part) else None
            self.tallies.part(codes.SOURCE_OFFSET_WENT_BACK, part, severity=severity, at_ms=part.ended_ms)

    def _judge_aborted(self) -> None:
        """Tell the parts of torn transactions from those of whole ones that were aborted."""
        for producer_id in self.ledger.known():
            for torn in self.ledger.torn(producer_id):
                parts = self.ledger.aborted.get(torn, ())
                if not parts or not self.ledger.is_certainly_torn(torn):
                    self.unjudged[producer_id, Unjudged.PARTLY] += 1
                    continue
                self._found_torn(parts)
        for parts in self.ledger.aborted.values():
            for part in parts:
                if self.ledger.may_be_committed(part):
                    self.unjudged[part.producer_id, Unjudged.PARTLY] += 1
                elif self.ledger.is_missing_from(part):  # that its offsets were committed can't be seen any more
                    self.proven_since_ms = max(self.proven_since_ms, part.ended_ms)

    def _found_torn(self, parts: Sequence[Part]) -> None:
        for part in parts:
            self.tallies.take_back(codes.TRANSACTION_ABORTED, part)
            self.tallies.part(codes.TRANSACTION_TORN, part, at_ms=part.ended_ms)
        if (written := self.written.get(parts[0].producer_id)) is not None:
            written.timeline.add(parts[0].ended_ms, TORN)

    def _without_offsets(self, part: Part) -> None:
        if self.ledger.has_aborted_offsets(part):
            return  # torn, which is judged when all was read
        if self.ledger.is_missing_from(part):
            self.unjudged[part.producer_id, Unjudged.LOST] += 1
        elif part.is_cut or (part.is_torn and not part.has_own_epoch):
            self.unjudged[part.producer_id, Unjudged.CUT] += 1
        elif self.ledger.is_before_all_offsets(part):
            self.unjudged[part.producer_id, Unjudged.BEFORE] += 1
        else:
            self.tallies.part(codes.TRANSACTION_WITHOUT_OFFSETS, part)
            if not self.ledger.has_deletions(part):
                self.without_offsets_records.add(part.producer_id)

    def lost(self, part: Part) -> None:
        """Take a part whose end lies in a hole."""
        self.ledger.has_records(part.producer_id, part.epoch)
        self.unjudged[part.producer_id, Unjudged.TORN] += 1

    def went_back(self, batch: Batch, newer_epoch: int) -> None:  # noqa: ARG002 - as Sink has it
        """Take what brokers must refuse."""
        self.tallies.batch(codes.EPOCH_WENT_BACK, batch)
        if batch.is_transactional:
            self._zombies.add((batch.topic, batch.partition, batch.producer_id))
        else:
            self.tallies.batch(codes.ZOMBIE_WROTE, batch)

    def left_open(self, part: Part, *, ended_since: bool | None = False) -> None:
        """Take a transaction without an end in what was read; `ended_since`: it has one behind that, None: unknown."""
        if part.producer_id in self.written:
            self.written[part.producer_id].left_open(part)
        if ended_since is None or part.is_torn:
            self.unjudged[part.producer_id, Unjudged.TORN] += 1
        elif ended_since:
            self.tallies.part(codes.TRANSACTION_OPEN, part)
        elif self.ledger.is_over(part.producer_id, part.epoch):
            self.tallies.part(codes.COMMIT_MARKERS_MISSING, part)
        elif self.ledger.may_be_over(part):
            self.unjudged[part.producer_id, Unjudged.UNMARKED] += 1
        else:
            self.tallies.part(codes.TRANSACTION_OPEN, part)


@dataclass(slots=True)
class LogRead:
    """The findings and counts from a scope's logs; `ended_by` is the error that ended the reading early.

    `planned_ms` is the time at which the ends of the logs were looked up. `window` is the time that is judged; where it
    `begins_at_offsets`, it is from the first marker in it. `undated` counts the batches that may or may not have been
    written in it, `uncompared` are the offsets that could not be compared.
    """

    planned_ms: int
    tallies: Tallies = field(default_factory=Tallies)
    ledger: Ledger = field(default_factory=Ledger)
    sources: SourcePartitions = field(default_factory=SourcePartitions)
    outputs: OutputPartitions = field(init=False)
    window: Window = field(default_factory=Window)
    begins_at_offsets: bool = False
    spans: tuple[Span, ...] = ()
    offsets_plan: ScanPlan = field(default_factory=lambda: ScanPlan(()))
    unseen: tuple[Unseen, ...] = ()
    offsets_unseen: tuple[Unseen, ...] = ()
    folds: dict[Place, PartitionFold] = field(default_factory=dict)
    undated: int = 0
    uncompared: tuple[str, ...] = ()
    ended_by: EosctlError | None = None

    def __post_init__(self) -> None:
        self.outputs = OutputPartitions(self.ledger, self.tallies)


def successors_overtaken(
    written: Collection[WrittenBy], *, same_id: Collection[Collection[ProducerId]]
) -> Iterator[tuple[Place, ProducerId, ProducerId, int]]:
    """Yield producers that wrote to a partition after another one that had taken over their transactional id.

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


def _is_of(batch: Batch, window: Window, *, after_ms: int) -> bool:
    """Check whether a plain batch is in the window: by the marker before it if possible, else by its worker's clock."""
    if window.until_ms is not None and (after_ms >= window.until_ms or batch.first_timestamp_ms >= window.until_ms):
        return False
    return window.since_ms is None or after_ms >= window.since_ms or batch.max_timestamp_ms >= window.since_ms


def _any_within(offsets: Sequence[int], batch: Batch) -> bool:
    at = bisect_left(offsets, batch.base_offset)
    return at < len(offsets) and offsets[at] <= batch.last_offset


def _within(offsets: Sequence[int], batch: Batch) -> Iterator[int]:
    """Yield the places in `offsets` of those that lie in a batch."""
    at = bisect_left(offsets, batch.base_offset)
    while at < len(offsets) and offsets[at] <= batch.last_offset:
        yield at
        at += 1
