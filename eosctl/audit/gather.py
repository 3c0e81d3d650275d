"""Reads the logs of a scope: the offsets topics with the connector's keys, then the output topics' batches.

Ctrl-C, and the deadline, end the reading; what was read before is judged all the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eosctl.audit.log.committed_offsets import SETTLED_MS, CommittedOffsets
from eosctl.audit.log.mirror import Mirror, MirrorOffset, mirror_offset
from eosctl.audit.log.segments import Part, PartitionFold, Sink
from eosctl.audit.log.tallies import Tallies
from eosctl.audit.rules import OffsetsPartition, OutputPartitions
from eosctl.audit.scope import Scope, offsets_window
from eosctl.audit.until import read_past_the_stop
from eosctl.core.batches import Batch, Place, ScanPlan, Span, Unseen, UnseenReason, Window
from eosctl.core.offsets.records import is_nothing
from eosctl.core.records import Record
from eosctl.errors import DeadlineError, EosctlError, InterruptedByUserError, UnreachableError
from eosctl.events import Event
from eosctl.offsets.history.events import ConnectorSieve, members_of
from eosctl.ports import BatchLog, BatchScan

JUDGED = "what was read until then was judged"
_PROGRESS_EVERY_S = 0.5
_LOOK_AT_CLOCK_EVERY = 256  # batches
_MB = 1_000_000


@dataclass(slots=True)
class LogRead:
    """What the logs of a scope have; `ended_by` is what ended the reading before its end.

    `planned_ms` is when the ends of the logs were looked up.
    """

    planned_ms: int
    tallies: Tallies = field(default_factory=Tallies)
    committed: CommittedOffsets = field(default_factory=CommittedOffsets)
    outputs: OutputPartitions = field(init=False)
    spans: tuple[Span, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    offsets_unseen: tuple[Unseen, ...] = ()
    folds: dict[Place, PartitionFold] = field(default_factory=dict)
    ended_by: EosctlError | None = None

    def __post_init__(self) -> None:
        self.committed.settled_ms = self.planned_ms - SETTLED_MS
        self.outputs = OutputPartitions(self.committed, self.tallies)


def read_logs(scope: Scope, window: Window, *, check_crcs: bool) -> LogRead:
    """Reads; raises what a BatchLog and a TopicStore raise, but for the end of the time."""
    read = LogRead(planned_ms=scope.app.clock.now_ms())
    with scope.app.batches() as log:
        plan = log.plan(scope.topics, window)
        read.spans, read.unseen = plan.spans, plan.unseen
        read.outputs.since_ms = -1 if window.since_ms is None else window.since_ms
        if scope.is_mirror:
            read.outputs.mirror = Mirror(
                separator=scope.config.get("replication.policy.separator", "."),
                topics=frozenset(scope.topics),
                whole={(span.topic, span.partition) for span in plan.spans if span.first == 0},
            )
        # planned later: of every commit that the output topics show, the offsets are there
        offsets_plan = _one_earlier(log.plan(scope.offsets_topics, offsets_window(window)))
        sinks: dict[Place, OffsetsPartition] = {}
        try:
            _read_offsets(scope, log, offsets_plan, read, sinks)
            _read_outputs(scope, log, plan, read, check_crcs=check_crcs, until_ms=window.until_ms)
        except KeyboardInterrupt:
            read.ended_by = InterruptedByUserError(f"interrupted; {JUDGED}")
        except DeadlineError as exc:
            read.ended_by = DeadlineError(f"{exc.message}; {JUDGED}", hint=exc.hint)
    for sink in sinks.values():
        sink.close(_time_of(window, read))
    return read


def _one_earlier(plan: ScanPlan) -> ScanPlan:
    """So that a hole right at the beginning is seen: what a time led to may be what compaction left behind it."""
    return replace(plan, spans=tuple(span._replace(first=max(span.log_start, span.first - 1)) for span in plan.spans))


def _time_of(window: Window, read: LogRead) -> Window:
    """The time of a window of offsets is that of the outputs in it, by the brokers' clocks where there are markers."""
    times_ms = [fold.first_ms if fold.first_marker_ms < 0 else fold.first_marker_ms for fold in read.folds.values()]
    began_ms, ended_ms = min((each for each in times_ms if each >= 0), default=read.planned_ms), window.until_ms
    if window.until_offset is not None:
        ended_ms = max((each.to_ms for each in read.outputs.written.values()), default=began_ms) + 1
    return Window(since_ms=began_ms if window.since_offset is not None else window.since_ms, until_ms=ended_ms)


@dataclass(slots=True)
class _Places:
    """Where the connector's offsets lie in each partition of a topic, and those of a MirrorMaker; no record is kept."""

    values: dict[int, array[int]] = field(default_factory=dict)
    deletions: dict[int, array[int]] = field(default_factory=dict)
    mirrored: dict[int, dict[int, MirrorOffset]] = field(default_factory=dict)

    def sieve(self, connector: str, *, is_mirror: bool) -> Callable[[Sequence[Record]], Sequence[Record]]:
        """What TopicStore.read hands its records to."""
        its = ConnectorSieve(connector)

        def look(records: Sequence[Record]) -> Sequence[Record]:
            for record in its(records):
                there = self.deletions if _is_deletion(record, its) else self.values
                there.setdefault(record.partition, array("q")).append(record.offset)
                copied = (
                    mirror_offset(its.keys[record.key or b""].partition, members_of(record.value), record.topic)
                    if is_mirror
                    else None
                )
                if copied is not None:
                    self.mirrored.setdefault(record.partition, {})[record.offset] = copied
            return ()

        return look


def _is_deletion(record: Record, sieve: ConnectorSieve) -> bool:
    """Also an offset without a source partition, which no task ever finds again."""
    return is_nothing(record.value) or sieve.keys[record.key or b""].partition is None


def _find_places(
    scope: Scope, topic: str, spans: Sequence[Span], *, is_mirror: bool
) -> tuple[_Places, Mapping[int, str]]:
    """The connector's offsets in what can be read of these partitions, and why of the others nothing can."""
    places, wanted = _Places(), {span.partition: span.first for span in spans}
    if not wanted:
        return places, {}
    sieve = places.sieve(scope.connector, is_mirror=is_mirror)
    try:
        with scope.app.with_whole_timeout().topics() as store:
            found = store.read(topic, isolation="read_uncommitted", partly=True, since=wanted, sieve=sieve, renews=True)
    except UnreachableError as exc:
        return places, dict.fromkeys(wanted, exc.message)
    return places, {number: str(why) for number, why in found.missing.items() if number in wanted}


def _read_offsets(
    scope: Scope, log: BatchLog, plan: ScanPlan, read: LogRead, sinks: dict[Place, OffsetsPartition]
) -> None:
    folds: dict[Place, PartitionFold] = {}
    lost: list[Unseen] = []
    for topic in scope.offsets_topics:
        spans = [span for span in plan.spans if span.topic == topic]
        places, missing = _find_places(scope, topic, spans, is_mirror=read.outputs.mirror is not None)
        lost += [
            Unseen(topic, number, UnseenReason.UNREADABLE, detail=f"{topic}-{number}: {why}")
            for number, why in sorted(missing.items())
        ]
        for span in spans:
            place = (topic, span.partition)
            values, deletions = (of.get(span.partition, array("q")) for of in (places.values, places.deletions))
            sinks[place] = OffsetsPartition(
                read.committed, read.tallies, values, deletions, topic == scope.offsets_topics[0], read.outputs.mirror,
                places.mirrored.get(span.partition, {}), topic == scope.app.target.offset_topic,
            )  # fmt: skip
            folds[place] = _fold(sinks[place], span)
    scan = log.scan(plan)
    for batch in _with_progress(scope, scan, plan, "reading offsets topics"):
        folds[batch.topic, batch.partition].take(batch)
    for place, fold in folds.items():
        for part in fold.still_open():
            sinks[place].left_open(part)
    read.offsets_unseen = (*lost, *scan.unseen())
    read.committed.is_unread = any(each.reason is UnseenReason.UNREADABLE for each in read.offsets_unseen)
    read.committed.complete_since_ms = max(_complete_since(plan, folds, read), scope.offsets_gone_until_ms)
    read.committed.close()
    if (mirror := read.outputs.mirror) is not None:
        mirror.has_lost_offsets = read.committed.is_unread or read.committed.complete_since_ms >= 0


def _complete_since(plan: ScanPlan, folds: dict[Place, PartitionFold], read: LogRead) -> int:
    """From when on no offset of the connector is missing: what was compacted or removed is older than what is left."""
    since_ms = -1
    for span in plan.spans:
        fold = folds[span.topic, span.partition]
        since_ms = max(since_ms, fold.lost_until_ms)
        if fold.next_offset < span.stop or (fold.is_cut_off and fold.first_ms < 0):
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
    scope: Scope, log: BatchLog, plan: ScanPlan, read: LogRead, *, check_crcs: bool, until_ms: int | None
) -> None:
    outputs, folds = read.outputs, read.folds
    sink: Sink = outputs
    for span in plan.spans:
        folds[span.topic, span.partition] = _fold(sink, span)
    scan = log.scan(plan, check_crc=check_crcs)
    try:
        for batch in _with_progress(scope, scan, plan, "reading output topics"):
            folds[batch.topic, batch.partition].take(batch)
    finally:
        read.unseen = tuple(scan.unseen())
    if until_ms is not None:
        extended, lost = read_past_the_stop(
            log, plan, until_ms, lambda batch: folds[batch.topic, batch.partition].take(batch)
        )
        read.spans, read.unseen = extended.spans, (*read.unseen, *lost)
    if (mirror := outputs.mirror) is not None:
        for place in [place for place, fold in folds.items() if fold.removed]:
            mirror.leave_out(place)
    outputs.close()
    unreadable = {(each.topic, each.partition) for each in read.unseen if each.reason is UnseenReason.UNREADABLE}
    left: list[tuple[Span, Part]] = []
    for span in plan.spans:
        place = (span.topic, span.partition)
        if span.stop < span.end:
            continue  # what a window cuts off has its end behind it
        is_lost = place in unreadable or folds[place].next_offset < span.stop
        for part in folds[place].still_open():
            if outputs.is_over(part) and not is_lost:
                left.append((span, part))
            else:
                outputs.left_open(part, ended_since=None if is_lost else False)
    _look_again(log, left, outputs)


def _look_again(log: BatchLog, left: Sequence[tuple[Span, Part]], outputs: OutputPartitions) -> None:
    """Parts that have no end though their transactions have: the marker may have come behind what was read."""
    if not left:
        return
    stops = {(span.topic, span.partition): span.stop for span, _part in left}
    plan = log.plan(sorted({topic for topic, _partition in stops}), Window())
    spans = {(span.topic, span.partition): span for span in plan.spans if (span.topic, span.partition) in stops}
    narrow = tuple(span._replace(first=min(stops[place], span.stop)) for place, span in spans.items())
    scan = log.scan(ScanPlan(narrow))
    ended = {
        (batch.topic, batch.partition, batch.producer_id)
        for batch in scan
        if batch.is_control and batch.base_offset >= stops[batch.topic, batch.partition]
    }
    lost = {(each.topic, each.partition) for each in scan.unseen()}
    for _span, part in left:
        place = (part.topic, part.partition)
        is_known = place in spans and place not in lost
        outputs.left_open(part, ended_since=((*place, part.producer_id) in ended) if is_known else None)


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
