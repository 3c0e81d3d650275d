"""Converts responses on the wire to the values of eosctl.core.transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.transactions import (
    Coordinator,
    KafkaFault,
    RawGroup,
    RawGroupMember,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from eosctl.kafka.faults import fault
from eosctl.wire.error_codes import GROUP_ID_NOT_FOUND, NONE

if TYPE_CHECKING:
    from eosctl.wire.group_messages import DescribedGroup
    from eosctl.wire.transaction_listing_messages import ListedTransaction
    from eosctl.wire.transaction_messages import DescribedTransaction

_STATES = {state.value: state for state in TransactionState}
_ENDED = {
    TransactionState.EMPTY.value,
    TransactionState.COMPLETE_COMMIT.value,
    TransactionState.COMPLETE_ABORT.value,
    TransactionState.DEAD.value,
}


def transaction_of(item: DescribedTransaction, coordinator: Coordinator) -> TransactionDescription | KafkaFault:
    """Convert one result of DescribeTransactions.

    Brokers report the start of a transaction that has ended, too (4.3.1).
    """
    if item.error_code != NONE:
        return fault(item.error_code)
    state, started_ms = _STATES.get(item.transaction_state, TransactionState.UNKNOWN), item.transaction_start_time_ms
    topics = item.topics
    return TransactionDescription(
        transactional_id=TransactionalId(item.transactional_id),
        coordinator=coordinator,
        state=state,
        producer_id=ProducerId(item.producer_id),
        producer_epoch=item.producer_epoch,
        transaction_timeout_ms=item.transaction_timeout_ms,
        started_ms=started_ms if started_ms >= 0 and item.transaction_state not in _ENDED else None,
        partitions=tuple([(topic.topic, index) for topic in topics for index in topic.partitions]) if topics else (),
        last_started_ms=started_ms if started_ms >= 0 else None,
    )


def listing_of(item: ListedTransaction, coordinator_id: int) -> TransactionListing:
    """Convert one entry of ListTransactions."""
    state = _STATES.get(item.transaction_state, TransactionState.UNKNOWN)
    return TransactionListing(
        TransactionalId(item.transactional_id), state, ProducerId(item.producer_id), coordinator_id
    )


def group_of(item: DescribedGroup) -> RawGroup | KafkaFault:
    """Convert one result of DescribeGroups.

    Brokers from 4.0 on return GROUP_ID_NOT_FOUND where older ones return Dead.
    """
    if item.error_code not in {NONE, GROUP_ID_NOT_FOUND}:
        return fault(item.error_code, item.error_message)
    return RawGroup(
        group_id=item.group_id,
        state=item.group_state or "Dead",
        protocol_type=item.protocol_type,
        protocol=item.protocol_data,
        members=tuple(
            RawGroupMember(
                member_id=member.member_id,
                client_id=member.client_id,
                host=member.client_host,
                metadata=member.member_metadata,
                assignment=member.member_assignment,
            )
            for member in item.members
        ),
    )
