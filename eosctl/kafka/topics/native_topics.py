"""Topics over eosctl's own wire: what they are like, their bounds, and the records of small ones.

Everything goes over the connections that the whole command has. A client of librdkafka would open two or three of its
own for each question: over TLS with SCRAM each of them takes six round trips.

The errors are those of `KafkaTopicAdmin`, which asks the same by librdkafka.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Bounds, KnownBounds, Place, Placement, Record, TopicDescription
from eosctl.core.transactions import KafkaFault
from eosctl.deadline import Deadline
from eosctl.engine.reading.ranges import OffsetRange, ProgressMeter
from eosctl.errors import (
    BrokerError,
    DeadlineError,
    EosctlError,
    NotFoundError,
    ProtocolError,
    UnauthorizedError,
    UnreachableError,
)
from eosctl.kafka.access import Access
from eosctl.kafka.batches.fetching import MOVING, FetchPass, LogBounds, bounds_at, bounds_with_metadata
from eosctl.kafka.batches.source import PartitionReading, RangePositions, pass_sound
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import LEADER_PATIENCE_S, with_reasons
from eosctl.kafka.session import Connections
from eosctl.kafka.topics.partition_leaders import leaders_in
from eosctl.kafka.topics.stream import CONNECT_TIMEOUT_S, Address, Leader
from eosctl.wire.api import AnyApi
from eosctl.wire.cluster_messages import METADATA, MetadataRequest, MetadataResponse, TopicMetadata, TopicQuery
from eosctl.wire.config_messages import (
    DESCRIBE_CONFIGS,
    SET_ON_TOPIC,
    ConfigOf,
    ConfigQuery,
    DescribeConfigsRequest,
    DescribedConfig,
    DescribedResource,
)
from eosctl.wire.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    LEADER_NOT_AVAILABLE,
    NETWORK_EXCEPTION,
    NONE,
    REQUEST_TIMED_OUT,
    SASL_AUTHENTICATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_name,
)
from eosctl.wire.log.batches import OldFormatError
from eosctl.wire.log.fetch_messages import Isolation, PartitionData
from eosctl.wire.log.records import CompressedError, Part, visible_records

_POLL_S = 0.1
NO_LEADER_HINT = "Bring the broker back that has it, then run again."
_NOTHING: Mapping[str, int] = {}
_DENIED = (TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED)
_NOBODY_THERE = (LEADER_NOT_AVAILABLE, NETWORK_EXCEPTION, REQUEST_TIMED_OUT)


class NativeTopics:
    """Requests about topics over the connections of a command."""

    def __init__(self, settings: ClientSettings, *, deadline: Deadline, connections: Connections) -> None:
        self._settings, self._deadline = settings, deadline
        self._cluster = Cluster(settings, deadline=deadline, connections=connections)
        self._leaders: dict[Place, Leader] = {}
        self._led = connections.leaders

    def close(self) -> None:
        """Give the connections back to the command."""
        self._cluster.close()

    def cluster_id(self) -> str:
        """Return the Kafka cluster id. Raises UnreachableError or UnauthorizedError."""
        return self._cluster.cluster_id()

    # -- what they are like

    def describe(self, topics: Collection[str], *, configs: bool = True) -> dict[str, TopicDescription]:
        """Return partitions, replication, id and config of the topics that exist; all is asked at once.

        A config that may not be read is empty, and so is every config without `configs`.
        """
        names = sorted(set(topics))
        if not names:
            return {}
        asked: list[tuple[AnyApi, object]] = [(METADATA, _about(names))]
        if configs:
            queries = tuple(ConfigQuery(ConfigOf.TOPIC, name) for name in names)
            asked.append((DESCRIBE_CONFIGS, DescribeConfigsRequest(queries)))
        metadata, *more = self._cluster.use_any(lambda connection: connection.call_together(asked))
        existing = self._existing(metadata)
        self._cluster.learn(metadata)
        places = self._places(metadata, existing, _NOTHING, partly=False)
        for (name, part), leader in leaders_in(metadata, places).items():
            if isinstance(leader, Leader):
                self._led.setdefault(name, {})[part] = leader
        settings = {item.resource_name: item for answer in more for item in answer.results}
        brokers = {broker.node_id for broker in metadata.brokers}
        return {
            name: _description(existing[name], self._config(name, settings.get(name)), brokers)
            for name in names
            if name in existing
        }

    def _config(self, topic: str, answer: DescribedResource | None) -> dict[str, str]:
        if answer is None or answer.error_code == TOPIC_AUTHORIZATION_FAILED:
            return {}
        entries = self._entries(answer, f"reading the config of topic {topic}", None)
        return {entry.name: entry.value or "" for entry in entries}

    def broker_settings(self, name: str) -> dict[int, str]:
        """Return the value of one setting (`transaction.max.timeout.ms`) at each broker, by broker id.

        Raises UnauthorizedError without DESCRIBE_CONFIGS on the cluster.
        """
        from eosctl.kafka.brokers import ask_every_broker

        doing = f"reading the brokers' {name}"
        access = Access("DESCRIBE_CONFIGS", "Cluster", "kafka-cluster", self._settings)
        brokers = {address: broker for broker, address in self._cluster.brokers().items()}

        def ask(address: Address) -> Sequence[DescribedConfig]:
            query = ConfigQuery(ConfigOf.BROKER, str(brokers[address]), (name,))
            answer = self._cluster.ask(address, DESCRIBE_CONFIGS, DescribeConfigsRequest((query,)))
            return [entry for item in answer.results for entry in self._entries(item, doing, access)]

        addresses = {broker: address for address, broker in sorted(brokers.items(), key=lambda pair: pair[1])}
        answers = ask_every_broker(self._cluster, addresses, ask, deadline=self._cluster.deadline())
        found = dict[int, str]()
        for broker, answer in answers.items():
            if isinstance(answer, EosctlError):
                raise answer
            found.update((broker, entry.value or "") for entry in answer if entry.name == name)
        return found

    def own_settings(self, topic: str) -> dict[str, str]:
        """Return the settings of this topic alone, without defaults.

        Raises NotFoundError, UnauthorizedError without DESCRIBE_CONFIGS.
        """
        access = Access("DESCRIBE_CONFIGS", "Topic", topic, self._settings)
        request = DescribeConfigsRequest((ConfigQuery(ConfigOf.TOPIC, topic),))
        answer = self._cluster.use_any(lambda connection: connection.call(DESCRIBE_CONFIGS, request))
        doing = f"reading the config of topic {topic}"
        entries = [entry for item in answer.results for entry in self._entries(item, doing, access)]
        return {
            entry.name: entry.value or ""
            for entry in sorted(entries, key=lambda entry: entry.name)
            if entry.config_source == SET_ON_TOPIC
        }

    def _entries(self, item: DescribedResource, doing: str, access: Access | None) -> Sequence[DescribedConfig]:
        if item.error_code == NONE:
            return item.configs
        if item.error_code in _DENIED:
            raise _denied(doing, access)
        if item.error_code == UNKNOWN_TOPIC_OR_PARTITION:
            raise NotFoundError(f"{doing} failed: the topic does not exist")
        raise BrokerError(f"{doing} failed: {error_name(item.error_code)}: {item.error_message or ''}".rstrip(": "))

    def _existing(self, metadata: MetadataResponse) -> dict[str, TopicMetadata]:
        """Return the topics that exist. Raises UnauthorizedError or BrokerError for one that can't be described."""
        found = dict[str, TopicMetadata]()
        for topic in metadata.topics:
            name = topic.name or ""
            if topic.error_code == TOPIC_AUTHORIZATION_FAILED:
                raise _denied(f"describing topic {name}", Access("READ", "Topic", name, self._settings))
            if topic.error_code in {NONE, LEADER_NOT_AVAILABLE}:
                found[name] = topic
            elif topic.error_code != UNKNOWN_TOPIC_OR_PARTITION:
                raise BrokerError(f"describing topic {name} failed: {error_name(topic.error_code)}")
        return found

    # -- bounds

    def bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> dict[str, tuple[Bounds, ...]]:
        """Return first offset, LSO and end of every partition of `topics`, once every leader responds.

        Raises NotFoundError, and UnreachableError where a partition gets no leader within a short time.
        """
        found = self._bounds(topics, partly=False, counted=partitions or _NOTHING)
        return {topic: bounds.known for topic, bounds in found.items()}

    def known_bounds(self, topic: str) -> KnownBounds:
        """Return the bounds of those partitions whose leaders respond within a short time.

        Raises UnreachableError if none does.
        """
        found = self.known_bounds_of([topic])[topic]
        if found.missing and not found.known:
            raise UnreachableError(next(iter(found.missing.values())), hint=NO_LEADER_HINT)
        return found

    def known_bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> dict[str, KnownBounds]:
        """Return the `known_bounds` of many topics with the same few requests; a topic may have none.

        Partitions beyond the number in `partitions` are left out. Raises NotFoundError, also where there are fewer.
        """
        return self._bounds(topics, partly=True, counted=partitions or _NOTHING)

    def _bounds(self, topics: Collection[str], *, partly: bool, counted: Mapping[str, int]) -> dict[str, KnownBounds]:
        if not topics:
            return {}
        deadline = self._cluster.deadline()
        election = deadline.half(at_most_s=LEADER_PATIENCE_S)
        patience = election if partly else deadline
        answers: dict[Place, LogBounds | KafkaFault] = {}
        while True:
            try:
                with self._cluster.within(patience):
                    answers = self._ask_bounds(topics, counted, partly=partly, before=answers)
            except (UnreachableError, DeadlineError):
                if not answers:
                    raise
            faults = {place: answer for place, answer in answers.items() if isinstance(answer, KafkaFault)}
            for place, fault in faults.items():
                gave_up = not partly and fault.code in _NOBODY_THERE and election.expired()
                if gave_up or fault.code not in MOVING:
                    raise self._offsets_error(place, fault)
            if not faults or patience.expired():
                break
            patience.sleep(_POLL_S)
        if faults and not partly:
            place, fault = next(iter(faults.items()))
            raise deadline.passed(f"waiting for leaders ({self._offsets_error(place, fault).message})")
        known: dict[str, list[Bounds]] = {topic: [] for topic in topics}
        missing: dict[str, dict[int, str]] = {topic: {} for topic in topics}
        led: dict[str, dict[int, Leader]] = {topic: {} for topic in topics}
        for (topic, number), answer in sorted(answers.items()):
            if isinstance(answer, LogBounds):
                self._leaders[topic, number] = led[topic][number] = answer.leader
                known[topic].append(Bounds(number, answer.start, answer.last_stable, answer.end))
            else:
                missing[topic][number] = self._offsets_error((topic, number), answer).message
        self._led.update(led)
        return {topic: KnownBounds(tuple(known[topic]), missing[topic]) for topic in topics}

    def _ask_bounds(
        self,
        topics: Collection[str],
        counted: Mapping[str, int],
        *,
        partly: bool,
        before: Mapping[Place, LogBounds | KafkaFault],
    ) -> dict[Place, LogBounds | KafkaFault]:
        """Return the bounds of every partition, or the fault; all are of one look, unless they are wanted `partly`.

        Then those known `before` count while their leaders lead: what is missing may use up the time, and a broker that
        has answered is not asked again with the little that is left.
        """
        metadata, early = self._look(list(dict.fromkeys(topics)))
        leaders = leaders_in(metadata, self._places(metadata, topics, counted, partly=partly))
        known = {
            place: bounds
            for place, bounds in {**(before if partly else {}), **early}.items()
            if isinstance(bounds, LogBounds) and bounds.leader == leaders.get(place)
        }
        fresh = bounds_at(self._cluster, {place: each for place, each in leaders.items() if place not in known})
        return {**known, **with_reasons(fresh, before, self._cluster.deadline())}

    def _look(self, topics: Sequence[str]) -> tuple[MetadataResponse, Mapping[Place, LogBounds | KafkaFault]]:
        """Return metadata, and with it the bounds at a broker that has led partitions of `topics` before."""
        known = {(topic, part): leader for topic in topics for part, leader in self._led.get(topic, {}).items()}
        if known:
            address = next(iter(known.values())).address
            there = {place: leader for place, leader in known.items() if leader.address == address}
            try:
                with self._cluster.one_of(2, at_most_s=CONNECT_TIMEOUT_S):
                    return bounds_with_metadata(self._cluster, address, there, _about(topics))
            except (UnreachableError, ProtocolError, DeadlineError):
                for topic in topics:
                    self._led.pop(topic, None)
        return self._cluster.metadata(topics), {}

    def _places(
        self, metadata: MetadataResponse, topics: Collection[str], counted: Mapping[str, int], *, partly: bool
    ) -> list[Place]:
        existing, places = self._existing(metadata), list[Place]()
        for topic in topics:
            count = len(existing[topic].partitions) if topic in existing else 0
            wanted = counted.get(topic, count)
            if topic not in existing or (partly and wanted > count):
                raise NotFoundError(f"topic {topic} does not exist", hint="Check the name and the cluster (-b).")
            places += [(topic, number) for number in range(min(wanted, count))]
        return places

    def _offsets_error(self, place: Place, fault: KafkaFault) -> EosctlError:
        topic, number = place
        if fault.code == LEADER_NOT_AVAILABLE:
            return UnreachableError(f"partition {number} of topic {topic} has no leader", hint=NO_LEADER_HINT)
        doing = f"reading the offsets of topic {topic}"
        if fault.code == TOPIC_AUTHORIZATION_FAILED:
            return _denied(doing, Access("READ", "Topic", topic, self._settings))
        if fault.code == SASL_AUTHENTICATION_FAILED:
            return UnauthorizedError(f"{doing}: {fault.message}", hint="Check user name, password or token.")
        if fault.code not in MOVING:
            return BrokerError(f"{doing}, partition {number} failed: {fault}")
        return UnreachableError(f"{doing}, partition {number} ({fault})", hint="Are all brokers up?")

    # -- records

    def rows(
        self,
        ranges: Sequence[OffsetRange],
        *,
        committed: bool,
        limited: bool,
        progress: ProgressMeter,
    ) -> RowReading:
        """Read the records of ranges whose bounds were just looked up."""
        return RowReading(
            self._cluster, ranges, self._leaders, settings=self._settings, timeout=self._deadline,
            committed=committed, limited=limited, progress=progress,
        )  # fmt: skip


class RowReading:
    """An iterable that can be iterated once, of some records at a time.

    Raises the errors of `RecordReading`, and CompressedError or OldFormatError where only librdkafka reads the `rest`.
    """

    def __init__(
        self,
        cluster: Cluster,
        ranges: Sequence[OffsetRange],
        leaders: Mapping[Place, Leader],
        *,
        settings: ClientSettings,
        timeout: Deadline,
        committed: bool,
        limited: bool,
        progress: ProgressMeter,
    ) -> None:
        self._ranges, self._progress = [one for one in ranges if one.begin < one.end], progress
        self._taken = _Rows(self._ranges)
        self._pass = FetchPass(
            cluster,
            self._taken,
            {(one.topic, one.partition): one.end for one in self._ranges},
            settings=settings,
            timeout=timeout,
            isolation=Isolation.COMMITTED if committed else Isolation.UNCOMMITTED,
            limited=limited,
            whole=True,
            leaders=leaders,
        )

    def __iter__(self) -> Iterator[list[Record]]:
        try:
            for records in self._pass:
                yield records
                self._progress.tell(self._passed)
        except (CompressedError, OldFormatError):
            self._progress.tell(self._passed, last=True)
            raise
        if self._ranges:
            self._progress.tell(self._passed, last=True)

    def _passed(self) -> int:
        """Count the offsets that are read, including markers and gaps; in the end this is the ranges' length."""
        return sum(rest.begin - one.begin for rest, one in zip(self.rest(), self._ranges, strict=True))

    def rest(self) -> list[OffsetRange]:
        """Return the parts of the ranges whose records were not yielded yet."""
        return self._taken.rest()


class _Rows(RangePositions):
    """Makes records of responses."""

    def take(self, reading: PartitionReading, part: PartitionData) -> Sequence[Part]:
        """Return the batches with the records that a consumer sees; raises the errors of `visible_records`."""
        if part.records is None:
            return ()
        topic, partition = reading.place
        batches = visible_records(
            part.records, topic=topic, partition=partition, aborted=part.aborted_transactions or ()
        )
        lasts = [last for _base, last, _records in batches]
        return batches[: pass_sound(reading, lasts, lambda row: batches[row][0], end=part.high_watermark)]

    def give(self, chunks: Sequence[tuple[PartitionReading, Sequence[Part]]]) -> Iterator[list[Record]]:
        """Yield the records of a response that lie in the ranges."""
        for reading, batches in chunks:
            first, stop = self.positions[reading.place], reading.stop
            records = [
                record
                for base, last, its in batches
                for record in (its if first <= base and last < stop else _inside(its, first, stop))
            ]
            if records:
                yield records
            self.positions[reading.place] = reading.position


def _inside(records: Iterable[Record], first: int, stop: int) -> list[Record]:
    return [record for record in records if first <= record.offset < stop]


def _about(names: Sequence[str]) -> MetadataRequest:
    return MetadataRequest(tuple(TopicQuery(name=name) for name in names), allow_auto_topic_creation=False)


def _denied(doing: str, access: Access | None) -> UnauthorizedError:
    needs = f" ({access} is needed)" if access else ""
    return UnauthorizedError(f"not authorized: {doing} failed{needs}", hint=access.hint() if access else None)


def _description(topic: TopicMetadata, config: Mapping[str, str], brokers: Collection[int]) -> TopicDescription:
    parts = sorted(topic.partitions, key=lambda part: part.partition_index)
    return TopicDescription(
        name=topic.name or "",
        topic_id=base64.b64encode(topic.topic_id.bytes).decode("ascii").rstrip("="),
        partitions=len(parts),
        replication_factor=min((len(part.replica_nodes) for part in parts), default=0),
        config=config,
        placements=tuple(
            Placement(
                partition=part.partition_index,
                leader=part.leader_id if part.leader_id >= 0 else None,
                replicas=part.replica_nodes,
                in_sync=part.isr_nodes,
                offline=tuple(node for node in part.replica_nodes if node not in brokers),
            )
            for part in parts
        ),
    )
