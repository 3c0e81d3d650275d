"""Transactional ids and their state, as coordinators and partition leaders report them, and Connect's fencing rounds.

A fencing round of Connect's leader has time limits, an effect on the ids, and settings that speed it up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum, unique

from msgspec import Struct

from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.errors import UnreachableError

PROTOCOL_TYPE = "connect"
"""The protocol type of a Connect group."""
TRANSACTIONAL_ID_NOT_FOUND = 105  # the error code of an id that its coordinator does not know


@unique
class TransactionState(StrEnum):
    """State names as DescribeTransactions spells them (Kafka 3.9 to 4.3, `TransactionState`)."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    UNKNOWN = "Unknown"


OPEN_STATES = (
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.PREPARE_EPOCH_FENCE,
)
"""States of a transaction that is not over: its markers are still to be written."""
OPEN_STATES_BEFORE_4 = OPEN_STATES[:3]
"""The open states that brokers before 4.0 know; they refuse a filter with another one."""


class KafkaFault(Struct, frozen=True):
    """A Kafka error that belongs to one item: error `code`, its `name` (`NOT_COORDINATOR`) and a message."""

    code: int
    name: str
    message: str = ""

    @property
    def is_unknown_id(self) -> bool:
        """Whether it is a coordinator's answer about a transactional id that it does not know; others hide the id."""
        return self.code == TRANSACTIONAL_ID_NOT_FOUND

    def __str__(self) -> str:
        """Format the fault as one phrase."""
        return f"{self.name}: {self.message}" if self.message not in ("", self.name) else self.name


class Coordinator(Struct, frozen=True):
    """The broker that coordinates a transactional id or a group."""

    node_id: int
    host: str
    port: int


class TransactionDescription(Struct, frozen=True):
    """One result of DescribeTransactions; `started_ms` is None unless a transaction is open.

    `last_started_ms` is the start of the last one, open or ended; None if the producer has had none yet, which Kafka
    3.9 reports only by the state EMPTY.
    """

    transactional_id: TransactionalId
    coordinator: Coordinator
    state: TransactionState
    producer_id: ProducerId
    producer_epoch: int
    transaction_timeout_ms: int
    started_ms: int | None
    partitions: tuple[tuple[str, int], ...]
    last_started_ms: int | None = None


class TransactionListing(Struct, frozen=True, gc=False):
    """One entry of ListTransactions, with the broker that reported it."""

    transactional_id: TransactionalId
    state: TransactionState
    producer_id: ProducerId
    coordinator_id: int


class TransactionListings(Struct, frozen=True):
    """The ids of the coordinators that respond; `missing` has a fault for the ids that are left out.

    `unseen` is set where it is unknown whether there are others: this principal may not see which brokers coordinate.
    """

    found: Sequence[TransactionListing]
    missing: tuple[KafkaFault, ...] = ()
    unseen: KafkaFault | None = None

    def doubts(self) -> tuple[KafkaFault, ...]:
        """Return why an id that is not listed may be there all the same, rights to single ids aside."""
        return self.missing if self.unseen is None else (*self.missing, self.unseen)

    def complete(self) -> Sequence[TransactionListing]:
        """Return all ids; raises UnreachableError where some may be missing."""
        if self.missing:
            raise UnreachableError(
                f"can't list all transactional ids: {'; '.join(map(str, self.missing))}",
                hint="Bring back the brokers that know them, then run again.",
            )
        return self.found


class FenceAnswer(Struct, frozen=True):
    """The result of InitProducerId for one transactional id: producer id and epoch, or a fault.

    `confirmed` is False if the deadline passed, or the connection broke, before the coordinator's final response, and
    for a refusal after a request that may have been done.
    """

    transactional_id: TransactionalId
    coordinator: Coordinator | None
    producer_id: ProducerId | None = None
    producer_epoch: int | None = None
    fault: KafkaFault | None = None
    confirmed: bool = True
    attempts: int = 1


class ActiveProducer(Struct, frozen=True):
    """One active producer of a partition (DescribeProducers); `txn_start_offset` None: no open transaction."""

    topic: str
    partition: int
    producer_id: ProducerId
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    txn_start_offset: int | None


class RawGroupMember(Struct, frozen=True):
    """A member of a group, metadata and assignment still as bytes."""

    member_id: str
    client_id: str
    host: str
    metadata: bytes
    assignment: bytes


class RawGroup(Struct, frozen=True):
    """The result of DescribeGroups for one group; an unknown group has `state` "Dead" and no members."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[RawGroupMember, ...]


ROUND_S = 90.0
"""The time limit of a leader's fencing round (`RestServer.DEFAULT_REST_REQUEST_TIMEOUT_MS`)."""
ROUND_TIMEOUTS_MS = frozenset({90_000, 1})
"""The transaction timeouts that a round leaves on the ids it fences; tasks leave 60000, eosctl 30000.

Workers before Kafka 3.7.1 send 1 (KAFKA-16047).
"""
FENCING_FAILED = "Failed to perform zombie fencing"
"""The beginning of a task's failure whose leader did not finish its round."""
CURE: Mapping[str, str] = {
    "admin.override.retry.backoff.ms": "10",
    "admin.override.retry.backoff.max.ms": "10",
}
"""Settings of a connector with which Connect fences a hundred ids per second, so that it needs no rescue again."""
