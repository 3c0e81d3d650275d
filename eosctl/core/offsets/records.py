"""Keys and values of an offsets topic: decoded to match and show, renamed as bytes, and typed by people.

A decoded key has a connector and a source partition; a value is an offset or not. Decoding is for matching and showing
only. Connect finds offsets by the raw bytes of their keys: a key's bytes are its identity. So no key is ever built from
a decoded one, and renaming the connector in a key leaves its partition part byte for byte as the connector wrote it.
Never raises on anything that a topic may hold.

Source partitions and offsets as people type them, or write them into a body, are one JSON value and nothing else.
Topics are read as Jackson reads them: it ignores anything after the first value and uses the last of two members with
one name. Typed input is stricter: a slip of the hand must not become another offset.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum, unique
from typing import NamedTuple

from msgspec import Struct

from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.java.json import string_text
from eosctl.core.records import Record
from eosctl.core.wording import encodable
from eosctl.errors import UsageError

_BRACE = ord("{")
sorted_text = json.JSONEncoder(sort_keys=True).encode
"""JSON that is equal for equal values; `json.dumps` would make an encoder for each."""
_MAY_BE_NOTHING = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*(?:null|\Z)")


@unique
class KeyFault(StrEnum):
    """The reason why Connect ignores a key (`OffsetUtils.processPartitionKey`, Kafka 3.7 to 4.3)."""

    NULL_KEY = "null_key"
    NOT_JSON = "not_json"
    NOT_A_LIST = "not_a_list"
    WRONG_SIZE = "wrong_size"
    CONNECTOR_NOT_TEXT = "connector_not_text"
    PARTITION_NOT_A_MAP = "partition_not_a_map"


class OffsetKey(Struct, frozen=True):
    """A key that a connector may look up; `partition` None is `["c",null]`, which REST never shows.

    A tuple, as there is one for each key of a topic.
    """

    raw: bytes
    connector: str
    partition: Mapping[str, object] | None

    @property
    def identity(self) -> str:
        """Equal for two spellings of one source partition: other order, other spaces, other escapes.

        Members are sorted, integers as a Java Long holds them, 1 and 1.0 apart.
        """
        try:
            return sorted_text(_as_java_holds([self.connector, self.partition]))
        except RecursionError:  # deeper than any source partition may be; then only equal bytes are equal
            return f"raw {self.raw.hex()}"


class IgnoredKey(Struct, frozen=True):
    """A key that no connector ever finds again; it stays in the topic forever. `raw` is empty for a null key."""

    raw: bytes
    fault: KeyFault

    @property
    def connector(self) -> None:
        """No connector."""
        return None

    @property
    def partition(self) -> None:
        """No source partition."""
        return None

    @property
    def identity(self) -> str:
        """Equal for equal bytes only; never that of an offset."""
        return f"raw {self.raw.hex()}"


def decode_key(raw: bytes | None) -> OffsetKey | IgnoredKey:
    """Decode a key, with JSON read as Connect's JsonConverter reads it."""
    if raw is None:
        return IgnoredKey(b"", KeyFault.NULL_KEY)
    try:
        parsed = decode_value(raw)
    except UnparsableValueError:
        return IgnoredKey(raw, KeyFault.NOT_JSON)
    fault = _fault(parsed)
    if fault is not None or not isinstance(parsed, list):
        return IgnoredKey(raw, fault or KeyFault.NOT_A_LIST)
    connector, partition = parsed
    return OffsetKey(raw, connector, partition)


def _fault(parsed: object) -> KeyFault | None:
    """Return the first fault, in the order in which Connect checks; None without one."""
    if not isinstance(parsed, list):
        return KeyFault.NOT_A_LIST
    if len(parsed) != 2:
        return KeyFault.WRONG_SIZE
    if not isinstance(parsed[0], str):
        return KeyFault.CONNECTOR_NOT_TEXT
    if parsed[1] is not None and not isinstance(parsed[1], dict):
        return KeyFault.PARTITION_NOT_A_MAP
    return None


def _as_java_holds(value: object) -> object:
    if isinstance(value, dict):
        return {name: _as_java_holds(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_as_java_holds(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return (value + 2**63) % 2**64 - 2**63
    return value


_PLAIN_KEY = re.compile(rb'\["[^"\\]*",\{((?:"[^"\\]*":(?:"[^"\\]*"|0|-?[1-9][0-9]{0,17}|true|false|null)[,}])*)\]')


def duplicate_spellings(keys: Sequence[OffsetKey]) -> frozenset[str]:
    """Return the identities that several of `keys`, all of one connector, share.

    Computing an identity costs more than everything else about a key: it is skipped for plain keys where no two of them
    consist of the same parts.
    """
    parts = list(map(_parts, keys))
    if None not in parts and len(set(parts)) == len(parts):
        return frozenset()
    counts = Counter(key.identity for key in keys)
    return frozenset(identity for identity, count in counts.items() if count > 1)


def _parts(key: OffsetKey) -> tuple[bytes, ...] | None:
    """Return the sorted members of a plain key; None for another key.

    Two plain keys that differ only in the order of their members have the same.
    """
    plain = _PLAIN_KEY.fullmatch(key.raw)
    if plain is None or key.partition is None or plain[1].count(b'":') != len(key.partition):
        return None
    return tuple(sorted(plain[1][:-1].split(b",")))


def newest_commits(records: Iterable[Record]) -> dict[str, int]:
    """Map each connector to the timestamp of its newest offset; deletions are not commits."""
    found: dict[str, int] = {}
    for record in records:
        key = decode_key(record.key)
        if isinstance(key, OffsetKey) and not is_nothing(record.value):
            found[key.connector] = max(found.get(key.connector, -1), record.timestamp_ms)
    return found


SNAPSHOT = ("snapshot", "snapshot_completed", "last_snapshot_record")
"""Debezium's member for a snapshot that is under way, then those that mark it as over."""
INITIAL_SYNC = ("initsync",)
"""The same of Debezium's MongoDB connector."""


def in_snapshot(offset: Mapping[str, object], members: Sequence[str] | None = None) -> bool:
    """Return whether a task that starts with this offset takes the snapshot again.

    `members` are those of its connector; without, Debezium's. An incremental snapshot goes on where it was.
    """
    if members is None:
        return in_snapshot(offset, SNAPSHOT) or in_snapshot(offset, INITIAL_SYNC)
    is_over = any(offset.get(each) in (True, "true") for each in members[1:])
    return bool(members) and offset.get(members[0]) not in (None, False, "false", "INCREMENTAL") and not is_over


def snapshots_under_way(records: Iterable[Record], connectors: Collection[str]) -> frozenset[str]:
    """Return those of the connectors that have an offset in a snapshot among the newest records of the keys."""
    found = set[str]()
    for record in records if connectors else ():
        key = decode_key(record.key)
        if isinstance(key, OffsetKey) and key.connector in connectors:
            try:
                offset = decode_value(record.value)
            except UnparsableValueError:
                continue
            if isinstance(offset, Mapping) and in_snapshot(offset):
                found.add(key.connector)
    return frozenset(found)


def is_nothing(value: bytes | None) -> bool:
    """Return whether a value means "no offset" to Connect: a tombstone, no bytes, or JSON null."""
    if not value:
        return True
    # parsing every value of a large topic would take most of the time, and nearly all are maps
    if value[0] == _BRACE or not _MAY_BE_NOTHING.match(value):
        return False
    try:
        return decode_value(value) is None
    except UnparsableValueError:
        return False


def shown_value(value: bytes | None) -> object:
    """Return a value as rows show it: the JSON that Connect reads, None for a tombstone or null.

    The bytes are returned where the value is not JSON, or nested too deep to show; the caller decides how to spell
    them.
    """
    if value is None:
        return None
    try:
        return as_plain_json(decode_value(value))
    except (UnparsableValueError, RecursionError):
        return value


def shown_partition(key: OffsetKey | IgnoredKey) -> object:
    """Return a key's source partition as rows show it.

    The bytes of the whole key are returned where it is nested too deep to show.
    """
    try:
        return as_plain_json(key.partition)
    except RecursionError:
        return key.raw


def as_plain_json(value: object) -> object:
    """Replace what strict JSON or UTF-8 can't carry: infinite numbers become text, half surrogates U+FFFD.

    Raises RecursionError for a value that is nested too deep: `shown_value`, `shown_partition` and `shown_json` do not.
    """
    if isinstance(value, dict):
        return {encodable(name): as_plain_json(member) for name, member in value.items()}
    if isinstance(value, list):
        return [as_plain_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return encodable(value) if isinstance(value, str) else value


def shown_json(value: object) -> object:
    """Return `as_plain_json`, or one line of text where the value is nested too deep to show."""
    try:
        return as_plain_json(value)
    except RecursionError:
        return _text_of_deep(value)


def json_text(value: object) -> str:
    """Format `as_plain_json` in one line, as messages show it and commands accept it."""
    try:
        return _text(as_plain_json(value))
    except RecursionError:
        return _text_of_deep(value)


def _text_of_deep(value: object) -> str:
    try:
        return encodable(_text(value))
    except RecursionError:
        return "(nested too deep to show)"


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


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
    """Tell whether a connector can have this name: UTF-8, as in REST, has no half of a surrogate pair (`"\\ud800"`)."""
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


_PARTITION_HINT = 'Write JSON, say {"filename":"/tmp/x"}.'
_OFFSET_HINT = 'Write a JSON object, say {"position":0}; or use reset.'


def typed_partition(connector: str, text: str) -> OffsetKey:
    """Return the key for a source partition typed as JSON, to match with; raises UsageError."""
    _parse_strictly(text, what="a source partition", hint=_PARTITION_HINT)
    key = decode_key(f"[{json.dumps(connector)},{text}]".encode())
    if not isinstance(key, OffsetKey):
        raise UsageError(f"{text!r} is not a source partition", hint=_PARTITION_HINT)
    return key


def typed_offset(text: str) -> Mapping[str, object]:
    """Return the members of an offset typed as JSON; raises UsageError unless it is an object."""
    offset = _parse_strictly(text, what="an offset", hint=_OFFSET_HINT)
    if not isinstance(offset, dict):
        raise UsageError(f"{text!r} is not an offset", hint=_OFFSET_HINT)
    return offset


def _parse_strictly(text: str, *, what: str, hint: str) -> object:
    """Parse `text` strictly as JSON.

    Raises UsageError unless it is a single JSON value that all parsers read alike.
    """
    try:
        text.encode()  # a command line may have bytes that are no text
        return strict_json(text)
    except json.JSONDecodeError as exc:
        more = exc.msg.startswith("Extra data")
        reason = (
            f"nothing may follow the JSON value: {text[exc.pos :]!r}"
            if more
            else f"{exc.msg} at character {exc.pos + 1}"
        )
    except AmbiguousJsonError as exc:
        reason = str(exc)
    except (ValueError, RecursionError):
        reason = "it is no JSON"
    raise UsageError(f"{text!r} is not {what}: {reason}", hint=hint)


class AmbiguousJsonError(ValueError):
    """JSON that is read differently by different programs."""


def strict_json(text: str) -> object:
    """Parse one JSON text; raises AmbiguousJsonError, and ValueError and RecursionError for text that is not JSON."""
    return _DECODER.decode(text)


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise AmbiguousJsonError(f"member {twice!r} is given twice")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise AmbiguousJsonError(f"{text} is beyond every floating-point number")
    return number


def _refuse_constant(name: str) -> object:
    raise AmbiguousJsonError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_float=_finite, parse_constant=_refuse_constant)
