"""Batches of one partition, folded into the parts that transactions have there. Pure, and no batch is kept.

A producer has one part open at a time: its batches up to the marker that ends them. What can't be in a log that
brokers kept in order (an epoch that went back, a part without its marker) is reported as it comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from eosctl.core.batches import OLD_FORMAT, Batch
from eosctl.core.ids import ProducerId

LONGEST_TRANSACTION_MS = 900_000
"""As long as a transaction may last, unless brokers were told otherwise (`transaction.max.timeout.ms`)."""


@dataclass(slots=True)
class Part:
    """What one transaction has in one partition, up to now.

    `is_cut`: it may have begun before the window. `is_torn`: offsets are missing between its batches, so that it may be
    more than one. `marker` is what ended it, None while it is open.
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

    @property
    def is_committed(self) -> bool:
        """Whether its marker is a commit."""
        return self.marker is not None and self.marker.commit is True

    @property
    def has_own_epoch(self) -> bool:
        """Whether its producer has another epoch for each transaction, as from transaction version 2 on."""
        return self.is_committed and self.marker is not None and self.marker.producer_epoch > self.epoch

    @property
    def ended_ms(self) -> int:
        """When its marker was written, by the broker's clock; of an open one, when it was last written to."""
        return self.last_ms if self.marker is None else self.marker.max_timestamp_ms


class Sink(Protocol):
    """Who is told of what a partition's batches are."""

    def data(self, batch: Batch) -> None:
        """A batch of records, in a transaction or not; before the part that it belongs to has ended."""

    def ended(self, part: Part) -> None:
        """A part whose marker came."""

    def went_back(self, batch: Batch, newer_epoch: int) -> None:
        """A batch of an epoch that is older than one that the partition had before."""

    def unmarked(self, part: Part) -> None:
        """A part that a newer epoch follows without a marker in between."""


@dataclass(slots=True)
class PartitionFold:
    """The open parts of a partition; `starts_inside` says that the log has batches before the first one.

    `removed` are offsets that compaction took from between (or out of) batches, up to those of about `removed_ms`, and
    transactions that ended up to `lost_until_ms` may have had some of them. `next_offset` is where it was to begin, and
    then where the next batch should: a hole at the very beginning is one too. `is_cut_off`: what was before is lost.
    """

    sink: Sink
    starts_inside: bool = False
    removed: int = 0
    removed_ms: int = -1
    first_ms: int = -1
    first_marker_ms: int = -1
    next_offset: int = -1
    is_cut_off: bool = False
    lost_until_ms: int = -1
    _hole_ms: int = -1
    _ended_behind_hole: set[ProducerId] = field(default_factory=set)
    _open: dict[ProducerId, Part] = field(default_factory=dict)
    _epochs: dict[ProducerId, int] = field(default_factory=dict)

    def take(self, batch: Batch) -> None:
        """The next batch of the partition."""
        gap = batch.base_offset - self.next_offset if 0 <= self.next_offset < batch.base_offset else 0
        self.next_offset = batch.last_offset + 1
        if gap:
            for part in self._open.values():
                part.is_torn = True
        if batch.is_control:
            self._note(gap, batch)
            self._mark(batch)
            return
        if batch.magic >= OLD_FORMAT:
            gap += batch.last_offset - batch.base_offset + 1 - batch.records
        self._note(gap, batch)
        if batch.records:
            self._data(batch)

    def still_open(self) -> Iterator[Part]:
        """The parts without a marker at the end."""
        yield from self._open.values()

    def _note(self, gap: int, batch: Batch) -> None:
        if self.first_ms < 0:
            self.first_ms = batch.max_timestamp_ms
            if self.is_cut_off:
                self.lost_until_ms = self._hole_ms = batch.max_timestamp_ms
        if gap > 0:
            self.removed += gap
            self.removed_ms = self._hole_ms = max(self.removed_ms, batch.max_timestamp_ms)
            self.lost_until_ms = max(self.lost_until_ms, batch.max_timestamp_ms)
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
            self.sink.unmarked(part)
            part = None
        if part is None:
            self._open[producer_id] = _begun(batch, is_cut=self.starts_inside and known is None)
            return
        part.last_offset, part.records = batch.last_offset, part.records + batch.records
        part.last_ms = max(part.last_ms, batch.max_timestamp_ms)

    def _mark(self, batch: Batch) -> None:
        if batch.commit is None:
            return
        producer_id = batch.producer_id
        if self.first_marker_ms < 0:
            self.first_marker_ms = batch.max_timestamp_ms
        self._note_end(batch)
        if batch.producer_epoch > self._epochs.get(producer_id, -1):
            self._epochs[producer_id] = batch.producer_epoch
        part = self._open.pop(producer_id, None)
        if part is not None:
            part.marker = batch
            self.sink.ended(part)

    def _note_end(self, marker: Batch) -> None:
        """Of each producer, the first transaction that ends behind a hole may have had records in it."""
        ended_ms = marker.max_timestamp_ms
        if self._hole_ms < 0 or ended_ms > self._hole_ms + LONGEST_TRANSACTION_MS:
            return
        if marker.producer_id not in self._ended_behind_hole:
            self._ended_behind_hole.add(marker.producer_id)
            self.lost_until_ms = max(self.lost_until_ms, ended_ms)


def _begun(batch: Batch, *, is_cut: bool) -> Part:
    return Part(
        batch.topic, batch.partition, batch.producer_id, batch.producer_epoch, batch.base_offset, batch.last_offset,
        batch.first_timestamp_ms, batch.max_timestamp_ms, batch.records, is_cut,
    )  # fmt: skip
