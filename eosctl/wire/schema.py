"""Declared layouts: a NamedTuple, and beside it the wire type of each of its fields per version.

Messages are NamedTuples, not dataclasses: a listing of 300,000 transactions is 300,000 of them, and the classes of all
APIs are made at every start. A layout is compiled once per version into two closures. Both directions exist for every
message, so that the tests' broker speaks through the same declarations.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from eosctl.errors import ProtocolError, UnsupportedError
from eosctl.wire.primitives import (
    Codec,
    Data,
    Read,
    Write,
    read_compact_length,
    read_length32,
    read_varint,
    take,
    write_compact_length,
    write_length32,
    write_varint,
)

M = TypeVar("M")
NEWEST = 1 << 15


class WireType(Protocol):
    """Anything that has a codec per version: a primitive, an array, a struct."""

    def codec(self, version: int, *, flexible: bool) -> Codec:
        """Return the codec for messages of this version."""


class WireField(NamedTuple):
    """One field: its type, the versions that carry it, and its tag if it travels in the tagged section.

    Encoding a value other than the default in a version that does not carry it is refused, unless it is `ignorable`.
    """

    type: WireType
    since: int = 0
    until: int = NEWEST
    tag: int | None = None
    ignorable: bool = False

    def carried(self, version: int) -> bool:
        """Return whether messages of this version have the field."""
        return self.since <= version <= self.until


def since(version: int, wire_type: WireType, *, until: int = NEWEST, ignorable: bool = False) -> WireField:
    """Declare a field that only versions from `version` to `until` carry."""
    return WireField(wire_type, version, until, None, ignorable)


def until(version: int, wire_type: WireType) -> WireField:
    """Declare a field that versions newer than `version` no longer carry."""
    return WireField(wire_type, 0, version)


def tagged(tag: int, wire_type: WireType, *, since: int) -> WireField:
    """Declare a field in the tagged section; left out of the bytes when it has its default, as Kafka does."""
    return WireField(wire_type, since, NEWEST, tag, ignorable=True)


class Array(NamedTuple):
    """A list of primitives or structs, a tuple in Python; None where `nullable`."""

    element: WireType
    nullable: bool = False

    def codec(self, version: int, *, flexible: bool) -> Codec:
        """Return the codec of the whole array."""
        write_element, read_element, _letter = self.element.codec(version, flexible=flexible)
        write_length = write_compact_length if flexible else write_length32
        read_length = read_compact_length if flexible else read_length32
        nullable = self.nullable

        def write(out: bytearray, values: Any) -> None:
            if values is None:
                if not nullable:
                    raise ProtocolError("null in an array that can't be null")
                write_length(out, -1)
                return
            write_length(out, len(values))
            for value in values:
                write_element(out, value)

        def read(data: Data, offset: int) -> tuple[Any, int]:
            count, offset = read_length(data, offset)
            if count < 0:
                if count == -1 and nullable:
                    return None, offset
                raise ProtocolError(f"count {count} of an array that can't be null, at byte {offset}")
            if count > len(data) - offset:  # every element takes a byte or more
                raise ProtocolError(f"array of {count} elements announced, {len(data) - offset} bytes are left")
            values = []
            for _ in range(count):
                value, offset = read_element(data, offset)
                values.append(value)
            return tuple(values), offset

        return Codec(write, read)


class Struct(Generic[M]):
    """The layout of one message or one element; `message` is its NamedTuple class."""

    def __init__(self, message: type[M], fields: Mapping[str, WireField]) -> None:
        self.message = message
        self.fields = fields
        self._codecs: dict[tuple[int, bool], Codec] = {}

    def defaults(self) -> Mapping[str, Any]:
        """Map each field's name to its default, the value that means "not carried"."""
        return cast("Mapping[str, Any]", cast("Any", self.message)._field_defaults)

    def codec(self, version: int, *, flexible: bool) -> Codec:
        """Return the compiled codec of one version."""
        key = (version, flexible)
        if key not in self._codecs:
            self._codecs[key] = _compile(self, version, flexible=flexible)
        return self._codecs[key]


def struct_of(message: type[M], **fields: WireType | WireField) -> Struct[M]:
    """Declare a layout; the keywords are the fields of `message` in the same order, which is the wire order."""
    if tuple(fields) != cast("Any", message)._fields:
        raise TypeError(f"layout of {message.__name__} has other fields than the class")  # at import, for developers
    return Struct(
        message, {name: item if isinstance(item, WireField) else WireField(item) for name, item in fields.items()}
    )


class NotCarriedError(UnsupportedError):
    """A field has a value that this version can't carry; `api` turns it into a message that names the release."""

    def __init__(self, field_name: str, since_version: int) -> None:
        super().__init__(f"{field_name} needs version {since_version}")
        self.field_name = field_name
        self.since_version = since_version


def _compile(layout: Struct[Any], version: int, *, flexible: bool) -> Codec:
    carried = _carried_fields(layout, version, flexible=flexible)
    write = _compile_write(carried, _absent_fields(layout, version), flexible=flexible)
    defaults = [layout.defaults().get(name) for name in layout.fields]
    return Codec(write, _compile_read(layout.message, carried, defaults, flexible=flexible))


class _Carried(NamedTuple):
    """A field that a version carries: its place in the message, its tag if it has one, its default and its codec."""

    place: int
    tag: int | None
    default: Any
    codec: Codec


def _carried_fields(layout: Struct[Any], version: int, *, flexible: bool) -> list[_Carried]:
    defaults = layout.defaults()
    return [
        _Carried(index, field.tag, defaults.get(name), field.type.codec(version, flexible=flexible))
        for index, (name, field) in enumerate(layout.fields.items())
        if field.carried(version)
    ]


class _Absent(NamedTuple):
    """A field that a version can't carry, so that it must have its default.

    `since` is None for a field that was removed.
    """

    place: int
    name: str
    default: Any
    since: int | None

    def refusal(self) -> ProtocolError | NotCarriedError:
        """Return the error for a value other than the default."""
        if self.since is None:
            return ProtocolError(f"{self.name} ended before this version")
        return NotCarriedError(self.name, self.since)


def _absent_fields(layout: Struct[Any], version: int) -> list[_Absent]:
    defaults = layout.defaults()
    return [
        _Absent(index, name, defaults.get(name), field.since if version < field.since else None)
        for index, (name, field) in enumerate(layout.fields.items())
        if not field.carried(version) and not field.ignorable
    ]


def _compile_write(carried: Sequence[_Carried], absent: Sequence[_Absent], *, flexible: bool) -> Write:
    plain = [(field.place, field.codec.write) for field in carried if field.tag is None]
    tagged = [field for field in carried if field.tag is not None]

    def write(out: bytearray, value: Any) -> None:
        for field in absent:
            if value[field.place] != field.default:
                raise field.refusal()
        for index, write_field in plain:
            write_field(out, value[index])
        if tagged:
            _write_tags(out, [(each, value[each.place]) for each in tagged if value[each.place] != each.default])
        elif flexible:
            out.append(0)

    return write


def _write_tags(out: bytearray, tagged: Sequence[tuple[_Carried, Any]]) -> None:
    write_varint(out, len(tagged))
    for field, value in tagged:
        body = bytearray()
        field.codec.write(body, value)
        write_varint(out, cast("int", field.tag))
        write_varint(out, len(body))
        out += body


def _compile_read(message: type[Any], carried: Sequence[_Carried], defaults: list[Any], *, flexible: bool) -> Read:
    steps = _steps([(field.place, field.codec) for field in carried if field.tag is None])
    tags = {field.tag: (field.place, field.codec.read) for field in carried if field.tag is not None}
    make = partial(tuple.__new__, cast("Any", message))  # what _make does, and nothing else

    def read(data: Data, offset: int) -> tuple[Any, int]:
        values = defaults.copy()
        for index, many, read_step in steps:
            if many is None:
                values[index], offset = read_step(data, offset)
            else:
                values[many], offset = read_step(data, offset)
        if flexible:
            if data[offset] == 0:
                offset += 1
            else:
                offset = _read_tags(data, offset, tags, values)
        return make(values), offset

    return read


def _steps(codecs: Sequence[tuple[int, Codec]]) -> list[tuple[int, slice | None, Read]]:
    """Plan how fields are read: one by one (an index), or neighbours of fixed size in one go (their slice)."""
    steps: list[tuple[int, slice | None, Read]] = []
    for _key, run in groupby(enumerate(codecs), lambda each: (each[1][0] - each[0], bool(each[1][1].letter))):
        fields = [each for _number, each in run]
        first, letters = fields[0][0], "".join(codec.letter for _index, codec in fields)
        if len(letters) > 1:
            steps.append((first, slice(first, first + len(letters)), _read_run(struct.Struct(f">{letters}"))))
        else:
            steps += [(index, None, codec.read) for index, codec in fields]
    return steps


def _read_run(packer: struct.Struct) -> Read:
    size = packer.size
    return lambda data, offset: (packer.unpack_from(data, offset), offset + size)


def _read_tags(data: Data, offset: int, known: Mapping[int, Any], values: list[Any]) -> int:
    """Read the tagged section: known tags into `values`; unknown ones are skipped by their announced size (KIP-482)."""
    count, offset = read_varint(data, offset)
    previous = -1
    for _ in range(count):
        tag, offset = read_varint(data, offset)
        if tag <= previous:
            raise ProtocolError(f"tag {tag} after tag {previous}: tags must ascend")
        previous = tag
        size, offset = read_varint(data, offset)
        body = take(data, offset, size)
        offset += size
        if tag in known:
            index, read = known[tag]
            values[index], end = read(body, 0)
            if end != size:
                raise ProtocolError(f"{size - end} bytes left over in tag {tag}")
    return offset


def skip_tags(data: Data, offset: int) -> int:
    """Return the offset behind a tagged section whose tags are all unknown."""
    return _read_tags(data, offset, {}, [])


class decoding:  # noqa: N801 - read as a verb: with decoding("…")
    """Turns Python's errors on truncated or malformed bytes into ProtocolError about `what`.

    A class, as a generator costs a third of the time to read a short message.
    """

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: type[BaseException] | None, exc: BaseException | None, _at: TracebackType | None) -> None:
        if exc is None:
            return
        if isinstance(exc, (IndexError, struct.error)):
            raise ProtocolError(f"{self.what} is truncated") from exc
        if isinstance(exc, UnicodeDecodeError):
            raise ProtocolError(f"{self.what} holds a string that is not UTF-8") from exc
        if isinstance(exc, ProtocolError):
            raise ProtocolError(f"{self.what}: {exc.message}", hint=exc.hint) from exc


class encoding:  # noqa: N801 - read as a verb: with encoding("…")
    """Turns Python's errors on values that don't fit their field into ProtocolError about `what`."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: type[BaseException] | None, exc: BaseException | None, _at: TracebackType | None) -> None:
        if exc is None:
            return
        if isinstance(exc, (struct.error, UnicodeEncodeError)):
            raise ProtocolError(f"{self.what} can't be written: {exc}") from exc
        if isinstance(exc, ProtocolError):
            raise ProtocolError(f"{self.what} can't be written: {exc.message}") from exc
