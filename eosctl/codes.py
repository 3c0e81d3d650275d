"""Stable codes: the name that reports print, its meaning, and the next step.

A code is declared once, beside the rule that finds it: in the `codes.py` of a room, or in the class of an error.
`explain/entries.py` lists these modules.
"""

from __future__ import annotations


class Code(str):
    """The code itself; `eosctl explain` prints its `meaning` and its `next` step (empty without one)."""

    __slots__ = ("kind", "meaning", "next")
    kind: str
    meaning: str
    next: str

    def __new__(cls, code: str, kind: str, meaning: str, next_step: str = "") -> Code:
        """Make a code of one `kind`: its section in docs/codes.md."""
        made = super().__new__(cls, code)
        made.kind, made.meaning, made.next = kind, meaning, next_step
        return made

    def __getnewargs__(self) -> tuple[str, str, str, str]:  # type: ignore[override]  # for pickle and copy
        return str(self), self.kind, self.meaning, self.next


def error(code: str, meaning: str, next_step: str = "") -> Code:
    """Declare the code of an error, with which a command fails."""
    return Code(code, "error", meaning, next_step)


def warning(code: str, meaning: str, next_step: str = "") -> Code:
    """Declare the code of a warning, which a command that succeeds reports."""
    return Code(code, "warning", meaning, next_step)


def finding(code: str, meaning: str, next_step: str = "") -> Code:
    """Declare the code of a finding about topics, records, connectors, workers or rights."""
    return Code(code, "finding", meaning, next_step)


def gate(code: str, meaning: str, next_step: str) -> Code:
    """Declare the code of a gate: a condition that must hold before workers change their mode.

    `upgrade verify` and `upgrade apply` use it as a code too.
    """
    return Code(code, "gate", meaning, next_step)
