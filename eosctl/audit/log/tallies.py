"""What is counted while batches pass: findings by their place and producer, and each producer's share. Pure.

There is one tally for each code, partition and producer, however many batches it is about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from eosctl.audit.log.segments import Part
from eosctl.audit.log.timeline import ABORTED, COMMITTED, OPEN, Timeline
from eosctl.codes import Code
from eosctl.core.batches import Batch, Place
from eosctl.core.ids import ProducerId

_EPOCHS = 1 << 15


@dataclass(slots=True)
class PlaceTally:
    """One finding in the making: `count` of them from `first_offset` to `last_offset`, `records` in all."""

    code: Code
    topic: str
    partition: int
    producer_id: ProducerId
    epoch: int
    first_offset: int
    last_offset: int
    at_ms: int
    count: int = 0
    records: int = 0


@dataclass(slots=True)
class Tallies:
    """The findings so far."""

    _of: dict[tuple[Code, str, int, ProducerId], PlaceTally] = field(default_factory=dict)

    def __iter__(self) -> Iterator[PlaceTally]:
        return iter(self._of.values())

    def batch(self, code: Code, batch: Batch) -> None:
        """One batch more."""
        tally = self._at(code, batch.topic, batch.partition, batch.producer_id)
        if tally is None:
            tally = self._begin(
                code, batch.topic, batch.partition, batch.producer_id, batch.producer_epoch, batch.base_offset,
                batch.first_timestamp_ms,
            )  # fmt: skip
        tally.last_offset, tally.count = batch.last_offset, tally.count + 1
        tally.records += batch.records

    def part(self, code: Code, part: Part) -> None:
        """One transaction's part in a partition more."""
        tally = self._at(code, part.topic, part.partition, part.producer_id)
        if tally is None:
            tally = self._begin(
                code, part.topic, part.partition, part.producer_id, part.epoch, part.first_offset, part.first_ms
            )
        tally.last_offset, tally.count = part.last_offset, tally.count + 1
        tally.records += part.records

    def _at(self, code: Code, topic: str, partition: int, producer_id: ProducerId) -> PlaceTally | None:
        return self._of.get((code, topic, partition, producer_id))

    def _begin(
        self, code: Code, topic: str, partition: int, producer_id: ProducerId, epoch: int, offset: int, at_ms: int
    ) -> PlaceTally:
        tally = PlaceTally(code, topic, partition, producer_id, epoch, offset, offset, at_ms)
        self._of[code, topic, partition, producer_id] = tally
        return tally


@dataclass(slots=True)
class WrittenBy:
    """What one producer wrote to the output topics.

    `places` has the first and the last offset, and how many batches there are, by partition.

    `newest_committed` is the highest epoch that was committed so long ago that all its markers are there.
    """

    producer_id: ProducerId
    records: int = 0
    batches: int = 0
    is_transactional: bool = False
    lowest_epoch: int = 1 << 15
    highest_epoch: int = -1
    from_ms: int = -1
    to_ms: int = -1
    ended_ms: int = -1
    open: int = 0
    timeline: Timeline = field(default_factory=Timeline)
    places: dict[Place, tuple[int, int, int]] = field(default_factory=dict)
    newest_committed: int = -1
    _seen: dict[str, bytearray] = field(default_factory=dict)
    _shared: dict[tuple[str, Place], int] = field(default_factory=dict)
    _most: dict[str, int] = field(default_factory=dict)

    def batch(self, batch: Batch) -> None:
        """A batch of records."""
        epoch = batch.producer_epoch
        self.batches += 1
        self.lowest_epoch, self.highest_epoch = min(self.lowest_epoch, epoch), max(self.highest_epoch, epoch)
        if batch.is_transactional:
            self.is_transactional = True
        else:
            self.records += batch.records
        if self.from_ms < 0 or 0 <= batch.first_timestamp_ms < self.from_ms:
            self.from_ms = batch.first_timestamp_ms
        self.to_ms = max(self.to_ms, batch.max_timestamp_ms)
        place = (batch.topic, batch.partition)
        first, _last, count = self.places.get(place, (batch.base_offset, 0, 0))
        self.places[place] = (first, batch.last_offset, count + 1)

    def ended(self, part: Part, *, is_settled: bool = True) -> None:
        """A part of a transaction that ended, `is_settled` if long ago; of its parts elsewhere it is told as well."""
        state = COMMITTED if part.is_committed else ABORTED
        if part.is_committed:
            self.records += part.records
        self.to_ms = max(self.to_ms, part.ended_ms)
        self.ended_ms = max(self.ended_ms, part.ended_ms)
        if part.has_own_epoch and is_settled and part.is_committed:
            self.newest_committed = max(self.newest_committed, part.epoch)
        if part.has_own_epoch:
            seen = self._seen.setdefault(state, bytearray(_EPOCHS))
            if seen[part.epoch]:
                return
            seen[part.epoch] = 1
        else:
            place = (part.topic, part.partition)
            number = self._shared[state, place] = self._shared.get((state, place), 0) + 1
            if number <= self._most.get(state, 0):  # another partition has as many: they are the same transactions
                return
            self._most[state] = number
        self.timeline.add(part.ended_ms, state)

    def left_open(self, part: Part) -> None:
        """A part that has no marker."""
        self.open += 1
        self.timeline.add(part.last_ms, OPEN)

    def count(self, state: str) -> int:
        """How many transactions came to this end; without an epoch of their own, those in one partition at least."""
        own = sum(self._seen[state]) if state in self._seen else 0
        return own + self._most.get(state, 0)
