"""The messages that start every connection and find brokers: ApiVersions, Metadata and FindCoordinator.

Layouts: the message JSON of Apache Kafka 4.3. An unset field has the default Kafka gives it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from eosctl.wire.api import Api
from eosctl.wire.primitives import BOOL, ID, INT8, INT16, INT32, INT64, NO_ID, NULLABLE_STRING, STRING
from eosctl.wire.schema import Array, since, struct_of, tagged, until

OPERATIONS_NOT_ASKED = -(1 << 31)


class ApiVersionsRequest(NamedTuple):
    client_software_name: str = ""
    client_software_version: str = ""


class ApiRange(NamedTuple):
    api_key: int
    min_version: int
    max_version: int


class SupportedFeature(NamedTuple):
    name: str
    min_version: int
    max_version: int


class FinalizedFeature(NamedTuple):
    name: str
    max_version_level: int
    min_version_level: int


class ApiVersionsResponse(NamedTuple):
    error_code: int = 0
    api_keys: tuple[ApiRange, ...] = ()
    throttle_time_ms: int = 0
    supported_features: tuple[SupportedFeature, ...] = ()
    finalized_features_epoch: int = -1
    finalized_features: tuple[FinalizedFeature, ...] = ()
    zk_migration_ready: bool = False


API_VERSIONS = Api(
    key=18,
    name="ApiVersions",
    request=struct_of(
        ApiVersionsRequest,
        client_software_name=since(3, STRING, ignorable=True),
        client_software_version=since(3, STRING, ignorable=True),
    ),
    response=struct_of(
        ApiVersionsResponse,
        error_code=INT16,
        api_keys=Array(struct_of(ApiRange, api_key=INT16, min_version=INT16, max_version=INT16)),
        throttle_time_ms=since(1, INT32, ignorable=True),
        supported_features=tagged(
            0, Array(struct_of(SupportedFeature, name=STRING, min_version=INT16, max_version=INT16)), since=3
        ),
        finalized_features_epoch=tagged(1, INT64, since=3),
        finalized_features=tagged(
            2,
            Array(struct_of(FinalizedFeature, name=STRING, max_version_level=INT16, min_version_level=INT16)),
            since=3,
        ),
        zk_migration_ready=tagged(3, BOOL, since=3),
    ),
    oldest=0,
    newest=4,
    flexible_from=3,
    releases={0: "0.10", 1: "0.11", 2: "2.0", 3: "2.4", 4: "3.9"},
)


class TopicQuery(NamedTuple):
    topic_id: UUID = NO_ID
    name: str | None = None


class MetadataRequest(NamedTuple):
    """A request for metadata; `topics` None requests all of them, an empty tuple none."""

    topics: tuple[TopicQuery, ...] | None = ()
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


class Broker(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None


class PartitionMetadata(NamedTuple):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = -1
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


class TopicMetadata(NamedTuple):
    error_code: int = 0
    name: str | None = ""
    topic_id: UUID = NO_ID
    is_internal: bool = False
    partitions: tuple[PartitionMetadata, ...] = ()
    topic_authorized_operations: int = OPERATIONS_NOT_ASKED


class MetadataResponse(NamedTuple):
    throttle_time_ms: int = 0
    brokers: tuple[Broker, ...] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: tuple[TopicMetadata, ...] = ()
    cluster_authorized_operations: int = OPERATIONS_NOT_ASKED
    error_code: int = 0


METADATA = Api(
    key=3,
    name="Metadata",
    request=struct_of(
        MetadataRequest,
        topics=Array(struct_of(TopicQuery, topic_id=since(10, ID), name=NULLABLE_STRING), nullable=True),
        allow_auto_topic_creation=BOOL,
        include_cluster_authorized_operations=since(8, BOOL, until=10),
        include_topic_authorized_operations=since(8, BOOL),
    ),
    response=struct_of(
        MetadataResponse,
        throttle_time_ms=INT32,
        brokers=Array(struct_of(Broker, node_id=INT32, host=STRING, port=INT32, rack=NULLABLE_STRING)),
        cluster_id=NULLABLE_STRING,
        controller_id=INT32,
        topics=Array(
            struct_of(
                TopicMetadata,
                error_code=INT16,
                name=NULLABLE_STRING,
                topic_id=since(10, ID, ignorable=True),
                is_internal=BOOL,
                partitions=Array(
                    struct_of(
                        PartitionMetadata,
                        error_code=INT16,
                        partition_index=INT32,
                        leader_id=INT32,
                        leader_epoch=since(7, INT32, ignorable=True),
                        replica_nodes=Array(INT32),
                        isr_nodes=Array(INT32),
                        offline_replicas=since(5, Array(INT32), ignorable=True),
                    )
                ),
                topic_authorized_operations=since(8, INT32),
            )
        ),
        cluster_authorized_operations=since(8, INT32, until=10),
        error_code=since(13, INT16, ignorable=True),
    ),
    oldest=4,
    newest=13,
    flexible_from=9,
    releases={4: "0.11", 5: "1.0", 6: "2.0", 7: "2.1", 8: "2.3", 9: "2.4", 10: "2.8", 11: "3.0", 12: "3.1", 13: "4.0"},
)


class KeyType(IntEnum):
    """The kind of key for which FindCoordinator returns a coordinator."""

    GROUP = 0
    TRANSACTION = 1


class FindCoordinatorRequest(NamedTuple):
    """A request with one `key` up to v3, `coordinator_keys` from v4 on."""

    key: str = ""
    key_type: int = KeyType.GROUP
    coordinator_keys: tuple[str, ...] = ()


class FoundCoordinator(NamedTuple):
    key: str
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: int = 0
    error_message: str | None = None


class FindCoordinatorResponse(NamedTuple):
    """A response with one result up to v3, `coordinators` from v4 on."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: tuple[FoundCoordinator, ...] = ()


FIND_COORDINATOR_BATCHED_FROM = 4
FIND_COORDINATOR = Api(
    key=10,
    name="FindCoordinator",
    request=struct_of(
        FindCoordinatorRequest,
        key=until(3, STRING),
        key_type=INT8,
        coordinator_keys=since(4, Array(STRING)),
    ),
    response=struct_of(
        FindCoordinatorResponse,
        throttle_time_ms=INT32,
        error_code=until(3, INT16),
        error_message=until(3, NULLABLE_STRING),
        node_id=until(3, INT32),
        host=until(3, STRING),
        port=until(3, INT32),
        coordinators=since(
            4,
            Array(
                struct_of(
                    FoundCoordinator,
                    key=STRING,
                    node_id=INT32,
                    host=STRING,
                    port=INT32,
                    error_code=INT16,
                    error_message=NULLABLE_STRING,
                )
            ),
        ),
    ),
    oldest=1,
    newest=6,
    flexible_from=3,
    releases={1: "0.11", 2: "2.0", 3: "2.4", 4: "3.0", 5: "3.8", 6: "3.9"},
)
