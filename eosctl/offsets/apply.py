"""Applies a plan of offset writes: check again, back up, send, read back, report.

One eosctl at a time writes the offsets of a cluster. The records go in one transaction, or in several if they are too
many, so that an interrupted run leaves only whole ones; a journal shows the next run that there was one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import offsets_transactional_id
from eosctl.core.open_transactions import OPEN_TRANSACTION
from eosctl.core.records import Record
from eosctl.core.wording import counted
from eosctl.deadline import Deadline, Event
from eosctl.engine.compare import (
    RecordsSince,
    WriteCheck,
    aborted,
    all_written,
    check_writes,
    counts_of,
    is_all_there,
    outcomes,
)
from eosctl.engine.planned import in_order_of_sending, places_in
from eosctl.engine.reading.newest import TopicColumns, all_records
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.engine.write import in_transactions
from eosctl.errors import DeadlineError, EosctlError, ExitCode, StalePlanError, UnreachableError
from eosctl.offsets import codes
from eosctl.offsets.listing import report_target
from eosctl.offsets.rows import MOST_ROWS
from eosctl.offsets.stores.columns import by_parts, create_topics, read_stable_columns
from eosctl.offsets.stores.gather import OffsetStores, away_bounds
from eosctl.offsets.stores.own import other_partitions
from eosctl.offsets.write_rows import AS_PLANNED, ResultData, ResultSummary
from eosctl.offsets.writes import (
    OffsetWritePlan,
    check_writable,
    offsets_journal,
    plan_data,
    plan_summary,
    refusal_of,
    show_plan,
    touches,
)
from eosctl.plan import Plan
from eosctl.ports import TopicReader
from eosctl.report import Problem, Report
from eosctl.state.backups import keep_backup, undo_command

if TYPE_CHECKING:
    from eosctl.engine.columns import Table

_LATE_WRITE_S, _POLL_S, _AWAY_POLL_S = 10.0, 0.2, 1.0

Send = Callable[[App, OffsetWritePlan], None]
"""Sends the records of a plan."""


def prepare_writes(app: App, plan_of: Callable[[App], OffsetWritePlan]) -> Plan:
    """Return the plan to send the writes of `plan_of`, planned again if the topics have moved; raise its errors."""
    plan = plan_of(app)
    apply = partial(apply_plan, app, plan, lambda: plan_of(app.with_whole_timeout()))
    return plan_to_write(app, plan, partial(show_plan, app, plan), apply)


def plan_to_write(app: App, plan: OffsetWritePlan, show: Callable[[], Report], apply: Callable[[], Report]) -> Plan:
    """Return the plan to confirm, with its question; a plan that sends nothing has nothing to apply."""
    question = f"{plan.kinds.verb} {counted(len(plan.sends()), 'offset')}?"
    return Plan(show, question, apply if plan.sends() else None, app.target, refusal_of(app, plan))


def apply_plan(
    app: App,
    plan: OffsetWritePlan,
    again: Callable[[], OffsetWritePlan],
    *,
    send: Send | None = None,
    waits: bool = False,
) -> Report:
    """Write `plan` if it still holds; plan again with `again` if the topics have moved.

    The deadline starts anew: the time that a person took to read the plan does not count. Raises StalePlanError or
    RefusedError before anything is written, also while another eosctl writes offsets of this cluster; a step of a
    longer work `waits` for that one.
    """
    until = app.with_whole_timeout().deadline if waits else None
    journal = offsets_journal(app, plan.found.cluster_id)
    with journal.hold(f"the offsets of cluster {plan.found.cluster_id}", until=until):
        app = app.with_whole_timeout()
        check_writable(app, plan)
        if moved(app, plan.found):
            renewed = again()
            if renewed.writes != plan.writes or renewed.creates != plan.creates:
                raise StalePlanError("these offsets changed since the plan was made", hint="Plan again.")
            check_writable(app.with_whole_timeout(), plan)  # reading the topics took time
        backup = keep_backup(app, plan.sends(), name=plan.name, cluster_id=plan.found.cluster_id)
        app.on_event(Event(f"backup: {backup}"))
        journal.write("begin", name=plan.name, backup=str(backup), offsets=len(plan.sends()))
        report = _write(app, plan, send or send_to_topics, backup=backup)
        left_open = journal.close(exit_code=int(report.exit_code))
    return replace(report, problems=[*report.problems, *left_open])


def moved(app: App, found: OffsetStores) -> bool:
    """Decide whether the topics have records that `found` lacks; raise StalePlanError for another cluster or topic."""
    with app.topics() as topics:
        if topics.cluster_id() != found.cluster_id:
            raise StalePlanError(
                f"the plan is for cluster {found.cluster_id}, this is {topics.cluster_id()}", hint="Check -b."
            )
        described = topics.describe(list(found.stores))
        for topic in found.stores:
            now, then = described.get(topic), found.descriptions.get(topic)
            if (now and now.topic_id) != (then and then.topic_id):
                raise StalePlanError(
                    f"topic {topic} was created, deleted or recreated since the plan", hint="Plan again."
                )
            if now and then and now.partitions != then.partitions:
                raise other_partitions(topic, now.partitions, planned=then.partitions)
        here = any(now != found.bounds[topic] for topic, now in topics.bounds_of(described).items())
    return here or any(away_bounds(app, name) != store.bounds for name, store in found.away.items())


def send_to_topics(app: App, plan: OffsetWritePlan) -> None:
    """Create the missing topics, then write in the plan's transactions, under a transactional id of eosctl's own."""
    for refusal in create_topics(app, plan.creates).refused.values():
        raise refusal
    with app.with_whole_timeout().topic_writer() as topics:
        topics.write_columns(
            in_transactions(plan.writes.in_order_of_sending()),
            total=len(plan.sends()),
            transactional_id=offsets_transactional_id(app.target.group_id),
        )


class _ReadBack(Struct, frozen=True):
    """The state of each part of the writes as read back; empty if nothing could be read.

    `aborted` counts the planned values that only a reader of uncommitted records finds.
    """

    parts: Sequence[WriteCheck] = ()
    aborted: int = 0

    def behind(self) -> int:
        """Count the committed values that stay invisible until an open transaction of another producer ends."""
        return sum(part.behind for part in self.parts)


def _write(app: App, plan: OffsetWritePlan, send: Send, *, backup: Path) -> Report:
    """Send and read back; determine the outcome of a failure by reading, not by guessing."""
    failure: EosctlError | None = None
    try:
        send(app, plan)
    except EosctlError as exc:
        failure = exc
    read = _ReadBack()
    try:
        read = _read_when_there(app.with_whole_timeout(), plan, failed=failure is not None)
    except EosctlError as exc:
        failure = failure or exc
    return _result_report(app, plan, read, backup=backup, failure=failure)


def _read_when_there(app: App, plan: OffsetWritePlan, *, failed: bool) -> _ReadBack:
    """Read a write back; if the write was accepted, wait for brokers that are away for a while.

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


def _read_back(app: App, topics: TopicReader, plan: OffsetWritePlan, *, failed: bool) -> _ReadBack:
    """Read back what the topics hold; allow an accepted write to arrive a little later.

    A worker answers PATCH before it has written to the second of a connector's two stores (Kafka 4.3.1,
    ConnectorOffsetBackingStore).
    """
    existing = list(topics.describe(plan.sends().topics))
    patience = Deadline.after(min(_LATE_WRITE_S, app.deadline.remaining_s()), app.clock)

    def read_part(app: App, topics: TopicReader, sends: Table) -> tuple[WriteCheck, int]:
        if not failed and _came_as_sent(topics, plan.found, existing, sends):
            return all_written(len(sends)), 0
        for _ in patience.rounds(_POLL_S):
            found = check_writes(sends, _read_since(app, topics, plan.found, existing, sends), accepted=not failed)
            if failed or not found.lacks():
                break
        return found, _aborted(topics, plan.found, existing, sends, found) if failed else 0

    sends = plan.sends()
    parts = list(by_parts(app, sends.tables(), count=sends.count_parts(), doing="reading back", look=read_part))
    return _ReadBack([part for part, _aborted in parts], sum(aborted for _part, aborted in parts))


def _came_as_sent(topics: TopicReader, found: OffsetStores, existing: Sequence[str], sends: Table) -> bool:
    """Decide whether the records since the plan are exactly those sent, with nothing else hidden behind them.

    This needs no lookup of keys. False, for whatever reason, does not mean yet that anything is wrong.
    """
    places, ranges = places_in(sends), list[OffsetRange]()
    if not set(places) <= set(existing):
        return False
    for topic, bounds in topics.bounds_of(places).items():
        ends = _ends_then(found, topic)
        wanted = [bound for bound in bounds if bound.partition in places[topic]]
        if len(wanted) < len(places[topic]) or any(bound.lso < bound.end for bound in wanted):
            return False
        for bound in wanted:
            begin = max(bound.begin, ends.get(bound.partition, 0))
            ranges.append(OffsetRange(topic, bound.partition, begin, bound.lso, len(bounds)))
    return is_all_there(topics.pieces(ranges), in_order_of_sending(lambda: [sends]), ranges)


def _ends_then(found: OffsetStores, topic: str) -> dict[int, int]:
    """Return the LSO of each partition when the plan was made; a new topic has none."""
    return {bound.partition: bound.lso for bound in found.bounds.get(topic, ())}


def _read_since(
    app: App, topics: TopicReader, found: OffsetStores, existing: Sequence[str], sends: Table
) -> RecordsSince:
    """Read the partitions of some writes from the LSO at the time of the plan, as committed readers see them."""
    reads, behind = list[TopicColumns](), list[Record]()
    for topic, partitions in places_in(sends).items():
        if topic in existing:
            since = _ends_then(found, topic)
            read, hidden = read_stable_columns(app, topics, topic, since=since, partitions=partitions, bare=True)
            reads.append(read)
            behind += hidden
    blocked = frozenset((read.topic, bound.partition) for read in reads for bound in read.blocked())
    return RecordsSince(existing, all_records(reads), behind, blocked)


def _aborted(topics: TopicReader, found: OffsetStores, existing: Sequence[str], sends: Table, read: WriteCheck) -> int:
    """Count the writes, certainly not committed, that a reader of uncommitted records finds after the plan."""
    reads = [
        topics.read_columns(
            topic, isolation="read_uncommitted", since=_ends_then(found, topic), partitions=partitions, bare=True
        )
        for topic, partitions in places_in(sends).items()
        if topic in existing
    ]
    return aborted(sends, read, all_records(reads))


def _result_report(
    app: App, plan: OffsetWritePlan, read: _ReadBack, *, backup: Path, failure: EosctlError | None
) -> Report:
    # a request without an answer may still take effect
    lost = isinstance(failure, UnreachableError | DeadlineError)
    missing = "unconfirmed" if lost else "failed" if failure else "differs"
    parts = zip_longest(plan.writes.tables(), read.parts)
    found = [outcomes(table, part, missing=missing) for table, part in parts]
    counts, sent = counts_of(found), len(plan.sends())
    wrong = sum(count for outcome, count in counts.items() if outcome not in AS_PLANNED)
    nothing_written = wrong == sent == counts.get("failed", 0)
    failures = [
        *_failure_problems(failure, read, wrong=wrong),
        *_left_problems(0 if nothing_written else wrong, sent, backup),
        *_behind_problems(read.behind()),
    ]
    shown = plan.writes.first(MOST_ROWS, found, settled=AS_PLANNED)
    return Report(
        kind=plan.kinds.result,
        rows=[plan.result_row(write, outcome or "") for write, outcome in shown],
        summary=ResultSummary(**plan_summary(plan), written=sent - wrong, not_as_planned=wrong),
        data=ResultData(**plan_data(plan), backup=str(backup), undo=undo_command(backup)),
        target=report_target(app, plan.found),
        problems=[*plan.problems, *failures],
        exit_code=_exit_code(failure, wrong=bool(wrong), nothing_written=nothing_written),
        touches=touches(plan),
    )


def _exit_code(failure: EosctlError | None, *, wrong: bool, nothing_written: bool) -> ExitCode:
    if not wrong:  # all writes are there: at most an answer was lost
        return ExitCode.OK
    return failure.exit_code if failure is not None and nothing_written else ExitCode.PARTIAL


def _left_problems(left: int, sent: int, backup: Path) -> Iterator[Problem]:
    """Report a write that is there in part, or may be."""
    if left:
        are = "is" if left == 1 else "are"
        message = f"{left:,} of {counted(sent, 'offset')} {are} not, or not known to be, as planned"
        yield Problem(codes.NOT_AS_PLANNED, message, hint=f"Take it back: {undo_command(backup)}")


def _behind_problems(behind: int) -> Iterator[Problem]:
    if behind:
        message = f"{behind} of them are committed, but lie behind an open transaction: workers that read "
        message += "committed records get them when it ends"
        hint = "`eosctl txn hanging` shows its producer."
        yield Problem(OPEN_TRANSACTION, message, hint=hint).as_warning()


def _failure_problems(failure: EosctlError | None, read: _ReadBack, *, wrong: int) -> Iterator[Problem]:
    if failure is not None and not wrong:
        message = f"the write was reported as failed ({failure.message}), and yet all of it is there"
        yield Problem(codes.ANSWER_LOST, message)
        return
    if failure is not None:
        yield Problem.of(failure)
    if read.aborted:
        some = counted(read.aborted, "of them is", "of them are")
        message = f"{some} in an aborted transaction, which workers that are not enabled still read"
        hint = "Run the same command again, before such a worker starts or rebalances: what is committed last counts."
        yield Problem(codes.ABORTED_BUT_VISIBLE, message, hint=hint)
