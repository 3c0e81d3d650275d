"""KIP-664: hanging is what coordinators have forgotten, not what takes long."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.transactions import (
    ActiveProducer,
    Coordinator,
    KafkaFault,
    TransactionDescription,
    TransactionListing,
    TransactionListings,
    TransactionState,
)
from eosctl.txn.hanging import HangingTransaction, Reason, find_hanging, is_silent, unjudged, without_owner

NOW_MS = 10_000_000
LISTED = TransactionListings([TransactionListing(TransactionalId("x"), TransactionState.ONGOING, ProducerId(7), 1)])
NOTHING = TransactionListings(())


def producer(
    topic: str = "t",
    partition: int = 0,
    *,
    start: int | None = 5,
    age_ms: int = 900_001,
    producer_id: int = 7,
) -> ActiveProducer:
    return ActiveProducer(topic, partition, ProducerId(producer_id), 0, 1, NOW_MS - age_ms, 0, start)


def described(*partitions: tuple[str, int]) -> TransactionDescription:
    return TransactionDescription(
        TransactionalId("x"),
        Coordinator(1, "b", 9092),
        TransactionState.ONGOING,
        ProducerId(7),
        0,
        60_000,
        NOW_MS - 1,
        partitions,
    )


@pytest.mark.parametrize(
    ("age_ms", "silent"),
    [(900_001, True), (900_000, False), (10, False), (-900_000, False), (-900_001, True), (-86_400_000 * 365, True)],
    ids=["old", "exactly the limit", "young", "a clock ahead", "of the future", "a year ahead"],
)
def test_a_time_far_from_now_shows_no_live_transaction(age_ms: int, silent: bool) -> None:
    """One whose records had times of the future was never found: `LastTimestamp` is what the source gave."""
    assert is_silent(producer(age_ms=age_ms), now_ms=NOW_MS) == silent


UNKNOWN_ID = KafkaFault(105, "TRANSACTIONAL_ID_NOT_FOUND")


@pytest.mark.parametrize(
    ("listed", "state", "reason"),
    [
        (NOTHING, None, Reason.NO_TRANSACTIONAL_ID),
        (LISTED, UNKNOWN_ID, Reason.ID_FORGOTTEN),
        (LISTED, described(), Reason.PARTITION_NOT_IN_TRANSACTION),
        (LISTED, described(("t", 1), ("u", 0)), Reason.PARTITION_NOT_IN_TRANSACTION),
        (LISTED, described(("t", 0)), None),
        (LISTED, KafkaFault(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"), None),
        (LISTED, None, None),
        (replace(LISTED, unseen=KafkaFault(29, "TOPIC_AUTHORIZATION_FAILED")), described(), "same"),
        (replace(NOTHING, unseen=KafkaFault(29, "TOPIC_AUTHORIZATION_FAILED")), None, None),
    ],
)
def test_why_a_transaction_hangs(
    listed: TransactionListings, state: TransactionDescription | KafkaFault | None, reason: Reason | str | None
) -> None:
    states = {} if state is None else {TransactionalId("x"): state}
    found = find_hanging([producer()], listed, states, now_ms=NOW_MS)
    expected = Reason.PARTITION_NOT_IN_TRANSACTION if reason == "same" else reason
    assert [hanging.reason for hanging in found] == ([expected] if expected else [])
    assert find_hanging([producer(start=None)], listed, states, now_ms=NOW_MS) == []


@pytest.mark.parametrize(
    ("state", "hangs"),
    [
        (described(), False),
        (replace(described(), state=TransactionState.COMPLETE_COMMIT), True),
        (replace(described(), state=TransactionState.COMPLETE_ABORT), True),
        (replace(described(), state=TransactionState.EMPTY), False),
        (replace(described(), state=TransactionState.EMPTY, producer_epoch=1), True),
        (replace(described(("u", 0)), producer_epoch=1), True),
        (replace(described(("t", 0)), producer_epoch=1), False),
        (replace(described(("t", 0)), state=TransactionState.PREPARE_COMMIT, producer_epoch=1), False),
        (replace(described(), state=TransactionState.COMPLETE_COMMIT, producer_id=ProducerId(8)), False),
        (UNKNOWN_ID, False),
    ],
    ids=[
        *("ongoing elsewhere", "committed", "aborted", "never begun", "begun anew", "gone on elsewhere"),
        *("gone on here", "its marker is to come", "another producer", "forgotten"),
    ],
)
def test_a_young_one_hangs_where_its_coordinator_proves_it(
    state: TransactionDescription | KafkaFault, hangs: bool
) -> None:
    """Both workers hung behind one for fifteen minutes, of which `txn hanging` said that there is none."""
    found = find_hanging([producer(age_ms=1_000)], LISTED, {TransactionalId("x"): state}, now_ms=NOW_MS)
    assert bool(found) == hangs


def test_what_could_not_be_judged_is_named() -> None:
    denied = KafkaFault(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    assert unjudged(
        {
            TransactionalId("x"): denied,
            TransactionalId("y"): KafkaFault(105, "TRANSACTIONAL_ID_NOT_FOUND"),
            TransactionalId("z"): described(),
        }
    ) == {"x": denied}


@pytest.mark.parametrize("producer_id", [7, 8])
def test_without_a_coordinator_nothing_is_said_of_producers_that_no_listed_id_uses(producer_id: ProducerId) -> None:
    """The live transaction of an offline partition of __transaction_state was called hanging."""
    partial = replace(LISTED, missing=(KafkaFault(5, "LEADER_NOT_AVAILABLE", "partition 3 has no leader"),))
    one = producer(producer_id=producer_id)
    found = find_hanging([one], partial, {TransactionalId("x"): described()}, now_ms=NOW_MS)
    if producer_id == 7:
        assert [hanging.reason for hanging in found] == [Reason.PARTITION_NOT_IN_TRANSACTION]
        assert without_owner([one], partial, now_ms=NOW_MS) == []
    else:
        assert (found, without_owner([one], partial, now_ms=NOW_MS)) == ([], [one])
    assert without_owner([one], LISTED, now_ms=NOW_MS) == []
    young = replace(one, last_timestamp_ms=NOW_MS)
    assert without_owner([young], partial, now_ms=NOW_MS) == []


def test_order_is_topic_partition_offset() -> None:
    given = [producer("u"), producer("t", 1, start=9), producer("t", 1, start=2), producer("t", 0)]
    found = find_hanging(given, NOTHING, {}, now_ms=NOW_MS)
    places = [(h.producer.topic, h.producer.partition, h.producer.txn_start_offset) for h in found]
    assert places == [("t", 0, 5), ("t", 1, 2), ("t", 1, 9), ("u", 0, 5)]
    assert all(isinstance(hanging, HangingTransaction) for hanging in found)
