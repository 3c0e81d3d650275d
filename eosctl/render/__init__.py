"""Report -> text or JSON; the only importer of rich.

Text and JSON are projections of the same rows. Plain text goes to pipes and files: aligned columns, nothing cut off,
no escape codes. A terminal gets a rich table that folds instead of cutting; where folding would leave too little of a
column, each row becomes a block of lines.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from typing import IO

from eosctl.render.cells import Column, View, printable
from eosctl.render.views import view_of
from eosctl.report import Report, Row

_GAP = "  "
_FOLD_BEYOND = 20  # characters: a cell folded tighter than this can't be read


def render_report(report: Report, *, output: str, stream: IO[str], color: bool) -> None:
    """Writes `report` to `stream` as `output` (`text` or `json`); `color`: the stream is a colour terminal."""
    if output == "json":
        _write_json(report, stream)
        return
    view = view_of(report)
    rows = report.rows[: view.most_rows]
    if rows:
        _write_rows(view, rows, stream, color=color)
    elif view.empty:
        stream.write(view.empty + "\n")
    if len(rows) < len(report.rows):
        stream.write(f"... and {len(report.rows) - len(rows):,} more rows; -o json has them all\n")
    for line in view.footer(report):
        stream.write(line + "\n")


def _write_json(report: Report, stream: IO[str]) -> None:
    """The envelope with a row per line: no more than one row is in memory as text, and a line can be grepped for."""
    frame = json.dumps(replace(report, rows=()).envelope(), ensure_ascii=False, indent=2)
    head, empty, tail = frame.partition('"rows": []')
    stream.write(head + empty[:-1])
    for number, row in enumerate(report.rows):
        stream.write((",\n      " if number else "\n      ") + json.dumps(dict(row), ensure_ascii=False))
    stream.write(("\n    ]" if report.rows else "]") + tail + "\n")


def render_problems(report: Report, *, stream: IO[str]) -> None:
    """Errors and warnings, one line each, with what to do next."""
    for problem in report.problems:
        for line in (f"{problem.severity}: {problem.message}").splitlines():
            stream.write(printable(line) + "\n")
        for line in (problem.hint or "").splitlines():
            stream.write(f"  {printable(line)}\n")


def plain_table(view: View, rows: Sequence[Row]) -> list[str]:
    """Aligned columns with upper-case headers; the last column is never padded."""
    cells = [[column.header for column in view.columns]]
    cells += [[column.cell(row) for column in view.columns] for row in rows]
    line = _GAP.join(f"{{:<{max(map(len, column))}}}" for column in zip(*cells, strict=True))
    return [line.format(*row_cells).rstrip() for row_cells in cells]


def _write_rows(view: View, rows: Sequence[Row], stream: IO[str], *, color: bool) -> None:
    """A table; on a terminal that is too narrow for one, blocks."""
    columns = shutil.get_terminal_size().columns if stream.isatty() else None
    if columns is not None and _least_width(view, rows) > columns:
        stream.write("".join(line + "\n" for line in blocks(view, rows)))
    elif color:
        _write_rich_table(view, rows, stream)
    else:
        stream.write("".join(line + "\n" for line in plain_table(view, rows)))


def _write_rich_table(view: View, rows: Sequence[Row], stream: IO[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in view.columns:
        table.add_column(Text(column.header), overflow="fold", min_width=_least_column(column, rows))
    for row in rows:
        table.add_row(*(Text(column.cell(row), style=column.style(row)) for column in view.columns))
    Console(file=stream, markup=False, highlight=False).print(table)


def _least_column(column: Column, rows: Sequence[Row]) -> int:
    """The narrowest that `column` may be folded to: its header stays whole, and so does any cell that is short."""
    longest = max(len(column.cell(row)) for row in rows)
    return max(len(column.header), min(longest, _FOLD_BEYOND))


def _least_width(view: View, rows: Sequence[Row]) -> int:
    return sum(_least_column(column, rows) for column in view.columns) + len(_GAP) * (len(view.columns) - 1)


def blocks(view: View, rows: Sequence[Row]) -> list[str]:
    """Each row as lines of header and cell, and a blank line; long cells are left to the terminal."""
    width = max(len(column.header) for column in view.columns)
    lines: list[str] = []
    for row in rows:
        lines += [f"{column.header.ljust(width)}{_GAP}{column.cell(row)}" for column in view.columns]
        lines.append("")
    return lines
