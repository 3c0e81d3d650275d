"""Whatever lies in a log, and whichever range is read: columns have what a reader of single records sees."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.engine.reading import batches
from eosctl.engine.reading import heads as compression
from eosctl.engine.reading.batches import BatchDecoder, Piece
from eosctl.engine.reading.heads import HEAD, batches_in, headers_in
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.errors import ProtocolError
from eosctl.kafka.batches.records import _Records
from eosctl.kafka.batches.source import PartitionReading
from eosctl.kafka.topics.stream import Address, Leader
from eosctl.wire.log.fetch_messages import AbortedTransaction, PartitionData
from eosctl.wire.primitives import NO_ID
from tests.engine.record_batches import CODECS, Log, Row, Written, any_log, batch_of, marker_of

SEEDS = st.integers(0, 1 << 32)
SMALL: dict[str, int] = {
    "_BYTES_AT_ONCE": 300, "_COMPRESSED_AT_ONCE": 60, "_ROWS_AT_ONCE": 3, "_WALKS": 6, "_ROWS_EACH": 2, "_FEW": 2,
}  # fmt: skip
NOTHING: list[Any] = []


def decoded(chance: random.Random, *, most: int) -> tuple[list[list[Row]], list[list[Row]]]:
    """What is read of some partitions, each of which has a range, and what there is."""
    decoder, pieces, wanted = BatchDecoder(), list[Piece](), list[list[Row]]()
    for number in range(chance.randrange(1, 5)):
        log: Log = any_log(chance, most=most)
        first = log.rows[0][0] if log.rows else 0
        begin = chance.choice([0, first, chance.randrange(first, max(first, log.end) + 1)])
        stop = chance.choice([log.end, 1 << 60, chance.randrange(begin, max(begin, log.end) + 1)])
        data = log.data + (log.data[: chance.randrange(60)] if chance.random() < 0.3 else b"")  # one that is cut off
        found = batches_in(memoryview(data), topic="t", partition=number).visible(log.aborted)
        pieces += decoder.add(number, found, first=begin, stop=stop)
        wanted.append([row for row in log.rows if begin <= row[0] < stop])
    pieces += decoder.pieces()
    assert all(len(piece.columns) for piece in pieces)
    rows = [list[Row]() for _wanted in wanted]
    for piece in pieces:
        columns = (column.to_pylist() for column in piece.columns.columns)
        for place, *facts, raw, producer in zip(*columns, piece.producers.tolist(), strict=True):
            rows[place].append((*facts, () if raw is None else headers_in(raw), producer))
    return rows, wanted


@given(SEEDS)
def test_any_log(seed: int) -> None:
    found, wanted = decoded(random.Random(seed), most=900)  # noqa: S311
    assert found == wanted


@given(SEEDS)
def test_any_log_read_in_many_parts(seed: int) -> None:
    """As large answers are."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(batches, name, value)
        patch.setattr(compression, "TOGETHER_BYTES", 1000)
        found, wanted = decoded(random.Random(seed), most=40)  # noqa: S311
    assert found == wanted


def read(begin: int, end: int, data: bytes, *, mark: int, aborted: tuple[AbortedTransaction, ...] = ()) -> list[bytes]:
    """The values in a range, of one answer."""
    taker = _Records([OffsetRange("t", 0, begin, end)])
    reading = PartitionReading(("t", 0), begin, end, Leader(Address("b", 1), 0, NO_ID))
    part = PartitionData(
        0, high_watermark=mark, last_stable_offset=mark, records=memoryview(data), aborted_transactions=aborted
    )
    taken = taker.take(reading, part)
    found = [value for piece in taker.give([(reading, taken)]) for value in piece.columns["value"].to_pylist()]
    assert taker.positions["t", 0] >= end or reading.position == mark
    return found


def one(base: int, value: bytes, **more: Any) -> bytes:
    return batch_of(base, [Written(0, 0, b"k", value)], **more)


def test_a_range_may_end_in_a_hole() -> None:
    """It was "no records that can be read", where compaction had taken what was before the end of the range."""
    assert read(95, 100, one(120, b"v"), mark=121) == NOTHING


def test_a_range_may_begin_behind_all_that_is_left_of_a_batch() -> None:
    left = [Written(1, 0, b"k", b"v"), Written(16, 0, b"k", b"w")]
    assert read(105, 200, batch_of(90, left[:1], last=20), mark=111) == NOTHING
    assert read(105, 200, batch_of(90, left, last=20), mark=111) == [b"w"]


def test_a_range_may_have_aborted_records_alone() -> None:
    """While others go on behind its end, as in a busy topic that is read back."""
    mine = one(0, b"v", producer=9, attributes=16) + marker_of(1, 9, commits=False)
    theirs = one(2, b"w", producer=8, attributes=16) + marker_of(3, 8, commits=True)
    aborted = (AbortedTransaction(9, 0),)
    assert read(0, 2, mine + theirs, mark=4, aborted=aborted) == NOTHING
    assert read(0, 4, mine + theirs, mark=4, aborted=aborted) == [b"w"]


def test_a_large_answer_may_have_parts_that_nobody_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_BYTES_AT_ONCE", 1 << 16)
    data = b"".join(one(number, b"%d" % number + bytes(1 << 14), codec="zstd") for number in range(40))
    assert [value[:2] for value in read(0, 2, data, mark=40)] == [b"0\0", b"1\0"]
    assert len(read(0, 40, data, mark=40)) == 40


@pytest.mark.parametrize("codec", [name for name in CODECS if name != "none"])
def test_no_more_is_decompressed_than_a_batch_may_have(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of 16 kB became gigabytes before anybody looked how much it was."""
    monkeypatch.setattr(compression, "MOST_BYTES", 1 << 17)
    monkeypatch.setattr(compression, "TOGETHER_BYTES", 1 << 15)
    bomb = one(1, bytes(1 << 18), codec=codec)
    for data in (bomb, one(0, b"v") + bomb + one(2, b"w", codec=codec)):
        with pytest.raises(ProtocolError, match="131072 bytes"):
            read(0, 3, data, mark=3)
    assert len(read(0, 1, one(0, bytes(1 << 16), codec=codec), mark=1)) == 1


@pytest.mark.parametrize("codec", ["gzip", "snappy-java", "lz4", "zstd"])
def test_many_batches_are_not_all_decompressed_at_once(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may be large: then fewer of them are read together, and all are read."""
    monkeypatch.setattr(compression, "TOGETHER_BYTES", 1 << 16)
    heads, bodies = list[int](), list[int]()
    given = [(memoryview(one(n, bytes(1 << 13), codec=codec))[HEAD.itemsize :], CODECS[codec][0]) for n in range(40)]
    for some in compression.decompressed(given):
        heads.append(len(some))
        bodies.append(sum(map(len, some)))
    assert (sum(heads), max(bodies) <= 1 << 16, len(bodies) >= 5) == (40, True, True)


def test_a_record_that_is_longer_than_its_members_is_refused() -> None:
    record = bytearray(batch_of(0, [Written(0, 0, b"k", b"value")]))
    record[-1:] = b"\0\0"  # a byte behind the number of its headers
    record[HEAD.itemsize] += 2
    record[11] += 1
    with pytest.raises(ProtocolError):
        read(0, 1, bytes(record), mark=1)


@pytest.mark.parametrize("raw", [b"", b"\x02", b"\x02\x02h", b"\x02\x02h\x04v", b"\x02\x02h\x02vv"], ids=repr)
def test_what_are_no_headers(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        headers_in(raw)
