"""The protocol's primitive types as pairs of functions: append a value to a bytearray, read one at an offset.

Readers never allocate memory for a length before it is checked against the available bytes. Reading beyond the end
raises ProtocolError, either here or in `schema.decoding`. Layouts: Kafka protocol guide, "Protocol Primitive Types",
and KIP-482 for the compact forms.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from eosctl.errors import ProtocolError

Data = bytes | memoryview
"""A frame: bytes, or a view of memory that the next frame overwrites."""
Write = Callable[[bytearray, Any], None]
Read = Callable[[Data, int], tuple[Any, int]]
_WriteLength = Callable[[bytearray, int], None]
_ReadLength = Callable[[Data, int], tuple[int, int]]


class Codec(NamedTuple):
    """The functions that write a type to the end of a bytearray, and read it at an offset: (value, offset behind it).

    `letter` is the code of a fixed-size type in `struct`: neighbours of such types are read in one go.
    """

    write: Write
    read: Read
    letter: str = ""


class Primitive(NamedTuple):
    """A type with a classic form and a compact form (KIP-482); most have one form for both."""

    classic: Codec
    compact: Codec

    def codec(self, version: int, *, flexible: bool) -> Codec:  # noqa: ARG002 - primitives don't change with versions
        """Return the codec of this type in a message that is flexible or not."""
        return self.compact if flexible else self.classic


def write_varint(out: bytearray, value: int) -> None:
    """Append an unsigned varint."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_varint(data: Data, offset: int) -> tuple[int, int]:
    """Read an unsigned varint of at most five bytes (`ByteUtils.readUnsignedVarint`, Kafka 4.3)."""
    byte = data[offset]
    if byte < 0x80:
        return byte, offset + 1
    value, shift = byte & 0x7F, 7
    while shift < 35:
        offset += 1
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset + 1
        shift += 7
    raise ProtocolError(f"varint longer than five bytes at byte {offset}")


def _fixed(letter: str) -> Primitive:
    packer = struct.Struct(f">{letter}")
    size = packer.size

    def write(out: bytearray, value: Any) -> None:
        out += packer.pack(value)

    def read(data: Data, offset: int) -> tuple[Any, int]:
        return packer.unpack_from(data, offset)[0], offset + size

    codec = Codec(write, read, letter)
    return Primitive(codec, codec)


def _write_length16(out: bytearray, size: int) -> None:
    out += struct.pack(">h", size)


def _read_length16(data: Data, offset: int) -> tuple[int, int]:
    return struct.unpack_from(">h", data, offset)[0], offset + 2


def write_length32(out: bytearray, size: int) -> None:
    """Append a classic length or element count; -1 is null."""
    out += struct.pack(">i", size)


def read_length32(data: Data, offset: int) -> tuple[int, int]:
    """Read a classic length or element count; -1 is null."""
    return struct.unpack_from(">i", data, offset)[0], offset + 4


def write_compact_length(out: bytearray, size: int) -> None:
    """Append a compact length or element count: a varint of size + 1, so that 0 is null."""
    write_varint(out, size + 1)


def read_compact_length(data: Data, offset: int) -> tuple[int, int]:
    """Read a compact length or element count; -1 is null."""
    size, offset = read_varint(data, offset)
    return size - 1, offset


def take(data: Data, offset: int, size: int) -> Data:
    """Return the `size` bytes at `offset`; raises ProtocolError if there are fewer."""
    if size > len(data) - offset:
        raise ProtocolError(f"truncated: {size} bytes announced at byte {offset}, {len(data) - offset} are there")
    return data[offset : offset + size]


def _encode_text(value: str) -> bytes:
    return value.encode()


def _decode_text(value: Data) -> str:
    return bytes(value).decode()


def _as_bytes(value: Data) -> bytes:
    return bytes(value)


def _as_view(value: Data) -> memoryview:
    return memoryview(value)


class _Sized(NamedTuple):
    """The conversions of a string or byte field to bytes and back."""

    encode: Callable[[Any], bytes]
    decode: Callable[[Data], Any]
    nullable: bool

    def codec(self, write_length: _WriteLength, read_length: _ReadLength) -> Codec:
        encode, decode, nullable = self

        def write(out: bytearray, value: Any) -> None:
            if value is None:
                if not nullable:
                    raise ProtocolError("null in a field that can't be null")
                write_length(out, -1)
                return
            data = encode(value)
            write_length(out, len(data))
            out += data

        def read(data: Data, offset: int) -> tuple[Any, int]:
            size, offset = read_length(data, offset)
            if size < 0:
                if size == -1 and nullable:
                    return None, offset
                raise ProtocolError(f"length {size} in a field that can't be null, at byte {offset}")
            return decode(take(data, offset, size)), offset + size

        return Codec(write, read)


def _text(*, nullable: bool) -> Primitive:
    sized = _Sized(_encode_text, _decode_text, nullable)
    compact = sized.codec(write_compact_length, read_compact_length)

    def read(data: Data, offset: int) -> tuple[Any, int]:
        """Read a text.

        Most texts are shorter than 127 bytes, and not null; listings have hundreds of thousands of them.
        """
        end = offset + data[offset]
        if offset < end < offset + 0x80 and end <= len(data):
            return bytes(data[offset + 1 : end]).decode(), end
        return compact.read(data, offset)

    return Primitive(sized.codec(_write_length16, _read_length16), Codec(compact.write, read))


def _blob() -> Primitive:
    sized = _Sized(_as_bytes, _as_bytes, nullable=False)
    return Primitive(sized.codec(write_length32, read_length32), sized.codec(write_compact_length, read_compact_length))


def _view() -> Primitive:
    sized = _Sized(_as_bytes, _as_view, nullable=True)
    return Primitive(sized.codec(write_length32, read_length32), sized.codec(write_compact_length, read_compact_length))


def _uuid() -> Primitive:
    def write(out: bytearray, value: Any) -> None:
        out += value.bytes

    def read(data: Data, offset: int) -> tuple[Any, int]:
        return UUID(bytes=bytes(take(data, offset, 16))), offset + 16

    codec = Codec(write, read)
    return Primitive(codec, codec)


INT8 = _fixed("b")
INT16 = _fixed("h")
INT32 = _fixed("i")
INT64 = _fixed("q")
BOOL = _fixed("?")
ID = _uuid()
STRING = _text(nullable=False)
NULLABLE_STRING = _text(nullable=True)
BYTES = _blob()
RECORDS = _view()
"""Record batches as stored in a log, or None: a view into the frame, without a copy where the frame is a view."""
NO_ID = UUID(int=0)
