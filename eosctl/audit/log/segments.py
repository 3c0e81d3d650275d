"""Batches of one partition, folded into the parts that transactions have there; no batch is kept. Pure.

A producer has one part open at a time: its batches up to the marker that ends them. A marker ends all that its producer
has in the partition, also an earlier transaction whose own marker was never written. Times are those of markers, which
brokers stamp. A record's own time may be anything, and is only passed on.

Transactions of a producer that share an epoch (before KIP-890) are matched with those that have offsets, by their
markers only. A part has its offsets, or it can't have any, or it is undecided. Brokers' clocks may be seconds apart. So
a part is only accused by a count: where a partition has more transactions than committed offsets in all of that time.
And the offsets of a neighbour prove nothing about a part: where markers of one partition are now earlier and now later
than those of the offsets, no part is proven. Memory grows only with the transactions that have offsets.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from eosctl.core.ids import ProducerId
from eosctl.core.records import OLD_FORMAT, Batch, Place

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
