"""Kafka records, topics and logs as plain values, and records as lines of JSON.

The values are shared by everything that reads or writes topics.

`audit` reads the log of a partition as batches by their headers, control markers, and gaps. They are named tuples, as a
topic has them by the hundred thousand. Their records are not kept: a batch has only their number.

Lines of JSON (NDJSON) are the one file format of exports, backups and snapshots. It is lossless: bytes that are not
UTF-8 are `{"base64": …}`, a tombstone has `"value": null`. Opens no files: lines in, lines out, so that a file of any
size streams.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum, unique
from typing import NamedTuple

from msgspec import Struct, field

from eosctl.core.ids import ProducerId
from eosctl.core.offsets.names import Partitioner, partition_for
from eosctl.core.wording import json_bytes
from eosctl.errors import InputFileError, RefusedError

Headers = tuple[tuple[str, bytes | None], ...]
"""Names and values; bytes of a name that are not UTF-8 are surrogates in it, as with `surrogateescape`."""


class Record(NamedTuple):
    """One record as stored in a topic; `value` None is a tombstone; `timestamp_ms` is -1 when the record has none.

    A tuple, because topics are read by the million and nothing else is created as fast.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


RecordFilter = Callable[[Sequence[Record]], Sequence[Record]]
"""A filter that takes some records of a topic at a time, those of a partition in order, and returns the ones to keep.
"""


class OutRecord(NamedTuple):
    """One record to write; `partition` None means the one that Connect's own producer would choose (murmur2)."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Headers = ()


class Written(Struct, frozen=True):
    """The place of a written OutRecord, from its delivery report."""

    topic: str
    partition: int
    offset: int


class Bounds(Struct, frozen=True):
    """First offset, last stable offset and high watermark of a partition; `lso < end` means an open transaction."""

    partition: int
    begin: int
    lso: int
    end: int


def hidden_of(
    offsets: Mapping[tuple[str, int], int], bounds: Mapping[str, Sequence[Bounds]]
) -> dict[tuple[str, int], int]:
    """Return those `offsets`, by topic and partition, that read_committed does not see yet.

    The LSO has not passed them.
    """
    stable = {(topic, bound.partition): bound.lso for topic, found in bounds.items() for bound in found}
    return {place: offset for place, offset in offsets.items() if stable.get(place, -1) <= offset}


class KnownBounds(Struct, frozen=True):
    """The bounds of the partitions whose leaders respond; `missing` has the reason for each other one."""

    known: tuple[Bounds, ...]
    missing: Mapping[int, str] = {}

    def partitions(self) -> int:
        """Return the topic's number of partitions."""
        return len(self.known) + len(self.missing)


class TopicRead(Struct, frozen=True):
    """The outcome of reading a topic up to bounds that were fixed at the start.

    `records` are in partition, then offset order: every record, or those that a filter kept; if requested, the newest
    of these per (partition, key). `records_read` counts all records that were read. `missing` has the partitions that
    could not be read, where that was allowed, and why. `partition_for` is the reader's partitioner: that of librdkafka
    is a hundred times as fast as the one in Python.
    """

    topic: str
    bounds: tuple[Bounds, ...]
    records: tuple[Record, ...]
    records_read: int
    missing: Mapping[int, str] = {}
    partition_for: Partitioner = partition_for

    def blocked(self) -> tuple[Bounds, ...]:
        """Return the partitions where an open transaction hides committed records behind it."""
        return tuple(bound for bound in self.bounds if bound.lso < bound.end)


class NewTopic(Struct, frozen=True):
    """A topic to create; offsets topics are compacted."""

    topic: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = field(default_factory=lambda: {"cleanup.policy": "compact"})


class Placement(Struct, frozen=True):
    """The replicas of a partition, as broker ids.

    `leader` is None without one; `offline` replicas are not in the cluster.
    """

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...] = ()


NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id of any topic where brokers do not report ids (Metadata before version 10, Kafka 2.8: KIP-516)."""


class TopicDescription(Struct, frozen=True):
    """A topic as the cluster describes it; `config` holds the effective values, empty where they may not be read."""

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = {}
    placements: tuple[Placement, ...] = ()


class LogDir(Struct, frozen=True):
    """A log directory of a broker; the bytes are those of its volume, None where the broker does not report them.

    One that `is_offline` is out of use: its disk failed or is full.
    """

    path: str
    is_offline: bool = False
    total_bytes: int | None = None
    usable_bytes: int | None = None


NO_PRODUCER = ProducerId(-1)
"""The producer id of a batch that was written by a producer without idempotence."""
OLD_FORMAT = 2
"""Batches of a lower `magic` are message sets from before Kafka 0.11, without producers and transactions."""

Place = tuple[str, int]
"""A topic and a partition."""


class Batch(NamedTuple):
    """The header of one record batch, or one control marker: then `commit` says which, and `records` is 0.

    `records` is the number of records left in the batch: compaction removes records and leaves `last_offset` as it was.
    For a compressed message set of `magic` 0 or 1 it is derived from the offsets. `first_timestamp_ms` and
    `max_timestamp_ms` are the producer's unless the topic stamps (`message.timestamp.type=LogAppendTime`), those of a
    marker the broker's. The epoch of a marker is that of its transaction's batches, or higher: a fence aborts with a
    higher one, and from transaction version 2 on (KIP-890, Kafka 4.0) every end raises it by one. `commit` is None
    unless it is the marker of a transaction, `coordinator_epoch` unless it is a marker. `crc_ok` is None if the
    checksum was not computed.
    """

    topic: str
    partition: int
    base_offset: int
    last_offset: int
    producer_id: ProducerId
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    first_timestamp_ms: int
    max_timestamp_ms: int
    records: int
    size_bytes: int
    magic: int = 2
    commit: bool | None = None
    coordinator_epoch: int | None = None
    crc_ok: bool | None = None


class Window(Struct, frozen=True):
    """The offsets or times that limit what a scan reads of each partition.

    None stands for the start of the log, or for its end when the scan is planned. A time is converted to an offset as
    brokers do it (ListOffsets): that of the first record, or marker, with at least this timestamp. Sources may give
    their records any time; markers have the broker's. So a transaction that begins before the window and ends in it may
    have some records outside: `audit` must distinguish it from one whose records are missing.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    since_offset: int | None = None
    until_offset: int | None = None


class Span(Struct, frozen=True):
    """One partition to be scanned: from `first` on, `stop` is the first offset that is not read.

    `log_start`, `last_stable` and `end` (the high watermark) are those of the partition when the scan was planned;
    `last_stable < end` means an open transaction.
    """

    topic: str
    partition: int
    first: int
    stop: int
    log_start: int
    last_stable: int
    end: int


@unique
class UnseenReason(StrEnum):
    """The reason why offsets of a window were not seen."""

    REMOVED = "removed"
    """They lie before the log's start: retention or DeleteRecords removed them."""
    COMPACTED = "compacted"
    """The log cleaner removed them; they lie between, or in, batches that are still there."""
    UNREADABLE = "unreadable"
    """The partition could not be read; `detail` has the reason."""


class Unseen(NamedTuple):
    """Offsets of a window that a scan did not see: `offsets` of those from `first_offset` to `last_offset`.

    The gaps of compaction are one of these per partition, so that not all offsets in between are missing.
    `first_offset`, `last_offset` and `offsets` are None where they are unknown.
    """

    topic: str
    partition: int
    reason: UnseenReason
    first_offset: int | None = None
    last_offset: int | None = None
    offsets: int | None = None
    detail: str = ""


class ScanPlan(Struct, frozen=True):
    """The partitions that can be read, and the offsets that are already known not to be."""

    spans: tuple[Span, ...]
    unseen: tuple[Unseen, ...] = ()


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
        return _encode(json_bytes(data))


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
    return [{"name": json_bytes(header_name(name)), "value": json_bytes(value)} for name, value in headers]


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


RECORD_HINT = (
    'A line is {"topic": …, "partition": …, "key": …, "value": …}, as `eosctl offsets export` writes; or of '
    "kcat -J, rpk topic consume, kafka-dump-log.sh --print-data-log, kafka-console-consumer.sh with print.key=true."
)


def read_records(lines: Iterable[bytes], *, name: str) -> Iterator[Record]:
    """Read the records of a file; raises InputFileError that names the file and the line."""
    return (record for _number, _document, record in numbered_documents(lines, name=name))


def numbered_documents(
    lines: Iterable[bytes], *, name: str, first: int = 1
) -> Iterator[tuple[int, Mapping[str, object], Record]]:
    """Yield line numbers (the `first` line has number `first`), JSON objects and records, without a snapshot's header.

    Raises InputFileError that names the file and the line.
    """
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        try:
            document = json.loads(line.decode("utf-8"))
            if is_header(document):
                continue
            record = _record(document)
        except (ValueError, RecursionError) as exc:
            why = f"not JSON at column {exc.colno}" if isinstance(exc, json.JSONDecodeError) else exc
            raise InputFileError(
                f"{name}, line {number}: not a record: {why}",
                hint=RECORD_HINT,
            ) from exc
        yield number, document, record


HEADER = "eosctl"
"""The member by which the first line of a snapshot is no record; its value is what the file is."""


def is_header(document: object) -> bool:
    """Decide whether a line says what its file is, in place of a record."""
    return isinstance(document, dict) and HEADER in document and "topic" not in document


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
