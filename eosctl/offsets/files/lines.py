"""Many records as lines of a record file at once: what `core.record_file` says of one, in a third of its time."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from eosctl.core.record_file import UNKNOWN, record_line
from eosctl.core.records import Record


class _Line(msgspec.Struct, omit_defaults=True):
    """A record without headers whose key and value are text, or null; its members in the order of a line."""

    topic: str
    partition: int
    offset: int = UNKNOWN
    timestamp_ms: int = UNKNOWN
    key: str | msgspec.UnsetType | None = msgspec.UNSET
    value: str | msgspec.UnsetType | None = msgspec.UNSET


_encode_lines = msgspec.json.Encoder().encode_lines


def record_lines(records: Sequence[Record]) -> bytes:
    """The lines of `records`, each with its line feed."""
    if any(record[6] for record in records):
        return _one_by_one(records)
    try:
        return _encode_lines(
            [
                _Line(
                    topic,
                    partition,
                    offset,
                    timestamp_ms,
                    None if key is None else key.decode(),
                    None if value is None else value.decode(),
                )
                for topic, partition, offset, timestamp_ms, key, value, _headers in records
            ]
        )
    except UnicodeDecodeError:
        return _one_by_one(records)


def _one_by_one(records: Sequence[Record]) -> bytes:
    return "".join(f"{record_line(record)}\n" for record in records).encode()
