"""A pseudo-terminal for tests: what a program prints there, and what is left on the screen when it has ended."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_CODE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")
_GIVE_UP_S = 60.0
_CHECKOUT = Path(__file__).parents[1]  # programs import from tests


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
    started = subprocess.Popen(
        [sys.executable, *argv], stdin=slave, stdout=slave, stderr=slave, env=surroundings, cwd=_CHECKOUT
    )
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
