"""All transactional ids of a broker: ListTransactions.

Layouts: the message JSON of Apache Kafka 4.3. An unset field has the default Kafka gives it.
"""

from __future__ import annotations

from typing import NamedTuple

from eosctl.wire.api import Api
from eosctl.wire.primitives import INT16, INT32, INT64, NULLABLE_STRING, STRING
from eosctl.wire.schema import Array, since, struct_of


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
        transaction_states=Array(
            struct_of(ListedTransaction, transactional_id=STRING, producer_id=INT64, transaction_state=STRING)
        ),
    ),
    oldest=0,
    newest=2,
    flexible_from=0,
    releases={0: "3.0", 1: "3.8", 2: "4.1"},
)
