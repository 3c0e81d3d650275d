"""Source-offset keys as bytes: their connector, and how to rename it inside a key without touching the rest.

Connect finds offsets by the raw bytes of their keys, so nothing here parses a key and writes it anew: the partition
part of a renamed key stays byte for byte as the connector wrote it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from eosctl.core.java.json import string_text
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.errors import UsageError

# `[ "name" ,`: the first element of the key's JSON array, up to and without the comma
_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?[ \t\r\n]*\[[ \t\r\n]*("(?:[^"\\\x00-\x1f]|\\.)*")[ \t\r\n]*,')
# The form that nearly all keys have, read without parsing: ASCII, no escapes, a flat map.
_PLAIN_TEXT = "[ !#-\\[\\]-~]*"
_MEMBER = f'"{_PLAIN_TEXT}":(?:"{_PLAIN_TEXT}"|-?(?:0|[1-9][0-9]{{0,17}})|true|false|null)'
PLAIN_KEY = f'\\["(?P<connector>{_PLAIN_TEXT})",(?:null|\\{{(?:{_MEMBER}(?:,{_MEMBER})*)?\\}})\\]'
"""A pattern for such a key as a whole, in the syntax of Python's `re` and of RE2."""
_PLAIN = re.compile(PLAIN_KEY.encode("ascii"))
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class KeyOwner(NamedTuple):
    """The connector that a key names; `start` and `end` bound the quoted name within the key's bytes."""

    connector: str
    start: int
    end: int


def key_owner(key: bytes | None) -> KeyOwner | None:
    """Return the connector that a key names; None for keys that Connect itself ignores (`processPartitionKey`, 3.7+).

    Such a key is `["<connector>", <map or null>]`; a null partition is accepted, as the store keeps it. A name that no
    connector can have (`can_be_a_name`) is nobody's either.
    """
    if key is None:
        return None
    if plain := _PLAIN.fullmatch(key):
        return KeyOwner(plain[1].decode("ascii"), plain.start(1) - 1, plain.end(1) + 1)
    head = _HEAD.match(key)
    if head is None:
        return None
    decoded = decode_key(key)
    if not isinstance(decoded, OffsetKey) or not can_be_a_name(decoded.connector):
        return None
    return KeyOwner(decoded.connector, head.start(1), head.end(1))


def can_be_a_name(connector: str) -> bool:
    """Whether a connector can be called so: not with half a surrogate pair (`"\\ud800"`), for REST is UTF-8."""
    return not _HALF_A_PAIR.search(connector)


def quoted_name(connector: str) -> bytes:
    """Encode a connector's name as Connect's JsonConverter writes it into a key.

    Raises UsageError for control characters.
    """
    if not connector or _CONTROL.search(connector):
        raise UsageError(f"{connector!r} cannot be a connector's name", hint="Connect refuses control characters too.")
    return string_text(connector).encode("utf-8")


def renamed_key(key: bytes, owner: KeyOwner, connector: str) -> bytes:
    """Return `key` with its connector's name replaced; every other byte stays."""
    return key[: owner.start] + quoted_name(connector) + key[owner.end :]
