"""The topics that a source connector uses beside its offsets topic, as far as its config shows. Pure.

A config shows where a connector may write; its worker knows where it did write (KIP-558). Transforms may send records
to other topics, and a prefix stands for unnamed tables, so none of these topics is certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from eosctl.core.configs.classes import MIRROR_SOURCE, PROPERTY, is_class
from eosctl.core.topic_names import is_topic_name

_WRITTEN = ("topic", "kafka.topic")  # FileStream and others; Datagen, Kinesis and others
_PREFIX = "topic.prefix"  # JDBC and others: the name of a table comes behind it
_HISTORY = ("schema.history.internal.kafka.topic", "database.history.kafka.topic")  # Debezium 2.0, and before
_SERVER = (_PREFIX, "database.server.name")
_HEARTBEAT = ("topic.heartbeat.prefix", "heartbeat.topics.prefix")
_SIGNAL = "signal.kafka.topic"


class ConfiguredTopics(Struct, frozen=True):
    """The topics that a config names; `TOPIC*` is a prefix.

    `own_reads` and `own_writes` are topics of the connector's own clients, for signals for example. `unresolved` are
    properties that would name topics, with values that no topic can have: only a worker resolves them. `rerouted`:
    transforms may send records to other topics.
    """

    written: tuple[str, ...] = ()
    own_reads: tuple[str, ...] = ()
    own_writes: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    rerouted: bool = False


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
    )


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
