"""Decoding of record batches, as brokers keep them, into columns: all records of an answer at once.

    decoder = BatchDecoder()
    yield from decoder.add(number, batches, first=100, stop=200)    # batches of the partition of that number
    yield from decoder.pieces()

The length of a record says where the next one begins, so that records are found one after the other, but from many
places at once: the beginnings of batches, and other places where a record seems to begin. Such a guess is right if the
records before it end exactly there. The fields of all records are read by the same few steps, with no object for each.
Layout: `DefaultRecord` of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from eosctl.engine.columns import VALUES, cut_columns, one_batch
from eosctl.engine.reading.heads import HEAD, Batches, Integers, decompressed, numbers_at
from eosctl.errors import ProtocolError
from eosctl.wire.log.batches import COMPRESSION, LOG_APPEND_TIME

PIECE = pa.schema(
    [
        ("place", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key", VALUES),
        ("value", VALUES),
        ("headers", VALUES),
    ]
)
"""Records of several partitions, each with the number of its own; those of a partition in the order of its log.
`headers` are as they lie in the batch (`heads.headers_in`), null for none: they go where their record goes."""

_BYTES_AT_ONCE = 1 << 26
_COMPRESSED_AT_ONCE = 1 << 18
_MOST_BYTES = (1 << 31) - 1
"""The most bytes that are read together."""
_ROWS_AT_ONCE = 1 << 14
"""Records read together: intermediate results stay in the processor's cache."""
_FEW = 24
"""Places below which a loop over records is faster than a step of numpy for each of them."""
_WALKS, _ROWS_EACH = 512, 16
"""Places from which records are walked through at once, unless each would have fewer records than this."""
_LARGE = 256
"""Average bytes of a record above which guesses don't pay: each examines the bytes of two records."""
_IN_A_ROW, _SHORTEST = 3, 6
"""Records that make a guess, and the length of the shortest one: each of its fields is a byte."""
_PADDING = bytes(16)
"""Behind the data, so that a number that is cut off ends here and not outside."""


class Piece(Struct, frozen=True):
    """Records as PIECE, and their producer ids, -1 for none or unknown."""

    columns: pa.RecordBatch
    producers: Integers


class _Held(Struct, frozen=True):
    """Batches of the partition of a `number`, with the wanted offsets.

    `begins` and `ends` are where the records of each batch are in the bytes that are read together.
    """

    number: int
    heads: npt.NDArray[np.void]
    begins: Integers
    ends: Integers
    first: int
    stop: int


class BatchDecoder:
    """A decoder of batches that are read together; the views of their data must hold until then."""

    def __init__(self) -> None:
        self._held: list[_Held] = []
        self._data: list[bytes | memoryview] = []
        self._size = 0

    def add(self, number: int, batches: Batches, *, first: int, stop: int) -> Iterator[Piece]:
        """Add batches, and yield their records from offset `first` to before `stop` once there are many.

        Raises ProtocolError for data that can't be decompressed, and what `pieces` raises.
        """
        for heads, begins, ends, data in _plain_parts(batches):
            self._held.append(_Held(number, heads, begins + self._size, ends + self._size, first, stop))
            self._data += data
            self._size += int(ends[-1])
            if self._size >= _BYTES_AT_ONCE:
                yield from self.pieces()

    def pieces(self) -> Iterator[Piece]:
        """Yield the wanted records of the batches added so far, if any, and let go of the batches.

        There may be none: for a range that ends in a hole, or has only aborted records, brokers send what lies behind
        it. Raises ProtocolError for data that is no records.
        """
        held, data = self._held, b"".join([*self._data, _PADDING])
        self._held, self._data, self._size = [], [], 0
        if len(data) > _MOST_BYTES:
            raise ProtocolError(f"a record batch has {len(data)} bytes")
        if not held:
            return
        try:
            piece = _Reading(held, data).piece()
        except (IndexError, ValueError, OverflowError, pa.ArrowInvalid) as exc:
            raise ProtocolError("a record batch holds no records that can be read") from exc
        if len(piece.columns):
            yield piece


class _Reading:
    """The records of some batches, which lie in `data` one after the other."""

    def __init__(self, held: Sequence[_Held], data: bytes) -> None:
        self._raw, self._data = data, np.frombuffer(data, np.uint8)
        heads, sizes = np.concatenate([each.heads for each in held]), [len(each.heads) for each in held]
        self._begins = np.concatenate([each.begins for each in held])
        self._ends = np.concatenate([each.ends for each in held])
        self._numbers = np.repeat(np.array([each.number for each in held], np.int32), sizes)
        bases, self._counts = heads["base_offset"].astype(np.int64), heads["records"].astype(np.int64)
        self._bases, self._producers = bases, heads["producer_id"].astype(np.int64)
        self._base_ms, self._stamp_ms = (heads[f"{name}_timestamp_ms"].astype(np.int64) for name in ("base", "max"))
        self._is_stamped = heads["attributes"] & LOG_APPEND_TIME != 0
        self._first = np.repeat([each.first for each in held], sizes)
        self._stop = np.repeat([each.stop for each in held], sizes)
        self._is_cut = (bases < self._first) | (self._stop <= bases + heads["last_offset_delta"])

    def piece(self) -> Piece:
        starts = self._starts()
        of_rows = np.repeat(np.arange(len(self._counts)), self._counts)
        some = range(0, len(starts), _ROWS_AT_ONCE)
        parts = [self._rows(starts[first : first + _ROWS_AT_ONCE], of_rows[first:][:_ROWS_AT_ONCE]) for first in some]
        columns = one_batch([part.columns for part in parts])
        return Piece(columns, np.concatenate([part.producers for part in parts]))

    def _starts(self) -> Integers:
        """Return where each record begins. Raises ProtocolError unless the records of each batch fill it."""
        there = self._begins < self._ends
        begins, ends = self._begins[there], self._ends[there]
        places = np.sort(np.append(begins, self._guesses(begins, ends)))  # not union1d, which is slow; all are distinct
        behind = ends[np.searchsorted(begins, places, side="right") - 1]
        try:
            starts = self._walked(places, np.minimum(behind, np.append(places[1:], behind[-1:])))
        except (ProtocolError, ValueError):  # a guess was wrong, or there is something wrong with the records
            starts = self._walked(begins, ends)
        edges = np.append(np.searchsorted(starts, self._begins), len(starts))
        if not np.array_equal(np.diff(edges), self._counts):
            raise ProtocolError("a record batch has more or fewer records than it says")
        return starts

    def _guesses(self, begins: Integers, ends: Integers) -> Integers:
        """Guess where some hundred records begin: where several in a row seem to begin.

        The length of a record is followed by its attributes, of which none is used: a byte that is 0.
        """
        mean = int((ends - begins).sum() // self._counts.sum()) + 1
        apart = max(int((ends - begins).sum()) // _WALKS, _ROWS_EACH * mean)
        long = ends - begins > 2 * apart
        if mean > _LARGE or not long.any():
            return begins[:0]
        begins, ends = begins[long], ends[long]
        around = [np.arange(begin + apart, end - apart, apart) for begin, end in zip(begins, ends, strict=True)]
        firsts = np.concatenate(around)
        data, found = self._data, (firsts[:, np.newaxis] + np.arange(2 * mean)).ravel()
        groups = np.repeat(np.arange(len(firsts)), 2 * mean)
        last = np.repeat(np.repeat(ends, [len(each) for each in around]), 2 * mean)
        likely = np.flatnonzero((data[found + 1] == 0) | (data[found + 2] == 0) & (data[found] >= 0x80))
        rows = np.stack([found, found, groups, last])[:, likely]
        for _record in range(_IN_A_ROW):
            at = rows[0]
            is_short = np.minimum(np.minimum(data[at], data[at + 1]), data[at + 2]) < 0x80  # of three bytes at most
            rows = rows[:, is_short]
            length, behind = numbers_at(data, rows[0])
            rows[0] = behind + length
            rows = rows[:, (length >= _SHORTEST) & (data[behind] == 0) & (rows[0] < rows[3])]
        _groups, chosen = np.unique(rows[2], return_index=True)
        begun: Integers = rows[1, chosen]
        return begun

    def _walked(self, at: Integers, ends: Integers) -> Integers:
        """Return where records begin, walking from several places at once, each to its end; raises ProtocolError."""
        found = list[Integers]()
        while len(at) >= _FEW:
            found.append(at)
            length, behind = numbers_at(self._data, at)
            at = behind + length
            if length.min() < 0 or (at > ends).any():
                raise _not_filled()
            going = at < ends
            if not going.all():
                at, ends = at[going], ends[going]
        found += (self._one_by_one(int(first), int(end)) for first, end in zip(at, ends, strict=True))
        return np.sort(np.concatenate(found))

    def _one_by_one(self, at: int, end: int) -> Integers:
        """Return where records begin, walking from one place to its end; raises ProtocolError."""
        raw, found = self._raw, list[int]()
        append = found.append
        while at < end:
            append(at)
            byte, more = raw[at], raw[at + 1]
            if byte < 0x80:
                at += (byte >> 1) + 1
            elif more < 0x80:
                at += ((byte & 0x7F | more << 7) >> 1) + 2
            else:
                [length], [behind] = numbers_at(self._data, np.array([at]))
                if length < 0:
                    raise _not_filled()
                at = int(behind + length)
        if at != end:
            raise _not_filled()
        return np.array(found, np.int64)

    def _rows(self, starts: Integers, of_rows: Integers) -> Piece:
        """Read the records that begin at `starts`, each with the row of its batch."""
        data, numbers, producers = self._data, self._numbers[of_rows], self._producers[of_rows]
        length, at = numbers_at(data, starts)
        end = at + length
        time_ms, at = numbers_at(data, at + 1)  # behind the attributes, of which none is used
        offset, at = numbers_at(data, at)
        offset += self._bases[of_rows]
        key_size, key = numbers_at(data, at)
        value_size, value = numbers_at(data, key_end := key + np.maximum(key_size, 0))
        count, behind = numbers_at(data, value_end := value + np.maximum(value_size, 0))
        cuts = [(key, key_end, key_size), (value, value_end, value_size)]
        if count.any():
            cuts.append((value_end, end, np.sign(count) - 1))
            behind = np.where(count > 0, end, behind)  # what is there is looked at where it is wanted
        if not np.array_equal(behind, end):
            raise ValueError("a record is longer or shorter than what it has")
        keys, values, *rest = cut_columns(cuts, self._raw)
        [headers] = rest or [pa.nulls(len(starts), VALUES)]
        times = pa.array(self._times(of_rows, time_ms))
        columns = pa.RecordBatch.from_arrays(
            [pa.array(numbers), pa.array(offset), times, keys, values, headers], schema=PIECE
        )
        if self._is_cut[of_rows[0] : of_rows[-1] + 1].any():
            wanted = (self._first[of_rows] <= offset) & (offset < self._stop[of_rows])
            columns, producers = columns.filter(pa.array(wanted)), producers[wanted]
        return Piece(columns, producers)

    def _times(self, of_rows: Integers, deltas: Integers) -> Integers:
        """Return timestamps: the batch's base plus delta, or its last one if the broker has set it (LogAppendTime)."""
        times: Integers = self._base_ms[of_rows] + deltas
        return np.where(self._is_stamped[of_rows], self._stamp_ms[of_rows], times) if self._is_stamped.any() else times


def _not_filled() -> ProtocolError:
    return ProtocolError("a record batch is longer or shorter than its records")


def _plain_parts(
    batches: Batches,
) -> Iterator[tuple[npt.NDArray[np.void], Integers, Integers, Sequence[bytes | memoryview]]]:
    """Yield heads of batches, where their records begin and end in decompressed bytes, and these bytes.

    All come together, unless much was compressed. Raises ProtocolError.
    """
    begins, ends, codecs = batches.begins + HEAD.itemsize, batches.ends, batches.heads["attributes"] & COMPRESSION
    if len(begins) and not codecs.any():
        low, high = int(begins[0]), int(ends[-1])
        yield batches.heads, begins - low, ends - low, [batches.data[low:high]]
        return
    portions = np.cumsum(ends - begins) // _COMPRESSED_AT_ONCE
    rows = zip(portions.tolist(), codecs.tolist(), begins.tolist(), ends.tolist(), strict=True)
    plain, size, first = list[bytes | memoryview](), 0, 0
    for _portion, some in groupby(rows, key=itemgetter(0)):
        for more in decompressed([(batches.data[begin:end], codec) for _portion, codec, begin, end in some]):
            plain += more
            size, last = size + sum(map(len, more)), first + len(plain)
            if size >= _BYTES_AT_ONCE or last == len(codecs):
                edges = np.cumsum([0, *map(len, plain)])
                yield batches.heads[first:last], edges[:-1], edges[1:], plain
                plain, size, first = [], 0, last
