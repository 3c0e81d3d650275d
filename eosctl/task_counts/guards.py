"""The guards of `task-counts write`: everything it reads to decide whether a record may be written now.

Reads only. Each guard raises RefusedError with what was seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from eosctl.app import App
from eosctl.connectors.holders import HeldTask, who_holds
from eosctl.core.allowances import Waiver
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.fencing_rounds import ROUND_S, ROUND_TIMEOUTS_MS
from eosctl.core.ids import Owner, stop_request, task_transactional_ids
from eosctl.core.transactions import KafkaFault, TransactionDescription
from eosctl.core.wording import counted
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.errors import RefusedError
from eosctl.events import Event
from eosctl.fence.rules import FenceOutcome, plan_items
from eosctl.foreign import arguments, shell_word
from eosctl.group.absent import KnownEvidence, refuse_never_there
from eosctl.group.gather import read_group
from eosctl.group.members import DEAD, EMPTY, STABLE
from eosctl.group.observation.absence import Recorded
from eosctl.group.topics.config import read_config_topic
from eosctl.group.topics.config_reader import ConfigTopic
from eosctl.task_counts.findings import MAX_PLAUSIBLE_TASKS
from eosctl.task_counts.record import Scene, find_connector, scene_of
from eosctl.task_counts.rules import alive_tasks
from eosctl.task_counts.writes import left_out

_NAMED = 5
_ROUND_SEEN_S = 3.0


def observe_for_write(app: App, name: str, *, count: int | None = None) -> Scene:
    """Read the connector and its group for a write; tasks may run if the record already has `count`.

    Raises NotFoundError for an unknown connector; RefusedError for a sink, while the connector has tasks, while the
    group is neither Stable nor without members, and if a worker answers for a group without members.
    """
    group, _cluster_id = read_group(app, gone_ok=True)
    if group.state not in (STABLE, EMPTY, DEAD):
        raise RefusedError(
            f"the group {group.group_id} is {group.state}: who runs what is not known now; nothing was written",
            hint="Run again when the rebalance is over.",
        )
    with app.topics() as store:
        topic = read_config_topic(app, store)
    connector = find_connector(topic, name, group_id=group.group_id)
    if plugin_type(connector.config) == "sink":
        raise RefusedError(f"{name} is a sink connector: it has no task-count record; nothing was written")
    if group.state == STABLE:
        _refuse_tasks(app, topic, connector, may_run=count is not None and is_recorded(connector, count))
    else:
        # nobody is asked who runs: a mistyped group would write past the workers of the right one
        refuse_never_there(
            app, group, topic.state.connectors, KnownEvidence(recorded=Recorded.of(topic.state, topic.read))
        )
    return scene_of(topic, connector, group)


def is_recorded(connector: ConnectorState, count: int) -> bool:
    """Decide whether a record of `count` would change neither what is recorded nor its order."""
    return connector.task_count_record == count and not connector.pending_fencing


def _refuse_tasks(app: App, topic: ConfigTopic, connector: ConnectorState, *, may_run: bool) -> None:
    held = who_holds(app, [connector.name])
    if held.silence is not None:
        raise held.silence
    if connector.name not in held.connectors and connector.config is not None:
        raise RefusedError(
            f"topic {topic.read.topic} has the config of {connector.name}, which the workers do not know: whether it "
            "runs is unknown; nothing was written",
            hint="Name a worker and the config topic of the same group.",
        )
    tasks = held.left(connector.name)
    if tasks and not may_run:
        ending = tasks == held.ending()
        listed = ", ".join(map(_told, tasks[:_NAMED]))
        raise RefusedError(
            f"connector {connector.name} has {counted(len(tasks), 'task')} ({listed}); nothing was written",
            hint="Their workers have not let go of them: run again in some seconds."
            if ending
            else f"Stop it ({stop_request(connector.name)}), then run again. If all of them are FAILED "
            f"in zombie fencing: eosctl rescue --connector {shell_word(connector.name)}",
        )
    if held.doubt is not None and not may_run:
        raise RefusedError(
            f"whether a worker runs tasks of {connector.name} is not known: {held.doubt.message}; nothing was written",
            hint=held.doubt.hint,
        )


def _told(task: HeldTask) -> str:
    if task.status is None:
        return f"task {task.task} is still at {task.url}"
    return f"task {task.task} is {task.status.state} at {task.status.worker_id}"


def refuse_running_round(app: App, scene: Scene, *, there: App) -> None:
    """Refuse while a fencing round of the leader runs: begun before the stop, it may write its record after ours.

    A round shows only in the ids that it initializes: about one recorded id per second, with a timeout of its own.
    `there` leads to the cluster that the connector's tasks write to. Raises RefusedError.
    """
    age_s = app.clock.now_s() - scene.committed_ms / 1000
    recorded = scene.connector.task_count_record or 0
    if (
        scene.group_state == EMPTY
        or not 2 <= recorded <= MAX_PLAUSIBLE_TASKS
        or scene.committed_ms < 0
        or age_s > ROUND_S
    ):
        return
    ids = task_transactional_ids(app.target.require_group_id(), scene.connector.name, recorded)
    app.on_event(Event(f"looking whether a fencing round of the leader still runs ({_ROUND_SEEN_S:g} s)"))
    with there.transactions() as admin:
        before = admin.describe_transactions(ids)
        app.deadline.sleep(_ROUND_SEEN_S)
        now = admin.describe_transactions(ids)
    moved = [each for each in ids if now.get(each) != before.get(each) and _fenced_by_round(now.get(each))]
    if moved:
        raise RefusedError(
            f"a fencing round of the leader is under way: in the last {_ROUND_SEEN_S:g} s it fenced "
            f"{' '.join(moved[:_NAMED])}; nothing was written",
            hint=f"Run again when it is over: {ROUND_S:g} s after the stop at the latest.",
        )


def _fenced_by_round(state: TransactionDescription | KafkaFault | None) -> bool:
    return isinstance(state, TransactionDescription) and state.transaction_timeout_ms in ROUND_TIMEOUTS_MS


def refuse_implausible(connector: ConnectorState) -> None:
    """Raise RefusedError for a recorded count that no connector has."""
    recorded = connector.task_count_record or 0
    if not 0 <= recorded <= MAX_PLAUSIBLE_TASKS:
        raise RefusedError(
            f"the record says {recorded} tasks, which no connector has: fencing so many ids would never end",
            hint="Fence the ids that exist (eosctl fence --prefix GROUP-CONNECTOR-), then write with "
            f"{Waiver.NO_FENCE}.",
        )


def refuse_left_out(app: App, connector: str, count: int, *, fenced: Sequence[str], there: App) -> None:
    """Raise RefusedError if a record of `count` would leave out ids that are alive and not `fenced` before it.

    `there` leads to the cluster that the connector's tasks write to.
    """
    group_id = app.target.require_group_id()
    with there.transactions() as admin:
        listings = admin.list_transactions().complete()
        alive = alive_tasks(listings, group_id, [connector]).get(connector, [])
        beyond = left_out(alive, count, fenced=set(fenced))
        ids = [task.transactional_id for task in beyond]
        described = admin.describe_transactions(ids) if ids else {}
    owner = Owner("task", connector)
    items = plan_items(ids, described, owner_of_id=lambda _id: owner, live={}, create_unknown=False)
    missed = [
        task
        for task, item in zip(beyond, items, strict=True)
        if item.outcome is not FenceOutcome.SKIPPED_UNKNOWN and not item.already_fenced
    ]
    if missed:
        names = [task.transactional_id for task in missed[:_NAMED]]
        more = " ..." if len(missed) > _NAMED else ""
        raise RefusedError(
            f"a record of {count} would leave out {counted(len(missed), 'known id')}: {' '.join(names)}{more}; "
            "nothing was written",
            hint=f"Write at least {missed[-1].task + 1}, or fence them first: `eosctl fence {arguments(*names)}`{more}",
        )
