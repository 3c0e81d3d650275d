"""Finds the producer that holds back the last stable offset of a partition, its transactional id, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from eosctl.app import App
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.open_transactions import OpenTransaction
from eosctl.core.records import Bounds, Place
from eosctl.core.transactions import ActiveProducer, KafkaFault, TransactionDescription, TransactionListings
from eosctl.errors import EosctlError
from eosctl.ports import TransactionAdmin
from eosctl.report import Problem
from eosctl.txn import codes

Stuck = Sequence[tuple[str, Bounds]]
"""Partitions, by topic, with an LSO before the end."""


def find_open_transactions(app: App, stuck: Stuck) -> tuple[list[OpenTransaction], list[Problem]]:
    """Return an open transaction for each of `stuck`, as brokers report it, and warnings for the rest (Kafka 2.8+)."""
    if not stuck:
        return [], []
    try:
        with app.transactions() as admin:
            return _ask(admin, stuck)
    except EosctlError as exc:
        nobody = [OpenTransaction(topic, bound) for topic, bound in stuck]
        return nobody, [Problem.of(exc).as_warning()]


def _ask(admin: TransactionAdmin, stuck: Stuck) -> tuple[list[OpenTransaction], list[Problem]]:
    answers = admin.describe_producers([(topic, bound.partition) for topic, bound in stuck])
    holders = {place: holder for place, answer in answers.items() if (holder := _holder(answer)) is not None}
    users, missing = _users_of(admin, holders.values())
    if missing:
        holders = {place: holder for place, holder in holders.items() if holder.producer_id in users}
    described = admin.describe_transactions(sorted(set(users.values()))) if users else {}
    found = [_open_transaction(topic, bound, holders, users, described) for topic, bound in stuck]
    return found, [*_unknown_producers(answers), *missing]


def _users_of(
    admin: TransactionAdmin, holders: Iterable[ActiveProducer]
) -> tuple[dict[ProducerId, TransactionalId], list[Problem]]:
    """Return the transactional id of each producer that has one, and a warning for each silent coordinator."""
    ids = sorted({holder.producer_id for holder in holders})
    listings = admin.list_transactions(producer_ids=ids) if ids else TransactionListings(())
    text = "some transactional ids are not known, so nothing is said of producers without one"
    missing = [Problem(codes.PRODUCERS_UNKNOWN, f"{text}: {fault}", unseen=True) for fault in listings.missing]
    return {one.producer_id: one.transactional_id for one in listings.found}, missing


def _open_transaction(
    topic: str,
    bound: Bounds,
    holders: Mapping[Place, ActiveProducer],
    users: Mapping[ProducerId, TransactionalId],
    described: Mapping[TransactionalId, TransactionDescription | KafkaFault],
) -> OpenTransaction:
    """Describe the transaction at one LSO; its coordinator's description counts if it includes the partition."""
    holder = holders.get((topic, bound.partition))
    if holder is None or holder.producer_id not in users:
        return OpenTransaction(topic, bound, holder)
    user = users[holder.producer_id]
    state = described.get(user)
    if not isinstance(state, TransactionDescription) or (topic, bound.partition) not in state.partitions:
        return OpenTransaction(topic, bound, holder, user)
    return OpenTransaction(topic, bound, holder, user, state)


def _unknown_producers(answers: Mapping[Place, Sequence[ActiveProducer] | KafkaFault]) -> Iterator[Problem]:
    for (topic, partition), answer in answers.items():
        if isinstance(answer, KafkaFault):
            message = f"the producers of {topic}-{partition} are unknown: {answer.name} {answer.message}".rstrip()
            yield Problem(codes.PRODUCERS_UNKNOWN, message, unseen=True)


def _holder(answer: Sequence[ActiveProducer] | KafkaFault) -> ActiveProducer | None:
    """Return the producer of the oldest open transaction, as the LSO can't pass its first record."""
    if isinstance(answer, KafkaFault):
        return None
    started = [one for one in answer if one.txn_start_offset is not None]
    return min(started, key=lambda one: one.txn_start_offset or 0, default=None)
