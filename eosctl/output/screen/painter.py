"""Paints rows on a terminal's alternate screen: only those that changed, all at once, so that nothing flickers.

Codes: ECMA-48 and xterm's control sequences; terminals without synchronized output (mode 2026) ignore it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from eosctl.output.screen.rows import ScreenRow, width_of

ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J"
"""Switch to the alternate screen, empty, without a cursor; long lines are cut, not wrapped."""
LEAVE = "\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"
"""Switch back to the screen of before."""
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_CLEAR, _REST_OF_ROW = "\x1b[2J", "\x1b[K"
_WRAP_ON, _WRAP_OFF = "\x1b[?7h", "\x1b[?7l"


class Painter:
    """The state of the screen, and the codes that turn it into the wanted one."""

    def __init__(self, write: Callable[[str], object], *, color: bool) -> None:
        self._write, self._color = write, color
        self._painted: set[tuple[int, tuple[ScreenRow, ...]]] | None = None

    def forget(self) -> None:
        """Forget the state of the screen, so that the next paint is complete."""
        self._painted = None

    def paint(self, rows: Sequence[ScreenRow], *, width: int, height: int) -> None:
        """Paint the first `height` rows, from the top; clear the rest of the screen."""
        wanted = list(_lines([*rows[:height], *[ScreenRow()] * (height - len(rows))]))
        codes = [] if self._painted is not None else [_CLEAR]
        codes += [self._line(at, line, width) for at, line in wanted if (at, line) not in (self._painted or ())]
        if codes:
            self._write(_BEGIN + "".join(codes) + _END)
        self._painted = set(wanted)

    def _line(self, at: int, line: Sequence[ScreenRow], width: int) -> str:
        """Encode a line; leave the wrapping of several rows to the terminal, so that they are copied as one line."""
        text = "".join(row.encoded(color=self._color) for row in line)
        rest = _REST_OF_ROW if width_of(line[-1].text) < width else ""  # else the cursor is on the last character
        if len(line) == 1:
            return f"\x1b[{at};1H{text}{rest}"
        return f"\x1b[{at};1H{_WRAP_ON}{text}{rest}{_WRAP_OFF}"


def _lines(rows: Sequence[ScreenRow]) -> Iterator[tuple[int, tuple[ScreenRow, ...]]]:
    """Join rows that flow into each other; yield each line with the number of its first row, from 1."""
    line: list[ScreenRow] = []
    for number, row in enumerate(rows, start=1):
        line.append(row)
        if not row.flows or number == len(rows):
            yield number - len(line) + 1, tuple(line)
            line = []
