"""`offsets snapshot`: keeps the committed offsets of a group in record files, once or each period. Writes no topic.

A file has the newest committed record of each key and partition, deletions included, byte for byte. What it lacks is in
its header and in the report. It gets its name when it is whole, and on the disk.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.kept.snapshot_header import SNAPSHOT, SnapshotHeader, SnapshotTopic, SnapshotUnseen
from eosctl.core.records import Bounds
from eosctl.core.wording import encodable, rfc3339
from eosctl.deadline import Event
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError, NotFoundError, RefusedError, UsageError
from eosctl.machine.files import own_folder, remove_old_drafts
from eosctl.offsets import codes
from eosctl.offsets.files.export import run_lines
from eosctl.offsets.snapshots.file import SnapshotFile, snapshot_folder, snapshots_in
from eosctl.offsets.snapshots.rows import (
    OFFSETS_SNAPSHOT,
    SnapshotData,
    SnapshotOutcome,
    SnapshotRow,
    SnapshotSummary,
)
from eosctl.offsets.snapshots.topics import TopicsToKeep, topics_to_keep
from eosctl.offsets.stores.gather import patience
from eosctl.output.rows import unseen_parts
from eosctl.ports import TopicReader
from eosctl.report import Problem, Report
from eosctl.state.audit_file import lock_now
from eosctl.state.backups import keep_digested, timed_name

if TYPE_CHECKING:
    from eosctl.engine.reading.stretches import RecordRun

_MOST_ROWS = 100
"""The rounds that are still in the report of a run that makes many."""
_POLL_S = 0.5
_DRAFT_S = 86_400
"""A draft that nobody has written to for so long is of a run that was killed."""


class SnapshotRequest(Struct, frozen=True):
    """The folder (None: in the state directory), and what to keep: the connectors and stores, of which none is all.

    `every_s` goes on with a round each period. Beyond `keep` files of the same kind, the oldest are removed.
    """

    folder: Path | None = None
    connectors: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    every_s: float | None = None
    keep: int | None = None


class SnapshotRound(Struct, frozen=True):
    """The outcome of a round, and its problems; those that are unseen are in the header of the file."""

    row: SnapshotRow
    cluster_id: str | None = None
    problems: Sequence[Problem] = ()


def take_snapshots(app: App, request: SnapshotRequest, show: Callable[[object], None] = lambda _row: None) -> Report:
    """Make a snapshot, or one each period until SIGTERM; exit 7 where something could not be seen.

    Raises EosctlError for a round that fails; with a period that is an event, and the next round is tried. Raises
    InterruptedByUserError after Ctrl-C.
    """
    folder = request.folder or snapshot_folder(app)
    if request.every_s is None:
        done = take_snapshot(app, request, folder)
        show(done.row)
        return _report(app, folder, [done], Counter({done.row.outcome: 1}), len(done.row.removed))
    rounds, counts, removed = deque[SnapshotRound](maxlen=_MOST_ROWS), Counter[SnapshotOutcome](), 0
    ended = threading.Event()
    try:
        with _sigterm_sets(ended):
            while True:
                began_s = app.clock.monotonic_s()
                done = _tried(app.with_whole_timeout(), request, folder, is_first=not rounds)
                rounds.append(done)
                counts[done.row.outcome] += 1
                removed += len(done.row.removed)
                show(done.row)
                app.clock.sleep_s(max(0.0, request.every_s - (app.clock.monotonic_s() - began_s)))
    except KeyboardInterrupt:
        if not ended.is_set():
            raise InterruptedByUserError("interrupted; every file that has its name is whole") from None
    return replace(_report(app, folder, rounds, counts, removed), exit_code=ExitCode.OK)


@contextmanager
def _sigterm_sets(ended: threading.Event) -> Iterator[None]:
    """Set `ended` on SIGTERM and end what is under way, as Ctrl-C does, where this is the main thread."""

    def end(_number: int, _frame: object) -> None:
        ended.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tried(app: App, request: SnapshotRequest, folder: Path, *, is_first: bool) -> SnapshotRound:
    """Make a snapshot, or report why there is none; raise what is wrong with the command from the start."""
    began_ms = app.clock.now_ms()
    try:
        done = take_snapshot(app, request, folder)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        if is_first and isinstance(exc, UsageError | NotFoundError):
            raise
        app.on_event(Event(f"no snapshot: {exc.message}; the next one is tried", warning=True))
        row = _row(began_ms, SnapshotOutcome.FAILED, None, error=exc.message)
        return SnapshotRound(row, problems=[Problem.of(exc)])
    for problem in done.problems:
        app.on_event(Event(problem.message, warning=True))
    app.on_event(Event(f"{done.row.outcome}: {done.row.file}"))
    return done


def take_snapshot(app: App, request: SnapshotRequest, folder: Path) -> SnapshotRound:
    """Write a snapshot into a folder of one's own, unless nothing was committed since the last; then remove old ones.

    Raises RefusedError while another eosctl makes one there, and the errors of `topics_to_keep`.
    """
    with _locked(app, folder):
        began_ms = app.clock.now_ms()
        with app.topics() as topics:
            found = topics_to_keep(app, topics, request.connectors, request.stores)
            header, problems = _header(app, topics, request, found, began_ms)
            mine, _unread = snapshots_in(folder)
            mine = [each for each in mine if each.header.scope() == header.scope()]
            # not the last by its time: the clock may have been wrong
            same = next((each for each in reversed(mine) if each.header.same_records(header) and each.is_whole()), None)
            if same is not None:
                mine = [*(each for each in mine if each is not same), same]
                row = _row(began_ms, SnapshotOutcome.UNCHANGED, same)
            else:
                tally = _Tally()
                path = keep_digested(folder / timed_name(SNAPSHOT, began_ms), _blocks(topics, header, tally))
                made = SnapshotFile(path, header)
                mine.append(made)
                row = _row(began_ms, SnapshotOutcome.WRITTEN, made, tally=tally)
        problems += _without_offset(mine[-1])
        removed, not_removed = _remove_old(mine, request.keep)
        row = replace(row, removed=removed, unseen=len(header.unseen))
        return SnapshotRound(row, header.kafka_cluster_id, [*problems, *not_removed])


def _without_offset(file: SnapshotFile) -> list[Problem]:
    """Warn of connectors that were asked for, and that the snapshot has no record of."""
    return [
        Problem(
            codes.SNAPSHOT_WITHOUT_OFFSET,
            f"the snapshot has no offset of connector {name}",
            hint="Names are case-sensitive; `eosctl offsets list` shows the connectors that have offsets.",
        )
        for name in file.without_record()
    ]


class _Tally:
    """The numbers of the records that a pass has counted."""

    def __init__(self) -> None:
        self.records = self.tombstones = 0

    def counted(self, run: RecordRun) -> RecordRun:
        """Count the records of a run."""
        self.records += len(run)
        self.tombstones += run.tombstones()
        return run


def _header(
    app: App, topics: TopicReader, request: SnapshotRequest, found: TopicsToKeep, began_ms: int
) -> tuple[SnapshotHeader, list[Problem]]:
    """Read the bounds of the topics; a transaction that stays open leaves its partition incomplete."""
    kept, missed = list[SnapshotTopic](), list(found.missed)
    for topic, description in found.topics.items():
        bounds = _settled_bounds(app, topics, topic)
        kept.append(SnapshotTopic(topic, description.topic_id, bounds))
        if blocked := [str(bound.partition) for bound in bounds if bound.lso < bound.end]:
            message = (
                f"topic {topic}, partition {', '.join(blocked)}: what lies behind an open transaction is not in the "
                "snapshot"
            )
            hint = "`eosctl txn hanging` shows its producer."
            missed.append((Problem(codes.SNAPSHOT_INCOMPLETE, message, hint=hint, unseen=True), topic))
    header = SnapshotHeader(
        taken_ms=began_ms,
        kafka_cluster_id=topics.cluster_id(),
        group_id=app.target.group_id,
        topics=tuple(kept),
        connectors=tuple(sorted(set(request.connectors))),
        stores=tuple(sorted(set(request.stores))),
        unseen=tuple(
            SnapshotUnseen(str(each.code), encodable(each.message), at) for each, at in missed if each.is_unseen
        ),
        offset_topic=app.target.offset_topic,
    )
    return header, [problem for problem, _topic in missed]


def _settled_bounds(app: App, topics: TopicReader, topic: str) -> tuple[Bounds, ...]:
    """Return the bounds of each partition at a moment when no transaction hid anything there, if there was one soon.

    Running tasks open and end transactions all the time: the partitions are hardly ever settled all at once.
    """
    settled: dict[int, Bounds] = {}
    for _ in patience(app).rounds(_POLL_S):
        bounds = topics.bounds(topic)
        settled |= {bound.partition: bound for bound in bounds if bound.lso >= bound.end}
        if len(settled) == len(bounds):
            break
    return tuple(settled.get(bound.partition, bound) for bound in bounds)


def _blocks(topics: TopicReader, header: SnapshotHeader, tally: _Tally) -> Iterator[bytes]:
    """Yield the lines of the file, many at a time; hold only the newest records of some partitions in memory."""
    yield f"{header.line()}\n".encode()
    for topic in header.topics:
        runs = topics.stream(topic.topic, topic.partitions, newest_per_key=True)
        if header.connectors:
            runs = (run.of_connectors(header.connectors) for run in runs)
        yield from run_lines(map(tally.counted, runs))
        _require_same(topics, topic)


def _require_same(topics: TopicReader, topic: SnapshotTopic) -> None:
    """Raise RefusedError if a topic that was read is not the one any more whose id the header has."""
    described = topics.describe([topic.topic]).get(topic.topic)
    if described is None or described.topic_id != topic.topic_id:
        raise RefusedError(
            f"topic {topic.topic} was deleted while it was read; nothing was written", hint="Make a snapshot again."
        )


def _remove_old(mine: Sequence[SnapshotFile], keep: int | None) -> tuple[list[str], list[Problem]]:
    """Remove the oldest beyond `keep`, and return their paths, and problems.

    The newest one that is whole and lacks nothing is never removed.
    """
    if keep is None or len(mine) <= keep:
        return [], []
    complete = next((each for each in reversed(mine) if not each.header.unseen and each.is_whole()), mine[-1])
    stays = {each.path for each in (*mine[-keep:], complete)}
    removed, problems = list[str](), list[Problem]()
    for each in mine:
        if each.path not in stays:
            try:
                each.path.unlink(missing_ok=True)
            except OSError as exc:
                message = f"cannot remove {each.path}: {exc.strerror or exc}"
                problems.append(Problem(codes.SNAPSHOT_NOT_REMOVED, message))
            else:
                removed.append(str(each.path))
    return removed, problems


@contextmanager
def _locked(app: App, folder: Path) -> Iterator[None]:
    """Make the folder, for its owner only, and keep other snapshots out of it meanwhile."""
    try:
        descriptor = os.open(own_folder(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as exc:
        hint = getattr(exc, "hint", "Check space and rights.")
        raise EosctlError(f"cannot write to {folder}: {exc.strerror or exc}", hint=hint) from exc
    try:
        if not lock_now(descriptor):
            raise RefusedError(
                f"another eosctl makes a snapshot in {folder}; nothing was written", hint="Wait for it, or end it."
            )
        remove_old_drafts(folder, before_s=app.clock.now_s() - _DRAFT_S)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _row(
    taken_ms: int,
    outcome: SnapshotOutcome,
    file: SnapshotFile | None,
    *,
    tally: _Tally | None = None,
    error: str | None = None,
) -> SnapshotRow:
    return SnapshotRow(
        taken=rfc3339(taken_ms) or "",
        taken_ms=taken_ms,
        outcome=outcome,
        file=None if file is None else str(file.path),
        topics=[] if file is None else [each.topic for each in file.header.topics],
        records=None if tally is None else tally.records,
        tombstones=None if tally is None else tally.tombstones,
        removed=[],
        unseen=0,
        error=error,
    )


def _report(
    app: App, folder: Path, rounds: Sequence[SnapshotRound], counts: Mapping[SnapshotOutcome, int], removed: int
) -> Report:
    last = rounds[-1] if rounds else None
    problems = () if last is None else last.problems
    unseen = unseen_parts((), problems)
    return Report(
        kind=OFFSETS_SNAPSHOT,
        rows=[each.row for each in rounds],
        summary=SnapshotSummary(
            written=counts.get(SnapshotOutcome.WRITTEN, 0),
            unchanged=counts.get(SnapshotOutcome.UNCHANGED, 0),
            failed=counts.get(SnapshotOutcome.FAILED, 0),
            removed=removed,
        ),
        data=SnapshotData(folder=str(folder), unseen=unseen),
        target={"kafka_cluster_id": last.cluster_id if last else None, "group_id": app.target.group_id},
        problems=problems,
        exit_code=ExitCode.PARTIAL if unseen else ExitCode.OK,
    )
