"""Finds hanging transactions of a partition: open there, and forgotten by every coordinator (KIP-664).

A long-running transaction is not a hanging one: its coordinator will end it. Decided by partition leaders and
coordinators, as `TransactionsCommand find-hanging` does (Kafka 3.0 to 4.4), and at once if the state of its coordinator
proves that it will not be ended. A record's own time proves nothing: the source sets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum, unique

from msgspec import Struct

from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import (
    ActiveProducer,
    KafkaFault,
    TransactionDescription,
    TransactionListings,
    TransactionState,
)

# `find-hanging --max-transaction-timeout`: the broker's own limit, transaction.max.timeout.ms, has the same default
MAX_TRANSACTION_TIMEOUT_MS = 900_000
COMPLETE_STATES = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
Described = Mapping[TransactionalId, TransactionDescription | KafkaFault]


@unique
class Reason(StrEnum):
    """The reason why a transaction is hanging."""

    NO_TRANSACTIONAL_ID = "no_transactional_id"
    ID_FORGOTTEN = "id_forgotten"
    PARTITION_NOT_IN_TRANSACTION = "partition_not_in_transaction"
    NOT_ENDED = "not_ended"
    """Its coordinator knows it, and ought to have ended it (`txn/unended.py`)."""


class HangingTransaction(Struct, frozen=True):
    """An open transaction that no coordinator will end; `transactional_id` is the producer id's last known user."""

    producer: ActiveProducer
    reason: Reason
    transactional_id: TransactionalId | None = None


def is_silent(
    producer: ActiveProducer, *, now_ms: int, max_transaction_timeout_ms: int = MAX_TRANSACTION_TIMEOUT_MS
) -> bool:
    """Decide whether its last record's time is further from now than any transaction may last.

    A time that far ahead is set by the source, and says nothing about when the record was written.
    """
    return abs(now_ms - producer.last_timestamp_ms) > max_transaction_timeout_ms


def nothing_will_end(producer: ActiveProducer, state: TransactionDescription) -> bool:
    """Decide whether the coordinator of the id has ended this very transaction, and forgotten the partition.

    Its markers are written by then, so a partition that is open after this answer will never get one: the producer has
    a newer epoch, or the last transaction is complete.
    """
    if state.producer_id != producer.producer_id or (producer.topic, producer.partition) in state.partitions:
        return False
    return state.producer_epoch > producer.producer_epoch or state.state in COMPLETE_STATES


def find_hanging(
    producers: Iterable[ActiveProducer],
    listings: TransactionListings,
    described: Described,
    *,
    now_ms: int,
    max_transaction_timeout_ms: int = MAX_TRANSACTION_TIMEOUT_MS,
) -> list[HangingTransaction]:
    """Return the open transactions that no coordinator accounts for, by topic, partition and start offset.

    Young ones are returned only if the state of their coordinator proves it. Claims nothing for an id that could not be
    described (for lack of rights, say), nor for a producer without an id if ids may be missing from the listing:
    aborting under a coordinator that still knows the transaction breaks it. `unjudged` and `without_owner` return
    those.
    """
    owners = {listing.producer_id: listing.transactional_id for listing in listings.found}
    found = []
    for producer in producers:
        if producer.txn_start_offset is None:
            continue
        owner = owners.get(producer.producer_id)
        silent = is_silent(producer, now_ms=now_ms, max_transaction_timeout_ms=max_transaction_timeout_ms)
        if owner is None and (listings.doubts() or not silent):
            continue
        reason = _reason(producer, owner, described, silent=silent)
        if reason is not None:
            found.append(HangingTransaction(producer, reason, owner))
    return sorted(found, key=lambda h: (h.producer.topic, h.producer.partition, h.producer.txn_start_offset or 0))


def _reason(
    producer: ActiveProducer, transactional_id: TransactionalId | None, described: Described, *, silent: bool
) -> Reason | None:
    if transactional_id is None:
        return Reason.NO_TRANSACTIONAL_ID
    state = described.get(transactional_id)
    if isinstance(state, TransactionDescription):
        accounted = (producer.topic, producer.partition) in state.partitions
        proven = nothing_will_end(producer, state)
        return Reason.PARTITION_NOT_IN_TRANSACTION if proven or (silent and not accounted) else None
    return Reason.ID_FORGOTTEN if state is not None and state.is_unknown_id and silent else None


def unjudged(described: Described) -> dict[TransactionalId, KafkaFault]:
    """Return the ids whose coordinator did not answer for them: nothing is claimed about their transactions."""
    return {
        transactional_id: state
        for transactional_id, state in described.items()
        if isinstance(state, KafkaFault) and not state.is_unknown_id
    }


def without_owner(
    producers: Iterable[ActiveProducer],
    listings: TransactionListings,
    *,
    now_ms: int,
    max_transaction_timeout_ms: int = MAX_TRANSACTION_TIMEOUT_MS,
) -> list[ActiveProducer]:
    """Return silent producers whose id's coordinator may be missing from the listing: nothing is claimed about them."""
    if not listings.doubts():
        return []
    owned = {listing.producer_id for listing in listings.found}
    return [
        producer
        for producer in producers
        if producer.producer_id not in owned
        and is_silent(producer, now_ms=now_ms, max_transaction_timeout_ms=max_transaction_timeout_ms)
    ]
