"""The rows of `txn`: transactional ids, producers of partitions, and the results of an abort."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from eosctl.core.ids import Owner
from eosctl.output.cells import TOTAL, duration
from eosctl.output.rows import Counts, Header, Kind, Place, Printed, Text, Time
from eosctl.txn.owners import ShownCoordinator, ShownEpoch, ShownId, ShownProducerId, ShownTimeout, open_for

OwnerOfId = Annotated[Owner, "The owner of the transactional id."]
State = Annotated[
    str, "The state of its transaction, as its coordinator says; `not_checked` where none could be asked."
]
StartedMs = Annotated[int, "When its last transaction began, in milliseconds since 1970."]
Started = Annotated[Time, "When its last transaction began, which may be over."]
AgeMs = Annotated[int, "Milliseconds since its last transaction began, which may be over."]
Partitions = Annotated[list[Place], "The partitions that its transaction has written to."]


class ListedRow(Printed, kw_only=True, gc=False):
    """A transactional id as a listing reports it: most is null."""

    transactional_id: ShownId
    state: State
    producer_id: ShownProducerId
    producer_epoch: ShownEpoch | None = None
    coordinator: ShownCoordinator
    transaction_timeout_ms: ShownTimeout | None = None
    started_ms: StartedMs | None = None
    started: Started | UnsetType | None = UNSET
    age_ms: AgeMs | None = None
    partitions: Partitions | None = None
    owner: OwnerOfId


class DescribedRow(Printed, kw_only=True):
    """A transactional id as its coordinator describes it."""

    transactional_id: ShownId
    state: State
    producer_id: ShownProducerId | None = None
    producer_epoch: ShownEpoch | None = None
    coordinator: ShownCoordinator | None = None
    transaction_timeout_ms: ShownTimeout | None = None
    started_ms: StartedMs | None = None
    started: Started | UnsetType | None = UNSET
    age_ms: AgeMs | None = None
    partitions: Partitions | None = None
    owner: OwnerOfId

    def open_for(self) -> str | None:
        """Return how long the transaction has been open; `-` where none is open."""
        return open_for(self.state, self.age_ms)


Topic = Annotated[str, "The topic."]
Partition = Annotated[int, "The partition of the topic."]
WritingId = Annotated[int, "The producer id that wrote to the partition."]
WritingEpoch = Annotated[int, "The epoch under which it wrote.", Header("EPOCH")]
CoordinatorEpoch = Annotated[int, "The epoch of the coordinator that wrote its last marker; -1 before the first."]
StartOffset = Annotated[int, "The first offset of its open transaction; null where none is open."]
LastWriteMs = Annotated[int, "When it wrote last, in milliseconds since 1970."]
LastWrite = Annotated[Time, "When it wrote last.", Header("LAST-WRITE")]
SilentMs = Annotated[int, "Milliseconds since it wrote last."]
IdOfProducer = Annotated[str, "The transactional id that uses the producer id now; null where none does."]
Reason = Annotated[str, "Why the transaction counts as hanging; `not_checked` where that is not known."]


class WriterRow(Printed):
    """A producer that has written to a partition."""

    topic: Topic
    partition: Partition
    producer_id: WritingId
    producer_epoch: WritingEpoch
    coordinator_epoch: CoordinatorEpoch
    start_offset: StartOffset | None
    last_timestamp_ms: LastWriteMs
    last_timestamp: LastWrite | None
    age_ms: SilentMs


class SeenRow(Printed, kw_only=True):
    """A producer, or a partition that could not be asked: then only its place is known."""

    topic: Topic
    partition: Partition
    producer_id: WritingId | None = None
    producer_epoch: WritingEpoch | None = None
    coordinator_epoch: CoordinatorEpoch | None = None
    start_offset: StartOffset | None = None
    last_timestamp_ms: LastWriteMs | None = None
    last_timestamp: LastWrite | None = None
    age_ms: SilentMs | None = None


class ProducerRow(SeenRow, kw_only=True):
    """An active producer."""

    last_sequence: Annotated[int | None, "The last sequence number that it wrote."] = None
    transactional_id: IdOfProducer | None = None
    owner: OwnerOfId | None = None
    reason: Annotated[str, "`not_checked` where the partition could not be asked."] | UnsetType = UNSET


class HangingRow(SeenRow, kw_only=True):
    """An open transaction that no coordinator accounts for, or one that its coordinator does not end."""

    transactional_id: IdOfProducer | None = None
    reason: Reason
    state: Annotated[str | None, "The state of one that its coordinator does not end."] = None
    not_ended_for_ms: Annotated[
        int | None, "For how many milliseconds its end has been decided, or due; null where that is not known."
    ] = None

    def open_for(self) -> str | None:
        """Return for how long it has been open at least: since its producer wrote last, or since its end was due."""
        least_ms = self.not_ended_for_ms if self.age_ms is None else self.age_ms
        return None if least_ms is None else duration(least_ms)


class EndRow(WriterRow, kw_only=True):
    """One partition of a transaction to end; those of one producer id and epoch are ended together, in this order."""

    reason: Reason | None
    lso_before: Annotated[
        int | None, "The last stable offset of the partition before the marker; null where unknown.", Header("LSO")
    ]
    transactional_id: IdOfProducer | None = None
    decided: Annotated[
        str | None, "What its coordinator decided, `commit` or `abort`; null where that can't be known any more."
    ] = None
    decided_by: Annotated[
        str | None,
        "What says so: `log`, a record of this very transaction, or `coordinator`, whose state may be another one's.",
    ] = None
    refused: Annotated[list[str], "What forbids to end it and was not waived; `eosctl explain` has each code."]


class EndedRow(EndRow, kw_only=True):
    """One partition of a transaction after its marker."""

    lso_after: Annotated[int | None, "The last stable offset after the marker; null where it could not be read."]
    outcome: Annotated[str, "What came of it."]
    error: Annotated[object, "Why it could not be ended."]

    @Header("OUTCOME")
    def came_to(self) -> str:
        """Return the outcome."""
        return self.outcome.replace("_not_confirmed", ", not confirmed").replace("_", " ")


class CoordinatorRow(Printed):
    """The coordinator of a transactional id."""

    transactional_id: ShownId
    hash: Annotated[int, "Java's hash code of the id, which chooses the partition."]
    partition: Annotated[int | None, "Its partition of __transaction_state; null where their number is not known."]
    coordinator: ShownCoordinator
    host: Annotated[str, "The host of that broker."]
    port: Annotated[int, "The port of that broker."]


class LogRow(Printed, kw_only=True):
    """A record of __transaction_state; null is what a record of its version, or a deletion, does not have."""

    partition: Annotated[int, "The partition of __transaction_state."]
    offset: Annotated[int | None, "The offset of the record."] = None
    timestamp_ms: Annotated[int | None, "When it was written, in milliseconds since 1970."] = None
    timestamp: Annotated[Time | None, "When it was written.", Header("TIME")] = None
    transactional_id: ShownId | None = None
    owner: OwnerOfId | None = None
    deleted: Annotated[bool | None, "Whether the record deletes the id."] = None
    state: Annotated[
        str | None, "The state that was written; `not_checked` for a partition that could not be read."
    ] = None
    producer_id: ShownProducerId | None = None
    producer_epoch: ShownEpoch | None = None
    transaction_timeout_ms: ShownTimeout | None = None
    last_update_ms: Annotated[int | None, "When the state changed, in milliseconds since 1970."] = None
    started_ms: StartedMs | None = None
    version: Annotated[int | None, "The version of the record's format."] = None
    previous_producer_id: Annotated[int | None, "The producer id before the last commit or abort (KIP-890)."] = None
    next_producer_id: Annotated[int | None, "The producer id after the one that is ending (KIP-890)."] = None
    next_producer_epoch: Annotated[int | None, "The epoch after the one that is ending (KIP-890)."] = None
    client_transaction_version: Annotated[int | None, "The transaction version of the client."] = None
    partitions: Partitions | None = None


class ListSummary(Printed):
    """The number of ids per state."""

    ids: Annotated[int, "How many ids there are."]
    counts: Annotated[Counts, "How many ids are in each state."]


class RowsSummary(Printed):
    """The number of rows."""

    rows: Annotated[int, "How many rows there are."]


class ProducersSummary(Printed):
    """The number of producers."""

    producers: Annotated[int, "How many producers are active."]
    open: Annotated[int, "How many have a transaction open."]


class HangingSummary(Printed):
    """The number of partitions, and of hanging transactions in them."""

    partitions: Annotated[int, "How many partitions were looked at.", TOTAL]
    open_too_long: Annotated[int, "How many transactions are open for longer than brokers allow."]
    hanging: Annotated[int, "How many of these no coordinator accounts for."]
    not_ended: Annotated[
        int, "How many transactional ids there are whose coordinator does not end their transaction."
    ] = 0


class AbortSummary(Printed):
    """The number of partitions and transactions that would be aborted."""

    would_abort: Annotated[int, "How many partitions would get an ABORT marker."]
    transactions: Annotated[int, "How many transactions these are."]
    refused: Annotated[int, "How many transactions may not be aborted."]


class CompleteSummary(Printed):
    """The number of partitions and transactions that would be committed."""

    would_commit: Annotated[int, "How many partitions would get a COMMIT marker."]
    transactions: Annotated[int, "How many transactions these are."]
    refused: Annotated[int, "How many transactions may not be committed."]


class CompleteData(Printed):
    """The backup that was kept before."""

    backup: Annotated[str | None, "The file with the records of the coordinators' log that decided it."]


class CoordinatorsSummary(Printed):
    """The number of ids and partitions."""

    ids: Annotated[int, "How many ids there are."]
    partitions: Annotated[int | None, "How many partitions __transaction_state has; null where that is not known."]


class LogSummary(Printed):
    """The number of records that were read."""

    records_read: Annotated[int, "How many records were read.", TOTAL]
    rows: Annotated[int, "How many of them are shown."]
    undecodable: Annotated[int, "How many could not be decoded."]


_WRITER = ("topic", "partition", "producer_id", "producer_epoch", "start_offset")
_WIDE = ("coordinator_epoch", "last_timestamp")
_END = (*_WRITER, "transactional_id?", "reason?", "decided?", "refused?", "lso_before")
TXN_LIST = Kind(
    "txn-list",
    "Transactional ids, as coordinators list them.",
    row=ListedRow,
    summary=ListSummary,
    text=Text(
        columns=("transactional_id", "owner", "state", "producer_id", "coordinator"),
        empty="No transactional id matches.",
    ),
)
TXN_DESCRIBE = Kind(
    "txn-describe",
    "Transactional ids, as their coordinators describe them.",
    row=DescribedRow,
    summary=RowsSummary,
    text=Text(
        columns=(
            *("transactional_id", "owner", "state", "producer_id", "producer_epoch", "coordinator"),
            *("transaction_timeout_ms", "open_for?", "partitions?"),
        ),
        wide=("started",),
    ),
)
TXN_PRODUCERS = Kind(
    "txn-producers",
    "Producers that partition leaders hold state of.",
    row=ProducerRow,
    summary=ProducersSummary,
    text=Text(
        columns=(*_WRITER, "last_timestamp", "transactional_id?", "owner?", "reason?"),
        wide=("coordinator_epoch", "last_sequence"),
        empty="No producer is active there.",
    ),
)
TXN_HANGING = Kind(
    "txn-hanging",
    "Open transactions that no coordinator accounts for, or that theirs does not end.",
    row=HangingRow,
    summary=HangingSummary,
    text=Text(
        columns=(*_WRITER, "transactional_id?", "open_for", "reason"), wide=_WIDE, empty="No transaction is hanging."
    ),
)
TXN_ABORT_PLAN = Kind(
    "txn-abort-plan",
    "The transactions that would be aborted, by their partitions.",
    row=EndRow,
    summary=AbortSummary,
    text=Text(columns=_END, wide=_WIDE, empty="No transaction is hanging."),
)
TXN_ABORT_RESULT = Kind(
    "txn-abort-result",
    "Transactions after their ABORT markers, by their partitions.",
    row=EndedRow,
    summary=Counts,
    text=Text(columns=(*_END, "lso_after", "came_to"), wide=_WIDE),
)
TXN_COMPLETE_PLAN = Kind(
    "txn-complete-plan",
    "The transaction that would be committed as its coordinator decided, by its partitions.",
    row=EndRow,
    summary=CompleteSummary,
    text=Text(columns=_END, wide=_WIDE),
)
TXN_COMPLETE_RESULT = Kind(
    "txn-complete-result",
    "A transaction after its COMMIT markers, by its partitions.",
    row=EndedRow,
    summary=Counts,
    data=CompleteData,
    text=Text(columns=(*_END, "lso_after", "came_to"), wide=_WIDE),
)
TXN_COORDINATOR = Kind(
    "txn-coordinator",
    "Where transactional ids are coordinated.",
    row=CoordinatorRow,
    summary=CoordinatorsSummary,
)
TXN_LOG = Kind(
    "txn-log",
    "Records of __transaction_state.",
    row=LogRow,
    summary=LogSummary,
    text=Text(
        columns=(
            *("partition", "offset", "timestamp", "transactional_id", "owner", "state", "producer_id"),
            *("producer_epoch", "partitions?"),
        ),
        wide=("transaction_timeout_ms", "version", "previous_producer_id", "next_producer_id"),
        empty="No record matches.",
    ),
)
