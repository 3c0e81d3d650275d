"""The topics that connectors write to: written ones by workers' reports, others by configs. Reads only.

Where a worker does not track them (`topic.tracking.enable=false`) or can't be reached, only the configs are left.

A config shows the topics that a source connector uses beside its offsets topic, and where it may write; its worker
knows where it did write (KIP-558). Transforms may send records to other topics, and a prefix stands for unnamed tables,
so none of the config's topics is certain. Reading them from a config is pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from eosctl.app import App
from eosctl.connectors import codes
from eosctl.core.configs.records import MIRROR_SOURCE, PROPERTY, is_class, names_one_of
from eosctl.core.wording import is_topic_name
from eosctl.errors import EosctlError, NotFoundError
from eosctl.group.belonging import connectors_of
from eosctl.group.gather import discover_urls, in_turn
from eosctl.machine.side_by_side import side_by_side
from eosctl.report import Problem

_WRITTEN = ("topic", "kafka.topic")  # FileStream and others; Datagen, Kinesis and others
_PREFIX = "topic.prefix"  # JDBC and others: the name of a table comes behind it
_HISTORY = ("schema.history.internal.kafka.topic", "database.history.kafka.topic")  # Debezium 2.0, and before
_SERVER = (_PREFIX, "database.server.name")
_HEARTBEAT = ("topic.heartbeat.prefix", "heartbeat.topics.prefix")
_SIGNAL = "signal.kafka.topic"
_DEFAULT_POLICY = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
_WRITING_WHERE_NAMED = (
    "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
)


class ConfiguredTopics(Struct, frozen=True):
    """The topics that a config names; `TOPIC*` is a prefix.

    `own_reads` and `own_writes` are topics of the connector's own clients, for signals for example. `unresolved` are
    properties that would name topics, with values that no topic can have: only a worker resolves them. `rerouted`:
    transforms may send records to other topics. `complete`: no record can be in another topic than `written`.
    """

    written: tuple[str, ...] = ()
    own_reads: tuple[str, ...] = ()
    own_writes: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    rerouted: bool = False
    complete: bool = False


def configured_topics(config: Mapping[str, object]) -> ConfiguredTopics:
    """Return the topics that `config` names; none where it is empty."""
    texts = {name: value.strip() for name, value in config.items() if isinstance(value, str) and value.strip()}
    written = [*_named(texts, *_WRITTEN), *_mirrored(texts)]
    own_reads: list[_Named] = []
    own_writes: list[_Named] = []
    if texts.get("connector.class", "").startswith("io.debezium."):
        written += _debezium_written(texts)
        own_reads += _debezium_read(texts)
        own_writes += _named(texts, *_HISTORY)
    else:
        written += [(name, f"{topic}*") for name, topic in _named(texts, _PREFIX)]
    unresolved = [name for name, topic in (*written, *own_reads) if not is_topic_name(topic.removesuffix("*"))]
    return ConfiguredTopics(
        written=_names(written, unresolved),
        own_reads=_names(own_reads, unresolved),
        own_writes=_names(own_writes, unresolved),
        unresolved=tuple(dict.fromkeys(unresolved)),
        rerouted="transforms" in texts,
        complete=bool(written) and not unresolved and "transforms" not in texts and _names_all(texts),
    )


def _names_all(config: Mapping[str, str]) -> bool:
    """Check whether the class is known to write nowhere else than its config says.

    Others derive names from what they read, by settings and classes of their own (Debezium: naming strategies, schema
    changes, notifications; MongoDB: mappers, heartbeats), or may do so in another release.
    """
    policy = config.get("replication.policy.class", _DEFAULT_POLICY)
    return names_one_of(config, _WRITING_WHERE_NAMED) and policy == _DEFAULT_POLICY


_Named = tuple[str, str]
"""A property, and the topic that it names."""


def _names(found: list[_Named], unresolved: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(topic for name, topic in found if name not in unresolved))


def _named(config: Mapping[str, str], *properties: str) -> Iterator[_Named]:
    yield from ((name, config[name]) for name in properties if name in config)


def _debezium_written(config: Mapping[str, str]) -> Iterator[_Named]:
    """Yield the topics of tables, transactions, schema changes, heartbeats (`AbstractTopicNamingStrategy`, 2.x)."""
    delimiter = config.get("topic.delimiter", ".")
    for name, server in list(_named(config, *_SERVER))[:1]:
        yield name, f"{server}{delimiter}*"
        if any(history in config for history in _HISTORY) and config.get("include.schema.changes") != "false":
            yield name, server
        if config.get("heartbeat.interval.ms", "0") != "0":
            heartbeat = next(_named(config, *_HEARTBEAT), (name, "__debezium-heartbeat"))
            yield heartbeat[0], f"{heartbeat[1]}{delimiter}{server}"


def _debezium_read(config: Mapping[str, str]) -> Iterator[_Named]:
    """Yield the topics of the connector's own consumers (`KafkaSignalChannel`, `KafkaSchemaHistory`)."""
    yield from _named(config, *_HISTORY)
    channels = [channel.strip() for channel in config.get("signal.enabled.channels", "").split(",")]
    if "kafka" in channels or _SIGNAL in config:
        for name, server in list(_named(config, *_SERVER))[:1]:
            yield next(_named(config, _SIGNAL), (name, f"{server}-signal"))


def _mirrored(config: Mapping[str, str]) -> Iterator[_Named]:
    """Yield MirrorMaker 2's topics by `DefaultReplicationPolicy`; another policy's names are unknown."""
    if is_class(config, "MirrorHeartbeatConnector"):
        yield PROPERTY, "heartbeats"
    if config.get("replication.policy.class", "DefaultReplicationPolicy").rpartition(".")[2] != (
        "DefaultReplicationPolicy"
    ):
        return
    separator, alias = config.get("replication.policy.separator", "."), "source.cluster.alias"
    for name, source in _named(config, alias):
        if is_class(config, MIRROR_SOURCE):
            yield name, f"{source}{separator}*"
        elif is_class(config, "MirrorCheckpointConnector"):
            yield name, f"{source}.checkpoints.internal"


_PARALLEL_QUESTIONS = 8


class ConnectorTopics(Struct, frozen=True):
    """`written` are certain; `likely` are others that the config names, `TOPIC*` is a prefix.

    `own_reads` are read by consumers of the connector's own, not by Connect's, and `own_writes` written by its
    producers, without a transaction.
    """

    written: tuple[str, ...] = ()
    likely: tuple[str, ...] = ()
    own_reads: tuple[str, ...] = ()
    own_writes: tuple[str, ...] = ()


class FoundTopics(Struct, frozen=True):
    """Connector -> its topics; the unknown ones as problems, and the connectors that no worker reported about."""

    of: Mapping[str, ConnectorTopics] = {}
    problems: tuple[Problem, ...] = ()
    unreported: tuple[str, ...] = ()


def find_topics(
    app: App, configs: Mapping[str, Mapping[str, object]], *, shown: Collection[str] | None = None
) -> FoundTopics:
    """Find the topics of these connectors, of workers by REST and of configs, which may be empty; decide what is
    certain.

    `shown` are the connectors that the workers of `app` have shown, which are known to be of its group.
    """
    written, why_not = _ask_workers(app, list(configs), shown) if configs else ({}, "")
    configured = {name: configured_topics(config) for name, config in configs.items()}
    found = {name: _joined(written.get(name), configured[name]) for name in configs}
    lacking = [name for name, topics in found.items() if not (topics.written or topics.likely)]
    guessed = [name for name in configs if name not in written and name not in lacking]
    problems = []
    if lacking:
        reason = why_not or "nothing was written to one yet, and the config names none"
        problems.append(_unknown(f"the output topics of {', '.join(lacking)} are not known ({reason})", "them"))
    if guessed:
        message = (
            f"what {', '.join(guessed)} have written is not known ({why_not}): rights are for what their configs say"
        )
        problems.append(_unknown(message, "others"))
    return FoundTopics(found, tuple(problems), tuple(name for name in configs if name not in written))


def _joined(reported: Sequence[str] | None, configured: ConfiguredTopics) -> ConnectorTopics:
    """Join written topics, which are certain, with those of the config, which are unless transforms may reroute
    records.
    """
    certain = [] if configured.rerouted else [topic for topic in configured.written if not topic.endswith("*")]
    written = dict.fromkeys([*(reported or ()), *certain])
    known = configured.rerouted and reported  # what came out of the transforms, and what went in is no topic
    likely = [topic for topic in (() if known else configured.written) if topic not in written]
    return ConnectorTopics(tuple(written), tuple(likely), configured.own_reads, configured.own_writes)


def _ask_workers(
    app: App, connectors: Sequence[str], shown: Collection[str] | None
) -> tuple[Mapping[str, Sequence[str]], str]:
    """Ask for the topics that each connector has written to, at the first worker that has them; else return why not."""
    try:
        urls = discover_urls(app)
    except EosctlError as exc:
        return {}, exc.message
    failures: list[EosctlError] = []
    for _url, worker in in_turn(app, urls):
        try:
            here = connectors_of(app, worker) if shown is None else shown
            known = [name for name in connectors if name in here]  # of others a worker says that they have no topics
            unknown = ", ".join(name for name in connectors if name not in here)
            why_not = unknown and f"the worker at {worker.url} does not know {unknown}"
            if not known:
                raise NotFoundError(why_not)
            topics = [worker.topics(known[0])]  # a worker that does not report is asked once
            topics += side_by_side(worker.topics, known[1:], most=_PARALLEL_QUESTIONS)
            return dict(zip(known, topics, strict=True)), why_not
        except EosctlError as exc:
            failures.append(exc)
    return {}, "; ".join(each.message for each in failures) or "the group has no member"


def _unknown(message: str, what: str) -> Problem:
    hint = f"Name {what} with --output-topic NAME; NAME* is a prefix."
    return Problem(codes.OUTPUT_TOPICS_UNKNOWN, message, hint=hint, unseen=True)
