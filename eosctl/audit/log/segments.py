"""Batches of one partition, folded into the parts that transactions have there. Pure, and no batch is kept.

A producer has one part open at a time: its batches up to the marker that ends them. A marker ends all that its producer
has in the partition, also a transaction of before whose own marker was never written.
Times are those of markers, which brokers stamp. A record's own time may be anything, and is only passed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from eosctl.core.batches import OLD_FORMAT, Batch
from eosctl.core.ids import ProducerId

LONGEST_TRANSACTION_MS = 900_000
"""The longest transaction, unless brokers are configured otherwise (`transaction.max.timeout.ms`)."""


@dataclass(slots=True)
class Part:
    """The batches of one transaction in one partition, so far.

    `is_cut`: it may have begun before the window. `is_torn`: offsets are missing between its batches, so that it may be
    more than one. `marker` is the marker that ended it, None while it is open; `is_unmarked`: that marker is a later
    transaction's, as its own was never written. `after_ms` is the time of the last marker before its first batch, by
    any producer, so that the part is not older; -1 where there is none.
    """

    topic: str
    partition: int
    producer_id: ProducerId
    epoch: int
    first_offset: int
    last_offset: int
    first_ms: int
    last_ms: int
    records: int
    is_cut: bool
    marker: Batch | None = None
    is_torn: bool = False
    is_unmarked: bool = False
    after_ms: int = -1
    has_own_epoch: bool = False
    """Whether it was committed, and its producer has another epoch for each transaction (transaction version 2)."""

    @property
    def is_committed(self) -> bool:
        """Whether its marker is a commit."""
        return self.marker is not None and self.marker.commit is True

    @property
    def ended_ms(self) -> int:
        """The time of its marker, by the broker's clock; of an open one, the time of its last write."""
        return self.last_ms if self.marker is None else self.marker.max_timestamp_ms

    def end(self, marker: Batch, *, raises_epoch: bool) -> None:
        """Note the marker; `raises_epoch`: its epoch is above that of the transaction that it was meant for."""
        self.marker = marker
        self.has_own_epoch = marker.commit is True and raises_epoch


class Sink(Protocol):
    """Take what a partition's batches are."""

    def data(self, batch: Batch) -> None:
        """Take a batch of records, in a transaction or not; before the part that it belongs to has ended."""

    def ended(self, part: Part) -> None:
        """Take a part whose marker came."""

    def bare_marker(self, marker: Batch, *, may_be_cut: bool) -> None:
        """Take a marker of a transaction without a batch here; `may_be_cut`: it may have had one that was not read."""

    def went_back(self, batch: Batch, newer_epoch: int) -> None:
        """Take a batch of an epoch that is older than one that the partition had before."""

    def lost(self, part: Part) -> None:
        """Take a part whose end lies in a hole of the log."""


@dataclass(slots=True)
class PartitionFold:
    """The open parts of a partition; `starts_inside`: the log has batches before the first one.

    `removed` are offsets that compaction took from between (or out of) batches, up to `removed_ms`, the time of the
    first marker behind them. Transactions that ended up to `lost_until_ms` may have had some of them. `in_hole`: no
    marker has come since, so that the time of the following batches is unknown. `next_offset` is the begin, and then
    the offset of the next batch: a hole at the very beginning is one too. `is_cut_off`: the batches before are lost.
    """

    sink: Sink
    starts_inside: bool = False
    removed: int = 0
    removed_ms: int = -1
    first_marker_ms: int = -1
    last_marker_ms: int = -1
    next_offset: int = -1
    is_cut_off: bool = False
    lost_until_ms: int = -1
    in_hole: bool = False
    is_empty: bool = True
    _hole_ms: int = -1
    _ended_behind_hole: set[ProducerId] = field(default_factory=set)
    _open: dict[ProducerId, Part] = field(default_factory=dict)
    _unmarked: dict[ProducerId, list[Part]] = field(default_factory=dict)
    _epochs: dict[ProducerId, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.in_hole = self.is_cut_off

    def take(self, batch: Batch) -> None:
        """Take the next batch of the partition."""
        gap = batch.base_offset - self.next_offset if 0 <= self.next_offset < batch.base_offset else 0
        self.next_offset = batch.last_offset + 1
        self.is_empty = False
        if gap:
            for part in self.still_open():
                part.is_torn = True
        if batch.is_control:
            self._note_hole(gap)
            self._mark(batch)
            return
        if batch.magic >= OLD_FORMAT:
            gap += batch.last_offset - batch.base_offset + 1 - batch.records
        self._note_hole(gap)
        if batch.records:
            self._data(batch)

    def still_open(self) -> Iterator[Part]:
        """Yield the parts without a marker at the end, those whose own marker was never written first."""
        for parts in self._unmarked.values():
            yield from parts
        yield from self._open.values()

    def _note_hole(self, gap: int) -> None:
        if gap > 0:
            self.removed += gap
            self.in_hole = True
            self._ended_behind_hole.clear()

    def _data(self, batch: Batch) -> None:
        producer_id, epoch = batch.producer_id, batch.producer_epoch
        known = self._epochs.get(producer_id)
        if producer_id >= 0 and known is not None and epoch < known:
            self.sink.went_back(batch, known)
        elif known != epoch and producer_id >= 0:
            self._epochs[producer_id] = epoch
        self.sink.data(batch)
        if not batch.is_transactional:
            return
        part = self._open.get(producer_id)
        if part is not None and part.epoch < epoch:
            self._unmarked.setdefault(producer_id, []).append(self._open.pop(producer_id))
            part = None
        if part is None:
            self._open[producer_id] = self._begun(batch, is_cut=self.starts_inside and known is None)
            return
        part.last_offset, part.records = batch.last_offset, part.records + batch.records
        part.last_ms = max(part.last_ms, batch.max_timestamp_ms)

    def _mark(self, marker: Batch) -> None:
        if marker.commit is None:
            return
        producer_id = marker.producer_id
        ended_ms = self.last_marker_ms = marker.max_timestamp_ms
        if self.first_marker_ms < 0:
            self.first_marker_ms = ended_ms
        self._note_end(marker)
        known = self._epochs.get(producer_id, -1)
        self._epochs[producer_id] = max(known, marker.producer_epoch)
        parts = [*self._unmarked.pop(producer_id, ()), *filter(None, [self._open.pop(producer_id, None)])]
        if not parts:
            self.sink.bare_marker(
                marker, may_be_cut=(self.starts_inside and known < 0) or ended_ms <= self.lost_until_ms
            )
        for part in parts:
            part.is_unmarked = part is not parts[-1]
            if part.is_unmarked and part.is_torn:
                self.sink.lost(part)
                continue
            part.end(marker, raises_epoch=marker.producer_epoch > parts[-1].epoch)
            self.sink.ended(part)

    def _note_end(self, marker: Batch) -> None:
        """Note how far a hole reaches: of each producer, the first transaction behind it may have had records in it."""
        ended_ms = marker.max_timestamp_ms
        if self.in_hole:
            self.in_hole = False
            self._hole_ms = ended_ms
            self.removed_ms = max(self.removed_ms, ended_ms)
            self.lost_until_ms = max(self.lost_until_ms, ended_ms)
        if self._hole_ms < 0 or ended_ms > self._hole_ms + LONGEST_TRANSACTION_MS:
            return
        if marker.producer_id not in self._ended_behind_hole:
            self._ended_behind_hole.add(marker.producer_id)
            self.lost_until_ms = max(self.lost_until_ms, ended_ms)

    def _begun(self, batch: Batch, *, is_cut: bool) -> Part:
        return Part(
            batch.topic, batch.partition, batch.producer_id, batch.producer_epoch, batch.base_offset, batch.last_offset,
            batch.first_timestamp_ms, batch.max_timestamp_ms, batch.records, is_cut, after_ms=self.last_marker_ms,
        )  # fmt: skip
