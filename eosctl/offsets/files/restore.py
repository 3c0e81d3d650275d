"""`offsets restore`: undoes a write from its backup; itself planned, backed up and read back.

The owners of records that were written over ours are found by the partition's producers and their transactional ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from eosctl.app import App
from eosctl.core.allowances import NOTHING_WAIVED, Allowances
from eosctl.core.ids import Owner, ProducerId, TransactionalId, owner_of
from eosctl.core.offsets.views import fold_hidden
from eosctl.core.records import Place, Record
from eosctl.core.transactions import ActiveProducer, KafkaFault
from eosctl.core.wording import counted, rfc3339
from eosctl.engine.backups.entries import BackupEntries, PresentRecords, keys_of, restored, values_of
from eosctl.engine.planned import PlannedWrites
from eosctl.errors import EosctlError, InputFileError, RefusedError
from eosctl.foreign import arguments, shell_word
from eosctl.offsets import codes
from eosctl.offsets.files.backup import away_problems, look_at_parts, read_entries
from eosctl.offsets.rows import MOST_ROWS, value_json
from eosctl.offsets.stores.gather import OffsetStores
from eosctl.offsets.stores.on_disk import spool_of, writing_to
from eosctl.offsets.write_rows import RESTORE, Newer
from eosctl.offsets.writes import OffsetWritePlan, refuse_hidden_keys
from eosctl.report import Problem

if TYPE_CHECKING:
    from eosctl.engine.columns import Table
    from eosctl.engine.files import SpilledTable


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


class RestoreRequest(Struct, frozen=True):
    """The backup to restore; `overwrite_newer` also replaces later writes of others."""

    path: str
    overwrite_newer: bool = False
    allowances: Allowances = NOTHING_WAIVED


def plan_restore(app: App, request: RestoreRequest) -> OffsetWritePlan:
    """Compare each key of the backup with its present record.

    A key that had no record gets a tombstone, which Connect reads as no offset; keys that Connect ignores are restored
    like all others. Raises InputFileError, NotFoundError for a topic that is gone, RefusedError for the backup of
    another cluster, and if an open transaction may hide a later write of others.
    """
    backup = read_entries(app, request.path)
    if backup.has_keyless:
        raise InputFileError(f"{request.path} holds a record without a key", hint="Is it a backup that eosctl wrote?")

    spool = spool_of(app)

    def plan(entries: Table, now: PresentRecords) -> Table | SpilledTable:
        for topic in sorted({record.topic for record in now.hidden}):
            hidden, _keys = fold_hidden(record for record in now.hidden if record.topic == topic)
            refuse_hidden_keys(app, topic, hidden, keys_of(entries, topic))
        writes = restored(entries, now, overwrite_newer=request.overwrite_newer)
        if not backup.is_large():
            return writes
        with writing_to(spool, need="A large restore needs about three times the size of the file there."):
            return spool.put(writes)

    looked = look_at_parts(app, backup, plan, absent_topics=True)
    found, writes = looked.stores, PlannedWrites(looked.parts)
    _refuse_gone_partitions(request.path, backup, found)
    return OffsetWritePlan(
        kinds=RESTORE,
        writes=writes,
        creates=(),
        found=found,
        allowances=request.allowances,
        problems=(*_problems(backup, writes), *away_problems(looked)),
        details=_newer_details(app, backup, writes),
    )


def _refuse_gone_partitions(path: str, backup: BackupEntries, found: OffsetStores) -> None:
    """Raise RefusedError if a topic now has fewer partitions than its records in the backup need."""
    for topic, description in sorted(found.descriptions.items()):
        gone = max(backup.partitions[topic])
        if gone >= description.partitions:
            raise RefusedError(
                f"{path} has records of partition {gone} of topic {topic}, which has "
                f"{counted(description.partitions, 'partition')} now; nothing was written",
                hint=f"`eosctl offsets import --store {shell_word(topic)} {arguments(path)}` puts each where Connect's "
                "producer puts its key now.",
            )


def _newer_details(
    app: App, backup: BackupEntries, writes: PlannedWrites
) -> dict[tuple[str, bytes, int], Mapping[str, object]]:
    """Return, for shown keys that others wrote later, the offset in the backup and the owner of the newer record."""
    if not writes.conflicts:
        return {}
    newer = [write for write, _outcome in writes.first(MOST_ROWS) if write.conflict]
    present = [(write.before, write.key.connector) for write in newer]
    writers = iter(likely_writers(app, [(record, name) for record, name in present if record is not None]))
    kept = values_of(backup.tables(), [write.place() for write in newer])
    details: dict[tuple[str, bytes, int], Mapping[str, object]] = {}
    for write in newer:
        record = write.before
        writer = None if record is None else next(writers)
        details[write.place()] = {
            "backup": value_json(kept[write.place()]),
            "newer": None
            if record is None
            else Newer(
                offset=record.offset,
                timestamp=rfc3339(record.timestamp_ms),
                transactional_id=None if writer is None else writer[0],
                owner=None if writer is None else writer[1],
            ),
        }
    return details


def _problems(backup: BackupEntries, writes: PlannedWrites) -> Iterable[Problem]:
    absent = writes.reasons["absent_before"]
    if absent:
        yield Problem(
            codes.ABSENT_BEFORE,
            f"{counted(absent, 'key')} had no record before; such a key gets a tombstone, read as no offset",
        )
    unchecked = backup.unchecked
    if unchecked:
        yield Problem(
            codes.UNCHECKED,
            f"for {counted(unchecked, 'key')} the file does not have what was written there, so a later write by "
            "someone else would not be noticed",
        )
