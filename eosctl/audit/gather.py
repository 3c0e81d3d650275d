"""Reads the logs of a scope: the offsets topics with the connector's keys, then the output topics' batches.

Ctrl-C, and the deadline, end the reading; what was read before is judged all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eosctl.audit import codes
from eosctl.audit.identity import ongoing_places
from eosctl.audit.log.ledger import SETTLED_MS, Ledger, Transaction
from eosctl.audit.log.mirror import Mirror
from eosctl.audit.log.segments import Part, PartitionFold, Sink
from eosctl.audit.log.source_partitions import SourcePartitions
from eosctl.audit.log.tallies import Tallies
from eosctl.audit.offset_places import OffsetPlaces, find_places
from eosctl.audit.rules import ConnectorOffsets, OffsetsPartition, OutputPartitions, Unjudged
from eosctl.audit.scope import Scope, offsets_window
from eosctl.audit.window import Gate, begin_behind_a_marker, first_marker_ms, read_past_the_stop
from eosctl.core.batches import Batch, Place, ScanPlan, Span, Unseen, UnseenReason, Window
from eosctl.core.ids import ProducerId
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, InterruptedByUserError
from eosctl.events import Event
from eosctl.ports import BatchLog, BatchScan

JUDGED = "what was read until then was judged"
_PROGRESS_EVERY_S = 0.5
_LOOK_AT_CLOCK_EVERY = 256  # batches
_AGAIN_S = 0.5
_MB = 1_000_000
_NEVER_MS = 1 << 62
_ProducerAt = tuple[str, int, ProducerId]


@dataclass(slots=True)
class LogRead:
    """What the logs of a scope have; `ended_by` is what ended the reading before its end.

    `planned_ms` is when the ends of the logs were looked up. `window` is the time that is judged, `undated` how many
    batches nobody can say of whether they were written in it, `uncompared` what of the offsets could not be compared.
    """

    planned_ms: int
    tallies: Tallies = field(default_factory=Tallies)
    ledger: Ledger = field(default_factory=Ledger)
    sources: SourcePartitions = field(default_factory=SourcePartitions)
    outputs: OutputPartitions = field(init=False)
    window: Window = field(default_factory=Window)
    spans: tuple[Span, ...] = ()
    offsets_plan: ScanPlan = field(default_factory=lambda: ScanPlan(()))
    unseen: tuple[Unseen, ...] = ()
    offsets_unseen: tuple[Unseen, ...] = ()
    folds: dict[Place, PartitionFold] = field(default_factory=dict)
    undated: int = 0
    uncompared: tuple[str, ...] = ()
    ended_by: EosctlError | None = None

    def __post_init__(self) -> None:
        self.outputs = OutputPartitions(self.ledger, self.tallies)


def read_logs(scope: Scope, window: Window, *, check_crcs: bool, begin: Mapping[Place, int] | None = None) -> LogRead:
    """Read the logs; `begin` are the offsets at which the window begins, where it is not one of time.

    Raises what a BatchLog and a TopicStore raise, but for the end of the time.
    """
    read = LogRead(planned_ms=scope.app.clock.now_ms())
    with scope.app.batches() as log:
        plan = _planned_outputs(log, scope, window, begin)
        read.spans, read.unseen = plan.spans, plan.unseen
        read.window = _time_of(log, window, plan, is_at_offsets=begin is not None, planned_ms=read.planned_ms)
        if scope.is_mirror:
            read.outputs.mirror = Mirror(
                separator=scope.config.get("replication.policy.separator", "."),
                topics=frozenset(scope.topics),
                whole={(span.topic, span.partition) for span in plan.spans if span.first == 0},
            )
        # planned later: of every commit that the output topics show, the offsets are there
        wider = offsets_window(read.window if window.since_offset is None and begin is None else Window())
        offsets_plan = log.plan(scope.offsets_topics, wider)
        if wider.since_ms is not None:
            offsets_plan = begin_behind_a_marker(log, offsets_plan, wider.since_ms)
        read.offsets_plan = _one_earlier(offsets_plan)
        sinks: dict[Place, OffsetsPartition] = {}
        try:
            _read_offsets(scope, log, read, sinks)
            _read_outputs(scope, log, plan, read, check_crcs=check_crcs, window=window)
            _settle_offsets(scope, log, read)
            _find_recordless(scope, log, plan, read)
        except KeyboardInterrupt:
            read.ended_by = InterruptedByUserError(f"interrupted; {JUDGED}")
        except DeadlineError as exc:
            read.ended_by = DeadlineError(f"{exc.message}; {JUDGED}", hint=exc.hint)
    for sink in sinks.values():
        sink.close(read.window)
    return read


def _planned_outputs(log: BatchLog, scope: Scope, window: Window, begin: Mapping[Place, int] | None) -> ScanPlan:
    plan = log.plan(scope.topics, window)
    if begin is not None:
        return replace(plan, spans=tuple(_beginning_at(span, begin) for span in plan.spans))
    return plan if window.since_ms is None else begin_behind_a_marker(log, plan, window.since_ms)


def _beginning_at(span: Span, begin: Mapping[Place, int]) -> Span:
    first = begin.get((span.topic, span.partition), 0)
    return span._replace(first=min(max(first, span.log_start), span.stop))


def _one_earlier(plan: ScanPlan) -> ScanPlan:
    """So that a hole right at the beginning is seen: what a time led to may be what compaction left behind it."""
    return replace(plan, spans=tuple(span._replace(first=max(span.log_start, span.first - 1)) for span in plan.spans))


def _time_of(log: BatchLog, window: Window, plan: ScanPlan, *, is_at_offsets: bool, planned_ms: int) -> Window:
    """Return the time of the window; of one of offsets, that of the first marker in it."""
    if window.since_offset is None and not is_at_offsets:
        return Window(since_ms=window.since_ms, until_ms=window.until_ms)
    times_ms = first_marker_ms(log, plan.spans).values()
    return Window(since_ms=min(times_ms, default=planned_ms), until_ms=window.until_ms)


def _read_offsets(scope: Scope, log: BatchLog, read: LogRead, sinks: dict[Place, OffsetsPartition]) -> None:
    folds: dict[Place, PartitionFold] = {}
    lost: list[Unseen] = []
    for topic in scope.offsets_topics:
        spans = [span for span in read.offsets_plan.spans if span.topic == topic]
        places, missing = find_places(scope, topic, spans, is_mirror=read.outputs.mirror is not None)
        read.uncompared += places.uncompared
        lost += [
            Unseen(topic, number, UnseenReason.UNREADABLE, detail=f"{topic}-{number}: {why}")
            for number, why in sorted(missing.items())
        ]
        for span in spans:
            sinks[topic, span.partition] = _sink(scope, read, places, span)
            folds[topic, span.partition] = _fold(sinks[topic, span.partition], span)
    scan = log.scan(read.offsets_plan)
    for batch in _with_progress(scope, scan, read.offsets_plan, "reading offsets topics"):
        folds[batch.topic, batch.partition].take(batch)
    for place, fold in folds.items():
        for part in fold.still_open():
            sinks[place].left_open(part)
    read.offsets_unseen = (*lost, *scan.unseen())
    ledger = read.ledger
    ledger.is_unread = any(each.reason is UnseenReason.UNREADABLE for each in read.offsets_unseen)
    ledger.complete_since_ms = max(_complete_since(folds, read), scope.offsets_gone_until_ms)
    ledger.close_offsets()
    if (mirror := read.outputs.mirror) is not None:
        mirror.has_lost_offsets = ledger.is_unread or ledger.complete_since_ms >= 0


def _sink(scope: Scope, read: LogRead, places: OffsetPlaces, span: Span) -> OffsetsPartition:
    return OffsetsPartition(
        read.ledger, read.tallies, places.of.get(span.partition, ConnectorOffsets()), places.key_names, read.sources,
        is_in_use=span.topic == scope.offsets_topics[0], mirror=read.outputs.mirror,
        is_global=span.topic == scope.app.target.offset_topic, window=read.window,
    )  # fmt: skip


def _complete_since(folds: dict[Place, PartitionFold], read: LogRead) -> int:
    """From when on no offset of the connector is missing: what was compacted or removed is older than what is left."""
    since_ms = -1
    for span in read.offsets_plan.spans:
        fold = folds[span.topic, span.partition]
        since_ms = max(since_ms, fold.lost_until_ms)
        if fold.next_offset < span.stop or fold.in_hole:
            read.ledger.is_unread = True
            since_ms = max(since_ms, read.planned_ms)
    return since_ms


def _fold(sink: Sink, span: Span) -> PartitionFold:
    """Of a partition that is read from `span.first` on: what was before may be lost, or lie before the window."""
    return PartitionFold(
        sink,
        starts_inside=span.first > span.log_start,
        next_offset=span.first,
        is_cut_off=span.first == span.log_start > 0,
    )


def _read_outputs(
    scope: Scope, log: BatchLog, plan: ScanPlan, read: LogRead, *, check_crcs: bool, window: Window
) -> None:
    outputs, folds = read.outputs, read.folds
    gates: dict[Place, Gate] = {}
    for span in plan.spans:
        place = (span.topic, span.partition)
        folds[place] = _fold(outputs, span)
        gates[place] = Gate(folds[place], window.since_ms)
    scan = log.scan(plan, check_crc=check_crcs)
    try:
        for batch in _with_progress(scope, scan, plan, "reading output topics"):
            gates[batch.topic, batch.partition].take(batch)
    finally:
        read.unseen = tuple(scan.unseen())
    if window.until_ms is not None:
        extended, lost, undated = read_past_the_stop(log, plan, window.until_ms, gates)
        read.spans, read.unseen, read.undated = extended.spans, (*read.unseen, *lost), undated
    for gate in gates.values():
        gate.finish()
        read.undated += gate.undated
    if (mirror := outputs.mirror) is not None:
        for place in [place for place, fold in folds.items() if fold.removed]:
            mirror.leave_out(place)
    outputs.close()
    unreadable = {(each.topic, each.partition) for each in read.unseen if each.reason is UnseenReason.UNREADABLE}
    left: list[tuple[int, Part]] = []
    for span in plan.spans:
        place = (span.topic, span.partition)
        if span.stop < span.end:
            continue  # what a window cuts off has its end behind it
        is_lost = place in unreadable or folds[place].next_offset < span.stop
        for part in folds[place].still_open():
            if is_lost:
                outputs.left_open(part, ended_since=None)
            elif read.ledger.is_over(part.producer_id, part.epoch):
                left.append((span.stop, part))
            elif read.ledger.may_be_over(part) and (part.producer_id, place) not in ongoing_places(
                scope.app, [part.producer_id]
            ):
                left.append((span.stop, part))
            else:
                outputs.left_open(part)
    for part, marker in _markers_behind(scope, log, left):
        outputs.left_open(part, ended_since=None if marker is None else marker is not False)


def _should_be_over(ledger: Ledger, part: Part) -> bool:
    return ledger.is_over(part.producer_id, part.epoch) or ledger.may_be_over(part)


def _markers_behind(
    scope: Scope, log: BatchLog, left: Sequence[tuple[int, Part]]
) -> Iterator[tuple[Part, Batch | bool | None]]:
    """Yield each part that must have ended with the marker that came behind its stop; False: none; None: not read.

    Brokers write a transaction's markers one after the other: what is not there yet gets a moment.
    """
    waiting = {(part.topic, part.partition, part.producer_id): (stop, part) for stop, part in left}
    several = [part for _stop, part in left if waiting[part.topic, part.partition, part.producer_id][1] is not part]
    yield from ((part, False) for part in several)
    lost: set[Place] = set()
    for _ in Deadline.after(min(SETTLED_MS / 1000, scope.app.deadline.remaining_s() / 2), scope.app.clock).rounds(
        _AGAIN_S
    ):
        if not waiting:
            return
        ended, lost = _first_markers(log, waiting)
        for key, marker in ended.items():
            if key in waiting:
                yield waiting.pop(key)[1], marker
    for _stop, part in waiting.values():
        yield part, None if (part.topic, part.partition) in lost else False


def _first_markers(
    log: BatchLog, waiting: Mapping[_ProducerAt, tuple[int, Part]]
) -> tuple[dict[_ProducerAt, Batch], set[Place]]:
    stops: dict[Place, int] = {}
    for (topic, partition, _producer), (stop, _part) in waiting.items():
        stops[topic, partition] = stop
    plan = log.plan(sorted({topic for topic, _partition in stops}), Window())
    spans = {(span.topic, span.partition): span for span in plan.spans if (span.topic, span.partition) in stops}
    narrow = tuple(span._replace(first=min(stops[place], span.stop)) for place, span in spans.items())
    scan = log.scan(ScanPlan(narrow))
    ended: dict[_ProducerAt, Batch] = {}
    for batch in scan:
        if batch.is_control and batch.commit is not None and batch.base_offset >= stops[batch.topic, batch.partition]:
            ended.setdefault((batch.topic, batch.partition, batch.producer_id), batch)
    lost = {(each.topic, each.partition) for each in scan.unseen()} | (stops.keys() - spans.keys())
    return ended, lost


def _settle_offsets(scope: Scope, log: BatchLog, read: LogRead) -> None:
    """Judge the offsets of transactions that have not ended in the offsets topic, though they must have."""
    stops = {(span.topic, span.partition): span.stop for span in read.offsets_plan.spans}
    over = [part for part in read.ledger.open_offsets if _should_be_over(read.ledger, part)]
    left = [(stops[part.topic, part.partition], part) for part in over]
    for part, marker in _markers_behind(scope, log, left):
        is_certain = read.ledger.is_over(part.producer_id, part.epoch)
        if marker is None or part.is_torn:
            read.outputs.unjudged[part.producer_id, Unjudged.TORN] += 1
        elif not isinstance(marker, bool):
            if marker.commit is not True and is_certain:
                read.tallies.part(codes.TRANSACTION_TORN, part)
        elif is_certain:
            read.tallies.part(codes.COMMIT_MARKERS_MISSING, part)
        else:
            read.outputs.unjudged[part.producer_id, Unjudged.UNMARKED] += 1


def _find_recordless(scope: Scope, log: BatchLog, plan: ScanPlan, read: LogRead) -> None:
    """Find transactions that committed offsets, and have no record in the output topics; those are all read by now."""
    since_ms, until_ms = _whole_time(plan, read)
    if since_ms >= until_ms:
        return
    boundary = scope.config.get("transaction.boundary", "").lower() == "connector"
    found = {
        each
        for producer_id in read.ledger.producers()
        for each in read.ledger.without_records(producer_id, since_ms=since_ms, until_ms=until_ms)
        if not (boundary and read.ledger.follows_an_abort(each))
    }
    if found:
        found -= _have_records_behind(log, plan, found)
    if found:
        _place_recordless(log, read, found)
    for producer_id in read.ledger.producers():
        count = read.ledger.count_without_records(producer_id, since_ms=since_ms, until_ms=until_ms)
        if count:
            read.outputs.unjudged[producer_id, Unjudged.RECORDLESS] += count


def _whole_time(plan: ScanPlan, read: LogRead) -> tuple[int, int]:
    """Return from when to when all records of all output topics are there, by markers; -1 is since ever."""
    since_ms = -1 if read.window.since_ms is None else read.window.since_ms
    until_ms = _NEVER_MS if read.window.until_ms is None else read.window.until_ms
    unreadable = any(each.reason is UnseenReason.UNREADABLE for each in read.unseen)
    for span in plan.spans:
        fold = read.folds[span.topic, span.partition]
        if fold.in_hole or unreadable:
            return 0, 0
        since_ms = max(since_ms, fold.removed_ms)
        if fold.starts_inside and read.window.since_ms is None:
            since_ms = max(since_ms, fold.first_marker_ms)
        if span.stop < span.end and read.window.until_ms is None:
            until_ms = min(until_ms, fold.last_marker_ms)
    return since_ms, until_ms


def _have_records_behind(log: BatchLog, plan: ScanPlan, wanted: Collection[Transaction]) -> set[Transaction]:
    """Find those that have records behind what was read: the ends of the output topics were looked up first."""
    stops = {(span.topic, span.partition): span.stop for span in plan.spans}
    now = log.plan(sorted({topic for topic, _partition in stops}), Window())
    behind = tuple(
        span._replace(first=min(stops[span.topic, span.partition], span.stop))
        for span in now.spans
        if (span.topic, span.partition) in stops
    )
    return {
        each
        for batch in log.scan(ScanPlan(behind))
        if not batch.is_control and (each := Transaction(batch.producer_id, batch.producer_epoch)) in wanted
    }


def _place_recordless(log: BatchLog, read: LogRead, found: set[Transaction]) -> None:
    """Name where their offsets are; a marker in an output partition that has no record of it shows a loss there."""
    waiting = set(found)
    for batch in log.scan(read.offsets_plan):
        each = Transaction(batch.producer_id, batch.producer_epoch)
        if not batch.is_control and batch.is_transactional and each in waiting:
            waiting.discard(each)
            if each in read.ledger.bare_commits:
                read.tallies.batch(codes.OFFSETS_WITHOUT_RECORDS, batch)
            else:
                read.outputs.unjudged[batch.producer_id, Unjudged.RECORDLESS] += 1


def _with_progress(scope: Scope, scan: BatchScan, plan: ScanPlan, doing: str) -> Iterator[Batch]:
    """The batches, with an event now and then: how many MB of about how many, as far as offsets show that."""
    total, first = (sum(ends) for ends in ([s.stop - s.first for s in plan.spans], [s.first for s in plan.spans]))
    clock, size_bytes = scope.app.clock, 0
    told_s = clock.monotonic_s()
    for number, batch in enumerate(scan):
        yield batch
        size_bytes += batch.size_bytes
        if number % _LOOK_AT_CLOCK_EVERY == 0 and clock.monotonic_s() - told_s >= _PROGRESS_EVERY_S:
            told_s = clock.monotonic_s()
            share = (sum(scan.positions().values()) - first) / max(total, 1)
            done = size_bytes // _MB
            scope.app.on_event(Event(doing, done=done, total=max(done + 1, round(done / max(share, 0.001))), unit="MB"))
    scope.app.on_event(Event(doing, done=size_bytes // _MB, total=size_bytes // _MB, unit="MB"))
