"""Records of an offsets topic: a key's connector and source partition, and whether a value is an offset.

Decoding is for matching and showing only. A key's bytes are its identity: `core.offsets.keys` renames within them,
nothing here builds a key from a decoded one. Never raises on anything that a topic may hold.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum, unique

from msgspec import Struct

from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.records import Record
from eosctl.core.wording import encodable

_BRACE = ord("{")
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
            return json.dumps(_as_java_holds([self.connector, self.partition]), sort_keys=True)
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
