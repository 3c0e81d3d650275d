"""Decompression of the records of batches: of many small ones at once."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache

import pyarrow as pa

from eosctl.errors import ProtocolError

MOST_BYTES, TOGETHER_BYTES = 1 << 28, 1 << 26
"""The most for the records of one batch, and of several that are decompressed together. Producers put some 1 MB into
one by default (`max.request.size`), but anyone who may write to a topic can send a few kB that become gigabytes."""
_BLOCK_BYTES = 1 << 20
"""Bytes read from a stream at once: memory for much more is requested from the system anew each time."""
_GZIP, _SNAPPY, _LZ4, _ZSTD = 1, 2, 3, 4
_STREAMS = {_GZIP: "gzip", _LZ4: "lz4", _ZSTD: "zstd"}
_XERIAL = b"\x82SNAPPY\x00"
"""The beginning of snappy-java's stream, in which Java's clients wrap blocks; librdkafka writes one block alone."""
_XERIAL_HEAD = 16
_MARK = os.urandom(16)
"""Bytes that no batch has, as only this process knows them."""
_FAILURES = (OSError, ValueError, OverflowError, pa.ArrowException)


class _TooMuchError(Exception):
    """More than the bytes that were allowed."""


def decompressed(batches: Sequence[tuple[memoryview, int]]) -> Iterator[list[bytes | memoryview]]:
    """Yield the records of some batches with their codecs, in order: all at once, unless they are too much.

    No more is decompressed than is allowed, whatever size a batch claims. Raises ProtocolError.
    """
    try:
        found = _plain(batches, TOGETHER_BYTES if len(batches) > 1 else MOST_BYTES)
    except _TooMuchError as exc:
        if len(batches) == 1:
            raise ProtocolError(f"a record batch has more than {MOST_BYTES} bytes without its compression") from exc
    else:
        yield found
        return
    half = len(batches) // 2
    yield from decompressed(batches[:half])
    yield from decompressed(batches[half:])


def _plain(batches: Sequence[tuple[memoryview, int]], most: int) -> list[bytes | memoryview]:
    """Decompress the records of each batch.

    Raises _TooMuchError if the records of the compressed ones have more than `most` bytes.
    """
    found, rows_of = list[bytes | memoryview](), defaultdict[int, list[int]](list)
    for row, (data, codec) in enumerate(batches):
        found.append(data)
        if codec:
            rows_of[codec].append(row)
    for codec, rows in rows_of.items():
        for row, plain in zip(rows, _decompressed([found[row] for row in rows], codec, most), strict=True):
            found[row] = plain
            most -= len(plain)
    return found


def _decompressed(batches: Sequence[bytes | memoryview], codec: int, most: int) -> Sequence[bytes]:
    """Decompress batches with one codec.

    Beginning a stream takes ten times as long as reading a small batch. So one stream has all of them, each a member of
    its own, as gzip, lz4 and zstd allow, and between them are members with a mark.
    """
    name = _STREAMS.get(codec)
    if name is None and codec != _SNAPPY:
        raise ProtocolError(f"a record batch has the unknown compression {codec}")
    if name is not None and len(batches) > 1:
        with suppress(*_FAILURES):  # which of them is damaged is seen one by one
            together = _of_stream(_between(name).join(batches), name, most + len(batches) * len(_MARK)).split(_MARK)
            if len(together) == len(batches):
                return together
    found = list[bytes]()
    try:
        for each in batches:
            found.append(_of_snappy(each, most) if name is None else _of_stream(each, name, most))
            most -= len(found[-1])
    except _FAILURES as exc:
        raise ProtocolError(f"a record batch can't be decompressed: {exc}") from exc
    return found


@cache
def _between(name: str) -> bytes:
    made: bytes = pa.Codec(name).compress(_MARK, asbytes=True)
    return made


def _of_stream(data: bytes | memoryview, name: str, most: int) -> bytes:
    found = list[pa.Buffer]()
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), name) as stream:
        while (block := stream.read_buffer(_BLOCK_BYTES)).size:  # `read` keeps its memory for ever where it fails
            found.append(block)
            most -= block.size
            if most < 0:
                raise _TooMuchError
    return b"".join(found)


def _of_snappy(data: bytes | memoryview, most: int) -> bytes:
    if data[: len(_XERIAL)] != _XERIAL:
        return _of_block(data, most)
    blocks, at = list[bytes](), _XERIAL_HEAD
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        blocks.append(_of_block(data[at + 4 : at + 4 + size], most))
        most -= len(blocks[-1])
        at += 4 + size
    return b"".join(blocks)


def _of_block(data: bytes | memoryview, most: int) -> bytes:
    """Decompress a block of snappy, which begins with its size: a number of seven bits a byte."""
    size = shift = 0
    for byte in data:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > most:
        raise _TooMuchError
    found: bytes = pa.Codec("snappy").decompress(pa.py_buffer(data), size, asbytes=True)
    return found
