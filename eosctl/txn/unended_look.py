"""Looks for transactions that their coordinators ought to have ended and have not. Reads only.

Each is looked at twice; since when its end is decided is in the coordinators' log. What may keep a coordinator from it
is looked at only where there is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.java.properties import whole_number
from eosctl.core.records import TopicDescription
from eosctl.core.transaction_log import TOPIC, coordinator_partition
from eosctl.core.transactions import KafkaFault, TransactionDescription, TransactionListings
from eosctl.core.versions import Version, release_of, transaction_version
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.report import Problem
from eosctl.txn.hanging import unjudged
from eosctl.txn.list import list_open_longer_than
from eosctl.txn.log import NewestLogged, read_newest
from eosctl.txn.report import Partition, id_problem, missing_ids_problems
from eosctl.txn.rules import PREPARED
from eosctl.txn.unended import LASTING_MS, EndEvidence, UnendedTransaction, dated, is_same, is_suspect

_PATIENCE_S = 10.0
_AGAIN_S, _LONGER_S = 1.0, 5.0
"""When it is looked at again; longer where its log can't be read."""


class UnendedLook(Struct, frozen=True):
    """The transactions that ought to have ended, and what could not be asked for."""

    found: Sequence[UnendedTransaction] = ()
    listings: TransactionListings = TransactionListings(())
    silent: Mapping[TransactionalId, KafkaFault] = {}

    def problems(self, app: App) -> list[Problem]:
        """Return the problems of what could not be looked at."""
        unknown = [id_problem(app, name, fault, "describe") for name, fault in self.silent.items()]
        return [*missing_ids_problems(self.listings), *unknown]

    def unanswered(self) -> list[KafkaFault]:
        """Return the faults of what could not be looked at."""
        return [*self.listings.missing, *self.silent.values()]


def look_for_unended(app: App) -> UnendedLook:
    """Find the transactions of everybody that ought to have ended; raises UnsupportedError before Kafka 3.0."""
    with app.transactions() as admin:
        listings = list_open_longer_than(app, admin, LASTING_MS)
        ids = [each.transactional_id for each in listings.found]
        described = admin.describe_transactions(ids) if ids else {}
    found = examine_unended(app, [each for each in described.values() if isinstance(each, TransactionDescription)])
    return UnendedLook(found, listings, unjudged(described))


def examine_unended(
    app: App, described: Iterable[TransactionDescription], *, least_ms: int = LASTING_MS
) -> list[UnendedTransaction]:
    """Return those that ought to have ended for so long, after a second look, with what is around them."""
    now_ms = app.clock.now_ms()
    suspects = {each.transactional_id: each for each in described if is_suspect(each, now_ms)}
    if not suspects:
        return []
    same = _still_same(app, suspects, after_s=_AGAIN_S)
    newest = read_newest(app, [name for name, each in same.items() if each.state in PREPARED])
    found = [_dated(each, newest.get(name)) for name, each in same.items()]
    undated = {each.state.transactional_id: each.state for each in found if not each.is_certain}
    still = _still_same(app, undated, after_s=_LONGER_S)
    lasting = [
        each
        for each in found
        if (
            each.state.transactional_id in still
            if each.since_ms is None
            else max(0, now_ms - each.since_ms) >= least_ms
        )
    ]
    around = _surroundings(app, [each.state for each in lasting]) if lasting else {}
    return [replace(each, around=around[each.state.transactional_id]) for each in lasting]


def _dated(state: TransactionDescription, newest: NewestLogged | None) -> UnendedTransaction:
    return dated(state, *((None, "") if newest is None else (newest.logged, newest.unread)))


_States = Mapping[TransactionalId, TransactionDescription]


def _still_same(app: App, states: _States, *, after_s: float) -> _States:
    """Return those that are the same after some seconds."""
    if not states:
        return {}
    app.deadline.sleep(after_s)
    with app.transactions() as admin:
        again = admin.describe_transactions(list(states))
    return {name: each for name, each in states.items() if is_same(each, again.get(name))}


def _surroundings(app: App, states: Sequence[TransactionDescription]) -> Mapping[TransactionalId, EndEvidence]:
    """Look at the partitions of the transactions, at their coordinators' log and versions, as far as that can be."""
    patient = replace(app, deadline=app.deadline.half(at_most_s=_PATIENCE_S))
    topics, why = _described_topics(patient, {topic for each in states for topic, _partition in each.partitions})
    placed = {(name, each.partition): each for name, topic in topics.items() for each in topic.placements}
    headless = {place for place, each in placed.items() if each.leader is None}
    low = {
        (name, each.partition)
        for name, topic in topics.items()
        for each in topic.placements
        if each.leader is not None
        and len(each.in_sync) < min(whole_number(topic.config.get("min.insync.replicas", "")) or 0, len(each.replicas))
    }  # where there are fewer replicas than that, brokers from 3.7 on take their number (KAFKA-15583)
    asked = {place for each in states for place in each.partitions} - headless
    opened, unread = _open_places(patient, asked)
    features, level = _versions(patient)
    log = topics.get(TOPIC)
    found = {}
    for each in states:
        mine = each.partitions
        log_place = None if log is None else (TOPIC, coordinator_partition(each.transactional_id, log.partitions))
        found[each.transactional_id] = EndEvidence(
            headless=_names(place for place in mine if place in headless),
            below_min_isr=_names(place for place in mine if place in low),
            log_below_min_isr=None if log_place not in low or log_place is None else _names([log_place])[0],
            open_at=_names(place for place in mine if (each.producer_id, place) in opened),
            ended_at=_names(
                place
                for place in mine
                if place in asked and place not in unread and (each.producer_id, place) not in opened
            ),
            unread=(*((why,) if why else ()), *(text for place, text in unread.items() if place in mine)),
            release=features.get(each.coordinator.node_id),
            transaction_version=level,
            log_partition=None if log_place is None else log_place[1],
            replicas=tuple(sorted({one for place in mine if place in headless for one in placed[place].replicas})),
        )
    return found


def _names(places: Iterable[Partition]) -> tuple[str, ...]:
    return tuple(f"{topic}-{partition}" for topic, partition in places)


def _described_topics(app: App, names: Collection[str]) -> tuple[Mapping[str, TopicDescription], str]:
    try:
        with app.topics() as store:
            return store.describe([*sorted(names), TOPIC]), ""
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return {}, f"the replicas of its partitions: {exc.message}"


def _open_places(
    app: App, places: Collection[Partition]
) -> tuple[set[tuple[ProducerId, Partition]], Mapping[Partition, str]]:
    """Return where which producer has a transaction open, and why that is not known of other places."""
    try:
        with app.transactions() as admin:
            answers = admin.describe_producers(sorted(places), only_open=True) if places else {}
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return set(), dict.fromkeys(places, exc.message)
    unread = {
        place: f"{place[0]}-{place[1]}: {answer}" for place, answer in answers.items() if isinstance(answer, KafkaFault)
    }
    opened = {
        (one.producer_id, place)
        for place, answer in answers.items()
        if not isinstance(answer, KafkaFault)
        for one in answer
        if one.txn_start_offset is not None
    }
    return opened, unread


def _versions(app: App) -> tuple[Mapping[int, Version | None], int | None]:
    try:
        with app.transactions() as admin:
            features = admin.features().known
    except InterruptedByUserError:
        raise
    except EosctlError:
        return {}, None
    return {node: release_of(each) for node, each in features.items()}, transaction_version(features)
