"""Wording that messages share: counts, so that none says "1 tasks" or "1 partition(s)", and names that were meant."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 task`, `2 tasks`; `plural` where an s at the end is not it (`key is`, `keys are`)."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def encodable(text: str) -> str:
    """Text that can be encoded: JSON may spell half a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8")


def did_you_mean(word: str, known: Iterable[str], *, most: int, otherwise: str) -> str:
    """A hint with those of `known` that are spelled nearly so, `most` at most; `otherwise` where none is."""
    from difflib import get_close_matches  # for an error only

    near = get_close_matches(word, list(known), n=most, cutoff=0.5)
    return f"Did you mean {', '.join(near)}?" if near else otherwise


def alike_first(wanted: str, names: Iterable[str]) -> list[str]:
    """Names of which one may have been meant, the most alike first."""
    from difflib import SequenceMatcher  # for an error only

    return sorted(names, key=lambda name: (-SequenceMatcher(None, wanted, name).ratio(), name))
