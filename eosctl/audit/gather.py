"""Reads the logs of a scope: the offsets topics with the connector's keys, then the output topics' batches.

Ctrl-C, and the deadline, end the reading; what was read before is judged all the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from eosctl.audit.log.committed_offsets import CommittedOffsets
from eosctl.audit.log.mirror import Mirror, MirrorOffset, mirror_offset
from eosctl.audit.log.segments import PartitionFold, Sink
from eosctl.audit.log.tallies import Tallies
from eosctl.audit.rules import OffsetsPartition, OutputPartitions
from eosctl.audit.scope import Scope, offsets_window
from eosctl.core.batches import Batch, Place, ScanPlan, Span, Unseen, Window
from eosctl.core.offsets.records import is_nothing
from eosctl.core.records import Record
from eosctl.errors import DeadlineError, EosctlError, InterruptedByUserError
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

    `planned_ms` is when the ends of the logs were looked up, `seen_ms` the youngest time in any batch.
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
        self.outputs = OutputPartitions(self.committed, self.tallies)


def read_logs(scope: Scope, window: Window, *, check_crcs: bool) -> LogRead:
    """Reads; raises what a BatchLog and a TopicStore raise, but for the end of the time."""
    read = LogRead(planned_ms=scope.app.clock.now_ms())
    with scope.app.batches() as log:
        plan = log.plan(scope.topics, window)
        read.spans, read.unseen = plan.spans, plan.unseen
        if scope.is_mirror:
            read.outputs.mirror = Mirror(
                separator=scope.config.get("replication.policy.separator", "."),
                topics=frozenset(scope.topics),
                whole={(span.topic, span.partition) for span in plan.spans if span.first == 0},
            )
        # planned later: of every commit that the output topics show, the offsets are there
        offsets_plan = log.plan(scope.offsets_topics, offsets_window(window))
        try:
            _read_offsets(scope, log, offsets_plan, read, window)
            _read_outputs(scope, log, plan, read, check_crcs=check_crcs)
        except KeyboardInterrupt:
            read.ended_by = InterruptedByUserError(f"interrupted; {JUDGED}")
        except DeadlineError as exc:
            read.ended_by = DeadlineError(f"{exc.message}; {JUDGED}", hint=exc.hint)
    return read


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
                    mirror_offset(its.keys[record.key or b""].partition, members_of(record.value))
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


def _read_offsets(scope: Scope, log: BatchLog, plan: ScanPlan, read: LogRead, window: Window) -> None:
    folds: dict[Place, PartitionFold] = {}
    sinks: dict[Place, OffsetsPartition] = {}
    for topic in scope.offsets_topics:
        spans = [span for span in plan.spans if span.topic == topic]
        places = _Places()
        with scope.app.with_whole_timeout().topics() as store:
            store.read(
                topic,
                isolation="read_uncommitted",
                since={span.partition: span.first for span in spans},
                sieve=places.sieve(scope.connector, is_mirror=read.outputs.mirror is not None),
                renews=True,
            )
        for span in spans:
            place = (topic, span.partition)
            values, deletions = (of.get(span.partition, array("q")) for of in (places.values, places.deletions))
            sinks[place] = OffsetsPartition(
                read.committed, read.tallies, values, deletions, topic == scope.offsets_topics[0], read.outputs.mirror,
                places.mirrored.get(span.partition, {}), window, topic == scope.app.target.offset_topic,
            )  # fmt: skip
            folds[place] = PartitionFold(sinks[place], starts_inside=span.first > span.log_start)
    scan = log.scan(plan)
    for batch in _with_progress(scope, scan, plan, "reading offsets topics"):
        folds[batch.topic, batch.partition].take(batch)
    for place, fold in folds.items():
        for part in fold.still_open():
            sinks[place].left_open(part)
    for sink in sinks.values():
        sink.close()
    read.offsets_unseen = tuple(scan.unseen())
    read.committed.complete_since_ms = _complete_since(plan, folds, read)
    read.committed.close()


def _complete_since(plan: ScanPlan, folds: dict[Place, PartitionFold], read: LogRead) -> int:
    """From when on no offset of the connector is missing: what was compacted or removed is older than what is left."""
    since_ms = -1
    for span in plan.spans:
        fold = folds[span.topic, span.partition]
        since_ms = max(since_ms, fold.removed_ms)
        if span.first == span.log_start > 0:
            since_ms = max(since_ms, fold.first_ms if fold.first_ms >= 0 else read.planned_ms)
    return since_ms


def _read_outputs(scope: Scope, log: BatchLog, plan: ScanPlan, read: LogRead, *, check_crcs: bool) -> None:
    outputs, folds = read.outputs, read.folds
    sink: Sink = outputs
    for span in plan.spans:
        folds[span.topic, span.partition] = PartitionFold(sink, starts_inside=span.first > span.log_start)
    scan = log.scan(plan, check_crc=check_crcs)
    try:
        for batch in _with_progress(scope, scan, plan, "reading output topics"):
            folds[batch.topic, batch.partition].take(batch)
    finally:
        read.unseen = tuple(scan.unseen())
    for span in plan.spans:
        if span.stop == span.end:  # what a window cuts off has its end behind it
            for part in folds[span.topic, span.partition].still_open():
                outputs.left_open(part, planned_ms=read.planned_ms)


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
