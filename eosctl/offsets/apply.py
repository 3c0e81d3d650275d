"""Applies a plan of offset writes: check again, back up, send, read back, report.

One eosctl at a time writes the offsets of a cluster. What is sent goes in one transaction, so that a run that breaks
off leaves all of it or nothing; a journal tells the next run that there was one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from pathlib import Path

from eosctl.app import App
from eosctl.core.ids import offsets_transactional_id
from eosctl.core.offsets.views import PlannedWrite, Store
from eosctl.core.open_transactions import OPEN_TRANSACTION
from eosctl.core.records import OutRecord, Record
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, ExitCode, StalePlanError, UnreachableError
from eosctl.events import Event
from eosctl.offsets import codes
from eosctl.offsets.journal import offsets_journal
from eosctl.offsets.listing import report_target
from eosctl.offsets.stores.gather import OffsetStores, read_away, settled_with_hidden
from eosctl.offsets.stores.new_topics import create_topics
from eosctl.offsets.stores.targets import other_partitions
from eosctl.offsets.write_rows import SETTLED, ResultData, ResultSummary, first_writes
from eosctl.offsets.writes import (
    MergeRequest,
    OffsetWritePlan,
    check_writable,
    plan_data,
    plan_offsets_merge,
    plan_summary,
    refusal_of,
    show_plan,
)
from eosctl.plan import Plan
from eosctl.ports import TopicStore
from eosctl.report import Problem, Report
from eosctl.state.backups import keep_backup, undo_command

_LATE_WRITE_S, _POLL_S, _AWAY_POLL_S = 10.0, 0.2, 1.0

Send = Callable[[App, OffsetWritePlan], None]
"""Puts the records of a plan where they belong."""


def prepare_merge(app: App, request: MergeRequest) -> Plan:
    """The plan to complete a store; raises as `plan_offsets_merge`."""
    again = partial(plan_offsets_merge, app, request)
    return prepare_writes(app, again(), again)


def prepare_writes(
    app: App, plan: OffsetWritePlan, again: Callable[[], OffsetWritePlan], *, verb: str = "Write"
) -> Plan:
    """The plan to send what `plan` holds; `again` makes that anew where the topics have moved."""
    apply = partial(apply_plan, app, plan, again) if plan.sends() else None
    return Plan(partial(show_plan, app, plan), write_question(plan, verb), apply, app.target, refusal_of(app, plan))


def write_question(plan: OffsetWritePlan, verb: str) -> str:
    """What is asked before `plan` is applied."""
    return f"{verb} {counted(len(plan.sends()), 'offset')}?"


def apply_plan(
    app: App, plan: OffsetWritePlan, again: Callable[[], OffsetWritePlan], *, send: Send | None = None
) -> Report:
    """Writes `plan` if it still holds; `again` makes it anew where the topics have moved.

    The deadline starts anew: the time in which a person read the plan does not count. Raises StalePlanError or
    RefusedError before anything was written, also while another eosctl writes offsets of this cluster.
    """
    app = app.with_whole_timeout()
    journal = offsets_journal(app, plan.found.cluster_id)
    with journal.hold(f"the offsets of cluster {plan.found.cluster_id}"):
        check_writable(app, plan)
        if moved(app, plan.found):
            renewed = again()
            if renewed.writes != plan.writes or renewed.creates != plan.creates:
                raise StalePlanError("these offsets changed since the plan was made", hint="Plan again.")
            check_writable(app.with_whole_timeout(), plan)  # reading them took its time
        backup = keep_backup(app, plan.sends(), name=plan.name, cluster_id=plan.found.cluster_id)
        app.on_event(Event(f"backup: {backup}"))
        journal.write("begin", name=plan.name, backup=str(backup), offsets=len(plan.sends()))
        report = _write(app, plan, send or send_to_topics, backup=backup)
        left_open = journal.close(exit_code=int(report.exit_code))
    return replace(report, problems=[*report.problems, *left_open])


def moved(app: App, found: OffsetStores) -> bool:
    """Whether the topics have records that `found` has not; raises StalePlanError for another cluster or topic."""
    with app.topics() as topics:
        if topics.cluster_id() != found.cluster_id:
            raise StalePlanError(
                f"the plan is for cluster {found.cluster_id}, this is {topics.cluster_id()}", hint="Check -b."
            )
        there = topics.describe(list(found.stores))
        for topic in found.stores:
            now, then = there.get(topic), found.descriptions.get(topic)
            if (now and now.topic_id) != (then and then.topic_id):
                raise StalePlanError(
                    f"topic {topic} was created, deleted or recreated since the plan", hint="Plan again."
                )
            if now and then and now.partitions != then.partitions:
                raise other_partitions(topic, now.partitions, planned=then.partitions)
        here = any(now != found.bounds[topic] for topic, now in topics.bounds_of(there).items())
    return here or any(read_away(app, name).bounds != there.bounds for name, there in found.away.items())


def send_to_topics(app: App, plan: OffsetWritePlan) -> None:
    """Creates the missing topics, then writes in the plan's transactions, under an id of eosctl's own."""
    for refusal in create_topics(app, plan.creates).refused.values():
        raise refusal
    with app.with_whole_timeout().topics() as topics:
        for batch in plan.transactions():
            records = [OutRecord(w.topic, w.key.raw, w.after, partition=w.partition, headers=w.headers) for w in batch]
            topics.write(records, transactional_id=offsets_transactional_id(app.target.group_id))


@dataclass(frozen=True, slots=True)
class _ReadBack:
    """Whether each write that was sent now has its planned value on its partition; None where that can't be seen.

    There are no `holds` where nothing could be read. `aborted` counts the planned values that only a reader of
    uncommitted records finds, `behind` those that lie behind somebody's open transaction: committed, but no committed
    reader gets them before it ends.
    """

    holds: Sequence[bool | None]
    aborted: int = 0
    behind: int = 0


def _write(app: App, plan: OffsetWritePlan, send: Send, *, backup: Path) -> Report:
    """Sends and reads back; what came of a failure is found out by reading, not by guessing."""
    failure: EosctlError | None = None
    try:
        send(app, plan)
    except EosctlError as exc:
        failure = exc
    read = _ReadBack([])
    try:
        read = _read_when_there(app.with_whole_timeout(), plan, failed=failure is not None)
    except EosctlError as exc:
        failure = failure or exc
    return _result_report(app, plan, read, backup=backup, failure=failure)


def _read_when_there(app: App, plan: OffsetWritePlan, *, failed: bool) -> _ReadBack:
    """What is there of a write; of one that was accepted also where the brokers are away for a while.

    Raises UnreachableError when they do not come back before the deadline.
    """
    for _ in app.deadline.rounds(_AWAY_POLL_S):
        try:
            with app.topics() as topics:
                return _read_back(app, topics, plan, failed=failed)
        except UnreachableError:
            if failed or app.deadline.expired():
                raise
    raise AssertionError("the last round returns or raises")


def _read_back(app: App, topics: TopicStore, plan: OffsetWritePlan, *, failed: bool) -> _ReadBack:
    """What the topics hold; what was accepted may come a little later.

    A worker answers PATCH before it has written to the second of a connector's two stores (Kafka 4.3.1,
    ConnectorOffsetBackingStore).
    """
    sends = plan.sends()
    there = topics.describe(sorted({write.topic for write in sends}))
    patience = Deadline.after(min(_LATE_WRITE_S, app.deadline.remaining_s()), app.clock)
    for _ in patience.rounds(_POLL_S):
        now = {topic: _read_since(app, topics, plan.found, topic) for topic in there}
        held = [_holds(now.get(write.topic), write) for write in sends]
        if failed or False not in held:
            break
    if not failed:
        behind = [one is None and _is_behind(now[write.topic], write) for write, one in zip(sends, held, strict=True)]
        holds = [True if is_behind else one for one, is_behind in zip(held, behind, strict=True)]
        return _ReadBack(holds, behind=sum(behind))
    reads = (topics.read(topic, isolation="read_uncommitted", newest_per_key=True) for topic in there)
    uncommitted = {read.topic: _by_place(read.records) for read in reads}
    lost = (write for write, one in zip(sends, held, strict=True) if one is False and write.topic in there)
    aborted = [write for write in lost if _value_in(uncommitted[write.topic], write) == write.after]
    return _ReadBack(held, len(aborted))


@dataclass(frozen=True, slots=True)
class _Since:
    """What a topic has since a plan was made of its `store`, None for a topic that was not there.

    `records` are the newest of each key and partition, `hidden` those behind open transactions.
    """

    store: Store | None
    records: Mapping[tuple[bytes | None, int], Record]
    hidden: Mapping[tuple[bytes | None, int], Record]
    blocked: frozenset[int]


def _read_since(app: App, topics: TopicStore, found: OffsetStores, topic: str) -> _Since:
    """Reads a topic from where it ended, as committed readers see it, when the plan was made."""
    ends = {bound.partition: bound.lso for bound in found.bounds.get(topic, ())}
    read, behind = settled_with_hidden(app, topics, topic, since=ends)
    blocked = frozenset(bound.partition for bound in read.blocked())
    return _Since(found.stores.get(topic), _by_place(read.records), _by_place(behind), blocked)


def _by_place(records: Iterable[Record]) -> dict[tuple[bytes | None, int], Record]:
    return {(record.key, record.partition): record for record in records}


def _holds(now: _Since | None, write: PlannedWrite) -> bool | None:
    """None where an open transaction hides a record of the key, or may hide ours."""
    if now is None:
        return False
    place = write.key.raw, write.partition
    if place in now.hidden:
        return None
    record = now.records.get(place)
    if record is None and now.store is not None:
        record = now.store.at(*place)
    if (record.value if record else None) == write.after:
        return True
    return None if write.partition in now.blocked else False


def _is_behind(now: _Since, write: PlannedWrite) -> bool:
    """Whether what was committed is the newest of its key behind somebody's open transaction."""
    place = write.key.raw, write.partition
    return place in now.hidden and now.hidden[place].value == write.after


def _value_in(records: Mapping[tuple[bytes | None, int], Record], write: PlannedWrite) -> bytes | None:
    record = records.get((write.key.raw, write.partition))
    return record.value if record else None


def _result_report(
    app: App, plan: OffsetWritePlan, read: _ReadBack, *, backup: Path, failure: EosctlError | None
) -> Report:
    sends = plan.sends()
    # what was not answered may still happen
    lost = isinstance(failure, UnreachableError | DeadlineError)
    missing = "unconfirmed" if lost else "failed" if failure else "differs"
    names = {True: "written", False: missing, None: "unconfirmed"}
    held = iter(read.holds or repeat(None))
    outcomes = [names[next(held)] if write.sends() else "unchanged" for write in plan.writes]
    wrong = [outcome for outcome in outcomes if outcome not in SETTLED]
    nothing_written = len(wrong) == len(sends) and all(outcome == "failed" for outcome in wrong)
    failures = [
        *_failure_problems(failure, read, wrong=len(wrong)),
        *_left_problems(0 if nothing_written else len(wrong), sends, backup),
        *_behind_problems(read),
    ]
    return Report(
        kind=plan.kinds.result,
        rows=[plan.result_row(write, outcome) for write, outcome in first_writes(plan.writes, outcomes)],
        summary=ResultSummary(**plan_summary(plan), written=len(sends) - len(wrong), not_as_planned=len(wrong)),
        data=ResultData(**plan_data(plan), backup=str(backup), undo=undo_command(backup)),
        target=report_target(app, plan.found),
        problems=[*plan.problems, *failures],
        exit_code=_exit_code(failure, wrong=bool(wrong), nothing_written=nothing_written),
    )


def _exit_code(failure: EosctlError | None, *, wrong: bool, nothing_written: bool) -> ExitCode:
    if not wrong:  # a failure whose writes are all there was an answer that got lost
        return ExitCode.OK
    return failure.exit_code if failure is not None and nothing_written else ExitCode.PARTIAL


def _left_problems(left: int, sends: Sequence[PlannedWrite], backup: Path) -> Iterator[Problem]:
    """For a write of which something is there, or may be."""
    if left:
        are = "is" if left == 1 else "are"
        message = f"{left:,} of {counted(len(sends), 'offset')} {are} not, or not known to be, as planned"
        yield Problem(codes.NOT_AS_PLANNED, message, hint=f"Take it back: {undo_command(backup)}")


def _behind_problems(read: _ReadBack) -> Iterator[Problem]:
    if read.behind:
        message = f"{read.behind} of them are committed, but lie behind somebody's open transaction: workers that read "
        message += "committed records get them when it ends"
        hint = "`eosctl txn hanging` shows its producer."
        yield Problem(OPEN_TRANSACTION, message, hint=hint, severity="warning")


def _failure_problems(failure: EosctlError | None, read: _ReadBack, *, wrong: int) -> Iterator[Problem]:
    if failure is not None and not wrong:
        message = f"the write was reported as failed ({failure.message}), and yet all of it is there"
        yield Problem(codes.ANSWER_LOST, message, severity="warning")
        return
    if failure is not None:
        yield Problem.of(failure)
    if read.aborted:
        some = counted(read.aborted, "of them is", "of them are")
        message = f"{some} in an aborted transaction, which workers that are not enabled still read"
        hint = "Run the same command again, before such a worker starts or rebalances: what is committed last counts."
        yield Problem(codes.ABORTED_BUT_VISIBLE, message, hint=hint, severity="warning")
