"""Headers of records in columns: as they lie in a record batch, or as the member of a record file; null for none."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from eosctl.core.record_file import decode_headers, encode_headers, header_name
from eosctl.core.records import Headers
from eosctl.engine.columns import one_array
from eosctl.errors import ProtocolError
from eosctl.wire.primitives import read_varint, write_varint


def headers_text(headers: Headers) -> str | None:
    """Return headers as the member of a record file; None for none."""
    return json.dumps(encode_headers(headers), ensure_ascii=False, separators=(",", ":")) if headers else None


def headers_of(text: str | None) -> Headers:
    """Parse the member of a record file, the inverse of `headers_text`."""
    return decode_headers(json.loads(text)) if text else ()


def headers_texts(column: Any) -> pa.Array:
    """Convert a column of `raw_headers` to one of `headers_text`; raises ProtocolError if they are no headers."""
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.string())
    texts = [raw and headers_text(headers_in(raw)) for raw in one_array(column).to_pylist()]
    return pa.array(texts, pa.string())


def raw_headers(headers: Headers) -> bytes | None:
    """Return headers as in a record batch (`DefaultRecord`, Kafka 4.3): their number, then each; None for none."""
    if not headers:
        return None
    out = bytearray()
    write_varint(out, len(headers) << 1)
    for name, value in headers:
        for data in (header_name(name), value):
            write_varint(out, 1 if data is None else len(data) << 1)
            out += data or b""
    return bytes(out)


def headers_in(raw: bytes) -> Headers:
    """Parse headers of a record batch, the inverse of `raw_headers`; raises ProtocolError if they are none."""
    found = list[tuple[str, bytes | None]]()
    try:
        count, at = _number(raw, 0)
        for _header in range(count):
            name, at = _bytes(raw, at)
            value, at = _bytes(raw, at)
            found.append(((name or b"").decode("utf-8", "surrogateescape"), value))
    except IndexError as exc:
        raise ProtocolError("a record is shorter than its headers") from exc
    if at != len(raw):
        raise ProtocolError("a record is longer or shorter than its headers")
    return tuple(found)


def _bytes(raw: bytes, at: int) -> tuple[bytes | None, int]:
    size, begin = _number(raw, at)
    return (None, begin) if size < 0 else (raw[begin : begin + size], begin + size)


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """Read the zigzag number at a place; return it and the place after it."""
    found, behind = read_varint(raw, at)
    return found >> 1 ^ -(found & 1), behind
