"""Reads the headers of record batches in place, and computes their checksums.

Records are not read, decompressed or copied. Layouts: `DefaultRecordBatch`, `LegacyRecord`, `ControlRecordType` and
`EndTxnMarker` of Apache Kafka 4.3. A control batch has one record, whose key says what it marks; brokers never compress
it.

The checksum is CRC-32C (Castagnoli), four bytes a step: no dependency of eosctl has it. It is a loop in Python, some
ten times slower than reading; its two tables of 65,536 numbers are made on first use.
"""

from __future__ import annotations

import struct
from array import array
from functools import cache

from eosctl.core.records import NO_PRODUCER, OLD_FORMAT, Batch
from eosctl.errors import ProtocolError

_POLYNOMIAL = 0x82F63B78  # reflected
_ALL = 0xFFFFFFFF
_IS_BIG_ENDIAN = array("I", [1]).tobytes()[0] == 0


def crc32c(data: bytes | memoryview) -> int:
    """Compute the checksum of `data`."""
    low, high = _word_tables()
    whole = len(data) & ~3
    words = array("I", bytes(data[:whole]))
    if _IS_BIG_ENDIAN:
        words.byteswap()
    crc = _ALL
    for word in words:
        crc ^= word
        crc = low[crc & 0xFFFF] ^ high[crc >> 16]
    table = _byte_table()
    for byte in data[whole:]:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ _ALL


@cache
def _byte_table() -> list[int]:
    """Compute the CRC of each byte after eight shifts."""
    table = list(range(256))
    for _bit in range(8):
        table = [crc >> 1 ^ _POLYNOMIAL if crc & 1 else crc >> 1 for crc in table]
    return table


@cache
def _word_tables() -> tuple[list[int], list[int]]:
    """Compute the CRC of the lower half of a word after 32 shifts, and of its upper half after 16."""
    table = _byte_table()

    def shift(crc: int) -> int:
        return table[crc & 0xFF] ^ crc >> 8

    high = [shift(shift(half)) for half in range(1 << 16)]
    low = [shift(shift(crc)) for crc in high]
    return low, high


_ENTRY = struct.Struct(">qi4xb")
"""The beginning of every format: an offset, the length of the rest, four other bytes, and the magic."""
_LENGTH_END = 12
_LENGTH_AND_MAGIC = struct.Struct(">8xi4xb")
BATCH_HEAD = {
    "base_offset": "q",
    "length": "i",
    "leader_epoch": "i",
    "magic": "b",
    "crc": "I",
    "attributes": "h",
    "last_offset_delta": "i",
    "base_timestamp_ms": "q",
    "max_timestamp_ms": "q",
    "producer_id": "q",
    "producer_epoch": "h",
    "base_sequence": "i",
    "records": "i",
}
"""The numbers at the beginning of a batch, each with its code in `struct`; the records follow."""
BATCH = struct.Struct(">" + "".join(BATCH_HEAD.values()))
_CRC_FROM = 21
COMPRESSION, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, _DELETE_HORIZON = 7, 8, 16, 32, 64
"""The bits of a batch's attributes."""
_KEY, _VALUE = struct.Struct(">hh"), struct.Struct(">hi")
"""The key of a control record (version and type) and its value (version and coordinator epoch); newer versions append.
"""
_ENDS = {0: False, 1: True}
"""The types that end a transaction: abort and commit. The others are Raft's."""
_UNUSUAL = LOG_APPEND_TIME | CONTROL | _DELETE_HORIZON
_LEAST_BYTES = BATCH.size - _LENGTH_END
_LEAST_OF = {0: 14, 1: 22, 2: _LEAST_BYTES}
"""The least length of a message or a batch, by magic."""
_OLD_ATTRIBUTES = struct.Struct(">bq")
_NO_TIME = -1


class OldFormatError(Exception):
    """The records are message sets from before Kafka 0.11, where whole batches are required."""


def batch_places(records: memoryview, *, topic: str, partition: int) -> list[int]:
    """Return the start of each whole batch of `records`, and the end of the last one.

    A fetch may cut off the one behind it. Raises ProtocolError for bytes that are no batch, and OldFormatError.
    """
    position, end, places, unpack = 0, len(records), [0], _LENGTH_AND_MAGIC.unpack_from
    append = places.append
    while end - position >= BATCH.size:
        length, magic = unpack(records, position)
        if magic != OLD_FORMAT or length < _LEAST_BYTES:
            break
        position += length + _LENGTH_END
        if position > end:
            return places
        append(position)
    if _entry(records[position:], topic, partition, 0, check_crc=False) is not None:
        raise OldFormatError(f"{topic}-{partition}")
    return places


def decode_batches(
    records: memoryview, *, topic: str, partition: int, position: int, check_crc: bool = False
) -> list[Batch]:
    """Decode the whole batches of `records`, fetched from offset `position` on; a fetch may cut off the last one.

    Topics have them by the hundred thousand: the usual kind is read inline, without a call for each.

    Raises ProtocolError for bytes that are no batch.
    """
    found: list[Batch] = []
    offset, end = 0, len(records)
    new, cls, unpack, append = tuple.__new__, Batch, BATCH.unpack_from, found.append
    while end - offset >= BATCH.size:
        base, length, _epoch, magic, _crc, attributes, last, first_ms, max_ms, producer_id, epoch, sequence, count = (
            unpack(records, offset)
        )
        if magic != 2 or attributes & _UNUSUAL or check_crc or length < _LEAST_BYTES or base | last | count < 0:
            batch = _entry(records[offset:], topic, partition, position, check_crc=check_crc)
            if batch is None:
                return found
            append(batch)
            offset, position = offset + batch.size_bytes, batch.last_offset + 1
        else:
            size = length + _LENGTH_END
            if size > end - offset:
                return found
            offset, position = offset + size, base + last + 1
            append(
                new(
                    cls,
                    (
                        topic, partition, base, base + last, producer_id, epoch, sequence,
                        attributes & TRANSACTIONAL != 0, False, first_ms, max_ms, count, size, 2, None, None, None,
                    ),
                )
            )  # fmt: skip
    while (batch := _entry(records[offset:], topic, partition, position, check_crc=check_crc)) is not None:
        append(batch)
        offset, position = offset + batch.size_bytes, batch.last_offset + 1
    return found


def _entry(data: memoryview, topic: str, partition: int, expected: int, *, check_crc: bool) -> Batch | None:
    """Decode the first batch of `data`, of either format; None where it is cut off, or there is none."""
    if len(data) < _ENTRY.size:
        return None
    base, length, magic = _ENTRY.unpack_from(data)
    size = length + _LENGTH_END
    if length < _LEAST_OF.get(magic, length + 1):
        raise ProtocolError(f"no record batch in {topic}-{partition} at offset {base}: magic {magic}, size {size}")
    if size > len(data):
        return None
    if magic == 2:
        return _batch(data[:size], topic, partition, check_crc=check_crc)
    return _message(data[:size], base, magic, topic, partition, expected)


def _batch(data: memoryview, topic: str, partition: int, *, check_crc: bool) -> Batch:
    base, _length, _leader_epoch, _magic, crc, attributes, *rest = BATCH.unpack_from(data)
    last_delta, first_ms, max_ms, producer_id, epoch, sequence, count = rest
    if last_delta < 0 or count < 0 or base < 0:
        raise no_batch(topic, partition, base)
    is_control = attributes & CONTROL != 0
    end = end_of_transaction(data[BATCH.size :]) if is_control and count else (None, None)
    if attributes & (LOG_APPEND_TIME | _DELETE_HORIZON):  # the first timestamp is the producer's, or none
        first_ms = max_ms
    return tuple.__new__(
        Batch,
        (
            *(topic, partition, base, base + last_delta, producer_id, epoch, sequence),
            *(attributes & TRANSACTIONAL != 0, is_control, first_ms, max_ms, 0 if is_control else count, len(data), 2),
            *end,
            crc32c(data[_CRC_FROM:]) == crc if check_crc else None,
        ),
    )


def no_batch(topic: str, partition: int, offset: int) -> ProtocolError:
    """Return the error for a batch header whose numbers are invalid."""
    return ProtocolError(f"no record batch in {topic}-{partition} at offset {offset}")


def end_of_transaction(record: memoryview) -> tuple[bool | None, int | None]:
    """Commit or abort, and the coordinator's epoch; None for a control record of another kind."""
    try:
        offset = _skip_varint(record, 0) + 1  # its length, its attributes
        offset = _skip_varint(record, _skip_varint(record, offset))  # the deltas of time and offset
        size, offset = _read_size(record, offset)
        _version, kind = _KEY.unpack_from(record[: offset + size], offset)
        if kind not in _ENDS:
            return None, None
        size, offset = _read_size(record, offset + size)
        _version, coordinator_epoch = _VALUE.unpack_from(record[: offset + size], offset)
    except (IndexError, struct.error) as exc:
        raise ProtocolError("a control record is cut off") from exc
    return _ENDS[kind], coordinator_epoch


def _skip_varint(data: memoryview, offset: int) -> int:
    """Return the offset behind a varint, or a varlong."""
    for index in range(offset, offset + 10):
        if data[index] < 0x80:
            return index + 1
    raise ProtocolError("a control record has a number longer than ten bytes")


def _read_size(data: memoryview, offset: int) -> tuple[int, int]:
    """Read a one-byte zigzag length and return it with the offset behind it.

    Keys and values of control records are short.
    """
    byte = data[offset]
    if byte & 0x81:
        raise ProtocolError(f"a control record has a key or a value of a length that begins with {byte:#04x}")
    return byte >> 1, offset + 1


def _message(data: memoryview, offset: int, magic: int, topic: str, partition: int, expected: int) -> Batch:
    """Decode a message from before Kafka 0.11.

    A compressed one has others inside, and the offset of the last of them.
    """
    attributes, stamp_ms = _OLD_ATTRIBUTES.unpack_from(data, _ENTRY.size)
    stamp_ms = stamp_ms if magic else _NO_TIME
    base = min(expected, offset) if attributes & COMPRESSION else offset
    if base < 0:
        raise ProtocolError(f"no message in {topic}-{partition} at offset {offset}")
    return Batch(
        topic=topic,
        partition=partition,
        base_offset=base,
        last_offset=offset,
        producer_id=NO_PRODUCER,
        producer_epoch=-1,
        base_sequence=-1,
        is_transactional=False,
        is_control=False,
        first_timestamp_ms=stamp_ms,
        max_timestamp_ms=stamp_ms,
        records=offset - base + 1,
        size_bytes=len(data),
        magic=magic,
    )
