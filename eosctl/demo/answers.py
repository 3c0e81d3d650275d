"""What the demo shows of a command's answer: as much as matters, with marks for what is left out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from eosctl.core.wording import counted

WIDTH = 100
"""The columns that the story fits."""
_CUT, _LEFT_OUT = "...", "[...]"
Shows = Callable[[Sequence[str]], Sequence[str]]
"""What is shown of a command's answer."""


def lines_with(*texts: str) -> Shows:
    """Show the lines that contain one of the texts; a mark stands for those between them."""

    def shows(lines: Sequence[str]) -> Sequence[str]:
        return list(_with_marks(lines, [any(text in line for text in texts) for line in lines]))

    return shows


def columns(*headers: str, most: int = 8) -> Shows:
    """Show these columns of a table, and its first rows; a mark stands for the others."""

    def shows(lines: Sequence[str]) -> Sequence[str]:
        known = lines[0].split() if lines else []
        starts = [lines[0].index(f" {name}" if number else name) + bool(number) for number, name in enumerate(known)]
        ends = [*starts[1:], None]
        wanted = [(starts[at], ends[at]) for at in (known.index(name) for name in headers if name in known)]
        rows = takewhile(lambda line: all(line[start - 1 : start] in (" ", "") for start in starts), lines)
        table = list(rows)[: most + 1]
        cells = [[line[start:end].strip() for start, end in wanted] for line in table]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        shown = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        left = len(known) - len(wanted)
        return [shown[0] + (f"  {_LEFT_OUT} {counted(left, 'more column')}" if left else ""), *shown[1:]]

    return shows


def _with_marks(lines: Sequence[str], keep: Sequence[bool]) -> Iterator[str]:
    is_marked = False
    for line, is_kept in zip(lines, keep, strict=True):
        if is_kept:
            yield line
        elif not is_marked and line.strip():
            yield _LEFT_OUT
        is_marked = not is_kept and (is_marked or bool(line.strip()))


def shortened(lines: Sequence[str]) -> Sequence[str]:
    """Cut lines that are too long for the story; a mark stands for the rest."""
    room = WIDTH - len("   ")
    return [line if len(line) <= room else line[: room - len(_CUT)].rstrip() + _CUT for line in lines]
