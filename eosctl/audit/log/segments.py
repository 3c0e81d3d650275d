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


@dataclass(slots=True)
class Part:
    """What one transaction has in one partition, up to now.

    `is_cut`: it may have begun before the window. `marker` is what ended it, None while it is open.
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

    `removed` are offsets that compaction took from between (or out of) batches, up to those of about `removed_ms`.
    """

    sink: Sink
    starts_inside: bool = False
    removed: int = 0
    removed_ms: int = -1
    first_ms: int = -1
    _next: int = -1
    _open: dict[ProducerId, Part] = field(default_factory=dict)
    _epochs: dict[ProducerId, int] = field(default_factory=dict)

    def take(self, batch: Batch) -> None:
        """The next batch of the partition."""
        gap = batch.base_offset - self._next if 0 <= self._next < batch.base_offset else 0
        self._next = batch.last_offset + 1
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
        if gap > 0:
            self.removed += gap
            self.removed_ms = max(self.removed_ms, batch.max_timestamp_ms)

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
        if batch.producer_epoch > self._epochs.get(producer_id, -1):
            self._epochs[producer_id] = batch.producer_epoch
        part = self._open.pop(producer_id, None)
        if part is not None:
            part.marker = batch
            self.sink.ended(part)


def _begun(batch: Batch, *, is_cut: bool) -> Part:
    return Part(
        batch.topic, batch.partition, batch.producer_id, batch.producer_epoch, batch.base_offset, batch.last_offset,
        batch.first_timestamp_ms, batch.max_timestamp_ms, batch.records, is_cut,
    )  # fmt: skip
