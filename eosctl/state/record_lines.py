"""Many records as lines of a record file at once: what `core.record_file` says of one, in a third of its time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec
from msgspec import UNSET, UnsetType

from eosctl.core.record_file import UNKNOWN, encode_bytes, record_line
from eosctl.core.records import Record

_AT_ONCE = 5000


class _Line(msgspec.Struct, omit_defaults=True):
    """A record without headers whose key and value are text, or null; its members in the order of a line."""

    topic: str
    partition: int
    offset: int = UNKNOWN
    timestamp_ms: int = UNKNOWN
    key: str | UnsetType | None = UNSET
    value: str | UnsetType | None = UNSET


class _BackupLine(_Line):
    """The same with what a backup has besides."""

    written: str | UnsetType | None = UNSET
    cluster_id: str | UnsetType = UNSET


_encode_lines = msgspec.json.Encoder().encode_lines


def record_lines(records: Sequence[Record]) -> bytes:
    """The lines of `records`, each with its line feed."""
    if not any(record[6] for record in records):
        try:
            return _encode_lines([_Line(*record[:4], _text(record[4]), _text(record[5])) for record in records])
        except UnicodeDecodeError:
            pass
    return "".join(f"{record_line(record)}\n" for record in records).encode()


def backup_lines(pairs: Iterable[tuple[Record, bytes | None]], *, cluster_id: str) -> Iterator[bytes]:
    """The lines of a backup, many at a time: records, and what is written over each."""
    left = iter(pairs)
    while some := list(islice(left, _AT_ONCE)):
        yield _backup_lines(some, cluster_id)


def _backup_lines(pairs: Sequence[tuple[Record, bytes | None]], cluster_id: str) -> bytes:
    if not any(record[6] for record, _written in pairs):
        try:
            return _encode_lines(
                [
                    _BackupLine(*record[:4], _text(record[4]), _text(record[5]), _text(written), cluster_id)
                    for record, written in pairs
                ]
            )
        except UnicodeDecodeError:
            pass
    lines = (record_line(each, {"written": encode_bytes(over), "cluster_id": cluster_id}) for each, over in pairs)
    return "".join(f"{line}\n" for line in lines).encode()


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
