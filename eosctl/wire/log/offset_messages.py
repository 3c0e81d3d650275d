"""ListOffsets: the first and last offsets of a partition, and the offset for a timestamp.

Layouts: the message JSON of Apache Kafka 4.3. An unset field has the default Kafka gives it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from eosctl.wire.api import Api
from eosctl.wire.primitives import INT8, INT16, INT32, INT64, STRING
from eosctl.wire.schema import Array, since, struct_of

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
