"""The bounds of a window of time in partitions' logs, and a second look at what the first reading left open.

Bounds go by markers, which brokers stamp with their own clock. Brokers turn a time into the offset of the first record
that is as young, and sources give records any time: one of the year 2100 would begin or end the window there, and one
of long ago be left out. So a window is positions: it begins behind the last marker that is older than its begin, and
ends at the first marker that is as young as its end. Only where there is no such marker, a record's own time is all
there is: then it proves neither guilt nor innocence.

The second look is for markers still to come, and for the records of transactions that have only offsets. Ends of
partitions are looked up one after the other, and brokers write the markers of a transaction one after the other. So
before something is reported as missing, what lies behind the ends is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from eosctl.audit import codes
from eosctl.audit.log.ledger import CLOCKS_MS, Ledger, Transaction
from eosctl.audit.log.segments import Part, PartitionFold
from eosctl.audit.rules import LogRead, Unjudged
from eosctl.audit.scope import Scope, unended_places
from eosctl.core.ids import ProducerId
from eosctl.core.records import Batch, Place, ScanPlan, Span, Unseen, UnseenReason, Window
from eosctl.deadline import Deadline
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


_AGAIN_S = 0.5
_MARKERS_S = 10.0
"""The time for a transaction's markers to reach all of its partitions."""
_NEVER_MS = 1 << 62
_ProducerAt = tuple[str, int, ProducerId]


def settle(scope: Scope, log: BatchLog, plan: ScanPlan, read: LogRead) -> None:
    """Judge parts without an end, and transactions with offsets only; `plan` is the plan of the output topics."""
    cut_off = {(span.topic, span.partition) for span in plan.spans if span.stop < span.end}
    _settle_outputs(scope, log, read, cut_off)
    _settle_offsets(scope, log, read)
    _find_recordless(scope, log, read, cut_off)


def _settle_outputs(scope: Scope, log: BatchLog, read: LogRead, cut_off: Collection[Place]) -> None:
    """Judge the transactions that have not ended in an output partition; what a window has `cut_off` ends behind it."""
    outputs, ledger = read.outputs, read.ledger
    unreadable = {(each.topic, each.partition) for each in read.unseen if each.reason is UnseenReason.UNREADABLE}
    left: list[tuple[int, Part]] = []
    for span in read.spans:
        place = (span.topic, span.partition)
        is_lost = place in unreadable or read.folds[place].next_offset < span.stop
        for part in read.folds[place].still_open():
            ledger.has_records(part.producer_id, part.epoch)
            if is_lost and place not in cut_off:
                outputs.left_open(part, ended_since=None)
            elif ledger.is_over(part.producer_id, part.epoch) or _is_doubtful(scope, ledger, part):
                left.append((span.stop, part))
            elif place not in cut_off:
                outputs.left_open(part, ended_since=True)
    for part, marker in _markers_behind(scope, log, left):
        has_ended = None if marker is None else marker is not False or _is_still_to_come(scope, ledger, part)
        if not (has_ended and (part.topic, part.partition) in cut_off):
            outputs.left_open(part, ended_since=has_ended)


def _is_doubtful(scope: Scope, ledger: Ledger, part: Part) -> bool:
    """Check whether the part may be over, as others of its epoch are, unless its coordinator reports it as open."""
    return ledger.may_be_over(part) and not _is_unended(scope, part)


def _is_unended(scope: Scope, part: Part) -> bool | None:
    """Check whether its coordinator reports that its marker is still to come; None: it does not know the producer."""
    unended = unended_places(scope.app, [part.producer_id]).get(part.producer_id)
    return None if unended is None else (part.epoch, (part.topic, part.partition)) in unended


def _is_still_to_come(scope: Scope, ledger: Ledger, part: Part) -> bool | None:
    """Check whether its marker is still to come, as a leader may be away for long; None: unknown.

    A producer begins no later transaction before all markers of a former one are written.
    """
    return False if ledger.is_over(part.producer_id, part.epoch + 1) else _is_unended(scope, part)


def _markers_behind(
    scope: Scope, log: BatchLog, left: Sequence[tuple[int, Part]]
) -> Iterator[tuple[Part, Batch | bool | None]]:
    """Yield each part that must have ended with the marker that came behind its stop; False: none; None: not read.

    Brokers write a transaction's markers one after the other: missing ones get a moment to come.
    """
    waiting: dict[_ProducerAt, tuple[int, list[Part]]] = {}
    for stop, part in left:
        waiting.setdefault((part.topic, part.partition, part.producer_id), (stop, []))[1].append(part)
    lost: set[Place] = set()
    patience_s = min(_MARKERS_S, scope.app.deadline.remaining_s() / 2)
    for _ in Deadline.after(patience_s, scope.app.clock).rounds(_AGAIN_S):
        if not waiting:
            return
        ended, lost = _first_markers(log, {key: stop for key, (stop, _parts) in waiting.items()})
        for key in ended.keys() & waiting.keys():
            yield from ((part, ended[key]) for part in waiting.pop(key)[1])
    for _stop, parts in waiting.values():
        yield from ((part, None if (part.topic, part.partition) in lost else False) for part in parts)


def _first_markers(log: BatchLog, waiting: Mapping[_ProducerAt, int]) -> tuple[dict[_ProducerAt, Batch], set[Place]]:
    """Find the first marker of each producer behind an offset, and the partitions that could not be read."""
    stops = {(topic, partition): stop for (topic, partition, _producer), stop in waiting.items()}
    plan = log.plan(sorted({topic for topic, _partition in stops}), Window())
    spans = {(span.topic, span.partition): span for span in plan.spans if (span.topic, span.partition) in stops}
    narrow = tuple(replace(span, first=min(stops[place], span.stop)) for place, span in spans.items())
    scan = log.scan(ScanPlan(narrow))
    ended: dict[_ProducerAt, Batch] = {}
    for batch in scan:
        if batch.is_control and batch.commit is not None and batch.base_offset >= stops[batch.topic, batch.partition]:
            ended.setdefault((batch.topic, batch.partition, batch.producer_id), batch)
            if waiting.keys() <= ended.keys():
                break
    lost = {(each.topic, each.partition) for each in scan.unseen()} | (stops.keys() - spans.keys())
    return ended, lost


def _settle_offsets(scope: Scope, log: BatchLog, read: LogRead) -> None:
    """Judge the offsets of transactions that have not ended in the offsets topic, though they must have."""
    stops = {(span.topic, span.partition): span.stop for span in read.offsets_plan.spans}
    over = [
        part
        for part in read.ledger.open_offsets
        if read.ledger.is_over(part.producer_id, part.epoch) or _is_doubtful(scope, read.ledger, part)
    ]
    left = [(stops[part.topic, part.partition], part) for part in over]
    for part, marker in _markers_behind(scope, log, left):
        is_certain = read.ledger.is_over(part.producer_id, part.epoch)
        if marker is None or part.is_torn:
            read.outputs.unjudged[part.producer_id, Unjudged.TORN] += 1
        elif not isinstance(marker, bool):
            if marker.commit is not True and is_certain:
                read.tallies.part(codes.TRANSACTION_TORN, part)
        elif is_certain:
            is_to_come = _is_still_to_come(scope, read.ledger, part)
            if is_to_come is None:
                read.outputs.unjudged[part.producer_id, Unjudged.TORN] += 1
            elif not is_to_come:
                read.tallies.part(codes.COMMIT_MARKERS_MISSING, part)
        else:
            read.outputs.unjudged[part.producer_id, Unjudged.UNMARKED] += 1


def _find_recordless(scope: Scope, log: BatchLog, read: LogRead, cut_off: Collection[Place]) -> None:
    """Find transactions that committed offsets and have no record in the output topics, which are all read by now.

    The records of those that ended too early may have been removed: then the proven window begins behind them.
    """
    ledger, outputs = read.ledger, read.outputs
    since_ms, until_ms = _whole_time(read, cut_off)
    boundary = scope.config.get("transaction.boundary", "").lower() == "connector"
    found = {
        each
        for producer_id in ledger.producers()
        for each in ledger.without_records(producer_id, since_ms=_asked_ms(read), until_ms=until_ms)
        if not (boundary and ledger.follows_an_abort(each))
    }
    found -= {Transaction(part.producer_id, part.epoch) for part in read.ledger.went_back}  # a finding of its own
    shared = list(ledger.shared_without_records(since_ms=_asked_ms(read), until_ms=until_ms - CLOCKS_MS))
    if not found and not shared:
        return
    begun, ended = _what_lies_behind(log, read.spans)
    found -= begun
    if found:
        _place_recordless(log, read, found, since_ms)
    for producer_id, ended_ms in shared:
        if any(abs(ended_ms - each) <= CLOCKS_MS for each in ended.get(producer_id, ())):
            continue
        if ended_ms < since_ms:
            outputs.proven_since_ms = max(outputs.proven_since_ms, ended_ms)
        else:
            outputs.unjudged[producer_id, Unjudged.RECORDLESS] += 1


def _asked_ms(read: LogRead) -> int:
    return -1 if read.window.since_ms is None else read.window.since_ms


def _whole_time(read: LogRead, cut_off: Collection[Place]) -> tuple[int, int]:
    """Return the range of time, by markers, in which no record of any output topic is missing; -1: no lower bound."""
    since_ms = _asked_ms(read)
    until_ms = _NEVER_MS if read.window.until_ms is None else read.window.until_ms
    unreadable = any(each.reason is UnseenReason.UNREADABLE for each in read.unseen)
    for place, fold in read.folds.items():
        if (fold.in_hole and not fold.is_empty) or unreadable:
            return _NEVER_MS, until_ms
        since_ms = max(since_ms, fold.removed_ms)
        if fold.starts_inside and read.begins_at_offsets:
            since_ms = max(since_ms, fold.first_marker_ms if fold.first_marker_ms >= 0 else _NEVER_MS)
        if place in cut_off and read.window.until_ms is None:
            until_ms = min(until_ms, fold.last_marker_ms)
    return since_ms if since_ms < 0 else since_ms + CLOCKS_MS, until_ms


def _what_lies_behind(
    log: BatchLog, spans: Sequence[Span]
) -> tuple[set[Transaction], Mapping[ProducerId, Sequence[int]]]:
    """Find the transactions that have records behind what was read, and when each producer's ended there.

    The ends of the output topics were looked up first, so that the offsets topics have later transactions.
    """
    stops = {(span.topic, span.partition): span.stop for span in spans}
    now = log.plan(sorted({topic for topic, _partition in stops}), Window())
    behind = tuple(
        replace(span, first=min(stops[span.topic, span.partition], span.stop))
        for span in now.spans
        if (span.topic, span.partition) in stops
    )
    begun, ended = set[Transaction](), defaultdict[ProducerId, list[int]](list)
    for batch in log.scan(ScanPlan(behind)):
        if not batch.is_control:
            begun.add(Transaction(batch.producer_id, batch.producer_epoch))
        elif batch.commit is not None:
            ended[batch.producer_id].append(batch.max_timestamp_ms)
    return begun, ended


def _place_recordless(log: BatchLog, read: LogRead, found: set[Transaction], since_ms: int) -> None:
    """Name where their offsets are; a marker in an output partition that has no record of it shows a loss there."""
    outputs = read.outputs
    begun: dict[_ProducerAt, Batch] = {}
    for batch in log.scan(read.offsets_plan):
        producer_at = (batch.topic, batch.partition, batch.producer_id)
        if not batch.is_control:
            if batch.is_transactional and Transaction(batch.producer_id, batch.producer_epoch) in found:
                begun.setdefault(producer_at, batch)
            continue
        first = begun.pop(producer_at, None)
        if first is None or batch.producer_epoch == first.producer_epoch:  # an earlier one with the same epoch
            continue
        each = Transaction(first.producer_id, first.producer_epoch)
        if each not in found:
            continue
        found.discard(each)
        if batch.max_timestamp_ms < since_ms:
            outputs.proven_since_ms = max(outputs.proven_since_ms, batch.max_timestamp_ms)
        elif each in read.ledger.bare_commits:
            read.tallies.batch(codes.OFFSETS_WITHOUT_RECORDS, first)
        else:
            outputs.unjudged[batch.producer_id, Unjudged.RECORDLESS] += 1
