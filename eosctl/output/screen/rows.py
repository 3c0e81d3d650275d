"""The rows of a screen: spans of styled text, cut and folded by terminal cells. Pure.

Text from outside is made printable here: no row can control the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len, chop_cells, set_cell_size

from eosctl.foreign import printable

CUT = "…"
_RESET = "\x1b[m"
_SGR = {"bold": "1", "dim": "2", "reverse": "7", "red": "31", "green": "32", "yellow": "33"}
_COLOURS = frozenset({"red", "green", "yellow"})


class TextSpan(Struct, frozen=True):
    """Text in one style; the style is names of `_SGR`, separated by blanks."""

    text: str
    style: str = ""


class ScreenRow(Struct, frozen=True):
    """One row of the screen.

    `flows`: its text goes on in the next row, so that both are copied as one line.
    """

    spans: tuple[TextSpan, ...] = ()
    flows: bool = False

    @property
    def text(self) -> str:
        """The text without styles."""
        return "".join(span.text for span in self.spans)

    def styled(self, style: str) -> ScreenRow:
        """Return the row with one more style for all of it."""
        return replace(self, spans=tuple(TextSpan(each.text, f"{each.style} {style}".strip()) for each in self.spans))

    def encoded(self, *, color: bool) -> str:
        """Encode the row with its escape codes; without `color`, omit colours."""
        return "".join(_encoded(span, color=color) for span in self.spans)


def _encoded(span: TextSpan, *, color: bool) -> str:
    words = [word for word in span.style.split() if color or word not in _COLOURS]
    return f"\x1b[{';'.join(_SGR[word] for word in words)}m{span.text}{_RESET}" if words else span.text


def shown(text: str) -> str:
    """Return `text` on one line, without control characters."""
    return printable(text)


def width_of(text: str) -> int:
    """Return the number of cells that the text takes: wide characters take two."""
    return cell_len(text)


def cut(text: str, width: int) -> str:
    """Cut `text` to at most `width` cells, with an ellipsis."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + CUT


def fit(text: str, width: int) -> str:
    """Cut or pad `text` to exactly `width` cells."""
    short = cut(text, width)
    return short + " " * (width - cell_len(short))


def row_of(spans: Iterable[TextSpan], width: int) -> ScreenRow:
    """Put the spans on one row, and cut them at the edge of the screen."""
    kept: list[TextSpan] = []
    room = width
    for span in spans:
        text = cut(span.text, room)
        kept.append(replace(span, text=text))
        room -= cell_len(text)
        if text != span.text or room <= 0:
            break
    return ScreenRow(tuple(kept))


def left_and_right(left: Sequence[TextSpan], right: Sequence[TextSpan], width: int) -> ScreenRow:
    """Put spans at the left and the right edge; omit the right ones if they take half of the row."""
    needed = sum(cell_len(span.text) for span in right)
    if needed + 2 > width // 2:
        return row_of(left, width)
    start = row_of(left, width - needed - 2)
    gap = width - needed - cell_len(start.text)
    return ScreenRow((*start.spans, TextSpan(" " * gap), *right))


def folded(text: str, width: int, *, indent: str = "") -> list[ScreenRow]:
    """Fold a sentence into rows, broken between words, each behind `indent`."""
    room = max(width - cell_len(indent), 1)
    lines, line = list[str](), ""
    for word in shown(text).split(" "):
        longer = f"{line} {word}" if line else word
        if cell_len(longer) <= room:
            line = longer
            continue
        if line:
            lines.append(line)
        *whole, line = chop_cells(word, room) or [""]
        lines += whole
    return [ScreenRow((TextSpan(indent + each),)) for each in [*lines, line]]


def copyable_rows(text: str, width: int) -> list[ScreenRow]:
    """Put a command on full rows, without indent and breaks, so that it can be copied whole."""
    parts = chop_cells(shown(text), max(width, 1)) or [""]
    return [ScreenRow((TextSpan(part),), flows=number < len(parts)) for number, part in enumerate(parts, start=1)]
