"""Transactional ids on the wire: InitProducerId, also in a fast form, and DescribeTransactions.

Layouts: the message JSON of Apache Kafka 4.3. An unset field has the default Kafka gives it.

Fencing sends one InitProducerId per id, so frames are cut from a template and answers read in place. The bytes are
those of the declared layout (a test compares them); an answer of any other shape than the usual one is given to that
layout.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from eosctl.wire.api import Api, decode_response, request_header
from eosctl.wire.primitives import INT16, INT32, INT64, NULLABLE_STRING, STRING, write_varint
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


_ANY_PRODUCER = struct.pack(">qh", -1, -1)
_CLASSIC_ANSWER = struct.Struct(">iihqh")  # correlation id, throttle, error, producer id, epoch
_FLEXIBLE_ANSWER = struct.Struct(">iBihqhB")  # the same, with two empty tagged sections
_PREFIX = struct.Struct(">ihhi")


def fence_encoder(*, version: int, client_id: str, transaction_timeout_ms: int) -> Callable[[str, int], bytes]:
    """Return a function of (transactional id, correlation id) that encodes the frame of InitProducerId(-1, -1)."""
    flexible = INIT_PRODUCER_ID.flexible(version)
    header_tail = request_header(INIT_PRODUCER_ID, version=version, correlation_id=0, client_id=client_id)[8:]
    tail = (
        struct.pack(">i", transaction_timeout_ms)
        + (_ANY_PRODUCER if version >= 3 else b"")
        + (b"\0" if flexible else b"")
    )
    rest = 8 + len(header_tail) + len(tail)

    def encode(transactional_id: str, correlation_id: int) -> bytes:
        name = transactional_id.encode()
        if flexible:
            length = bytearray()
            write_varint(length, len(name) + 1)
        else:
            length = bytearray(struct.pack(">h", len(name)))
        prefix = _PREFIX.pack(rest + len(length) + len(name), INIT_PRODUCER_ID.key, version, correlation_id)
        return b"".join((prefix, header_tail, length, name, tail))

    return encode


def decode_fence_answer(frame: bytes, *, version: int, correlation_id: int) -> InitProducerIdResponse:
    """Decode the response in a frame; raises ProtocolError as `api.decode_response` does."""
    if INIT_PRODUCER_ID.flexible(version):
        if len(frame) == _FLEXIBLE_ANSWER.size:
            answered, head_tags, throttle_ms, error, producer_id, epoch, tags = _FLEXIBLE_ANSWER.unpack(frame)
            if answered == correlation_id and head_tags == 0 and tags == 0:
                return InitProducerIdResponse(throttle_ms, error, producer_id, epoch)
    elif len(frame) == _CLASSIC_ANSWER.size:
        answered, throttle_ms, error, producer_id, epoch = _CLASSIC_ANSWER.unpack(frame)
        if answered == correlation_id:
            return InitProducerIdResponse(throttle_ms, error, producer_id, epoch)
    return decode_response(INIT_PRODUCER_ID, frame, version=version, correlation_id=correlation_id)
