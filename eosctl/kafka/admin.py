"""Topics through the AdminClient: partitions, settings, offsets, creation.

It only describes and changes topics; records are read by `reader` and written by `writer`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourceType,
)
from confluent_kafka.admin import NewTopic as AskedTopic  # type: ignore[attr-defined]

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Bounds, KnownBounds, NewTopic, Place, Placement, TopicDescription
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, NotFoundError, UnreachableError
from eosctl.kafka.access import Access
from eosctl.kafka.faults import LEADER_PATIENCE_S
from eosctl.kafka.native.admin_connection import AdminConnection
from eosctl.kafka.topics.librdkafka import error_of, translate
from eosctl.kafka.topics.partition_leaders import TopicSpread

_POLL_S = 0.1
_NO_LEADER_HINT = "Bring the broker back that has it, then run again."
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

_NOTHING: Mapping[str, int] = MappingProxyType({})


class _LeaderMovesError(UnreachableError):
    """The leader of a partition is not settled; the text names the request."""


class _NoLeaderError(_LeaderMovesError):
    """The brokers know of no leader: none of the partition's replicas is alive, or a new one is being elected."""


Answers = dict[Place, int | EosctlError]
"""The offset of each partition, or the error."""
_PASSING = (_LeaderMovesError, NotFoundError)  # a leader may not have heard yet that its topic is there


class KafkaTopicAdmin:
    """Requests about topics; the client is made at the first one and kept until `close`."""

    def __init__(self, settings: ClientSettings, *, deadline: Deadline) -> None:
        self._settings, self._deadline = settings, deadline
        self._connection = AdminConnection(settings, deadline=deadline)
        self._spread = TopicSpread(settings, deadline=deadline)

    def close(self) -> None:
        """Close the client; a later request opens another."""
        self._connection.close()
        self._spread.close()

    def cluster_id(self) -> str:
        """Return the Kafka cluster id. Raises UnreachableError or UnauthorizedError with the reason."""
        return self._connection.cluster_id()

    def describe(self, topics: Collection[str], *, configs: bool = True) -> dict[str, TopicDescription]:
        """Return partitions, replication, id and config of the topics that exist.

        A config that may not be read is empty, and so is every config without `configs`.
        """
        found = self._described(topics)
        known = self._configs(list(found)) if configs else {}
        return {name: _description(one, known.get(name, {})) for name, one in found.items()}

    def broker_settings(self, name: str) -> dict[int, str]:
        """Return the value of one setting (`transaction.max.timeout.ms`) at each broker, by broker id.

        Raises UnauthorizedError without DESCRIBE_CONFIGS on the cluster.
        """
        doing = f"reading the brokers' {name}"
        access = Access("DESCRIBE_CONFIGS", "Cluster", "kafka-cluster", self._settings)
        client, timeout_s = self._connection.client(), self._connection.request_timeout_s()
        nodes = self._connection.result(client.describe_cluster(request_timeout=timeout_s), doing).nodes
        futures = {}
        for broker in sorted(node.id for node in nodes):  # librdkafka takes one broker a call
            asked = [ConfigResource(ResourceType.BROKER, str(broker))]
            (futures[broker],) = client.describe_configs(asked, request_timeout=timeout_s).values()
        entries = {broker: self._connection.result(future, doing, access) for broker, future in futures.items()}
        return {broker: configs[name].value or "" for broker, configs in entries.items() if name in configs}

    def own_settings(self, topic: str) -> dict[str, str]:
        """Return the settings of this topic alone, without defaults.

        Raises NotFoundError, UnauthorizedError without DESCRIBE_CONFIGS.
        """
        access = Access("DESCRIBE_CONFIGS", "Topic", topic, self._settings)
        asked = [ConfigResource(ResourceType.TOPIC, topic)]
        client, timeout_s = self._connection.client(), self._connection.request_timeout_s()
        (future,) = client.describe_configs(asked, request_timeout=timeout_s).values()
        entries = self._connection.result(future, f"reading the config of topic {topic}", access)
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {name: entry.value or "" for name, entry in sorted(entries.items()) if entry.source == own}

    def change_settings(self, topic: str, settings: Mapping[str, str | None]) -> None:
        """Change these settings of a topic and no others; raises NotFoundError, UnauthorizedError, BrokerError."""
        entries = [
            ConfigEntry(
                name,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for name, value in settings.items()
        ]
        access = Access("ALTER_CONFIGS", "Topic", topic, self._settings)
        asked = [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)]
        client, timeout_s = self._connection.client(), self._connection.request_timeout_s()
        (future,) = client.incremental_alter_configs(asked, request_timeout=timeout_s).values()
        self._connection.result(future, f"changing the config of topic {topic}", access)

    def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """Count the partitions of each of `topics`; raises NotFoundError."""
        described = self._described(topics)
        for topic in topics:
            if topic not in described:
                raise _missing(topic)
        return {topic: len(found.partitions) for topic, found in described.items()}

    def bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> dict[str, tuple[Bounds, ...]]:
        """Return first offset, LSO and end of every partition of `topics`, once every leader responds.

        Topics in `partitions`, which has the number of each, are not described, unless one has fewer. Raises
        NotFoundError, and UnreachableError where a partition gets no leader within a short time.
        """
        found = self._bounds(topics, partly=False, counted=partitions or {})
        return {topic: bounds.known for topic, bounds in found.items()}

    def known_bounds(self, topic: str) -> KnownBounds:
        """Return the bounds of those partitions whose leaders respond within a short time.

        Raises UnreachableError if none does.
        """
        found = self.known_bounds_of([topic])[topic]
        if found.missing and not found.known:
            raise UnreachableError(next(iter(found.missing.values())), hint=_NO_LEADER_HINT)
        return found

    def known_bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> dict[str, KnownBounds]:
        """Return the `known_bounds` of many topics with the same few requests; a topic may have none.

        Topics in `partitions`, which has the number of each, are not described: only their offsets are requested.
        """
        return self._bounds(topics, partly=True, counted=partitions or {})

    def _bounds(
        self, topics: Collection[str], *, partly: bool, counted: Mapping[str, int] = _NOTHING
    ) -> dict[str, KnownBounds]:
        """Return the bounds of many topics; the end is requested before the LSO, and the LSO is cut to it.

        A transaction that begins between the two requests lies behind the end, and must not look like one that blocks.
        """
        election = self._deadline.half(at_most_s=LEADER_PATIENCE_S)
        while True:
            places = self._led_places(topics, counted)
            begins = self._ask_offsets(_good(places), _EARLIEST, IsolationLevel.READ_UNCOMMITTED)
            ends = self._ask_offsets(begin := _good(begins), _LATEST, IsolationLevel.READ_UNCOMMITTED)
            stable = self._ask_offsets(end := _good(ends), _LATEST, IsolationLevel.READ_COMMITTED)
            asked = {**places, **begins, **ends, **stable}
            faults = {place: why for place, why in asked.items() if isinstance(why, EosctlError)}
            gone = {topic for (topic, _partition), why in faults.items() if isinstance(why, NotFoundError)}
            self.partition_counts(gone)  # raises where the topic is gone
            for why in faults.values():
                final = not isinstance(why, UnreachableError if partly else _PASSING)
                if final or (isinstance(why, _NoLeaderError) and not partly and election.expired()):
                    raise why
            if not faults or (partly and election.expired()):
                break
            faulty = {topic for topic, _partition in faults}
            counted = _counts(place for place in places if place[0] not in faulty)  # to describe these again would leak
            self._deadline.check(f"waiting for leaders ({next(iter(faults.values())).message})")
            self._deadline.sleep(_POLL_S)
        known: dict[str, list[Bounds]] = {topic: [] for topic in topics}
        for place, lso in _good(stable).items():
            topic, partition = place
            known[topic].append(Bounds(partition, begin[place], min(lso, end[place]), end[place]))
        missing: dict[str, dict[int, str]] = {topic: {} for topic in topics}
        for (topic, partition), why in faults.items():
            missing[topic][partition] = why.message
        return {topic: KnownBounds(tuple(known[topic]), missing[topic]) for topic in topics}

    def _led_places(self, topics: Collection[str], counted: Mapping[str, int]) -> Answers:
        """Return every partition in order: 0 if it has a leader or is `counted`, else the error.

        Raises NotFoundError.
        """
        unknown = [topic for topic in topics if topic not in counted]
        described = self._described(unknown)
        for topic in unknown:
            if topic not in described:
                raise _missing(topic)
        places: Answers = dict.fromkeys(_places({topic: counted[topic] for topic in topics if topic in counted}), 0)
        return places | {
            (topic, number): 0
            if part.leader is not None and part.leader.id >= 0
            else _NoLeaderError(f"partition {number} of topic {topic} has no leader", hint=_NO_LEADER_HINT)
            for topic in unknown
            for number, part in enumerate(described[topic].partitions)
        }

    def create_all(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> dict[str, EosctlError]:
        """Create `topics` and wait until every broker knows them and every leader responds.

        Returns the refusals by topic. One broker names the leaders a moment before they, and the other brokers, know of
        it (seen on Kafka 4.3.1). Raises UnreachableError or DeadlineError; then it is unknown which topics exist.
        """
        refused = self._create(topics, validate_only=validate_only)
        made = {new.topic: new.partitions for new in topics if new.topic not in refused}
        if made and not validate_only:
            self._await_ready(made)
        return refused

    def _await_ready(self, made: Mapping[str, int]) -> None:
        for _ in self._deadline.rounds(_POLL_S):
            if self._are_ready(made):
                return
        raise self._deadline.passed(f"waiting for the partitions of new {_some(made)}")

    def _create(self, topics: Sequence[NewTopic], *, validate_only: bool) -> dict[str, EosctlError]:
        if not topics:
            return {}
        wanted = [
            AskedTopic(
                new.topic,
                num_partitions=new.partitions,
                replication_factor=new.replication_factor,
                config=dict(new.config),
            )
            for new in topics
        ]
        client, timeout_s = self._connection.client(), self._connection.request_timeout_s()
        futures = client.create_topics(
            wanted, operation_timeout=timeout_s, request_timeout=timeout_s, validate_only=validate_only
        )
        refused: dict[str, EosctlError] = {}
        for topic, future in futures.items():
            access = Access("CREATE", "Topic", topic, self._settings)
            try:
                self._connection.result(future, f"creating topic {topic}", access)
            except (UnreachableError, DeadlineError):
                raise
            except EosctlError as exc:
                refused[topic] = exc
        return refused

    def _are_ready(self, partitions: Mapping[str, int]) -> bool:
        if not self._spread.known_everywhere(partitions):
            return False
        described = self._described(partitions)  # librdkafka would remember that a topic was not there
        if {topic: len(found.partitions) for topic, found in described.items()} != dict(partitions):
            return False
        answers = self._ask_offsets(_places(partitions), _LATEST, IsolationLevel.READ_UNCOMMITTED)
        faults = [why for why in answers.values() if isinstance(why, EosctlError)]
        for why in faults:
            if not isinstance(why, _PASSING):
                raise why
        return not faults

    def _ask_offsets(self, places: Iterable[Place], spec: OffsetSpec, isolation: IsolationLevel) -> Answers:
        """Request one offset per partition; the result is the offset, or the error of its leader."""
        asked = {TopicPartition(*place): spec for place in places}
        if not asked:
            return {}
        futures = self._connection.client().list_offsets(
            asked, isolation_level=isolation, request_timeout=self._connection.request_timeout_s()
        )
        self._connection.wait(futures.values(), f"reading the offsets of {_some({where.topic for where in asked})}")
        return {(where.topic, where.partition): self._offset(where, future) for where, future in futures.items()}

    def _offset(self, where: TopicPartition, future: Future[Any]) -> int | EosctlError:
        doing = f"reading the offsets of topic {where.topic}"
        try:
            offset: int = future.result().offset
        except KafkaException as exc:
            if error_of(exc).code() in _LEADER_MOVES:
                return _LeaderMovesError(f"{doing}, partition {where.partition} ({error_of(exc).name()})")
            return self._connection.translated(exc, doing, self._reading(where.topic))
        if offset < 0:  # librdkafka's own, where the leader went away while it was asked
            return _LeaderMovesError(f"{doing}, partition {where.partition} (no answer from its leader)")
        return offset

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
                self._connection.wait([future], f"reading the config of topic {resource.name}")
                entries = future.result()
                configs[resource.name] = {name: entry.value or "" for name, entry in entries.items()}
            except KafkaException as exc:
                if error_of(exc).code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise translate(error_of(exc), f"reading the config of topic {resource.name}") from exc
                configs[resource.name] = {}
        return configs

    def _described(self, topics: Collection[str]) -> dict[str, Any]:
        """Return the results of DescribeTopics for those `topics` that exist, by name."""
        names = sorted(set(topics))
        if not names:
            return {}
        client = self._connection.client()
        futures = client.describe_topics(TopicCollection(names), request_timeout=self._connection.request_timeout_s())
        found = {name: self._existing(name, future) for name, future in futures.items()}
        return {name: found[name] for name in names if found[name] is not None}

    def _existing(self, topic: str, future: Future[object]) -> object:
        """Return the result of DescribeTopics for `topic`; None if it does not exist."""
        try:
            return self._connection.result(future, f"describing topic {topic}", self._reading(topic))
        except NotFoundError:
            return None

    def _reading(self, topic: str) -> Access:
        """Return the permission to read a topic.

        Topics described here are read next: READ includes the DESCRIBE that these requests need.
        """
        return Access("READ", "Topic", topic, self._settings)


def _good(answers: Answers) -> dict[Place, int]:
    return {place: answer for place, answer in answers.items() if isinstance(answer, int)}


def _places(partitions: Mapping[str, int]) -> list[Place]:
    """Return every partition, in order."""
    return [(topic, partition) for topic, count in partitions.items() for partition in range(count)]


def _counts(places: Iterable[Place]) -> Mapping[str, int]:
    return Counter(topic for topic, _partition in places)


def _some(topics: Collection[str]) -> str:
    name, more = min(topics), len(topics) - 1
    return f"topic {name}" + (f" and {more} more" if more else "")


def _missing(topic: str) -> NotFoundError:
    return NotFoundError(f"topic {topic} does not exist", hint="Check the name and the cluster (-b).")


def _description(described: Any, config: Mapping[str, str]) -> TopicDescription:
    return TopicDescription(
        name=described.name,
        topic_id=str(described.topic_id),
        partitions=len(described.partitions),
        replication_factor=min((len(part.replicas) for part in described.partitions), default=0),
        config=config,
        placements=tuple(_placement(part) for part in described.partitions),
    )


def _placement(part: Any) -> Placement:
    """Convert a partition of librdkafka.

    librdkafka has no address for a broker that is not in the metadata.
    """
    leader = part.leader
    return Placement(
        partition=part.id,
        leader=leader.id if leader is not None and leader.id >= 0 else None,
        replicas=tuple(node.id for node in part.replicas),
        in_sync=tuple(node.id for node in part.isr),
        offline=tuple(node.id for node in part.replicas if not node.host),
    )
