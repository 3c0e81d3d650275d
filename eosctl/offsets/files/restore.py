"""`offsets restore`: the inverse of a write, from the backup that it kept; itself planned, backed up and read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from eosctl.app import App
from eosctl.core.allowances import NOTHING_WAIVED, Allowances
from eosctl.core.offsets.decision import KeyAction
from eosctl.core.offsets.records import decode_key, is_nothing
from eosctl.core.offsets.views import PlannedWrite, Store
from eosctl.core.records import Record
from eosctl.core.wording import counted
from eosctl.engine.planned import PlannedWrites
from eosctl.errors import InputFileError, RefusedError
from eosctl.offsets.apply import prepare_writes
from eosctl.offsets.files import codes
from eosctl.offsets.files.newer_records import likely_writers
from eosctl.offsets.rows import value_json
from eosctl.offsets.stores.gather import OffsetStores, gather_topics
from eosctl.offsets.write_rows import RESTORE, Newer
from eosctl.offsets.writes import OffsetWritePlan, refuse_hidden_keys
from eosctl.plan import Plan
from eosctl.report import Problem, rfc3339
from eosctl.state.backups import BackupEntry, read_backup
from eosctl.txn.parts import owner_part


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """Which backup; `overwrite_newer` also takes back what someone else wrote since."""

    path: str
    overwrite_newer: bool = False
    allowances: Allowances = NOTHING_WAIVED


def prepare_restore(app: App, request: RestoreRequest) -> Plan:
    """The plan to put back what a backup holds; raises as `plan_restore`."""
    again = partial(plan_restore, app, request)
    return prepare_writes(app, again(), again, verb="Restore")


def plan_restore(app: App, request: RestoreRequest) -> OffsetWritePlan:
    """Compares each key of the backup with what is there now.

    A key that had no record gets a tombstone, which Connect reads as no offset; keys that Connect ignores are put back
    like all others. Raises InputFileError, NotFoundError for a topic that is gone, RefusedError for the backup of
    another cluster, and where an open transaction may hide what someone wrote since.
    """
    whole = read_backup(request.path)
    _refuse_other_cluster(app, whole, path=request.path)
    entries = _of_topics_that_were_made(app, whole)
    found = gather_backup_topics(app, entries, path=request.path)
    for topic, store in found.stores.items():
        refuse_hidden_keys(app, store, (entry.before.key for entry in entries if entry.before.topic == topic))
    writes = [_planned(entry, found.stores[entry.before.topic], request) for entry in entries]
    newer = [(entry, write) for entry, write in zip(entries, writes, strict=True) if write.conflict]
    return OffsetWritePlan(
        kinds=RESTORE,
        writes=PlannedWrites.of(writes),
        creates=(),
        found=found,
        allowances=request.allowances,
        problems=tuple(_problems(entries, writes)),
        details=_newer_details(app, newer),
    )


def _newer_details(
    app: App, newer: Sequence[tuple[BackupEntry, PlannedWrite]]
) -> dict[tuple[str, bytes, int], Mapping[str, object]]:
    """Of keys that someone else wrote since: what the backup has, and whose the newer record is."""
    there = [(write.before, write.key.connector) for _entry, write in newer]
    writers = iter(likely_writers(app, [(record, name) for record, name in there if record is not None]))
    details: dict[tuple[str, bytes, int], Mapping[str, object]] = {}
    for entry, write in newer:
        record = write.before
        writer = None if record is None else next(writers)
        details[write.place()] = {
            "backup": value_json(entry.before.value),
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


def _of_topics_that_were_made(app: App, entries: Sequence[BackupEntry]) -> list[BackupEntry]:
    """Without those of a topic that a cut-off write had yet to create: there is nothing to take back."""
    with app.topics() as topics:
        there = topics.describe(sorted({entry.before.topic for entry in entries}))
    return [entry for entry in entries if entry.before.topic in there or not entry.was_absent()]


def gather_backup_topics(app: App, entries: Sequence[BackupEntry], *, path: str) -> OffsetStores:
    """Reads the topics of a backup; raises RefusedError for that of another cluster, NotFoundError for a topic gone."""
    _refuse_other_cluster(app, entries, path=path)
    return gather_topics(app, sorted({entry.before.topic for entry in entries}))


def _refuse_other_cluster(app: App, entries: Sequence[BackupEntry], *, path: str) -> None:
    with app.topics() as topics:
        here = topics.cluster_id()
    others = sorted({entry.cluster_id for entry in entries if entry.cluster_id not in (None, here)} - {None})
    if others:
        raise RefusedError(
            f"{path} is a backup of cluster {others[0]}, this is {here}; nothing was written",
            hint="Check -b, or name the profile of that cluster with -p.",
        )


def _planned(entry: BackupEntry, store: Store, request: RestoreRequest) -> PlannedWrite:
    key = decode_key(entry.before.key)
    if entry.before.key is None:
        raise InputFileError(f"{request.path} holds a record without a key", hint="Is it a backup that eosctl wrote?")
    there = store.at(key.raw, entry.before.partition)
    action, reason = _decide(entry, there)
    conflict = reason == "written_since"
    if conflict and not request.overwrite_newer:
        action = KeyAction.CONFLICT
    current = there.value if there else None
    after = entry.before.value if action in (KeyAction.WRITE, KeyAction.DELETE) else current
    return PlannedWrite(
        action,
        reason,
        key,
        store.topic,
        entry.before.partition,
        before=there,
        after=after,
        replaces=there,
        conflict=conflict,
        headers=entry.before.headers,
    )


def _decide(entry: BackupEntry, there: Record | None) -> tuple[KeyAction, str]:
    """What to do with one key, as if newer values were to be overwritten."""
    current, wanted = there.value if there else None, entry.before.value
    if current == wanted:
        return KeyAction.KEEP, "equal"
    back = KeyAction.DELETE if wanted is None else KeyAction.WRITE
    if entry.knows_written and current != entry.written:
        return back, "written_since"
    if entry.was_absent():
        return back, "absent_before"
    return back, "deleted_before" if is_nothing(wanted) else "restored"


def _problems(entries: Sequence[BackupEntry], writes: Sequence[PlannedWrite]) -> Iterable[Problem]:
    absent = sum(write.reason == "absent_before" for write in writes)
    if absent:
        yield Problem(
            codes.ABSENT_BEFORE,
            f"{counted(absent, 'key')} had no record before; such a key gets a tombstone, read as no offset",
            severity="warning",
        )
    unchecked = sum(not entry.knows_written for entry in entries)
    if unchecked:
        yield Problem(
            codes.UNCHECKED,
            f"for {counted(unchecked, 'key')} the file does not have what was written there, so a later write by "
            "someone else would not be noticed",
            severity="warning",
        )
