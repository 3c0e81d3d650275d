"""Transactional ids on the wire: InitProducerId, DescribeTransactions.

Layouts: the message JSON of Apache Kafka 4.3. An unset field has the default Kafka gives it.
"""

from __future__ import annotations

from typing import NamedTuple

from eosctl.wire.api import Api
from eosctl.wire.primitives import INT16, INT32, INT64, NULLABLE_STRING, STRING
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
