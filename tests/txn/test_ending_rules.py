"""What forbids to end a transaction, and what its coordinator decided: by answers and records, without a broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.allowances import Waiver
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.records import Record
from eosctl.core.transaction_log import LoggedTransaction
from eosctl.core.transactions import (
    ActiveProducer,
    Coordinator,
    KafkaFault,
    TransactionDescription,
    TransactionListing,
    TransactionListings,
    TransactionState,
)
from eosctl.txn.hanging import Reason
from eosctl.txn.rules import (
    WAIVER_OF,
    Coordination,
    DecidedResult,
    LogEntry,
    LogLook,
    TransactionResult,
    decision_in_log,
    decision_of_coordinator,
    identity,
    in_order,
    judge_abort,
    judge_complete,
)

X = TransactionalId("x")
PID, EPOCH = ProducerId(7), 5
T0, T1, OFFSETS = ("t", 0), ("t", 1), ("o", 0)
COMMIT, ABORT = TransactionResult.COMMIT, TransactionResult.ABORT
NAMES = {each.value: each for each in TransactionState}
LISTED = TransactionListings([TransactionListing(X, TransactionState.ONGOING, PID, 1)])
NOBODY = TransactionListings(())
AWAY = KafkaFault(5, "LEADER_NOT_AVAILABLE")
DENIED = KafkaFault(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
FORGOTTEN = KafkaFault(105, "TRANSACTIONAL_ID_NOT_FOUND")


def part(place: tuple[str, int] = T0, *, start: int = 3) -> ActiveProducer:
    return ActiveProducer(*place, PID, EPOCH, 1, 0, 0, start)


def state(name: str, *places: tuple[str, int], epoch: int = EPOCH, producer_id: int = PID) -> TransactionDescription:
    at = Coordinator(1, "b", 9092)
    return TransactionDescription(X, at, NAMES[name], ProducerId(producer_id), epoch, 60_000, None, places)


def entry(
    name: str | None,
    *places: tuple[str, int],
    epoch: int = EPOCH + 1,
    client: int | None = 2,
    producer_id: int = PID,
    before: int | None = None,
    user: str = X,
) -> LogEntry:
    record = Record("__transaction_state", 0, 0, 0, user.encode(), None)
    if name is None:
        return LogEntry(TransactionalId(user), None, record)
    logged = LoggedTransaction(
        1, ProducerId(producer_id), epoch, 60_000, NAMES[name], places, 0, None,
        None if before is None else ProducerId(before), None, client,
    )  # fmt: skip
    return LogEntry(TransactionalId(user), logged, record)


@pytest.mark.parametrize(
    ("entries", "decided"),
    [
        ([], None),
        ([entry("Ongoing", T0, epoch=EPOCH)], None),
        ([entry("PrepareCommit", T0, T1)], DecidedResult(COMMIT, proven=True, partitions=(T0, T1))),
        ([entry("PrepareAbort", T0)], DecidedResult(ABORT, proven=True, partitions=(T0,))),
        ([entry("PrepareCommit", T0), entry("CompleteCommit")], DecidedResult(COMMIT, proven=True, partitions=(T0,))),
        ([entry("CompleteCommit")], DecidedResult(COMMIT, proven=True)),
        ([entry("CompleteCommit", epoch=EPOCH)], None),
        ([entry("CompleteCommit", epoch=EPOCH + 2)], None),
        ([entry("CompleteCommit", producer_id=8)], None),
        ([entry("PrepareCommit", T0), entry("Empty", epoch=9), entry(None)], DecidedResult(COMMIT, True, (T0,))),
        # a client with one epoch for many transactions
        ([entry("PrepareCommit", T0, epoch=EPOCH, client=1)], DecidedResult(COMMIT, proven=False, partitions=(T0,))),
        ([entry("PrepareCommit", T0, epoch=EPOCH, client=None)], DecidedResult(COMMIT, False, (T0,))),
        ([entry("PrepareCommit", T0, client=1)], None),
        ([entry("PrepareCommit", T1, epoch=EPOCH, client=1), entry("CompleteCommit", epoch=EPOCH, client=1)], None),
        ([entry("CompleteCommit", epoch=EPOCH, client=1)], DecidedResult(COMMIT, proven=False)),
        (
            [entry("PrepareCommit", T0, epoch=EPOCH, client=1), entry("PrepareAbort", T0, epoch=EPOCH, client=1)],
            DecidedResult(ABORT, proven=False, partitions=(T0,)),
        ),
    ],
)
def test_what_the_log_says_that_was_decided(entries: Sequence[LogEntry], decided: DecidedResult | None) -> None:
    """From KIP-890 on the decision has the epoch behind that of the transaction, and is about this one alone."""
    assert decision_in_log(entries, (PID, EPOCH), {T0}) == decided


@pytest.mark.parametrize(
    ("described", "result"),
    [
        (state("CompleteCommit", epoch=EPOCH + 1), COMMIT),
        (state("PrepareCommit", epoch=EPOCH + 1), COMMIT),
        (state("CompleteCommit"), COMMIT),
        (state("CompleteAbort", epoch=EPOCH + 1), ABORT),
        (state("CompleteCommit", epoch=EPOCH + 2), None),
        (state("CompleteCommit", epoch=EPOCH - 1), None),
        (state("CompleteCommit", producer_id=8), None),
        (state("Empty", epoch=EPOCH + 1), None),
        (state("Ongoing", epoch=EPOCH + 1), None),
    ],
)
def test_what_the_state_of_an_id_says_is_never_proven(
    described: TransactionDescription, result: TransactionResult | None
) -> None:
    found = decision_of_coordinator(described, (PID, EPOCH))
    assert found == (None if result is None else DecidedResult(result, proven=False))


@pytest.mark.parametrize(
    ("listings", "described", "log", "refused", "reason"),
    [
        (NOBODY, {}, LogLook(), [], Reason.NO_TRANSACTIONAL_ID),
        (NOBODY, {}, LogLook(unread="denied"), ["id_may_be_hidden"], None),
        (replace(NOBODY, missing=(AWAY,)), {}, LogLook(), ["coordinator_unread"], None),
        (replace(NOBODY, unseen=DENIED), {}, LogLook(), ["coordinator_unread"], None),
        (NOBODY, {}, LogLook([entry("Ongoing", T0, epoch=EPOCH)]), ["coordinator_has_it"], None),
        (NOBODY, {}, LogLook([entry("Ongoing", T1)]), [], Reason.PARTITION_NOT_IN_TRANSACTION),
        (NOBODY, {}, LogLook([entry("Empty", T0)]), [], Reason.PARTITION_NOT_IN_TRANSACTION),
        (NOBODY, {}, LogLook([entry("Empty", producer_id=9, before=PID)]), [], Reason.PARTITION_NOT_IN_TRANSACTION),
        (NOBODY, {}, LogLook([entry("Ongoing", T0), entry("Empty", producer_id=9)]), [], Reason.NO_TRANSACTIONAL_ID),
        (NOBODY, {}, LogLook([entry("Ongoing", T0), entry(None)]), [], Reason.NO_TRANSACTIONAL_ID),
        (LISTED, {X: state("Ongoing", T0)}, LogLook(), ["coordinator_has_it"], None),
        (LISTED, {X: state("Ongoing", T1)}, LogLook(), [], Reason.PARTITION_NOT_IN_TRANSACTION),
        (LISTED, {X: FORGOTTEN}, LogLook(), [], Reason.ID_FORGOTTEN),
        (LISTED, {X: DENIED}, LogLook(), ["coordinator_unread"], None),
        (LISTED, {}, LogLook(), ["coordinator_unread"], None),
        (
            LISTED, {X: state("CompleteCommit", epoch=EPOCH + 1)}, LogLook(unread="denied"),
            ["commit_decided"], Reason.PARTITION_NOT_IN_TRANSACTION,
        ),
        (
            LISTED, {X: state("CompleteCommit", epoch=EPOCH + 1)}, LogLook([entry("CompleteAbort")]),
            [], Reason.PARTITION_NOT_IN_TRANSACTION,
        ),
    ],
)  # fmt: skip
def test_what_forbids_an_abort(
    listings: TransactionListings, described: Any, log: LogLook, refused: list[str], reason: Reason | None
) -> None:
    judged = judge_abort((part(),), Coordination(listings, described, log))
    assert (list(judged.refused), judged.reason) == (refused, reason)


def test_one_part_that_its_coordinator_has_open_holds_all_of_it() -> None:
    known = Coordination(LISTED, {X: state("Ongoing", T1)})
    assert list(judge_abort((part(T0), part(T1)), known).refused) == ["coordinator_has_it"]


def test_each_danger_is_waived_by_a_flag_of_its_own() -> None:
    assert len(set(WAIVER_OF.values())) == len(WAIVER_OF) == 5
    known = Coordination(NOBODY, {}, LogLook(unread="denied"))
    judged = judge_abort((part(),), known, unseen=["u-0: denied"])
    assert set(judged.refused) == {"id_may_be_hidden", "parts_unseen"}
    assert list(judged.left({Waiver.HIDDEN_ID, Waiver.FORCE})) == ["parts_unseen"]
    assert judged.left({Waiver.HIDDEN_ID, Waiver.UNSEEN_PARTS}) == {}


@pytest.mark.parametrize(
    ("log", "refused"),
    [
        (LogLook([entry("PrepareCommit", T0)]), []),
        (LogLook([entry("CompleteCommit")]), []),
        (LogLook([entry("PrepareCommit", T1)]), ["commit_not_read"]),
        (LogLook([entry("PrepareAbort", T0)]), ["commit_not_read"]),
        (LogLook([entry("PrepareCommit", T0, epoch=EPOCH, client=1)]), ["commit_not_read"]),
        (LogLook(unread="denied"), ["commit_not_read"]),
        (LogLook(), ["commit_not_read"]),
    ],
)
def test_only_a_commit_of_this_very_transaction_in_the_log_may_be_completed(log: LogLook, refused: list[str]) -> None:
    known = Coordination(LISTED, {X: state("CompleteCommit", epoch=EPOCH + 1)}, log)
    judged = judge_complete((part(),), known)
    assert list(judged.refused) == refused
    assert judged.left(frozenset(Waiver)).keys() == judged.refused.keys()  # no flag waives it


def test_offsets_come_last() -> None:
    parts = [part(OFFSETS), part(T1), part(T0), part(("a", 0))]
    ranks = {"o": 2, "t": 0, "a": 1}
    assert [(one.topic, one.partition) for one in in_order(parts, ranks)] == [T0, T1, ("a", 0), OFFSETS]
    assert in_order(parts, {})[0].topic == "a"


def test_the_same_transaction_is_the_one_with_the_same_beginning() -> None:
    assert identity(part()) == (*T0, PID, EPOCH, 3)
    assert identity(part()) != identity(part(start=4))
    assert identity(replace(part(), coordinator_epoch=9)) == identity(part())
