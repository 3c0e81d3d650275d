"""Counts made while batches pass: findings, each producer's share, and transactions over time. Pure.

There is one tally of findings for each code, partition and producer, however many batches it is about. The transactions
that ended are counted in a fixed number of time steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from eosctl.audit.log.segments import Part
from eosctl.codes import Code
from eosctl.core.ids import ProducerId
from eosctl.core.records import Batch, Place

COMMITTED, ABORTED, OPEN, TORN = "committed", "aborted", "open", "torn"
_MOST_STEPS = 480


@dataclass(slots=True)
class Timeline:
    """Counts by state in steps of `step_ms`, which get longer as the time does; `step_ms` is a second or more."""

    step_ms: int = 1000
    _counts: dict[int, dict[str, int]] = field(default_factory=dict)

    def add(self, at_ms: int, state: str, count: int = 1) -> None:
        """Count one transaction; leave out a negative time."""
        if at_ms < 0:
            return
        step = self._counts.setdefault(at_ms // self.step_ms, {})
        step[state] = step.get(state, 0) + count
        while len(self._counts) > _MOST_STEPS:
            self._widen(self.step_ms * 2)

    def take(self, other: Timeline) -> None:
        """Add the counts of another timeline."""
        self._widen(max(self.step_ms, other.step_ms))
        for at_ms, state, count in other.steps():
            self.add(at_ms, state, count)

    def steps(self) -> Iterator[tuple[int, str, int]]:
        """Yield the beginning of a step (in ms), a state and its count, by time."""
        for number, counts in sorted(self._counts.items()):
            yield from ((number * self.step_ms, state, count) for state, count in sorted(counts.items()))

    def _widen(self, step_ms: int) -> None:
        if step_ms == self.step_ms:
            return
        steps, self._counts, self.step_ms = list(self.steps()), {}, step_ms
        for at_ms, state, count in steps:
            step = self._counts.setdefault(at_ms // step_ms, {})
            step[state] = step.get(state, 0) + count


@dataclass(slots=True)
class PlaceTally:
    """One finding in the making: `count` of them from `first_offset` to `last_offset`, `records` in all.

    `severity` is None where the code's own counts.
    """

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
    severity: str | None = None


@dataclass(slots=True)
class Tallies:
    """The findings so far."""

    _of: dict[tuple[Code, str, int, ProducerId, str | None], PlaceTally] = field(default_factory=dict)

    def __iter__(self) -> Iterator[PlaceTally]:
        return iter(each for each in self._of.values() if each.count)

    def batch(self, code: Code, batch: Batch) -> None:
        """Count one batch more."""
        self._count(
            code, (batch.topic, batch.partition), batch.producer_id, batch.producer_epoch,
            (batch.base_offset, batch.last_offset), batch.first_timestamp_ms, batch.records,
        )  # fmt: skip

    def part(self, code: Code, part: Part, *, severity: str | None = None, at_ms: int | None = None) -> None:
        """Count one transaction's part in a partition more."""
        self._count(
            code, (part.topic, part.partition), part.producer_id, part.epoch,
            (part.first_offset, part.last_offset), part.first_ms if at_ms is None else at_ms, part.records,
            severity=severity,
        )  # fmt: skip

    def take_back(self, code: Code, part: Part) -> None:
        """Count a part no more, as it is a finding of another kind."""
        tally = self._of.get((code, part.topic, part.partition, part.producer_id, None))
        if tally is not None:
            tally.count, tally.records = tally.count - 1, tally.records - part.records

    def _count(
        self, code: Code, place: Place, producer_id: ProducerId, epoch: int, offsets: tuple[int, int], at_ms: int,
        records: int, *, severity: str | None = None,
    ) -> None:  # fmt: skip
        key = (code, *place, producer_id, severity)
        tally = self._of.get(key)
        if tally is None:
            tally = self._of[key] = PlaceTally(code, *place, producer_id, epoch, *offsets, at_ms, severity=severity)
        tally.last_offset, tally.count, tally.records = offsets[1], tally.count + 1, tally.records + records


@dataclass(slots=True)
class WrittenBy:
    """The batches that one producer wrote to the output topics.

    `places` has the first and the last offset and the number of batches, by partition. `committed` and `aborted` count
    transactions; of those that share an epoch, at least as many as one partition has.
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
    _own: dict[str, int] = field(default_factory=dict)
    _shared: dict[tuple[str, Place], int] = field(default_factory=dict)
    _most: dict[str, int] = field(default_factory=dict)

    def batch(self, batch: Batch) -> None:
        """Count a batch of records."""
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

    def ended(self, part: Part, *, is_new: bool) -> None:
        """Count a part of a transaction that ended; `is_new` says that none of its parts elsewhere was counted."""
        state = COMMITTED if part.is_committed else ABORTED
        if part.is_committed:
            self.records += part.records
        self.to_ms = max(self.to_ms, part.ended_ms)
        self.ended_ms = max(self.ended_ms, part.ended_ms)
        if part.has_own_epoch:
            if not is_new:
                return
            self._own[state] = self._own.get(state, 0) + 1
        else:
            place = (part.topic, part.partition)
            number = self._shared[state, place] = self._shared.get((state, place), 0) + 1
            if number <= self._most.get(state, 0):  # another partition has as many: they are the same transactions
                return
            self._most[state] = number
        self.timeline.add(part.ended_ms, state)

    def left_open(self, part: Part) -> None:
        """Count a part that has no marker."""
        self.open += 1
        self.timeline.add(part.last_ms, OPEN)

    def count(self, state: str) -> int:
        """Return how many transactions came to this end."""
        return self._own.get(state, 0) + self._most.get(state, 0)
