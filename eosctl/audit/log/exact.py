"""Exact values of fields: bytes to compare them, text to show them, or a number. Pure.

1 and "1" are two values; 1, 1.0 and 1e0 are one number. Nothing passes through a double.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from eosctl.audit.log.field_paths import read_json

_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LABELLED = re.compile(r"(?P<label>.*?)(?P<count>[0-9]+)", re.DOTALL)
_MOST_DIGITS = 1000


def encoded(value: object) -> bytes:
    """Return bytes that two values share if they are equal, and only then."""
    return b"".join(_encode(value))


def _encode(value: object) -> Iterator[bytes]:
    match value:
        case bytes():
            yield _sized(b"b", value)
        case str():
            yield _sized(b"s", value.encode("utf-8", "surrogatepass"))
        case Decimal():
            yield _sized(b"n", _digits(value).encode())
        case Mapping():
            yield b"m%d:" % len(value)
            for name in sorted(value):
                yield from _encode(name)
                yield from _encode(value[name])
        case Sequence():
            yield b"l%d:" % len(value)
            for each in value:
                yield from _encode(each)
        case _:  # True, False, None
            yield _sized(b"c", str(value).encode())


def _sized(kind: bytes, data: bytes) -> bytes:
    return b"%s%d:%s" % (kind, len(data), data)


def _digits(number: Decimal) -> str:
    """Return the number without zeros at either end; `normalize` would round it."""
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    stripped = text.rstrip("0")
    return f"{'-' if sign else ''}{stripped}e{int(exponent) + len(text) - len(stripped)}" if stripped else "0"


def shown(value: object) -> str:
    """Return a value as a person reads it."""
    match value:
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case str():
            return value
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case tuple():
            return ", ".join(map(shown, value))
        case Mapping():
            return "{" + ", ".join(f"{name}: {shown(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(shown, value)) + "]"
    return str(value)


def number_in(value: object) -> tuple[str, int] | None:
    """Return the whole number at the end of a value, and the text before it; None where there is none."""
    if isinstance(value, bytes):
        found = read_json(value)
        value = value.decode("utf-8", "surrogateescape") if found is None else found
    if isinstance(value, str):
        if not _DECIMAL.fullmatch(value):
            match = _LABELLED.fullmatch(value)
            is_short = match is not None and len(match["count"]) <= _MOST_DIGITS
            return (match["label"], int(match["count"])) if match is not None and is_short else None
        try:
            value = Decimal(value)
        except ArithmeticError:  # an exponent beyond all
            return None
    if not isinstance(value, Decimal) or value.adjusted() > _MOST_DIGITS:
        return None
    number = int(value)
    return ("", number) if value == number else None
