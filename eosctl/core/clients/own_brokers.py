"""Kafka brokers that a connector's config names as its own, and lines of Kafka's own scripts to paste. Pure.

The config shows, as far as it can, how to reach the brokers. Anybody who may create connectors can write such a config.
So eosctl sends none of its own credentials there, opens no file of this machine for it, and runs no command in it.

Each line of a script names its cluster.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from msgspec import Struct

from eosctl.core.clients.properties import client_from_properties
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.java.properties import Properties, is_reference, split_list
from eosctl.core.records import TopicDescription
from eosctl.errors import EosctlError
from eosctl.foreign import shell_words

CLUSTER_PROPERTY = "producer.override.bootstrap.servers"
_PRODUCER = "producer.override."
_SOURCE = "source.cluster."
_PREFIXES = ("consumer.override.", _PRODUCER)  # the first that names brokers reads the offsets
_TAKEN = {
    "bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.jaas.config", "ssl.truststore.type",
    "ssl.truststore.certificates", "ssl.keystore.type", "ssl.keystore.certificate.chain", "ssl.keystore.key",
    "ssl.key.password", "ssl.endpoint.identification.algorithm", "request.timeout.ms", "client.dns.lookup",
}  # fmt: skip
_MATTERS = re.compile(r"bootstrap\.servers$|security\.|sasl\.|ssl\.")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class OwnBrokers(Struct, frozen=True):
    """The brokers as the config spells them; `settings` None means that eosctl can't connect to them.

    `why_not` is the reason, as the end of a sentence.
    """

    servers: str
    settings: ClientSettings | None = None
    why_not: str = ""
    __repr__ = object.__repr__  # the settings may hold secrets


def own_brokers(config: Mapping[str, str], *, here: Collection[str]) -> OwnBrokers | None:
    """Return the brokers of a connector's producer; None if the config names none, or only those of `here`.

    Its offsets are read with the same settings.
    """
    prefix = next((prefix for prefix in _PREFIXES if config.get(f"{prefix}bootstrap.servers")), _PRODUCER)
    return _brokers(config, prefix, here=here)


def brokers_of_ids(config: Mapping[str, str], *, here: Collection[str]) -> OwnBrokers | None:
    """Return the brokers of a connector's producer with the producer's settings; its transactional ids are there."""
    return _brokers(config, _PRODUCER, here=here)


def source_brokers(config: Mapping[str, str], *, here: Collection[str]) -> OwnBrokers | None:
    """Return the brokers that a MirrorSourceConnector copies from."""
    return _brokers(config, _SOURCE, here=here, servers_in=f"{_SOURCE}bootstrap.servers")


def _brokers(
    config: Mapping[str, str], prefix: str, *, here: Collection[str], servers_in: str = CLUSTER_PROPERTY
) -> OwnBrokers | None:
    servers = config.get(servers_in)
    if not servers or set(split_list(servers)) == set(here):
        return None
    values = {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)}
    values = {name: value for name, value in values.items() if _MATTERS.match(name) or name in _TAKEN}
    why_not = _why_not(values, prefix)
    if why_not:
        return OwnBrokers(servers, why_not=why_not)
    try:
        return OwnBrokers(servers, client_from_properties(Properties("the config", values), warn=False).settings)
    except EosctlError as exc:
        return OwnBrokers(servers, why_not=f"its settings can't be used here: {exc.message}")


def _why_not(values: Mapping[str, str], prefix: str) -> str:
    references = sorted(name for name, value in values.items() if is_reference(value))
    if references:
        return f"only its worker can resolve {', '.join(prefix + name for name in references)}"
    others = sorted(name for name in values if name not in _TAKEN)
    if values.get("sasl.mechanism", "PLAIN") not in _MECHANISMS:
        others.append("sasl.mechanism")
    if others:
        names = ", ".join(prefix + name for name in others)
        return f"{names} is not taken from a connector's config, as it leads to files and logins of its worker"
    return ""


_NULL = "eosctl-null"
OTHER_NAMES = "Confluent's scripts are called the same, without .sh."
"""A note below lines to paste: the names in them are Apache Kafka's."""


def kafka_script(name: str, settings: ClientSettings | None, option: str = "--command-config") -> list[str]:
    """Return the first words of a line: the script and its cluster.

    A secured cluster needs an administrator's properties file.
    """
    servers = ",".join(settings.bootstrap_servers) if settings else "HOST:PORT"
    secured = settings is not None and settings.security_protocol != "PLAINTEXT"
    words = [name, "--bootstrap-server", servers]
    return words + ([option, "<admin.properties>"] if secured else [])


def only_compacted(topic: str, settings: ClientSettings | None) -> str:
    """Return the line that makes compaction a topic's only cleanup policy."""
    words = ["--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "cleanup.policy=compact"]
    return f"`{shell_words(*kafka_script('kafka-configs.sh', settings), *words)}`"


def compacted_topic(topic: str, partitions: int, settings: ClientSettings | None) -> str:
    """Return the line that makes a compacted topic, with the replicas that brokers give by default."""
    words = ["--create", "--topic", topic, "--partitions", str(partitions), "--config", "cleanup.policy=compact"]
    return f"`{shell_words(*kafka_script('kafka-topics.sh', settings), *words)}`"


def one_partition(topic: TopicDescription, settings: ClientSettings | None) -> str:
    """Describe how a group moves to a config topic of one partition.

    No topic ever loses partitions, so the group needs a new one. Workers read only partition 0 of the old topic, from a
    time when it had no other. The tools of Kafka 4.2 print a warning among the records; it contains no tab.
    """
    new = f"{topic.name}-one"
    create = ["--create", "--topic", new, "--partitions", "1", "--replication-factor", str(topic.replication_factor)]
    read = ["--topic", topic.name, "--partition", "0", "--offset", "earliest", "--isolation-level", "read_committed"]
    read += ["--property", "print.key=true", "--property", f"null.literal={_NULL}", "--timeout-ms", "10000"]
    write = ["--topic", new, "--property", "parse.key=true", "--property", f"null.marker={_NULL}"]
    made = shell_words(*kafka_script("kafka-topics.sh", settings), *create, "--config", "cleanup.policy=compact")
    copied = " | ".join(
        (
            shell_words(*kafka_script("kafka-console-consumer.sh", settings, "--consumer.config"), *read),
            "grep \"$(printf '\\t')\"",
            shell_words(*kafka_script("kafka-console-producer.sh", settings, "--producer.config"), *write),
        )
    )
    return (
        f"A topic never loses partitions, so it takes another one. Stop all workers, then `{made}`, then `{copied}`, "
        f"then set config.storage.topic={new} in every worker's file and start the workers. Partition 0 is all that "
        f"workers read: make changes again that went to the others. {OTHER_NAMES}"
    )
