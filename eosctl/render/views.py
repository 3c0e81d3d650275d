"""Which columns and closing lines each kind of report shows as text: a table, so that text tells what JSON tells."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from eosctl.report import Report, Row

_STYLES = {
    "fenced": "green", "ok": "green", "pass": "green", "running": "green", "healthy": "green", "enabled": "green",
    "failed": "red", "fail": "red", "error": "red", "conflict": "red", "unreachable": "red", "differs": "yellow",
    "unconfirmed": "yellow", "warning": "yellow", "unknown": "yellow", "not_enabled": "yellow", "write": "yellow",
    "delete": "yellow",
}  # fmt: skip


def format_cell(value: object) -> str:
    """A JSON value as one cell: `-` for null, yes/no, text as it is, anything deeper as compact JSON."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list | tuple) and all(isinstance(item, str | int) for item in value):
        return printable(", ".join(str(item) for item in value)) or "-"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def printable(text: str) -> str:
    """`text` with control characters escaped: names come from topics and must not steer a terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


@dataclass(frozen=True, slots=True)
class Column:
    """A header and a dotted path into the row (`before.state`), or a function of the row."""

    header: str
    source: str | Callable[[Row], object]

    def cell(self, row: Row) -> str:
        """The text of this column in `row`."""
        return format_cell(self.source(row) if callable(self.source) else dig(row, self.source))

    def style(self, row: Row) -> str:
        """A colour for words that mean good or bad."""
        return _STYLES.get(self.cell(row).lower(), "")


def dig(row: object, path: str) -> object:
    """The member at a dotted path; None where any step is missing."""
    for step in path.split("."):
        if not isinstance(row, Mapping):
            return None
        row = row.get(step)
    return row


def summary_lines(report: Report) -> Iterable[str]:
    """The summary as one line of `key: value` pairs, then backup and undo where the report has them."""
    pairs = [f"{key.replace('_', ' ')}: {format_cell(value)}" for key, value in report.summary.items()]
    if pairs:
        yield ", ".join(pairs)
    for key in ("backup", "undo"):
        if report.data.get(key):
            yield f"{key}: {report.data[key]}"


@dataclass(frozen=True, slots=True)
class View:
    """How one kind of report looks as text; `empty` stands in for a table without rows."""

    columns: tuple[Column, ...]
    footer: Callable[[Report], Iterable[str]] = summary_lines
    empty: str = ""


VIEWS: dict[str, View] = {}


def view_of(report: Report) -> View:
    """The view of the report's kind; a kind without one shows every member of its first row."""
    if report.kind in VIEWS:
        return VIEWS[report.kind]
    keys = list(report.rows[0]) if report.rows else []
    return View(tuple(Column(key.upper().replace("_", "-"), key) for key in keys))
