"""Record batches as columns, against batches that another client has made."""

from __future__ import annotations

import random
import resource
import struct
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.records import Headers
from eosctl.engine.reading.batches import BatchDecoder, Piece
from eosctl.engine.reading.heads import HEAD, batches_in, decompressed, headers_in
from eosctl.errors import ProtocolError

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources, in kafka-python 3.0.12
    from kafka.record.default_records import DefaultRecordBatchBuilder

T = 1_700_000_000_000
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
MUTATIONS = 3000


class Line(NamedTuple):
    """A record as it is written; `offset` is counted from the batch's own."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def batch_of(lines: Sequence[Line], *, base: int = 0, codec: int = 0) -> bytes:
    """By kafka-python, which compresses with gzip alone where nothing else is installed."""
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 24)
    for line in lines:
        assert builder.append(*line[:4], list(line.headers)) is not None
    return struct.pack(">q", base) + bytes(builder.build())[8:]


def read(*data: bytes, first: int = 0, stop: int = 1 << 40) -> Piece:
    """Each is what was fetched of a partition."""
    decoder = BatchDecoder()
    for number, each in enumerate(data):
        batches = batches_in(memoryview(each), topic="t", partition=number).visible(())
        assert not list(decoder.add(number, batches, first=first, stop=stop))
    [piece] = decoder.pieces()
    return piece


def rows(piece: Piece) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in piece.columns.columns[:-1]), strict=True))


def headers_of(piece: Piece) -> list[Headers]:
    return [() if raw is None else headers_in(raw) for raw in piece.columns["headers"].to_pylist()]


Drawn = tuple[int, int, bytes | None, bytes | None, Headers]
_LINES: st.SearchStrategy[list[Drawn]] = st.lists(
    st.tuples(
        st.integers(1, 300),
        st.integers(-5000, 5000),
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=12,
)


@given(st.lists(_LINES, min_size=1, max_size=4), st.integers(0, 1 << 33))
def test_records_of_any_batches(batches: list[list[Drawn]], base: int) -> None:
    data, expected, headers = [], [], list[Headers]()
    for number, lines in enumerate(batches):
        offset, written = -1, []
        for gap, delta_ms, key, value, some in lines:
            offset += gap
            written.append(Line(offset, T + delta_ms, key, value, some))
            expected.append((number, base + offset, T + delta_ms, key, value))
            headers.append(some)
        data.append(batch_of(written, base=base))
    piece = read(*data)
    assert (rows(piece), headers_of(piece)) == (expected, headers)


def marker_of(base: int) -> bytes:
    """A control batch, whose record is none of a source's."""
    data = bytearray(batch_of([Line(0, T, bytes([0, 0, 0, 1]), bytes(6))], base=base))
    data[22] |= 32
    return bytes(data)


@pytest.mark.parametrize("codec", [0, GZIP])
@pytest.mark.parametrize("sizes", [[1] * 200, [1, 2, 3] * 20, [1] * 5, [400, 1, 1, 400], [5, 900]], ids=str)
def test_small_transactions_with_their_markers(sizes: Sequence[int], codec: int) -> None:
    """As tasks write them: a batch in each partition, and a marker behind; a fetch cuts off what is too much."""
    data, expected, base = b"", [], 100
    for number, size in enumerate(sizes):
        lines = [Line(at, T + at, b"k%d" % at, b"v" * (7 * at % 50)) for at in range(size)]
        whole, more = len(data), batch_of(lines, base=base, codec=codec if number % 3 else 0)
        data += more + marker_of(base + size)
        expected += [(0, base + at, *line[1:4]) for at, line in enumerate(lines)]
        base += size + 1
    assert rows(read(data)) == expected
    assert rows(read(data, data)) == [*expected, *((1, *row[1:]) for row in expected)]
    assert rows(read(data[: whole + len(more) - 1])) == expected[: -sizes[-1]]
    assert rows(read(data, first=101, stop=base - 3)) == [row for row in expected if 101 <= row[1] < base - 3]


_INNER = batch_of([Line(n, T, b"key", b"value") for n in range(300)])[HEAD.itemsize :]


@pytest.mark.parametrize("batches", [1, 3, 40])
@pytest.mark.parametrize(
    "values",
    [
        [b"", b"v" * 10, b"v" * 400],
        [b"", b"v" * 10, b"v" * 9000],
        [_INNER[:400], _INNER[3:200], b"1"],
        [b"\xff" * 150, bytes(100)],
        ["é漢".encode() * 30],
    ],
    ids=["of many lengths", "large ones", "that look like records", "binary", "text"],
)
def test_records_are_found_in_few_large_batches_and_in_many(batches: int, values: Sequence[bytes]) -> None:
    """They are gone through from several places at once, some of which are guessed, and may be wrong."""
    chosen = random.Random(1).choice  # noqa: S311
    lines = [
        [Line(n, T + n, b"k" * chosen([1, 50, 100]), chosen(values)) for n in range(900 // batches + each)]
        for each in range(batches)
    ]
    piece = read(*(batch_of(some) for some in lines))
    assert rows(piece) == [(number, *line[:4]) for number, some in enumerate(lines) for line in some]


def _with_codec(plain: bytes, codec: int, body: bytes) -> bytes:
    """A batch with other compression: kafka-python needs more packages for these."""
    head = bytearray(plain[: HEAD.itemsize])
    struct.pack_into(">i", head, 8, HEAD.itemsize - 12 + len(body))
    head[22] |= codec
    return bytes(head) + body


def _xerial(body: bytes) -> bytes:
    """As snappy-java frames its blocks."""
    blocks = [pa.Codec("snappy").compress(body[at : at + 100], asbytes=True) for at in range(0, len(body), 100)]
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)


LINES = [Line(n, T, b"key-%d" % n, b"value " * 20) for n in range(50)]


@pytest.mark.parametrize(
    ("codec", "compress"),
    [
        (SNAPPY, lambda body: pa.Codec("snappy").compress(body, asbytes=True)),
        (SNAPPY, _xerial),
        (LZ4, lambda body: pa.Codec("lz4").compress(body, asbytes=True)),
        (ZSTD, lambda body: pa.Codec("zstd").compress(body, asbytes=True)),
    ],
)
def test_compressed_batches(codec: int, compress: Callable[[bytes], bytes]) -> None:
    plain = batch_of(LINES)
    data = _with_codec(plain, codec, compress(plain[HEAD.itemsize :]))
    assert len(data) < len(plain)
    assert rows(read(data, plain)) == [(number, *line[:4]) for number in range(2) for line in LINES]
    with pytest.raises(ProtocolError, match="can't be decompressed"):
        read(_with_codec(plain, codec, b"\x1f" + b"\xff" * 30))


_CODECS = {"gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}


@pytest.mark.parametrize("name", _CODECS)
def test_many_small_compressed_batches(name: str) -> None:
    """They are decompressed together, whoever writes in between; a damaged one is found nevertheless."""
    written = [Line(n, T, b"key-%d" % n, b"v" * (n % 90)) for n in range(500)]
    plain = [batch_of([Line(0, *line[1:])], base=line.offset) for line in written]

    def small(number: int, name: str) -> bytes:
        body = plain[number][HEAD.itemsize :]
        return _with_codec(plain[number], _CODECS[name], pa.Codec(name).compress(body, asbytes=True))

    alike = [small(n, name) for n in range(500)]
    mixed = [[alike[n], plain[n], small(n, "zstd"), small(n, "gzip")][n % 4] for n in range(500)]
    for data in (alike, mixed, alike[:1]):
        assert rows(read(b"".join(data))) == [(0, *line[:4]) for line in written[: len(data)]]
    body = alike[7][HEAD.itemsize :]
    for wrong in (body[:-2], b"", body + body, b"\xff" * 40):
        with pytest.raises(ProtocolError):
            read(b"".join([*alike[:7], _with_codec(plain[7], _CODECS[name], wrong), *alike[8:]]))


def test_what_is_compressed_with_gzip_and_with_what_nobody_knows() -> None:
    assert rows(read(batch_of(LINES, codec=GZIP))) == [(0, *line[:4]) for line in LINES]
    with pytest.raises(ProtocolError, match="unknown compression 6"):
        read(_with_codec(batch_of(LINES), 6, b""))


def test_times_of_the_broker() -> None:
    """`message.timestamp.type=LogAppendTime`: all records of a batch have the batch's last time."""
    stamped = bytearray(batch_of([Line(0, T, b"a", b""), Line(1, T + 5, b"b", b"")]))
    stamped[22] |= 8
    struct.pack_into(">q", stamped, 35, T + 99)
    piece = read(bytes(stamped), batch_of([Line(0, T, b"c", b"")]))
    assert piece.columns["timestamp_ms"].to_pylist() == [T + 99, T + 99, T]


def test_a_range_that_begins_and_ends_within_a_batch() -> None:
    lines = [Line(n, T, b"%d" % n, None, (("h", b"%d" % n),)) for n in range(10)]
    piece = read(batch_of(lines, base=100), first=103, stop=106)
    assert piece.columns["offset"].to_pylist() == [103, 104, 105]
    assert headers_of(piece) == [(("h", b"%d" % number),) for number in (3, 4, 5)]


def test_nothing_is_no_piece() -> None:
    assert list(BatchDecoder().pieces()) == []


def test_damaged_batches_are_protocol_errors_or_other_records() -> None:
    """Nothing else is raised, and no memory is read that is not the batches'."""
    chance, plain, refused = random.Random(7), batch_of(LINES), 0  # noqa: S311
    for _number in range(MUTATIONS):
        data = bytearray(plain)
        for _byte in range(chance.choice([1, 1, 3])):
            data[chance.randrange(HEAD.itemsize, len(data))] = chance.randrange(256)
        try:
            assert len(read(bytes(data)).columns) == len(LINES)
        except ProtocolError:
            refused += 1
    assert 0 < refused < MUTATIONS


def test_a_batch_that_lacks_a_record_is_refused() -> None:
    fewer = bytearray(batch_of(LINES))
    struct.pack_into(">i", fewer, 57, len(LINES) - 1)
    with pytest.raises(ProtocolError):
        read(bytes(fewer))


def test_what_cannot_be_decompressed_leaves_nothing_in_memory() -> None:
    """A MiB used to stay for each: the exporter reads a damaged batch again at every look."""
    cut = pa.Codec("gzip").compress(b"x" * 100, asbytes=True)[:-9]

    def read_them() -> int:
        for _each in range(300):
            with pytest.raises(ProtocolError):
                list(decompressed([(memoryview(cut), 1)]))
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() >> 20

    before = read_them()
    assert read_them() - before < 100
