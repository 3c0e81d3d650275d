"""Lists as settings spell them: items with commas between them."""

from __future__ import annotations


def split_list(text: str) -> tuple[str, ...]:
    """The items of a comma-separated list, blanks around them removed."""
    return tuple(item.strip() for item in text.split(",") if item.strip())
