"""Open transactions, by what coordinators list, and how many were aborted since the collector began. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eosctl.app import App
from eosctl.collect.facts import GroupFacts, OwnedTransaction, TransactionFacts
from eosctl.collect.overview import Overview
from eosctl.core.ids import Owner, TransactionalId, owner_of
from eosctl.core.transactions import (
    OPEN_STATES,
    OPEN_STATES_BEFORE_4,
    KafkaFault,
    TransactionDescription,
    TransactionListings,
    TransactionState,
)
from eosctl.errors import UnsupportedError
from eosctl.ports import TransactionAdmin

MOST_DESCRIBED = 5_000
"""Of more aborted ids than this no more are asked for: brokers keep those that nobody uses for a week."""

_Aborted = tuple[int, int | None]
"""The producer id and the start of an aborted transaction."""


@dataclass(slots=True)
class TransactionLook:
    """Lists what is open or was aborted last; remembers which abort of each id it has counted."""

    counts: dict[str, int] = field(default_factory=dict)
    counted: dict[TransactionalId, _Aborted] | None = None

    def __call__(self, app: App, overview: Overview) -> TransactionFacts:
        """Raises what the connection raises; coordinators that can't be asked are counted."""
        with app.transactions() as admin:
            listings = _listed(admin)
            described = _described(admin, listings)
        group_id, group = app.target.group_id, overview.facts(GroupFacts)
        names = frozenset(each.name for each in (group.connectors or ())) if group else frozenset()
        self._count(described, group_id)
        now_open = [
            _open_transaction(each, owner_of(each.transactional_id, group_id, names))
            for each in described
            if each.state is not TransactionState.COMPLETE_ABORT and each.started_ms is not None
        ]
        now_open.sort(key=lambda each: each.started_ms)
        return TransactionFacts(tuple(now_open), dict(self.counts), len(listings.missing))

    def _count(self, described: Iterable[TransactionDescription], group_id: str | None) -> None:
        """Counts aborts that the last look had not; those of the first look were before the collector."""
        aborted = {
            each.transactional_id: (int(each.producer_id), each.last_started_ms)
            for each in described
            if each.state is TransactionState.COMPLETE_ABORT
        }
        for transactional_id, which in aborted.items() if self.counted is not None else ():
            if (self.counted or {}).get(transactional_id) != which:
                connector = owner_of(transactional_id, group_id).connector or ""
                self.counts[connector] = self.counts.get(connector, 0) + 1
        self.counted = aborted


def _listed(admin: TransactionAdmin) -> TransactionListings:
    """What is open or aborted; brokers before 4.0 refuse to filter by a state that they do not know."""
    aborted = TransactionState.COMPLETE_ABORT
    try:
        return admin.list_transactions(states=[*OPEN_STATES, aborted])
    except UnsupportedError:
        return admin.list_transactions(states=[*OPEN_STATES_BEFORE_4, aborted])


def _described(admin: TransactionAdmin, listings: TransactionListings) -> list[TransactionDescription]:
    aborted = [each.transactional_id for each in listings.found if each.state is TransactionState.COMPLETE_ABORT]
    ids = [each.transactional_id for each in listings.found if each.state is not TransactionState.COMPLETE_ABORT]
    found: Mapping[TransactionalId, TransactionDescription | KafkaFault] = (
        admin.describe_transactions([*ids, *aborted[:MOST_DESCRIBED]]) if ids or aborted else {}
    )
    return [each for each in found.values() if isinstance(each, TransactionDescription)]


def _open_transaction(told: TransactionDescription, owner: Owner) -> OwnedTransaction:
    return OwnedTransaction(
        told.transactional_id,
        owner,
        told.state.value,
        told.started_ms or 0,
        told.transaction_timeout_ms,
        int(told.producer_id),
        tuple(sorted({topic for topic, _partition in told.partitions})),
    )
