"""Where lines may break: between words, and in JSON behind commas; in a word or a number never."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PIECE = re.compile(r"[^,]*,+|[^,]+")


def fold(line: str, width: int | None, *, hanging: str = "  ") -> list[str]:
    """`line` broken into lines of `width`, the further ones behind `hanging`; a piece that is too long stays whole.

    What is to be pasted into a shell stays one line: an undo command, an assignment.
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
    """As `fold`, but nothing is longer than `width`: what has no better place is broken anywhere."""
    lines = fold(text, width, hanging="")
    return [line[start : start + width] for line in lines for start in range(0, max(len(line), 1), width)]


def longest_piece(text: str) -> int:
    """The width without which `fold` would leave a longer line."""
    return max((len(piece) for word in text.split() for piece in _pieces(word)), default=0)


def _pieces(word: str) -> list[str]:
    """What a word may be broken into: JSON behind its commas, anything else not at all."""
    return _PIECE.findall(word) if is_json(word) else [word]


def is_json(word: str) -> bool:
    """Whether a word is JSON, or a part of it: its commas are no part of a name."""
    return word.startswith(("{", "[", '"')) or '":' in word


def _at_commas(line: str, width: int, indent: str) -> Iterator[str]:
    """A line that is still too long: as much of it as fits, then the rest behind `indent`."""
    room = line[: len(line) - len(line.lstrip())]
    for number, piece in enumerate(_pieces(line.strip())):
        if number and len(room) + len(piece) > width:
            yield room
            room = indent
        room += piece
    yield room
