"""What a stable code is: the name that reports print, what it means, and what to do next.

A code is declared once, beside the rule that finds it: in the `codes.py` of a room, or in the class of an error.
`explain/entries.py` lists these modules.
"""

from __future__ import annotations


class Code(str):
    """The code itself; `meaning` and `next` (empty where there is nothing to do) are what `eosctl explain` prints."""

    __slots__ = ("kind", "meaning", "next")
    kind: str
    meaning: str
    next: str

    def __new__(cls, code: str, kind: str, meaning: str, next_step: str = "") -> Code:
        """A code of one `kind`: the section of docs/codes.md in which it stands."""
        made = super().__new__(cls, code)
        made.kind, made.meaning, made.next = kind, meaning, next_step
        return made

    def __getnewargs__(self) -> tuple[str, str, str, str]:  # type: ignore[override]  # what pickle and copy call
        return str(self), self.kind, self.meaning, self.next


def error(code: str, meaning: str, next_step: str = "") -> Code:
    """Why a command failed."""
    return Code(code, "error", meaning, next_step)


def warning(code: str, meaning: str, next_step: str = "") -> Code:
    """What a command that succeeds warns of."""
    return Code(code, "warning", meaning, next_step)


def finding(code: str, meaning: str, next_step: str = "") -> Code:
    """What a check says about topics, records, connectors, workers and rights."""
    return Code(code, "finding", meaning, next_step)


def gate(code: str, meaning: str, next_step: str) -> Code:
    """What must be true before workers change their mode; `upgrade verify` and `upgrade apply` use it as a code too."""
    return Code(code, "gate", meaning, next_step)
