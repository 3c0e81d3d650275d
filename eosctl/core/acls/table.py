"""The rights that exactly-once Connect, Kafka Streams, Flink and eosctl itself need, by role.

Connect's and eosctl's are one table, from which lines, checks and grants are made. A role is one principal's job.
Connect has four: the worker, and the producer, consumer and admin clients of its source connectors (`Worker`, Kafka 3.3
to 4.3). The others are eosctl's own commands. Kafka's authorizers include DESCRIBE in READ and WRITE; the table names
it all the same, as Kafka's documentation does: others may not.

Kafka Streams and Flink have one principal per application. Streams: its documentation of security ("Required ACL
setting for secure Kafka clusters"): internal topics, group and the transactional ids all begin with the application.id.
Flink: `KafkaSink` writes under ids that begin with its transactionalIdPrefix; with TransactionNamingStrategy.POOLING it
lists the producers of its topics when it starts (`AdminUtils`, connector 4.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.ids import (
    MIGRATION_PREFIX,
    leader_transactional_id,
    offsets_transactional_id,
    own_transactional_id,
    task_transactional_ids,
)
from eosctl.core.transaction_log import TOPIC as TRANSACTION_TOPIC

CONNECT_ROLES = ("worker", "producer", "consumer", "admin")
EOSCTL_ROLES = ("observer", "fencer", "offset-writer", "config-writer", "aborter", "acl-writer")
ROLES = (*CONNECT_ROLES, *EOSCTL_ROLES)
MODES = ("preparing", "enabled")
CLUSTER = "kafka-cluster"
"""The name of the one Cluster resource."""


class Right(Struct, frozen=True):
    """A right that a role needs: an operation (Kafka's name) on resources of one pattern.

    `when` is the step of the upgrade from which it is needed; `note` says what fails without it. An `optional` right
    costs only a check or a convenience; `to_create` is needed only while the topic does not exist. `since` is the first
    Kafka Connect version that needs it, None if every version does.
    """

    role: str
    operation: str
    resource_type: str
    name: str
    note: str
    when: str = "preparing"
    since: str | None = None
    pattern_type: str = "LITERAL"
    optional: bool = False
    to_create: bool = False

    @property
    def resource(self) -> str:
        """The resource in words."""
        prefixed = " (prefix)" if self.pattern_type == "PREFIXED" else ""
        return f"{self.resource_type} {self.name}{prefixed}"


class ConnectorScope(Struct, frozen=True):
    """The topics of a source connector that rights depend on; an output topic that ends in `*` is a prefix.

    `offsets_topic` None means that it is unknown. `likely_topics` are output topics that are perhaps not in use: rights
    on them are optional. `own_reads` are read by consumers of the connector's own, `own_writes` written by its own
    producers.
    """

    name: str
    tasks: int
    offsets_topic: str | None
    output_topics: tuple[str, ...] = ()
    likely_topics: tuple[str, ...] = ()
    own_reads: tuple[str, ...] = ()
    own_writes: tuple[str, ...] = ()


class GroupScope(Struct, frozen=True):
    """A Connect group and the connectors for which rights are needed.

    With `prefixed` one right covers all tasks of a connector. `old_brokers` (before Kafka 2.8) require
    IDEMPOTENT_WRITE.
    """

    group_id: str
    config_topic: str
    offset_topic: str
    status_topic: str
    connectors: tuple[ConnectorScope, ...] = ()
    prefixed: bool = False
    old_brokers: bool = False


class _Entry(Struct, frozen=True):
    """A line of the table; `resource` is a type and a word that `_names` replaces by names."""

    role: str
    operations: tuple[str, ...]
    resource: tuple[str, str]
    note: str
    when: str = "preparing"
    optional: bool = False
    to_create: bool = False


_READ, _WRITE, _UPDATE = ("READ", "DESCRIBE"), ("WRITE", "DESCRIBE"), ("READ", "WRITE", "DESCRIBE")
_GROUP, _CLUSTER, _OLD_CLUSTER = ("Group", "group"), ("Cluster", "cluster"), ("Cluster", "old-cluster")
_CONFIGS, _OFFSETS, _STATUS = ("Topic", "config"), ("Topic", "offset"), ("Topic", "status")
_CONNECTOR_OFFSETS, _OUTPUT, _LOG = ("Topic", "connector-offset"), ("Topic", "output"), ("Topic", "transactions")
_LEADER, _TASKS, _OWN = ("TransactionalId", "leader"), ("TransactionalId", "tasks"), ("TransactionalId", "own")
_OWN_OFFSETS, _MIGRATIONS = ("TransactionalId", "own-offsets"), ("TransactionalId", "migrations")
_LIKELY, _OWN_READS, _OWN_WRITES = {"output": "likely-output"}, ("Topic", "own-reads"), ("Topic", "own-writes")
_MAY_BE_MISSING = (_OFFSETS, _STATUS, _CONNECTOR_OFFSETS, _OUTPUT)
_INTERNAL = (("config", _CONFIGS), ("offsets", _OFFSETS), ("status", _STATUS))
_TOPIC_USE = "without it the worker can't use its {} topic"
_NO_START = "without it a task can't learn where it was: it FAILS, or its worker polls for ever and fills its log"
_NO_FENCING = "without it Connect can't fence: it starts, and fails at a reconfiguration or a request for offsets"
_TO_CREATE = "acls check, acls apply: whether it has to be created"
_IF_USED = "the config names it, and it may not be in use: "
_SIGNALS = "a consumer of the connector's own reads it, perhaps as somebody else: see its config"
_HISTORY = "a producer of the connector's own writes it, perhaps as somebody else: see its config"
_POLICY = "without it the worker can't check that the topic is compacted, and goes on"

_WORKER = (
    _Entry("worker", ("READ",), _GROUP, "without it the worker can't join its group"),
    *(_Entry("worker", _UPDATE, topic, _TOPIC_USE.format(name)) for name, topic in _INTERNAL),
    *(_Entry("worker", ("CREATE",), topic, "the first worker creates it", to_create=True) for _, topic in _INTERNAL),
    *(_Entry("worker", ("DESCRIBE_CONFIGS",), topic, _POLICY, optional=True) for _, topic in _INTERNAL),
    _Entry("worker", _WRITE, _LEADER, "without it a leader can't write to the config topic: no worker gets any work"),
    _Entry("worker", ("IDEMPOTENT_WRITE",), _OLD_CLUSTER, "brokers before Kafka 2.8 want it of every producer"),
)  # fmt: skip
_CONNECTOR = (
    _Entry("producer", _WRITE, _TASKS, "without it the task FAILS before its first transaction", "enabled"),
    _Entry("producer", _WRITE, _CONNECTOR_OFFSETS, "without it the task FAILS at its first commit", "enabled"),
    _Entry("producer", _WRITE, _OUTPUT, "without it the task FAILS at its first record"),
    _Entry("producer", ("CREATE",), _OUTPUT, "brokers create a topic for who writes", optional=True, to_create=True),
    _Entry("producer", _WRITE, _OWN_WRITES, _HISTORY, optional=True),
    _Entry("producer", ("CREATE",), _OWN_WRITES, _HISTORY, optional=True, to_create=True),
    _Entry("producer", ("IDEMPOTENT_WRITE",), _OLD_CLUSTER, "brokers before Kafka 2.8 want it of every producer"),
    _Entry("consumer", _READ, _CONNECTOR_OFFSETS, _NO_START, "enabled"),
    _Entry("consumer", _READ, _OWN_READS, _SIGNALS, optional=True),
    _Entry("admin", _WRITE, _TASKS, _NO_FENCING, "enabled"),
    _Entry("admin", ("DESCRIBE",), _CONNECTOR_OFFSETS, "without it a task can't find the end of it", "enabled"),
    _Entry("admin", ("CREATE",), _CONNECTOR_OFFSETS, "the first task creates it", "enabled", to_create=True),
    _Entry("admin", ("DESCRIBE_CONFIGS",), _CONNECTOR_OFFSETS, _POLICY, "enabled", optional=True),
    _Entry("admin", ("CREATE",), _OUTPUT, "for topic.creation.* properties", optional=True, to_create=True),
)  # fmt: skip
_OBSERVER = (
    _Entry("observer", ("DESCRIBE",), _GROUP, "workers, upgrade"),
    _Entry("observer", _READ, _CONFIGS, "task-counts, offsets, upgrade"),
    _Entry("observer", _READ, _OFFSETS, "offsets, upgrade"),
    _Entry("observer", _READ, _CONNECTOR_OFFSETS, "offsets"),
    _Entry("observer", ("DESCRIBE_CONFIGS",), _CONFIGS, "upgrade: settings of the topic", optional=True),
    _Entry("observer", ("DESCRIBE_CONFIGS",), _OFFSETS, "upgrade, offsets lint: settings of the topic", optional=True),
    _Entry("observer", ("DESCRIBE",), _LEADER, "txn list, upgrade: what one may not describe is left out"),
    _Entry("observer", ("DESCRIBE",), _TASKS, "txn, task-counts: what one may not describe is left out"),
    _Entry("observer", _READ, _OUTPUT, "txn producers, txn hanging"),
    _Entry("observer", _READ, _LOG, "txn log"),
    _Entry("observer", ("DESCRIBE",), _CLUSTER, "acls check; doctor: how full the disks of brokers are"),
    _Entry("observer", _READ, _STATUS, f"doctor, workers: states, and their ages; {_TO_CREATE}", optional=True),
)  # fmt: skip
_WRITERS = (
    _Entry("fencer", ("DESCRIBE",), _GROUP, "fence --connector: which tasks run"),
    _Entry("fencer", _READ, _CONFIGS, "fence --connector: how many tasks ran"),
    _Entry("fencer", _WRITE, _TASKS, "fence"),
    _Entry("offset-writer", ("DESCRIBE",), _GROUP, "which tasks run"),
    _Entry("offset-writer", _READ, _CONFIGS, "which connectors have a topic of their own"),
    _Entry("offset-writer", _UPDATE, _OFFSETS, "offsets merge, set, reset, import, restore, migrate"),
    _Entry("offset-writer", _UPDATE, _CONNECTOR_OFFSETS, "offsets merge, set, reset, import, restore, migrate"),
    _Entry("offset-writer", _WRITE, _OWN_OFFSETS, "the id to write under: without it nothing is written"),
    _Entry("offset-writer", _WRITE, _MIGRATIONS, "offsets migrate: the ids of its tasks, which no two plans share"),
    _Entry("offset-writer", ("CREATE",), _CONNECTOR_OFFSETS, "offsets merge and migrate create it", to_create=True),
    _Entry("config-writer", ("DESCRIBE",), _GROUP, "which tasks run"),
    _Entry("config-writer", _UPDATE, _CONFIGS, "task-counts write, rescue"),
    _Entry("config-writer", ("DESCRIBE_CONFIGS", "ALTER_CONFIGS"), _CONFIGS, "task-counts clean", optional=True),
    _Entry("config-writer", _WRITE, _OWN, "task-counts write, rescue, upgrade apply: the id to take"),
    _Entry("config-writer", _WRITE, _LEADER, "task-counts write with no worker up", optional=True),
    _Entry("config-writer", _WRITE, _TASKS, "task-counts write, rescue: fencing comes first"),
    _Entry("aborter", ("DESCRIBE",), _TASKS, "txn abort, complete: the owner of the transaction"),
    _Entry("aborter", _READ, _LOG, "txn abort, complete: whose it is, and what was decided"),
    _Entry("aborter", _READ, _OUTPUT, "txn abort, complete: which producers write there"),
    _Entry("aborter", _READ, _OFFSETS, "txn abort, complete: the partitions of it there"),
    _Entry("aborter", _READ, _CONNECTOR_OFFSETS, "txn abort, complete: the partitions of it there"),
    _Entry("aborter", ("ALTER",), _CLUSTER, "txn abort, complete: the marker"),
    _Entry("acl-writer", ("DESCRIBE",), _CLUSTER, "acls check, acls apply"),
    _Entry("acl-writer", ("ALTER",), _CLUSTER, "acls apply"),
    _Entry("acl-writer", _READ, _CONFIGS, "acls check, acls apply: tasks and topics of connectors", optional=True),
    *(_Entry("acl-writer", ("DESCRIBE",), topic, _TO_CREATE, optional=True) for topic in _MAY_BE_MISSING),
)  # fmt: skip
_TABLE = (*_WORKER, *_CONNECTOR, *_OBSERVER, *_WRITERS)


def required_rights(scope: GroupScope, roles: Iterable[str], *, mode: str = "enabled") -> list[Right]:
    """Return the rights of `roles` in the table's order, each right once.

    With `mode` preparing the rights that enabled adds are left out.
    """
    wanted = set(roles)
    found: dict[tuple[str, ...], Right] = {}
    for entry in _TABLE:
        if entry.role not in wanted or MODES.index(entry.when) > MODES.index(mode):
            continue
        for right in _rights(entry, scope):
            key = (right.role, right.operation, right.resource_type, right.pattern_type, right.name)
            found.setdefault(key, right)
    return list(found.values())


def _rights(entry: _Entry, scope: GroupScope) -> Iterator[Right]:
    resource_type, what = entry.resource
    likely = _names(_LIKELY[what], scope) if what in _LIKELY else ()
    for name, note in [*((name, "") for name in _names(what, scope)), *((name, _IF_USED) for name in likely)]:
        for operation in entry.operations:
            right = Right(
                entry.role, operation, resource_type, name, note + _note(entry, operation), when=entry.when,
                since=_since(entry), optional=entry.optional or bool(note), to_create=entry.to_create,
            )  # fmt: skip
            yield _as_pattern(right, what, scope)


def _note(entry: _Entry, operation: str) -> str:
    """Return the note of an operation.

    The entry's own note is about its first operation.
    """
    included = operation == "DESCRIBE" and operation != entry.operations[0]
    return f"Kafka's own authorizers include it in {entry.operations[0]}" if included else entry.note


def _since(entry: _Entry) -> str | None:
    """Return the Kafka version that first needs the entry's rights, or None.

    KIP-618 (Kafka 3.3) introduced transactions and connectors' own offsets clients; the rest is older.
    """
    of_eos = entry.resource in (_LEADER, _TASKS, _CONNECTOR_OFFSETS)
    return "3.3" if entry.role in CONNECT_ROLES and of_eos else None


def _as_pattern(right: Right, what: str, scope: GroupScope) -> Right:
    """Return the right with the pattern type that its name requires."""
    if what == "migrations" or (what == "tasks" and scope.prefixed):
        return replace(right, pattern_type="PREFIXED")
    if what == "output" and right.name.endswith("*") and right.name != "*":
        return replace(right, pattern_type="PREFIXED", name=right.name[:-1])
    return right


def _names(what: str, scope: GroupScope) -> Sequence[str]:
    """Return the names that a word of the table stands for."""
    connectors = scope.connectors
    if what == "tasks":
        return [name for connector in connectors for name in _task_ids(scope, connector)]
    if what == "output":
        return [topic for connector in connectors for topic in connector.output_topics]
    if what == "likely-output":
        return [topic for connector in connectors for topic in connector.likely_topics]
    if what == "own-reads":
        return [topic for connector in connectors for topic in connector.own_reads]
    if what == "own-writes":
        return [topic for connector in connectors for topic in connector.own_writes]
    if what == "connector-offset":
        return [connector.offsets_topic for connector in connectors if connector.offsets_topic is not None]
    single = {
        "group": scope.group_id,
        "config": scope.config_topic,
        "offset": scope.offset_topic,
        "status": scope.status_topic,
        "leader": leader_transactional_id(scope.group_id),
        "own": own_transactional_id(scope.group_id),
        "own-offsets": offsets_transactional_id(scope.group_id),
        "migrations": MIGRATION_PREFIX,
        "transactions": TRANSACTION_TOPIC,
        "cluster": CLUSTER,
    }
    if what == "old-cluster":
        return [CLUSTER] if scope.old_brokers else []
    return [single[what]]


def _task_ids(scope: GroupScope, connector: ConnectorScope) -> Sequence[str]:
    """Return the connector's transactional ids, or their common prefix.

    The dash at the end of the prefix keeps the ids of `orders-eu` out. It can't keep out those of a connector
    `orders-1`, whose ids begin like those of `orders`.
    """
    if scope.prefixed:
        return [f"{scope.group_id}-{connector.name}-"]
    return task_transactional_ids(scope.group_id, connector.name, connector.tasks)


APPLICATION_ROLE = "application"
ApplicationProduct = Literal["streams", "flink"]
_INCLUDED = "Kafka's own authorizers include it in {}"
_IDS = "without it no transaction can begin"
_INTERNAL_TOPICS = "changelogs and repartition topics of the application: without it no thread starts"
_OFFSETS_OF_FLINK = "offsets that the source commits at checkpoints, for monitoring; a restart takes those of Flink"


class ApplicationScope(Struct, frozen=True):
    """An application.id of Streams, or a transactionalIdPrefix of a Flink sink, and its topics; `T*` is a prefix.

    `groups` are the consumer groups of Flink's sources; that of Streams is its application.id.
    """

    product: ApplicationProduct
    name: str
    input_topics: tuple[str, ...] = ()
    output_topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    old_brokers: bool = False


def application_rights(scopes: Sequence[ApplicationScope]) -> list[Right]:
    """Return the rights that the applications need, each right once, in the order of the scopes."""
    found: dict[tuple[str, ...], Right] = {}
    for scope in scopes:
        for right in _of_streams(scope) if scope.product == "streams" else _of_flink(scope):
            found.setdefault((right.operation, right.resource_type, right.pattern_type, right.name), right)
    return list(found.values())


def _of_streams(scope: ApplicationScope) -> Iterator[Right]:
    ids = f"{scope.name}-"
    yield from _application_rights(("WRITE", "DESCRIBE"), "TransactionalId", ids, _IDS, prefixed=True)
    yield from _application_rights(
        ("READ", "DESCRIBE"), "Group", scope.name, "without it no thread joins the application's group"
    )
    yield from _application_rights(
        ("READ", "WRITE", "CREATE", "DELETE", "DESCRIBE"), "Topic", ids, _INTERNAL_TOPICS, prefixed=True
    )
    yield replace(_right("DESCRIBE_CONFIGS", "Topic", ids, _INTERNAL_TOPICS, prefixed=True), optional=True)
    yield from _topics(scope)


def _of_flink(scope: ApplicationScope) -> Iterator[Right]:
    yield from _application_rights(("WRITE", "DESCRIBE"), "TransactionalId", f"{scope.name}-", _IDS, prefixed=True)
    for group in scope.groups:
        yield replace(_right("READ", "Group", group, _OFFSETS_OF_FLINK), optional=True)
    yield from _topics(scope)
    note = "TransactionNamingStrategy.POOLING asks who writes there, to abort what a former run left open"
    for topic in scope.output_topics:
        yield replace(_topic("READ", topic, note), optional=True)


def _topics(scope: ApplicationScope) -> Iterator[Right]:
    """Yield the rights on topics that both products need, and the one that older brokers require of every producer."""
    for topic in scope.input_topics:
        yield _topic("READ", topic, "without it nothing is read")
        yield _topic("DESCRIBE", topic, _INCLUDED.format("READ"))
    for topic in scope.output_topics:
        yield _topic("WRITE", topic, "without it the first record fails")
        yield _topic("DESCRIBE", topic, _INCLUDED.format("WRITE"))
    if scope.old_brokers:
        yield _right("IDEMPOTENT_WRITE", "Cluster", CLUSTER, "brokers before Kafka 2.8 want it of every producer")


def _application_rights(
    operations: Sequence[str], resource_type: str, name: str, note: str, *, prefixed: bool = False
) -> Iterator[Right]:
    for operation in operations:
        right_note = _INCLUDED.format(operations[0]) if operation == "DESCRIBE" else note
        yield _right(operation, resource_type, name, right_note, prefixed=prefixed)


def _right(operation: str, resource_type: str, name: str, note: str, *, prefixed: bool = False) -> Right:
    pattern = "PREFIXED" if prefixed else "LITERAL"
    return Right(APPLICATION_ROLE, operation, resource_type, name, note, when="enabled", pattern_type=pattern)


def _topic(operation: str, name: str, note: str) -> Right:
    prefixed = name.endswith("*") and name != "*"
    return _right(operation, "Topic", name[:-1] if prefixed else name, note, prefixed=prefixed)
