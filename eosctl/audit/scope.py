"""The scope of an audit: the connector's output and offsets topics, and the owners of the producer ids in them.

The topics are on the cluster that the connector's tasks write to. Owners are as the coordinators know them, else as the
coordinators' log has them. A coordinator knows the present producer id of a transactional id. Former ones, and those of
ids that expired (`transactional.id.expiration.ms`), are in `__transaction_state` until that is compacted. A producer
that is in neither may still be a task of the connector: only the offsets that it committed can show that
(`verdict.known_producer`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, DedicatedTopics, describe_unknown, gather_dedicated_topics
from eosctl.connectors.look import unknown_connector
from eosctl.connectors.topics import configured_topics, find_topics
from eosctl.core import transaction_log
from eosctl.core.configs.history import former_offsets_topics, written_configs
from eosctl.core.configs.records import MIRROR_SOURCE, UnparsableValueError, decode_value, is_class, pruned_class
from eosctl.core.ids import ProducerId, TransactionalId, task_of
from eosctl.core.java.properties import java_number, whole_number
from eosctl.core.records import Place, Record, ScanPlan, Window
from eosctl.core.transaction_log import TOPIC, decode_key
from eosctl.core.transactions import TransactionDescription, TransactionState
from eosctl.deadline import Clock
from eosctl.errors import EosctlError, InterruptedByUserError, NotFoundError, ProtocolError, RefusedError, UsageError
from eosctl.offsets.history.events import ConnectorFilter
from eosctl.report import Problem
from eosctl.state.history import since_ms

if TYPE_CHECKING:
    from eosctl.ports import TopicReader


BEGINNING = "beginning"
_MARGIN_MS = 900_000  # as long as a transaction may last, unless brokers were told otherwise


class AuditRequest(Struct, frozen=True):
    """The options of an audit, as typed; `topics` empty means those that Connect knows.

    `begin` are offsets of output partitions at which the window begins, in place of `since`; 0 for those not named. Of
    offsets partitions only those that it names begin there.
    `end` are offsets of output and offsets partitions, behind which nothing is read: no transaction of the connector
    may be open there.
    `writes_alone`: no other client can write to the topics, so that values of unknown producers are the connector's.
    """

    connector: str
    topics: tuple[str, ...] = ()
    offsets_topics: tuple[str, ...] = ()
    since: str = "1h"
    begin: Mapping[Place, int] | None = None
    end: Mapping[Place, int] | None = None
    until: str | None = None
    unique: str | None = None
    sequence: str | None = None
    report: str | None = None
    check_crcs: bool = False
    writes_alone: bool = False


class Scope(Struct, frozen=True):
    """`app` leads to the cluster that the tasks write to; the first of `offsets_topics` is the one in use.

    `connectors` are all that Connect knows, `recorded` those that the config topic still shows, also deleted ones;
    `gone` are topics that the connector wrote to and that are no more; `offsets_gone_until_ms` is when it left an
    offsets topic of its own that is no more; `lacks` are the reasons why it may have written to other topics, too.
    """

    app: App
    connector: str
    config: Mapping[str, str]
    topics: tuple[str, ...]
    offsets_topics: tuple[str, ...]
    connectors: frozenset[str]
    recorded: frozenset[str] = frozenset()
    gone: tuple[str, ...] = ()
    offsets_gone_until_ms: int = -1
    lacks: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def is_mirror(self) -> bool:
        """Whether it copies topics of another cluster as they are: transforms may leave records out."""
        return copies_topics(self.config)

    @property
    def transaction_timeout_ms(self) -> int:
        """After which a coordinator aborts a transaction of a task."""
        given = java_number(self.config.get("producer.override.transaction.timeout.ms", ""))
        return 60_000 if given is None else given


def copies_topics(config: Mapping[str, str]) -> bool:
    """Check whether this is a MirrorMaker's connector that copies every record, so that both topics can be compared."""
    return is_class(config, MIRROR_SOURCE) and not config.get("transforms")


def find_scope(app: App, request: AuditRequest) -> Scope:
    """Find what there is to read. Raises NotFoundError for an unknown connector or topic, RefusedError for a sink.

    Raises RefusedError, too, where the connector writes to brokers that eosctl can't connect to.
    """
    with app.topics() as store:
        dedicated = gather_dedicated_topics(app, store)
    dedicated.refuse_strangers()
    connector, config = request.connector, _config_of(dedicated, request.connector)
    tasks_app = _app_of_tasks(app, dedicated, connector)
    topics, lacks = _wanted_topics(app, tasks_app, request, config)
    if connector in dedicated.unknown:
        raise RefusedError(
            f"{describe_unknown(connector, dedicated.unknown[connector])}, so its own offsets are not known",
            hint=f"Put the topic's name itself into {TOPIC_PROPERTY}; it is no secret.",
        )
    in_use = dedicated.configured.get(connector) or app.target.offset_topic
    also = () if connector in dedicated.brokers else (app.target.offset_topic,)
    former, left_ms, recorded = _recorded(app, connector)
    if former:
        also = (*also, former)
    with tasks_app.topics() as store:
        existing = _existing(store, {*topics, in_use, *also, *request.offsets_topics})
    _require(existing, [*request.topics, in_use, *request.offsets_topics])
    return Scope(
        app=tasks_app,
        connector=connector,
        config=config,
        topics=tuple(each for each in topics if each in existing),
        offsets_topics=tuple(dict.fromkeys(t for t in (in_use, *also, *request.offsets_topics) if t in existing)),
        connectors=dedicated.connectors or frozenset(),
        recorded=recorded,
        gone=tuple(each for each in topics if each not in existing),
        offsets_gone_until_ms=left_ms if former and former not in existing else -1,
        problems=dedicated.problems,
        lacks=lacks,
    )


def _config_of(dedicated: DedicatedTopics, connector: str) -> Mapping[str, str]:
    if dedicated.connectors is None:
        raise NotFoundError(
            f"nothing is known of connector {connector}: no worker could be asked, and there is no config topic",
            hint="Give -u with the URL of a worker, or --config-topic.",
        )
    if connector not in dedicated.configs:
        raise unknown_connector(f"Connect knows no connector {connector}", connector, dedicated.connectors)
    config = dedicated.configs[connector]
    if "Sink" in pruned_class(config):
        raise RefusedError(
            f"{connector} is a sink connector: it writes to no topic, and its offsets are those of a consumer group",
            hint="Only source connectors are exactly-once in this sense.",
        )
    return config


def _recorded(app: App, connector: str) -> tuple[str, int, frozenset[str]]:
    """Return the former offsets topic, its end, and all connectors, as the config topic still shows them.

    "" where it shows no such topic (any more).
    """
    key, prefix = f"connector-{connector}".encode(), b"connector-"
    names = set[str]()

    def look(records: Sequence[Record]) -> Sequence[Record]:
        names.update(
            each.key.removeprefix(prefix).decode("utf-8", "replace")
            for each in records
            if each.key and each.key.startswith(prefix)
        )
        return [each for each in records if each.key == key]

    try:
        with app.topics() as store:
            found = store.read(app.target.config_topic, keep=look)
    except InterruptedByUserError:
        raise
    except EosctlError:
        return "", -1, frozenset()
    former = former_offsets_topics(written_configs(found.records)).get(connector, "")
    named = [_offsets_topic_in(record.value) for record in found.records]
    left_ms = [
        record.timestamp_ms for before, record in zip(named, found.records[1:], strict=False) if before == former
    ]
    return former, left_ms[-1] if left_ms else -1, frozenset(names)


def _offsets_topic_in(value: bytes | None) -> str:
    try:
        decoded = decode_value(value)
    except UnparsableValueError:
        return ""
    properties = decoded.get("properties") if isinstance(decoded, Mapping) else None
    return str(properties.get(TOPIC_PROPERTY) or "") if isinstance(properties, Mapping) else ""


def _app_of_tasks(app: App, dedicated: DedicatedTopics, connector: str) -> App:
    brokers = dedicated.brokers.get(connector)
    if brokers is None:
        return app
    if brokers.settings is None:
        raise RefusedError(
            f"the config of {connector} names Kafka brokers of its own ({brokers.servers}), where its topics are, and "
            f"{brokers.why_not}",
            hint="Only PLAIN, SCRAM and inline PEM settings are taken from a connector's config.",
        )
    return replace(app, target=replace(app.target, client=brokers.settings))


_NOT_ALL_NAMED = "it may write to topics that its config does not name, and no worker says to which (see --topic)"


def _wanted_topics(
    app: App, tasks_app: App, request: AuditRequest, config: Mapping[str, str]
) -> tuple[list[str], tuple[str, ...]]:
    """Return the named topics, else those that the connector wrote to, else those that its config names.

    Also return why there may be more.
    """
    if request.topics:
        return list(dict.fromkeys(request.topics)), ()
    found = find_topics(app, {request.connector: config})
    names, configured = list(found.of[request.connector].written), configured_topics(config)
    unreported = request.connector in found.unreported
    if unreported or not names:
        names += configured.written
    prefixes = tuple(name.removesuffix("*") for name in names if name.endswith("*"))
    wanted = [name for name in names if not name.endswith("*")]
    if prefixes:
        with tasks_app.transactions() as admin:
            wanted += [name for name in sorted(admin.topic_partitions()) if name.startswith(prefixes)]
    if not wanted:
        raise NotFoundError(
            f"which topics {request.connector} writes to is not known: it has written nothing yet, or no worker says",
            hint="Name them: --topic TOPIC.",
        )
    is_doubtful = unreported and not configured.complete
    return list(dict.fromkeys(wanted)), (_NOT_ALL_NAMED,) if is_doubtful else ()


def _existing(store: TopicReader, topics: Collection[str]) -> frozenset[str]:
    return frozenset(store.describe(sorted(topics)))


def _require(existing: Collection[str], named: Collection[str]) -> None:
    for topic in named:
        if topic not in existing:
            raise NotFoundError(f"there is no topic {topic}", hint="Names are case-sensitive.")


def output_window(request: AuditRequest, clock: Clock) -> Window:
    """Return the window of the output topics. Raises UsageError for what is neither a time, an age nor an offset."""
    since, until = _moment(request.since, clock), _moment(request.until or BEGINNING, clock)
    if since[0] is not None and until[0] is not None and since[0] >= until[0]:
        raise UsageError("--until is not after --since", hint="Give an earlier --since.")
    return Window(since_ms=since[0], since_offset=since[1], until_ms=until[0], until_offset=until[1])


def offsets_window(window: Window) -> Window:
    """Return the window of the offsets topics: a transaction's offsets are younger than its first records.

    It has no end: one record with a time of the future would hide what lies behind it.
    """
    return Window(since_ms=None if window.since_ms is None else max(0, window.since_ms - _MARGIN_MS))


def _moment(text: str, clock: Clock) -> tuple[int | None, int | None]:
    """Parse a time or an offset; neither for the beginning (of a window's end: the end of the log)."""
    if text == BEGINNING:
        return None, None
    offset = whole_number(text)
    if offset is not None:
        return None, offset
    return since_ms(text, clock), None


COORDINATOR, TRANSACTION_LOG, OFFSETS_RECORD, UNKNOWN = "coordinator", "transaction_log", "offsets_record", "unknown"
"""The sources by which a producer's id is known."""
_ENDING = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
_PRODUCER_ID = slice(2, 10)
"""The position of the producer id in a record of the log."""
_OTHERS = re.compile(rb"[\0\1]\x08(?=(.{8}))", re.DOTALL)
"""The tagged fields 0 and 1, of eight bytes, which may be the previous or the next producer id; it matches more than
those."""


class Identity(NamedTuple):
    """The transactional id of a producer id, and COORDINATOR or TRANSACTION_LOG."""

    transactional_id: TransactionalId
    identified_by: str


class Identities(Struct, frozen=True):
    """The identities of producer ids. `lacks` has a phrase per unreadable source, which may know the missing ones."""

    known: Mapping[ProducerId, Identity]
    lacks: tuple[str, ...] = ()


def identify(app: App, producer_ids: Collection[ProducerId]) -> Identities:
    """Ask every coordinator for these ids, and read the log for those that no coordinator knows."""
    known: dict[ProducerId, Identity] = {}
    lacks: list[str] = []
    for ask in (_ask_coordinators, _read_log):
        open_ids = sorted({each for each in producer_ids if each >= 0 and each not in known})
        if not open_ids:
            break
        try:
            found, why_not = ask(app.with_whole_timeout(), open_ids)
        except EosctlError as exc:
            lacks.append(exc.message)
        else:
            known |= found
            lacks += why_not
    unknown = [each for each in producer_ids if each >= 0 and each not in known]
    return Identities(known, tuple(lacks) if unknown else ())


def _ask_coordinators(app: App, producer_ids: Sequence[ProducerId]) -> tuple[dict[ProducerId, Identity], Sequence[str]]:
    with app.transactions() as admin:
        listings = admin.list_transactions(producer_ids=producer_ids)
    known = {each.producer_id: Identity(each.transactional_id, COORDINATOR) for each in listings.found}
    return known, [str(fault) for fault in listings.missing]


def _read_log(app: App, producer_ids: Sequence[ProducerId]) -> tuple[dict[ProducerId, Identity], Sequence[str]]:
    try:
        with app.topics() as store:
            read = store.read(
                TOPIC, isolation="read_uncommitted", partly=True, keep=make_filter(producer_ids), renews=True
            )
    except NotFoundError:
        return {}, []  # nobody has used a transaction yet
    found = logged_ids(read.records, producer_ids)
    known = {producer_id: Identity(name, TRANSACTION_LOG) for producer_id, name in found.items()}
    return known, [f"{TOPIC}-{partition}: {why}" for partition, why in sorted(read.missing.items())]


def make_filter(producer_ids: Collection[ProducerId]) -> Callable[[Sequence[Record]], Sequence[Record]]:
    """Return a filter that keeps records of the log that may name one of these ids; the many others are not decoded."""
    wanted = frozenset(each.to_bytes(8, "big") for each in producer_ids)

    def keep(records: Sequence[Record]) -> Sequence[Record]:
        return [
            record
            for record in records
            if (value := record.value) is not None
            and (value[_PRODUCER_ID] in wanted or not wanted.isdisjoint(_OTHERS.findall(value)))
        ]

    return keep


def logged_ids(records: Sequence[Record], producer_ids: Collection[ProducerId]) -> dict[ProducerId, TransactionalId]:
    """Return the transactional id of each of these producer ids that a record names; skip records that can't be
    decoded.
    """
    wanted, found = frozenset(producer_ids), dict[ProducerId, TransactionalId]()
    for record in records:
        try:
            name, logged = decode_key(record.key or b""), transaction_log.decode_value(record.value or b"")
        except ProtocolError:
            continue
        for producer_id in (logged.producer_id, logged.previous_producer_id, logged.next_producer_id):
            if producer_id in wanted and producer_id is not None:
                found[producer_id] = name
    return found


def unended_places(
    app: App, producer_ids: Collection[ProducerId]
) -> Mapping[ProducerId, Collection[tuple[int, Place]]]:
    """Ask the coordinators which partitions still wait for a marker, of those of these producers that they know.

    Gives each with the epoch of its transaction; of one that is about to end, that may have been raised already.
    """
    try:
        names, _lacks = _ask_coordinators(app, sorted(producer_ids))
        with app.transactions() as admin:
            described = admin.describe_transactions(sorted({each.transactional_id for each in names.values()}))
    except EosctlError:
        return {}
    return {
        each.producer_id: {
            (epoch, (topic, partition))
            for epoch in range(each.producer_epoch - (each.state in _ENDING), each.producer_epoch + 1)
            for topic, partition in each.partitions
            if each.state in (TransactionState.ONGOING, *_ENDING)
        }
        for each in described.values()
        if isinstance(each, TransactionDescription)
    }


def former_connectors(scope: Scope, ids: Mapping[ProducerId, TransactionalId], plan: ScanPlan) -> frozenset[str]:
    """Return the group's deleted connectors whose offsets these producers committed under their ids.

    An id counts as one of the group's tasks only if the same producer committed offsets of that connector in an offsets
    topic of the group.
    """
    wanted = {
        producer_id: work[0]
        for producer_id, name in ids.items()
        if (work := task_of(name, scope.app.target.group_id or "")) is not None
    }
    found = set(wanted.values()) & scope.recorded
    left = {producer_id: name for producer_id, name in wanted.items() if name not in found}
    if not left:
        return frozenset(found)
    places: dict[Place, dict[int, str]] = {}
    sieves = [ConnectorFilter(name) for name in sorted(set(left.values()))]

    def look(records: Sequence[Record]) -> Sequence[Record]:
        for sieve in sieves:
            for record in sieve(records):
                places.setdefault((record.topic, record.partition), {})[record.offset] = sieve.connector
        return ()

    with scope.app.with_whole_timeout().topics() as store:
        for topic in scope.offsets_topics:
            since = {span.partition: span.first for span in plan.spans if span.topic == topic}
            store.read(topic, isolation="read_uncommitted", partly=True, since=since, keep=look, renews=True)
    with scope.app.batches() as log:
        for batch in log.scan(plan):
            there = places.get((batch.topic, batch.partition))
            name = left.get(batch.producer_id)
            if name is None or not there or batch.is_control:
                continue
            if any(there.get(at) == name for at in range(batch.base_offset, batch.last_offset + 1)):
                found.add(name)
    return frozenset(found)
