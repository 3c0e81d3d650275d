"""Requests that eosctl sends to chosen brokers: to leaders of partitions, and to every broker for new topics.

DescribeProducers and WriteTxnMarkers go to the leader of a partition. Every broker is asked whether it knows new
topics: the next request may go to any of them. librdkafka does not let a caller choose the broker for a metadata
request, so these are our own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from eosctl.core.acls.lines import grant_hint
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import ProducerId
from eosctl.core.transactions import ActiveProducer, KafkaFault
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.errors import BrokerError, UnauthorizedError, UnreachableError, UnsupportedError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import fault
from eosctl.kafka.native.connection import Connection
from eosctl.kafka.topics.stream import Address, Leader
from eosctl.wire.cluster_messages import (
    METADATA,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
    TopicQuery,
)
from eosctl.wire.error_codes import (
    LEADER_NOT_AVAILABLE,
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_name,
)
from eosctl.wire.producer_messages import (
    DESCRIBE_PRODUCERS,
    WRITE_TXN_MARKERS,
    DescribeProducersRequest,
    PartitionProducers,
    TopicPartitions,
    TxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Partition = tuple[str, int]


def count_partitions(cluster: Cluster, topics: Iterable[str] | None, settings: ClientSettings) -> dict[str, int]:
    """Map topics to their numbers of partitions; topics that don't exist are absent.

    Raises UnauthorizedError, BrokerError.
    """
    counts = {}
    for topic in cluster.metadata(topics).topics:
        if topic.error_code == TOPIC_AUTHORIZATION_FAILED:
            hint = grant_hint("DESCRIBE", "Topic", [topic.name or ""], settings=settings, then="READ")
            raise UnauthorizedError(f"not allowed to describe topic {topic.name}", hint=hint)
        if topic.error_code in {NONE, LEADER_NOT_AVAILABLE}:
            counts[topic.name or ""] = len(topic.partitions)
        elif topic.error_code != UNKNOWN_TOPIC_OR_PARTITION:
            raise BrokerError(f"can't describe topic {topic.name}: {error_name(topic.error_code)}")
    return counts


def find_leaders(cluster: Cluster, partitions: Iterable[Partition]) -> dict[Partition, Address | KafkaFault]:
    """Request metadata once and return the address of each partition's leader, or the fault."""
    found = describe_leaders(cluster, partitions)
    return {place: each if isinstance(each, KafkaFault) else each.address for place, each in found.items()}


def describe_leaders(cluster: Cluster, partitions: Iterable[Partition]) -> dict[Partition, Leader | KafkaFault]:
    """Request metadata once and return each partition's leader, or the fault."""
    wanted = list(partitions)
    return leaders_in(cluster.metadata(dict.fromkeys(topic for topic, _ in wanted)), wanted)


def leaders_in(metadata: MetadataResponse, wanted: Iterable[Partition]) -> dict[Partition, Leader | KafkaFault]:
    """Return each partition's leader in `metadata`, or the fault."""
    brokers = {broker.node_id: Address(broker.host, broker.port) for broker in metadata.brokers}
    topics = {topic.name: topic for topic in metadata.topics}
    parts = {(topic.name or "", item.partition_index): item for topic in metadata.topics for item in topic.partitions}
    return {place: _leader(place, topics.get(place[0]), parts.get(place), brokers) for place in wanted}


def _leader(
    place: Partition, topic: TopicMetadata | None, found: PartitionMetadata | None, brokers: Mapping[int, Address]
) -> Leader | KafkaFault:
    name, index = place
    if topic is None:
        return fault(UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist")
    if topic.error_code != NONE:
        return fault(topic.error_code, f"topic {name}")
    if found is None:
        return fault(
            UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} has {counted(len(topic.partitions), 'partition')}, not {index}"
        )
    address = brokers.get(found.leader_id)
    if address is None:
        return fault(LEADER_NOT_AVAILABLE, f"{name}-{index} has no leader")
    return Leader(address, found.leader_epoch, topic.topic_id)


def describe_producers_at(
    cluster: Cluster, leader: Address, partitions: Sequence[Partition], *, only_open: bool
) -> dict[Partition, Sequence[ActiveProducer] | KafkaFault]:
    """Send one DescribeProducers request to a broker; a partition it leaves out is UNKNOWN_TOPIC_OR_PARTITION."""
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in partitions:
        by_topic[topic].append(index)
    request = DescribeProducersRequest(
        tuple(TopicPartitions(topic, tuple(indexes)) for topic, indexes in by_topic.items())
    )
    answer = cluster.ask(leader, DESCRIBE_PRODUCERS, request)
    found = {(topic.name, item.partition_index): item for topic in answer.topics for item in topic.partitions}
    return {partition: _producers(partition, found.get(partition), only_open=only_open) for partition in partitions}


def _producers(
    partition: Partition, answer: PartitionProducers | None, *, only_open: bool
) -> Sequence[ActiveProducer] | KafkaFault:
    if answer is None:
        return fault(UNKNOWN_TOPIC_OR_PARTITION, "the broker's answer leaves this partition out")
    if answer.error_code != NONE:
        return fault(answer.error_code, answer.error_message)
    return tuple(
        ActiveProducer(
            topic=partition[0],
            partition=partition[1],
            producer_id=ProducerId(state.producer_id),
            producer_epoch=state.producer_epoch,
            last_sequence=state.last_sequence,
            last_timestamp_ms=state.last_timestamp,
            coordinator_epoch=state.coordinator_epoch,
            txn_start_offset=state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None,
        )
        for state in answer.active_producers
        if state.current_txn_start_offset >= 0 or not only_open
    )


def write_marker(
    cluster: Cluster, leader: Address, producer: ActiveProducer, *, commit: bool, undecided: list[Address]
) -> KafkaFault | None:
    """Send one WriteTxnMarkers; an unknown coordinator epoch is sent as 0 (`AbortTransactionHandler`, Kafka 4.3).

    A leader that may have written it, as no answer came or one that leaves this open, is added to `undecided`.
    """
    marker = TxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=commit,
        topics=(TopicPartitions(producer.topic, (producer.partition,)),),
        coordinator_epoch=max(producer.coordinator_epoch, 0),
    )

    def send(connection: Connection) -> WriteTxnMarkersResponse:
        undecided.append(leader)
        return connection.call(WRITE_TXN_MARKERS, WriteTxnMarkersRequest((marker,)))

    answer = cluster.use(leader, send)
    codes = [
        item.error_code
        for written in answer.markers
        for topic in written.topics
        for item in topic.partitions
        if (written.producer_id, topic.name, item.partition_index)
        == (producer.producer_id, producer.topic, producer.partition)
    ]
    if not codes:
        return fault(UNKNOWN_TOPIC_OR_PARTITION, "the broker's answer leaves this partition out")
    if codes[0] not in MAY_BE_WRITTEN:
        undecided.pop()
    return None if codes[0] == NONE else fault(codes[0])


MAY_BE_WRITTEN = frozenset(  # a leader that is replaced while its followers copy answers NOT_LEADER_OR_FOLLOWER
    {UNKNOWN_SERVER_ERROR, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND}
)
_PATIENCE_MS = 3000
_NO_TELLING = (UnreachableError, UnauthorizedError, UnsupportedError)  # GSSAPI is librdkafka's alone


class TopicSpread:
    """Connects at its first request, to each broker.

    One that is silent for seconds is ignored, as it misleads no client.
    """

    def __init__(self, settings: ClientSettings, *, deadline: Deadline) -> None:
        quick = replace(settings, request_timeout_ms=min(settings.request_timeout_ms, _PATIENCE_MS))
        self._cluster = Cluster(quick, deadline=deadline)

    def close(self) -> None:
        """Close the connections; a later request opens others."""
        self._cluster.close()

    def known_everywhere(self, partitions: Mapping[str, int]) -> bool:
        """Return whether each broker that responds knows that many partitions of each topic, and their leaders."""
        try:
            brokers = self._cluster.metadata().brokers
        except _NO_TELLING:
            return True
        return all(self._known_at(Address(broker.host, broker.port), partitions) for broker in brokers)

    def _known_at(self, broker: Address, partitions: Mapping[str, int]) -> bool:
        queries = tuple(TopicQuery(name=topic) for topic in partitions)
        request = MetadataRequest(queries, allow_auto_topic_creation=False)
        try:
            answer = self._cluster.ask(broker, METADATA, request)
        except _NO_TELLING:
            return True
        return all(
            topic.error_code == TOPIC_AUTHORIZATION_FAILED
            or sum(each.leader_id >= 0 for each in topic.partitions) >= partitions.get(topic.name or "", 0)
            for topic in answer.topics
        )
