"""Lists as settings spell them: items with commas between them."""

from __future__ import annotations


def split_list(text: str) -> tuple[str, ...]:
    """Split a comma-separated list into its items, without blanks around them."""
    return tuple(item.strip() for item in text.split(",") if item.strip())
