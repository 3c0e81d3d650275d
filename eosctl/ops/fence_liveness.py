"""Whether running tasks hold the ids that are to be fenced, whoever's tasks they are.

The members of a group tell which tasks they may run, and REST which of those have failed. What a flag sets aside is not
asked for: with --live no worker is asked, as all that members may run counts as running; with --unknown-liveness
nothing is waited for; with both, nobody is asked anything.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eosctl.core.connect_group import STABLE, ConnectGroup
from eosctl.core.fencing import LiveTask, Verdict, judge_task
from eosctl.core.group_protocol import CONNECTOR_ITSELF, PROTOCOL_TYPE, Work
from eosctl.core.ids import may_be_task, task_of
from eosctl.core.worker_url import parse_worker_url
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, RefusedError
from eosctl.ops.app import App
from eosctl.ops.connector_statuses import TaskStatus, running_tasks
from eosctl.ops.ending_tasks import ENDING_PATIENCE_S
from eosctl.ops.fence_gather import FenceRequest
from eosctl.ops.worker_view import silences_of
from eosctl.ops.workers import NO_REST, read_group, urls_of, worker_id_of
from eosctl.report import Problem

_QUICK_S = 5.0
_POLL_S = 0.25


@dataclass(frozen=True, slots=True)
class Liveness:
    """The ids that running tasks hold, and those of tasks of which nobody can say whether they run.

    `problems` is what else to know; `connectors` are those of the group that was named, as far as they were heard of,
    and `gone` is that group where it has no members. `groups` are the Connect groups that can be seen; None: unknown.
    """

    by_id: Mapping[str, LiveTask] = field(default_factory=dict)
    unknown: Mapping[str, Problem] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    connectors: frozenset[str] = frozenset()
    gone: ConnectGroup | None = None
    groups: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class _Tasks:
    """What runs in one group, and what may; `doubt` is about each of its tasks. `ending`: REST shows some no more."""

    running: Mapping[Work, LiveTask]
    may_run: Mapping[Work, Problem] = field(default_factory=dict)
    doubt: Problem | None = None
    connectors: frozenset[str] = frozenset()
    ending: bool = False
    gone: ConnectGroup | None = None


@dataclass(frozen=True, slots=True)
class _Rest:
    """The tasks that REST shows; `silence` is why it shows none."""

    tasks: Mapping[Work, TaskStatus] = field(default_factory=dict)
    connectors: frozenset[str] = frozenset()
    silence: EosctlError | None = None

    def may_be_of(self, members: Collection[str] | None) -> bool:
        """Whether workers have answered who do not show by their tasks that they are of another group."""
        at = {status.worker_id for status in self.tasks.values()}
        return self.silence is None and (not at or members is None or not at.isdisjoint(members))


def find_liveness(app: App, request: FenceRequest, ids: Sequence[str]) -> Liveness:
    """Asks every Connect group that one of `ids` can be read as belonging to; an unknown is never taken for a no.

    Raises RefusedError when a worker that was named belongs to another Kafka cluster.
    """
    if request.live and request.unknown_liveness:
        return Liveness(problems=(_unknown("nobody was asked, as told by --live and --unknown-liveness"),))
    app = _with_part_of_the_time(app, request)
    groups, doubt = list_connect_groups(app)
    by_id: dict[str, LiveTask] = {}
    unknown = {} if doubt is None else {each: doubt for each in ids if may_be_task(each)}
    connectors: frozenset[str] = frozenset()
    gone: ConnectGroup | None = None
    named = [app.target.group_id] if app.target.group_id else []
    for group_id in dict.fromkeys([*named, *sorted(groups or ())]):
        prefix = f"{group_id}-"  # of 100,000 ids, quicker than by task_of alone
        its_own = (each for each in ids if each.startswith(prefix))
        works = {each: work for each in its_own if (work := task_of(each, group_id)) is not None}
        if not works:
            continue
        waits = not request.unknown_liveness and (groups is None or group_id in groups)  # a forgotten one is not listed
        tasks = _tasks_of(_at_group(app, group_id), request, frozenset(works.values()), waits=waits)
        if group_id == app.target.group_id:
            connectors, gone = tasks.connectors, tasks.gone
        for each, work in works.items():
            if work in tasks.running:
                by_id.setdefault(each, replace(tasks.running[work], group_id=_if_other(app, group_id)))
            elif (problem := tasks.may_run.get(work) or tasks.doubt) is not None:
                unknown[each] = problem
    unknown = {each: problem for each, problem in unknown.items() if each not in by_id}
    nobody = app.target.group_id is None and not groups and any(may_be_task(each) for each in ids)
    problems = tuple(dict.fromkeys(unknown.values())) or ((_NO_GROUP,) if nobody else ())
    return Liveness(by_id, unknown, problems, connectors, gone, groups)


def _with_part_of_the_time(app: App, request: FenceRequest) -> App:
    """Who is silent must leave time to say so, or to fence."""
    part_s = math.ceil(app.deadline.remaining_s() * 5) / 10  # a half, in words that a message can say
    part_s = min(part_s, _QUICK_S) if request.unknown_liveness else part_s
    return replace(app, deadline=Deadline.after(part_s, app.clock))


def list_connect_groups(app: App) -> tuple[frozenset[str] | None, Problem | None]:
    """The Connect groups of this Kafka cluster that one may see, or why that can't be told."""
    try:
        with app.transactions() as admin:
            listed = admin.list_groups()
    except EosctlError as error:
        return None, _unknown(f"which Connect groups there are can't be told: {error.message}", error.hint)
    return frozenset(group_id for group_id, kind in listed.items() if kind == PROTOCOL_TYPE), None


def _at_group(app: App, group_id: str) -> App:
    """The URLs that were given are of the group that was named."""
    if group_id == app.target.group_id:
        return app
    return replace(app, target=replace(app.target, group_id=group_id, connect_urls=()))


def _if_other(app: App, group_id: str) -> str | None:
    return None if group_id == app.target.group_id else group_id


def _tasks_of(app: App, request: FenceRequest, wanted: frozenset[Work], *, waits: bool) -> _Tasks:
    """What runs in the target's group; its rebalance and tasks that are about to end are waited for, if it `waits`."""
    patience = Deadline.after(min(ENDING_PATIENCE_S, app.deadline.remaining_s() / 2), app.clock)
    while True:
        tasks = _look(app, request, wanted, waits=waits)
        if not tasks.ending or not waits or patience.expired():
            return tasks
        patience.sleep(_POLL_S)


def _look(app: App, request: FenceRequest, wanted: frozenset[Work], *, waits: bool) -> _Tasks:
    group, doubt = _read_group(app, waits=waits)
    holders = _holders(group)
    known = frozenset(connector for member in (group.members if group else ()) for connector, _task in member.held)
    gone = group if group is not None and not group.members else None
    if request.live:
        return _Tasks({work: LiveTask(*work, at[0]) for work, at in holders.items()}, {}, doubt, known, gone=gone)
    rest = _ask_workers(app, group) if app.target.connect_urls or wanted & holders.keys() else _Rest()
    members = None if group is None or doubt is not None else {worker_id_of(member) for member in group.members}
    running: dict[Work, LiveTask] = {}
    may_run: dict[Work, Problem] = {}
    ending = False
    for work in sorted(wanted):
        told, at = rest.tasks.get(work), holders.get(work, [])
        state = None if told is None else told.state
        verdict = judge_task(state, None if told is None else told.worker_id, holders=at, members=members)
        if verdict is Verdict.RUNS and told is not None:
            running[work] = LiveTask(*work, told.worker_id)
        elif verdict is Verdict.MAY_RUN:
            may_run[work] = _may_run(app, at, group, rest) if at else _stranger(app, told)
            ending = ending or (bool(at) and rest.may_be_of(members))
    silent = _silent(app, group, {task.worker for task in running.values()})
    may_run |= {work: _died(app, task, silent[task.worker]) for work, task in running.items() if task.worker in silent}
    running = {work: task for work, task in running.items() if task.worker not in silent}
    return _Tasks(running, may_run, doubt, known | rest.connectors, ending=ending and not running, gone=gone)


def _silent(app: App, group: ConnectGroup | None, workers: Collection[str]) -> Mapping[str, EosctlError]:
    """Those of `workers` that do not answer, and why: the others tell what they know of their tasks from before."""
    given = {parse_worker_url(url).text: url for url in app.target.connect_urls}
    at = {url.partition("://")[2]: url for url in (urls_of(group) if group else ())}
    return silences_of(app, {worker: given.get(at[worker], at[worker]) for worker in workers if worker in at})


def _read_group(app: App, *, waits: bool) -> tuple[ConnectGroup | None, Problem | None]:
    """The group, and why it does not tell who may run what."""
    group_id = app.target.require_group_id()
    try:
        group, _cluster_id = read_group(app, gone_ok=True, wait=waits)
    except EosctlError as error:
        return None, _unknown(f"the members of group {group_id} can't be told: {error.message}", error.hint)
    if group.members and group.state != STABLE:
        message = f"the group {group_id} is {group.state}, so that its members do not tell what they run"
        return group, _unknown(message, "Run again when the rebalance is over.")
    return group, None


def _holders(group: ConnectGroup | None) -> dict[Work, list[str]]:
    """Each task that a member may run, and the workers that may run it."""
    holders: dict[Work, list[str]] = {}
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


def _may_run(app: App, at: Sequence[str], group: ConnectGroup | None, rest: _Rest) -> Problem:
    """A task that a member may run, and of which REST says neither that it runs there nor that it has failed."""
    if group is not None and group.is_mirror_maker:
        message = f"worker {at[0]} of group {group.group_id} may run their tasks: it {NO_REST}"
        return _unknown(message, "Stop the nodes of the MirrorMaker first; without a member no task runs.")
    told = "the workers that were asked do not tell" if rest.silence is None else rest.silence.message
    hint = "Compare -u and -g." if rest.silence is None else rest.silence.hint
    return _unknown(f"worker {at[0]} of group {app.target.group_id} may run their tasks: {told}", hint)


def _died(app: App, task: LiveTask, silence: EosctlError) -> Problem:
    """A task of a worker that was killed: the group counts on it for a while, and REST tells its last state."""
    return _unknown(
        f"worker {task.worker} of group {app.target.group_id} has them, and does not answer: {silence.message}",
        "If it was killed, the group drops it after session.timeout.ms (10 s): run again then. If it runs, stop the "
        "connectors first.",
    )


def _stranger(app: App, told: TaskStatus | None) -> Problem:
    worker = "a worker" if told is None else f"worker {told.worker_id}"
    message = f"{worker} runs tasks of these names, and is no member of group {app.target.group_id}"
    return _unknown(message, "Compare -u and -g.")


def _unknown(reason: str, hint: str | None = None) -> Problem:
    message = f"whether running tasks hold these ids is unknown: {reason}"
    return Problem("liveness_unknown", message, hint, severity="warning")


_NO_GROUP = _unknown("no Connect group was named, and none can be seen on this Kafka cluster", "Give -g GROUP_ID.")
