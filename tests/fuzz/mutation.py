"""Damage to good bytes: most random bytes fail at the first one, and show nothing of what is behind it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

MOST_BYTES = 1 << 12
BETWEEN = b"\n\xf8\n"
"""Between the parts of an example that has several: keys and values, say. It is no UTF-8."""
_BYTES = (0, 1, 0x09, 0x0A, 0x0D, 0x22, 0x24, 0x2D, 0x3A, 0x5C, 0x7B, 0x7F, 0x80, 0xC0, 0xED, 0xFE, 0xFF)
_NUMBERS = (0, 1, -1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 1 << 31, (1 << 63) - 1, 1 << 63)
_DEEP = 1_100
"""Beyond what Python takes of brackets in brackets."""
_DIGITS = (
    *(b"9" * 400, b"9" * 5_000, b"-" + b"9" * 5_000, b"1e400", b"-1e400", b"1" + b"0" * 308, b"0.5", b"-0", b"007"),
    *(b"2147483647", b"2147483648", b"-2147483649", b"9223372036854775807", b"9223372036854775808"),
    *(b"18446744073709551616", b"NaN", b"Infinity", b"1_000", "٣".encode()),
)
_VALUES = (
    *(b"null", b"true", b"false", b"[]", b"{}", b'""', b"[null]", b"[[]]", b'{"a":null}', b'{"":{}}', b'[1,"x",{}]'),
    *(b'"\\ud800"', b'"\\udfff\\ud800"', b'"a\\u0000b"', b'"\\u009b2J"', b'"\\u202e"', b'"a\\nb"', b'"--x"', b'","'),
    *(b"[" * _DEEP, b"[" * _DEEP + b"]" * _DEEP, b'{"a":' * _DEEP + b"1" + b"}" * _DEEP),
)
_TOKENS = (
    *_DIGITS,
    *_VALUES,
    *(b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\xf0\x9f\x98\x80", b"\xc2\x9b", b"\r\n", b"\x85"),
    *(b"!!timestamp x", b"!!int x", b"!!binary x", b"!!python/none", b"&a [*a]", b"*a", b"<<: 1", b"? [a]", b"---\n"),
    *(b"${env:X}", b"\\u12", b"\\uD800", b'["', b'",', b'{"', b"-", b"--", b"/*", b"'", b"%s", b"\\"),
)  # fmt: skip
_SCALAR = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?|true|false|null')
_NUMBER = re.compile(rb"[0-9]+")
Change = Callable[[Random, bytearray, Sequence[bytes]], None]


def mutated(chance: Random, seeds: Sequence[bytes], *, most: int = MOST_BYTES) -> bytes:
    """Return one of the seeds after one to six changes, and at most so many bytes of it."""
    data = bytearray(chance.choice(seeds))
    for _change in range(chance.choice((1, 1, 1, 2, 2, 3, 4, 6))):
        chance.choice(_CHANGES)(chance, data, seeds)
    return bytes(data[:most])


def _stretch(chance: Random, data: bytearray) -> slice:
    """A part of the data, mostly a short one."""
    begin = chance.randint(0, len(data))
    return slice(begin, begin + chance.choice((1, 1, 2, 4, 8, chance.randint(1, 64), chance.randint(1, len(data) + 1))))


def _flip(chance: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _byte(chance: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.choice(_BYTES)


def _binary_number(chance: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    """A number in as many bytes as protocols have them, over what is there."""
    size, at = chance.choice((2, 4, 8)), chance.randint(0, len(data))
    number = chance.choice(_NUMBERS) % (1 << 8 * size)
    data[at : at + size] = number.to_bytes(size, chance.choice(("big", "big", "little")))


def _cut(chance: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    del data[_stretch(chance, data)]


def _end(chance: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    del data[chance.randint(0, len(data)) :]


def _repeat(chance: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    part = _stretch(chance, data)
    piece = data[part]
    data[part] = piece * min(chance.choice((2, 2, 3, 10, 1_000)), 1 + MOST_BYTES // max(1, len(piece)))


def _splice(chance: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    """A piece of another seed, put in or over what is there."""
    other = chance.choice(seeds)
    begin = chance.randint(0, len(other))
    piece = other[begin : begin + chance.randint(1, 64)]
    at = chance.randint(0, len(data))
    data[at : at + chance.choice((0, len(piece)))] = piece


def _token(chance: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    at = chance.randint(0, len(data))
    data[at:at] = chance.choice(_TOKENS)


def _noise(chance: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    at = chance.randint(0, len(data))
    data[at:at] = chance.randbytes(chance.randint(1, 8))


def _scalar(chance: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    _replace(chance, data, _SCALAR, (*_VALUES, *_DIGITS))


def _digits(chance: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    _replace(chance, data, _NUMBER, _DIGITS)


def _replace(chance: Random, data: bytearray, what: re.Pattern[bytes], values: Sequence[bytes]) -> None:
    places = [match.span() for match in what.finditer(data)]
    if places:
        begin, end = chance.choice(places)
        data[begin:end] = chance.choice(values)


_CHANGES: tuple[Change, ...] = (
    *(_flip, _byte, _binary_number, _cut, _end, _repeat, _splice, _token, _noise, _scalar, _scalar, _digits),
)
