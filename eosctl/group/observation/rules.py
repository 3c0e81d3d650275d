"""The observation of a group before its mode is changed, as values, with rival groups and stale offsets topics. Pure.

The values are gathered by `eosctl.upgrade.plan`.

Rival groups are the Connect groups that may construct our transactional ids: ids are plain joins with `-`. Group `a-b`
with connector `c` has the ids of group `a` with connector `b-c`, and the leader id of group `x-0` is the id of task 0
of connector `cluster-x` in a group `connect`. Two users of one id fence each other for ever.

Connectors' offsets topics lag behind the global one after a hard downgrade. Workers below 3.3 know the global topic
only. Once a worker of 3.3 or newer runs the connector again, its own topic counts, however old: the connector repeats
all that it read since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.brokers import KnownBrokers
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.configs.fold import ConfigState
from eosctl.core.configs.records import RecordKind
from eosctl.core.ids import TransactionalId, leader_transactional_id, task_transactional_id
from eosctl.core.java.properties import whole_number
from eosctl.core.offsets.findings import AbortedOffset
from eosctl.core.offsets.records import is_nothing
from eosctl.core.offsets.views import Store
from eosctl.core.open_transactions import OpenTransaction
from eosctl.core.records import TopicDescription, TopicRead
from eosctl.core.workers.connector_entry import ConnectorEntry, PartStatus, TaskStatus
from eosctl.core.workers.modes import Mode, UpgradeWorker
from eosctl.group.protocol import Work

GroupWork = Mapping[str, tuple[Work, ...] | None]
"""Group id -> the work of its members, (connector, task); None if the group exists and its work is unknown now."""


class Reading(Struct, frozen=True):
    """One way to read an id: task `task` of `connector` of group `group_id`, or (None) that group's leader."""

    group_id: str
    connector: str | None = None
    task: int | None = None

    def __str__(self) -> str:
        if self.connector is None:
            return f"the leader of group {self.group_id}"
        return f"task {self.task} of connector {self.connector} of group {self.group_id}"


def readings(transactional_id: TransactionalId) -> Iterator[Reading]:
    """Yield every way in which Connect could have constructed this id."""
    prefix = leader_transactional_id("")
    if transactional_id.startswith(prefix) and transactional_id != prefix:
        yield Reading(transactional_id.removeprefix(prefix))
    head, _dash, tail = transactional_id.rpartition("-")
    number = whole_number(tail)
    if number is None or tail != str(number):
        return
    at = head.find("-")
    while at >= 0:
        if head[:at] and head[at + 1 :]:
            yield Reading(head[:at], head[at + 1 :], number)
        at = head.find("-", at + 1)


def our_ids(group_id: str, tasks: Iterable[Work]) -> list[TransactionalId]:
    """Return the ids of our leader and of our tasks."""
    return [leader_transactional_id(group_id), *(task_transactional_id(group_id, c, t) for c, t in tasks)]


def rival_groups(group_id: str, ids: Iterable[TransactionalId]) -> list[str]:
    """Return the groups that would use one of `ids` if they existed and ran the right connector."""
    return sorted({reading.group_id for each in ids for reading in readings(each)} - {group_id})


def rivals(transactional_id: TransactionalId, group_id: str, others: GroupWork) -> Iterator[tuple[Reading, bool]]:
    """Yield the users of one of our ids among the existing groups, each with whether it is certain."""
    for reading in readings(transactional_id):
        if reading.group_id == group_id or reading.group_id not in others:
            continue
        work = others[reading.group_id]
        if work is None:
            yield reading, False
        elif reading.connector is None or (reading.connector, reading.task) in work:
            yield reading, True


SLACK_MS = 60_000
"""Workers write the global copy after the commit of the own topic, so that it is a little younger."""


class StaleOffsets(Struct, frozen=True):
    """A connector whose own `topic` lacks, or has older, `keys` offsets of the global one; at most `behind_ms` older.

    `behind_ms` None: its own topic has no offset of it.
    """

    connector: str
    topic: str
    keys: int
    behind_ms: int | None


def stale_offsets(connector: str, own: Store, common: Store) -> StaleOffsets | None:
    """Compare a connector's `own` topic to the `common` one; return None if nothing in `common` is newer."""
    known = {key.identity: own.records[key.raw] for key in own.connectors.get(connector, ())}
    newest_ms = max((record.timestamp_ms for record in known.values()), default=None)
    late = []
    for key in common.connectors.get(connector, ()):
        record, mine = common.records[key.raw], known.get(key.identity)
        is_late = newest_ms is None or record.timestamp_ms > newest_ms + SLACK_MS
        if is_late and not is_nothing(record.value) and (mine is None or mine.value != record.value):
            late.append(record.timestamp_ms)
    if not late:
        return None
    return StaleOffsets(connector, own.topic, len(late), None if newest_ms is None else max(late) - newest_ms)


OLDEST_VERSION = (3, 3)
"""The first Kafka release with exactly-once source support."""
OTHER_GROUPS, BROKER_SETTINGS = "other groups", "broker settings"
VALIDATION, CONNECTOR_STATES = "validation", "states of connectors"
"""The keys in `Observation.unseen` of the connectors' verdicts on their own configs, and of their states."""
ABORTS = "aborted transactions"
"""The key in `Observation.unseen` of the ends of transactions in the coordinators' log."""
STARTING = frozenset({"UNASSIGNED", "RESTARTING"})
"""The states of a part that a worker may be about to start: `AbstractStatus.State` of Connect 4.3.1."""


class ObservedConnector(Struct, frozen=True):
    """A connector as Connect shows it; `support_errors` are those of a validation with exactly-once required.

    `states` are the states of connector and tasks by name (`connector`, `task 0`), `traces` the traces of failed ones,
    `workers` the host:port of each. `support_errors` None: not requested. `boundary_errors` are the objections to its
    `transaction.boundary`. `redefines_offsets_topic`: it has a property of its own called `offsets.storage.topic`,
    which Connect reads all the same. `holders` are the host:port of the members to which the group has assigned its
    parts, None if unknown now.
    """

    name: str
    type: str
    config: Mapping[str, str]
    states: Mapping[str, str] = {}
    support_errors: tuple[str, ...] | None = None
    boundary_errors: tuple[str, ...] = ()
    redefines_offsets_topic: bool = False
    traces: Mapping[str, str] = {}
    workers: Mapping[str, str] = {}
    holders: Mapping[str, str] | None = None

    def worker_of(self, part: str) -> str | None:
        """Return the worker that holds a part by the group's assignment; where that is not known, by its status."""
        held = None if self.holders is None else self.holders.get(part)
        return held or self.workers.get(part)

    def unhealthy_parts(self) -> dict[str, str]:
        """Return the states of the parts that neither run nor are paused or stopped."""
        return {part: state for part, state in self.states.items() if state not in ("RUNNING", "PAUSED", "STOPPED")}

    def failed(self) -> list[str]:
        """Return the parts that are FAILED."""
        return [part for part, state in self.states.items() if state == "FAILED"]

    def running(self) -> list[int]:
        """Return the numbers of its RUNNING tasks."""
        return sorted(task for task, state in self.tasks().items() if state == "RUNNING")

    def tasks(self) -> dict[int, str]:
        """Return the state of each task, by number."""
        return {int(part[5:]): state for part, state in self.states.items() if part.startswith("task ")}


def observed_connector(name: str, entry: ConnectorEntry) -> ObservedConnector:
    """Convert a connector from a worker's listing."""
    parts: dict[str, PartStatus | TaskStatus] = {} if entry.itself is None else {"connector": entry.itself}
    parts |= {f"task {task.task}": task for task in entry.tasks}
    return ObservedConnector(
        name=name,
        type=entry.type,
        config=entry.config,
        states={part: status.state for part, status in parts.items()},
        workers={part: status.worker_id for part, status in parts.items() if status.worker_id},
        traces={part: status.trace for part, status in parts.items() if status.trace},
    )


def observed_connectors(entries: Mapping[str, ConnectorEntry]) -> tuple[ObservedConnector, ...]:
    """Return all connectors, by name, as a listing shows them that has their task sets.

    The last status of a removed task, UNASSIGNED, may be written after the leader has deleted it, and stays: it is left
    out.
    """
    current = {
        name: replace(
            entry, tasks=tuple(each for each in entry.tasks if each.state != "UNASSIGNED" or each.task in entry.wanted)
        )
        for name, entry in sorted(entries.items())
    }
    return tuple(observed_connector(name, entry) for name, entry in current.items())


class QuietTask(Struct, frozen=True):
    """The time in which a RUNNING task has committed nothing; `since_start`: it has not committed since its start.

    The start time of a task is not reported: the age of its connector's task set is used then.
    """

    quiet_ms: int
    since_start: bool


class OngoingTransaction(Struct, frozen=True):
    """The transaction that a RUNNING task has open, or whose end is not written yet, as its coordinator reports."""

    state: str
    open_ms: int
    timeout_ms: int


class TimedOut(Struct, frozen=True):
    """A RUNNING task's newest transaction, which its coordinator aborted at its timeout: the task can't write again.

    The abort raises the producer epoch, and only a new producer gets it: its id would be Empty then.
    """

    open_ms: int
    timeout_ms: int
    aborted_ms: int


class OwnCluster(Struct, frozen=True):
    """The Kafka cluster that a connector's config names, as far as it was seen; `servers` as the config spells them.

    `ids_unseen` is why its transactional ids could not be looked up there, if so. `topic` is the offsets topic that its
    tasks have there with exactly-once only; None if the config names one. `lacking` is the number of offsets of the
    global topic that are missing from it; None if that was not checked, or could not be (`topic_unseen`).
    `max_timeout_ms` is the longest transaction timeout that the brokers there accept; None as explained by
    `max_timeout_unseen`.
    """

    servers: str
    ids_unseen: str = ""
    topic: str | None = None
    topic_exists: bool = False
    lacking: int | None = None
    topic_unseen: str = ""
    max_timeout_ms: int | None = None
    max_timeout_unseen: str = ""


class WorkerFile(Struct, frozen=True):
    """A worker's properties file, as given with -w."""

    path: str
    properties: Mapping[str, str]


class RightsSeen(Struct, frozen=True):
    """The result of checking the cluster's ACLs against the rights that the target takes, as in `acls check`.

    `judged` is the number of rights, None if the brokers have no authorizer. `lacking` are certainly missing; `unsure`
    depend on facts that ACLs don't report (super users, hosts, logins of a connector's own).
    """

    judged: int | None = None
    lacking: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()


class Observation(Struct, frozen=True):
    """The observation of a group; a field is None if it could not be observed, with the reason in `unseen`.

    `forbidden` are the parts of `unseen` for which a right is missing. If OTHER_GROUPS is one, its visible part was
    observed. `brokers` are the cluster's brokers, and the APIs that each offers.

    `config_read` is the config topic as committed, `config_state` its folded state. `topics` holds the internal topics
    and the connectors' own offsets topics. `crowding` is, per source connector, the largest number of ids at one
    coordinator that its next fencing round has to fence. `unknown_ids` are ids of RUNNING source tasks that no
    coordinator knows. `quiet` is the time for which the others have committed nothing, `ongoing` their open
    transaction, `timed_out` their newest transaction if it was aborted at its timeout; None if it was aborted, and the
    coordinators' log does not show when. `committed_ms` is the time of each connector's newest offset in the topics
    that were read, `snapshots` the connectors of whose source partitions one is in a snapshot, by the offsets in the
    global topic. `task_sets_ms` is the time of each connector's newest task set, `config_records_ms` that of each of
    its records in the config topic, by kind; `looked_ms` is the time of the observation. `coordinators_ms` is the
    newest time that coordinators report, so their clocks are past it. `own_clusters` are the clusters of source
    connectors whose configs name other Kafka brokers. `way_back`: an upgrade is reverted, so failures since it began
    must not stop that. `client` are the settings of the connection to Kafka. `mirror_maker`: the workers are a
    dedicated MirrorMaker's, and only Kafka reports on them.
    """

    target: Mode
    group_state: str
    workers: tuple[UpgradeWorker, ...]
    config_topic: str
    offset_topic: str
    cluster_ids: Mapping[str, str] = {}
    kafka_cluster_id: str | None = None
    topics: Mapping[str, TopicDescription] | None = None
    open_transactions: tuple[OpenTransaction, ...] | None = None
    config_read: TopicRead | None = None
    config_state: ConfigState | None = None
    differing_connectors: tuple[str, ...] | None = None
    connectors: tuple[ObservedConnector, ...] | None = None
    files: tuple[WorkerFile, ...] = ()
    group_id: str | None = None
    aborted_offsets: tuple[AbortedOffset, ...] | None = None
    stale_offsets: tuple[StaleOffsets, ...] | None = None
    max_transaction_timeout_ms: int | None = None
    crowding: Mapping[str, int] | None = None
    unknown_ids: frozenset[TransactionalId] | None = None
    quiet: Mapping[TransactionalId, QuietTask] = {}
    ongoing: Mapping[TransactionalId, OngoingTransaction] = {}
    epochs: Mapping[TransactionalId, int] = {}
    timed_out: Mapping[TransactionalId, TimedOut | None] = {}
    committed_ms: Mapping[str, int] = {}
    snapshots: frozenset[str] = frozenset()
    task_sets_ms: Mapping[str, int] = {}
    config_records_ms: Mapping[tuple[RecordKind, str], tuple[int, ...]] = {}
    coordinators_ms: int | None = None
    looked_ms: int | None = None
    rival_groups: GroupWork | None = None
    rights: RightsSeen | None = None
    brokers: KnownBrokers | None = None
    own_clusters: Mapping[str, OwnCluster] = {}
    unseen: Mapping[str, str] = {}
    forbidden: frozenset[str] = frozenset()
    way_back: bool = False
    client: ClientSettings | None = None
    mirror_maker: bool = False

    def reads_aborted(self) -> bool:
        """Decide whether a worker reads aborted records: those not enabled do, and all after a downgrade."""
        modes = {worker.mode for worker in self.workers} - {Mode.ABSENT}
        return self.target is not Mode.ENABLED or modes != {Mode.ENABLED}

    def sources(self) -> list[ObservedConnector]:
        """Return the source connectors."""
        return [connector for connector in self.connectors or () if connector.type == "source"]

    def task_set_age_ms(self, connector: str) -> int | None:
        """Return the age of the connector's task set in ms; None if unknown."""
        written_ms = self.task_sets_ms.get(connector, -1)
        return None if self.looked_ms is None or written_ms < 0 else max(0, self.looked_ms - written_ms)

    def requiring_exactly_once(self) -> list[str]:
        """Return the source connectors that can't be created or changed while their workers are not enabled."""
        return [
            each.name for each in self.sources() if each.config.get("exactly.once.support", "").lower() == "required"
        ]

    def worker_setting(self, name: str) -> str | None:
        """Return a property that the workers' files agree on; None if no file has it, or if they differ."""
        values = {file.properties.get(name) for file in self.files}
        return values.pop() if len(values) == 1 else None

    def without(self, what: Iterable[str], reason: str, *, forbidden: bool = False) -> Observation:
        """Mark parts as unseen, with the reason; `forbidden`: the right to see one is missing."""
        parts = tuple(what)
        return replace(
            self,
            unseen={**self.unseen, **dict.fromkeys(parts, reason)},
            forbidden=self.forbidden.union(parts) if forbidden else self.forbidden.difference(parts),
        )

    def why_unseen(self, what: str) -> str:
        """Return why `what` could not be observed."""
        return self.unseen.get(what, f"{what} could not be looked at")
