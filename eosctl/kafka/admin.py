"""confluent-kafka's AdminClient behind one door: every wait has the deadline, every error is ours and has its reason.

It only asks and creates; records are read by topic_reader and written by topic_writer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from eosctl.core.client_settings import ClientSettings
from eosctl.core.records import Bounds, TopicDescription
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, NotFoundError
from eosctl.kafka.access import Access
from eosctl.kafka.librdkafka import ErrorLog, client_properties, error_of, quiet_logger, translate

_POLL_S = 0.1
_CONNECT_TIMEOUT_S = 10.0
_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_LEADER_MOVES = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
)


class TopicAdmin:
    """Questions about topics; the client is made at the first one and kept until `close`."""

    def __init__(self, settings: ClientSettings, *, deadline: Deadline) -> None:
        self._settings, self._deadline = settings, deadline
        self._errors = ErrorLog(deadline.clock.monotonic_s)
        self._client: AdminClient | None = None
        self._cluster_id = ""

    def close(self) -> None:
        """Lets the client go; a later question opens another."""
        self._client = None

    def cluster_id(self) -> str:
        """The Kafka cluster id. Raises UnreachableError or UnauthorizedError with the reason."""
        self._connected()
        return self._cluster_id

    def describe(self, topics: Collection[str]) -> dict[str, TopicDescription]:
        """Partitions, replication, id and config of the topics that exist; an unreadable config is empty."""
        names = sorted(set(topics))
        if not names:
            return {}
        client = self._connected()
        futures = client.describe_topics(TopicCollection(names), request_timeout=self._request_timeout_s())
        found = {name: self._existing(name, future) for name, future in futures.items()}
        existing = [name for name in names if found[name] is not None]
        configs = self._configs(existing)
        return {name: _description(found[name], configs[name]) for name in existing}

    def partition_count(self, topic: str) -> int:
        """How many partitions `topic` has; raises NotFoundError."""
        client = self._connected()
        futures = client.describe_topics(TopicCollection([topic]), request_timeout=self._request_timeout_s())
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
        client, timeout_s = self._connected(), self._request_timeout_s()
        future = client.create_topics([new], operation_timeout=timeout_s, request_timeout=timeout_s)[topic]
        self._result(future, f"creating topic {topic}", Access("CREATE", "Topic", topic, self._settings))
        while not self._is_ready(topic, partitions):
            self._deadline.check(f"waiting for the {partitions} partitions of the new topic {topic}")
            self._deadline.sleep(_POLL_S)
        self._offsets(topic, range(partitions), _LATEST, IsolationLevel.READ_UNCOMMITTED)

    def _is_ready(self, topic: str, partitions: int) -> bool:
        client = self._connected()
        futures = client.describe_topics(TopicCollection([topic]), request_timeout=self._request_timeout_s())
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
                    raise self._translated(exc, doing, self._reading(topic)) from exc
                self._deadline.check(f"{doing} ({error_of(exc).name()})")
            self._deadline.sleep(_POLL_S)

    def _ask_offsets(self, topic: str, partitions: Sequence[int], spec: OffsetSpec, isolation: Any) -> dict[int, int]:
        wanted = {TopicPartition(topic, partition): spec for partition in partitions}
        futures = self._connected().list_offsets(
            wanted, isolation_level=isolation, request_timeout=self._request_timeout_s()
        )
        for future in futures.values():
            self._wait(future, f"reading the offsets of topic {topic}")
        return {where.partition: future.result().offset for where, future in futures.items()}

    def _configs(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        if not topics:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        futures = self._connected().describe_configs(resources, request_timeout=self._request_timeout_s())
        configs: dict[str, dict[str, str]] = {}
        for resource, future in futures.items():
            try:
                self._wait(future, f"reading the config of topic {resource.name}")
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
            return self._result(future, f"describing topic {topic}", self._reading(topic))
        except NotFoundError:
            return None

    def _connected(self) -> AdminClient:
        """The client, after the cluster has answered once."""
        if self._client is None:
            properties = client_properties(self._settings) | {"error_cb": self._errors}
            try:
                client = AdminClient(properties, logger=quiet_logger())
            except KafkaException as exc:
                raise translate(error_of(exc), "connecting") from exc
            self._client = client
            try:
                self._cluster_id = self._first_answer(client)
            except BaseException:
                self._client = None
                raise
        return self._client

    def _first_answer(self, client: AdminClient) -> str:
        servers = ",".join(self._settings.bootstrap_servers)
        timeout_s = min(_CONNECT_TIMEOUT_S, max(self._deadline.remaining_s(), 0.001))
        future = client.describe_cluster(request_timeout=timeout_s)
        cluster_id: str = self._result(future, f"connecting to {servers}").cluster_id
        return cluster_id

    def _reading(self, topic: str) -> Access:
        """What is asked about here is read next: READ, which includes the DESCRIBE that asking needs."""
        return Access("READ", "Topic", topic, self._settings)

    def _result(self, future: Future[Any], doing: str, access: Access | None = None) -> Any:
        self._wait(future, doing)
        try:
            return future.result()
        except KafkaException as exc:
            raise self._translated(exc, doing, access) from exc

    def _translated(self, exc: KafkaException, doing: str, access: Access | None) -> EosctlError:
        """The error that tells most: what `error_cb` heard of a refused login, else the exception's own."""
        self._errors.check(doing)
        return translate(error_of(exc), doing, access=access, because=self._errors.reason())

    def _wait(self, future: Future[Any], doing: str) -> None:
        """Waits for `future` while serving librdkafka's callbacks, which hold the reason of a failure."""
        self._errors.clear()
        while not wait([future], timeout=_POLL_S).done:
            self._serve_callbacks()
            self._errors.check(doing)
            self._deadline.check(doing)
        self._serve_callbacks()

    def _serve_callbacks(self) -> None:
        if self._client is not None:
            self._client.poll(0)

    def _request_timeout_s(self) -> float:
        return max(min(self._settings.request_timeout_ms / 1000, self._deadline.remaining_s()), 0.001)


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
