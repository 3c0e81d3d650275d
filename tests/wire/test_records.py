"""Records one by one, out of batches that kafka-python's builder made, and of any log."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.records import Headers, Record
from eosctl.errors import ProtocolError
from eosctl.wire.log.batches import OldFormatError
from eosctl.wire.log.records import CompressedError, visible_records
from tests.engine.record_batches import any_log

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources, in kafka-python 3.0.12
    from kafka.record.default_records import DefaultRecordBatchBuilder
    from kafka.record.legacy_records import LegacyRecordBatchBuilder

HEADERS: Headers = (("plain", b"1"), ("none", None), ("ü", b""))
ROWS: list[tuple[int, bytes | None, bytes | None, Headers]] = [
    (1_700_000_000_000, b"k", b"v", ()),
    (1_600_000_000_000, None, b"x" * 300, HEADERS),
    (1_700_000_000_001, b"gone", None, ()),
    (1_700_000_000_002, b"", b"", (("h", b"y" * 200),)),
]


def batch(
    base: int,
    rows: Sequence[tuple[int, bytes | None, bytes | None, Headers]] = tuple(ROWS[:1]),
    *,
    producer_id: int = -1,
    transactional: bool = False,
    codec: int = 0,
) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, transactional, producer_id, 0, 0, 1 << 20)
    for number, (time_ms, key, value, headers) in enumerate(rows):
        builder.append(number, time_ms, key, value, list(headers))
    return base.to_bytes(8, "big") + bytes(builder.build())[8:]


def marker(base: int, producer_id: int, *, commit: bool) -> bytes:
    made = bytearray(
        batch(base, [(5, bytes([0, 0, 0, commit]), bytes(6), ())], producer_id=producer_id, transactional=True)
    )
    made[22] |= 32
    return bytes(made)


def read(data: bytes, aborted: Sequence[tuple[int, int]] = ()) -> list[Record]:
    parts = visible_records(memoryview(data), topic="t", partition=3, aborted=aborted)
    return [record for _base, _last, records in parts for record in records]


def test_a_record_is_what_was_written() -> None:
    """Keys, values and headers that are empty or null, times before the first one, and numbers of several bytes."""
    found = read(batch(70, ROWS))
    assert found == [
        Record("t", 3, 70 + number, time_ms, key, value, headers)
        for number, (time_ms, key, value, headers) in enumerate(ROWS)
    ]


def test_a_batch_that_is_cut_off_is_left_for_the_next_answer() -> None:
    whole = batch(0) + batch(1)
    assert [record.offset for record in read(whole[:-1])] == [0]
    assert visible_records(memoryview(whole), topic="t", partition=3, aborted=())[1][:2] == (1, 1)


def test_the_time_of_a_log_that_stamps_records_is_the_brokers() -> None:
    made = bytearray(batch(0, ROWS[:2]))
    made[22] |= 8
    made[35:43] = (99).to_bytes(8, "big")
    assert [record.timestamp_ms for record in read(bytes(made))] == [99, 99]


def test_what_was_aborted_is_not_seen_and_markers_never_are() -> None:
    """A producer that aborted once may commit the next time."""
    log = b"".join(
        [
            batch(0, producer_id=7, transactional=True),
            batch(1, producer_id=8, transactional=True),
            marker(2, 7, commit=False),
            batch(3, producer_id=7, transactional=True),
            marker(4, 7, commit=True),
            batch(5, producer_id=9),
            batch(6, producer_id=8, transactional=True),
            marker(7, 8, commit=False),
            batch(8, producer_id=8, transactional=True),
        ]
    )
    assert [record.offset for record in read(log, [(8, 1), (7, 0)])] == [3, 5, 8]
    assert [record.offset for record in read(log)] == [0, 1, 3, 5, 6, 8], "nothing is said: all"


@given(st.integers(0, 1 << 32))
def test_any_log_has_what_a_consumer_sees(seed: int) -> None:
    log = any_log(random.Random(seed), most=300, codecs=["none"])  # noqa: S311
    assert [record[2:] for record in read(log.data, log.aborted)] == [row[:5] for row in log.rows]


def test_what_is_compressed_or_old_is_for_others() -> None:
    with pytest.raises(CompressedError):
        read(batch(0, ROWS * 20, codec=1))
    builder = LegacyRecordBatchBuilder(magic=1, compression_type=0, batch_size=1 << 20)
    builder.append(0, timestamp=5, key=b"k", value=b"v")
    with pytest.raises(OldFormatError):
        read(bytes(builder.build()))


def test_a_batch_with_more_or_fewer_records_than_it_says_is_refused() -> None:
    made = bytearray(batch(0, ROWS))
    for count in (len(ROWS) - 1, len(ROWS) + 1):
        made[57:61] = count.to_bytes(4, "big")
        with pytest.raises(ProtocolError):
            read(bytes(made))
