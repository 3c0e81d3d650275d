"""What Kafka takes for the name of a topic (`Topic.validate`, Kafka 4.3)."""

from __future__ import annotations

import re

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")
RULE = "letters, digits, dots, underscores and hyphens, at most 249 of them"


def is_topic_name(text: str) -> bool:
    """Whether there can be a topic of that name."""
    return _LEGAL.fullmatch(text) is not None and text not in (".", "..")
