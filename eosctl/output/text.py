"""Writes a Report as text: aligned columns, all of them and uncut, in a pipe; fitted to a terminal.

On a terminal a table folds its cells. Where that would leave too little of a column, or break an id, what all rows
share stands above the table; if that is not enough, each row becomes a block of lines. Lines break between words, and
in JSON behind commas. Words and numbers are never broken or cut there, so that paths and commands can be copied. JSON
that the column before has too is `same`.

Findings are in the order in which to act, each with its fix.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import IO, Protocol

from eosctl.core.wording import COMMAND
from eosctl.errors import ExitCode
from eosctl.foreign import lines_of, printable
from eosctl.output.cells import Brief, Column, View, format_cell, summary_lines
from eosctl.output.rows import Text
from eosctl.report import Report, Row

_PIECE = re.compile(r"[^,]*,+|[^,]+")
_PASTED = re.compile(r"undo: |export |\s*[a-z]+(?: [a-z]+)?: /\S+$|\s*(?:[A-Za-z ]+: )?" + COMMAND.pattern)
_QUOTED = re.compile(r"`[^`]+`")
_LABEL = re.compile(r"\s*[a-z]+ {2,}")
_BOUND, _SECOND_CELL = "\ue000", "\ue001"  # of the private use area: no text has them


def fold(line: str, width: int | None, *, hanging: str = "  ") -> list[str]:
    """Break `line` into lines of `width`, the further ones behind `hanging`; keep a longer piece whole.

    What is pasted into a shell stays on one line: a line that is a command or an assignment, a command in backticks.
    So does a label with the path of a file. Behind a label, such as a severity and two spaces, the
    further lines begin where the text does.
    """
    if width is None or cells_of(line) <= width or _PASTED.match(line):
        return [line]
    import textwrap  # for terminals that are too narrow

    if not line.isascii():
        line = "".join(letter + _SECOND_CELL * (cells_of(letter) - 1) for letter in line)
    label = _LABEL.match(line)
    behind = " " * label.end() if label and hanging else line[: len(line) - len(line.lstrip())] + hanging
    bound = _QUOTED.sub(lambda found: found[0].replace(" ", _BOUND), line)
    folded = textwrap.wrap(
        bound, width, subsequent_indent=behind, break_long_words=False, break_on_hyphens=False, tabsize=1
    )
    parts = (part for long in folded for part in _at_commas(long, width, behind))
    return [part.replace(_BOUND, " ").replace(_SECOND_CELL, "") for part in parts]


def fold_hard(text: str, width: int) -> list[str]:
    """Break `text` like `fold`, but let nothing exceed `width`: break long pieces anywhere."""
    return [part for line in fold(text, width, hanging="") for part in _cut_hard(line, width)]


def _cut_hard(line: str, width: int) -> list[str]:
    if line.isascii():
        return [line[start : start + width] for start in range(0, max(len(line), 1), width)]
    from rich.cells import chop_cells

    return chop_cells(line, width)


def cells_of(text: str) -> int:
    """Return the number of cells that the text takes on a terminal: wide characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells_of(text))


def longest_piece(text: str) -> int:
    """Return the minimum width at which `fold` keeps all lines within it."""
    return max((cells_of(piece) for word in text.split() for piece in _pieces(word)), default=0)


def _pieces(word: str) -> list[str]:
    """Split a word where it may be broken: JSON behind its commas, anything else not at all."""
    return _PIECE.findall(word) if is_json(word) else [word]


def is_json(word: str) -> bool:
    """Decide whether a word is JSON, or a part of it: its commas are no part of a name."""
    return word.startswith(("{", "[", '"')) or '":' in word


def _at_commas(line: str, width: int, indent: str) -> Iterator[str]:
    """Yield a line that is still too long in parts: as much as fits, then the rest behind `indent`."""
    room = line[: len(line) - len(line.lstrip())]
    for number, piece in enumerate(_pieces(line.strip())):
        if number and len(room) + len(piece) > width:
            yield room
            room = indent
        room += piece
    yield room


_GAP = "  "
_FOLD_BEYOND = 20  # characters: a cell folded tighter than this is hard to read
_FOLD_TIGHT = 12  # characters: as tight as this where each of many rows would become a block otherwise
_LONGEST_ID = 64  # characters: in several rows, what is longer leaves too little to the other columns
_MOST_COLUMNS = 200  # characters: a table that is wider is hard to follow with the eye
_USUAL_COLUMNS = 80
_SAME = "same"


_NOT_ALL_SEEN = "Nothing was found, but not everything could be seen."
"""Stands in for "there is none" where that was not seen; what a command has done, or not, is known."""


def write_text(report: Report, stream: IO[str], *, color: bool, wide: bool, most_rows: int | None = None) -> None:
    """Write the rows as a table, then the closing lines; `wide` adds the view's further columns and lines.

    Only the first rows, where the view or the caller (`most_rows`) wants no more.
    """
    view = _view(report)
    width = terminal_width(stream)
    limits = [limit for limit in (view.most_rows, most_rows) if limit is not None]
    rows = report.rows[: min(limits, default=None)]
    if rows and view.columns:
        named = (*view.columns, *view.wide) if wide else view.columns
        columns = named if width is None else _with_something_to_say(named, rows)
        _write_rows(columns, rows, stream, color=color, width=width, every=report.rows)
    elif not rows and view.empty:
        stream.writelines(f"{part}\n" for part in fold(view.empty, width))
    if len(rows) < len(report.rows):
        left = len(report.rows) - len(rows)
        where = "-o json has them all" if len(rows) == view.most_rows else "--dry-run shows more"
        stream.write(f"... and {left:,} more {'row' if left == 1 else 'rows'}; {where}\n")
    closing = (*view.footer(report), *(view.wide_footer(report) if wide and view.wide_footer else ()))
    for line in map(printable, _closing_lines(closing, wide=wide)):
        stream.writelines(f"{part}\n" for part in (fold(line, width) if view.prose else [line]))


def _closing_lines(lines: Iterable[str], *, wide: bool) -> Sequence[str]:
    """Return the lines, those that are brief in their form; without blank lines at the end."""
    shown: list[str] = []
    for line in lines:
        if not isinstance(line, Brief):
            shown.append(line)
        elif wide:
            shown.extend(line.whole)
        elif line:
            shown.append(line)
    while shown and not shown[-1]:
        shown.pop()
    return shown


def _view(report: Report) -> View:
    from eosctl.output.rows import Kind

    if not isinstance(report.kind, Kind):
        return View(())  # of what failed before it had rows
    from eosctl.output.rows import columns_of, wide_columns_of

    text = report.kind.text
    is_unseen = report.exit_code is ExitCode.PARTIAL and not report.kind.endswith("-result")
    return View(
        columns_of(report.kind),
        text.lines,
        empty=_NOT_ALL_SEEN if text.empty and is_unseen else text.empty,
        most_rows=text.most_rows,
        wide=wide_columns_of(report.kind),
        prose=text.prose,
        wide_footer=text.wide_lines,
    )


def _with_something_to_say(columns: Sequence[Column], rows: Sequence[Row]) -> Sequence[Column]:
    nothing = format_cell(None)
    return [each for each in columns if not each.optional or any(each.cell(row) != nothing for row in rows)]


def terminal_width(stream: IO[str]) -> int | None:
    """Return the columns of the terminal `stream`, at most 200; None if it is no terminal."""
    if not stream.isatty():
        return None
    try:
        columns = max(int(os.environ.get("COLUMNS", "0")), 0) or os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return min(columns or _USUAL_COLUMNS, _MOST_COLUMNS)


def plain_table(columns: Sequence[Column], rows: Sequence[Row]) -> Iterator[str]:
    """Return the lines of a table: columns aligned under upper-case headers, the last one never padded."""
    rows = list(rows)  # they may be made at each look
    cells = [[column.header, *column.cells(rows)] for column in columns]
    if all("".join(texts).isascii() for texts in cells):
        line = _GAP.join(f"%-{max(map(len, texts))}s" for texts in cells)
        return ((line % row_cells).rstrip() for row_cells in zip(*cells, strict=True))
    widths = [max(map(cells_of, texts)) for texts in cells]
    return (_GAP.join(map(_padded, row_cells, widths)).rstrip() for row_cells in zip(*cells, strict=True))


def _write_rows(
    columns: Sequence[Column],
    rows: Sequence[Row],
    stream: IO[str],
    *,
    color: bool,
    width: int | None,
    every: Sequence[Row],
) -> None:
    """Write a table; on a terminal that is too narrow, what `every` row shares first, or blocks."""
    if width is None:
        stream.writelines(f"{line}\n" for line in plain_table(columns, rows))
        return
    for left, beyond in _ways_to_fit(columns, every):
        if _least_width(left, rows, beyond) <= width:
            if shared := [each for each in columns if each not in left]:
                stream.writelines(f"{line}\n" for line in blocks(shared, rows[:1], width))
            _write_table(left, rows, stream, color=color, width=width, beyond=beyond)
            return
    stream.writelines(f"{line}\n" for line in blocks(columns, rows, width))


def _ways_to_fit(columns: Sequence[Column], rows: Sequence[Row]) -> Iterator[tuple[Sequence[Column], int]]:
    """Yield columns for a table and how tight their cells may be: without more and more of those all rows share."""
    yield columns, _FOLD_BEYOND
    shared = [each for each in columns if len(set(each.cells(rows))) == 1]
    if len(shared) == len(columns):  # those of the only row, too
        return
    left = list(columns)
    for each in sorted(shared, key=partial(_cell_width, rows[0]), reverse=True):
        left.remove(each)
        yield left, _FOLD_BEYOND
    yield left, _FOLD_TIGHT


def _cell_width(row: Row, column: Column) -> int:
    return max(len(column.header), cells_of(column.cell(row)))


def _write_table(
    columns: Sequence[Column], rows: Sequence[Row], stream: IO[str], *, color: bool, width: int, beyond: int
) -> None:
    """Write aligned columns, folded to fit `width`, and none tighter than `beyond`."""
    from rich.console import Console
    from rich.text import Text

    cells = [_shown(columns, row) for row in rows]
    widths = _widths(columns, cells, width, beyond)
    colors = "auto" if color else None
    console = Console(file=stream, markup=False, highlight=False, width=width, color_system=colors)  # type: ignore[arg-type]  # rich names its colour systems in a Literal
    headers = [(column.header, "bold") for column in columns]
    styled = [[(cell, column.style(row)) for column, cell in zip(columns, line, strict=True)]
              for line, row in zip(cells, rows, strict=True)]  # fmt: skip
    for each in [headers, *styled]:
        folded = [fold_hard(cell, widths[number]) for number, (cell, _style) in enumerate(each)]
        for number in range(max(map(len, folded))):
            parts = [lines[number] if number < len(lines) else "" for lines in folded]
            text = Text(_GAP).join(Text(_padded(part, widths[at]), style=each[at][1]) for at, part in enumerate(parts))
            text.rstrip()
            console.print(text, soft_wrap=True)


def _shown(columns: Sequence[Column], row: Row) -> list[str]:
    """Return the cells of a row for a terminal; replace JSON that repeats the column before."""
    cells = [column.cell(row) for column in columns]
    pairs = zip(["", *cells], cells, strict=False)
    return [_SAME if cell == before and cell.startswith("{") else cell for before, cell in pairs]


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int, beyond: int) -> list[int]:
    """Return the columns' widths: at least their minimum, with the widest ones reduced until all fit."""
    least, whole = _least_widths(columns, cells, beyond), _whole_widths(columns, cells)
    room = width - len(_GAP) * (len(columns) - 1)
    limit = max(whole)
    while sum(found := [max(low, min(high, limit)) for low, high in zip(least, whole, strict=True)]) > room:
        limit -= 1
    return found


def _whole_widths(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(len(column.header), *map(cells_of, found))
        for column, found in zip(columns, zip(*cells, strict=True), strict=True)
    ]


def _least_widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], beyond: int) -> list[int]:
    """Return the minimum width of each column: header, short cells, ids and the members of JSON stay whole."""
    least = []
    for column, found in zip(columns, zip(*cells, strict=True), strict=True):
        longest, piece = max(map(cells_of, found)), max(_least_cell(each, is_alone=len(cells) == 1) for each in found)
        least.append(max(len(column.header), min(longest, beyond), piece))
    return least


def _least_cell(cell: str, *, is_alone: bool) -> int:
    piece = longest_piece(cell)
    return piece if is_alone or is_json(cell) else min(piece, _LONGEST_ID)


def _least_width(columns: Sequence[Column], rows: Sequence[Row], beyond: int) -> int:
    cells = [_shown(columns, row) for row in rows]
    return sum(_least_widths(columns, cells, beyond)) + len(_GAP) * (len(columns) - 1)


def blocks(columns: Sequence[Column], rows: Sequence[Row], width: int | None = None) -> Iterator[str]:
    """Yield each row as lines of header and cell, then a blank line; leave a long word to the terminal.

    An optional column is left out of a row in which it is empty.
    """
    indent = max(len(column.header) for column in columns) + len(_GAP)
    nothing = format_cell(None)
    for row in rows:
        for column, cell in zip(columns, _shown(columns, row), strict=True):
            if column.optional and cell == nothing:
                continue
            first, *more = fold(cell, None if width is None else max(width - indent, 1), hanging="")
            yield column.header.ljust(indent) + first
            yield from (" " * indent + part for part in more)
        yield ""


_MOST_FOLLOWING = 6
"""The largest number of consequences that are shown in full; of more, only the codes are."""


class ShownFinding(Protocol):
    """A row that is a finding."""

    @property
    def severity(self) -> str:
        """The severity."""

    @property
    def fix(self) -> str:
        """The remedy."""

    @property
    def evidence(self) -> Mapping[str, object]:
        """The facts that prove the finding."""

    def headline(self) -> str:
        """Format code, subject and message in one line."""


def finding_lines(report: Report) -> Iterable[str]:
    """Yield each finding with its fix right below, then the summary."""
    rows: Sequence[ShownFinding] = report.rows
    width = max((len(row.severity) for row in rows), default=0)
    for row in rows:
        yield f"{row.severity:<{width}}  {row.headline()}"
        for number, line in enumerate(lines_of(row.fix)):
            yield f"{'':<{width}}  {'     ' if number else 'fix: '}{line}"
        yield from (f"{'':<{width}}  follows: {printable(text)}" for text in _following(row))
    yield from ("", *summary_lines(report))


def _following(row: ShownFinding) -> Iterable[str]:
    """Yield the consequences of this finding, which are no findings of their own."""
    follows = row.evidence.get("follows")
    rows: list[Mapping[str, object]] = follows if isinstance(follows, list) else []
    if len(rows) <= _MOST_FOLLOWING:
        yield from (f"{each['code']}: {each['message']}" for each in rows)
        return
    codes = Counter(str(each["code"]) for each in rows)
    names = ", ".join(f"{count} {code}" if count > 1 else code for code, count in codes.items())
    yield f"{len(rows)} findings, which -o json has: {names}"


def findings_text(empty: str) -> Text:
    """Return a text with two lines per finding, as sentences are too long for a table; `empty` is for none."""
    return Text(columns=(), lines=finding_lines, empty=empty)
