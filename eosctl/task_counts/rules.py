"""Task-count records: the ids that a leader would fence now, the connectors whose ids are alive, and findings.

Judges values that were read elsewhere; reads and writes nothing. The findings about a connector's task-count record
have one rule per code. A finding is certain unless its text says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from eosctl.codes import Code
from eosctl.core.allowances import Waiver
from eosctl.core.configs.fold import ConfigState, ConnectorState, IgnoredRecord
from eosctl.core.configs.view import rewrite_commands, stop_and_resume
from eosctl.core.findings import Finding
from eosctl.core.ids import TransactionalId, leader_transactional_id, owner_of, task_transactional_id
from eosctl.core.transactions import TransactionListing, TransactionState
from eosctl.core.wording import counted
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.foreign import shell_words
from eosctl.task_counts import codes

MAX_PLAUSIBLE_TASKS = 10_000
_SETTLED = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})


class AliveTask(Struct, frozen=True):
    """A task's transactional id that a coordinator knows; a fenced or finished one remains known for days."""

    task: int
    transactional_id: TransactionalId
    state: TransactionState

    @property
    def is_open(self) -> bool:
        """True if a transaction of this id is in progress now."""
        return self.state not in _SETTLED


class Case(Struct, frozen=True):
    """The facts about one connector; `alive` None means that the coordinators could not be asked.

    `ignored` are the task-count records that no worker takes, and the task commits that break a worker's reader.
    """

    connector: ConnectorState
    group_id: str
    plugin_type: str = "source"
    alive: tuple[AliveTask, ...] | None = None
    ignored: tuple[IgnoredRecord, ...] = ()
    other_groups: frozenset[str] = frozenset()


def find_problems(case: Case) -> list[Finding]:
    """Find everything worth reporting about the connector's record, in the order of the rules; sinks have no record.

    One that was written for a sink all the same breaks workers as any other.
    """
    rules = (_incomplete, _forgotten, _unreadable) if case.plugin_type == "sink" else _RULES
    return [finding for rule in rules for finding in rule(case)]


def _missing(case: Case) -> Iterable[Finding]:
    connector = case.connector
    if connector.task_count_record is not None or connector.config is None or connector.commit_offset is None:
        return
    alive = len(case.alive or ())
    if not alive and connector.task_count == 0:
        return  # it has no task to fence, and gets a record before its first one starts
    yield Finding(
        codes.MISSING,
        "error" if alive else "warning",
        case.connector.name,
        f"no task-count record, and {alive} of its ids are known to the coordinators: the next start fences no id"
        if alive
        else "no task-count record: workers with exactly-once would fence no id at the next start",
        f"Nothing to do if the group does not run exactly-once; else {stop_and_resume(connector.name)}: the leader "
        "writes it.",
    )


def _too_low(case: Case) -> Iterable[Finding]:
    connector, recorded = case.connector, case.connector.task_count_record
    if recorded is None:
        return
    beyond = _alive_beyond(case, recorded)
    now = connector.task_count or 0
    suppressed = not connector.pending_fencing and recorded < now and not connector.inconsistent
    if not beyond and not suppressed:
        return
    certain = suppressed or any(task.is_open for task in beyond)
    missed = (
        f"{_first_ids(beyond)} beyond it are alive: a fencing round would miss them"
        if beyond
        else f"the newest task set has {now}: a fencing round would miss the rest"
    )
    yield Finding(
        codes.TOO_LOW,
        "error" if certain else "warning",
        connector.name,
        f"the record says {recorded}, but {missed}",
        f"{_while_stopped(connector.name, _fence_all(case))}.",
    )


def _alive_beyond(case: Case, recorded: int) -> list[AliveTask]:
    """Return the ids that a fencing round would miss: of the newest task set, or with an open transaction."""
    now = case.connector.task_count or 0
    return [task for task in case.alive or () if task.task >= recorded and (task.is_open or task.task < now)]


def _first_ids(tasks: Sequence[AliveTask]) -> str:
    return ", ".join(task.transactional_id for task in tasks[:3]) + (", …" if len(tasks) > 3 else "")


def _fence_all(case: Case) -> Sequence[str]:
    """Return the command that fences all known ids of the connector, and those of the newest task set."""
    tasks = max([case.connector.task_count or 0, *(each.task + 1 for each in case.alive or ())])
    return ("fence", "--tasks", str(tasks))


def _while_stopped(connector: str, *commands: Sequence[str]) -> str:
    """Return commands about the connector, between its stop and its resume."""
    every: list[Sequence[str]] = [("connectors", "stop", connector)]
    every += [(*words, "--connector", connector) for words in commands]
    every.append(("connectors", "resume", connector))
    return ", ".join(f"`{shell_words('eosctl', *words)}`" for words in every)


def _mis_ordered(case: Case) -> Iterable[Finding]:
    connector = case.connector
    due = connector.pending_fencing and connector.task_count_record is not None and connector.config is not None
    if not due or not connector.task_count or connector.target_state == "STOPPED":
        return
    yield Finding(
        codes.MIS_ORDERED,
        "warning",
        case.connector.name,
        f"the record (offset {connector.record_offset}) is older than the newest task commit (offset "
        f"{connector.commit_offset}): fencing is due, under way, failing, or the workers don't run exactly-once",
        "Look again in a minute; if it stays, see whether the tasks are FAILED with zombie fencing in their trace.",
    )


def _incomplete(case: Case) -> Iterable[Finding]:
    connector = case.connector
    if connector.inconsistent and connector.config is not None:
        yield Finding(
            codes.INCOMPLETE_TASK_SET,
            "error",
            case.connector.name,
            f"the newest commit names {counted(connector.task_count or 0, 'task')}, but not all configs are in the "
            "topic: no task runs until the connector makes new ones",
            "Change the connector's config, or restart the leader, so that it writes all task configs again.",
        )


def _forgotten(case: Case) -> Iterable[Finding]:
    """Find tasks that were committed before the config that compaction has left in the topic."""
    connector = case.connector
    if connector.config is not None and connector.forgotten_commit is not None:
        yield Finding(
            codes.TASKS_FORGOTTEN,
            "error",
            case.connector.name,
            f"its tasks were committed at offset {connector.forgotten_commit}, before the config that is left of it: "
            "workers of 3.7.1 or newer that read the topic anew hold no task of it (KAFKA-17719)",
            f"{stop_and_resume(connector.name)}: it writes its tasks again, after its config.",
        )


def _implausible(case: Case) -> Iterable[Finding]:
    connector, recorded = case.connector, case.connector.task_count_record
    write = ("task-counts", "write", Waiver.NO_FENCE, "--count", str(connector.task_count or 0))
    if recorded is not None and not 0 <= recorded <= MAX_PLAUSIBLE_TASKS:
        yield Finding(
            codes.IMPLAUSIBLE,
            "error",
            case.connector.name,
            f"the record says {recorded} tasks, which no connector has: a fencing round would do nothing or never end",
            f"Find out who wrote it. The true count: {_while_stopped(connector.name, _fence_all(case), write)}.",
        )


_CODES: Mapping[str, Code] = {
    "tombstone": codes.TOMBSTONED,
    **{code: code for code in (codes.WRONG_TYPE, codes.KIP_TEXT_FIELD, codes.KIP_TEXT_KEY, codes.UNPARSABLE)},
}
"""Why the fold passes a record over -> the finding about it."""


def _unreadable(case: Case) -> Iterable[Finding]:
    """Find records that overwriting can't heal: a worker that starts reads both, and may lose both."""
    for record in case.ignored:
        if record.breaks_reader:
            yield Finding(
                _CODES[record.code],
                "error",
                case.connector.name,
                f"record {record.key} at offset {record.offset}: {record.reason}, and stays behind the config topic; "
                "so does each worker that is started before compaction has removed the record",
                _way_out(case, record),
            )


def _way_out(case: Case, record: IgnoredRecord) -> str:
    """Return `task-counts clean` and what must come first: compaction keeps the newest record of each key."""
    connector = case.connector
    newest_good = connector.record_offset if record.is_task_count else connector.commit_offset
    superseded = newest_good is not None and newest_good > record.offset
    held = record.is_task_count and connector.task_count_record is not None and not connector.pending_fencing
    first = "" if superseded or held else f"{rewrite_commands(record)}, then "
    return f"Restart no worker until it is gone: {first}`eosctl task-counts clean` has it compacted away, and watches."


_KIP_TEXT_KEY = "Delete it; a record that workers read has the key tasks-fencing-<connector>."


_PASSED_OVER = "Nothing: workers take the newer record. `eosctl task-counts clean` takes this one out of the topic."


def _ill_written(case: Case) -> Iterable[Finding]:
    newest_good = case.connector.record_offset
    for record in (each for each in case.ignored if not each.breaks_reader):
        superseded = newest_good is not None and newest_good > record.offset
        harmless = _CODES[record.code] in (codes.TOMBSTONED, codes.KIP_TEXT_KEY) or superseded
        yield Finding(
            _CODES[record.code],
            "warning" if harmless else "error",
            case.connector.name,
            f"record {record.key} at offset {record.offset} is ignored: {record.reason}",
            _ill_written_fix(case, record, superseded=superseded),
        )


def _ill_written_fix(case: Case, record: IgnoredRecord, *, superseded: bool) -> str:
    if record.code == codes.KIP_TEXT_KEY:
        return _KIP_TEXT_KEY
    if superseded:
        return _PASSED_OVER
    anew = f"{stop_and_resume(case.connector.name)}: the leader writes the true count (only with exactly-once)."
    if record.code == "tombstone":
        return f"Running workers keep the old count, restarted ones forget it after compaction. {anew}"
    return anew


def _orphan(case: Case) -> Iterable[Finding]:
    if case.connector.config is None and case.connector.task_count_record is not None:
        yield Finding(
            codes.ORPHAN,
            "info",
            case.connector.name,
            "the connector was deleted; Connect keeps its record, to fence old tasks if it is created again",
            "Nothing to do.",
        )


def _id_collision(case: Case) -> Iterable[Finding]:
    """Find another group that may use the same ids, which are joined with `-`; from here only a possibility."""
    first_id = task_transactional_id(case.group_id, case.connector.name, 0)
    readings = []
    leader_of = first_id.removeprefix(leader_transactional_id(""))
    if leader_of != first_id:
        readings.append(f"the leader id of a group {leader_of!r}")
    for group in sorted(case.other_groups):
        connector = first_id.removeprefix(f"{group}-").rpartition("-")[0]
        if first_id.startswith(f"{group}-") and connector:
            readings.append(f"task 0 of a connector {connector!r} of group {group!r}")
    if readings and case.connector.config is not None:
        yield Finding(
            codes.ID_COLLISION,
            "info",
            case.connector.name,
            f"{first_id} is also {' and '.join(readings)}: if that exists, the two fence each other",
            "Rename the connector or the group if both exist.",
        )


_RULES: Sequence[Callable[[Case], Iterable[Finding]]] = (
    _missing, _too_low, _mis_ordered, _incomplete, _forgotten, _implausible, _unreadable, _ill_written,
    _orphan, _id_collision,
)  # fmt: skip


MAX_LISTED_IDS = 10_000  # a wrongly written record may imply two thousand million ids


class FencingDecision(Struct, frozen=True):
    """The leader's action before this connector's tasks start: fence ids 0 to `fence_count` - 1, then write a record.

    `writes` is the count it would record, None if it leaves the record alone; `reason` explains both.
    """

    fence_count: int
    writes: int | None
    reason: str


def fencing_decision(connector: ConnectorState) -> FencingDecision:
    """Return the leader's decision if asked now (`DistributedHerder.doFenceZombieSourceTasks`, Kafka 3.3 to 4.3)."""
    recorded, now = connector.task_count_record, connector.task_count or 0
    if connector.config is None:
        return FencingDecision(0, None, "the connector does not exist: the record is kept for when it is created again")
    if not connector.pending_fencing:
        return FencingDecision(0, None, "no task commit since the record: no id is fenced")
    if recorded is None:
        return FencingDecision(0, now, "there is no record: no id is fenced, the count is recorded")
    if recorded == 1 and now == 1:
        return FencingDecision(0, now, "one task before and now: the new task fences the old one itself")
    return FencingDecision(
        max(recorded, 0), now, f"task configs are newer than the record: fences the {recorded} recorded"
    )


def decision_after_commit(connector: ConnectorState) -> FencingDecision:
    """Return the decision after the next task commit: a resumed, re-created or reconfigured connector writes one."""
    recorded = connector.task_count_record
    if recorded is None:
        return FencingDecision(0, None, "there is no record: no id is fenced")
    if recorded == 1:
        return FencingDecision(1, None, "fences the 1 recorded; if the new set has one task, that task does it")
    return FencingDecision(max(recorded, 0), None, f"fences the {max(recorded, 0)} recorded")


def alive_tasks(
    listings: Iterable[TransactionListing], group_id: str, connectors: Iterable[str]
) -> dict[str, list[AliveTask]]:
    """Return the known ids of each of the group's connectors, in task order."""
    known, prefix = frozenset(connectors), f"{group_id}-"
    alive: dict[str, list[AliveTask]] = {}
    for listing in listings:
        if not known or not listing.transactional_id.startswith(prefix):
            continue
        owner = owner_of(listing.transactional_id, group_id, known)
        if owner.connector is not None and owner.task is not None:
            task = AliveTask(owner.task, listing.transactional_id, listing.state)
            alive.setdefault(owner.connector, []).append(task)
    for tasks in alive.values():
        tasks.sort(key=lambda task: task.task)
    return alive


def other_groups(listings: Iterable[TransactionListing], group_id: str, own_ids: frozenset[str]) -> frozenset[str]:
    """Find other Connect groups on the same Kafka cluster by their leader ids."""
    prefix = leader_transactional_id("")
    ids = (listing.transactional_id for listing in listings)
    groups = {each.removeprefix(prefix) for each in ids if each.startswith(prefix) and each not in own_ids}
    return frozenset(groups - {group_id})


def cases(
    state: ConfigState,
    group_id: str,
    *,
    listings: Sequence[TransactionListing] | None = None,
    types: Mapping[str, str] | None = None,
    elsewhere: Mapping[str, Sequence[TransactionListing] | None] | None = None,
) -> list[Case]:
    """Return one case per connector in the topic, by name; `types` are those that Connect reports.

    `elsewhere` are the listings of the Kafka clusters that connectors have of their own, None where one is unknown.
    """
    ignored = _ignored_task_counts(state)
    names = sorted({*state.connectors, *ignored})
    alive = None if listings is None else alive_tasks(listings, group_id, names)
    own_ids = frozenset(task.transactional_id for tasks in (alive or {}).values() for task in tasks)
    groups = other_groups(listings or (), group_id, own_ids)
    result = []
    for name in names:
        connector = state.connectors.get(name) or ConnectorState(name)
        kind = plugin_type(connector.config, (types or {}).get(name))
        tasks = None if alive is None else tuple(alive.get(name, ()))
        if elsewhere and name in elsewhere:
            there = elsewhere[name]
            tasks = None if there is None else tuple(alive_tasks(there, group_id, names).get(name, ()))
        passed_over = tuple(ignored.get(name, ()))
        result.append(Case(connector, group_id, kind, tasks, passed_over, groups))
    return result


def _ignored_task_counts(state: ConfigState) -> dict[str, list[IgnoredRecord]]:
    """Return ignored records meant as task-count records, or that break a worker's reader, per connector."""
    by_connector: dict[str, list[IgnoredRecord]] = {}
    for record in state.ignored:
        meant = record.code == "kip_text_key" or (record.key or "").startswith("tasks-fencing-")
        if (meant or record.breaks_reader) and record.connector is not None:
            by_connector.setdefault(record.connector, []).append(record)
    return by_connector
