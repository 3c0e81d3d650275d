"""Kafka records as lines of JSON (NDJSON): the one file format of exports, backups and snapshots.

Lossless: bytes that are not UTF-8 are `{"base64": …}`, a tombstone has `"value": null`. Opens no files: lines in,
lines out, so that a file of any size streams.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping

from eosctl.core.records import Headers, Record
from eosctl.errors import InputFileError, RefusedError

UNKNOWN = -1
"""`offset` and `timestamp_ms` of a record whose line has none."""
MOST_PARTITION, MOST_OFFSET = 2**31 - 1, 2**63 - 1
"""The largest values of Kafka's protocol; a timestamp may be as large as an offset."""


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_quoted: Callable[[str], str] = json.encoder.encode_basestring


def record_line(record: Record, extra: Mapping[str, object] | None = None) -> str:
    """Format a record as one line, without its line feed; unknown members are left out, `extra` members come last.

    The line is assembled by hand: backups have millions of lines, and an encoder of whole objects takes three times as
    long.
    """
    more = "".join(f",{_quoted(name)}:{_encode(value)}" for name, value in (extra or {}).items())
    if record.headers:
        more = f',"headers":{_encode(encode_headers(record.headers))}{more}'
    where = f'"topic":{_quoted(record.topic)},"partition":{record.partition}'
    if record.offset != UNKNOWN:
        where = f'{where},"offset":{record.offset}'
    if record.timestamp_ms != UNKNOWN:
        where = f'{where},"timestamp_ms":{record.timestamp_ms}'
    return f'{{{where},"key":{bytes_text(record.key)},"value":{bytes_text(record.value)}{more}}}'


def bytes_text(data: bytes | None) -> str:
    """Return `encode_bytes` as JSON text."""
    try:
        return "null" if data is None else _quoted(data.decode("utf-8"))
    except UnicodeDecodeError:
        return _encode(encode_bytes(data))


def encode_bytes(data: bytes | None) -> object:
    """Return text where the bytes are UTF-8, else `{"base64": …}`; None stays None."""
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def decode_bytes(value: object) -> bytes | None:
    """Invert `encode_bytes`; raises ValueError for any other shape."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, dict) and set(value) == {"base64"} and isinstance(value["base64"], str):
        return base64.b64decode(value["base64"], validate=True)
    raise ValueError('expected text, null or {"base64": "…"}')


def encode_headers(headers: Headers) -> list[object]:
    """Encode headers as the member of a line."""
    return [{"name": encode_bytes(header_name(name)), "value": encode_bytes(value)} for name, value in headers]


def header_name(name: str) -> bytes:
    """Encode the name of a header."""
    return name.encode("utf-8", "surrogateescape")


def sendable_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Return headers in confluent-kafka's form.

    Raises RefusedError for names with surrogates, on which it crashes.
    """
    for name, _value in headers:
        if header_name(name) != name.encode("utf-8", "replace"):
            raise RefusedError(
                f"a record has a header whose name is not UTF-8 ({header_name(name)!r}), which can't be written",
                hint="Take that header out of a copy of the file.",
            )
    return list(headers)


def decode_headers(value: object) -> Headers:
    """Invert `encode_headers`; raises ValueError for any other shape."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError('"headers" is not a list')
    return tuple(_header(each) for each in value)


def _header(value: object) -> tuple[str, bytes | None]:
    if not isinstance(value, dict) or value.get("name") is None or "value" not in value:
        raise ValueError('a header is {"name": …, "value": …}')
    name = decode_bytes(value["name"]) or b""
    return name.decode("utf-8", "surrogateescape"), decode_bytes(value["value"])


def read_records(lines: Iterable[bytes], *, name: str) -> Iterator[Record]:
    """Read the records of a file; raises InputFileError that names the file and the line."""
    return (record for _number, _document, record in numbered_documents(lines, name=name))


def numbered_documents(
    lines: Iterable[bytes], *, name: str, first: int = 1
) -> Iterator[tuple[int, Mapping[str, object], Record]]:
    """Yield line numbers (the `first` line has number `first`), JSON objects and records.

    Raises InputFileError that names the file and the line.
    """
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        try:
            document = json.loads(line.decode("utf-8"))
            record = _record(document)
        except (ValueError, RecursionError) as exc:
            raise InputFileError(
                f"{name}, line {number}: not a record: {exc}",
                hint='A line is {"topic": …, "partition": …, "key": …, "value": …}, as `eosctl offsets export` writes.',
            ) from exc
        yield number, document, record


def _record(document: object) -> Record:
    """Convert a JSON object to a Record; raises ValueError that names a missing or wrong member."""
    if not isinstance(document, dict):
        raise ValueError("expected a JSON object")
    topic = document.get("topic")
    if not isinstance(topic, str) or not topic:
        raise ValueError('"topic" is missing')
    topic.encode()
    for member in ("key", "value"):
        if member not in document:
            raise ValueError(f'"{member}" is missing (a null one is written as null)')
    return Record(
        topic=topic,
        partition=_integer(document, "partition", most=MOST_PARTITION),
        offset=_integer(document, "offset", default=UNKNOWN),
        timestamp_ms=_integer(document, "timestamp_ms", default=UNKNOWN),
        key=decode_bytes(document["key"]),
        value=decode_bytes(document["value"]),
        headers=decode_headers(document.get("headers")),
    )


def _integer(
    document: Mapping[str, object], member: str, *, default: int | None = None, most: int = MOST_OFFSET
) -> int:
    value = document.get(member, default)
    if isinstance(value, bool) or not isinstance(value, int) or (value < 0 and value != default) or value > most:
        raise ValueError(f'"{member}" is not a number from 0 to {most}')
    return value
