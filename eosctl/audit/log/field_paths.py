"""Fields of a record, as `--unique` and `--sequence` name them: `id`, `value.after.id`, `key.id`, `header.id`. Pure.

`value` and `key` alone are all of their bytes, be they JSON or not. JSON that has its schema beside it is read without.
Numbers are read as exact decimals: a double can't tell apart what a database can.
"""

from __future__ import annotations

import json
from decimal import Decimal
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
