"""Hypothesis strategies made from the declared layouts: any message a version can carry."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from eosctl.wire import primitives
from eosctl.wire.api import Api
from eosctl.wire.cluster_messages import API_VERSIONS, FIND_COORDINATOR, METADATA
from eosctl.wire.group_listing_messages import LIST_GROUPS
from eosctl.wire.group_messages import DESCRIBE_GROUPS
from eosctl.wire.log.fetch_messages import FETCH
from eosctl.wire.log.offset_messages import LIST_OFFSETS
from eosctl.wire.producer_messages import DESCRIBE_PRODUCERS, WRITE_TXN_MARKERS
from eosctl.wire.sasl_messages import SASL_AUTHENTICATE, SASL_HANDSHAKE
from eosctl.wire.schema import Array, Struct, WireType
from eosctl.wire.transaction_listing_messages import LIST_TRANSACTIONS
from eosctl.wire.transaction_messages import DESCRIBE_TRANSACTIONS, INIT_PRODUCER_ID

APIS: tuple[Api[Any, Any], ...] = (
    API_VERSIONS,
    SASL_HANDSHAKE,
    SASL_AUTHENTICATE,
    METADATA,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
    DESCRIBE_TRANSACTIONS,
    DESCRIBE_PRODUCERS,
    WRITE_TXN_MARKERS,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    LIST_OFFSETS,
    FETCH,
)
VERSIONS = [(api, version) for api in APIS for version in range(api.oldest, api.newest + 1)]
_TEXT = st.text(st.characters(codec="utf-8"), max_size=8) | st.just("x" * 130)


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


_PRIMITIVES: list[tuple[WireType, st.SearchStrategy[Any]]] = [
    (primitives.INT8, _integers(8)),
    (primitives.INT16, _integers(16)),
    (primitives.INT32, _integers(32)),
    (primitives.INT64, _integers(64)),
    (primitives.BOOL, st.booleans()),
    (primitives.ID, st.uuids()),
    (primitives.STRING, _TEXT),
    (primitives.NULLABLE_STRING, st.none() | _TEXT),
    (primitives.BYTES, st.binary(max_size=8)),
    (primitives.RECORDS, st.none() | st.binary(max_size=8).map(lambda data: memoryview(data))),
]


def values(wire_type: WireType, version: int) -> st.SearchStrategy[Any]:
    """Any value of a type in a version."""
    if isinstance(wire_type, Struct):
        return messages(wire_type, version)
    if isinstance(wire_type, Array):
        items = st.lists(values(wire_type.element, version), max_size=3).map(tuple)
        return st.none() | items if wire_type.nullable else items
    return next(strategy for known, strategy in _PRIMITIVES if known is wire_type)


def messages(layout: Struct[Any], version: int) -> st.SearchStrategy[Any]:
    """Any message of a layout; fields that the version does not carry have their default."""
    carried = {name: values(field.type, version) for name, field in layout.fields.items() if field.carried(version)}
    return st.fixed_dictionaries(carried).map(lambda fields: layout.message(**fields))
