"""A screen on a terminal: keys, styled rows, painting, and the terminal that it takes over.

Keys are decoded, as names, from what a terminal sends. Rows are spans of styled text, cut and folded by terminal cells.
Text from outside is made printable here: no row can control the terminal. Both are pure.

Rows are painted on the alternate screen: only those that changed, all at once, so that nothing flickers. Codes: ECMA-48
and xterm's control sequences; terminals without synchronized output (mode 2026) ignore it.

The terminal is one screen's from `with` on; every exit restores it. Signals only wake the waiting thread, which does
all work: nothing is painted from a handler. As elsewhere in the program, Ctrl-C and SIGTERM raise KeyboardInterrupt.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import IO, Any

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len, chop_cells, set_cell_size

from eosctl.foreign import printable

UP, DOWN, PAGE_UP, PAGE_DOWN, FIRST, LAST = "up", "down", "page up", "page down", "first", "last"
CHOOSE, BACK, HELP, QUIT = "enter", "back", "help", "quit"
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[@-~]|.", re.DOTALL)
_NAMES = {
    "k": UP, "\x1b[A": UP, "\x1bOA": UP, "\x10": UP,
    "j": DOWN, "\x1b[B": DOWN, "\x1bOB": DOWN, "\x0e": DOWN,
    "\x1b[5~": PAGE_UP, "\x02": PAGE_UP,
    "\x1b[6~": PAGE_DOWN, " ": PAGE_DOWN, "\x06": PAGE_DOWN,
    "g": FIRST, "\x1b[H": FIRST, "\x1bOH": FIRST, "\x1b[1~": FIRST,
    "G": LAST, "\x1b[F": LAST, "\x1bOF": LAST, "\x1b[4~": LAST,
    "\r": CHOOSE, "\n": CHOOSE,
    "\x1b": BACK, "\x7f": BACK, "\x08": BACK,
    "?": HELP, "h": HELP,
    "q": QUIT, "Q": QUIT,
}  # fmt: skip


def keys_of(text: str) -> list[str]:
    """Return the keys in the text of one read; skip unknown ones, and escape sequences as a whole."""
    return [_NAMES[each] for each in _SEQUENCE.findall(text) if each in _NAMES]


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


ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J"
"""Switch to the alternate screen, empty, without a cursor; long lines are cut, not wrapped."""
LEAVE = "\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"
"""Switch back to the previous screen."""
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


_USUAL = (80, 24)
_WOKEN_BY = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)
_ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class LiveTerminal:
    """The alternate screen of the terminal `out`; keys come from `keyboard`, if that is a terminal."""

    def __init__(self, out: IO[str], *, keyboard: IO[Any] | None = None, color: bool) -> None:
        self._out, self._keyboard = out, sys.stdin if keyboard is None else keyboard
        self._painter = Painter(self._put, color=color)
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        self._before: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._wakeup_before = -1

    def __enter__(self) -> LiveTerminal:
        for end in (self._wake_read, self._wake_write):
            os.set_blocking(end, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        if self._keyboard.isatty():
            self._selector.register(self._keyboard.fileno(), selectors.EVENT_READ)
        self._wakeup_before = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._handlers = {each: signal.signal(each, _ignore_signal) for each in _WOKEN_BY}
        try:
            self._take()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Restore the terminal; pressed keys that were not read go to the shell."""
        self._release()

    def size(self) -> tuple[int, int]:
        """Return the current number of columns and rows."""
        try:
            found = os.get_terminal_size(self._out.fileno())
        except OSError:
            return _USUAL
        return found.columns or _USUAL[0], found.lines or _USUAL[1]

    def show(self, rows: Sequence[ScreenRow]) -> None:
        """Paint the rows that changed."""
        width, height = self.size()
        self._painter.paint(rows, width=width, height=height)

    def wake(self) -> None:
        """End a wait, from any thread."""
        with contextlib.suppress(OSError):  # full: it wakes anyway; closed: there is no waiter
            os.write(self._wake_write, b"\0")

    def wait(self, seconds: float) -> list[str]:
        """Wait for keys, a signal, a `wake` or the timeout; return the pressed keys.

        Ctrl-Z stops the process in here, with the terminal as it was, until it goes on.
        """
        pressed: list[str] = []
        for key, _events in self._selector.select(max(seconds, 0)):
            pressed += self._signalled() if key.fd == self._wake_read else self._read_keys(key.fd)
        return pressed

    def _read_keys(self, keyboard: int) -> list[str]:
        try:
            data = os.read(keyboard, 4096)
        except OSError:  # in the background of a terminal that is gone
            data = b""
        if not data:  # no key can be pressed any more
            self._selector.unregister(keyboard)
            return [QUIT]
        return keys_of(data.decode("utf-8", "replace"))

    def _signalled(self) -> list[str]:
        numbers = b""
        with contextlib.suppress(BlockingIOError):
            numbers = os.read(self._wake_read, 4096)
        if signal.SIGTSTP in numbers:
            self._stop()
        elif signal.SIGWINCH in numbers or signal.SIGCONT in numbers:
            self._painter.forget()
        return []

    def _stop(self) -> None:
        """Suspend the process like one without a screen: the shell has the terminal until `fg`."""
        self._restore()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, _ignore_signal)
        self._take()

    def _take(self) -> None:
        if self._keyboard.isatty():
            descriptor = self._keyboard.fileno()
            self._before = termios.tcgetattr(descriptor)
            tty.setcbreak(descriptor)
        self._painter.forget()
        self._put(ENTER)

    def _restore(self) -> None:
        """Restore the terminal; ignore errors, as it may be gone."""
        with contextlib.suppress(OSError, ValueError):
            self._put(LEAVE)
        if self._before is not None:
            with contextlib.suppress(OSError, ValueError, termios.error):
                termios.tcsetattr(self._keyboard.fileno(), termios.TCSADRAIN, self._before)
            self._before = None

    def _release(self) -> None:
        with _blocked_signals():
            self._restore()
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._wakeup_before)
            self._selector.close()
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _put(self, codes: str) -> None:
        self._out.write(codes)
        self._out.flush()


def _ignore_signal(_signal: int, _frame: FrameType | None) -> None:
    """Ignore the signal: its number is in the pipe, but only if Python has a handler."""


@contextlib.contextmanager
def _blocked_signals() -> Iterator[None]:
    """Block a second Ctrl-C while the terminal changes state; it takes effect afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
