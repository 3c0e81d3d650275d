"""Reads numbers from texts of others: as Kafka reads them in configurations (`ConfigDef.parseType`), and plain digits.

Python itself refuses texts of more than 4,300 digits with a ValueError, which callers do not expect of digits.
"""

from __future__ import annotations

import re

from eosctl.core.java.properties import trimmed

_NUMBER = re.compile(r"[+-]?\d+")
INT_BITS, LONG_BITS = 32, 64
MOST_PORT = 65_535
_MOST, _MOST_DIGITS = (1 << LONG_BITS - 1) - 1, 19


def whole_number(text: str, *, most: int = _MOST) -> int | None:
    """Return the number that ASCII digits spell; None for any other text, and for a number above `most`."""
    digits = text.lstrip("0") or text[-1:]
    if not (text.isascii() and text.isdecimal()) or len(digits) > _MOST_DIGITS:
        return None
    number = int(digits)
    return number if number <= most else None


def java_number(text: str, *, bits: int = INT_BITS) -> int | None:
    """Parse a number, signs included.

    None for what Kafka refuses, and for references that only a worker can resolve.
    """
    number = trimmed(text)
    if len(number) > 100 or not _NUMBER.fullmatch(number):
        return None
    value = int(number)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None
