"""Whose producer ids are: what the coordinators know of them, else what is left in their log.

A coordinator knows the present producer id of a transactional id. Those that it had before, and those of ids that
expired (`transactional.id.expiration.ms`), are in `__transaction_state` until that is compacted. Who is in neither may
still be a task of the connector: the offsets that it committed say so (`verdict.known_producer`), and nothing else may.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from eosctl.app import App
from eosctl.core.frozen import NamedTuple, frozen
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.records import Record
from eosctl.core.transaction_log import TOPIC, decode_key, decode_value
from eosctl.errors import EosctlError, NotFoundError, ProtocolError

COORDINATOR, TRANSACTION_LOG, OFFSETS_RECORD, UNKNOWN = "coordinator", "transaction_log", "offsets_record", "unknown"
"""How the id behind a producer is known."""
_PRODUCER_ID = slice(2, 10)
"""Where a record of the log has it."""
_OTHERS = re.compile(rb"[\0\1]\x08(?=(.{8}))", re.DOTALL)
"""What may be the id before or the next one: tags 0 and 1, of eight bytes; it finds more than those."""


class Identity(NamedTuple):
    """The transactional id of a producer id, and COORDINATOR or TRANSACTION_LOG."""

    transactional_id: TransactionalId
    identified_by: str


@frozen
class Identities:
    """What is known; `lacks` says who could not be asked, each in a phrase: an unknown id may be known there."""

    known: Mapping[ProducerId, Identity]
    lacks: tuple[str, ...] = ()


def identify(app: App, producer_ids: Collection[ProducerId]) -> Identities:
    """Asks every coordinator for these ids, and reads the log for those that none knows."""
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
                TOPIC, isolation="read_uncommitted", partly=True, sieve=sieve_of(producer_ids), renews=True
            )
    except NotFoundError:
        return {}, []  # nobody has used a transaction yet
    found = logged_ids(read.records, producer_ids)
    known = {producer_id: Identity(name, TRANSACTION_LOG) for producer_id, name in found.items()}
    return known, [f"{TOPIC}-{partition}: {why}" for partition, why in sorted(read.missing.items())]


def sieve_of(producer_ids: Collection[ProducerId]) -> Callable[[Sequence[Record]], Sequence[Record]]:
    """Keeps the records of the log that may name one of these ids; the others are not decoded, for there are many."""
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
    """The transactional id of each of these producer ids that a record names; what can't be decoded names none."""
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
