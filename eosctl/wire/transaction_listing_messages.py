"""All transactional ids of a broker: ListTransactions.

Layouts: the message JSON of Apache Kafka 4.3. An unset field has the default Kafka gives it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from eosctl.core.transactions import TransactionState
from eosctl.wire.api import Api
from eosctl.wire.primitives import INT16, INT32, INT64, NULLABLE_STRING, STRING, Codec, Data
from eosctl.wire.schema import Array, Struct, since, struct_of


class ListTransactionsRequest(NamedTuple):
    """A request for transactions; empty filters keep all of them, `duration_filter` is in ms, -1 is off."""

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


_STATES = {state.value: state.value for state in TransactionState}  # one text for all entries
_read_int64 = struct.Struct(">q").unpack_from


class _Entry(Struct[ListedTransaction]):
    """The layout of an entry, which is read in place: a broker lists hundreds of thousands.

    One of any other shape than the usual one, two short texts and no tags, is read field by field.
    """

    def codec(self, version: int, *, flexible: bool) -> Codec:
        """Return the codec of one version; all of them are flexible."""
        by_field = super().codec(version, flexible=flexible)

        def read(data: Data, offset: int) -> tuple[ListedTransaction, int]:
            size = data[offset]  # a compact length, which counts one more
            if 0 < size < 0x80 and isinstance(data, bytes):
                end = offset + size
                behind = end + 8
                size = data[behind]
                last = behind + size
                if 0 < size < 0x80 and data[last] == 0:
                    name, state = data[offset + 1 : end].decode(), data[behind + 1 : last].decode()
                    values = name, _read_int64(data, end)[0], _STATES.get(state, state)
                    return tuple.__new__(ListedTransaction, values), last + 1
            entry: tuple[ListedTransaction, int] = by_field.read(data, offset)
            return entry

        return Codec(by_field.write, read)


_ENTRY = struct_of(ListedTransaction, transactional_id=STRING, producer_id=INT64, transaction_state=STRING)
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
        transaction_states=Array(_Entry(ListedTransaction, _ENTRY.fields)),
    ),
    oldest=0,
    newest=2,
    flexible_from=0,
    releases={0: "3.0", 1: "3.8", 2: "4.1"},
)
