"""Recognises a connector whose fencing round Connect can't finish, from its task states and its record.

A round fences about one id per second and coordinator and dies after 90 s (Kafka 3.7 to 4.3), so that beyond about 90
recorded ids every task fails, and each restart begins at the first id again. Reads nothing, decides only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum, unique

from msgspec import Struct

from eosctl.connectors.look import FAILED, failed_in_fencing
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.transactions import FENCING_FAILED, ROUND_S
from eosctl.core.wording import counted
from eosctl.core.workers.connector_entry import TaskStatus
from eosctl.foreign import arguments, shell_word
from eosctl.task_counts.rules import fencing_decision


@unique
class RescueVerdict(StrEnum):
    """The possible rescue: all steps; restart alone; watch alone; none, as all is well; none, as it is another case."""

    FENCE = "fence"
    RESTART = "restart"
    WATCH = "watch"
    HEALTHY = "healthy"
    OTHER = "other"


class Diagnosis(Struct, frozen=True):
    """The verdict, and the observation behind it."""

    verdict: RescueVerdict
    seen: str


def diagnose(connector: ConnectorState, tasks: Sequence[TaskStatus], *, restarted: bool = False) -> Diagnosis:
    """Decide whether native fencing and a record heal this connector; `restarted` by an interrupted rescue.

    While fencing is due (commit newer than record), no task of the newest set can have begun, so all of them must be
    FAILED: one that REST reports RUNNING waits for a round, which would fence it later, when it really runs.
    """
    seen = f"{describe_tasks(tasks)}; {_record_text(connector)}"
    return Diagnosis(_verdict(connector, tasks, restarted=restarted), seen)


def _verdict(connector: ConnectorState, tasks: Sequence[TaskStatus], *, restarted: bool) -> RescueVerdict:
    complete = bool(tasks) and [task.task for task in tasks] == connector.task_ids
    if not complete or connector.target_state != "STARTED":
        return RescueVerdict.OTHER
    if connector.pending_fencing:
        return RescueVerdict.FENCE if _waits_for_fencing(connector, tasks) else RescueVerdict.OTHER
    return _verdict_once_fenced(tasks, restarted=restarted)


def _waits_for_fencing(connector: ConnectorState, tasks: Sequence[TaskStatus]) -> bool:
    """Decide whether all tasks have failed, one of them in a fencing round, with at least one id to fence."""
    all_failed = all(task.state == FAILED for task in tasks)
    blamed = any(FENCING_FAILED in task.trace for task in tasks)
    return all_failed and blamed and fencing_decision(connector).fence_count > 0


def _verdict_once_fenced(tasks: Sequence[TaskStatus], *, restarted: bool) -> RescueVerdict:
    failed = [task for task in tasks if task.state == FAILED]
    if restarted and not failed:
        return RescueVerdict.WATCH
    if all(task.state == "RUNNING" for task in tasks):
        return RescueVerdict.HEALTHY
    blamed = bool(failed) and all(failed_in_fencing(task) for task in failed)
    return RescueVerdict.RESTART if blamed else RescueVerdict.OTHER


def stopped_instead(connector: str) -> str:
    """Return the commands that fence the old tasks while a round may still run, which rescue can't do."""
    return (
        f"`eosctl connectors stop {arguments(connector)}`, wait {ROUND_S:g} s for the round to end, "
        f"`eosctl task-counts write --connector {shell_word(connector)} --count 0`, which fences the old tasks, and "
        f"`eosctl connectors resume {arguments(connector)}`"
    )


def describe_tasks(tasks: Sequence[TaskStatus]) -> str:
    """Format the tasks as `109 tasks (109 FAILED; 109 FAILED in zombie fencing)`."""
    states = Counter(task.state for task in tasks)
    listed = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
    blamed = sum(failed_in_fencing(task) for task in tasks)
    return f"{counted(len(tasks), 'task')} ({listed}; {blamed} FAILED in zombie fencing)"


def _record_text(connector: ConnectorState) -> str:
    if connector.task_count_record is None:
        return "no task-count record"
    order = "older" if connector.pending_fencing else "newer"
    return (
        f"the record of {connector.task_count_record} (offset {connector.record_offset}) is {order} than the newest "
        f"task commit (offset {connector.commit_offset}), target state {connector.target_state}"
    )
