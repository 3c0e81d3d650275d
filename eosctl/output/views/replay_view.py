"""How `task-counts replay` looks: a line per connector, and the records that workers ignore or that were aborted."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.output.cells import Column, View, dig, format_cell, printable, summary_lines
from eosctl.report import Report


def _ignored_lines(report: Report) -> Iterable[str]:
    """The records that change nothing in a worker, and why."""
    ignored = dig(report.data, "state.ignored")
    for record in ignored if isinstance(ignored, list) else []:
        yield f"ignored {format_cell(record['key'])} at offset {record['offset']}: {printable(record['reason'])}"


def _aborted_lines(report: Report) -> Iterable[str]:
    """The aborted records that preparing and disabled workers end with, and what the others have in their place."""
    aborted = dig(report.data, "aborted_records")
    for record in aborted if isinstance(aborted, list) else []:
        committed = record["committed"]
        real = f"committed at {committed['offset']}: {_json(committed['value'])}" if committed else "nothing committed"
        if record["newest"] and record["differs"]:
            yield f"aborted {format_cell(record['key'])} at offset {record['offset']}: {_json(record['value'])}; {real}"


def _json(value: object) -> str:
    """A record's value in one line; null is a tombstone."""
    return "tombstone" if value is None else format_cell(value)


REPLAY = View(
    (
        Column("CONNECTOR", "connector"),
        Column("STATE", "target_state"),
        Column("TASKS", "task_count"),
        Column("TASK-IDS", "task_ids"),
        Column("GENERATION", "task_config_generation"),
        Column("INCOMPLETE", "inconsistent"),
        Column("RECORDED", "task_count_record"),
        Column("FENCING-DUE", "pending_fencing"),
    ),
    footer=lambda report: (*_ignored_lines(report), *_aborted_lines(report), *summary_lines(report)),
    empty="The records name no connector.",
)
