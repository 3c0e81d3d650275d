"""Report -> text. A pipe gets aligned columns, nothing cut off, no escape codes; a terminal gets what fits it.

On a terminal a table folds its cells; where that would leave too little of a column, or break an id, each row becomes a
block of lines. Sentences fold between words. Words are never broken or cut there, so that paths and commands can be
copied.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from typing import IO

from eosctl.render.cells import Column, format_cell
from eosctl.render.views import view_of
from eosctl.report import Report, Row

_GAP = "  "
_FOLD_BEYOND = 20  # characters: a cell folded tighter than this can't be read
_LONGEST_ID = 64  # characters: what is longer, say the path of a log, leaves too little to the other columns
_MOST_COLUMNS = 200  # characters: a table that is wider is hard to follow with the eye
_USUAL_COLUMNS = 80


def write_text(report: Report, stream: IO[str], *, color: bool, wide: bool, most_rows: int | None = None) -> None:
    """The rows as a table, then the closing lines; `wide` adds the view's further columns.

    Only the first rows, where the view or the caller (`most_rows`) wants no more.
    """
    view = view_of(report)
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
    for line in view.footer(report):
        stream.writelines(f"{part}\n" for part in (fold(line, width) if view.prose else [line]))


def _with_something_to_say(columns: Sequence[Column], rows: Sequence[Row]) -> Sequence[Column]:
    nothing = format_cell(None)
    return [each for each in columns if not each.optional or any(each.cell(row) != nothing for row in rows)]


def terminal_width(stream: IO[str]) -> int | None:
    """Columns of the terminal that `stream` is, at most 200; None where it is no terminal."""
    if not stream.isatty():
        return None
    try:
        columns = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return min(columns or _USUAL_COLUMNS, _MOST_COLUMNS)


def fold(line: str, width: int | None, *, hanging: str = "  ") -> list[str]:
    """`line` broken between words into lines of `width`, the further ones behind `hanging`.

    What is to be pasted into a shell stays one line: an undo command, an assignment.
    """
    if width is None or len(line) <= width or line.startswith(("undo: ", "export ")):
        return [line]
    own = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line, width, subsequent_indent=own + hanging, break_long_words=False, break_on_hyphens=False, tabsize=1
    )


def plain_table(columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    """Aligned columns with upper-case headers; the last column is never padded."""
    cells = [[column.header for column in columns]]
    cells += [[column.cell(row) for column in columns] for row in rows]
    line = _GAP.join(f"{{:<{max(map(len, column))}}}" for column in zip(*cells, strict=True))
    return [line.format(*row_cells).rstrip() for row_cells in cells]


def _write_rows(
    columns: Sequence[Column], rows: Sequence[Row], stream: IO[str], *, color: bool, width: int | None
) -> None:
    """A table; on a terminal that is too narrow for one, blocks."""
    if width is None:
        stream.writelines(f"{line}\n" for line in plain_table(columns, rows))
    elif _least_width(columns, rows) > width:
        stream.writelines(f"{line}\n" for line in blocks(columns, rows, width))
    else:
        _write_rich_table(columns, rows, stream, color=color, width=width)


def _write_rich_table(
    columns: Sequence[Column], rows: Sequence[Row], stream: IO[str], *, color: bool, width: int
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(Text(column.header), overflow="fold", min_width=_least_column(column, rows))
    for row in rows:
        table.add_row(*(Text(column.cell(row), style=column.style(row)) for column in columns))
    colors = "auto" if color else None
    Console(file=stream, markup=False, highlight=False, width=width, color_system=colors).print(table)  # type: ignore[arg-type]  # rich names its colour systems in a Literal


def _least_column(column: Column, rows: Sequence[Row]) -> int:
    """The narrowest that `column` may be folded to: header, short cells and ids stay whole, JSON need not."""
    cells = [column.cell(row) for row in rows]
    words = (word for cell in cells if not cell.startswith(("{", "[")) for word in cell.split())
    longest, longest_word = max(map(len, cells)), max(map(len, words), default=0)
    return max(len(column.header), min(longest, _FOLD_BEYOND), min(longest_word, _LONGEST_ID))


def _least_width(columns: Sequence[Column], rows: Sequence[Row]) -> int:
    return sum(_least_column(column, rows) for column in columns) + len(_GAP) * (len(columns) - 1)


def blocks(columns: Sequence[Column], rows: Sequence[Row], width: int | None = None) -> Iterator[str]:
    """Each row as lines of header and cell, and a blank line; a word that is too long is left to the terminal."""
    indent = max(len(column.header) for column in columns) + len(_GAP)
    for row in rows:
        for column in columns:
            first, *more = fold(column.cell(row), None if width is None else max(width - indent, 1), hanging="")
            yield column.header.ljust(indent) + first
            yield from (" " * indent + part for part in more)
        yield ""
