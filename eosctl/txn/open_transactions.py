"""Who holds back the last stable offset of a partition: the producer, its transactional id, and since when."""

from __future__ import annotations

from collections.abc import Sequence

from eosctl.app import App
from eosctl.core.open_transactions import OpenTransaction
from eosctl.core.records import Bounds
from eosctl.core.transactions import ActiveProducer, KafkaFault, TransactionDescription, TransactionListings
from eosctl.errors import EosctlError
from eosctl.ports import TransactionAdmin
from eosctl.report import Problem

Stuck = Sequence[tuple[str, Bounds]]
"""Topics and partitions of theirs, with an LSO behind the end."""


def find_open_transactions(app: App, stuck: Stuck) -> tuple[list[OpenTransaction], list[Problem]]:
    """One for each of `stuck`, with as much as the brokers tell, and warnings for what they don't (Kafka 2.8+)."""
    if not stuck:
        return [], []
    problems: list[Problem] = []
    try:
        with app.transactions() as admin:
            return _ask(admin, stuck, problems), problems
    except EosctlError as exc:
        nobody = [OpenTransaction(topic, bound) for topic, bound in stuck]
        return nobody, [Problem(exc.code, exc.message, hint=exc.hint, severity="warning")]


def _ask(admin: TransactionAdmin, stuck: Stuck, problems: list[Problem]) -> list[OpenTransaction]:
    answers = admin.describe_producers([(topic, bound.partition) for topic, bound in stuck])
    holders = {place: _holder(answer) for place, answer in answers.items()}
    for (topic, partition), answer in answers.items():
        if isinstance(answer, KafkaFault):
            message = f"the producers of {topic}-{partition} can't be told: {answer.name} {answer.message}".rstrip()
            problems.append(Problem("producers_unknown", message, severity="warning"))
    ids = sorted({holder.producer_id for holder in holders.values() if holder is not None})
    listings = admin.list_transactions(producer_ids=ids) if ids else TransactionListings(())
    users = {one.producer_id: one.transactional_id for one in listings.found}
    for fault in listings.missing:
        message = f"some transactional ids are not known, so nothing is said of producers without one: {fault}"
        problems.append(Problem("producers_unknown", message, severity="warning"))
    if listings.missing:
        holders = {place: one if one and one.producer_id in users else None for place, one in holders.items()}
    described = admin.describe_transactions(sorted(set(users.values()))) if users else {}
    found = []
    for topic, bound in stuck:
        holder = holders.get((topic, bound.partition))
        user = users.get(holder.producer_id) if holder is not None else None
        state = described.get(user) if user is not None else None
        accounted = isinstance(state, TransactionDescription) and (topic, bound.partition) in state.partitions
        found.append(OpenTransaction(topic, bound, holder, user, state if accounted else None))  # type: ignore[arg-type]
    return found


def _holder(answer: Sequence[ActiveProducer] | KafkaFault) -> ActiveProducer | None:
    """The producer of the oldest open transaction: the LSO can't pass its first record."""
    if isinstance(answer, KafkaFault):
        return None
    started = [one for one in answer if one.txn_start_offset is not None]
    return min(started, key=lambda one: one.txn_start_offset or 0, default=None)
