"""Transactions of a producer that share an epoch (before KIP-890), matched with those that have offsets. Pure.

Only markers are compared, which brokers stamp. A part has its offsets, or it can't have any, or it is undecided.
Brokers' clocks may be seconds apart. So a part is only accused by a count: where a partition has more transactions
than committed offsets in all of that time. And the offsets of a neighbour prove nothing about a part: where markers of
one partition are now earlier and now later than those of the offsets, no part is proven.
Memory grows only with the transactions that have offsets.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from eosctl.audit.log.segments import Part
from eosctl.core.batches import Place

_TOLERANCE_MS = 1000
"""The largest distance of one transaction's markers, unless a leader was away."""
SAME_MS = 20
"""Markers that are this close are those of one transaction: a transaction takes longer than that."""
_CLOCKS_MS = 5000
"""More than two brokers' clocks differ."""
_OPEN_MS = 1 << 62
_MOST_SUSPECTS = 10_000
_FEWEST_BY_ORDER = 3


@dataclass(slots=True)
class _AtPlace:
    """The progress of one partition's parts; `waiting` is one that seems to have no offsets.

    `suspects` are those that still seemed so when the next part came. `earliest` and `latest` are the least and the
    largest delay of its markers after those of the offsets. `by_order` counts the parts that took offsets by their
    order only, `unsure` those that are undecided.
    """

    next: int = 0
    next_same: int = 0
    waiting: Part | None = None
    suspects: list[Part] = field(default_factory=list)
    parts: int = 0
    first_ms: int = _OPEN_MS
    last_ms: int = -1
    earliest: int = _OPEN_MS
    latest: int = -_OPEN_MS
    by_order: int = 0
    unsure: int = 0

    def note_distance(self, distance_ms: int) -> None:
        self.earliest, self.latest = min(self.earliest, distance_ms), max(self.latest, distance_ms)


@dataclass(slots=True)
class SharedEpoch:
    """One producer epoch. First `note` for each part with offsets, `close`, then `take` for each part of the outputs.

    Each transaction may have markers in several offsets partitions, which are one of `_groups`; `_claimed` counts who
    took one of these, `_sure` of them those whose markers were written at the same time. `_has_offset` is 0 for groups
    that only deleted offsets, as Connect does for records without a source offset. `_most` is how many transactions
    with offsets a group may be, where these were as close to each other as the markers of one.
    """

    _noted: list[tuple[int, Place, bool]] = field(default_factory=list)
    _ends: array[int] = field(default_factory=lambda: array("q"))
    _groups: array[int] = field(default_factory=lambda: array("q"))
    _begins: array[int] = field(default_factory=lambda: array("q"))
    _margins: array[int] = field(default_factory=lambda: array("q"))
    _claimed: dict[int, int] = field(default_factory=dict)
    _sure: bytearray = field(default_factory=bytearray)
    _has_offset: bytearray = field(default_factory=bytearray)
    _most: array[int] = field(default_factory=lambda: array("q"))
    _at: dict[Place, _AtPlace] = field(default_factory=dict)
    unsure: int = 0
    _only_place: Place | None = None

    def note(self, part: Part, *, has_offset: bool = True) -> None:
        """Note a transaction with offsets, or with deletions of some only, in an offsets partition."""
        ended_ms = _OPEN_MS if part.marker is None else part.ended_ms
        self._noted.append((ended_ms, (part.topic, part.partition), has_offset))

    def close(self) -> None:
        """Group the offsets by time, once all have been read."""
        there = set[Place]()
        last_ms = array("q")
        for ended_ms, place, has_offset in sorted(self._noted):
            if not self._begins or place in there or ended_ms > self._begins[-1] + SAME_MS:
                self._begins.append(ended_ms)
                self._has_offset.append(0)
                self._most.append(0)
                last_ms.append(ended_ms)
                there.clear()
            there.add(place)
            last_ms[-1] = ended_ms
            self._most[-1] += has_offset
            self._has_offset[-1] |= has_offset
            self._ends.append(ended_ms)
            self._groups.append(len(self._begins) - 1)
        self._margins = array("q", _margins(self._begins))
        for group, margin in enumerate(self._margins):
            if last_ms[group] - self._begins[group] <= margin:
                self._most[group] = min(self._most[group], 1)
        self._sure = bytearray(len(self._begins))
        places = {place for _ended_ms, place, _has_offset in self._noted}
        self._only_place = places.pop() if len(places) == 1 else None
        self._noted = []

    def take(self, part: Part) -> None:
        """Take a committed part, in the order of its partition's log."""
        at = self._at.setdefault((part.topic, part.partition), _AtPlace())
        ended_ms = part.ended_ms
        at.parts += 1
        at.first_ms, at.last_ms = min(at.first_ms, ended_ms), max(at.last_ms, ended_ms)
        first = bisect_left(self._ends, ended_ms - _TOLERANCE_MS, at.next)
        has_one = first < len(self._ends) and self._ends[first] <= ended_ms + _TOLERANCE_MS
        if at.waiting is not None:
            self._decide(at, at.waiting, next_one=first, is_taken=has_one, next_ms=ended_ms)
        if not has_one:
            if first > at.next:  # the markers of older ones may have come late
                at.unsure += 1
            else:
                at.waiting = part
            at.next = first
            return
        at.next = first + 1
        same = self._same(at, ended_ms)
        if same is None:
            group = self._groups[first]
            self._claimed[group] = self._claimed.get(group, 0) + 1
            at.by_order += 1
            at.note_distance(ended_ms - self._ends[first])
        elif not self._has_offset[same]:
            self._suspect(at, part)

    @property
    def has_taken(self) -> bool:
        """Whether a part of the outputs came."""
        return bool(self._at)

    def take_without_order(self, part: Part) -> bool:
        """Check whether a part has offsets, while some of its neighbours' offsets may be lost."""
        same = self._same(self._at.setdefault((part.topic, part.partition), _AtPlace()), part.ended_ms)
        return same is not None and bool(self._has_offset[same])

    def finish(self) -> Iterator[Part]:
        """Yield, once all parts are in, those that surely have no offsets; `unsure` counts the undecided ones."""
        for at in self._at.values():
            if at.waiting is not None:
                self._decide(at, at.waiting, next_one=-1, is_taken=False, next_ms=_OPEN_MS)
            there = self._count_with_offset(at)
            lacking = max(0, at.parts - there)
            yield from at.suspects[:lacking]
            doubtful = max(0, len(at.suspects) - lacking) + at.unsure
            self.unsure += max(doubtful, lacking - len(at.suspects), 0 if self._is_steady(at) else at.by_order)
        claims = (count for group, count in self._claimed.items() if count > 1 or self._sure[group])
        self.unsure = max(self.unsure, sum(claims))

    def unclaimed(self, since_ms: int, until_ms: int) -> Iterator[int]:
        """Yield when the groups ended, in that time, that no part took."""
        for group, begin in enumerate(self._begins):
            is_taken = self._sure[group] or group in self._claimed
            if since_ms <= begin <= until_ms and not is_taken and (self._has_offset[group] or self._at):
                yield begin

    def may_have_ended_after(self, part: Part, at_ms: int) -> bool:
        """Check whether a transaction with offsets may have ended after that time of the part's partition."""
        return self.may_have_ended_between(part, at_ms, _OPEN_MS >> 1)

    def may_have_ended_between(self, part: Part, after_ms: int, until_ms: int) -> bool:
        """Check whether a transaction with offsets may have ended in that time of the part's partition; -1: no lower
        bound.

        How far the clocks are apart is known from the transactions that both partitions have.
        """
        earliest, latest = self._distances((part.topic, part.partition))
        one = bisect_right(self._ends, after_ms + SAME_MS - latest if after_ms >= 0 else -1)
        return one < len(self._ends) and self._ends[one] <= until_ms + SAME_MS - earliest

    def _is_steady(self, at: _AtPlace) -> bool:
        """Check whether a steady difference of two clocks explains the distances; too few of them, or several clocks,
        do not.
        """
        is_even = at.latest - at.earliest <= 2 * SAME_MS
        return is_even and at.by_order >= _FEWEST_BY_ORDER and self._only_place is not None

    def _distances(self, place: Place) -> tuple[int, int]:
        """Return how much later than those of the offsets the markers of a partition are, at least and at most."""
        if self._only_place == place:
            return 0, 0
        at = self._at.get(place)
        return (-_CLOCKS_MS, _CLOCKS_MS) if at is None or at.latest < at.earliest else (at.earliest, at.latest)

    def _count_with_offset(self, at: _AtPlace) -> int:
        """Count those that may be the partition's; at both ends a marker may have come late, be it here or there."""
        first = bisect_left(self._begins, at.first_ms - _CLOCKS_MS)
        stop = bisect_right(self._begins, at.last_ms + _CLOCKS_MS)
        return sum(self._most[max(0, first - 1) : stop + 1])

    def _same(self, at: _AtPlace, ended_ms: int) -> int | None:
        """Return the group that ended at that very time, unless another part of the partition took it."""
        one = bisect_left(self._ends, ended_ms - SAME_MS, at.next_same)
        while one < len(self._ends) and self._ends[one] <= ended_ms + SAME_MS:
            group = self._groups[one]
            if abs(self._ends[one] - ended_ms) <= self._margins[group]:
                self._sure[group] = 1
                at.next_same = bisect_left(self._groups, group + 1)
                at.note_distance(ended_ms - self._ends[one])
                return group
            one += 1
        return None

    def _decide(self, at: _AtPlace, part: Part, *, next_one: int, is_taken: bool, next_ms: int) -> None:
        """Judge the one that waits when the next part of the partition came.

        Only if the next offsets are that one's own, or later, it has none: for a transaction begins when the one
        before it has all its markers.
        """
        at.waiting = None
        younger = bisect_left(self._ends, part.ended_ms)
        if (
            younger >= len(self._ends)
            or self._ends[younger] > next_ms + _TOLERANCE_MS
            or (is_taken and younger == next_one)
        ):
            self._suspect(at, part)
        else:
            at.unsure += 1

    def _suspect(self, at: _AtPlace, part: Part) -> None:
        if len(at.suspects) < _MOST_SUSPECTS:
            at.suspects.append(part)
        else:
            at.unsure += 1


def _margins(begins: Sequence[int]) -> Iterator[int]:
    """Yield how far from each of these a marker of the same transaction may be: a quarter of the way to the next."""
    for number, begin in enumerate(begins):
        before = begin - begins[number - 1] if number else _OPEN_MS
        behind = begins[number + 1] - begin if number + 1 < len(begins) else _OPEN_MS
        yield min(SAME_MS, before // 4, behind // 4)
