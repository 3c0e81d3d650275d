"""What runs in one Connect group, or may, for `fence`: asked where an id can be read as one of its tasks.

The members of the group report which tasks they may run, and REST which of those have failed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace

from eosctl.app import App
from eosctl.connectors.ending_tasks import ENDING_PATIENCE_S
from eosctl.connectors.statuses import running_tasks
from eosctl.core.frozen import frozen
from eosctl.core.ids import WorkerId, worker_id_of_url
from eosctl.core.workers.connector_entry import TaskStatus
from eosctl.core.workers.url import parse_worker_url
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, RefusedError
from eosctl.fence.checks import liveness_unknown
from eosctl.fence.gather import FenceRequest
from eosctl.fence.rules import BEFORE_ITS_START, LiveTask, TaskLiveness, judge_task
from eosctl.group.gather import NO_REST, read_group, urls_of, worker_id_of
from eosctl.group.members import STABLE, ConnectGroup
from eosctl.group.protocol import CONNECTOR_ITSELF, Work
from eosctl.group.workers import silences_of
from eosctl.report import Problem

_POLL_S = 0.25


@frozen
class RunningTasks:
    """What runs in one group, and what may; `doubt` is about each of its tasks. `ending`: REST shows some no more."""

    running: Mapping[Work, LiveTask]
    may_run: Mapping[Work, Problem] = field(default_factory=dict)
    doubt: Problem | None = None
    connectors: frozenset[str] = frozenset()
    ending: bool = False
    gone: ConnectGroup | None = None


@frozen
class _Rest:
    """The tasks that REST shows; `silence` is why it shows none."""

    tasks: Mapping[Work, TaskStatus] = field(default_factory=dict)
    connectors: frozenset[str] = frozenset()
    silence: EosctlError | None = None

    def may_be_of(self, members: Collection[WorkerId] | None) -> bool:
        """Whether workers have answered who do not show by their tasks that they are of another group."""
        at = {status.worker_id for status in self.tasks.values()}
        return self.silence is None and (not at or members is None or not at.isdisjoint(members))


def tasks_of(app: App, request: FenceRequest, wanted: frozenset[Work], *, waits: bool) -> RunningTasks:
    """What runs in the target's group; its rebalance and tasks that are about to end are waited for, if it `waits`."""
    patience = Deadline.after(min(ENDING_PATIENCE_S, app.deadline.remaining_s() / 2), app.clock)
    for _ in patience.rounds(_POLL_S):
        tasks = _look(app, request, wanted, waits=waits)
        if not tasks.ending or not waits:
            break
    return tasks


def _look(app: App, request: FenceRequest, wanted: frozenset[Work], *, waits: bool) -> RunningTasks:
    group, doubt = _read_group(app, waits=waits)
    holders = _holders(group)
    known = frozenset(connector for member in (group.members if group else ()) for connector, _task in member.held)
    gone = group if group is not None and not group.members else None
    if request.live:
        return RunningTasks({work: LiveTask(*work, at[0]) for work, at in holders.items()}, {}, doubt, known, gone=gone)
    rest = _ask_workers(app, group) if app.target.connect_urls or wanted & holders.keys() else _Rest()
    members = None if group is None or doubt is not None else {worker_id_of(member) for member in group.members}
    running: dict[Work, LiveTask] = {}
    may_run: dict[Work, Problem] = {}
    ending = False
    for work in sorted(wanted):
        told, at = rest.tasks.get(work), holders.get(work, [])
        state = None if told is None else told.state
        verdict = judge_task(state, None if told is None else told.worker_id, holders=at, members=members)
        if verdict is TaskLiveness.RUNS and told is not None:
            running[work] = LiveTask(*work, told.worker_id)
        elif verdict is TaskLiveness.MAY_RUN:
            may_run[work] = _may_run(app, at, group, rest, told) if at else _stranger(app, told)
            ending = ending or (bool(at) and rest.may_be_of(members))
    silent = _silent(app, group, {task.worker for task in running.values()})
    may_run |= {work: _died(app, task, silent[task.worker]) for work, task in running.items() if task.worker in silent}
    running = {work: task for work, task in running.items() if task.worker not in silent}
    return RunningTasks(running, may_run, doubt, known | rest.connectors, ending=ending and not running, gone=gone)


def _silent(app: App, group: ConnectGroup | None, workers: Collection[WorkerId]) -> Mapping[WorkerId, EosctlError]:
    """Those of `workers` that do not answer, and why: the others report what they know of their tasks from before."""
    given = {parse_worker_url(url).text: url for url in app.target.connect_urls}
    at = {worker_id_of_url(url): url for url in (urls_of(group) if group else ())}
    return silences_of(app, {worker: given.get(at[worker], at[worker]) for worker in workers if worker in at})


def _read_group(app: App, *, waits: bool) -> tuple[ConnectGroup | None, Problem | None]:
    """The group, and why it does not report who may run what."""
    group_id = app.target.require_group_id()
    try:
        group, _cluster_id = read_group(app, gone_ok=True, wait=waits)
    except EosctlError as error:
        return None, liveness_unknown(f"the members of group {group_id} are unknown: {error.message}", error.hint)
    if group.members and group.state != STABLE:
        message = f"the group {group_id} is {group.state}, so that its members do not report what they run"
        return group, liveness_unknown(message, "Run again when the rebalance is over.")
    return group, None


def _holders(group: ConnectGroup | None) -> dict[Work, list[WorkerId]]:
    """Each task that a member may run, and the workers that may run it."""
    holders: dict[Work, list[WorkerId]] = {}
    for member in group.members if group is not None else ():
        for work in member.held:
            if work[1] != CONNECTOR_ITSELF:
                holders.setdefault(work, []).append(worker_id_of(member))
    return holders


def _ask_workers(app: App, group: ConnectGroup | None) -> _Rest:
    """The URLs that were given, else those of the members; raises RefusedError for one of another Kafka cluster."""
    urls = app.target.connect_urls or tuple(urls_of(group) if group is not None else ())
    try:
        tasks = running_tasks(replace(app, target=replace(app.target, connect_urls=urls))) if urls else {}
    except RefusedError:
        raise
    except EosctlError as error:
        return _Rest(silence=error)
    shown = {(name, status.task): status for name, statuses in tasks.items() for status in statuses}
    return _Rest(shown, frozenset(tasks))


def _may_run(app: App, at: Sequence[str], group: ConnectGroup | None, rest: _Rest, task: TaskStatus | None) -> Problem:
    """A task that a member may run, and of which REST says neither that it runs there nor that it has failed."""
    if group is not None and group.is_mirror_maker:
        message = f"worker {at[0]} of group {group.group_id} may run their tasks: it {NO_REST}"
        return liveness_unknown(message, "Stop the nodes of the MirrorMaker first; without a member no task runs.")
    told = "the workers that were asked did not report them" if rest.silence is None else rest.silence.message
    hint = "Compare -u and -g." if rest.silence is None else rest.silence.hint
    if task is not None and task.state == BEFORE_ITS_START:
        told = f"REST says {task.state} until a task has started, and it has its producer before"
        hint = "Run again when they are RUNNING or FAILED, or stop the connectors first."
    return liveness_unknown(f"worker {at[0]} of group {app.target.group_id} may run their tasks: {told}", hint)


def _died(app: App, task: LiveTask, silence: EosctlError) -> Problem:
    """A task of a worker that was killed: the group counts on it for a while, and REST reports its last state."""
    return liveness_unknown(
        f"worker {task.worker} of group {app.target.group_id} has them, and does not answer: {silence.message}",
        "If it was killed, the group drops it after session.timeout.ms (10 s): run again then. If it runs, stop the "
        "connectors first.",
    )


def _stranger(app: App, told: TaskStatus | None) -> Problem:
    worker = "a worker" if told is None else f"worker {told.worker_id}"
    message = f"{worker} runs tasks of these names, and is no member of group {app.target.group_id}"
    return liveness_unknown(message, "Compare -u and -g.")
