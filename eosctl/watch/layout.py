"""The screens of a watch as rows of a terminal: the table, one line in full, and the help. Pure.

A screen of any size is served: what does not fit is scrolled to, or cut with an ellipsis.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from eosctl.core.findings import SEVERITIES, Finding, findings_counted
from eosctl.foreign import lines_of
from eosctl.output.cells import duration
from eosctl.output.rows import about_subject
from eosctl.output.screen import (
    ScreenRow,
    TextSpan,
    copyable_rows,
    cut,
    fit,
    folded,
    left_and_right,
    row_of,
    shown,
    width_of,
)
from eosctl.report import plain
from eosctl.watch.rules import SourceLook, WatchLine, WatchState

MOST_COLUMNS = 200
SUBJECT_FROM, ONE_ROW_FROM = 110, 160
"""The numbers of columns from which a line has a separate subject, and its command beside instead of below it."""
_SEVERITY, _TIME, _GAP = 8, 5, "  "
_LEAST_SUBJECT, _MOST_SUBJECT = 7, 40
_BELOW = " " * 5
_STYLES = {"error": "red bold", "warning": "yellow", "gone": "green"}
_KEYS = "j/k choose  Enter details  ? help  q quit"
_KEYS_BELOW = "j/k scroll  Esc back  q quit"
_HELP = (
    ("j k, arrows", "choose a line; PgUp, PgDn, g and G go further"),
    ("Enter", "what the line means, and the command to paste"),
    ("Esc", "back to the lines"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit; what stood on the screen is printed below the prompt"),
)
_MOST_EVIDENCE = 400  # characters of one member: an answer may hold thousands of ids


class Heading(Struct, frozen=True):
    """The heading: the group, the time of day, and the progress of a wait, if any."""

    group: str
    clock: str
    waiting: str = ""


class Size(Struct, frozen=True):
    """A terminal's columns and rows."""

    columns: int
    rows: int


def table_screen(watch: WatchState, heading: Heading, *, chosen: int, size: Size, now_s: float) -> list[ScreenRow]:
    """Return the rows of all lines that fit, around the chosen one; list uncollected sources, lest it look calm."""
    width = min(size.columns, MOST_COLUMNS)
    lines, widths = [*watch.lines, *watch.gone], _widths(watch, width)
    top = [*_top(watch, heading, width, now_s), _header(widths) if lines else ScreenRow()]
    room = max(size.rows - len(top) - 1, 1)
    each = 1 if width >= ONE_ROW_FROM else 2
    fitting = max(room // each, 1)
    first = max(0, min(chosen - fitting // 2, len(lines) - fitting))
    body = [
        row
        for number, line in enumerate(lines[first : first + fitting], start=first)
        for row in _line_rows(line, widths, now_s, is_chosen=number == chosen)
    ] or _source_rows(watch, width, now_s)
    foot = f"{first + 1}-{min(first + fitting, len(lines))} of {len(lines)}" if len(lines) > fitting else ""
    return _framed(top, body, left_and_right([TextSpan(_KEYS, "dim")], [TextSpan(foot, "dim")], width), size.rows)


def line_screen(line: WatchLine, *, scrolled: int, size: Size, now_s: float) -> tuple[list[ScreenRow], int]:
    """Return the rows of a finding, its fix, with a command to copy, and the explanation of its code.

    Return also how far the rows can be scrolled.
    """
    width, finding = min(size.columns, MOST_COLUMNS), line.finding
    gone = f"; gone for {_ago(now_s, line.gone_s)}" if line.gone_s is not None else ""
    code = TextSpan(f"{_GAP}{shown(finding.code)}{_GAP}", "bold")
    rows = [
        row_of([_severity(line), code, TextSpan(shown(finding.subject))], width),
        row_of([TextSpan(f"seen for {_ago(now_s, line.since_s)}{gone}; {line.source} was last "
                     f"{_collected(line.looked_s, now_s)}", "dim")], width),
        ScreenRow(),
        *folded(finding.message, width),
    ]  # fmt: skip
    rows += [ScreenRow(), *_fix_rows(line, width)]
    if finding.code.meaning:
        rows += [ScreenRow(), _title("What it means", width), *folded(finding.code.meaning, width)]
    if finding.code.next:
        rows += [ScreenRow(), _title("What to do next", width), *folded(finding.code.next, width)]
    rows += _evidence_rows(line, width)
    return _scrolled(rows, scrolled, size)


def help_screen(watch: WatchState, *, scrolled: int, size: Size, now_s: float) -> tuple[list[ScreenRow], int]:
    """Return the rows of keys, columns and sources, and how far they can be scrolled."""
    width = min(size.columns, MOST_COLUMNS)
    rows = [_title("Keys", width), *(row_of([TextSpan(f"{key:<14}{what}")], width) for key, what in _HELP), ScreenRow()]
    rows += [_title("Columns", width)]
    rows += folded("FOR: how long this watch has seen the line. AGE: how old the data behind it is. Lines that are "
                   "gone stay for a minute. `eosctl explain CODE` explains every code.", width)  # fmt: skip
    rows += [ScreenRow(), _title("Sources", width)]
    longest = max((width_of(shown(look.name)) for look in watch.looks), default=0)
    rows += [row_of(_source_spans(look, longest, now_s), width) for look in watch.looks]
    return _scrolled(rows, scrolled, size)


def _top(watch: WatchState, heading: Heading, width: int, now_s: float) -> list[ScreenRow]:
    counts = Counter(line.finding.severity for line in watch.lines)
    found = [
        TextSpan(findings_counted(counts[each], each), _STYLES.get(each, "")) for each in SEVERITIES if counts[each]
    ]
    spans = [span for each in found for span in (each, TextSpan(", "))][:-1] or [_calm_word(watch)]
    waiting = [TextSpan(shown(heading.waiting), "bold")] if heading.waiting else []
    return [
        left_and_right([TextSpan(shown(heading.group), "bold")], [TextSpan(heading.clock, "dim")], width),
        left_and_right([*spans, TextSpan(_GAP), TextSpan(_oldest(watch, now_s), "dim")], waiting, width),
    ]


def _calm_word(watch: WatchState) -> TextSpan:
    if watch.state == "calm":
        return TextSpan("Nothing is wrong.", "green")
    return TextSpan("Nothing is known to be wrong.")


def _oldest(watch: WatchState, now_s: float) -> str:
    """Return the age of the oldest fact, and the sources without one."""
    waits = [look.name for look in watch.looks if look.looked_s is None]
    looked = [look.looked_s for look in watch.looks if look.looked_s is not None]
    oldest = f"oldest fact: {_ago(now_s, min(looked))}" if looked else ""
    missing = f"not collected yet: {', '.join(waits)}" if waits else ""
    return "; ".join(part for part in (oldest, missing) if part) or "collecting"


class _Widths(Struct, frozen=True):
    """The widths of the columns; a narrow screen has none for the subject, which the message names, or for the fix."""

    all: int
    subject: int
    what: int
    fix: int


def _widths(watch: WatchState, width: int) -> _Widths:
    lines = (*watch.lines, *watch.gone)
    longest = max((width_of(shown(line.finding.subject)) for line in lines), default=0)
    subject = max(_LEAST_SUBJECT, min(longest, _MOST_SUBJECT, width // 4)) if width >= SUBJECT_FROM else 0
    taken = 2 + _SEVERITY + 2 * _TIME + 3 * len(_GAP) + (subject + len(_GAP) if subject else 0)
    room = max(width - taken, 1)
    if width < ONE_ROW_FROM:
        return _Widths(width, subject, room, 0)
    longest = max((width_of(shown(line.command)) for line in lines), default=0)
    fix = max(min(longest, room // 2), len("COMMAND"))
    return _Widths(width, subject, room - fix - len(_GAP), fix)


def _header(widths: _Widths) -> ScreenRow:
    cells = ["  SEVERITY", f"{'FOR':>{_TIME}}", f"{'AGE':>{_TIME}}"]
    cells += [fit("SUBJECT", widths.subject)] if widths.subject else []
    cells += [fit("WHAT", widths.what), "COMMAND"] if widths.fix else ["WHAT"]
    return row_of([TextSpan(_GAP.join(cells), "bold")], widths.all)


def _line_rows(line: WatchLine, widths: _Widths, now_s: float, *, is_chosen: bool) -> list[ScreenRow]:
    finding, subject = line.finding, widths.subject
    text = shown(_finding_text(finding, has_subject=bool(subject)))
    ago_s = line.since_s if line.gone_s is None else line.gone_s
    spans = [
        TextSpan("> " if is_chosen else "  "), _severity(line), TextSpan(_GAP),
        TextSpan(f"{_ago(now_s, ago_s):>{_TIME}}{_GAP}{_ago(now_s, line.looked_s):>{_TIME}}{_GAP}", "dim"),
        TextSpan(fit(shown(finding.subject), subject) + _GAP if subject else ""),
    ]  # fmt: skip
    if widths.fix:
        what = TextSpan(fit(text, widths.what) + _GAP)
        rows = [row_of([*spans, what, TextSpan(cut(shown(line.command), widths.fix))], widths.all)]
    else:
        rows = [row_of([*spans, TextSpan(cut(text, widths.what))], widths.all)]
        rows.append(row_of([TextSpan(_BELOW), TextSpan("fix: ", "dim"), TextSpan(shown(line.command))], widths.all))
    if line.gone_s is not None:
        rows = [row.styled("dim") for row in rows]
    return [row.styled("reverse") if is_chosen and not number else row for number, row in enumerate(rows)]


def _finding_text(finding: Finding, *, has_subject: bool) -> str:
    """Format a finding, with its subject unless the row has one; a folded finding has its code instead."""
    if has_subject or "subjects" in finding.evidence:
        return f"{finding.code}: {finding.message}"
    return about_subject(finding.subject, finding.message)


def _severity(line: WatchLine) -> TextSpan:
    word = line.finding.severity if line.gone_s is None else "gone"
    return TextSpan(f"{word:<{_SEVERITY}}", _STYLES.get(word, ""))


def _source_rows(watch: WatchState, width: int, now_s: float) -> list[ScreenRow]:
    """Return the state of each source in place of lines, so that an empty screen is explained."""
    longest = max((width_of(shown(look.name)) for look in watch.looks), default=0)
    return [row_of([TextSpan("  "), *_source_spans(look, longest, now_s)], width) for look in watch.looks]


def _source_spans(look: SourceLook, longest: int, now_s: float) -> list[TextSpan]:
    spans = [TextSpan(fit(shown(look.name), longest) + _GAP), TextSpan(_collected(look.looked_s, now_s), "dim")]
    if look.unseen:
        spans += [TextSpan(_GAP), TextSpan(f"{look.unseen} not seen", "yellow")]
    if look.error is not None:
        spans += [TextSpan(_GAP), TextSpan(shown(look.error), "yellow"), TextSpan(f": {shown(look.message)}")]
    return spans


def _collected(looked_s: float | None, now_s: float) -> str:
    return "not collected yet" if looked_s is None else f"collected {_ago(now_s, looked_s)} ago"


def _ago(now_s: float, at_s: float | None) -> str:
    return "-" if at_s is None else duration(max(0, int((now_s - at_s) * 1000)))


def _fix_rows(line: WatchLine, width: int) -> list[ScreenRow]:
    """Return the fix, then its command alone, from the first column on."""
    rows = [_title("Fix", width), *(row for text in lines_of(line.finding.fix) for row in folded(text, width))]
    if line.command in (line.finding.fix, "") or line.command.startswith("Nothing"):
        return rows
    return [*rows, ScreenRow(), *(row.styled("bold") for row in copyable_rows(line.command, width))]


def _evidence_rows(line: WatchLine, width: int) -> list[ScreenRow]:
    if not line.finding.evidence:
        return []
    rows = [ScreenRow(), _title("Evidence", width)]
    for name, value in line.finding.evidence.items():
        text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
        rows += folded(f"{name}: {cut(shown(text), _MOST_EVIDENCE)}", width)
    return rows


def _title(text: str, width: int) -> ScreenRow:
    return row_of([TextSpan(text, "bold")], width)


def _scrolled(rows: Sequence[ScreenRow], scrolled: int, size: Size) -> tuple[list[ScreenRow], int]:
    room = max(size.rows - 1, 1)
    most = max(0, len(rows) - room)
    first = min(scrolled, most)
    foot = f"{first + 1}-{min(first + room, len(rows))} of {len(rows)}" if len(rows) > room else ""
    width = min(size.columns, MOST_COLUMNS)
    keys = left_and_right([TextSpan(_KEYS_BELOW, "dim")], [TextSpan(foot, "dim")], width)
    return _framed([], rows[first : first + room], keys, size.rows), most


def _framed(top: Sequence[ScreenRow], body: Sequence[ScreenRow], foot: ScreenRow, height: int) -> list[ScreenRow]:
    """Combine the top, the body below it, and the keys in the last row; on a low screen, cut the top first."""
    room = max(height - 1, 1)
    above = [*top, *body]
    if len(above) > room:
        above = above[len(above) - room :] if len(body) >= room else [*top[: room - len(body)], *body]
    return [*above, *[ScreenRow()] * (height - 1 - len(above)), foot][:height]
