"""Reads many records from lines of a record file: does what `core.records` does, in a fraction of its time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from eosctl.core.kept.record_formats import RecordDump
from eosctl.core.kept.snapshot_header import SnapshotHeader, read_header
from eosctl.core.records import MOST_OFFSET, MOST_PARTITION, UNKNOWN, Record, decode_bytes, numbered_documents
from eosctl.errors import InputFileError

_Partition = Annotated[int, msgspec.Meta(ge=0, le=MOST_PARTITION)]
_NumberOrUnknown = Annotated[int, msgspec.Meta(ge=UNKNOWN, le=MOST_OFFSET)]


class _PlainLine(msgspec.Struct, forbid_unknown_fields=True):
    """A line of the usual kind: without headers, and with nothing but text."""

    topic: Annotated[str, msgspec.Meta(min_length=1)]
    partition: _Partition
    key: str | None
    value: str | None
    offset: _NumberOrUnknown = UNKNOWN
    timestamp_ms: _NumberOrUnknown = UNKNOWN
    written: str | UnsetType | None = UNSET
    cluster_id: str | UnsetType = UNSET


_DECODER = msgspec.json.Decoder(_PlainLine)
LINES_AT_ONCE = 5_000
"""The number of lines decoded together; they are read one by one if one of them is not plain."""
_BYTES_AT_ONCE = 1 << 24


class BackupEntry(NamedTuple):
    """The former record of a key; `before.offset` -1 means that it had none.

    `written` is the value that replaced it, as far as the file shows (`knows_written`); None is also a deletion.
    """

    before: Record
    written: bytes | None
    knows_written: bool
    cluster_id: str | None


def read_columns(lines: Iterable[bytes], *, name: str) -> Iterator[Sequence[Sequence[object]]]:
    """Yield the records of a record file in groups, as columns: line numbers, then the members of Record.

    Keys and values are bytes, or text where all of them are; there are no columns where all lines are blank. Raises
    InputFileError that names the file and the line.
    """
    first = 1
    for some in _in_groups(lines):
        yield _plain_columns(some, first=first) or _slow_columns(some, first=first, name=name)
        first += len(some)


def _in_groups(lines: Iterable[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield the lines in groups that fit into memory; groups of long lines have fewer of them."""
    some, size = list[bytes](), 0
    for line in lines:
        some.append(line)
        size += len(line)
        if len(some) == LINES_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some


def _plain_columns(lines: Sequence[bytes], *, first: int) -> Sequence[Sequence[object]] | None:
    """Decode the lines as columns; None unless each line is one plain record."""
    if not all(line.startswith(b"{") for line in lines):
        return None
    try:
        found = _DECODER.decode_lines(b"".join(lines))
    except (msgspec.DecodeError, UnicodeError):
        return None
    if len(found) != len(lines):
        return None
    names = ("topic", "partition", "offset", "timestamp_ms", "key", "value")
    columns = (list(map(attrgetter(each), found)) for each in names)
    return [range(first, first + len(found)), *columns, [()] * len(found)]


def _slow_columns(lines: Sequence[bytes], *, first: int, name: str) -> Sequence[Sequence[object]]:
    rows = [(number, *record) for number, _more, record in numbered_documents(lines, name=name, first=first)]
    return list(zip(*rows, strict=True))


def read_backup_lines(lines: Iterable[bytes], *, name: str) -> Iterator[BackupEntry]:
    """Yield the entries of a backup; raises InputFileError that names the file and the line.

    The entries of a snapshot are of the cluster that the header before them names.
    """
    header: SnapshotHeader | None = None
    for number, line in enumerate(lines, start=1):
        header = read_header(line, name=name) or header
        try:
            plain = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeError):
            for entry in _read_slowly(line, number, name=name):
                yield entry if header is None else entry._replace(cluster_id=header.kafka_cluster_id)
            continue
        key, value, written = plain.key, plain.value, plain.written
        record = Record(
            plain.topic,
            plain.partition,
            plain.offset,
            plain.timestamp_ms,
            None if key is None else key.encode(),
            None if value is None else value.encode(),
        )
        over = written.encode() if isinstance(written, str) else None
        cluster_id = (header.kafka_cluster_id if header else None) if plain.cluster_id is UNSET else plain.cluster_id
        yield BackupEntry(record, over, written is not UNSET, cluster_id)


def _read_slowly(line: bytes, number: int, *, name: str) -> Iterator[BackupEntry]:
    for _number, document, record in numbered_documents([line], name=name, first=number):
        try:
            written = decode_bytes(document.get("written"))
        except ValueError as exc:
            raise InputFileError(f'{name}, line {number}: "written" {exc}') from exc
        cluster_id = None if document.get("cluster_id") is None else str(document["cluster_id"])
        yield BackupEntry(record, written, "written" in document, cluster_id)


def dump_columns(dump: RecordDump, *, name: str) -> Iterator[Sequence[Sequence[object]]]:
    """Yield the records of a file, of another tool too, as `read_columns` does."""
    if dump.own_lines is not None:
        yield from read_columns(dump.own_lines, name=name)
        return
    rows = ((number, *record) for number, record in dump.records)
    while some := list(islice(rows, LINES_AT_ONCE)):
        yield list(zip(*some, strict=True))
