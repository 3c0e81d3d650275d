"""Single records of Connect's config topic, the connector classes that configs name, and the selected connectors.

Decodes the kind of each key, and the value as a worker reads it. Only bytes to values; `fold` decides what the records
add up to. Keys are tried in the order in which `KafkaConfigBackingStore` (Kafka 3.3 to 4.3) tries them.

Connect accepts three spellings of a connector class: the full name, its last part, and the last part without its ending
(`PluginUtils.aliases` of Apache Kafka 4.3). Comparing them is pure.

A selection is the connectors that a command is about.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum, unique
from functools import lru_cache

from msgspec import Struct

from eosctl.errors import NotFoundError, UsageError

MAX_INT = 2**31 - 1

OFFSETS_TOPIC = "offsets.storage.topic"
"""The property of a connector that names its own offsets topic."""
TARGET_STATES = frozenset({"STARTED", "PAUSED", "STOPPED"})


@unique
class RecordKind(StrEnum):
    """The meaning of a key of the config topic; every worker discards `unknown` keys."""

    TARGET_STATE = "target-state"
    CONNECTOR = "connector"
    TASK = "task"
    COMMIT = "commit"
    RESTART = "restart-connector"
    TASK_COUNT = "tasks-fencing"
    SESSION_KEY = "session-key"
    LOGGER = "logger-cluster"
    UNKNOWN = "unknown"


_PREFIXES = (
    ("target-state-", RecordKind.TARGET_STATE),
    ("connector-", RecordKind.CONNECTOR),
    ("task-", RecordKind.TASK),
    ("commit-", RecordKind.COMMIT),
    ("restart-connector-", RecordKind.RESTART),
    ("tasks-fencing-", RecordKind.TASK_COUNT),
    ("logger-cluster-", RecordKind.LOGGER),
)
KIP_TEXT_PREFIX = "task-count-"


class ConfigKey(Struct, frozen=True):
    """A parsed key: `name` is the connector (or the logger); `task` is None unless a task key could be parsed."""

    kind: RecordKind
    name: str = ""
    task: int | None = None


class UnparsableValueError(ValueError):
    """The bytes are not JSON that Connect's JsonConverter would take; a worker logs and skips such a record."""


def task_count_key(connector: str) -> bytes:
    """Return the key of a connector's task-count record.

    The KIP's own text spells it differently; workers ignore that spelling.
    """
    return f"tasks-fencing-{connector}".encode()


def task_count_value(count: int) -> bytes:
    """Return the value of a task-count record, byte for byte as a leader writes it.

    (`KafkaConfigBackingStore`, Kafka 3.3+)
    """
    return f'{{"task-count":{count}}}'.encode()


def decode_key_text(key: bytes) -> str:
    """Decode a key as Kafka's StringDeserializer does: bytes that are not UTF-8 become U+FFFD."""
    return key.decode("utf-8", "replace")


@lru_cache(maxsize=65_536)
def parse_key(text: str) -> ConfigKey:
    """Parse a key; a task key that can't be parsed has kind `task` and `task` None.

    Results are cached, as a topic that is not compacted yet repeats its keys.
    """
    if text == "session-key":
        return ConfigKey(RecordKind.SESSION_KEY)
    for prefix, kind in _PREFIXES:
        if text.startswith(prefix):
            return _parse_task_key(text) if kind is RecordKind.TASK else ConfigKey(kind, text[len(prefix) :])
    return ConfigKey(RecordKind.UNKNOWN)


def _parse_task_key(text: str) -> ConfigKey:
    """Split `task-<connector>-<n>` as Java's `split("-")` does: empty parts at the end are dropped."""
    parts = text.split("-")
    while parts and not parts[-1]:
        parts.pop()
    number = _java_int(parts[-1]) if len(parts) >= 3 else None
    if number is None:
        return ConfigKey(RecordKind.TASK)
    return ConfigKey(RecordKind.TASK, "-".join(parts[1:-1]), number)


def _java_int(text: str) -> int | None:
    """Parse a number without a minus sign as `Integer.parseInt` does; None where it throws."""
    if re.fullmatch(r"\+?\d+", text) is None:
        return None
    digits = text.lstrip("+").lstrip("0")
    if len(digits) > 10:
        return None
    number = int(digits or "0")
    return number if number <= MAX_INT else None


def _refuse_constant(name: str) -> object:
    raise UnparsableValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_scan = _DECODER.scan_once  # type: ignore[attr-defined]  # documented nowhere, and in CPython since 2.6
_STRING_OR_LEADING_ZEROS = re.compile(r'("(?:[^"\\]|\\.)*")|(?<![\w.+-])(-?)0+(?=\d)')


def decode_value(value: bytes | None) -> object:
    """Decode the value as a worker does: no bytes at all and JSON `null` both mean None.

    Like Jackson as JsonConverter uses it: the last of two equal member names wins, leading zeros are allowed, and
    anything after the first JSON value is ignored. Raises UnparsableValueError.
    """
    if not value:
        return None
    try:
        try:
            return _scan(value.decode("utf-8"), 0)[0]  # nearly all, in half of the time
        except (StopIteration, json.JSONDecodeError):
            text = value.decode("utf-8").removeprefix("\ufeff").lstrip(" \t\r\n")
            return _parse_json(text) if text else None
    except (ValueError, RecursionError) as exc:
        raise UnparsableValueError(f"the value is not JSON: {exc}") from exc


def _parse_json(text: str) -> object:
    try:
        return _DECODER.raw_decode(text)[0]
    except json.JSONDecodeError:
        without_zeros = _STRING_OR_LEADING_ZEROS.sub(lambda match: match[1] or match[2], text)
        return _DECODER.raw_decode(without_zeros)[0]


def int_field(value: Mapping[str, object], name: str) -> int | None:
    """Return an integer member narrowed to 32 bits, as `intValue` does; None where a worker's reader would throw."""
    number = value.get(name)
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    return (number + 2**31) % 2**32 - 2**31


PROPERTY = "connector.class"
MIRROR_SOURCE = "MirrorSourceConnector"
MIRROR_CHECKPOINT = "MirrorCheckpointConnector"
_END = "Connector"


def pruned_class(config: Mapping[str, object]) -> str:
    """Return the shortest name of the class, which all its spellings share; empty without one."""
    return str(config.get(PROPERTY, "")).strip().rpartition(".")[2].removesuffix(_END)


def is_class(config: Mapping[str, object], name: str) -> bool:
    """Return whether `connector.class` is the class of this simple name.

    It may be spelled as the full name, the simple name, or the simple name without `Connector` at its end.
    """
    return pruned_class(config) == name.removesuffix(_END)


def names_one_of(config: Mapping[str, object], classes: Collection[str]) -> bool:
    """Return whether `connector.class` is one of these full names, or another way to name one of them."""
    named = str(config.get(PROPERTY, "")).strip()
    return (
        named in classes
        if "." in named
        else pruned_class(config) in {pruned_class({PROPERTY: each}) for each in classes}
    )


class Selection(Struct, frozen=True):
    """The connectors that a command is about: names, all, or a pattern (`re:` or a glob)."""

    connectors: tuple[str, ...] = ()
    all_connectors: bool = False
    pattern: str | None = None

    def check(self) -> None:
        """Raise UsageError unless exactly one way of choosing connectors is given."""
        if sum([bool(self.connectors), self.all_connectors, self.pattern is not None]) != 1:
            raise UsageError("which connectors?", hint="Give one of --connector (repeatable), --match, or --all.")

    def choose(self, found: Iterable[str]) -> list[str]:
        """Return the selected connectors among `found`, sorted.

        Raises NotFoundError if a name or the pattern matches none.
        """
        names = sorted(found)
        if self.all_connectors and not names:
            raise NotFoundError(
                "the source has no offsets of any connector", hint="Check --from; `eosctl offsets list` shows them."
            )
        if self.all_connectors:
            return names
        missing = sorted(set(self.connectors) - set(names))
        if missing:
            raise NotFoundError(
                f"no offsets of connector {', '.join(missing)} in the source",
                hint="`eosctl offsets list` shows the connectors that have offsets.",
            )
        matches = self._matcher()
        chosen = [name for name in names if name in self.connectors or matches(name)]
        if not chosen:
            raise NotFoundError(f"no connector in the source matches {self.pattern!r}")
        return chosen

    def _matcher(self) -> Callable[[str], bool]:
        if self.pattern is None:
            return lambda _name: False
        if not self.pattern.startswith("re:"):
            glob = self.pattern
            return lambda name: fnmatch.fnmatchcase(name, glob)
        try:
            expression = re.compile(self.pattern[3:])
        except re.error as exc:
            raise UsageError(f"{self.pattern!r} is not a regular expression: {exc}") from exc
        return lambda name: expression.fullmatch(name) is not None
