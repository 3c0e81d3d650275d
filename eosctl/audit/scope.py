"""The scope of an audit: the connector's output and offsets topics, on the cluster that its tasks write to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, DedicatedTopics, describe_unknown, gather_dedicated_topics
from eosctl.connectors.look import unknown_connector
from eosctl.connectors.topic_rules import configured_topics
from eosctl.connectors.topics import find_topics
from eosctl.core.batches import Place, Window
from eosctl.core.configs.classes import MIRROR_SOURCE, is_class, pruned_class
from eosctl.core.configs.fold import former_offsets_topics
from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.java.numbers import java_number, whole_number
from eosctl.core.records import Record
from eosctl.deadline import Clock
from eosctl.errors import EosctlError, InterruptedByUserError, NotFoundError, RefusedError, UsageError
from eosctl.report import Problem
from eosctl.state.history import since_ms

if TYPE_CHECKING:
    from eosctl.ports import TopicReader

BEGINNING = "beginning"
_MARGIN_MS = 900_000  # as long as a transaction may last, unless brokers were told otherwise


class AuditRequest(Struct, frozen=True):
    """The options of an audit, as typed; `topics` empty means those that Connect knows.

    `begin` are offsets of output partitions at which the window begins, in place of `since`; 0 for those not named.
    `writes_alone`: no other client can write to the topics, so that values of unknown producers are the connector's.
    """

    connector: str
    topics: tuple[str, ...] = ()
    offsets_topics: tuple[str, ...] = ()
    since: str = "1h"
    begin: Mapping[Place, int] | None = None
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
    offsets topic of its own that is no more.
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
    connector, config = request.connector, _config_of(dedicated, request.connector)
    tasks_app = _app_of_tasks(app, dedicated, connector)
    topics, problems = _wanted_topics(app, tasks_app, request, config)
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
        problems=(*dedicated.problems, *problems),
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
    former = former_offsets_topics(found.records).get(connector, "")
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


def _wanted_topics(
    app: App, tasks_app: App, request: AuditRequest, config: Mapping[str, str]
) -> tuple[list[str], tuple[Problem, ...]]:
    """Return the named topics, else those that the connector wrote to, else those that its config names."""
    if request.topics:
        return list(dict.fromkeys(request.topics)), ()
    found = find_topics(app, {request.connector: config})
    names = list(found.of[request.connector].written)
    if request.connector in found.unreported or not names:
        names += configured_topics(config).written
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
    return list(dict.fromkeys(wanted)), ()


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
