"""Decides how an open transaction may be ended: its coordinator, its decision, and the reasons not to abort it.

A transaction is one producer id and epoch, in every partition where these are open. Decisions only: the answers of
leaders, of coordinators and of their log are arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum, unique

from msgspec import Struct, field
from msgspec.structs import replace

from eosctl.codes import Code
from eosctl.core.allowances import Waiver
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.records import Record
from eosctl.core.transaction_log import LoggedTransaction
from eosctl.core.transactions import (
    OPEN_STATES,
    ActiveProducer,
    KafkaFault,
    TransactionDescription,
    TransactionListings,
    TransactionState,
)
from eosctl.txn import codes
from eosctl.txn.hanging import Described, Reason

Partition = tuple[str, int]
Writer = tuple[ProducerId, int]
"""A producer id and an epoch: one transaction, from KIP-890 on."""
Identity = tuple[str, int, ProducerId, int, int | None]

EPOCH_PER_TRANSACTION = 2
"""The transaction version of clients whose every transaction has an epoch of its own (KIP-890)."""
PREPARED = {
    TransactionState.PREPARE_COMMIT: True,
    TransactionState.PREPARE_ABORT: False,
}
DECIDED = {
    **PREPARED,
    TransactionState.COMPLETE_COMMIT: True,
    TransactionState.COMPLETE_ABORT: False,
}
WAIVER_OF: Mapping[Code, Waiver] = {
    codes.COORDINATOR_HAS_IT: Waiver.FORCE,
    codes.COORDINATOR_UNREAD: Waiver.UNREAD_COORDINATOR,
    codes.ID_MAY_BE_HIDDEN: Waiver.HIDDEN_ID,
    codes.COMMIT_DECIDED: Waiver.LOSE_COMMITTED,
    codes.PARTS_UNSEEN: Waiver.UNSEEN_PARTS,
}


@unique
class TransactionResult(StrEnum):
    """The coordinator's decision about a transaction."""

    COMMIT = "commit"
    ABORT = "abort"


class DecidedResult(Struct, frozen=True):
    """A decision; `proven` if the log has it for this very transaction, else it may be about another one.

    `partitions` are those of the transaction, as far as the log names them.
    """

    result: TransactionResult
    proven: bool
    partitions: tuple[Partition, ...] = ()


class LogEntry(Struct, frozen=True):
    """A record of `__transaction_state`; `logged` is None where it deletes the id."""

    transactional_id: TransactionalId
    logged: LoggedTransaction | None
    record: Record


class LogLook(Struct, frozen=True):
    """The records of `__transaction_state` about some producer ids, in the order of the log.

    `unread` is why there may be other records that were not read.
    """

    entries: Sequence[LogEntry] = ()
    unread: str | None = None


class Coordination(Struct, frozen=True):
    """The state of some producers, as the coordinators and their log report it."""

    listings: TransactionListings
    described: Described
    log: LogLook = field(default_factory=LogLook)


class TransactionToEnd(Struct, frozen=True):
    """One transaction and its open partitions, in the order of their markers.

    `reason` is why it is hanging (None: not known to be), `refused` maps the codes of reasons not to end it to their
    texts. One that `is_ending` its coordinator has decided, and has not ended.
    """

    parts: tuple[ActiveProducer, ...]
    transactional_id: TransactionalId | None
    reason: Reason | None
    decided: DecidedResult | None
    refused: Mapping[Code, str] = {}
    is_ending: bool = False

    @property
    def writer(self) -> Writer:
        """Its producer id and epoch."""
        return writer_of_part(self.parts[0])

    def left(self, waived: Collection[Waiver]) -> dict[Code, str]:
        """Return the reasons not to end it that are not waived."""
        return {code: why for code, why in self.refused.items() if WAIVER_OF.get(code) not in waived}


def writer_of_part(part: ActiveProducer) -> Writer:
    """Return the producer id and epoch of an open partition."""
    return part.producer_id, part.producer_epoch


def place_of(part: ActiveProducer) -> Partition:
    """Return the topic and partition."""
    return part.topic, part.partition


def identity(part: ActiveProducer) -> Identity:
    """Return a key that stays the same while one transaction is open on one partition."""
    return (*place_of(part), *writer_of_part(part), part.txn_start_offset)


def in_order(parts: Iterable[ActiveProducer], ranks: Mapping[str, int]) -> tuple[ActiveProducer, ...]:
    """Return the partitions in the order of their markers: topics with offsets, of the highest rank, come last.

    Workers and tasks wait for the offsets topic at their start, so none of them goes on before all else has ended.
    """
    return tuple(sorted(parts, key=lambda part: (ranks.get(part.topic, 0), place_of(part))))


def judge_abort(
    parts: tuple[ActiveProducer, ...], known: Coordination, *, unseen: Sequence[str] = ()
) -> TransactionToEnd:
    """Return the transaction of `parts`, with every reason not to abort it; more parts may be open in `unseen`."""
    producer_id, epoch = writer_of_part(parts[0])
    owner, state = _owner(producer_id, known)
    decided = decision_in_log(known.log.entries, (producer_id, epoch), frozenset(map(place_of, parts)))
    if not known.log.entries and isinstance(state, TransactionDescription):
        decided = decision_of_coordinator(state, (producer_id, epoch))
    refused = dict(_refusals(parts, owner, state, known))
    if decided is not None and decided.result is TransactionResult.COMMIT:
        says = f"its coordinator {'committed' if decided.proven else 'may have committed'} it"
        refused[codes.COMMIT_DECIDED] = f"{says}: an abort loses its records there"
    if unseen:
        refused[codes.PARTS_UNSEEN] = f"whether it is open elsewhere is not known: {'; '.join(unseen)}"
    is_ending = isinstance(state, TransactionDescription | LoggedTransaction) and state.state in PREPARED
    return TransactionToEnd(parts, owner, _reason(owner, state, refused), decided, refused, is_ending)


def judge_complete(
    parts: tuple[ActiveProducer, ...], known: Coordination, *, unseen: Sequence[str] = ()
) -> TransactionToEnd:
    """Return the transaction with the reasons not to write COMMIT markers: the log must show that decision."""
    judged = judge_abort(parts, known, unseen=unseen)
    kept = (codes.COORDINATOR_HAS_IT, codes.COORDINATOR_UNREAD, codes.PARTS_UNSEEN)
    refused = {code: why for code, why in judged.refused.items() if code in kept}
    decided = judged.decided
    if decided is None or not decided.proven or decided.result is not TransactionResult.COMMIT:
        refused[codes.COMMIT_NOT_READ] = _not_read(decided, known.log)
        return replace(judged, refused=refused)
    outside = [part for part in parts if decided.partitions and place_of(part) not in decided.partitions]
    if outside:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in map(place_of, outside))
        refused[codes.COMMIT_NOT_READ] = f"the commit in the coordinators' log is not about {names}"
    return replace(judged, refused=refused)


def _not_read(decided: DecidedResult | None, log: LogLook) -> str:
    if decided is not None and decided.result is TransactionResult.ABORT and decided.proven:
        return "the coordinators' log says that it was aborted"
    if log.unread is not None:
        return f"the coordinators' log could not be read: {log.unread}"
    if decided is not None:
        return "its producer has one epoch for many transactions, so that no record says which one was committed"
    return "the coordinators' log has no commit of this producer id and epoch (any more)"


State = TransactionDescription | LoggedTransaction | KafkaFault | None


def _owner(producer_id: ProducerId, known: Coordination) -> tuple[TransactionalId | None, State]:
    """Return the id that uses the producer id, and its state; from the log if it is not listed."""
    listed = {one.producer_id: one.transactional_id for one in known.listings.found}
    owner = listed.get(producer_id)
    if owner is not None:
        return owner, known.described.get(owner)
    newest = {entry.transactional_id: entry.logged for entry in known.log.entries}
    for transactional_id, logged in newest.items():
        if logged is not None and producer_id in (logged.producer_id, logged.previous_producer_id):
            return transactional_id, logged
    return None, None


def _refusals(
    parts: Sequence[ActiveProducer], owner: TransactionalId | None, state: State, known: Coordination
) -> Iterable[tuple[Code, str]]:
    if owner is None:
        doubts = known.listings.doubts()
        if doubts:
            why = "; ".join(map(str, doubts))
            yield codes.COORDINATOR_UNREAD, f"a coordinator that may have it open can't be asked: {why}"
        elif known.log.unread is not None:
            why = f"no listed id uses it, and the coordinators' log could not be read: {known.log.unread}"
            yield codes.ID_MAY_BE_HIDDEN, why
    elif state is None or (isinstance(state, KafkaFault) and not state.is_unknown_id):
        why = "no answer" if state is None else str(state)
        yield codes.COORDINATOR_UNREAD, f"the coordinator of {owner} does not say whether it has it open: {why}"
    elif not isinstance(state, KafkaFault) and _accounts_for(parts, state):
        yield codes.COORDINATOR_HAS_IT, f"{owner} has it open, and its coordinator will end it"


def _accounts_for(parts: Iterable[ActiveProducer], state: TransactionDescription | LoggedTransaction) -> bool:
    is_open = isinstance(state, TransactionDescription) or state.state in OPEN_STATES
    return is_open and not {*map(place_of, parts)}.isdisjoint(state.partitions)


def _reason(owner: TransactionalId | None, state: State, refused: Collection[Code]) -> Reason | None:
    if not {codes.COORDINATOR_UNREAD, codes.ID_MAY_BE_HIDDEN, codes.COORDINATOR_HAS_IT}.isdisjoint(refused):
        return None
    if owner is None:
        return Reason.NO_TRANSACTIONAL_ID
    return Reason.ID_FORGOTTEN if isinstance(state, KafkaFault) else Reason.PARTITION_NOT_IN_TRANSACTION


def decision_in_log(entries: Iterable[LogEntry], writer: Writer, places: Collection[Partition]) -> DecidedResult | None:
    """Return the coordinator's decision about a transaction of this producer id and epoch that is open at `places`.

    From KIP-890 on a coordinator raises the epoch when it decides: the transaction itself has the one before. Older
    clients use one epoch for many transactions, so the newest record with one of the partitions may be about another
    one.
    """
    found: DecidedResult | None = None
    others = False  # the newest of these decisions is about other partitions
    for entry in entries:
        logged = entry.logged
        if logged is None or logged.producer_id != writer[0] or logged.state not in DECIDED:
            continue
        proven = (logged.client_transaction_version or 0) >= EPOCH_PER_TRANSACTION
        if logged.producer_epoch != writer[1] + (1 if proven else 0):
            continue
        if logged.state in PREPARED:
            others = not proven and bool(logged.partitions) and set(places).isdisjoint(logged.partitions)
        if others:
            continue
        result = TransactionResult.COMMIT if DECIDED[logged.state] else TransactionResult.ABORT
        named = logged.partitions or (found.partitions if found and found.result is result else ())
        found = DecidedResult(result, proven, named)
    return found


def decision_of_coordinator(state: TransactionDescription, writer: Writer) -> DecidedResult | None:
    """Return the decision that the state of the id shows: about this transaction, or about the one after it."""
    same = state.producer_id == writer[0] and state.producer_epoch - writer[1] in (0, 1)
    if not same or state.state not in DECIDED:
        return None
    result = TransactionResult.COMMIT if DECIDED[state.state] else TransactionResult.ABORT
    return DecidedResult(result, proven=False)
