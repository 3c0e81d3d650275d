"""Fields of a record for `--unique` and `--sequence`: their paths, their exact values, and Debezium's positions. Pure.

A path is `id`, `value.after.id`, `key.id` or `header.id`. `value` and `key` alone are all of their bytes, be they JSON
or not. JSON that has its schema beside it is read without.

Values are exact: bytes to compare them, text to show them, or a number. Numbers are read as exact decimals, as a double
can't tell apart what a database can; nothing passes through a double. 1 and "1" are two values; 1, 1.0 and 1e0 are one
number.

Unique values of Debezium's change events, as its JSON has them:
MySQL and MariaDB (Debezium's binlog connectors): the position of an event in the binlog, and the row in the event. An
UPDATE of a primary key is a delete and a create of one row, so the operation belongs to it.
PostgreSQL: the LSN of a change, which all rows of one COPY may share: with the key, else with the counter of events in
the transaction (`provide.transaction.metadata`). `source.sequence` depends on when the connector started.
Snapshots: the key of a row, in its table. A second snapshot, if requested, has the rows again.

Where that is not unique after all, the rows differ: the events of a compressed MySQL transaction may have one position
(`binlog_transaction_compression`), and a key may be that of an index with NULLs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum, unique
from typing import Literal, NoReturn, cast

from msgspec import Struct

from eosctl.core.records import Record
from eosctl.errors import UsageError

Side = Literal["value", "key", "header"]
_SIDES: tuple[Side, ...] = ("value", "key", "header")
_ENVELOPE = {"schema", "payload"}


class FieldPath(Struct, frozen=True):
    """The path of a field: names of members, or numbers of elements. A header has one name, which may have dots."""

    side: Side
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.side, *self.names))

    def value_in(self, record: Record) -> object:
        """Return the field's value; None where the record has no such field, or null there."""
        if self.side == "header":
            found = [value for name, value in record.headers if name == self.names[0]]
            return found[-1] if found else None
        data = record.value if self.side == "value" else record.key
        return data if data is None or not self.names else member_of(read_json(data), *self.names)


class ReadValue(Struct, frozen=True):
    """The value of one record that is to be unique, or to count up.

    Two records with the same value and different `content` are no duplicates, as the value does not identify them.
    `may_repeat`: the source may rightly emit it again.
    """

    value: object
    content: object = None
    may_repeat: bool = False


class NamedFields(Struct, frozen=True):
    """Fields that are unique together, as in SQL's UNIQUE (a, b); of those that `may_lack` a record has some at least.

    `passes_tombstones`: a record without a value is no row of the source's, and has none of these fields.
    """

    paths: tuple[FieldPath, ...]
    may_lack: frozenset[FieldPath] = frozenset()
    passes_tombstones: bool = False

    def __str__(self) -> str:
        return ", ".join(map(str, self.paths))

    def passes(self, record: Record) -> bool:
        """Return whether the record is one that has no such field by design."""
        return self.passes_tombstones and record.value is None and any(path.side == "value" for path in self.paths)

    def read(self, record: Record) -> ReadValue | None:
        """Return the values of a record; None where it lacks one."""
        values = {path: path.value_in(record) for path in self.paths}
        lacking = {path for path, value in values.items() if value is None}
        if lacking - self.may_lack or (self.may_lack and lacking >= self.may_lack):
            return None
        return ReadValue(values[self.paths[0]] if len(values) == 1 else tuple(values.values()))


def parse_field_path(text: str) -> FieldPath:
    """Return the path; raises UsageError for one that names nothing."""
    side, dot, rest = text.partition(".")
    if side == "header" and rest:
        return FieldPath("header", (rest,))
    if side not in _SIDES:
        side, rest, dot = "value", text, "."
    names = tuple(rest.split(".")) if dot else ()
    if side == "header" or not all(names):
        raise UsageError(
            f"{text!r} names no field of a record",
            hint="Write id, value.after.id, key.id or header.id; value or key alone is the whole of it.",
        )
    return FieldPath(cast("Side", side), names)


def read_json(data: bytes) -> object:
    """Parse JSON, without its schema and with exact numbers; None for other text."""
    try:
        whole = json.loads(data.decode(), parse_int=Decimal, parse_float=Decimal, parse_constant=_refuse)
    except (ValueError, ArithmeticError, RecursionError):
        return None
    return whole["payload"] if isinstance(whole, dict) and whole.keys() == _ENVELOPE else whole


def _refuse(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which are no JSON."""
    raise ValueError(name)


def member_of(whole: object, *names: str) -> object:
    """Return the member at the end of these names; None where there is none."""
    for name in names:
        if isinstance(whole, dict):
            whole = whole.get(name)
        elif isinstance(whole, list) and name.isdecimal() and int(name) < len(whole):
            whole = whole[int(name)]
        else:
            return None
    return whole


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


@unique
class Database(StrEnum):
    """The database of a Debezium connector, by the shortest name of its class."""

    POSTGRES = "Postgres"
    MYSQL = "MySql"
    MARIADB = "MariaDb"


_TABLE = ("db", "schema", "table")
_STREAMED = (None, False, "false")
_INCREMENTAL = "incremental"


class ChangeEvents(Struct, frozen=True):
    """The position of each change event; `has_keys`: the record's key is that of the row.

    `snapshots_once`: nothing in the connector's config lets it take a second snapshot.
    """

    database: Database
    has_keys: bool
    snapshots_once: bool

    def __str__(self) -> str:
        position = "source.gtid, source.file, source.pos, source.row and op of each change"
        if self.database is Database.POSTGRES:
            position = "source.lsn of each change, with op and key, else with transaction.total_order"
        return f"{position}; table and key of each snapshot row"

    def passes(self, record: Record) -> bool:
        """Return whether it is a tombstone: it follows a delete, and says nothing more."""
        return record.value is None

    def read(self, record: Record) -> ReadValue | None:
        """Return the unique value of a change event; None where there is none."""
        event = read_json(record.value or b"")
        source, op = member_of(event, "source"), member_of(event, "op")
        if not isinstance(event, Mapping) or not isinstance(source, Mapping) or not isinstance(op, str):
            return None
        key = None if record.key is None else read_json(record.key)
        row = (key, event.get("before"), event.get("after"))
        snapshot = source.get("snapshot")
        if snapshot not in _STREAMED:
            if not self.has_keys or key is None:
                return None
            may_repeat = snapshot == _INCREMENTAL or not self.snapshots_once
            return ReadValue(("snapshot", *map(source.get, _TABLE), key), row, may_repeat)
        if self.database is not Database.POSTGRES:
            position = (source.get("file"), source.get("pos"), source.get("row"))
            if None in position:
                return None
            return ReadValue((source.get("gtid"), *position, op), row)
        lsn, order = source.get("lsn"), member_of(event, "transaction", "total_order")
        if lsn is not None and self.has_keys and key is not None:
            return ReadValue((lsn, op, key), row)
        return None if lsn is None or order is None else ReadValue((lsn, order), row)
