"""Transactions of a producer that share an epoch (before KIP-890), matched with those that have offsets. Pure.

Only markers are compared, which brokers stamp. A part has its offsets, or it can't have any, or nobody can say.
So none is accused whose offsets a leader's loss, or a clock that is wrong by less than a second, moved;
and none is proven by the offsets of a neighbour. What is kept grows with the transactions that have offsets only.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from eosctl.audit.log.segments import Part
from eosctl.core.batches import Place

_TOLERANCE_MS = 1000
"""As far apart as the markers of one transaction are, unless a leader was away."""
_SAME_MS = 20
"""Markers that are this close are those of one transaction: a transaction takes longer than that."""
_OPEN_MS = 1 << 62


@dataclass(slots=True)
class _AtPlace:
    """How far the parts of one partition have come; `waiting` is one that seems to have no offsets."""

    next: int = 0
    next_same: int = 0
    waiting: Part | None = None


@dataclass(slots=True)
class SharedEpoch:
    """One producer epoch. First `note` for each part with offsets, `close`, then `take` for each part of the outputs.

    Each transaction may have markers in several offsets partitions, which are one of `_groups`; `_claimed` counts who
    took one of these, `_sure` of them those whose markers were written at the same time.
    """

    _noted: list[tuple[int, Place]] = field(default_factory=list)
    _ends: array[int] = field(default_factory=lambda: array("q"))
    _groups: array[int] = field(default_factory=lambda: array("q"))
    _margins: array[int] = field(default_factory=lambda: array("q"))
    _claimed: dict[int, int] = field(default_factory=dict)
    _sure: bytearray = field(default_factory=bytearray)
    _at: dict[Place, _AtPlace] = field(default_factory=dict)
    unsure: int = 0

    def note(self, part: Part) -> None:
        """A transaction with offsets, in an offsets partition."""
        ended_ms = _OPEN_MS if part.marker is None else part.ended_ms
        self._noted.append((ended_ms, (part.topic, part.partition)))

    def close(self) -> None:
        """All offsets are there."""
        begins, there = array("q"), set[Place]()
        for ended_ms, place in sorted(self._noted):
            if not begins or place in there or ended_ms > begins[-1] + _SAME_MS:
                begins.append(ended_ms)
                there.clear()
            there.add(place)
            self._ends.append(ended_ms)
            self._groups.append(len(begins) - 1)
        self._margins = array("q", _margins(begins))
        self._sure = bytearray(len(begins))
        self._noted = []

    def take(self, part: Part) -> Iterator[Part]:
        """A committed part, in the order of its partition's log; gives those that surely have no offsets."""
        at = self._at.setdefault((part.topic, part.partition), _AtPlace())
        ended_ms = part.ended_ms
        first = bisect_left(self._ends, ended_ms - _TOLERANCE_MS, at.next)
        has_one = first < len(self._ends) and self._ends[first] <= ended_ms + _TOLERANCE_MS
        if at.waiting is not None:
            yield from self._decide(at, at.waiting, next_one=first, is_taken=has_one, next_ms=ended_ms)
        if not has_one:
            if first > at.next:  # the markers of older ones may have come late
                self.unsure += 1
            else:
                at.waiting = part
            at.next = first
            return
        at.next = first + 1
        if not self._is_sure(at, ended_ms):
            group = self._groups[first]
            self._claimed[group] = self._claimed.get(group, 0) + 1

    def take_without_order(self, part: Part) -> bool:
        """A part some of whose neighbours' offsets may be lost: whether it has some nevertheless."""
        return self._is_sure(self._at.setdefault((part.topic, part.partition), _AtPlace()), part.ended_ms)

    def finish(self) -> Iterator[Part]:
        """All parts came: gives those that surely have no offsets; `unsure` counts those of which nobody can say."""
        for at in self._at.values():
            if at.waiting is not None:
                yield from self._decide(at, at.waiting, next_one=-1, is_taken=False, next_ms=_OPEN_MS)
        for group, count in self._claimed.items():
            if count > 1 or self._sure[group]:
                self.unsure += count
        self._claimed.clear()

    def _is_sure(self, at: _AtPlace, ended_ms: int) -> bool:
        """Whether a transaction with offsets ended at that very time, and no other part of the partition took it."""
        one = bisect_left(self._ends, ended_ms - _SAME_MS, at.next_same)
        while one < len(self._ends) and self._ends[one] <= ended_ms + _SAME_MS:
            group = self._groups[one]
            if abs(self._ends[one] - ended_ms) <= self._margins[group]:
                self._sure[group] = 1
                at.next_same = bisect_left(self._groups, group + 1)
                return True
            one += 1
        return False

    def _decide(self, at: _AtPlace, part: Part, *, next_one: int, is_taken: bool, next_ms: int) -> Iterator[Part]:
        """The next part of the partition came: only if the next offsets are its own, or later, `part` has none.

        For a transaction begins when the one before it has all its markers.
        """
        at.waiting = None
        younger = bisect_left(self._ends, part.ended_ms)
        if (
            younger >= len(self._ends)
            or self._ends[younger] > next_ms + _TOLERANCE_MS
            or (is_taken and younger == next_one)
        ):
            yield part
        else:
            self.unsure += 1


def _margins(begins: Sequence[int]) -> Iterator[int]:
    """How far from each of these a marker may be to be of the same transaction: a quarter of the way to the next."""
    for number, begin in enumerate(begins):
        before = begin - begins[number - 1] if number else _OPEN_MS
        behind = begins[number + 1] - begin if number + 1 < len(begins) else _OPEN_MS
        yield min(_SAME_MS, before // 4, behind // 4)
