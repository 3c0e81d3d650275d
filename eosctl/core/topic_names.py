"""Valid names of topics (`Topic.validate`, Kafka 4.3)."""

from __future__ import annotations

import re

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")
RULE = "letters, digits, dots, underscores and hyphens, at most 249 of them"


def is_topic_name(text: str) -> bool:
    """Return whether a topic can have that name."""
    return _LEGAL.fullmatch(text) is not None and text not in (".", "..")
