"""`offsets verify BACKUP`: compare the topics with what a write put there or, after a restore, with what was before.

It writes nothing. `run.verify_plan` does the same for a bulk plan.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from eosctl.app import App
from eosctl.core.offsets.decision import KeyMismatch, mismatch
from eosctl.core.offsets.records import OffsetKey, as_plain_json, decode_key
from eosctl.core.wording import counted
from eosctl.engine.backups.entries import Mismatched, PresentRecords, mismatches
from eosctl.engine.backups.file import is_columnar
from eosctl.engine.columns import Table
from eosctl.errors import UsageError
from eosctl.migrate import codes
from eosctl.migrate.rows import OFFSETS_VERIFY, MismatchRow, StoredPlace, VerifyData
from eosctl.offsets.comparison import HIDDEN, comparison_exit_code, hidden_problem
from eosctl.offsets.files.backup import away_problems, look_at_parts, read_entries
from eosctl.offsets.rows import MOST_ROWS, partition_json, value_json
from eosctl.report import Problem, Report, json_bytes


def is_backup(path: Path) -> bool:
    """Tell whether the file holds records, as columns or one per line, and no plan.

    False for a file that can't be read. Raises UsageError for a pipe: it can't be read twice.
    """
    if path.is_fifo():
        raise UsageError(f"{path} is a pipe, and would be read twice", hint="Write it to a file first.")
    if is_columnar(path):
        return True
    try:
        with path.open("rb") as file:
            first = json.loads(next((line for line in file if line.strip()), b""))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "partition" in first


def verify_backup(app: App, path: Path, *, before: bool = False, strict: bool = False) -> Report:
    """Read every key of a backup again, and compare it with what was written or, with `before`, with what was there.

    Exit code 3, with the first keys that differ; 7, or 3 with `strict`, if an open transaction hides one. Raises
    InputFileError, NotFoundError for a topic that is gone, RefusedError for the backup of another cluster, UsageError
    for a file that does not have what was written.
    """
    entries = read_entries(app, str(path))
    if not before and entries.unchecked:
        raise UsageError(
            f"{path} does not have what was written over its records",
            hint="--before compares with the records themselves.",
        )

    found = look_at_parts(app, entries, partial(_look, before=before))
    counts, rows = Counter[bool](), list[MismatchRow]()
    for of_part, shown in found.parts:
        rows += [row for is_hidden, number, row in shown if counts[is_hidden] + number <= MOST_ROWS]
        counts += of_part
    differing, hidden = counts[False], counts[True]
    return Report(
        kind=OFFSETS_VERIFY,
        rows=rows,
        summary={"target_compared": entries.count, "target_differing": differing, "target_hidden": hidden},
        data=VerifyData(backup=str(path), compared_with="before" if before else "written"),
        target={"kafka_cluster_id": found.stores.cluster_id, "group_id": app.target.group_id},
        problems=[*_problems(differing, hidden, entries.count, before=before), *away_problems(found)],
        exit_code=comparison_exit_code(differing=bool(differing), hidden=bool(hidden), strict=strict),
    )


def _look(
    entries: Table, now: PresentRecords, *, before: bool
) -> tuple[Counter[bool], Sequence[tuple[bool, int, MismatchRow]]]:
    """Count the keys that differ, and those that are hidden (True); also return the first of both, numbered."""
    counts, shown = Counter[bool](), list[tuple[bool, int, MismatchRow]]()
    for each in mismatches(entries, now, before=before):
        counts[each.hidden] += 1
        if counts[each.hidden] <= MOST_ROWS:
            shown.append((each.hidden, counts[each.hidden], _row(each)))
    return counts, shown


def _row(wrong: Mismatched) -> MismatchRow:
    key = decode_key(wrong.key)
    status = HIDDEN if wrong.hidden else _how(wrong).value
    return MismatchRow(
        key=json_bytes(wrong.key),
        connector=str(as_plain_json(key.connector)) if isinstance(key, OffsetKey) else None,
        source_partition=partition_json(key) if isinstance(key, OffsetKey) else None,
        side="target",
        status=status,
        expected=value_json(wrong.expected),
        actual=value_json(wrong.actual),
        target=StoredPlace(topic=wrong.topic, partition=wrong.partition),
    )


def _how(wrong: Mismatched) -> KeyMismatch:
    return KeyMismatch.NOT_REWRITTEN if wrong.older else mismatch(wrong.expected, wrong.actual, found=wrong.found)


def _problems(differing: int, hidden: int, compared: int, *, before: bool) -> list[Problem]:
    what, problems = "what was there before" if before else "what was written", list[Problem]()
    if differing:
        wrong = "does not hold" if differing == 1 else "do not hold"
        message = f"{differing:,} of {counted(compared, 'key')} {wrong} {what}"
        more = f"The first {MOST_ROWS} are shown. " if differing > MOST_ROWS else ""
        hint = f"{more}Has someone written since, or was the write cut off?"
        problems.append(Problem(codes.BACKUP_MISMATCH, message, hint=hint))
    return problems + ([hidden_problem(hidden, compared)] if hidden else [])
