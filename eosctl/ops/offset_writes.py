"""`offsets merge` and `restore`: plan, check, back up, write, read back.

Nothing is written before the plan holds still and its backup is on disk; what was written is read again before
anything is claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from eosctl.core.migration_rules import Action
from eosctl.core.offset_views import DEDICATED, GLOBAL, PlannedWrite, Prefer, Store, fold_store, plan_merge
from eosctl.core.records import OutRecord
from eosctl.deadline import Deadline
from eosctl.errors import (
    DeadlineError,
    EosctlError,
    ExitCode,
    NotFoundError,
    RefusedError,
    StalePlanError,
    UnreachableError,
    UsageError,
)
from eosctl.events import Event
from eosctl.ops.app import App
from eosctl.ops.backups import keep_backup, undo_command
from eosctl.ops.migrate_guard import refuse_running
from eosctl.ops.offset_rows import write_row
from eosctl.ops.offset_stores import OffsetStores, gather_stores
from eosctl.ops.offsets import report_target, require_store
from eosctl.ops.ports import TopicStore
from eosctl.ops.workers import discover_urls
from eosctl.report import Problem, Report, Row

Place = tuple[str, bytes, int]
"""A topic, a key and the partition that is written to."""


@dataclass(frozen=True, slots=True)
class Allowances:
    """Safety checks that the user waived by name; they are listed in plan and result."""

    workers_down: bool = False
    force_running: bool = False

    def names(self) -> list[str]:
        """The flags as given."""
        given = {"workers-down": self.workers_down, "force-running": self.force_running}
        return [name for name, is_given in given.items() if is_given]


NOTHING_WAIVED = Allowances()


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """What to merge: `connectors`, or all that have a dedicated topic; `into` is `dedicated` or `global`."""

    connectors: tuple[str, ...]
    into: str
    prefer: Prefer = Prefer.DEDICATED
    dedicated_topic: str | None = None
    allowances: Allowances = NOTHING_WAIVED


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that the plan creates, compacted."""

    topic: str
    partitions: int
    replication_factor: int

    def as_row(self) -> Row:
        """A member of `data.creates`."""
        return {"topic": self.topic, "partitions": self.partitions, "replication_factor": self.replication_factor}


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Writes with what they were planned from; `name` is the operation's, and begins the names of its reports."""

    name: str
    writes: tuple[PlannedWrite, ...]
    creates: tuple[NewTopic, ...]
    found: OffsetStores
    allowances: Allowances
    problems: tuple[Problem, ...] = ()

    def sends(self) -> list[PlannedWrite]:
        """The writes that put a record, in order."""
        return [write for write in self.writes if write.sends()]

    def connectors(self) -> list[str]:
        """Whose offsets are written, sorted."""
        return sorted({write.key.connector for write in self.sends()})


def plan_offsets_merge(app: App, request: MergeRequest) -> WritePlan:
    """Reads both stores of each connector and decides per key.

    Raises NotFoundError, UsageError for a connector without a dedicated topic, RefusedError where an open transaction
    may hide what a store has.
    """
    found = gather_stores(app, connectors=request.connectors or None, pattern=request.dedicated_topic)
    connectors = sorted(set(request.connectors)) or [n for n in found.connectors() if found.dedicated.of(n) is not None]
    writes: list[PlannedWrite] = []
    for connector in connectors:
        require_store(found, connector, DEDICATED)
        stores = found.of(connector)
        source, target = stores[DEDICATED], stores[GLOBAL]
        if request.into == DEDICATED:
            source, target = target, source
        refuse_hidden(connector, (source, target))
        writes += plan_merge(source, target, connector, into=request.into, prefer=request.prefer)
    refuse_elsewhere(found, connectors)
    return write_plan("offsets-merge", writes, found, allowances=request.allowances)


def write_plan(name: str, writes: Sequence[PlannedWrite], found: OffsetStores, *, allowances: Allowances) -> WritePlan:
    """The plan of `writes`, with the topics that they need made and what is remarkable about them."""
    return WritePlan(
        name=name,
        writes=tuple(writes),
        creates=_new_topics(found, writes),
        found=found,
        allowances=allowances,
        problems=(*found.dedicated.problems, *_scattered_problems(writes)),
    )


def refuse_hidden(connector: str, stores: Sequence[Store]) -> None:
    """Raises RefusedError where an open transaction may hide newer offsets of `connector` in one of `stores`."""
    for store in stores:
        hidden = sorted({store.home(key.raw) for key in store.connectors.get(connector, ()) if store.may_hide(key.raw)})
        if hidden:
            raise RefusedError(
                f"topic {store.topic}, partition {', '.join(map(str, hidden))}: an open transaction may hide newer "
                f"offsets of {connector}",
                hint="`eosctl txn hanging` tells whose it is. Wait for its end, or end it, then plan again.",
            )


def refuse_elsewhere(found: OffsetStores, connectors: Sequence[str]) -> None:
    """Raises RefusedError for connectors whose config names Kafka brokers of its own."""
    elsewhere = sorted(found.dedicated.elsewhere & set(connectors))
    if elsewhere:
        raise RefusedError(
            f"{', '.join(elsewhere)}: the config names Kafka brokers of its own, where the dedicated offsets topic is",
            hint="eosctl can't tell yet whether those are this cluster; nothing was written.",
        )


def _new_topics(found: OffsetStores, writes: Sequence[PlannedWrite]) -> tuple[NewTopic, ...]:
    """The missing topics that a write needs, with the partitions and replication factor of the global topic."""
    like = found.descriptions[found.global_topic]
    missing = sorted({write.topic for write in writes if write.sends() and write.topic not in found.descriptions})
    return tuple(NewTopic(topic, like.partitions, like.replication_factor) for topic in missing)


def _scattered_problems(writes: Sequence[PlannedWrite]) -> list[Problem]:
    scattered = [w for w in writes if w.sends() and w.before is not None and w.before.partition != w.partition]
    return [
        Problem(
            "wrong_partition",
            f"topic {write.topic} has an offset of {write.key.connector} on partition {write.before.partition}, but "
            f"Connect's producer puts it on {write.partition}, and so does this plan: then there are two, and a worker "
            "takes the one that it happens to read last",
            hint="Put a tombstone on the wrong partition after the connector has written once.",
            severity="warning",
        )
        for write in scattered
        if write.before is not None
    ]


def check_writable(app: App, plan: WritePlan) -> None:
    """Raises RefusedError for undecided conflicts, or while a task of the plan's connectors runs or may run."""
    undecided = sum(write.action is Action.CONFLICT for write in plan.writes)
    if undecided:
        raise RefusedError(
            f"{undecided} offsets were written by someone else since the backup was made; nothing was written",
            hint="See which with --dry-run; --overwrite-newer puts the backup over them.",
        )
    if plan.sends():
        given = plan.allowances
        asked = app if given.names() else _with_workers(app)
        refuse_running(asked, plan.connectors(), workers_down=given.workers_down, force_running=given.force_running)


def _with_workers(app: App) -> App:
    """`app` with the URLs that the group's members advertise, where none was given and the group has members."""
    if app.target.connect_urls or app.target.group_id is None:
        return app
    try:
        urls = tuple(discover_urls(app))
    except NotFoundError:
        return app
    return replace(app, target=replace(app.target, connect_urls=urls))


def show_plan(app: App, plan: WritePlan, *, dry_run: bool) -> Report:
    """The plan for people and scripts; raises what `check_writable` raises, which a dry run only warns of."""
    problems = list(plan.problems)
    try:
        check_writable(app, plan)
    except RefusedError as exc:
        if not dry_run:
            raise
        problems.append(Problem(exc.code, f"would be refused: {exc.message}", hint=exc.hint, severity="warning"))
    return Report(
        kind=f"{plan.name}-plan",
        rows=[write_row(write) for write in plan.writes],
        summary=_summary(plan),
        data=_data(plan),
        target=report_target(app, plan.found),
        problems=problems,
    )


def _summary(plan: WritePlan) -> dict[str, object]:
    counts = Counter(write.action for write in plan.writes)
    return {
        "counts": {action.value: counts[action] for action in Action},
        "conflicts": sum(write.conflict for write in plan.writes),
        "creates": len(plan.creates),
    }


def _data(plan: WritePlan) -> dict[str, object]:
    return {"creates": [new.as_row() for new in plan.creates], "overrides": plan.allowances.names()}


Send = Callable[[App, WritePlan], None]
"""Puts the records of a plan where they belong."""


def send_to_topics(app: App, plan: WritePlan) -> None:
    """Creates and writes, with a producer of our own."""
    with app.topics() as topics:
        _create_and_write(topics, plan, plan.sends())


def apply_plan(app: App, plan: WritePlan, again: Callable[[], WritePlan], *, send: Send = send_to_topics) -> Report:
    """Writes `plan` if it still holds; `again` makes it anew where the topics have moved.

    The deadline starts anew: the time in which a person read the plan does not count. Raises StalePlanError or
    RefusedError before anything was written.
    """
    app = _with_whole_timeout(app)
    check_writable(app, plan)
    if moved(app, plan.found):
        renewed = again()
        if renewed.writes != plan.writes or renewed.creates != plan.creates:
            raise StalePlanError("these offsets changed since the plan was made", hint="Plan again.")
    return _write(app, plan, send)


def _with_whole_timeout(app: App) -> App:
    return replace(app, deadline=Deadline.after(app.deadline.timeout_s, app.clock))


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
        return any(topics.bounds(topic) != found.bounds[topic] for topic in there)


def _write(app: App, plan: WritePlan, send: Send) -> Report:
    """Backs up, sends and reads back; exit 7 when a key does not hold afterwards what was planned."""
    sends = plan.sends()
    backup = keep_backup(app, sends, name=plan.name, cluster_id=plan.found.cluster_id)
    app.on_event(Event(f"backup: {backup}"))
    failure: EosctlError | None = None
    outcomes: Mapping[Place, bool] = {}
    try:
        send(app, plan)
    except EosctlError as exc:  # what became of the records is found out by reading, not by guessing
        failure = exc
    try:
        with _with_whole_timeout(app).topics() as topics:
            outcomes = _outcomes(topics, plan)
    except EosctlError as exc:
        failure = failure or exc
    return _result_report(app, plan, outcomes, backup=backup, failure=failure)


def _create_and_write(topics: TopicStore, plan: WritePlan, sends: Sequence[PlannedWrite]) -> None:
    for new in plan.creates:
        topics.create(
            new.topic,
            partitions=new.partitions,
            replication_factor=new.replication_factor,
            config={"cleanup.policy": "compact"},
        )
    # deletions first, topic by topic: a worker that reads half of it must not fall back on what is about to go
    ordered = sorted(sends, key=lambda write: write.after is not None)
    for _stage, writes in groupby(ordered, key=lambda write: (write.after is not None, write.topic)):
        topics.write([OutRecord(w.topic, w.key.raw, w.after, partition=w.partition) for w in writes])


def _outcomes(topics: TopicStore, plan: WritePlan) -> Mapping[Place, bool]:
    """Whether each written key now has its planned value on the written partition."""
    sends = plan.sends()
    there = topics.describe(sorted({write.topic for write in sends}))
    stores = {topic: fold_store(topics.read(topic, newest_per_key=True)) for topic in there}
    return {_place(write): write.topic in stores and _holds(stores[write.topic], write) for write in sends}


def _place(write: PlannedWrite) -> Place:
    return (write.topic, write.key.raw, write.partition)


def _holds(store: Store, write: PlannedWrite) -> bool:
    record = store.at(write.key.raw, write.partition)
    return (record.value if record else None) == write.after


def _result_report(
    app: App,
    plan: WritePlan,
    outcomes: Mapping[Place, bool],
    *,
    backup: Path,
    failure: EosctlError | None,
) -> Report:
    # what was not answered may still happen
    lost = isinstance(failure, UnreachableError | DeadlineError)
    missing = "unconfirmed" if lost else "failed" if failure else "differs"
    names = {True: "written", False: missing, None: "unconfirmed"}
    rows = [
        write_row(write, outcome=names[outcomes.get(_place(write))] if write.sends() else "unchanged")
        for write in plan.writes
    ]
    wrong = [row for row in rows if row["outcome"] not in ("written", "unchanged")]
    problems = [*plan.problems, *([Problem.of(failure)] if failure else [])]
    if wrong:
        message = f"{len(wrong)} of {len(plan.sends())} offsets are not, or not known to be, as planned"
        problems.append(Problem("not_as_planned", message, hint=f"Take it back: {undo_command(backup)}"))
    return Report(
        kind=f"{plan.name}-result",
        rows=rows,
        summary={**_summary(plan), "written": len(plan.sends()) - len(wrong), "not_as_planned": len(wrong)},
        data={**_data(plan), "backup": str(backup), "undo": undo_command(backup)},
        target=report_target(app, plan.found),
        problems=problems,
        exit_code=ExitCode.PARTIAL if wrong or failure else ExitCode.OK,
    )


def require_choice(connectors: Sequence[str], *, everything: bool) -> None:
    """Raises UsageError unless either connectors or all were asked for."""
    if bool(connectors) == everything:
        raise UsageError("which connectors?", hint="Give --connector (repeatable) or --all.")
