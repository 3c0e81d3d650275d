"""Transactions on the wire: InitProducerId, ListTransactions, DescribeTransactions, DescribeProducers, WriteTxnMarkers.

Layouts: the message JSON of Apache Kafka 4.3. An unset field has the default Kafka gives it.
"""

from __future__ import annotations

from typing import NamedTuple

from eosctl.wire.api import Api
from eosctl.wire.primitives import BOOL, INT8, INT16, INT32, INT64, NULLABLE_STRING, STRING
from eosctl.wire.schema import Array, since, struct_of


class InitProducerIdRequest(NamedTuple):
    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: int = -1
    producer_epoch: int = -1


class InitProducerIdResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0


INIT_PRODUCER_ID = Api(
    key=22,
    name="InitProducerId",
    request=struct_of(
        InitProducerIdRequest,
        transactional_id=NULLABLE_STRING,
        transaction_timeout_ms=INT32,
        producer_id=since(3, INT64),
        producer_epoch=since(3, INT16),
    ),
    response=struct_of(
        InitProducerIdResponse, throttle_time_ms=INT32, error_code=INT16, producer_id=INT64, producer_epoch=INT16
    ),
    oldest=1,
    newest=5,  # v6 (KIP-939) is unstable up to Kafka 4.3
    flexible_from=2,
    releases={0: "0.11", 1: "2.0", 2: "2.4", 3: "2.5", 4: "2.7", 5: "3.8"},
)


class ListTransactionsRequest(NamedTuple):
    """Empty filters keep everything; `duration_filter` is in ms, -1 is off."""

    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[int, ...] = ()
    duration_filter: int = -1
    transactional_id_pattern: str | None = None


class ListedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    transaction_state: str


class ListTransactionsResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: tuple[ListedTransaction, ...] = ()


LIST_TRANSACTIONS = Api(
    key=66,
    name="ListTransactions",
    request=struct_of(
        ListTransactionsRequest,
        state_filters=Array(STRING),
        producer_id_filters=Array(INT64),
        duration_filter=since(1, INT64),
        transactional_id_pattern=since(2, NULLABLE_STRING),
    ),
    response=struct_of(
        ListTransactionsResponse,
        throttle_time_ms=INT32,
        error_code=INT16,
        unknown_state_filters=Array(STRING),
        transaction_states=Array(
            struct_of(ListedTransaction, transactional_id=STRING, producer_id=INT64, transaction_state=STRING)
        ),
    ),
    oldest=0,
    newest=2,
    flexible_from=0,
    releases={0: "3.0", 1: "3.8", 2: "4.1"},
)


class DescribeTransactionsRequest(NamedTuple):
    transactional_ids: tuple[str, ...]


class TransactionPartitions(NamedTuple):
    topic: str
    partitions: tuple[int, ...]


class DescribedTransaction(NamedTuple):
    error_code: int
    transactional_id: str
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: tuple[TransactionPartitions, ...] = ()


class DescribeTransactionsResponse(NamedTuple):
    throttle_time_ms: int = 0
    transaction_states: tuple[DescribedTransaction, ...] = ()


DESCRIBE_TRANSACTIONS = Api(
    key=65,
    name="DescribeTransactions",
    request=struct_of(DescribeTransactionsRequest, transactional_ids=Array(STRING)),
    response=struct_of(
        DescribeTransactionsResponse,
        throttle_time_ms=INT32,
        transaction_states=Array(
            struct_of(
                DescribedTransaction,
                error_code=INT16,
                transactional_id=STRING,
                transaction_state=STRING,
                transaction_timeout_ms=INT32,
                transaction_start_time_ms=INT64,
                producer_id=INT64,
                producer_epoch=INT16,
                topics=Array(struct_of(TransactionPartitions, topic=STRING, partitions=Array(INT32))),
            )
        ),
    ),
    oldest=0,
    newest=0,
    flexible_from=0,
    releases={0: "3.0"},
)


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
    """`transaction_result` False is ABORT."""

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
