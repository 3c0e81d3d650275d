"""Writes JSON as Connect's own JsonConverter does, byte for byte: the form that new offset keys and values must have.

Only for values that eosctl makes up. Data that was read from a topic is never parsed and written anew: its bytes are
copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

from eosctl.errors import UsageError

_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile(r'["\\\x00-\x1f\U00010000-\U0010ffff]')
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_PLAIN_DOUBLE_FROM, _PLAIN_DOUBLE_BELOW = 1e-3, 1e7


def encode_key(connector: str, partition: Mapping[str, object] | None) -> bytes:
    """Return the key under which Connect's REST interface stores an offset: members in the order of a Java HashMap.

    A connector that supplies maps in another order has other keys, which REST can neither see nor change. Raises
    UsageError for what Connect refuses too: members that are not primitive.
    """
    written = "null" if partition is None else _map_text(partition)
    return f"[{string_text(connector)},{written}]".encode()


def encode_offset(offset: Mapping[str, object]) -> bytes:
    """Return an offset as a record value, members in the order of a Java HashMap.

    Raises UsageError like `encode_key`.
    """
    return _map_text(offset).encode()


def _map_text(members: Mapping[str, object]) -> str:
    return "{" + ",".join(f"{string_text(k)}:{primitive_text(members[k])}" for k in hash_map_order(members)) + "}"


def primitive_text(value: object) -> str:
    """Format a string, integer, float, boolean or null as Jackson (2.14 to 2.21) does.

    Raises UsageError for any other value.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, int) and _LONG_MIN <= value <= _LONG_MAX:
        return str(value)
    if isinstance(value, float):
        return double_text(value)
    raise UsageError(
        f"{value!r} cannot be a member of an offset or a source partition",
        hint="Connect takes strings, 64-bit integers, floats, booleans and null; nothing nested.",
    )


def string_text(text: str) -> str:
    """Quote a string as JSON.

    Hexadecimal escapes are in upper case, characters beyond the BMP become two escapes, the rest stays raw. Raises
    UsageError for half a surrogate pair.
    """
    quoted = '"' + _ESCAPED.sub(_escape, text) + '"'
    try:
        quoted.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise UsageError(f"{text!r} holds half a surrogate pair, which no offset can hold") from exc
    return quoted


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[index]:02X}{units[index + 1]:02X}" for index in range(0, len(units), 2))


def double_text(number: float) -> str:
    """Format a double as `Double.toString` does; values without a JSON number become strings (`"NaN"`, `"-Infinity"`).

    Digits are the shortest that read back equal (Java 19+); older Javas now and then write one more.
    """
    if number != number or number in (float("inf"), float("-inf")):
        return {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}[repr(number)]
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    text, minus = "".join(map(str, digits)), "-" if sign else ""
    if number == 0:
        return f"{minus}0.0"
    point = len(text) + int(exponent)  # how many digits stand before the decimal point
    if _PLAIN_DOUBLE_FROM <= abs(number) < _PLAIN_DOUBLE_BELOW:
        whole = text[:point].ljust(point, "0") if point > 0 else "0"
        fraction = text[point:] if point > 0 else "0" * -point + text
        return f"{minus}{whole}.{fraction or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def hash_map_order(keys: Iterable[str]) -> list[str]:
    """Return `keys` in the order in which a Java HashMap, filled in the given order, iterates over them.

    Buckets ascend, a bucket keeps the order of insertion, and the table (16 at first) doubles beyond 3/4 full
    (`java.util.HashMap`, Java 17). Buckets of 8 and more, which become trees in a large map, are not modelled.
    """
    inserted = list(dict.fromkeys(keys))
    capacity = 16
    while len(inserted) > capacity * 3 // 4:
        capacity *= 2
    return sorted(inserted, key=lambda key: _spread_hash(key) & (capacity - 1))


def _spread_hash(text: str) -> int:
    """Compute `HashMap.hash` of `String.hashCode`, as an unsigned 32-bit integer."""
    units = text.encode("utf-16-be", "surrogatepass")
    state = 0
    for index in range(0, len(units), 2):
        state = (31 * state + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return state ^ state >> 16
