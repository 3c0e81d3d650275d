"""The owners of producer ids: as the coordinators know them, else from the coordinators' log.

A coordinator knows the present producer id of a transactional id. Former ones, and those of ids that expired
(`transactional.id.expiration.ms`), are in `__transaction_state` until that is compacted. A producer that is in neither
may still be a task of the connector: only the offsets that it committed can show that (`verdict.known_producer`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from eosctl.app import App
from eosctl.audit.scope import Scope
from eosctl.core.batches import Place, ScanPlan
from eosctl.core.ids import ProducerId, TransactionalId, task_of
from eosctl.core.records import Record
from eosctl.core.transaction_log import TOPIC, decode_key, decode_value
from eosctl.core.transactions import TransactionDescription, TransactionState
from eosctl.errors import EosctlError, NotFoundError, ProtocolError
from eosctl.offsets.history.events import ConnectorFilter

COORDINATOR, TRANSACTION_LOG, OFFSETS_RECORD, UNKNOWN = "coordinator", "transaction_log", "offsets_record", "unknown"
"""The sources by which a producer's id is known."""
_ENDING = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
_PRODUCER_ID = slice(2, 10)
"""The position of the producer id in a record of the log."""
_OTHERS = re.compile(rb"[\0\1]\x08(?=(.{8}))", re.DOTALL)
"""The tagged fields 0 and 1, of eight bytes, which may be the previous or the next producer id; it matches more than
those."""


class Identity(NamedTuple):
    """The transactional id of a producer id, and COORDINATOR or TRANSACTION_LOG."""

    transactional_id: TransactionalId
    identified_by: str


class Identities(Struct, frozen=True):
    """The identities of producer ids. `lacks` has a phrase per unreadable source, which may know the missing ones."""

    known: Mapping[ProducerId, Identity]
    lacks: tuple[str, ...] = ()


def identify(app: App, producer_ids: Collection[ProducerId]) -> Identities:
    """Ask every coordinator for these ids, and read the log for those that no coordinator knows."""
    known: dict[ProducerId, Identity] = {}
    lacks: list[str] = []
    for ask in (_ask_coordinators, _read_log):
        open_ids = sorted({each for each in producer_ids if each >= 0 and each not in known})
        if not open_ids:
            break
        try:
            found, why_not = ask(app.with_whole_timeout(), open_ids)
        except EosctlError as exc:
            lacks.append(exc.message)
        else:
            known |= found
            lacks += why_not
    unknown = [each for each in producer_ids if each >= 0 and each not in known]
    return Identities(known, tuple(lacks) if unknown else ())


def _ask_coordinators(app: App, producer_ids: Sequence[ProducerId]) -> tuple[dict[ProducerId, Identity], Sequence[str]]:
    with app.transactions() as admin:
        listings = admin.list_transactions(producer_ids=producer_ids)
    known = {each.producer_id: Identity(each.transactional_id, COORDINATOR) for each in listings.found}
    return known, [str(fault) for fault in listings.missing]


def _read_log(app: App, producer_ids: Sequence[ProducerId]) -> tuple[dict[ProducerId, Identity], Sequence[str]]:
    try:
        with app.topics() as store:
            read = store.read(
                TOPIC, isolation="read_uncommitted", partly=True, keep=make_filter(producer_ids), renews=True
            )
    except NotFoundError:
        return {}, []  # nobody has used a transaction yet
    found = logged_ids(read.records, producer_ids)
    known = {producer_id: Identity(name, TRANSACTION_LOG) for producer_id, name in found.items()}
    return known, [f"{TOPIC}-{partition}: {why}" for partition, why in sorted(read.missing.items())]


def make_filter(producer_ids: Collection[ProducerId]) -> Callable[[Sequence[Record]], Sequence[Record]]:
    """Return a filter that keeps records of the log that may name one of these ids; the many others are not decoded."""
    wanted = frozenset(each.to_bytes(8, "big") for each in producer_ids)

    def keep(records: Sequence[Record]) -> Sequence[Record]:
        return [
            record
            for record in records
            if (value := record.value) is not None
            and (value[_PRODUCER_ID] in wanted or not wanted.isdisjoint(_OTHERS.findall(value)))
        ]

    return keep


def logged_ids(records: Sequence[Record], producer_ids: Collection[ProducerId]) -> dict[ProducerId, TransactionalId]:
    """Return the transactional id of each of these producer ids that a record names; skip records that can't be
    decoded.
    """
    wanted, found = frozenset(producer_ids), dict[ProducerId, TransactionalId]()
    for record in records:
        try:
            name, logged = decode_key(record.key or b""), decode_value(record.value or b"")
        except ProtocolError:
            continue
        for producer_id in (logged.producer_id, logged.previous_producer_id, logged.next_producer_id):
            if producer_id in wanted and producer_id is not None:
                found[producer_id] = name
    return found


def unended_places(
    app: App, producer_ids: Collection[ProducerId]
) -> Mapping[ProducerId, Collection[tuple[int, Place]]]:
    """Ask the coordinators which partitions still wait for a marker, of those of these producers that they know.

    Gives each with the epoch of its transaction; of one that is about to end, that may have been raised already.
    """
    try:
        names, _lacks = _ask_coordinators(app, sorted(producer_ids))
        with app.transactions() as admin:
            described = admin.describe_transactions(sorted({each.transactional_id for each in names.values()}))
    except EosctlError:
        return {}
    return {
        each.producer_id: {
            (epoch, (topic, partition))
            for epoch in range(each.producer_epoch - (each.state in _ENDING), each.producer_epoch + 1)
            for topic, partition in each.partitions
            if each.state in (TransactionState.ONGOING, *_ENDING)
        }
        for each in described.values()
        if isinstance(each, TransactionDescription)
    }


def former_connectors(scope: Scope, ids: Mapping[ProducerId, TransactionalId], plan: ScanPlan) -> frozenset[str]:
    """Return the group's deleted connectors whose offsets these producers committed under their ids.

    An id counts as one of the group's tasks only if the same producer committed offsets of that connector in an offsets
    topic of the group.
    """
    wanted = {
        producer_id: work[0]
        for producer_id, name in ids.items()
        if (work := task_of(name, scope.app.target.group_id or "")) is not None
    }
    found = set(wanted.values()) & scope.recorded
    left = {producer_id: name for producer_id, name in wanted.items() if name not in found}
    if not left:
        return frozenset(found)
    places: dict[Place, dict[int, str]] = {}
    sieves = [ConnectorFilter(name) for name in sorted(set(left.values()))]

    def look(records: Sequence[Record]) -> Sequence[Record]:
        for sieve in sieves:
            for record in sieve(records):
                places.setdefault((record.topic, record.partition), {})[record.offset] = sieve.connector
        return ()

    with scope.app.with_whole_timeout().topics() as store:
        for topic in scope.offsets_topics:
            since = {span.partition: span.first for span in plan.spans if span.topic == topic}
            store.read(topic, isolation="read_uncommitted", partly=True, since=since, keep=look, renews=True)
    with scope.app.batches() as log:
        for batch in log.scan(plan):
            there = places.get((batch.topic, batch.partition))
            name = left.get(batch.producer_id)
            if name is None or not there or batch.is_control:
                continue
            if any(there.get(at) == name for at in range(batch.base_offset, batch.last_offset + 1)):
                found.add(name)
    return frozenset(found)
