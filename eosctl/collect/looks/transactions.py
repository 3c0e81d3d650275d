"""Open transactions, as coordinators list them, and the aborted ones since the collector began. Reads only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eosctl.app import App
from eosctl.collect.facts import MOST_ABORTING, GroupFacts, OwnedTransaction, TransactionFacts
from eosctl.collect.overview import Overview
from eosctl.core.ids import Owner, TransactionalId, owner_of
from eosctl.core.transactions import (
    OPEN_STATES,
    OPEN_STATES_BEFORE_4,
    TRANSACTIONAL_ID_NOT_FOUND,
    KafkaFault,
    TransactionDescription,
    TransactionListings,
    TransactionState,
)
from eosctl.errors import UnsupportedError
from eosctl.ports import TransactionAdmin
from eosctl.txn.applications.readings import ClusterFacts, readings_of

MOST_DESCRIBED = 5_000
"""At most so many aborted ids are described: brokers keep unused ids for a week."""
MOST_REMEMBERED = 20_000
MOST_PREFIXES = 100
"""The number of distinct prefixes of others' ids, the first ones: metrics have a series for each, and keep it."""
_LATE_MS = 120_000
"""The delay of an abort after its timeout, and the difference of clocks, at most."""

_WORDS = re.compile(r"(?:[^-_.:/0-9]+[-_.:/]+)+")
_Aborted = tuple[int, int | None]
"""The producer id and the start of an aborted transaction."""


@dataclass(slots=True)
class TransactionLook:
    """Lists open and aborted transactions; remembers which abort of each id it has seen.

    The ids of a coordinator that can't be asked are missing for a while: when they come back, they are no new aborts.
    """

    counts: dict[str, int] = field(default_factory=dict)
    seen: dict[TransactionalId, _Aborted] = field(default_factory=dict)
    prefixes: dict[str, None] = field(default_factory=dict)
    looked_ms: int | None = None

    def __call__(self, app: App, overview: Overview) -> TransactionFacts:
        """Find open transactions. Raises the connection's error; coordinators that can't be asked are counted."""
        with app.transactions() as admin:
            listings = _listed(admin)
            found = _described(admin, listings, app.target.group_id)
        described = [each for each in found.values() if isinstance(each, TransactionDescription)]
        unread = _unread(listings, found)
        group_id, group = app.target.group_id, overview.newest(GroupFacts)
        names = frozenset(each.name for each in (group.connectors or ())) if group else frozenset()
        self._count(described, group_id, app.clock.now_ms())
        now_open = [
            self._open_transaction(each, owner_of(each.transactional_id, group_id, names))
            for each in described
            if each.state is not TransactionState.COMPLETE_ABORT and each.started_ms is not None
        ]
        now_open.sort(key=lambda each: each.started_ms)
        return TransactionFacts(tuple(now_open), dict(self.counts), len(listings.missing) + unread)

    def _open_transaction(self, described: TransactionDescription, owner: Owner) -> OwnedTransaction:
        return OwnedTransaction(
            described.transactional_id,
            owner,
            described.state.value,
            described.started_ms or 0,
            described.transaction_timeout_ms,
            int(described.producer_id),
            tuple(sorted({topic for topic, _partition in described.partitions})),
            None if owner.kind in ("task", "leader") else self._prefix(described.transactional_id),
        )

    def _prefix(self, transactional_id: TransactionalId) -> str:
        """Return its prefix if that is one of the first seen, else none: applications may come and go without end."""
        prefix = prefix_of(transactional_id)
        if len(self.prefixes) < MOST_PREFIXES:
            self.prefixes[prefix] = None
        return prefix if prefix in self.prefixes else ""

    def _count(self, described: Iterable[TransactionDescription], group_id: str | None, now_ms: int) -> None:
        """Count aborts that no look has seen yet, except those of the first look, which precede the collector."""
        for each in described:
            if each.state is not TransactionState.COMPLETE_ABORT:
                continue
            which = int(each.producer_id), each.last_started_ms
            if self.seen.pop(each.transactional_id, None) != which and self._is_new(each):
                connector = owner_of(each.transactional_id, group_id).connector or ""
                if connector not in self.counts and len(self.counts) >= MOST_ABORTING:
                    connector = ""
                self.counts[connector] = self.counts.get(connector, 0) + 1
            self.seen[each.transactional_id] = which
        for oldest in list(self.seen)[: max(0, len(self.seen) - MOST_REMEMBERED)]:
            del self.seen[oldest]
        self.looked_ms = now_ms

    def _is_new(self, aborted: TransactionDescription) -> bool:
        """Check whether it can have ended after the last look: no transaction outlives its timeout."""
        if self.looked_ms is None:
            return False
        started_ms = aborted.last_started_ms
        return started_ms is None or started_ms + aborted.transaction_timeout_ms + _LATE_MS > self.looked_ms


def _listed(admin: TransactionAdmin) -> TransactionListings:
    """List open and aborted transactions; brokers before 4.0 refuse to filter by a state that they do not know."""
    aborted = TransactionState.COMPLETE_ABORT
    try:
        return admin.list_transactions(states=[*OPEN_STATES, aborted])
    except UnsupportedError:
        return admin.list_transactions(states=[*OPEN_STATES_BEFORE_4, aborted])


def _described(
    admin: TransactionAdmin, listings: TransactionListings, group_id: str | None
) -> Mapping[TransactionalId, TransactionDescription | KafkaFault]:
    """Describe the open transactions and the first aborted ones, the group's first, always in the same order."""
    aborted = [each.transactional_id for each in listings.found if each.state is TransactionState.COMPLETE_ABORT]
    aborted.sort(key=lambda each: (not each.startswith(f"{group_id}-"), each))
    ids = [each.transactional_id for each in listings.found if each.state is not TransactionState.COMPLETE_ABORT]
    return admin.describe_transactions([*ids, *aborted[:MOST_DESCRIBED]]) if ids or aborted else {}


def _unread(listings: TransactionListings, found: Mapping[TransactionalId, TransactionDescription | KafkaFault]) -> int:
    """Count the open transactions that the coordinator did not describe; an id unknown to it has ended."""
    faults = {
        transactional_id
        for transactional_id, each in found.items()
        if isinstance(each, KafkaFault) and each.code != TRANSACTIONAL_ID_NOT_FOUND
    }
    is_open = (each.transactional_id for each in listings.found if each.state is not TransactionState.COMPLETE_ABORT)
    return sum(each in faults for each in is_open)


def prefix_of(transactional_id: TransactionalId) -> str:
    """Return the part that the id shares with others of its application, by its shape; empty where there is none.

    It is the same for one id at all times, whatever other ids exist.
    """
    readings = readings_of(transactional_id, ClusterFacts())
    if readings:
        return readings[0].name
    words = _WORDS.match(transactional_id)
    return words[0] if words is not None else ""
