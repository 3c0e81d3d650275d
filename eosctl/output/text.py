"""Writes a Report as text: aligned columns, uncut and without escape codes, in a pipe; fitted to a terminal.

On a terminal a table folds its cells; where that would leave too little of a column, or break an id, each row becomes a
block of lines. Sentences fold between words, JSON behind commas. Words are never broken or cut there, so that paths and
commands can be copied. JSON that the column before has too is `same`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import IO

from eosctl.foreign import printable
from eosctl.output.cells import Column, View, format_cell
from eosctl.output.folding import fold, fold_hard, is_json, longest_piece
from eosctl.report import Report, Row

_GAP = "  "
_FOLD_BEYOND = 20  # characters: a cell folded tighter than this can't be read
_LONGEST_ID = 64  # characters: what is longer, say the path of a log, leaves too little to the other columns
_MOST_COLUMNS = 200  # characters: a table that is wider is hard to follow with the eye
_USUAL_COLUMNS = 80
_SAME = "same"


def write_text(report: Report, stream: IO[str], *, color: bool, wide: bool, most_rows: int | None = None) -> None:
    """Write the rows as a table, then the closing lines; `wide` adds the view's further columns and lines.

    Only the first rows, where the view or the caller (`most_rows`) wants no more.
    """
    view = _view(report)
    width = terminal_width(stream)
    limits = [limit for limit in (view.most_rows, most_rows) if limit is not None]
    rows = report.rows[: min(limits, default=None)]
    if rows and view.columns:
        columns = (*view.columns, *view.wide) if wide else view.columns
        _write_rows(_with_something_to_say(columns, rows), rows, stream, color=color, width=width)
    elif not rows and view.empty:
        stream.write(view.empty + "\n")
    if len(rows) < len(report.rows):
        left = len(report.rows) - len(rows)
        stream.write(f"... and {left:,} more {'row' if left == 1 else 'rows'}; -o json has them all\n")
    more = view.wide_footer(report) if wide and view.wide_footer else ()
    for line in map(printable, (*view.footer(report), *more)):
        stream.writelines(f"{part}\n" for part in (fold(line, width) if view.prose else [line]))


def _view(report: Report) -> View:
    from eosctl.output.rows import Kind

    if not isinstance(report.kind, Kind):
        return View(())  # of what failed before it had rows
    from eosctl.output.columns import columns_of, wide_columns_of

    text = report.kind.text
    return View(
        columns_of(report.kind),
        text.lines,
        empty=text.empty,
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
        columns = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return min(columns or _USUAL_COLUMNS, _MOST_COLUMNS)


def plain_table(columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    """Align columns under upper-case headers; never pad the last column."""
    rows = list(rows)  # they may be made at each look
    cells = [[column.header, *column.cells(rows)] for column in columns]
    line = _GAP.join(f"{{:<{max(map(len, texts))}}}" for texts in cells)
    return [line.format(*row_cells).rstrip() for row_cells in zip(*cells, strict=True)]


def _write_rows(
    columns: Sequence[Column], rows: Sequence[Row], stream: IO[str], *, color: bool, width: int | None
) -> None:
    """Write a table, or blocks on a terminal that is too narrow for a table."""
    if width is None:
        stream.writelines(f"{line}\n" for line in plain_table(columns, rows))
    elif _least_width(columns, rows) > width:
        stream.writelines(f"{line}\n" for line in blocks(columns, rows, width))
    else:
        _write_table(columns, rows, stream, color=color, width=width)


def _write_table(columns: Sequence[Column], rows: Sequence[Row], stream: IO[str], *, color: bool, width: int) -> None:
    """Write aligned columns, folded to fit `width`."""
    from rich.console import Console
    from rich.text import Text

    cells = [_shown(columns, row) for row in rows]
    widths = _widths(columns, cells, width)
    colors = "auto" if color else None
    console = Console(file=stream, markup=False, highlight=False, width=width, color_system=colors)  # type: ignore[arg-type]  # rich names its colour systems in a Literal
    headers = [(column.header, "bold") for column in columns]
    styled = [[(cell, column.style(row)) for column, cell in zip(columns, line, strict=True)]
              for line, row in zip(cells, rows, strict=True)]  # fmt: skip
    for each in [headers, *styled]:
        folded = [fold_hard(cell, widths[number]) for number, (cell, _style) in enumerate(each)]
        for number in range(max(map(len, folded))):
            parts = [lines[number] if number < len(lines) else "" for lines in folded]
            text = Text(_GAP).join(Text(part.ljust(widths[at]), style=each[at][1]) for at, part in enumerate(parts))
            text.rstrip()
            console.print(text, soft_wrap=True)


def _shown(columns: Sequence[Column], row: Row) -> list[str]:
    """Return the cells of a row for a terminal; replace JSON that repeats the column before."""
    cells = [column.cell(row) for column in columns]
    pairs = zip(["", *cells], cells, strict=False)
    return [_SAME if cell == before and cell.startswith("{") else cell for before, cell in pairs]


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the columns' widths: at least their minimum, with the widest ones reduced until all fit."""
    least, whole = _least_widths(columns, cells), _whole_widths(columns, cells)
    room = width - len(_GAP) * (len(columns) - 1)
    limit = max(whole)
    while sum(found := [max(low, min(high, limit)) for low, high in zip(least, whole, strict=True)]) > room:
        limit -= 1
    return found


def _whole_widths(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(len(column.header), *map(len, found))
        for column, found in zip(columns, zip(*cells, strict=True), strict=True)
    ]


def _least_widths(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> list[int]:
    """Return the minimum width of each column: header, short cells, ids and the members of JSON stay whole."""
    least = []
    for column, found in zip(columns, zip(*cells, strict=True), strict=True):
        longest, piece = max(map(len, found)), max(map(_least_cell, found))
        least.append(max(len(column.header), min(longest, _FOLD_BEYOND), piece))
    return least


def _least_cell(cell: str) -> int:
    piece = longest_piece(cell)
    return piece if is_json(cell) else min(piece, _LONGEST_ID)


def _least_width(columns: Sequence[Column], rows: Sequence[Row]) -> int:
    cells = [_shown(columns, row) for row in rows]
    return sum(_least_widths(columns, cells)) + len(_GAP) * (len(columns) - 1)


def blocks(columns: Sequence[Column], rows: Sequence[Row], width: int | None = None) -> Iterator[str]:
    """Yield each row as lines of header and cell, then a blank line; leave a long word to the terminal."""
    indent = max(len(column.header) for column in columns) + len(_GAP)
    for row in rows:
        for column, cell in zip(columns, _shown(columns, row), strict=True):
            first, *more = fold(cell, None if width is None else max(width - indent, 1), hanging="")
            yield column.header.ljust(indent) + first
            yield from (" " * indent + part for part in more)
        yield ""
