"""Wording that messages share: counts, so that none says "1 tasks" or "1 partition(s)", and names that were meant."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 task`, `2 tasks`; `plural` where an s at the end is not it (`key is`, `keys are`)."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def alike_first(wanted: str, names: Iterable[str]) -> list[str]:
    """Names of which one may have been meant, the most alike first."""
    from difflib import SequenceMatcher  # for an error only

    return sorted(names, key=lambda name: (-SequenceMatcher(None, wanted, name).ratio(), name))
