"""`offsets restore`: undoes a write from its backup; itself planned, backed up and read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from eosctl.app import App
from eosctl.core.allowances import NOTHING_WAIVED, Allowances
from eosctl.core.offsets.views import fold_hidden
from eosctl.core.wording import counted, rfc3339
from eosctl.engine.backups.entries import BackupEntries, PresentRecords, keys_of, restored, values_of
from eosctl.engine.planned import PlannedWrites
from eosctl.errors import InputFileError, RefusedError
from eosctl.foreign import arguments, shell_word
from eosctl.offsets.files import codes
from eosctl.offsets.files.backup import away_problems, look_at_parts, read_entries
from eosctl.offsets.files.newer_records import likely_writers
from eosctl.offsets.rows import MOST_ROWS, value_json
from eosctl.offsets.stores.gather import OffsetStores
from eosctl.offsets.stores.on_disk import spool_of, writing_to
from eosctl.offsets.write_rows import RESTORE, Newer
from eosctl.offsets.writes import OffsetWritePlan, refuse_hidden_keys
from eosctl.report import Problem
from eosctl.txn.parts import owner_part

if TYPE_CHECKING:
    from eosctl.engine.columns import Table
    from eosctl.engine.files import SpilledTable


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
                owner=None if writer is None else owner_part(writer[1]),
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
