"""One line of the reference."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A code or a word, what it means, and what to do next (empty where there is nothing to do)."""

    code: str
    meaning: str
    next: str = ""
