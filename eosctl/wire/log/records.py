"""The records of the batches of a log, one by one: small topics are read so, without loading numpy and Arrow.

Layouts: `DefaultRecordBatch` and `DefaultRecord` of Apache Kafka 4.3. Which records a consumer of committed records
sees is decided as Kafka's consumer does (`CompletedFetch`). Compressed batches are not read here.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from eosctl.core.records import Headers, Record
from eosctl.errors import ProtocolError
from eosctl.wire.log.batches import (
    BATCH,
    COMPRESSION,
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    batch_places,
    end_of_transaction,
    no_batch,
)


class CompressedError(Exception):
    """A batch is compressed, where plain ones are required."""


Part = tuple[int, int, list[Record]]
"""A batch: its first offset, its last offset, and its records."""


def visible_records(data: memoryview, *, topic: str, partition: int, aborted: Iterable[tuple[int, int]]) -> list[Part]:
    """Return the whole batches in `data`, with the records that a consumer sees.

    `aborted` has the producer ids and first offsets of aborted transactions. Raises ProtocolError for bytes that are no
    batches, CompressedError, and OldFormatError for message sets from before Kafka 0.11.
    """
    places = batch_places(data, topic=topic, partition=partition)
    to_come = sorted((offset, producer_id) for producer_id, offset in aborted)
    open_ids: set[int] = set()
    found: list[Part] = []
    for begin, end in pairwise(places):
        (base, _size, _epoch, _magic, _crc, attributes, delta, base_ms, max_ms, producer_id, _e, _s, count) = (
            BATCH.unpack_from(data, begin)
        )
        last = base + delta
        if base < 0 or delta < 0 or count < 0:
            raise no_batch(topic, partition, base)
        while to_come and to_come[0][0] <= last:
            open_ids.add(to_come.pop(0)[1])
        body, records = data[begin + BATCH.size : end], list[Record]()
        if attributes & CONTROL:
            if producer_id in open_ids and len(body) and end_of_transaction(body)[0] is False:
                open_ids.remove(producer_id)
        elif not (attributes & TRANSACTIONAL and producer_id in open_ids):
            if attributes & COMPRESSION:
                raise CompressedError(f"{topic}-{partition}")
            stamp_ms = max_ms if attributes & LOG_APPEND_TIME else None
            records = _records(bytes(body), count, topic, partition, base, base_ms, stamp_ms)
        found.append((base, last, records))
    return found


def _records(
    data: bytes, count: int, topic: str, partition: int, base: int, base_ms: int, stamp_ms: int | None
) -> list[Record]:
    """Return the records of one batch; `stamp_ms` is the time of all of them where the broker set it."""
    found, at, new = list[Record](), 0, tuple.__new__
    try:
        for _number in range(count):
            size, at = _varint(data, at)
            end = at + size
            time_ms, at = _varint(data, at + 1)  # behind the attributes, of which none is used
            delta, at = _varint(data, at)
            key, at = _bytes(data, at, end)
            value, at = _bytes(data, at, end)
            headers: Headers = ()
            if data[at]:
                headers, at = _headers(data, at, end)
            else:
                at += 1
            if at != end:
                raise ProtocolError(f"a record in {topic}-{partition} is longer or shorter than it says")
            time_ms = base_ms + time_ms if stamp_ms is None else stamp_ms
            found.append(new(Record, (topic, partition, base + delta, time_ms, key, value, headers)))
    except IndexError as exc:
        raise ProtocolError(f"a record in {topic}-{partition} is cut off") from exc
    if at != len(data):
        raise ProtocolError(f"a record batch in {topic}-{partition} has more records than it says")
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a zigzag number of at most ten bytes, and the place behind it."""
    byte = data[at]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), at + 1
    value, shift = byte & 0x7F, 7
    while shift < 70:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at + 1
        shift += 7
    raise ProtocolError("a record has a number longer than ten bytes")


def _bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    if at + size > end:
        raise ProtocolError("a record is shorter than its key or value")
    return data[at : at + size], at + size


def _headers(data: bytes, at: int, end: int) -> tuple[Headers, int]:
    count, at = _varint(data, at)
    found = list[tuple[str, bytes | None]]()
    for _header in range(count):
        name, at = _bytes(data, at, end)
        value, at = _bytes(data, at, end)
        found.append(((name or b"").decode("utf-8", "surrogateescape"), value))
    return tuple(found), at
