"""The findings about a connector's task-count record: one rule per code.

Judges values that were read elsewhere; reads and writes nothing. A finding is certain unless its text says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from eosctl.codes import Code
from eosctl.core.allowances import Waiver
from eosctl.core.configs.cleaning import rewrite_commands, stop_and_resume
from eosctl.core.configs.fold import ConnectorState, IgnoredRecord
from eosctl.core.findings import Finding
from eosctl.core.ids import TransactionalId, leader_transactional_id, task_transactional_id
from eosctl.core.transactions import TransactionState
from eosctl.core.wording import counted
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
            "workers of 3.8 or newer that read the topic anew hold no task of it (KAFKA-17719)",
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
