"""A pseudo-terminal for tests: what a program prints there, and what is left on the screen when it has ended."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyte

from tests.forked import forked

_CODE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")
_GIVE_UP_S = 60.0
_OF_TERMINALS = ("COLUMNS", "LINES", "NO_COLOR", "TERM")
_CHECKOUT = Path(__file__).parents[1]  # programs import from tests


def start(argv: Sequence[str], environ: Mapping[str, str], **how: Any) -> subprocess.Popen[Any]:
    """Python with `argv` in the checkout; what is given as text (`-c`) loads no module again."""
    if argv[0] == "-c":
        return forked(argv[1], argv[2:], environ=environ, cwd=_CHECKOUT, **how)
    return subprocess.Popen([sys.executable, *argv], env=environ, cwd=_CHECKOUT, **how)


def on_a_terminal(
    argv: Sequence[str],
    *,
    columns: int,
    rows: int = 50,
    environ: Mapping[str, str] | None = None,
    interrupt_when: Callable[[], bool] | None = None,
    expected_status: int = 0,
) -> str:
    """Runs Python with `argv` on a terminal of its own; returns everything that it printed there.

    It gets a SIGINT once something is printed after `interrupt_when` became true.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    surroundings = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "TERM")}
    surroundings |= {"TERM": "xterm-256color", **(environ or {})}
    started = start(argv, surroundings, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    printed = b""
    while True:
        try:
            block = os.read(master, 65536)
        except OSError:  # Linux: the last one that had the terminal open is gone
            break
        if not block:
            break
        printed += block
        if interrupt_when is not None and interrupt_when():
            started.send_signal(signal.SIGINT)
            interrupt_when = None
    os.close(master)
    assert started.wait(timeout=_GIVE_UP_S) == expected_status, printed.decode()
    return printed.decode().replace("\r\n", "\n")


def screen_after(printed: str) -> list[str]:
    """The lines that are left when the cursor moves and erasures in `printed` are done; colours are dropped.

    Raises AssertionError for a code that it does not know, and where the cursor was left hidden.
    """
    lines, row, column, hidden = [""], 0, 0, False
    for text, code in _pieces(printed):
        if code is None:
            for part in re.split(r"([\r\n])", text):
                if part == "\r":
                    column = 0
                elif part == "\n":
                    row, column = row + 1, 0
                    lines += [""] * (row + 1 - len(lines))
                else:
                    lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
                    column += len(part)
            continue
        match code:
            case (count, "A"):
                row -= int(count or 1)
            case ("2", "K"):
                lines[row] = ""
            case ("?25", state):
                hidden = state == "l"
            case (_colours, "m"):
                pass
            case _:
                raise AssertionError(f"unknown code {code}")
    assert not hidden, "the cursor was left hidden"
    return [line.rstrip() for line in lines]


def _pieces(printed: str) -> list[tuple[str, tuple[str, str] | None]]:
    """Text and codes in their order."""
    found: list[tuple[str, tuple[str, str] | None]] = []
    at = 0
    for match in _CODE.finditer(printed):
        found += [(printed[at : match.start()], None), ("", (match[1], match[2]))]
        at = match.end()
    return [*found, (printed[at:], None)]


class Cell(NamedTuple):
    """One character of a screen, as it looks; the color is pyte's name."""

    text: str
    color: str
    bold: bool
    reverse: bool


class EmulatedTerminal:
    """A program on a terminal whose screen can be looked at while it runs: pyte does what the codes say.

    pyte has one screen only: `printed` shows whether the alternate one was entered and left.
    """

    def __init__(
        self, argv: Sequence[str], *, columns: int, rows: int, environ: Mapping[str, str] | None = None
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self._screen)
        self.master, slave = pty.openpty()
        self._set_size(columns, rows)
        surroundings = {name: value for name, value in os.environ.items() if name not in _OF_TERMINALS}
        surroundings |= {"TERM": "xterm-256color", **(environ or {})}
        self.modes_before = termios.tcgetattr(slave)
        self.started = start(
            argv, surroundings, first=take_terminal, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        self._slave = slave
        self.printed = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def __enter__(self) -> EmulatedTerminal:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self.started.poll() is None:
            os.killpg(self.started.pid, signal.SIGKILL)
            self.started.wait()
        os.close(self._slave)
        os.close(self.master)

    def press(self, keys: str) -> None:
        """Types."""
        os.write(self.master, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """As when somebody pulls at the window: the kernel sends SIGWINCH."""
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)

    def lines(self) -> list[str]:
        """What stands on the screen now."""
        self._read(0)
        return [line.rstrip() for line in self._screen.display]

    def cells(self) -> list[list[Cell]]:
        """Return what stood on the screen when it was last read, with its colors."""
        rows = (self._screen.buffer[number] for number in range(self._screen.lines))
        chars = ([row[column] for column in range(self._screen.columns)] for row in rows)
        return [[Cell(each.data, each.fg, each.bold, each.reverse) for each in row] for row in chars]

    def wait_for(self, is_there: Callable[[list[str]], bool]) -> list[str]:
        """The screen once it is so; raises AssertionError with what it was last."""
        until_s = time.monotonic() + _GIVE_UP_S
        while not is_there(self.lines()):
            assert time.monotonic() < until_s, "\n".join(self.lines())
            self._read(0.2)
        return self.lines()

    def wait_for_text(self, text: str) -> list[str]:
        """The screen once some line has `text`."""
        return self.wait_for(lambda lines: any(text in line for line in lines))

    def end(self) -> int:
        """Waits for the end of the program; its exit code."""
        until_s = time.monotonic() + _GIVE_UP_S
        while self.started.poll() is None:
            assert time.monotonic() < until_s, "\n".join(self.lines())
            self._read(0.1)
        self._read(0)
        return int(self.started.returncode)

    def after(self) -> str:
        """What was printed after the alternate screen was left."""
        return self.printed.rpartition("\x1b[?1049l")[2].replace("\r\n", "\n")

    def is_as_before(self) -> bool:
        """Whether the terminal's modes, its screen and its cursor are those before the program."""
        last = {code: self.printed.rfind(f"\x1b[{code}") for code in ("?1049h", "?1049l", "?25l", "?25h", "?7l", "?7h")}
        left = all(last[on] < last[off] for on, off in (("?1049h", "?1049l"), ("?25l", "?25h"), ("?7l", "?7h")))
        return left and termios.tcgetattr(self._slave) == self.modes_before

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self, patience_s: float) -> None:
        while select.select([self.master], [], [], patience_s)[0]:
            text = self._decoder.decode(os.read(self.master, 65536))
            self.printed += text
            self._stream.feed(text)
            patience_s = 0


def take_terminal() -> None:
    """Makes the terminal on stdin that of the new session, so that its signals reach the program."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
