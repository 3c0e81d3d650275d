"""Finds the owners of records that were written over ours, by the partition's producers and their transactional ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eosctl.app import App
from eosctl.core.ids import Owner, ProducerId, TransactionalId, owner_of
from eosctl.core.records import Record
from eosctl.core.transactions import ActiveProducer, KafkaFault
from eosctl.errors import EosctlError

Place = tuple[str, int]
Writer = tuple[str, Owner]
"""A transactional id, and its owner."""


def likely_writers(app: App, records: Sequence[tuple[Record, str | None]]) -> list[Writer | None]:
    """Return the likely writer of each record, paired with the connector that its key names; None if unknown.

    Brokers know when a producer last wrote to a partition, not which records. So only a task of the connector or eosctl
    is believed, and only if no other of them has written since. Workers without exactly-once have no such id.
    """
    if not records:
        return []
    places = sorted({(record.topic, record.partition) for record, _connector in records})
    try:
        with app.transactions() as admin:
            answers = admin.describe_producers(places)
            known = (answer for answer in answers.values() if not isinstance(answer, KafkaFault))
            ids = {one.producer_id for answer in known for one in answer}
            listed = admin.list_transactions(producer_ids=sorted(ids)).found if ids else ()
    except EosctlError:
        return [None] * len(records)
    users = {transaction.producer_id: transaction.transactional_id for transaction in listed}
    return [_writer(app, record, connector, answers, users) for record, connector in records]


def _writer(
    app: App,
    record: Record,
    connector: str | None,
    answers: Mapping[Place, Sequence[ActiveProducer] | KafkaFault],
    users: Mapping[ProducerId, TransactionalId],
) -> Writer | None:
    answer = answers.get((record.topic, record.partition), ())
    producers = () if isinstance(answer, KafkaFault) else answer
    since = (one.producer_id for one in producers if one.last_timestamp_ms >= record.timestamp_ms)
    names = sorted({users[producer_id] for producer_id in since if producer_id in users})
    found = [(name, owner_of(name, app.target.group_id)) for name in names]
    believed = [(name, owner) for name, owner in found if owner.kind == "eosctl" or owner.connector == connector]
    return believed[0] if len(believed) == 1 and connector is not None else None
