"""Record batches as they lie in a log: those of real brokers, of every Fetch version, and those of other writers."""

from __future__ import annotations

import random
import struct
import warnings
from typing import Any

import pytest

from eosctl.core.records import NO_PRODUCER, Batch
from eosctl.errors import ProtocolError
from eosctl.wire.api import decode_response
from eosctl.wire.log.batches import crc32c, decode_batches
from eosctl.wire.log.fetch_messages import FETCH, TOPIC_IDS_FROM, FetchResponse
from tests.fakes.log_answers import batch_bytes
from tests.wire.test_captured import exchanges

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources, in kafka-python 3.0.12
    from kafka.record._crc32c import crc as their_crc32c
    from kafka.record.default_records import DefaultRecordBatchBuilder
    from kafka.record.legacy_records import LegacyRecordBatchBuilder

FETCHES = [(kafka, item) for kafka, item in exchanges() if item["api"] == "Fetch"]
each_fetch = pytest.mark.parametrize(
    "item", [pytest.param(item, id=f"{kafka}-v{item['version']}") for kafka, item in FETCHES]
)
MUTATIONS = 10_000


def answer_in(frame: bytes | memoryview, version: int) -> FetchResponse:
    number = int.from_bytes(frame[:4], "big")
    return decode_response(FETCH, frame, version=version, correlation_id=number)


def decode(data: bytes, *, position: int = 0, check_crc: bool = False) -> list[Batch]:
    return decode_batches(memoryview(data), topic="t", partition=3, position=position, check_crc=check_crc)


@each_fetch
def test_the_batches_of_real_brokers(item: Any) -> None:
    """A compressed batch of two records, a committed transaction and an aborted one."""
    frame = memoryview(bytearray.fromhex(item["response"]))
    (topic,) = answer_in(frame, item["version"]).responses
    assert (topic.topic == "captured-log") == (item["version"] < TOPIC_IDS_FROM) != (topic.topic_id.int != 0)
    there, missing = topic.partitions
    assert (there.error_code, there.high_watermark, there.last_stable_offset) == (0, 6, 6)
    assert (missing.error_code, not missing.records) == (3, True)
    assert there.records is not None
    assert there.records.obj is frame.obj, "nothing was copied"
    plain, one, commit, two, abort = decode_batches(there.records, topic="t", partition=0, position=0, check_crc=True)
    assert {each.crc_ok for each in (plain, one, commit, two, abort)} == {True}
    assert (plain.producer_id, plain.is_transactional, plain.records) == (NO_PRODUCER, False, 2)
    assert (plain.base_offset, plain.last_offset) == (0, 1)
    assert 1_600_000_000_000 < plain.first_timestamp_ms <= plain.max_timestamp_ms <= one.first_timestamp_ms
    assert plain.size_bytes < 200, "it is compressed"
    assert [each.producer_epoch for each in (one, commit, two, abort)] == [0] * 4, "librdkafka's ends don't raise it"
    assert [(each.is_transactional, each.is_control, each.commit) for each in (one, commit, two, abort)] == [
        (True, False, None),
        (True, True, True),
        (True, False, None),
        (True, True, False),
    ]
    assert {each.producer_id for each in (one, commit, two, abort)} == {one.producer_id}
    assert [each.base_offset for each in (one, commit, two, abort)] == [2, 3, 4, 5]
    assert sum(each.size_bytes for each in (plain, one, commit, two, abort)) == len(there.records)


def test_damaged_frames_are_protocol_errors_or_other_batches() -> None:
    """10,000 damaged frames: never another error, never a hang."""
    chance = random.Random(21)  # noqa: S311 - not for secrets
    failures = 0
    for number in range(MUTATIONS):
        _kafka, item = FETCHES[number % len(FETCHES)]
        frame = bytearray.fromhex(item["response"])
        for _ in range(chance.randint(1, 4)):
            frame[chance.randrange(4, len(frame))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        if chance.random() < 0.3:
            del frame[chance.randrange(4, len(frame)) :]
        try:
            for topic in answer_in(memoryview(frame), item["version"]).responses:
                for part in topic.partitions:
                    decode_batches(
                        memoryview(part.records or b""), topic="t", partition=0, position=0, check_crc=number % 7 == 0
                    )
        except ProtocolError:
            failures += 1
    assert MUTATIONS // 10 < failures < MUTATIONS


def test_every_cut_of_an_answer_leaves_the_whole_batches() -> None:
    """A fetch cuts off the last batch at its limit."""
    _kafka, item = FETCHES[-1]
    (topic,) = answer_in(bytes.fromhex(item["response"]), item["version"]).responses
    whole = bytes(topic.partitions[0].records or b"")
    ends = [0]
    for batch in decode(whole):
        ends.append(ends[-1] + batch.size_bytes)
    for cut in range(len(whole) + 1):
        assert len(decode(whole[:cut])) == sum(0 < end <= cut for end in ends)


def builder(**more: Any) -> Any:
    """kafka-python's, whose batches are its own."""
    return DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=True, producer_id=7, producer_epoch=3, base_sequence=11,
        batch_size=1 << 20, **more,
    )  # fmt: skip


def test_the_batches_of_another_client() -> None:
    made = builder()
    for number in range(3):
        made.append(number, timestamp=1000 + number, key=b"k", value=b"v" * 50, headers=[])
    data = bytes(made.build())
    (found,) = decode(data, check_crc=True)
    assert found == Batch("t", 3, 0, 2, 7, 3, 11, True, False, 1000, 1002, 3, len(data), crc_ok=True)  # type: ignore[arg-type]
    damaged = bytearray(data)
    damaged[-1] ^= 1
    assert [each.crc_ok for each in decode(bytes(damaged), check_crc=True)] == [False]


@pytest.mark.parametrize(("attribute", "first_ms"), [(0, 1000), (8, 1002), (64, 1002)])
def test_a_first_timestamp_that_is_none_is_not_told(attribute: int, first_ms: int) -> None:
    """With LogAppendTime the base timestamp is the producer's; with a delete horizon it is when tombstones may go."""
    made = builder()
    for number in range(3):
        made.append(number, timestamp=1000 + number, key=b"k", value=b"v", headers=[])
    data = bytearray(made.build())
    data[22] |= attribute
    assert [(each.first_timestamp_ms, each.max_timestamp_ms) for each in decode(bytes(data))] == [(first_ms, 1002)]


@pytest.mark.parametrize(("magic", "stamp_ms"), [(0, -1), (1, 1000)])
@pytest.mark.parametrize("compression", [0, 1])
def test_message_sets_of_old_are_named_and_belong_to_nobody(magic: int, stamp_ms: int, compression: int) -> None:
    """Compressed ones lie within another message, whose offset is that of the last."""
    made = LegacyRecordBatchBuilder(magic=magic, compression_type=compression, batch_size=1 << 20)
    for number in range(3):
        made.append(number, timestamp=1000, key=None, value=b"v" * 50)
    data = bytes(made.build())
    if compression:
        data = struct.pack(">q", 12) + data[8:]
    found = decode(data, position=10)
    assert {(each.magic, each.producer_id, each.is_transactional, each.crc_ok) for each in found} == {
        (magic, NO_PRODUCER, False, None)
    }
    assert {each.max_timestamp_ms for each in found} == {min(stamp_ms, 0) if compression else stamp_ms}, "as it is made"
    offsets = [(each.base_offset, each.last_offset, each.records) for each in found]
    assert offsets == ([(10, 12, 3)] if compression else [(0, 0, 1), (1, 1, 1), (2, 2, 1)])
    assert sum(each.size_bytes for each in found) == len(data)


def control_batch(key: bytes, value: bytes = struct.pack(">hi", 0, 5)) -> bytes:
    record = b"\0\0\0" + bytes([2 * len(key)]) + key + bytes([2 * len(value)]) + value + b"\0"
    marker = Batch("", 0, 9, 9, 7, 3, -1, True, True, 5, 5, 0, 61, commit=True, coordinator_epoch=0)  # type: ignore[arg-type]
    head = bytearray(batch_bytes(marker)[:61])
    body = bytes([2 * len(record)]) + record
    struct.pack_into(">i", head, 8, 61 - 12 + len(body))
    return bytes(head) + body


def test_a_marker_says_which_and_by_whom() -> None:
    """A newer version of it may have more behind."""
    for kind, commit in ((0, False), (1, True)):
        for value in (struct.pack(">hi", 0, 5), struct.pack(">hi", 1, 5) + b"more"):
            (found,) = decode(control_batch(struct.pack(">hh", 0, kind), value))
            assert (found.commit, found.coordinator_epoch, found.records) == (commit, 5, 0)


def test_other_control_records_end_no_transaction() -> None:
    """LeaderChangeMessage and its like of Raft's."""
    (found,) = decode(control_batch(struct.pack(">hh", 0, 2), b"x" * 30))
    assert (found.is_control, found.commit, found.coordinator_epoch) == (True, None, None)


def test_a_control_batch_that_compaction_emptied_marks_nothing() -> None:
    data = bytearray(control_batch(struct.pack(">hh", 0, 1)))[:61]
    struct.pack_into(">i", data, 8, 61 - 12)
    struct.pack_into(">i", data, 57, 0)
    assert [(each.is_control, each.commit) for each in decode(bytes(data))] == [(True, None)]


@pytest.mark.parametrize(
    "data",
    [
        control_batch(b"\0"),
        control_batch(struct.pack(">hh", 0, 1), b"\0\0"),
        control_batch(struct.pack(">hh", 0, 1))[:61] + b"\x80" * 20,
        struct.pack(">qiib", 0, 60, 0, 3) + bytes(60),
        struct.pack(">qiib", 0, -1, 0, 2) + bytes(60),
        struct.pack(">qiib", 0, 48, 0, 2) + bytes(60),
        struct.pack(">qiib", 0, 21, 0, 1) + bytes(60),
        struct.pack(">qiib", 0, 0, 0, 0) + bytes(60),
        struct.pack(">qiib", -5, 14, 0, 0) + bytes(60),
        struct.pack(">qiib", -5, 49, 0, 2) + bytes(60),
    ],
)
def test_what_is_no_batch_is_a_protocol_error(data: bytes) -> None:
    if data[8:12] == control_batch(b"")[8:12] or len(data) == 81:
        data = data[:8] + struct.pack(">i", len(data) - 12) + data[12:]
    with pytest.raises(ProtocolError):
        decode(data)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 9, 4096, 4099])
def test_the_checksum_is_castagnolis(size: int) -> None:
    data = random.Random(size).randbytes(size)  # noqa: S311 - not for secrets
    assert crc32c(data) == crc32c(memoryview(data)) == their_crc32c(data)
    assert crc32c(b"123456789") == 0xE3069283


def test_a_large_answer_is_decoded_without_copies() -> None:
    """16 MB of batches of 16 KB: what is made is their headers."""
    import tracemalloc

    data = bytearray()
    one = bytes(builder_batch())
    while len(data) < 16 << 20:
        data += one
    view = memoryview(data)
    tracemalloc.start()
    try:
        found = decode_batches(view, topic="t", partition=0, position=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found) == len(data) // len(one)
    assert peak < len(found) * 1000


def builder_batch() -> bytes:
    made = builder()
    made.append(0, timestamp=1000, key=b"k", value=b"v" * 16_000, headers=[])
    return bytes(made.build())


def test_the_fakes_batches_are_batches() -> None:
    batch = Batch("t", 3, 5, 5, 7, 3, 1, True, False, 10, 11, 1, 90, crc_ok=True)  # type: ignore[arg-type]
    assert decode(batch_bytes(batch), check_crc=True) == [batch]
