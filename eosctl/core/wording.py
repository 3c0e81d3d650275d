"""Grammar of counts in sentences: one function, so that no message says "1 tasks" or "1 partition(s)"."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 task`, `2 tasks`; `plural` where an s at the end is not it (`key is`, `keys are`)."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
