"""Producers on partitions: DescribeProducers, WriteTxnMarkers.

Layouts: the message JSON of Apache Kafka 4.3. An unset field has the default Kafka gives it.
"""

from __future__ import annotations

from typing import NamedTuple

from eosctl.wire.api import Api
from eosctl.wire.primitives import BOOL, INT8, INT16, INT32, INT64, NULLABLE_STRING, STRING
from eosctl.wire.schema import Array, since, struct_of


class TopicPartitions(NamedTuple):
    name: str
    partition_indexes: tuple[int, ...]


_TOPIC_PARTITIONS = struct_of(TopicPartitions, name=STRING, partition_indexes=Array(INT32))


class DescribeProducersRequest(NamedTuple):
    topics: tuple[TopicPartitions, ...]


class ProducerState(NamedTuple):
    producer_id: int
    producer_epoch: int
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


class PartitionProducers(NamedTuple):
    partition_index: int
    error_code: int = 0
    error_message: str | None = None
    active_producers: tuple[ProducerState, ...] = ()


class TopicProducers(NamedTuple):
    name: str
    partitions: tuple[PartitionProducers, ...]


class DescribeProducersResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: tuple[TopicProducers, ...] = ()


DESCRIBE_PRODUCERS = Api(
    key=61,
    name="DescribeProducers",
    request=struct_of(DescribeProducersRequest, topics=Array(_TOPIC_PARTITIONS)),
    response=struct_of(
        DescribeProducersResponse,
        throttle_time_ms=INT32,
        topics=Array(
            struct_of(
                TopicProducers,
                name=STRING,
                partitions=Array(
                    struct_of(
                        PartitionProducers,
                        partition_index=INT32,
                        error_code=INT16,
                        error_message=NULLABLE_STRING,
                        active_producers=Array(
                            struct_of(
                                ProducerState,
                                producer_id=INT64,
                                producer_epoch=INT32,
                                last_sequence=INT32,
                                last_timestamp=INT64,
                                coordinator_epoch=INT32,
                                current_txn_start_offset=INT64,
                            )
                        ),
                    )
                ),
            )
        ),
    ),
    oldest=0,
    newest=0,
    flexible_from=0,
    releases={0: "2.8"},
)


class TxnMarker(NamedTuple):
    """A marker to write; `transaction_result` False is ABORT."""

    producer_id: int
    producer_epoch: int
    transaction_result: bool
    topics: tuple[TopicPartitions, ...]
    coordinator_epoch: int
    transaction_version: int = 0


class WriteTxnMarkersRequest(NamedTuple):
    markers: tuple[TxnMarker, ...]


class MarkedPartition(NamedTuple):
    partition_index: int
    error_code: int = 0


class MarkedTopic(NamedTuple):
    name: str
    partitions: tuple[MarkedPartition, ...]


class WrittenMarker(NamedTuple):
    producer_id: int
    topics: tuple[MarkedTopic, ...]


class WriteTxnMarkersResponse(NamedTuple):
    markers: tuple[WrittenMarker, ...] = ()


WRITE_TXN_MARKERS = Api(
    key=27,
    name="WriteTxnMarkers",
    request=struct_of(
        WriteTxnMarkersRequest,
        markers=Array(
            struct_of(
                TxnMarker,
                producer_id=INT64,
                producer_epoch=INT16,
                transaction_result=BOOL,
                topics=Array(_TOPIC_PARTITIONS),
                coordinator_epoch=INT32,
                transaction_version=since(2, INT8),
            )
        ),
    ),
    response=struct_of(
        WriteTxnMarkersResponse,
        markers=Array(
            struct_of(
                WrittenMarker,
                producer_id=INT64,
                topics=Array(
                    struct_of(
                        MarkedTopic,
                        name=STRING,
                        partitions=Array(struct_of(MarkedPartition, partition_index=INT32, error_code=INT16)),
                    )
                ),
            )
        ),
    ),
    oldest=1,
    newest=2,
    flexible_from=1,
    releases={0: "0.11", 1: "2.8", 2: "4.2"},
)
