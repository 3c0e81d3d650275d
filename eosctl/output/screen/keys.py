"""The names of keys, decoded from what a terminal sends. Pure."""

from __future__ import annotations

import re

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
