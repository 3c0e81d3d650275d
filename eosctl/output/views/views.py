"""Which columns and closing lines each kind of report shows as text: a table, so that text shows what JSON reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from eosctl.output.cells import Column, View, dig, format_cell, printable, summary_lines
from eosctl.output.views.offset_views import OFFSET_VIEWS
from eosctl.output.views.replay_view import REPLAY
from eosctl.output.views.rescue_views import RESCUE_VIEWS
from eosctl.report import Report, Row

VIEWS: dict[str, View] = {
    **OFFSET_VIEWS,
    **RESCUE_VIEWS,
}


def view_of(report: Report) -> View:
    """The view of the report's kind; a kind without one shows every member of its first row.

    The rows of a migration that went wrong are the keys that differ, or the stages of one that was cut off; `get
    --rest` has what the worker says too.
    """
    if report.kind == "offsets-migrate-result" and report.rows and "stage" in report.rows[0]:
        return VIEWS["offsets-migrate-stages"]
    if report.kind == "offsets-migrate-result" and report.summary.get("differing"):
        return VIEWS["offsets-verify"]
    if report.kind == "offsets-get" and "rest_differing" in report.summary:
        return VIEWS["offsets-get-rest"]
    if report.kind in VIEWS:
        return VIEWS[report.kind]
    keys = list(report.rows[0]) if report.rows else []
    return View(tuple(Column(key.upper().replace("_", "-"), key) for key in keys))


def _finding_codes(row: Row) -> object:
    findings = row.get("findings")
    return [finding["code"] for finding in findings] if isinstance(findings, list) else None


def _count(path: str) -> Callable[[Row], object]:
    """How many items the list at `path` has; null stays null."""

    def count(row: Row) -> object:
        items = dig(row, path)
        return len(items) if isinstance(items, list) else None

    return count


def _finding_lines(report: Report) -> Iterable[str]:
    """Every finding as `severity code subject: message`, its fix below; then the summary."""
    for row in report.rows:
        findings = row.get("findings")
        for finding in findings if isinstance(findings, list) else []:
            subject = f"{finding['severity']} {finding['code']} {format_cell(row['connector'])}"
            yield f"{subject}: {printable(finding['message'])}"
            yield f"  fix: {printable(finding['fix'])}"
    yield from summary_lines(report)


def _task_count_details(report: Report) -> Iterable[str]:
    """What the leader would do, and the ids by name; for `task-counts show`."""
    for row in report.rows:
        yield f"decision: {format_cell(row['decision'])}"
        yield f"would fence: {format_cell(row['would_fence'])}"
        yield f"after the next task commit: {format_cell(dig(row, 'after_next_commit.reason'))}"
        yield f"alive ids: {format_cell(row['alive_ids'])}"
    yield from _finding_lines(report)


def _fencing(row: Row) -> object:
    """Whether the leader will fence before the tasks start again, and how many ids; null where it can't be known."""
    due, count = row["pending_fencing"], row["would_fence_count"]
    return f"due, {count} {'id' if count == 1 else 'ids'}" if due is True else due


def _recorded(row: Row) -> object:
    """The count; a sink lacks nothing where it has none."""
    return "none (sink)" if row["recorded"] is None and row["type"] == "sink" else row["recorded"]


_CONNECTOR = Column("CONNECTOR", "connector")
_TASK_COUNTS = (
    Column("STATE", "target_state"),
    Column("TASKS", "task_count"),
    Column("RECORDED", _recorded),
    Column("FENCING", _fencing),
    Column("ALIVE-IDS", _count("alive_ids")),
    Column("FINDINGS", _finding_codes),
)
_RECORD_OFFSETS = (
    Column("RECORD-OFFSET", "record_offset"),
    Column("COMMIT-OFFSET", "newest_commit_offset"),
)
_MORE_OF_TASK_COUNTS = (Column("TYPE", "type"), *_RECORD_OFFSETS, Column("DECISION", "decision"))
VIEWS |= {
    "task-counts-list": View(
        (_CONNECTOR, *_TASK_COUNTS), wide=_MORE_OF_TASK_COUNTS, empty="The config topic names no connector."
    ),
    "task-counts-show": View(
        (_CONNECTOR, Column("TYPE", "type"), *_TASK_COUNTS, *_RECORD_OFFSETS), footer=_task_count_details
    ),
    "task-counts-validate": View(
        (_CONNECTOR, *_TASK_COUNTS),
        wide=_MORE_OF_TASK_COUNTS,
        footer=_finding_lines,
        empty="The config topic names no connector.",
    ),
    "task-counts-replay": REPLAY,
}
