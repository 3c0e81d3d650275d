"""Breaks lines: between words, and in JSON behind commas; never within a word or a number."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PIECE = re.compile(r"[^,]*,+|[^,]+")


def fold(line: str, width: int | None, *, hanging: str = "  ") -> list[str]:
    """Break `line` into lines of `width`, the further ones behind `hanging`; keep a longer piece whole.

    A line to be pasted into a shell stays one line: an undo command, an assignment.
    """
    if width is None or len(line) <= width or line.startswith(("undo: ", "export ")):
        return [line]
    import textwrap  # for terminals that are too narrow

    own = line[: len(line) - len(line.lstrip())]
    folded = textwrap.wrap(
        line, width, subsequent_indent=own + hanging, break_long_words=False, break_on_hyphens=False, tabsize=1
    )
    return [part for long in folded for part in _at_commas(long, width, own + hanging)]


def fold_hard(text: str, width: int) -> list[str]:
    """Break `text` like `fold`, but let nothing exceed `width`: break long pieces anywhere."""
    lines = fold(text, width, hanging="")
    return [line[start : start + width] for line in lines for start in range(0, max(len(line), 1), width)]


def longest_piece(text: str) -> int:
    """Return the minimum width at which `fold` keeps all lines within it."""
    return max((len(piece) for word in text.split() for piece in _pieces(word)), default=0)


def _pieces(word: str) -> list[str]:
    """Split a word where it may be broken: JSON behind its commas, anything else not at all."""
    return _PIECE.findall(word) if is_json(word) else [word]


def is_json(word: str) -> bool:
    """Decide whether a word is JSON, or a part of it: its commas are no part of a name."""
    return word.startswith(("{", "[", '"')) or '":' in word


def _at_commas(line: str, width: int, indent: str) -> Iterator[str]:
    """Yield a line that is still too long in parts: as much as fits, then the rest behind `indent`."""
    room = line[: len(line) - len(line.lstrip())]
    for number, piece in enumerate(_pieces(line.strip())):
        if number and len(room) + len(piece) > width:
            yield room
            room = indent
        room += piece
    yield room
