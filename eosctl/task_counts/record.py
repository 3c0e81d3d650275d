"""One task-count record: found in the config topic, backed up, written, and read back.

Judges nothing: whether a record may be written is decided by those who call this.
"""

from __future__ import annotations

from msgspec import Struct

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.configs.records import task_count_key, task_count_value
from eosctl.core.ids import leader_transactional_id, own_transactional_id
from eosctl.core.records import OutRecord, Record
from eosctl.errors import EosctlError, InterruptedByUserError, NotFoundError, RefusedError
from eosctl.events import Event
from eosctl.foreign import arguments, shell_word
from eosctl.group.members import EMPTY, STABLE, ConnectGroup
from eosctl.group.topics.config import read_config_topic
from eosctl.group.topics.config_reader import ConfigTopic
from eosctl.state.backups import keep_record_backup

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
