"""Which open transactions of a partition are hanging: open there, and forgotten by every coordinator (KIP-664).

A long-running transaction is not a hanging one: its coordinator will end it. Decided from what partition leaders and
coordinators say, exactly as `TransactionsCommand find-hanging` does (Kafka 3.0 to 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum, unique

from eosctl.core.frozen import frozen
from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import (
    TRANSACTIONAL_ID_NOT_FOUND,
    ActiveProducer,
    KafkaFault,
    TransactionDescription,
    TransactionListings,
)

# `find-hanging --max-transaction-timeout`: the broker's own limit, transaction.max.timeout.ms, has the same default
MAX_TRANSACTION_TIMEOUT_MS = 900_000


@unique
class Reason(StrEnum):
    """Why a transaction is hanging."""

    NO_TRANSACTIONAL_ID = "no_transactional_id"
    ID_FORGOTTEN = "id_forgotten"
    PARTITION_NOT_IN_TRANSACTION = "partition_not_in_transaction"


@frozen
class HangingTransaction:
    """An open transaction that nobody will end; `transactional_id` is the last known user of the producer id."""

    producer: ActiveProducer
    reason: Reason
    transactional_id: TransactionalId | None = None


def open_candidates(
    producers: Iterable[ActiveProducer], *, now_ms: int, max_transaction_timeout_ms: int = MAX_TRANSACTION_TIMEOUT_MS
) -> list[ActiveProducer]:
    """Producers whose open transaction wrote its last record longer ago than any transaction may last."""
    return [
        producer
        for producer in producers
        if producer.txn_start_offset is not None and now_ms - producer.last_timestamp_ms > max_transaction_timeout_ms
    ]


def find_hanging(
    candidates: Iterable[ActiveProducer],
    listings: TransactionListings,
    described: Mapping[TransactionalId, TransactionDescription | KafkaFault],
) -> list[HangingTransaction]:
    """The candidates that no coordinator accounts for, by topic, partition and start offset.

    Raises nothing for an id that could not be described (no right to, say), nor for a producer without an id where
    coordinators are missing from the listing: both are taken for accounted for, because aborting under a coordinator
    that still knows the transaction breaks it. `unjudged` and `without_owner` name those.
    """
    owners = {listing.producer_id: listing.transactional_id for listing in listings.found}
    found = []
    for producer in candidates:
        transactional_id = owners.get(producer.producer_id)
        if transactional_id is None and listings.missing:
            continue
        reason = _reason(producer, transactional_id, described)
        if reason is not None:
            found.append(HangingTransaction(producer, reason, transactional_id))
    return sorted(found, key=lambda h: (h.producer.topic, h.producer.partition, h.producer.txn_start_offset or 0))


def _reason(
    producer: ActiveProducer,
    transactional_id: TransactionalId | None,
    described: Mapping[TransactionalId, TransactionDescription | KafkaFault],
) -> Reason | None:
    if transactional_id is None:
        return Reason.NO_TRANSACTIONAL_ID
    state = described.get(transactional_id)
    if isinstance(state, TransactionDescription):
        accounted = (producer.topic, producer.partition) in state.partitions
        return None if accounted else Reason.PARTITION_NOT_IN_TRANSACTION
    if state is None or is_forgotten(state):
        return Reason.ID_FORGOTTEN
    return None


def is_forgotten(fault: KafkaFault) -> bool:
    """Whether the coordinator said that it does not know the id (TRANSACTIONAL_ID_NOT_FOUND)."""
    return fault.code == TRANSACTIONAL_ID_NOT_FOUND


def unjudged(
    described: Mapping[TransactionalId, TransactionDescription | KafkaFault],
) -> dict[TransactionalId, KafkaFault]:
    """Ids whose coordinator did not say what it knows: nothing is claimed about their transactions."""
    return {
        transactional_id: state
        for transactional_id, state in described.items()
        if isinstance(state, KafkaFault) and not is_forgotten(state)
    }


def without_owner(candidates: Iterable[ActiveProducer], listings: TransactionListings) -> list[ActiveProducer]:
    """Those that an id may use whose coordinator is missing from the listing: nothing is claimed about them."""
    if not listings.missing:
        return []
    owned = {listing.producer_id for listing in listings.found}
    return [producer for producer in candidates if producer.producer_id not in owned]


def coordinator_accounts_for(
    producer: ActiveProducer,
    listings: TransactionListings,
    described: Mapping[TransactionalId, TransactionDescription | KafkaFault],
) -> str | None:
    """The transactional id under which a coordinator still has this open transaction, or None where none is known."""
    if find_hanging([producer], listings, described):
        return None
    return next((one.transactional_id for one in listings.found if one.producer_id == producer.producer_id), None)
