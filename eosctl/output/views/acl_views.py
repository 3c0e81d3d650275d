"""How the reports of `eosctl acls` look as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eosctl.output.cells import Column, View, format_cell, printable, summary_lines
from eosctl.report import Report, Row


def _resource(row: Row) -> object:
    star = "*" if row["pattern_type"] == "PREFIXED" else ""
    return f"{row['resource_type']} {row['resource_name']}{star}"


_RIGHT = (
    Column("ROLE", "role"),
    Column("PRINCIPAL", "principal"),
    Column("OPERATION", "operation"),
    Column("RESOURCE", _resource),
)


def _findings(report: Report) -> Iterable[str]:
    """Each finding with what mends it; then the summary."""
    for row in report.rows:
        yield f"{row['severity']} {row['code']} {format_cell(row['subject'])}: {printable(str(row['message']))}"
        yield from (f"  fix: {printable(line)}" for line in str(row["fix"]).splitlines())
    yield from summary_lines(report)


def _undo(report: Report) -> Iterable[str]:
    """The summary, and a line to paste for every line that takes back what was added."""
    yield from summary_lines(replace(report, data={}))
    yield from (f"undo: {printable(line)}" for line in str(report.data.get("undo", "")).splitlines())


def _script(report: Report) -> Iterable[str]:
    yield from (printable(line) for line in str(report.data["script"]).splitlines())


ACL_SCRIPT = View((), footer=_script, prose=False)
"""For the rights as text for another tool: nothing but that text."""
ACL_VIEWS = {
    "acls-generate": View(
        (*_RIGHT, Column("WHEN", "when"), Column("NOTE", "note")), empty="Nothing is needed: name a --connector."
    ),
    "acls-check": View((), footer=_findings, empty="Every right is there.", prose=False),
    "acls-apply-plan": View((*_RIGHT, Column("ACTION", "action")), footer=_undo, prose=False),
    "acls-apply-result": View(
        (*_RIGHT, Column("ACTION", "action"), Column("ERROR", "error.message")), footer=_undo, prose=False
    ),
}
