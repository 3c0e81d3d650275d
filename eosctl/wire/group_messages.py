"""DescribeGroups, with metadata and assignment as bytes: Connect defines their meaning (`group.protocol`).

Layout: the message JSON of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import NamedTuple

from eosctl.wire.api import Api
from eosctl.wire.cluster_messages import OPERATIONS_NOT_ASKED
from eosctl.wire.primitives import BOOL, BYTES, INT16, INT32, NULLABLE_STRING, STRING
from eosctl.wire.schema import Array, since, struct_of


class DescribeGroupsRequest(NamedTuple):
    groups: tuple[str, ...]
    include_authorized_operations: bool = False


class GroupMember(NamedTuple):
    member_id: str
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(NamedTuple):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[GroupMember, ...] = ()
    authorized_operations: int = OPERATIONS_NOT_ASKED


class DescribeGroupsResponse(NamedTuple):
    throttle_time_ms: int = 0
    groups: tuple[DescribedGroup, ...] = ()


DESCRIBE_GROUPS = Api(
    key=15,
    name="DescribeGroups",
    request=struct_of(DescribeGroupsRequest, groups=Array(STRING), include_authorized_operations=since(3, BOOL)),
    response=struct_of(
        DescribeGroupsResponse,
        throttle_time_ms=since(1, INT32, ignorable=True),
        groups=Array(
            struct_of(
                DescribedGroup,
                error_code=INT16,
                error_message=since(6, NULLABLE_STRING, ignorable=True),
                group_id=STRING,
                group_state=STRING,
                protocol_type=STRING,
                protocol_data=STRING,
                members=Array(
                    struct_of(
                        GroupMember,
                        member_id=STRING,
                        group_instance_id=since(4, NULLABLE_STRING, ignorable=True),
                        client_id=STRING,
                        client_host=STRING,
                        member_metadata=BYTES,
                        member_assignment=BYTES,
                    )
                ),
                authorized_operations=since(3, INT32),
            )
        ),
    ),
    oldest=0,
    newest=6,
    flexible_from=5,
    releases={0: "0.9", 1: "0.11", 2: "2.0", 3: "2.3", 4: "2.4", 5: "2.4", 6: "4.0"},
)
