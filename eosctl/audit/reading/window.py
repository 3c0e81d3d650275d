"""The position of a window of time in a partition's log, by markers, which brokers stamp with their own clock.

Brokers turn a time into the offset of the first record that is as young, and sources give records any time: one of the
year 2100 would begin or end the window there, and one of long ago be left out. So a window is positions: it begins
behind the last marker that is older than its begin, and ends at the first marker that is as young as its end.
Only where there is no such marker, a record's own time is all there is: then it accuses nobody, and acquits nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from eosctl.audit.log.segments import PartitionFold
from eosctl.core.batches import Batch, Place, ScanPlan, Span, Unseen, UnseenReason
from eosctl.ports import BatchLog

_FIRST_STEP = 512
_LONGEST_STEP = 1 << 21
_MOST_WAITING = 200_000


def begin_behind_a_marker(log: BatchLog, plan: ScanPlan, since_ms: int) -> ScanPlan:
    """Return the plan with each partition read from its last marker that is older than `since_ms`, or the log's start.

    A partition that has no marker in the two million offsets before is read from there on.
    """
    spans = {(span.topic, span.partition): span for span in plan.spans}
    begins: dict[Place, int] = {}
    looked = {place: span.first for place, span in spans.items() if span.first > span.log_start}
    step = _FIRST_STEP
    while looked and step <= _LONGEST_STEP:
        narrow = [
            replace(spans[place], first=max(spans[place].log_start, at - step), stop=at)
            for place, at in looked.items()
        ]  # fmt: skip
        for batch in log.scan(ScanPlan(tuple(narrow))):
            if batch.is_control and batch.commit is not None and batch.max_timestamp_ms < since_ms:
                begins[batch.topic, batch.partition] = batch.base_offset
        first = {(span.topic, span.partition): span.first for span in narrow}
        looked = {
            place: first[place]
            for place in looked
            if place not in begins and first[place] > spans[place].log_start
        }  # fmt: skip
        begins |= {place: first[place] for place in first if place not in begins and place not in looked}
        step *= 8
    begins |= looked
    return replace(plan, spans=tuple(replace(s, first=begins.get((s.topic, s.partition), s.first)) for s in plan.spans))


def first_marker_ms(log: BatchLog, spans: Iterable[Span]) -> Mapping[Place, int]:
    """Return the time of the first marker in each span, of those that have one within two million offsets."""
    found: dict[Place, int] = {}
    waiting = {(span.topic, span.partition): span for span in spans if span.first < span.stop}
    step = _FIRST_STEP
    while waiting and step <= _LONGEST_STEP:
        narrow = [replace(span, stop=min(span.stop, span.first + step)) for span in waiting.values()]
        for batch in log.scan(ScanPlan(tuple(narrow))):
            if batch.is_control and batch.commit is not None:
                found.setdefault((batch.topic, batch.partition), batch.max_timestamp_ms)
        stops = {(span.topic, span.partition): span.stop for span in narrow}
        waiting = {
            place: replace(span, first=stops[place])
            for place, span in waiting.items()
            if place not in found and stops[place] < span.stop
        }
        step *= 8
    return found


@dataclass(slots=True)
class WindowGate:
    """Gives a fold the batches of one partition that belong to the window, which begins at `since_ms`.

    Batches wait until a marker dates them. `undated` counts those that no marker dates and that claim to be older: they
    may or may not have been written in the window.
    """

    fold: PartitionFold
    since_ms: int | None = None
    undated: int = 0
    _is_inside: bool = False
    _is_behind_older: bool = False
    _dropped: bool = False
    _waiting: list[Batch] = field(default_factory=list)

    def take(self, batch: Batch) -> None:
        """Take the next batch of the partition."""
        if self._is_inside or self.since_ms is None:
            self.fold.take(batch)
            return
        is_marker = batch.is_control and batch.commit is not None
        if is_marker and batch.max_timestamp_ms < self.since_ms:
            self._is_behind_older = self._dropped = True
            self._waiting.clear()
            self.fold.next_offset = batch.last_offset + 1
            return
        self._waiting.append(batch)
        if is_marker or len(self._waiting) >= _MOST_WAITING:
            self._pass_on(is_inside=is_marker)

    def finish(self) -> None:
        """Pass on the waiting batches, once the partition has been read to its end."""
        self._pass_on(is_inside=True)

    def _pass_on(self, *, is_inside: bool) -> None:
        waiting, self._waiting = self._waiting, []
        for batch in waiting:
            if self._may_be_older(batch):
                self.undated += 1
                self._dropped = True
                continue
            if self._dropped:
                self._begin_at(batch)
            self.fold.take(batch)
        self._is_inside = is_inside

    def _may_be_older(self, batch: Batch) -> bool:
        is_plain = not batch.is_control and not batch.is_transactional
        is_old = self.since_ms is not None and batch.max_timestamp_ms < self.since_ms
        return is_plain and is_old and not self._is_behind_older

    def _begin_at(self, batch: Batch) -> None:
        """Record that the skipped offsets are no hole."""
        self._dropped = False
        self.fold.next_offset = batch.base_offset
        self.fold.in_hole, self.fold.starts_inside = False, True


@dataclass(slots=True)
class BehindTheStop:
    """Gives the gates the batches behind the stops of a plan, as far as they belong to a window up to `until_ms`.

    Of transactions that end behind it they have the batches written before; whether these ended in other partitions is
    decided elsewhere.
    """

    until_ms: int
    gates: Mapping[Place, WindowGate]
    stops: dict[Place, int] = field(default_factory=dict)
    over: set[Place] = field(default_factory=set)
    undated: int = 0
    _waiting: dict[Place, list[Batch]] = field(default_factory=dict)

    def take(self, batch: Batch) -> None:
        """Take the next batch of its partition: what lies before a marker that is older than the end is inside."""
        place = (batch.topic, batch.partition)
        if place in self.over:
            return
        waiting = self._waiting.setdefault(place, [])
        is_marker = batch.is_control and batch.commit is not None
        if is_marker and batch.max_timestamp_ms >= self.until_ms:
            self.over.add(place)
            self._pass_on(place, waiting)
            waiting.clear()
        elif is_marker:
            self._pass_on(place, [*waiting, batch])
            waiting.clear()
        else:
            waiting.append(batch)

    def finish(self) -> None:
        """Pass on the waiting batches at the end; a plain batch with no marker behind it only if its own time is
        inside.
        """
        for place, waiting in self._waiting.items():
            inside = [each for each in waiting if each.is_transactional or each.max_timestamp_ms < self.until_ms]
            self._pass_on(place, inside)
            self.undated += len(waiting) - len(inside)

    def _pass_on(self, place: Place, batches: Iterable[Batch]) -> None:
        for batch in batches:
            self.gates[place].take(batch)
            self.stops[place] = batch.last_offset + 1


def read_past_the_stop(
    log: BatchLog, plan: ScanPlan, until_ms: int, gates: Mapping[Place, WindowGate]
) -> tuple[ScanPlan, tuple[Unseen, ...], int]:
    """Read the batches behind the stops of a plan and before `until_ms`.

    Returns the plan as far as it was really read then, what could not be read, and how many batches have no date.
    """
    behind = {(s.topic, s.partition): replace(s, first=s.stop, stop=s.end) for s in plan.spans if s.stop < s.end}
    if not behind:
        return plan, (), 0
    found = BehindTheStop(until_ms, gates)
    scan = log.scan(ScanPlan(tuple(behind.values())))
    for batch in scan:
        found.take(batch)
        if found.over == behind.keys():
            break
    found.finish()
    lost = tuple(
        each
        for each in scan.unseen()
        if each.reason is not UnseenReason.COMPACTED and (each.topic, each.partition) not in found.over
    )
    spans = (replace(span, stop=found.stops.get((span.topic, span.partition), span.stop)) for span in plan.spans)
    return replace(plan, spans=tuple(spans)), lost, found.undated
