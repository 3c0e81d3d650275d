"""Numbers as Kafka reads them in configurations (`ConfigDef.parseType`): trimmed, then `Integer` or `Long.parse…`."""

from __future__ import annotations

import re

from eosctl.core.java.properties import trimmed

_NUMBER = re.compile(r"[+-]?\d+")
INT_BITS, LONG_BITS = 32, 64


def java_number(text: str, *, bits: int = INT_BITS) -> int | None:
    """The number, signs and all; None for what Kafka refuses, and for what only a worker can resolve."""
    number = trimmed(text)
    if len(number) > 100 or not _NUMBER.fullmatch(number):
        return None
    value = int(number)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None
