"""How plans and results of `task-counts write` and `clean` look as text; JSON also has the ids they fence."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.output.cells import Column, View, dig, format_cell, summary_lines
from eosctl.report import Report, Row


def _count(row: Row, name: str) -> object:
    return dig(row, f"{name}.task_count")


def _decision_lines(report: Report) -> Iterable[str]:
    """What the leader decides without and with the new record, now and after the next task commit."""
    for row in report.rows:
        for when in ("now", "after_next_commit"):
            before, after = (dig(row, f"decision_{which}.{when}.reason") for which in ("before", "after"))
            yield f"leader {when.replace('_', ' ')}:"
            yield f"  before: {format_cell(before)}"
            yield f"  after:  {format_cell(after)}"
    counts = dig(report.data, "fence.summary.counts")
    if isinstance(counts, dict):
        listed = ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
        yield f"ids of the old record: {listed}"
    if report.data.get("fenced_before") is False:
        yield "fenced before: no"
    yield from summary_lines(report)


_WRITE = View(
    (
        Column("CONNECTOR", "connector"),
        Column("BEFORE", lambda row: _count(row, "before")),
        Column("BEFORE-OFFSET", "before.offset"),
        Column("AFTER", lambda row: _count(row, "after")),
        Column("AFTER-OFFSET", "after.offset"),
        Column("OUTCOME", "outcome"),
    ),
    footer=_decision_lines,
)


def _clean_lines(report: Report) -> Iterable[str]:
    """The settings that change meanwhile, and what they are set back to."""
    settings = report.data.get("settings")
    yield f"topic: {format_cell(report.data.get('topic'))}"
    for each in settings if isinstance(settings, list) and report.kind.endswith("-plan") else ():
        before = "the brokers' default" if each["before"] is None else each["before"]
        if report.rows:
            yield f"{each['name']}: {each['meanwhile']} until they are gone, then {format_cell(before)}"
        elif each["now"] != each["before"]:
            yield f"{each['name']}: back to {format_cell(before)}"
    yield from summary_lines(report)


_CLEAN = View(
    (
        Column("OFFSET", "offset"),
        Column("KEY", "key"),
        Column("CODE", "code"),
        Column("OVERWRITE", "overwrite"),
        Column("OUTCOME", "outcome"),
    ),
    wide=(Column("CONNECTOR", "connector"), Column("REASON", "reason")),
    footer=_clean_lines,
    empty="There is no bad task-count record in the topic.",
)

RESCUE_VIEWS: dict[str, View] = {
    "task-counts-write-plan": _WRITE,
    "task-counts-write-result": _WRITE,
    "task-counts-clean-plan": _CLEAN,
    "task-counts-clean-result": _CLEAN,
}
