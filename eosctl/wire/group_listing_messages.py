"""All groups of a broker: ListGroups.

Layouts: the message JSON of Apache Kafka 4.3. An unset field has the default Kafka gives it.
"""

from __future__ import annotations

from typing import NamedTuple

from eosctl.wire.api import Api
from eosctl.wire.primitives import INT16, INT32, STRING
from eosctl.wire.schema import Array, since, struct_of


class ListGroupsRequest(NamedTuple):
    """A request for the groups; empty filters keep all of them."""

    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()


class ListedGroup(NamedTuple):
    group_id: str
    protocol_type: str
    group_state: str = ""
    group_type: str = ""


class ListGroupsResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    groups: tuple[ListedGroup, ...] = ()


LIST_GROUPS = Api(
    key=16,
    name="ListGroups",
    request=struct_of(ListGroupsRequest, states_filter=since(4, Array(STRING)), types_filter=since(5, Array(STRING))),
    response=struct_of(
        ListGroupsResponse,
        throttle_time_ms=since(1, INT32, ignorable=True),
        error_code=INT16,
        groups=Array(
            struct_of(
                ListedGroup,
                group_id=STRING,
                protocol_type=STRING,
                group_state=since(4, STRING, ignorable=True),
                group_type=since(5, STRING, ignorable=True),
            )
        ),
    ),
    oldest=0,
    newest=5,
    flexible_from=3,
    releases={0: "0.9", 1: "0.11", 2: "2.0", 3: "2.4", 4: "2.6", 5: "3.8"},
)
