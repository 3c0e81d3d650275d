"""KIP-664: hanging is what coordinators have forgotten, not what takes long."""

from __future__ import annotations

import pytest

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
from eosctl.txn.hanging import (
    HangingTransaction,
    Reason,
    coordinator_accounts_for,
    find_hanging,
    open_candidates,
    unjudged,
    without_owner,
)

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
    ("one", "candidate"),
    [
        (producer(), True),
        (producer(age_ms=900_000), False),
        (producer(age_ms=10), False),
        (producer(start=None), False),
        (producer(start=0), True),
    ],
    ids=["old and open", "exactly the limit", "young", "no transaction", "from offset 0"],
)
def test_candidates_are_open_and_older_than_any_transaction_may_be(one: ActiveProducer, candidate: bool) -> None:
    assert open_candidates([one], now_ms=NOW_MS) == ([one] if candidate else [])


@pytest.mark.parametrize(
    ("listed", "state", "reason"),
    [
        (NOTHING, None, Reason.NO_TRANSACTIONAL_ID),
        (LISTED, KafkaFault(105, "TRANSACTIONAL_ID_NOT_FOUND"), Reason.ID_FORGOTTEN),
        (LISTED, described(), Reason.PARTITION_NOT_IN_TRANSACTION),
        (LISTED, described(("t", 1), ("u", 0)), Reason.PARTITION_NOT_IN_TRANSACTION),
        (LISTED, described(("t", 0)), None),
        (LISTED, KafkaFault(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"), None),
    ],
)
def test_why_a_transaction_hangs(
    listed: TransactionListings, state: TransactionDescription | KafkaFault | None, reason: Reason | None
) -> None:
    states = {} if state is None else {TransactionalId("x"): state}
    found = find_hanging([producer()], listed, states)
    assert [hanging.reason for hanging in found] == ([reason] if reason else [])
    accounted = coordinator_accounts_for(producer(), listed, states)
    assert accounted == (None if reason else "x")


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
    partial = LISTED._replace(missing=(KafkaFault(5, "LEADER_NOT_AVAILABLE", "partition 3 has no leader"),))
    one = producer(producer_id=producer_id)
    found = find_hanging([one], partial, {TransactionalId("x"): described()})
    if producer_id == 7:
        assert [hanging.reason for hanging in found] == [Reason.PARTITION_NOT_IN_TRANSACTION]
        assert without_owner([one], partial) == []
    else:
        assert (found, without_owner([one], partial)) == ([], [one])
        assert coordinator_accounts_for(one, partial, {}) is None
    assert without_owner([one], LISTED) == []


def test_order_is_topic_partition_offset() -> None:
    given = [producer("u"), producer("t", 1, start=9), producer("t", 1, start=2), producer("t", 0)]
    places = [
        (h.producer.topic, h.producer.partition, h.producer.txn_start_offset) for h in find_hanging(given, NOTHING, {})
    ]
    assert places == [("t", 0, 5), ("t", 1, 2), ("t", 1, 9), ("u", 0, 5)]
    assert all(isinstance(hanging, HangingTransaction) for hanging in find_hanging(given, NOTHING, {}))
