"""Record batches in columns: their heads, their decompressed records, and the headers of records.

A topic of small transactions has as many heads of batches as it has records.

    batches = batches_in(records, topic="connect-offsets", partition=3).visible(aborted)

The records of many small batches are decompressed at once. Headers of records are as they lie in a record batch, or as
the member of a record file; null for none.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eosctl.core.records import Headers, bytes_text, decode_headers, header_name
from eosctl.engine.backups.file import json_texts
from eosctl.engine.columns import cut_columns, cuts_of, one_array
from eosctl.errors import ProtocolError
from eosctl.wire.log.batches import BATCH_HEAD, CONTROL, TRANSACTIONAL, batch_places, end_of_transaction, no_batch
from eosctl.wire.primitives import read_varint, write_varint

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
_MEMBER = '{"name":%s,"value":%s}'
_ROWS_AT_ONCE = 1 << 14
_COUNTS, _NUMBER_BYTES = range(1, 9), 5
"""The numbers of headers that are converted for many records at once, and the most bytes of a number."""
_MARK = os.urandom(16)
"""Bytes that no batch has, as only this process knows them."""
Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
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


def headers_text(headers: Headers) -> str | None:
    """Return headers as the member of a record file; None for none."""
    members = [_MEMBER % (bytes_text(header_name(name)), bytes_text(value)) for name, value in headers]
    return f"[{','.join(members)}]" if members else None


def headers_of(text: str | None) -> Headers:
    """Parse the member of a record file, the inverse of `headers_text`."""
    return decode_headers(json.loads(text)) if text else ()


def headers_texts(column: Any) -> pa.Array:
    """Convert a column of `raw_headers` to one of `headers_text`; raises ProtocolError if they are no headers."""
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.string())
    raws = one_array(column)
    some = (raws[first : first + _ROWS_AT_ONCE] for first in range(0, len(raws), _ROWS_AT_ONCE))
    return pa.concat_arrays(map(_headers_texts, some))


def _headers_texts(raws: pa.Array) -> pa.Array:
    """Convert some rows: all that have as many headers as the first at once, the others one by one."""
    begins, lengths, data = cuts_of(raws)
    is_usual = raws.is_valid().to_numpy(zero_copy_only=False) & (lengths > 0)
    texts = None
    if is_usual.any():
        number = data[begins[is_usual]]
        is_usual[is_usual] = number == number[0]
        texts = _texts_of(data, begins[is_usual], (begins + lengths)[is_usual], count=int(number[0]) / 2)
    if texts is None:
        is_usual[:] = False
    elif is_usual.all():
        return texts
    odd = pa.array(~is_usual)
    found = pa.array((raw and headers_text(headers_in(raw)) for raw in raws.filter(odd).to_pylist()), pa.string())
    if texts is None:
        return found
    usual = texts.take(pa.array(np.cumsum(is_usual) - 1, mask=~is_usual))
    return pc.replace_with_mask(usual, odd, found)


def _texts_of(data: Bytes, begins: Integers, ends: Integers, *, count: float) -> pa.Array | None:
    """Return the text of `count` headers a row, which lie in `data` from `begins` to `ends`.

    None if they are many, or not sound in one of the rows.
    """
    if count not in _COUNTS:
        return None
    at, cuts = begins + 1, list[tuple[Integers, Integers, Integers]]()
    try:
        for _part in range(2 * int(count)):  # a name, a value, and so on
            size, first = numbers_at(data, at)
            if (first - at > _NUMBER_BYTES).any():
                return None
            at = first + np.maximum(size, 0)
            cuts.append((first, at, size))
        if not np.array_equal(at, ends):
            return None
        parts = list(cut_columns(cuts, data))
    except (IndexError, ValueError):
        return None
    pieces: list[str | pa.Array] = []
    for name, value in zip(parts[::2], parts[1::2], strict=True):
        texts = *json_texts(pc.fill_null(name, b"")), ',"value":', *json_texts(value)
        pieces += [',{"name":' if pieces else '[{"name":', *texts, "}"]
    return pc.binary_join_element_wise(*pieces, "]", "")


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


HEAD = np.dtype([(name, f">{code}") for name, code in BATCH_HEAD.items()])


def numbers_at(data: Bytes, at: Integers) -> tuple[Integers, Integers]:
    """Read the zigzag number that begins at each place; return the numbers and the places after them."""
    byte = data[at]
    found = (byte & 0x7F).astype(np.int64)
    behind = at + 1
    longer, shift = np.flatnonzero(byte & 0x80), 7
    while len(longer):
        byte = data[behind[longer]]
        found[longer] |= (byte & 0x7F).astype(np.int64) << shift
        behind[longer] += 1
        longer, shift = longer[byte >= 0x80], shift + 7
        if shift > 63 and len(longer):
            raise ValueError("a number has more than ten bytes")
    return (found >> 1 & _POSITIVE) ^ -(found & 1), behind


_POSITIVE = (1 << 63) - 1


class Batches(Struct, frozen=True):
    """Batches in `data`: where each begins and ends, and their `heads`, as in HEAD."""

    data: memoryview
    begins: Integers
    ends: Integers
    heads: npt.NDArray[np.void]

    def bases(self) -> Integers:
        """Return the first offset of each batch."""
        return self.heads["base_offset"].astype(np.int64)

    def lasts(self) -> Integers:
        """Return the last offset of each batch."""
        lasts: Integers = self.bases() + self.heads["last_offset_delta"]
        return lasts

    def some(self, rows: slice | npt.NDArray[np.bool_]) -> Batches:
        """Return some of the batches."""
        return Batches(self.data, self.begins[rows], self.ends[rows], self.heads[rows])

    def visible(self, aborted: Iterable[tuple[int, int]]) -> Batches:
        """Return the batches with records that a consumer sees.

        `aborted` are producer ids and first offsets of aborted transactions. Decided as Kafka's consumer does
        (`CompletedFetch`, Kafka 4.3).
        """
        is_seen = (self.heads["attributes"] & CONTROL == 0) & (self.heads["records"] > 0)
        to_come = sorted((offset, producer_id) for producer_id, offset in aborted)
        if to_come:
            is_seen[self._aborted(to_come)] = False
        return self if is_seen.all() else self.some(is_seen)

    def _aborted(self, to_come: list[tuple[int, int]]) -> list[int]:
        """Return the rows of the batches in aborted transactions, given by first offset and producer id."""
        found, aborted = list[int](), set[int]()
        columns = (self.lasts(), self.heads["producer_id"], self.heads["attributes"])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for row, (last, producer_id, attributes) in enumerate(rows):
            while to_come and to_come[0][0] <= last:
                aborted.add(to_come.pop(0)[1])
            if producer_id not in aborted:
                continue
            if attributes & CONTROL:
                if self._is_abort(row):
                    aborted.remove(producer_id)
            elif attributes & TRANSACTIONAL:
                found.append(row)
        return found

    def _is_abort(self, row: int) -> bool:
        record = self.data[int(self.begins[row]) + HEAD.itemsize : int(self.ends[row])]
        return len(record) > 0 and end_of_transaction(record)[0] is False


def batches_in(records: memoryview, *, topic: str, partition: int) -> Batches:
    """Return the whole batches that were fetched from a partition; raises ProtocolError or OldFormatError."""
    places = np.array(batch_places(records, topic=topic, partition=partition), np.int64)
    begins = places[:-1]
    if not len(begins):
        return Batches(records, begins, begins, np.empty(0, HEAD))
    heads = np.ndarray(len(records) - HEAD.itemsize + 1, HEAD, records, strides=(1,))[begins]
    impossible = (heads["base_offset"] | heads["last_offset_delta"] | heads["records"]) < 0
    if impossible.any():
        raise no_batch(topic, partition, int(heads["base_offset"][impossible][0]))
    return Batches(records, begins, places[1:], heads)
