"""`offsets verify BACKUP`: is in the topics what a write put there, or, after a restore, what was there before?

It reads and compares, and writes nothing. `run.verify_plan` does the same for a bulk plan.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from eosctl.app import App
from eosctl.core.offsets.decision import mismatch
from eosctl.core.offsets.records import OffsetKey, as_plain_json, decode_key
from eosctl.core.offsets.views import Store
from eosctl.core.wording import counted
from eosctl.errors import UsageError
from eosctl.migrate import codes
from eosctl.migrate.rows import OFFSETS_VERIFY, MismatchRow, StoredPlace, VerifyData
from eosctl.offsets.comparison import HIDDEN, comparison_exit_code, hidden_problem
from eosctl.offsets.files.restore import gather_backup_topics
from eosctl.offsets.rows import partition_json, value_json
from eosctl.report import Problem, Report, json_bytes
from eosctl.state.backups import BackupEntry, read_backup


def is_backup(path: Path) -> bool:
    """Whether the file holds records, a line each, as backups do, and no plan; False for what can't be read."""
    try:
        with path.open("rb") as file:
            first = json.loads(next((line for line in file if line.strip()), b""))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "partition" in first


def verify_backup(app: App, path: Path, *, before: bool = False, strict: bool = False) -> Report:
    """Reads every key of a backup again: does it hold what was written, or with `before` what was there?

    Exit 3, with the rows that do not; 7, or 3 where it is to be `strict`, where an open transaction hides it. Raises
    InputFileError, NotFoundError for a topic that is gone, RefusedError for the backup of another cluster, UsageError
    for a file that does not report what was written.
    """
    entries = read_backup(str(path))
    if not before and any(not entry.knows_written for entry in entries):
        raise UsageError(
            f"{path} does not have what was written over its records",
            hint="--before compares with the records themselves.",
        )
    found = gather_backup_topics(app, entries, path=str(path))
    rows = [row for entry in entries for row in _rows(entry, found.stores[entry.before.topic], before=before)]
    hidden = sum(row.status == HIDDEN for row in rows)
    return Report(
        kind=OFFSETS_VERIFY,
        rows=rows,
        summary={"target_compared": len(entries), "target_differing": len(rows) - hidden, "target_hidden": hidden},
        data=VerifyData(backup=str(path), compared_with="before" if before else "written"),
        target={"kafka_cluster_id": found.cluster_id, "group_id": app.target.group_id},
        problems=_problems(rows, len(entries), before=before),
        exit_code=comparison_exit_code(
            differing=any(row.status != HIDDEN for row in rows), hidden=bool(rows), strict=strict
        ),
    )


def _rows(entry: BackupEntry, store: Store, *, before: bool) -> list[MismatchRow]:
    """The row of a key that is not, or can't be seen to be, what it should be."""
    raw, partition = entry.before.key or b"", entry.before.partition
    there = store.at(raw, partition)
    expected, actual = entry.before.value if before else entry.written, there.value if there else None
    hidden = partition in store.hidden.get(raw, ())
    if actual == expected and not hidden:
        return []
    key = decode_key(raw)
    return [
        MismatchRow(
            key=json_bytes(entry.before.key),
            connector=str(as_plain_json(key.connector)) if isinstance(key, OffsetKey) else None,
            source_partition=partition_json(key) if isinstance(key, OffsetKey) else None,
            side="target",
            status=HIDDEN if hidden else mismatch(expected, actual, found=there is not None).value,
            expected=value_json(expected),
            actual=value_json(actual),
            target=StoredPlace(topic=store.topic, partition=partition),
        )
    ]


def _problems(rows: Sequence[MismatchRow], compared: int, *, before: bool) -> list[Problem]:
    what = "what was there before" if before else "what was written"
    hidden = sum(row.status == HIDDEN for row in rows)
    differing, problems = len(rows) - hidden, []
    if differing:
        wrong = "does not hold" if differing == 1 else "do not hold"
        message = f"{differing:,} of {counted(compared, 'key')} {wrong} {what}"
        problems.append(
            Problem(codes.BACKUP_MISMATCH, message, hint="Has someone written since, or was the write cut off?")
        )
    return problems + ([hidden_problem(hidden, compared)] if hidden else [])
