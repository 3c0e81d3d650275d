"""The tasks that run, or may run, in one Connect group, for `fence`; it is asked if an id may be one of its tasks.

The members of the group report which tasks they may run, and REST which of those have failed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.holders import (
    BEFORE_ITS_START,
    HeldTask,
    Holding,
    TaskHolders,
    await_ending,
    group_or_doubt,
    holders_by_task,
    is_live,
    judge_holders,
    shown_connectors,
)
from eosctl.core.ids import WorkerId, worker_id_of_url
from eosctl.core.workers.connector_entry import ConnectorEntry, TaskStatus
from eosctl.core.workers.url import parse_worker_url
from eosctl.errors import EosctlError
from eosctl.fence.gather import FenceRequest, liveness_unknown
from eosctl.fence.rules import LiveTask
from eosctl.group.gather import NO_REST, urls_of, worker_id_of
from eosctl.group.members import ConnectGroup
from eosctl.group.modes import silences_of
from eosctl.group.protocol import Work
from eosctl.report import Problem


class RunningTasks(Struct, frozen=True):
    """The tasks that run in one group, and those that may; `doubt` applies to every other task of it."""

    running: Mapping[Work, LiveTask]
    may_run: Mapping[Work, Problem] = {}
    doubt: Problem | None = None
    connectors: frozenset[str] = frozenset()
    group: ConnectGroup | None = None


def tasks_of(app: App, request: FenceRequest, wanted: frozenset[Work], *, waits: bool) -> RunningTasks:
    """Return the tasks of the target's group that run or may; if it `waits`, let rebalances and ending tasks finish."""

    def look() -> TaskHolders:
        held = _holders_now(app, wanted, waits=waits, asks=not request.live)
        return replace(held, tasks={work: task for work, task in held.tasks.items() if work in wanted})

    held = await_ending(app, look) if waits and not request.live else look()
    group, doubt = held.group, _doubt(app, held)
    by_members = {connector for member in (group.members if group else ()) for connector, _task in member.held}
    known = frozenset({*by_members, *held.connectors})
    if request.live:
        running = {work: LiveTask(*work, worker_id_of(task.holders[0])) for work, task in held.tasks.items()}
        return RunningTasks(running, {}, doubt, known, group)
    running = {
        work: LiveTask(*work, task.status.worker_id)
        for work, task in held.tasks.items()
        if task.holding is Holding.RUNS and task.status is not None
    }
    may_run = {
        work: problem
        for work, task in held.tasks.items()
        if (problem := _liveness_problem(app, held, task)) is not None
    }
    silent = _silent_workers(app, group, {task.worker for task in running.values()})
    may_run |= {
        work: _killed_worker_problem(app, task, silent[task.worker])
        for work, task in running.items()
        if task.worker in silent
    }
    running = {work: task for work, task in running.items() if task.worker not in silent}
    return RunningTasks(running, may_run, doubt, known, group)


def _holders_now(app: App, wanted: frozenset[Work], *, waits: bool, asks: bool) -> TaskHolders:
    """Ask the members; ask the workers, too, if they were named or a member may run one of the tasks."""
    connectors = {connector for connector, _task in wanted}
    group, doubt = group_or_doubt(app, wait=waits)
    shown: Mapping[str, ConnectorEntry] = {}
    silence = None
    urls = app.target.connect_urls or tuple(urls_of(group) if group is not None else ())
    if asks and urls and (app.target.connect_urls or not wanted.isdisjoint(holders_by_task(group))):
        shown, silence = shown_connectors(replace(app, target=replace(app.target, connect_urls=urls)))
    held = judge_holders(connectors, shown, group, doubt)
    if any(held.is_stopped(connector) for connector in connectors):  # the members count, as they are after the stop
        held = judge_holders(connectors, shown, *group_or_doubt(app, wait=waits))
    return replace(held, silence=silence)


def _doubt(app: App, held: TaskHolders) -> Problem | None:
    """Return why the group does not report who may run what."""
    if held.doubt is None:
        return None
    message = held.doubt.message
    if held.group is None:
        message = f"the members of group {app.target.group_id} are unknown: {message}"
    return liveness_unknown(message, held.doubt.hint)


def _silent_workers(
    app: App, group: ConnectGroup | None, workers: Collection[WorkerId]
) -> Mapping[WorkerId, EosctlError]:
    """Return those of `workers` that do not answer, and why; the others report outdated states of their tasks."""
    given = {parse_worker_url(url).text: url for url in app.target.connect_urls}
    at = {worker_id_of_url(url): url for url in (urls_of(group) if group else ())}
    return silences_of(app, {worker: given.get(at[worker], at[worker]) for worker in workers if worker in at})


def _liveness_problem(app: App, held: TaskHolders, task: HeldTask) -> Problem | None:
    """Return the problem that the task may run: REST reports it neither RUNNING at a member nor FAILED; else None.

    A task that has failed, or that a non-member runs, or that has no worker, is a case for `fence`.
    """
    if task.holding is Holding.UNKNOWN:
        return _stranger_problem(app, task.status) if is_live(task.status) else None
    if task.holding is not Holding.HELD:
        return None
    worker, group, group_id = worker_id_of(task.holders[0]), held.group, app.target.group_id
    if group is not None and group.is_mirror_maker:
        message = f"worker {worker} of group {group_id} may run their tasks: it {NO_REST}"
        return liveness_unknown(message, "Stop the nodes of the MirrorMaker first; without a member no task runs.")
    reason = "the workers that were asked did not report them" if held.silence is None else held.silence.message
    hint = "Compare -u and -g." if held.silence is None else held.silence.hint
    if held.is_stopped(task.connector):
        reason = "the connector is STOPPED, and the worker has not let go of them"
        hint = "Run again in some seconds."
    elif task.status is not None and task.status.state == BEFORE_ITS_START:
        reason = f"REST says {task.status.state} until a task has started, and it has its producer before"
        hint = "Run again when they are RUNNING or FAILED, or stop the connectors first."
    return liveness_unknown(f"worker {worker} of group {group_id} may run their tasks: {reason}", hint)


def _killed_worker_problem(app: App, task: LiveTask, silence: EosctlError) -> Problem:
    """Return the problem of a killed worker's task: the group counts the worker for a while, REST has its old state."""
    return liveness_unknown(
        f"worker {task.worker} of group {app.target.group_id} has them, and does not answer: {silence.message}",
        "If it was killed, the group drops it after session.timeout.ms (10 s): run again then. If it runs, stop the "
        "connectors first.",
    )


def _stranger_problem(app: App, status: TaskStatus | None) -> Problem:
    worker = "a worker" if status is None else f"worker {status.worker_id}"
    message = f"{worker} runs tasks of these names, and is no member of group {app.target.group_id}"
    return liveness_unknown(message, "Compare -u and -g.")
