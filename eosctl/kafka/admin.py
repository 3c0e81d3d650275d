"""Topics as the AdminClient knows them: partitions, settings, offsets, creation.

It only asks and creates; records are read by topic_reader and written by topic_writer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from eosctl.core.client_settings import ClientSettings
from eosctl.core.records import Bounds, TopicDescription
from eosctl.deadline import Deadline
from eosctl.errors import NotFoundError
from eosctl.kafka.access import Access
from eosctl.kafka.admin_connection import AdminConnection
from eosctl.kafka.librdkafka import error_of, translate

_POLL_S = 0.1
_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_LEADER_MOVES = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError._NOENT,  # librdkafka lost the connection while it asked for the leaders of a topic that is there
)


class TopicAdmin:
    """Questions about topics; the client is made at the first one and kept until `close`."""

    def __init__(self, settings: ClientSettings, *, deadline: Deadline) -> None:
        self._settings, self._deadline = settings, deadline
        self._connection = AdminConnection(settings, deadline=deadline)

    def close(self) -> None:
        """Lets the client go; a later question opens another."""
        self._connection.close()

    def cluster_id(self) -> str:
        """The Kafka cluster id. Raises UnreachableError or UnauthorizedError with the reason."""
        return self._connection.cluster_id()

    def describe(self, topics: Collection[str]) -> dict[str, TopicDescription]:
        """Partitions, replication, id and config of the topics that exist; an unreadable config is empty."""
        names = sorted(set(topics))
        if not names:
            return {}
        client = self._connection.client()
        futures = client.describe_topics(TopicCollection(names), request_timeout=self._connection.request_timeout_s())
        found = {name: self._existing(name, future) for name, future in futures.items()}
        existing = [name for name in names if found[name] is not None]
        configs = self._configs(existing)
        return {name: _description(found[name], configs[name]) for name in existing}

    def broker_settings(self, name: str) -> dict[int, str]:
        """The value of one setting (`transaction.max.timeout.ms`) at each broker, by broker id.

        Raises UnauthorizedError without DESCRIBE_CONFIGS on the cluster.
        """
        doing = f"reading the brokers' {name}"
        access = Access("DESCRIBE_CONFIGS", "Cluster", "kafka-cluster", self._settings)
        client, timeout_s = self._connection.client(), self._connection.request_timeout_s()
        nodes = self._connection.result(client.describe_cluster(request_timeout=timeout_s), doing).nodes
        resources = [ConfigResource(ResourceType.BROKER, str(node.id)) for node in nodes]
        futures = client.describe_configs(resources, request_timeout=timeout_s)
        entries = {
            resource.name: self._connection.result(future, doing, access) for resource, future in futures.items()
        }
        return {int(broker): there[name].value or "" for broker, there in sorted(entries.items()) if name in there}

    def partition_count(self, topic: str) -> int:
        """How many partitions `topic` has; raises NotFoundError."""
        client = self._connection.client()
        futures = client.describe_topics(TopicCollection([topic]), request_timeout=self._connection.request_timeout_s())
        described = self._existing(topic, futures[topic])
        if described is None:
            raise _missing(topic)
        return len(described.partitions)

    def bounds(self, topic: str) -> tuple[Bounds, ...]:
        """Begin, LSO and end of every partition. Raises NotFoundError.

        The end is asked before the LSO, and the LSO is cut to it: a transaction that begins between the two questions
        is none of ours, and must not look like one that blocks.
        """
        partitions = range(self.partition_count(topic))
        begin = self._offsets(topic, partitions, _EARLIEST, IsolationLevel.READ_UNCOMMITTED)
        end = self._offsets(topic, partitions, _LATEST, IsolationLevel.READ_UNCOMMITTED)
        stable = self._offsets(topic, partitions, _LATEST, IsolationLevel.READ_COMMITTED)
        return tuple(Bounds(p, begin[p], min(stable[p], end[p]), end[p]) for p in partitions)

    def create(self, topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        """Creates `topic` and waits until every partition has a leader that answers.

        Metadata names the leaders a moment before they know of it themselves (seen on Kafka 4.3.1), so they are asked.
        """
        new = NewTopic(topic, num_partitions=partitions, replication_factor=replication_factor, config=dict(config))
        client, timeout_s = self._connection.client(), self._connection.request_timeout_s()
        future = client.create_topics([new], operation_timeout=timeout_s, request_timeout=timeout_s)[topic]
        self._connection.result(future, f"creating topic {topic}", Access("CREATE", "Topic", topic, self._settings))
        while not self._is_ready(topic, partitions):
            self._deadline.check(f"waiting for the {partitions} partitions of the new topic {topic}")
            self._deadline.sleep(_POLL_S)
        self._offsets(topic, range(partitions), _LATEST, IsolationLevel.READ_UNCOMMITTED)

    def _is_ready(self, topic: str, partitions: int) -> bool:
        client = self._connection.client()
        futures = client.describe_topics(TopicCollection([topic]), request_timeout=self._connection.request_timeout_s())
        described = self._existing(topic, futures[topic])
        if described is None or len(described.partitions) < partitions:
            return False
        return all(part.leader is not None and part.leader.id >= 0 for part in described.partitions)

    def _offsets(self, topic: str, partitions: Sequence[int], spec: OffsetSpec, isolation: Any) -> dict[int, int]:
        """One offset per partition; asked again while a leader moves."""
        doing = f"reading the offsets of topic {topic}"
        while True:
            try:
                return self._ask_offsets(topic, partitions, spec, isolation)
            except KafkaException as exc:
                if error_of(exc).code() not in _LEADER_MOVES:
                    raise self._connection.translated(exc, doing, self._reading(topic)) from exc
                self._deadline.check(f"{doing} ({error_of(exc).name()})")
            self._deadline.sleep(_POLL_S)

    def _ask_offsets(self, topic: str, partitions: Sequence[int], spec: OffsetSpec, isolation: Any) -> dict[int, int]:
        wanted = {TopicPartition(topic, partition): spec for partition in partitions}
        futures = self._connection.client().list_offsets(
            wanted, isolation_level=isolation, request_timeout=self._connection.request_timeout_s()
        )
        for future in futures.values():
            self._connection.wait(future, f"reading the offsets of topic {topic}")
        return {where.partition: future.result().offset for where, future in futures.items()}

    def _configs(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        if not topics:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        futures = self._connection.client().describe_configs(
            resources, request_timeout=self._connection.request_timeout_s()
        )
        configs: dict[str, dict[str, str]] = {}
        for resource, future in futures.items():
            try:
                self._connection.wait(future, f"reading the config of topic {resource.name}")
                entries = future.result()
                configs[resource.name] = {name: entry.value or "" for name, entry in entries.items()}
            except KafkaException as exc:
                if error_of(exc).code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise translate(error_of(exc), f"reading the config of topic {resource.name}") from exc
                configs[resource.name] = {}
        return configs

    def _existing(self, topic: str, future: Future[Any]) -> Any:
        """What DescribeTopics says of `topic`, None when there is no such topic."""
        try:
            return self._connection.result(future, f"describing topic {topic}", self._reading(topic))
        except NotFoundError:
            return None

    def _reading(self, topic: str) -> Access:
        """What is asked about here is read next: READ, which includes the DESCRIBE that asking needs."""
        return Access("READ", "Topic", topic, self._settings)


def _missing(topic: str) -> NotFoundError:
    return NotFoundError(f"topic {topic} does not exist", hint="Check the name and the cluster (-b).")


def _description(described: Any, config: Mapping[str, str]) -> TopicDescription:
    return TopicDescription(
        name=described.name,
        topic_id=str(described.topic_id),
        partitions=len(described.partitions),
        replication_factor=min((len(part.replicas) for part in described.partitions), default=0),
        config=config,
    )
