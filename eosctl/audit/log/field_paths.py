"""A field of a record, as `--unique` and `--sequence` name it: `id`, `value.after.id`, `key.id`, `header.id`. Pure.

`value` and `key` alone are the whole of it, be it JSON or not. JSON that has its schema beside it is read without.
"""

from __future__ import annotations

from typing import Literal, cast

import msgspec

from eosctl.core.frozen import frozen
from eosctl.core.records import Record
from eosctl.errors import UsageError

Side = Literal["value", "key", "header"]
_SIDES: tuple[Side, ...] = ("value", "key", "header")
_ENVELOPE = {"schema", "payload"}


@frozen
class FieldPath:
    """Where the field is: names of members, or numbers of elements; a header has one name, which may have dots."""

    side: Side
    names: tuple[str, ...] = ()

    def text_in(self, record: Record) -> str | None:
        """The field's value as text; None where the record has no such field, or null there."""
        if self.side == "header":
            found = [value for name, value in record.headers if name == self.names[0]]
            return None if not found or found[-1] is None else found[-1].decode("utf-8", "surrogateescape")
        data = record.value if self.side == "value" else record.key
        if data is None:
            return None
        try:
            whole = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None if self.names else data.decode("utf-8", "surrogateescape")
        return _text(_member(_without_schema(whole), self.names))


def parse_field_path(text: str) -> FieldPath:
    """The path; raises UsageError for one that names nothing."""
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


def _without_schema(whole: object) -> object:
    return whole["payload"] if isinstance(whole, dict) and whole.keys() == _ENVELOPE else whole


def _member(whole: object, names: tuple[str, ...]) -> object:
    """What is there; None for what is not."""
    for name in names:
        if isinstance(whole, dict):
            whole = whole.get(name)
        elif isinstance(whole, list) and name.isdecimal() and int(name) < len(whole):
            whole = whole[int(name)]
        else:
            return None
    return whole


def _text(value: object) -> str | None:
    """Texts as they are, all else as JSON with its members in order: what is equal reads equal."""
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value, order="sorted").decode()
