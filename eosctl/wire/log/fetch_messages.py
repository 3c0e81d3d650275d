"""Fetch and ListOffsets: the batches of partitions as stored in their logs, and the offsets of partitions.

ListOffsets returns the first and last offsets of a partition, and the offset for a timestamp.

Layouts: the message JSON of Apache Kafka 4.3. An unset field has the default Kafka gives it. No release but Kafka 3.0
to 3.9 offers Fetch versions below 4 as well; those have other batches, and no isolation level.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from eosctl.wire.api import Api
from eosctl.wire.primitives import ID, INT8, INT16, INT32, INT64, NO_ID, NULLABLE_STRING, RECORDS, STRING
from eosctl.wire.schema import Array, since, struct_of, tagged

LATEST, EARLIEST = -1, -2
"""Special times: the high watermark, or the last stable offset with `Isolation.COMMITTED`; and the log's start."""


class Isolation(IntEnum):
    """The isolation level of a reader."""

    UNCOMMITTED = 0
    COMMITTED = 1


class OffsetLookup(NamedTuple):
    partition_index: int
    current_leader_epoch: int = -1
    timestamp: int = LATEST


class TopicOffsetLookups(NamedTuple):
    name: str
    partitions: tuple[OffsetLookup, ...]


class ListOffsetsRequest(NamedTuple):
    replica_id: int = -1
    isolation_level: int = Isolation.UNCOMMITTED
    topics: tuple[TopicOffsetLookups, ...] = ()
    timeout_ms: int = 0


class PartitionOffset(NamedTuple):
    """An offset and its time; both are -1 for a time that is later than all records."""

    partition_index: int
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class TopicOffsets(NamedTuple):
    name: str
    partitions: tuple[PartitionOffset, ...]


class ListOffsetsResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: tuple[TopicOffsets, ...] = ()


LIST_OFFSETS = Api(
    key=2,
    name="ListOffsets",
    request=struct_of(
        ListOffsetsRequest,
        replica_id=INT32,
        isolation_level=INT8,
        topics=Array(
            struct_of(
                TopicOffsetLookups,
                name=STRING,
                partitions=Array(
                    struct_of(
                        OffsetLookup,
                        partition_index=INT32,
                        current_leader_epoch=since(4, INT32, ignorable=True),
                        timestamp=INT64,
                    )
                ),
            )
        ),
        timeout_ms=since(10, INT32, ignorable=True),
    ),
    response=struct_of(
        ListOffsetsResponse,
        throttle_time_ms=INT32,
        topics=Array(
            struct_of(
                TopicOffsets,
                name=STRING,
                partitions=Array(
                    struct_of(
                        PartitionOffset,
                        partition_index=INT32,
                        error_code=INT16,
                        timestamp=INT64,
                        offset=INT64,
                        leader_epoch=since(4, INT32, ignorable=True),
                    )
                ),
            )
        ),
    ),
    oldest=2,
    newest=11,
    flexible_from=6,
    releases={
        1: "0.10.1",
        2: "0.11",
        3: "2.0",
        4: "2.1",
        5: "2.2",
        6: "2.8",
        7: "3.0",
        8: "3.6",
        9: "3.9",
        10: "4.0",
        11: "4.2",
    },
)


TOPIC_IDS_FROM = 13
"""The first version that names topics by their ids only."""
NO_SESSION = -1
"""The session epoch of a request that belongs to no fetch session, and begins none (KIP-227)."""
_NO_WATERMARK = (1 << 63) - 1


class ReplicaState(NamedTuple):
    replica_id: int = -1
    replica_epoch: int = -1


class PartitionFetch(NamedTuple):
    partition: int
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: UUID = NO_ID
    high_watermark: int = _NO_WATERMARK


class TopicFetch(NamedTuple):
    """A topic to fetch, by name up to v12, by id from v13 on."""

    topic: str = ""
    topic_id: UUID = NO_ID
    partitions: tuple[PartitionFetch, ...] = ()


class ForgottenTopic(NamedTuple):
    topic: str = ""
    topic_id: UUID = NO_ID
    partitions: tuple[int, ...] = ()


class FetchRequest(NamedTuple):
    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: ReplicaState = ReplicaState()
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 0x7FFFFFFF
    isolation_level: int = Isolation.UNCOMMITTED
    session_id: int = 0
    session_epoch: int = NO_SESSION
    topics: tuple[TopicFetch, ...] = ()
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()
    rack_id: str = ""


class EpochEndOffset(NamedTuple):
    epoch: int = -1
    end_offset: int = -1


class LeaderIdAndEpoch(NamedTuple):
    leader_id: int = -1
    leader_epoch: int = -1


class SnapshotId(NamedTuple):
    end_offset: int = -1
    epoch: int = -1


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class PartitionData(NamedTuple):
    """The data of a partition; `records` is a view into the frame, valid as long as the frame is."""

    partition_index: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = EpochEndOffset()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    snapshot_id: SnapshotId = SnapshotId()
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    preferred_read_replica: int = -1
    records: memoryview | None = None


class FetchedTopic(NamedTuple):
    """A fetched topic, by name up to v12, by id from v13 on."""

    topic: str = ""
    topic_id: UUID = NO_ID
    partitions: tuple[PartitionData, ...] = ()


class NodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None


class FetchResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: tuple[FetchedTopic, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()


_PARTITION_FETCH = struct_of(
    PartitionFetch,
    partition=INT32,
    current_leader_epoch=since(9, INT32, ignorable=True),
    fetch_offset=INT64,
    last_fetched_epoch=since(12, INT32),
    log_start_offset=since(5, INT64, ignorable=True),
    partition_max_bytes=INT32,
    replica_directory_id=tagged(0, ID, since=17),
    high_watermark=tagged(1, INT64, since=18),
)
_PARTITION_DATA = struct_of(
    PartitionData,
    partition_index=INT32,
    error_code=INT16,
    high_watermark=INT64,
    last_stable_offset=INT64,
    log_start_offset=since(5, INT64, ignorable=True),
    diverging_epoch=tagged(0, struct_of(EpochEndOffset, epoch=INT32, end_offset=INT64), since=12),
    current_leader=tagged(1, struct_of(LeaderIdAndEpoch, leader_id=INT32, leader_epoch=INT32), since=12),
    snapshot_id=tagged(2, struct_of(SnapshotId, end_offset=INT64, epoch=INT32), since=12),
    aborted_transactions=Array(struct_of(AbortedTransaction, producer_id=INT64, first_offset=INT64), nullable=True),
    preferred_read_replica=since(11, INT32),
    records=RECORDS,
)
_NODE_ENDPOINT = struct_of(NodeEndpoint, node_id=INT32, host=STRING, port=INT32, rack=NULLABLE_STRING)

FETCH = Api(
    key=1,
    name="Fetch",
    request=struct_of(
        FetchRequest,
        cluster_id=tagged(0, NULLABLE_STRING, since=12),
        replica_id=since(0, INT32, until=14, ignorable=True),
        replica_state=tagged(1, struct_of(ReplicaState, replica_id=INT32, replica_epoch=INT64), since=15),
        max_wait_ms=INT32,
        min_bytes=INT32,
        max_bytes=INT32,
        isolation_level=INT8,
        session_id=since(7, INT32, ignorable=True),
        session_epoch=since(7, INT32, ignorable=True),
        topics=Array(
            struct_of(
                TopicFetch,
                topic=since(0, STRING, until=TOPIC_IDS_FROM - 1, ignorable=True),
                topic_id=since(TOPIC_IDS_FROM, ID, ignorable=True),
                partitions=Array(_PARTITION_FETCH),
            )
        ),
        forgotten_topics_data=since(
            7,
            Array(
                struct_of(
                    ForgottenTopic,
                    topic=since(7, STRING, until=TOPIC_IDS_FROM - 1, ignorable=True),
                    topic_id=since(TOPIC_IDS_FROM, ID, ignorable=True),
                    partitions=Array(INT32),
                )
            ),
        ),
        rack_id=since(11, STRING, ignorable=True),
    ),
    response=struct_of(
        FetchResponse,
        throttle_time_ms=INT32,
        error_code=since(7, INT16, ignorable=True),
        session_id=since(7, INT32),
        responses=Array(
            struct_of(
                FetchedTopic,
                topic=since(0, STRING, until=TOPIC_IDS_FROM - 1, ignorable=True),
                topic_id=since(TOPIC_IDS_FROM, ID, ignorable=True),
                partitions=Array(_PARTITION_DATA),
            )
        ),
        node_endpoints=tagged(0, Array(_NODE_ENDPOINT), since=16),
    ),
    oldest=4,
    newest=18,
    flexible_from=12,
    releases={
        4: "0.11",
        5: "1.0",
        6: "1.0",
        7: "1.1",
        8: "2.0",
        9: "2.1",
        10: "2.1",
        11: "2.3",
        12: "2.7",
        13: "3.1",
        14: "3.5",
        15: "3.5",
        16: "3.7",
        17: "3.9",
        18: "4.1",
    },
)
