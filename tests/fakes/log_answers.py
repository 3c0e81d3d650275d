"""What a broker of the fake cluster answers about its logs: their bounds, and their batches as bytes."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from eosctl.core.records import Batch
from eosctl.wire import error_codes as codes
from eosctl.wire.log import fetch_messages as fetching
from eosctl.wire.log import fetch_messages as offsets
from eosctl.wire.log.batches import crc32c
from tests.fakes.partitions import FakePartition, FakeTopic

if TYPE_CHECKING:
    from tests.fakes.broker_answers import Asked

_CRC_FROM = 21
_LARGE_BYTES = 100_000


def topic_uuid(topic: FakeTopic) -> uuid.UUID:
    """The topic's id, as brokers have them."""
    return uuid.uuid5(uuid.NAMESPACE_OID, topic.topic_id)


def batch_bytes(batch: Batch) -> bytes:
    """A batch as it lies in a log; its records are zeros, but for the one of a marker. A large one has no checksum."""
    attributes = 16 * batch.is_transactional + 32 * batch.is_control
    records, count = bytes(max(batch.size_bytes - 61, 0)), batch.records
    if batch.commit is not None:
        key, value = struct.pack(">hh", 0, batch.commit), struct.pack(">hi", 0, batch.coordinator_epoch or 0)
        record = b"\0\0\0\x08" + key + b"\x0c" + value + b"\0"
        records, count = bytes([2 * len(record)]) + record, 1
    checked = struct.pack(
        ">hiqqqhii",
        *(attributes, batch.last_offset - batch.base_offset, batch.first_timestamp_ms, batch.max_timestamp_ms),
        *(batch.producer_id, batch.producer_epoch, batch.base_sequence, count),
    )
    checked += records
    length = _CRC_FROM - 12 + len(checked)
    checksum = crc32c(checked) if len(checked) < _LARGE_BYTES else 0
    return struct.pack(">qiibI", batch.base_offset, length, 0, 2, checksum) + checked


def list_offsets(asked: Asked, request: offsets.ListOffsetsRequest) -> offsets.ListOffsetsResponse:
    committed = request.isolation_level == offsets.Isolation.COMMITTED
    return offsets.ListOffsetsResponse(
        topics=tuple(
            offsets.TopicOffsets(
                topic.name,
                tuple(_offset(asked, topic.name, each, committed=committed) for each in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _offset(asked: Asked, topic: str, query: offsets.OffsetLookup, *, committed: bool) -> offsets.PartitionOffset:
    error = refusal(asked, topic, query.partition_index)
    if error:
        return offsets.PartitionOffset(query.partition_index, error)
    state = asked.cluster.state
    state.look_at(topic)
    log = state.log(topic, query.partition_index)
    if query.timestamp == offsets.EARLIEST:
        return offsets.PartitionOffset(query.partition_index, offset=log.begin)
    if query.timestamp == offsets.LATEST:
        return offsets.PartitionOffset(query.partition_index, offset=log.lso if committed else log.end)
    young = (each for each in log.batches if each.max_timestamp_ms >= query.timestamp)
    found = next(young, None)
    if found is None:
        return offsets.PartitionOffset(query.partition_index)
    return offsets.PartitionOffset(query.partition_index, 0, found.max_timestamp_ms, found.base_offset)


def refusal(asked: Asked, topic: str, index: int) -> int:
    """The error of a partition at this broker, before its log is looked at."""
    state = asked.cluster.state
    if asked.error:
        return asked.error
    if topic in asked.cluster.deny_read:
        return codes.TOPIC_AUTHORIZATION_FAILED
    if topic not in state.topics or index >= len(state.topics[topic].partitions):
        return codes.UNKNOWN_TOPIC_OR_PARTITION
    return codes.NONE if state.leader_of(topic, index) == asked.node else codes.NOT_LEADER_OR_FOLLOWER


def fetch(asked: Asked, request: fetching.FetchRequest) -> fetching.FetchResponse:
    """Batches up to the request's limits, but one at least; a batch that passes them is cut off, as brokers do."""
    if asked.cluster.throttle_ms:
        throttle_ms, asked.cluster.throttle_ms = asked.cluster.throttle_ms, 0
        return fetching.FetchResponse(throttle_ms, responses=_each(asked, request, lambda *_: b""))
    left = request.max_bytes
    given = False

    def records(log: FakePartition, query: fetching.PartitionFetch) -> bytes:
        nonlocal left, given
        limit = min(left, query.partition_max_bytes)
        found = b""
        for batch in log.batches:
            if batch.last_offset >= query.fetch_offset and len(found) < limit:
                found += batch_bytes(batch)
        first = len(batch_bytes(next(b for b in log.batches if b.last_offset >= query.fetch_offset))) if found else 0
        found = found[: limit if given else max(limit, first)]
        given = given or bool(found)
        left = max(left - len(found), 0)
        return found

    return fetching.FetchResponse(responses=_each(asked, request, records))


def _each(
    asked: Asked, request: fetching.FetchRequest, records: Callable[[FakePartition, fetching.PartitionFetch], bytes]
) -> tuple[fetching.FetchedTopic, ...]:
    names = {topic_uuid(topic): name for name, topic in asked.cluster.state.topics.items()}
    by_id = asked.version >= fetching.TOPIC_IDS_FROM
    return tuple(
        fetching.FetchedTopic(
            "" if by_id else topic.topic,
            topic.topic_id,
            tuple(
                _part(asked, names.get(topic.topic_id) if by_id else topic.topic, each, records)
                for each in topic.partitions
            ),
        )
        for topic in request.topics
    )


def _part(
    asked: Asked,
    topic: str | None,
    query: fetching.PartitionFetch,
    records: Callable[[FakePartition, fetching.PartitionFetch], Any],
) -> fetching.PartitionData:
    if topic is None:
        return fetching.PartitionData(query.partition, codes.UNKNOWN_TOPIC_ID)
    error = refusal(asked, topic, query.partition)
    if error:
        return fetching.PartitionData(query.partition, error)
    log = asked.cluster.state.log(topic, query.partition)
    if not log.begin <= query.fetch_offset <= log.end:
        return fetching.PartitionData(query.partition, codes.OFFSET_OUT_OF_RANGE)
    return fetching.PartitionData(
        query.partition, 0, log.end, log.lso, log.begin, records=memoryview(records(log, query))
    )
