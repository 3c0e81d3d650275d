"""Record batches written record by record, in plain Python (`DefaultRecord`, `DefaultRecordBatch`, Kafka 4.3)."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

Chance = random.Random
NO_PRODUCER = -1
_LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL, _DELETE_HORIZON = 8, 16, 32, 64


class Written(NamedTuple):
    """A record; offset and time are counted from the batch's, and names of headers are bytes."""

    offset: int
    delta_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[bytes, bytes | None]] = ()


def _number(value: int) -> bytes:
    left, out = (value << 1 ^ value >> 63) & (1 << 64) - 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def _sized(data: bytes | None) -> bytes:
    return _number(-1) if data is None else _number(len(data)) + data


def record_of(record: Written) -> bytes:
    """One record, with its length."""
    headers = b"".join(_sized(name) + _sized(value) for name, value in record.headers)
    body = b"".join(
        [
            *(b"\0", _number(record.delta_ms), _number(record.offset)),
            *(_sized(record.key), _sized(record.value), _number(len(record.headers)), headers),
        ]
    )
    return _number(len(body)) + body


def _arrow(name: str) -> Callable[[bytes], bytes]:
    return lambda body: pa.Codec(name).compress(body, asbytes=True)


def _twice(compress: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """As two members behind each other."""
    return lambda body: compress(body[: len(body) // 2]) + compress(body[len(body) // 2 :])


def _xerial(size: int) -> Callable[[bytes], bytes]:
    """As snappy-java frames blocks of some size."""

    def compress(body: bytes) -> bytes:
        blocks = (_arrow("snappy")(body[at : at + size]) for at in range(0, len(body), size))
        return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)

    return compress


CODECS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "none": (0, bytes),
    "gzip": (1, gzip.compress),
    "gzip twice": (1, _twice(gzip.compress)),
    "snappy": (2, _arrow("snappy")),
    "snappy-java": (2, _xerial(1 << 15)),
    "snappy-java, small": (2, _xerial(17)),
    "lz4": (3, _arrow("lz4")),
    "lz4 twice": (3, _twice(_arrow("lz4"))),
    "zstd": (4, _arrow("zstd")),
    "zstd twice": (4, _twice(_arrow("zstd"))),
}


def batch_of(
    base: int,
    records: Sequence[Written],
    *,
    codec: str = "none",
    base_ms: int = 0,
    max_ms: int = 0,
    producer: int = NO_PRODUCER,
    attributes: int = 0,
    last: int | None = None,
) -> bytes:
    """A batch; `last` is the last offset's distance from `base`, as compaction leaves it."""
    number, compress = CODECS[codec]
    body = compress(b"".join(map(record_of, records))) if records else b""
    if last is None:
        last = records[-1].offset if records else 0
    attributes |= number if records else 0
    tail = struct.pack(">hiqqqhii", attributes, last, base_ms, max_ms, producer, 0, 0, len(records)) + body
    return struct.pack(">qiibI", base, 9 + len(tail), 0, 2, 0) + tail


def marker_of(base: int, producer: int, *, commits: bool) -> bytes:
    """The control batch that ends a transaction."""
    record = Written(0, 0, struct.pack(">hh", 0, commits), struct.pack(">hi", 0, 7))
    return batch_of(base, [record], producer=producer, attributes=_TRANSACTIONAL | _CONTROL)


Row = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]
"""Offset, time, key, value, headers and producer of a record as a consumer sees it."""


class Log(NamedTuple):
    """What a broker sends of a partition, the transactions it says were aborted, what a consumer sees, and the end."""

    data: bytes
    aborted: list[tuple[int, int]]
    rows: list[Row]
    end: int


def any_log(chance: Chance, *, most: int, codecs: Sequence[str] = tuple(CODECS)) -> Log:
    """Batches of any kind, of `most` records: gaps, transactions that go through each other, markers, codecs."""
    data, rows, aborted = list[bytes](), list[Row](), list[tuple[int, int]]()
    offset, under_way = chance.choice([0, chance.randrange(1 << 40)]), dict[int, tuple[int, list[Row]]]()
    for _batch in range(chance.randrange(1, 9)):
        offset += chance.choice([0, 0, 0, chance.randrange(1, 50)])
        kind = chance.random()
        if kind < 0.15 and under_way:
            producer = chance.choice(list(under_way))
            first, seen = under_way.pop(producer)
            commits = chance.random() < 0.5
            data.append(marker_of(offset, producer, commits=commits))
            if commits:
                rows += seen
            else:
                aborted.append((producer, first))
            offset += 1
        elif kind < 0.22:  # all of it was compacted away
            data.append(batch_of(offset, [], producer=1, last=(last := chance.randrange(5))))
            offset += last + 1
        else:
            in_transaction = chance.random() < 0.4
            batch, seen = _any_batch(chance, offset, most, codecs, in_transaction=in_transaction)
            data.append(batch)
            if in_transaction:
                under_way.setdefault(seen[0][5], (offset, []))[1].extend(seen)
            else:
                rows += seen
            offset = struct.unpack_from(">i", batch, 23)[0] + offset + 1
    for _first, seen in under_way.values():  # a reader stops before what is open; here it is let through
        rows += seen
    return Log(b"".join(data), aborted, sorted(rows), offset)


def _any_batch(
    chance: Chance, base: int, most: int, codecs: Sequence[str], *, in_transaction: bool
) -> tuple[bytes, list[Row]]:
    records, offset = list[Written](), -1
    size = chance.choice([2, 20, 130, 600])
    for _record in range(chance.choice([1, 1, 1, 2, 3, chance.randrange(1, 40), chance.choice([5, most])])):
        offset += 1 + (chance.randrange(4) if chance.random() < 0.2 else 0)
        names = [chance.choice([b"", b"h", "é".encode(), b"traceparent", b"\xff"]) for _each in range(_few(chance))]
        headers = [(name, _any_bytes(chance, 4)) for name in names]
        delta_ms = chance.choice([0, 1, -7, 70_000, -(1 << 33)])
        records.append(Written(offset, delta_ms, _any_bytes(chance, size), _any_bytes(chance, size), headers))
    base_ms, max_ms = chance.choice([0, 1_700_000_000_000, -1]), 1_700_000_123_456
    producer = chance.choice([1, 2, 3]) if in_transaction or chance.random() < 0.5 else NO_PRODUCER
    stamped = chance.random() < 0.15
    attributes = (
        (_TRANSACTIONAL if in_transaction else 0)
        | (_LOG_APPEND_TIME if stamped else 0)
        | (_DELETE_HORIZON if chance.random() < 0.1 else 0)
    )
    batch = batch_of(
        base, records,
        codec=chance.choice(codecs), base_ms=base_ms, max_ms=max_ms, producer=producer, attributes=attributes,
        last=offset + chance.choice([0, 0, 0, 3]),
    )  # fmt: skip
    rows = [
        (
            base + each.offset,
            max_ms if stamped else base_ms + each.delta_ms,
            each.key,
            each.value,
            tuple((name.decode("utf-8", "surrogateescape"), value) for name, value in each.headers),
            producer,
        )
        for each in records
    ]
    return batch, rows


def _few(chance: Chance) -> int:
    return chance.choice([0] * 8 + [1, 2])


def _any_bytes(chance: Chance, most: int) -> bytes | None:
    kind, size = chance.random(), chance.randrange(most)
    if kind < 0.1:
        return None
    if kind < 0.2:
        return b""
    return bytes([chance.choice([0, 0, 0, 14, 12, 128])]) * size if kind < 0.4 else chance.randbytes(size)
