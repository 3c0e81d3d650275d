"""The elements of a report's text: cells, columns, closing lines, and the View that combines them for one kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, get_type_hints

import msgspec

from eosctl.foreign import printable
from eosctl.report import Report, plain

_STYLES = {
    "fenced": "green", "ok": "green", "pass": "green", "running": "green", "healthy": "green", "enabled": "green",
    "failed": "red", "fail": "red", "error": "red", "conflict": "red", "unreachable": "red", "differs": "yellow",
    "unconfirmed": "yellow", "warning": "yellow", "unknown": "yellow", "not_enabled": "yellow", "write": "yellow",
    "delete": "yellow", "aborted, not confirmed": "yellow",
}  # fmt: skip


def format_cell(value: object) -> str:
    """Format a value as one cell: `-` for null, yes/no, text as is, an object's `cell()`, anything else as JSON."""
    if value is None or value is msgspec.UNSET:
        return "-"
    if type(value) is int:  # the most frequent type first: listings have hundreds of thousands of cells
        return str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list | tuple):
        items = [item.cell() if hasattr(item, "cell") else item for item in value]
        if all(isinstance(item, str | int) for item in items):
            return printable(", ".join(str(item) for item in items)) or "-"
    elif hasattr(value, "cell"):
        return format_cell(value.cell())
    return printable(json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")))


class Column(msgspec.Struct, frozen=True):
    """A header and a dotted path into the row (`before.state`), or a function of the row.

    A terminal gets no `optional` column that is empty in every row.
    """

    header: str
    source: str | Callable[[Any], object]
    optional: bool = False

    def cell(self, row: object) -> str:
        """Return the text of this column in `row`."""
        [text] = self.cells([row])
        return text

    def cells(self, rows: Sequence[object]) -> list[str]:
        """Return the texts of this column in `rows`.

        Listings have hundreds of thousands: most are plain text, numbers, or the very object of the row before.
        """
        source = self.source
        values: Iterable[object]
        if callable(source):
            values = map(source, rows)
        elif rows and isinstance(rows[0], msgspec.Struct):
            values = map(attrgetter(source), rows)
        else:
            values = (dig(row, source) for row in rows)
        before, text = None, format_cell(None)
        return [
            value
            if type(value) is str and value.isprintable()
            else text
            if value is before
            else (text := str(value) if type(before := value) is int else format_cell(value))
            for value in values
        ]

    def style(self, row: object) -> str:
        """Return the colour of a cell whose text has a good or bad meaning."""
        return _STYLES.get(self.cell(row).lower(), "")


def dig(row: object, path: str) -> object:
    """Return the member at a dotted path; None if any step is missing."""
    for step in path.split("."):
        if type(row) is not dict and not isinstance(row, Mapping):  # asking the abstract class alone is slow
            return None
        row = row.get(step)
    return row


def duration(milliseconds: int) -> str:
    """Format a duration in the largest unit that is precise enough: `95s`, `12m`, `30h`, `4d`."""
    seconds = milliseconds // 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


class Total(msgspec.Struct, frozen=True):
    """The mark of a summary's number that is shown even if it is 0: how much was looked at, proven or read back."""


TOTAL = Total()


class Brief(str):
    """A closing line of text, empty for none, and the lines that `-o wide` has in its place."""

    __slots__ = ("whole",)
    whole: tuple[str, ...]

    def __new__(cls, line: str, *, whole: Iterable[str]) -> Brief:
        brief = super().__new__(cls, line)
        brief.whole = tuple(whole)
        return brief


def summary_lines(report: Report, *, wide_only: Collection[str] = ()) -> Iterable[str]:
    """Yield the summary as one line of `key: value` pairs, then the files and the undo command of the report.

    Numbers that are 0 are in `-o wide` only, but for totals, and so is a number of `rows` that are all there. A summary
    without a class, which marks none, is shown whole, and so is one of zeros where the report has no other text.
    `wide_only` are members that other lines say already.
    """
    members = plain(report.summary)
    whole = summary_line(members)
    shown = _without_zeros(report.summary, members)
    said = {*wide_only, *(["rows"] if members.get("rows") == len(report.rows) else [])}
    line = summary_line({key: value for key, value in shown.items() if key not in said})
    if line or report.rows or _words_without_rows(report):
        yield Brief(line, whole=[whole] if whole else [])
    elif whole:
        yield whole
    for key in ("file", "plan_file", "backup", "undo"):
        if value := report.datum(key):
            yield f"{key.replace('_', ' ')}: {format_cell(value)}"


def summary_line(members: Mapping[str, object]) -> str:
    """Format all members of a summary as `key: value` pairs in one line."""
    return ", ".join(pair for key, value in members.items() for pair in _summary_pairs(key, value))


def _without_zeros(summary: object, members: Mapping[str, object]) -> Mapping[str, object]:
    """Return the members of a summary without numbers that are 0 and no totals, those of its counts too."""
    if not isinstance(summary, msgspec.Struct):
        return members
    hints = get_type_hints(type(summary), include_extras=True)
    totals = {name for name, hint in hints.items() if TOTAL in getattr(hint, "__metadata__", ())}
    shown = {key: value for key, value in members.items() if key in totals or not _is_zero(value)}
    return {key: _above_zero(value) if isinstance(value, Mapping) else value for key, value in shown.items()}


def _is_zero(value: object) -> bool:
    """Decide whether a value is the number 0, or a list without members; false and null may be what matters."""
    return (type(value) is int and value == 0) or value == []


def _above_zero(counts: Mapping[str, object]) -> Mapping[str, object]:
    return {name: count for name, count in counts.items() if not _is_zero(count)}


def _words_without_rows(report: Report) -> str:
    """Return the sentence that text has in place of rows; empty if it has none."""
    text = getattr(report.kind, "text", None)
    return text.empty if text else ""


def _summary_pairs(key: str, value: object) -> list[str]:
    """Format one member of a summary; the members of `counts` join its own, those of others follow their name.

    Counts without members are left out.
    """
    if not isinstance(value, Mapping):
        return [f"{key.replace('_', ' ')}: {format_cell(value)}"]
    if key == "counts":
        return [f"{name.replace('_', ' ')}: {format_cell(count)}" for name, count in value.items()]
    counts = ", ".join(f"{count} {name}" for name, count in value.items())
    return [f"{key.replace('_', ' ')}: {counts}"] if counts else []


class View(msgspec.Struct, frozen=True):
    """The text layout of one kind of report; `empty` replaces a table without rows.

    `wide` are the further columns of `-o wide`, `wide_footer` its further closing lines; without `prose`, closing lines
    are never folded. Text shows at most `most_rows` rows, with a note; the other formats always have them all.
    """

    columns: tuple[Column, ...]
    footer: Callable[[Report], Iterable[str]] = summary_lines
    empty: str = ""
    most_rows: int | None = None
    wide: tuple[Column, ...] = ()
    prose: bool = True
    wide_footer: Callable[[Report], Iterable[str]] | None = None
