"""Plans a rescue: it completes in seconds a fencing round that exceeds Connect's 90 s, and restarts the failed tasks.

Only for the one case that `rules` recognises. Observes and decides; `apply` executes. The steps follow from the current
state of the cluster and from the journal of an interrupted run.

The journal of `rescue` has what the cluster can't show: restarted tasks, and their epochs before. REST reports a task
RUNNING before it runs, so after a kill only the epochs noted before the restart show which tasks have taken their ids
since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import OtherCluster, cluster_of_ids
from eosctl.connectors.holders import Holding, holders_now
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.ids import ProducerId, TransactionalId, worker_id_of_url
from eosctl.core.transactions import ROUND_S
from eosctl.core.wording import counted
from eosctl.core.workers.connector_entry import TaskStatus
from eosctl.core.workers.url import parse_worker_url
from eosctl.errors import RefusedError, StalePlanError
from eosctl.fence.plan import FencePlan, plan_recorded
from eosctl.foreign import arguments, shell_word
from eosctl.group.absent import find_leader, read_config_topic, refuse_never_there
from eosctl.group.gather import read_group
from eosctl.group.members import STABLE
from eosctl.group.modes import refuse_unreachable
from eosctl.rescue.rules import Diagnosis, RescueVerdict, diagnose, stopped_instead
from eosctl.state.journal import EndEntry, Journal, journal_of
from eosctl.task_counts.guards import Scene, find_connector, scene_of

IdStates = Mapping[TransactionalId, tuple[ProducerId, int] | None]
"""Transactional id -> producer id and epoch; None for an id that no coordinator knows."""


class UnfinishedRescue(Struct, frozen=True):
    """A rescue that was begun and never ended: `done` maps steps to their details, in order.

    `commit_offset` identifies the task set; `restarted` holds the ids of the tasks to restart, with their state before.
    """

    commit_offset: int | None
    began_ms: int
    done: Mapping[str, str] = {}
    restarted: IdStates | None = None


class _Begin(Struct, frozen=True):
    time_ms: int
    commit_offset: int | None = None


class _Start(Struct, frozen=True):
    restarted: IdStates | None = None


class _Done(Struct, frozen=True):
    step: str
    detail: str


_ENTRIES: Mapping[str, type[_Begin | _Start | _Done | EndEntry]] = {
    "begin": _Begin,
    "start": _Start,
    "done": _Done,
    "end": EndEntry,
}


def unfinished_rescue(journal: Journal, connector: ConnectorState) -> UnfinishedRescue | None:
    """Return the unfinished rescue of the connector's newest task set, by the journal; raise EosctlError.

    A run that continues an earlier one adds to it.
    """
    begun: UnfinishedRescue | None = None
    for entry in journal.read(_ENTRIES):
        match entry:
            case _Begin():
                begun = _begun(entry, begun)
            case _Start(restarted) if begun is not None and restarted is not None:
                begun = replace(begun, restarted={**(begun.restarted or {}), **restarted})
            case _Done(step, detail) if begun is not None:
                begun = replace(begun, done={**begun.done, step: detail})
            case EndEntry():
                begun = None
    return begun if begun is not None and begun.commit_offset == connector.commit_offset else None


def _begun(entry: _Begin, earlier: UnfinishedRescue | None) -> UnfinishedRescue:
    if earlier is not None and earlier.commit_offset == entry.commit_offset:
        return earlier
    return UnfinishedRescue(entry.commit_offset, entry.time_ms)


WAIT, FENCE, WRITE, RESTART, WATCH = STEPS = ("wait", "fence", "write", "restart", "watch")


class RescueState(Struct, frozen=True):
    """The connector, its tasks, and their diagnosis; `begun` is an interrupted rescue of it.

    `round_over`: all tasks are on the leader, so they failed with the round, which is over. A follower gives up after
    30 s, while the leader continues.
    """

    scene: Scene
    tasks: Sequence[TaskStatus]
    diagnosis: Diagnosis
    round_over: bool
    journal: Journal
    begun: UnfinishedRescue | None = None
    at: OtherCluster | None = None

    def app_of_ids(self, app: App) -> App:
        """Return the App for the cluster that the tasks write to."""
        return app if self.at is None else self.at.app(app)

    def failed(self) -> list[int]:
        """Return the tasks that are FAILED."""
        return [task.task for task in self.tasks if task.state == "FAILED"]


class RescuePlan(Struct, frozen=True):
    """The steps that heal the connector, in order; none for a healthy one."""

    connector: str
    state: RescueState
    steps: tuple[str, ...]
    fence: FencePlan | None = None

    @property
    def verdict(self) -> RescueVerdict:
        """Return the verdict of the diagnosis."""
        return self.state.diagnosis.verdict


def plan_rescue(app: App, connector: str) -> RescuePlan:
    """Examine the connector and plan its rescue; raise RefusedError, with the observation, if rescue does not apply."""
    state = examine(app, connector)
    if state.diagnosis.verdict is RescueVerdict.OTHER:
        raise RefusedError(
            f"this is no case for rescue: {connector} has {state.diagnosis.seen}{_done_then(state)}",
            hint="rescue is for a connector all of whose tasks are FAILED in zombie fencing. If some still wait for a "
            f"round (REST calls them RUNNING), let it end; or {stopped_instead(connector)}. Otherwise `eosctl doctor` "
            "shows why the tasks failed.",
        )
    if RESTART in _steps(state):
        refuse_unreachable(connector, find_leader(app)[0])
    fence = plan_recorded(app, state.scene.connector) if state.diagnosis.verdict is RescueVerdict.FENCE else None
    return RescuePlan(connector, state, _steps(state), fence)


def _done_then(state: RescueState) -> str:
    if state.begun is None:
        return ""
    return f" (a rescue was begun before and not finished; done then: {', '.join(state.begun.done) or 'nothing'})"


def _steps(state: RescueState) -> tuple[str, ...]:
    wait = () if state.round_over else (WAIT,)
    return {
        RescueVerdict.FENCE: (*wait, FENCE, WRITE, RESTART, WATCH),
        RescueVerdict.RESTART: (RESTART, WATCH),
        RescueVerdict.WATCH: (WATCH,),
        RescueVerdict.HEALTHY: (),
    }[state.diagnosis.verdict]


def examine(app: App, name: str) -> RescueState:
    """Observe the connector; raise NotFoundError, RefusedError if the group is not stable, and what reading raises.

    Raises RefusedError, too, if the tasks write to a Kafka cluster that eosctl can't reach.
    """
    group, cluster_id = read_group(app, gone_ok=True)
    refuse_never_there(app, group, [name])
    if group.state != STABLE:
        raise RefusedError(
            f"the group {group.group_id} is {group.state}, so no task can be restarted; nothing was written",
            hint="Start its workers, or wait for the rebalance to end, and run again. Without workers, "
            f"`eosctl fence --connector {shell_word(name)}` fences.",
        )
    with app.topics() as store:
        topic = read_config_topic(app, store)
    connector = find_connector(topic, name, group_id=group.group_id)
    tasks = _tasks_of(app, name)
    leader = parse_worker_url(group.leader_url).text if group.leader_url else ""
    journal = journal_of(app, "rescue", name, cluster_id=cluster_id)
    begun = unfinished_rescue(journal, connector)
    return RescueState(
        scene=scene_of(topic, connector, group),
        tasks=tasks,
        diagnosis=diagnose(connector, tasks, restarted=begun is not None and begun.restarted is not None),
        round_over=all(worker_id_of_url(leader) == task.worker_id for task in tasks),
        journal=journal,
        begun=begun,
        at=cluster_of_ids(app, name, connector.config),
    )


def _tasks_of(app: App, name: str) -> Sequence[TaskStatus]:
    """Return the tasks as REST reports them; raise RefusedError if a member may run one that REST reports as FAILED."""
    held = holders_now(app, [name])
    if (failure := held.silence or held.doubt) is not None:
        raise failure
    for task in held.tasks.values():
        if task.holding is Holding.HELD and task.status is not None and task.status.state == "FAILED":
            raise RefusedError(
                f"whether {task} runs is not known: REST shows it as FAILED at {task.status.worker_id}; nothing was "
                "written",
                hint=f"`eosctl connectors restart {arguments(name)}` makes the workers report it anew; then run again.",
            )
    return [task.status for task in held.tasks.values() if task.status is not None]


def require_unchanged(app: App, plan: RescuePlan) -> None:
    """Raise StalePlanError unless connector, record and verdict are those of the plan."""
    now, then = examine(app, plan.connector), plan.state
    if (now.scene, now.diagnosis.verdict) != (then.scene, then.diagnosis.verdict):
        raise StalePlanError(
            f"since the plan was made, {plan.connector} changed: it has {now.diagnosis.seen}; no record was written",
            hint="Run again to see what there is to do now.",
        )


def describe_step(plan: RescuePlan, step: str) -> str:
    """Describe what the step will do."""
    state, fence = plan.state, plan.fence
    return {
        WAIT: f"until no round runs on the leader ({ROUND_S:g} s after the task commit, and ids at rest)",
        FENCE: counted(len(fence.wanted()) if fence else 0, "recorded id"),
        WRITE: f"the task-count record {recorded_count(plan)}",
        RESTART: counted(len(state.failed()), "failed task"),
        WATCH: "until each task runs under its own id",
    }[step]


def recorded_count(plan: RescuePlan) -> int:
    """Return the task count to record."""
    return plan.state.scene.connector.task_count or 0
