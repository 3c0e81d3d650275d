"""Lines of Kafka's own scripts to paste; each names its cluster. Pure."""

from __future__ import annotations

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import TopicDescription
from eosctl.foreign import shell_words

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
