"""Reads the logs of a scope: the offsets topics with the connector's keys, then the output topics' batches.

Ctrl-C, and the deadline, end the reading; what was read before is judged all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from eosctl.audit.log.mirror import Mirror
from eosctl.audit.log.segments import PartitionFold, Sink
from eosctl.audit.reading.places import OffsetPlaces, find_places
from eosctl.audit.reading.window import WindowGate, begin_behind_a_marker, first_marker_ms, read_past_the_stop, settle
from eosctl.audit.rules import ConnectorOffsets, LogRead, OffsetsPartition
from eosctl.audit.scope import Scope, offsets_window
from eosctl.core.records import Batch, Place, ScanPlan, Span, Unseen, UnseenReason, Window
from eosctl.deadline import Event
from eosctl.errors import DeadlineError, InterruptedByUserError
from eosctl.ports import BatchLog, BatchScan

JUDGED = "what was read until then was judged"
_PROGRESS_EVERY_S = 0.5
_LOOK_AT_CLOCK_EVERY = 256  # batches
_MB = 1_000_000


def read_logs(
    scope: Scope,
    window: Window,
    *,
    check_crcs: bool,
    begin: Mapping[Place, int] | None = None,
    end: Mapping[Place, int] | None = None,
) -> LogRead:
    """Read the logs; `begin` and `end` are the offsets where the window begins and ends, as in AuditRequest.

    Raises what a BatchLog and a TopicReader raise, but for the end of the time.
    """
    read = LogRead(planned_ms=scope.app.clock.now_ms())
    with scope.app.batches() as log:
        plan = _ending_at(_planned_outputs(log, scope, window, begin), end or {})
        read.spans, read.unseen = plan.spans, plan.unseen
        read.begins_at_offsets = window.since_offset is not None or begin is not None
        read.window = _time_of(log, window, plan, begins_at_offsets=read.begins_at_offsets, planned_ms=read.planned_ms)
        if scope.is_mirror:
            read.outputs.mirror = Mirror(
                separator=scope.config.get("replication.policy.separator", "."),
                topics=frozenset(scope.topics),
                whole={(span.topic, span.partition) for span in plan.spans if span.first == 0},
            )
        # planned later: of every commit that the output topics show, the offsets are there
        wider = offsets_window(Window() if read.begins_at_offsets else read.window)
        offsets_plan = log.plan(scope.offsets_topics, wider)
        if wider.since_ms is not None:
            offsets_plan = begin_behind_a_marker(log, offsets_plan, wider.since_ms)
        offsets_plan = _one_earlier(_ending_at(offsets_plan, end or {}))
        read.offsets_plan = replace(
            offsets_plan, spans=tuple(_beginning_if_named(span, begin or {}) for span in offsets_plan.spans)
        )
        sinks: dict[Place, OffsetsPartition] = {}
        try:
            _read_offsets(scope, log, read, sinks)
            _read_outputs(scope, log, plan, read, check_crcs=check_crcs, window=window)
            settle(scope, log, plan, read)
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
    return replace(span, first=min(max(first, span.log_start), span.stop))


def _beginning_if_named(span: Span, begin: Mapping[Place, int]) -> Span:
    return _beginning_at(span, begin) if (span.topic, span.partition) in begin else span


def _ending_at(plan: ScanPlan, end: Mapping[Place, int]) -> ScanPlan:
    """Leave out what lies behind `end`, as if it were not there yet."""
    return replace(
        plan, spans=tuple(_cut(span, end.get((span.topic, span.partition), span.end)) for span in plan.spans)
    )


def _cut(span: Span, at: int) -> Span:
    at = max(at, span.log_start)
    ends = {name: min(getattr(span, name), at) for name in ("first", "stop", "last_stable", "end")}
    return replace(span, **ends)


def _one_earlier(plan: ScanPlan) -> ScanPlan:
    """Begin each span one offset earlier: a hole right at the beginning, left by compaction, is seen only so."""
    return replace(plan, spans=tuple(replace(span, first=max(span.log_start, span.first - 1)) for span in plan.spans))


def _time_of(log: BatchLog, window: Window, plan: ScanPlan, *, begins_at_offsets: bool, planned_ms: int) -> Window:
    """Return the time of the window; of one of offsets, that of the first marker in it."""
    if not begins_at_offsets or all(span.first == 0 for span in plan.spans):
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
    """Return the time since which no offset of the connector is missing; compacted or removed ones are older."""
    since_ms = -1
    for span in read.offsets_plan.spans:
        fold = folds[span.topic, span.partition]
        since_ms = max(since_ms, fold.lost_until_ms)
        if fold.next_offset < span.stop or fold.in_hole:
            read.ledger.is_unread = True
            since_ms = max(since_ms, read.planned_ms)
    return since_ms


def _fold(sink: Sink, span: Span) -> PartitionFold:
    """Return the fold of a partition read from `span.first`; what came before may be lost, or precede the window."""
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
    gates: dict[Place, WindowGate] = {}
    for span in plan.spans:
        place = (span.topic, span.partition)
        folds[place] = _fold(outputs, span)
        gates[place] = WindowGate(folds[place], window.since_ms)
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


def _with_progress(scope: Scope, scan: BatchScan, plan: ScanPlan, doing: str) -> Iterator[Batch]:
    """Yield the batches, with an event from time to time: MB read, and the estimated total, by offsets."""
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
