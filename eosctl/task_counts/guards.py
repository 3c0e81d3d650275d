"""The guards of `task-counts write`, and the write of one task-count record.

The guards read everything that decides whether a record may be written now. They only read, and each raises
RefusedError with what was seen.

One record is found in the config topic, backed up, written, and read back. That judges nothing: its callers decide
whether a record may be written.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from eosctl.app import App
from eosctl.connectors.holders import HeldTask, who_holds
from eosctl.core.allowances import Waiver
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.configs.records import task_count_key, task_count_value
from eosctl.core.ids import Owner, leader_transactional_id, own_transactional_id, stop_request, task_transactional_ids
from eosctl.core.records import OutRecord, Record
from eosctl.core.transactions import (
    ROUND_S,
    ROUND_TIMEOUTS_MS,
    KafkaFault,
    TransactionDescription,
)
from eosctl.core.wording import counted
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.deadline import Event
from eosctl.errors import EosctlError, InterruptedByUserError, NotFoundError, RefusedError
from eosctl.fence.rules import FenceOutcome, plan_items
from eosctl.foreign import arguments, shell_word
from eosctl.group.absent import KnownEvidence, read_config_topic, refuse_never_there
from eosctl.group.gather import read_group
from eosctl.group.members import DEAD, EMPTY, STABLE, ConnectGroup
from eosctl.group.observation.absence import Recorded
from eosctl.group.topics import ConfigTopic
from eosctl.state.backups import keep_record_backup
from eosctl.task_counts.rules import MAX_PLAUSIBLE_TASKS, alive_tasks
from eosctl.task_counts.write_rows import left_out

_READ_BACK_S = 0.1
_READ_BACK_TIMES = 20


class Scene(Struct, frozen=True):
    """A connector and its group as they are now; `leader_url` is None for a group without members.

    `committed_ms` is when the newest task set was written, or -1.
    """

    cluster_id: str
    connector: ConnectorState
    before: Record | None
    group_state: str
    leader_url: str | None
    committed_ms: int = -1


class RecordWrite(Struct, frozen=True):
    """The outcome of one record: `now` is the connector as read back, None if it could not be read."""

    outcome: str
    backup: str
    now: ConnectorState | None = None
    failure: EosctlError | None = None

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C came while it was written, or read back."""
        return isinstance(self.failure, InterruptedByUserError)


def find_connector(topic: ConfigTopic, name: str, *, group_id: str) -> ConnectorState:
    """Return the connector as a worker holds it; raise NotFoundError, or RefusedError if records may be hidden."""
    refuse_hidden_records(topic, group_id=group_id)
    connector = topic.state.connectors.get(name)
    if connector is None:
        raise NotFoundError(
            f"topic {topic.read.topic} has no connector {name!r}",
            hint="See `eosctl task-counts list`; names are case-sensitive.",
        )
    return connector


def refuse_hidden_records(topic: ConfigTopic, *, group_id: str) -> None:
    """Raise RefusedError while an open transaction hides the end of the topic; the log cleaner waits there, too."""
    if topic.read.blocked():
        ours, leader = own_transactional_id(group_id), leader_transactional_id(group_id)
        raise RefusedError(
            f"topic {topic.read.topic}: an open transaction hides newer records; nothing was written",
            hint=f"`eosctl txn hanging --topic {shell_word(topic.read.topic)}` shows its producer. Wait for its end, "
            f"or end it, and run again. If it is that of {ours}, a killed eosctl left it: "
            f"`eosctl fence {arguments(ours)}` ends it at once; so does "
            f"`eosctl fence {Waiver.ALLOW_LEADER} {arguments(leader)}`, if the group has no members.",
        )


def scene_of(topic: ConfigTopic, connector: ConnectorState, group: ConnectGroup) -> Scene:
    """Return the scene as read; treat a group that is not Stable as one without members."""
    return Scene(
        cluster_id=topic.cluster_id,
        connector=connector,
        before=_newest_record(topic, connector),
        group_state=STABLE if group.state == STABLE else EMPTY,
        leader_url=group.leader_url,
        committed_ms=_newest_commit_ms(topic, connector),
    )


def _newest_record(topic: ConfigTopic, connector: ConnectorState) -> Record | None:
    """Return the task-count record that the workers took last."""
    return next((record for record in topic.read.records if record.offset == connector.record_offset), None)


def _newest_commit_ms(topic: ConfigTopic, connector: ConnectorState) -> int:
    """Return when the newest task set was written, or -1."""
    commits = (record for record in topic.read.records if record.offset == connector.commit_offset)
    return next((commit.timestamp_ms for commit in commits), -1)


def write_record(app: App, scene: Scene, count: int, *, name: str) -> RecordWrite:
    """Back up the old record, write the new one and read back the outcome, also after Ctrl-C.

    To workers that run it is a transaction under eosctl's own id: the leader would lose a fight for its id. Without
    any it goes under the leader's id, so that a leader which is a zombie can't write after it.
    """
    topic, group_id = app.target.config_topic, app.target.require_group_id()
    key, value = task_count_key(scene.connector.name), task_count_value(count)
    before = scene.before or Record(topic, 0, -1, -1, key, None)
    backup = str(keep_record_backup(app, before, value, name=name, cluster_id=scene.cluster_id))
    app.on_event(Event(f"backup: {backup}"))
    as_leader = scene.group_state == EMPTY
    transactional_id = leader_transactional_id(group_id) if as_leader else own_transactional_id(group_id)
    failure: EosctlError | None = None
    now = None
    try:
        with app.topic_writer() as store:
            store.write([OutRecord(topic, key, value, partition=0)], transactional_id=transactional_id)
    except (EosctlError, KeyboardInterrupt) as exc:  # whether it was written is found out by reading, not by guessing
        failure = _failure(exc)
    try:
        now = _read_back(app.with_whole_timeout(), scene.connector)
    except (EosctlError, KeyboardInterrupt) as exc:
        failure = failure or _failure(exc)
    return RecordWrite(_outcome(scene.connector, now, count, failure), backup, now, failure)


def _failure(exc: EosctlError | KeyboardInterrupt) -> EosctlError:
    return exc if isinstance(exc, EosctlError) else InterruptedByUserError("interrupted while the record was written")


def _read_back(app: App, then: ConnectorState) -> ConnectorState | None:
    """Read the connector again; retry while the record is old, as commit markers come after the commit's response."""
    now = None
    for _attempt in range(_READ_BACK_TIMES):
        with app.topics() as store:
            now = read_config_topic(app, store).state.connectors.get(then.name)
        if now is not None and now.record_offset != then.record_offset:
            return now
        if app.deadline.expired():
            break
        app.deadline.sleep(_READ_BACK_S)
    return now


def _outcome(then: ConnectorState, now: ConnectorState | None, count: int, failure: EosctlError | None) -> str:
    if now is None:
        return "unconfirmed"
    if now.record_offset == then.record_offset:
        return "not_written" if failure else "unconfirmed"
    as_planned = now.task_count_record == count and now.commit_offset == then.commit_offset
    return "written" if as_planned and not now.pending_fencing else "differs"


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
    hidden = [
        f"{each}: {state}" for each in ids if isinstance(state := now.get(each), KafkaFault) and not state.is_unknown_id
    ]
    if hidden:
        raise RefusedError(
            f"whether a fencing round of the leader is under way is not known: {hidden[0]}; nothing was written",
            hint=f"Run again when it would be over, {ROUND_S:g} s after the stop, or when the coordinators report it.",
        )
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
