"""`__transaction_state`: layouts v0 and v1, every byte accounted for, and the partition of an id."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.ids import TransactionalId
from eosctl.core.transaction_log import coordinator_partition, decode_key, decode_value, java_string_hash
from eosctl.core.transactions import TransactionState
from eosctl.errors import ProtocolError

FIXED = struct.Struct(">hqhib")


def v0(*topics: tuple[str, tuple[int, ...]], status: int = 1, null: bool = False, version: int = 0) -> bytes:
    out = FIXED.pack(version, 7, 3, 60_000, status) + struct.pack(">i", -1 if null else len(topics))
    for name, partitions in topics:
        out += struct.pack(">h", len(name)) + name.encode() + struct.pack(">i", len(partitions))
        out += b"".join(struct.pack(">i", partition) for partition in partitions)
    return out + struct.pack(">qq", 2_000, 1_000)


def v1(*topics: tuple[str, tuple[int, ...]], status: int = 1, null: bool = False, tags: bytes = b"\0") -> bytes:
    out = FIXED.pack(1, 7, 3, 60_000, status) + bytes([0 if null else len(topics) + 1])
    for name, partitions in topics:
        out += bytes([len(name) + 1]) + name.encode() + bytes([len(partitions) + 1])
        out += b"".join(struct.pack(">i", partition) for partition in partitions) + b"\0"
    return out + struct.pack(">qq", 2_000, 1_000) + tags


@pytest.mark.parametrize("encode", [v0, v1])
def test_a_value_of_either_version(encode: object) -> None:
    assert callable(encode)
    logged = decode_value(encode(("t", (1, 0)), ("s", (2,))))
    assert logged.version == (0 if encode is v0 else 1)
    assert (logged.producer_id, logged.producer_epoch, logged.transaction_timeout_ms) == (7, 3, 60_000)
    assert logged.state is TransactionState.ONGOING
    assert logged.partitions == (("s", 2), ("t", 0), ("t", 1))
    assert (logged.last_update_ms, logged.started_ms) == (2_000, 1_000)
    assert (logged.previous_producer_id, logged.next_producer_id) == (None, None)
    assert decode_value(encode(null=True)).partitions == ()


def test_tagged_fields() -> None:
    tags = b"\x05" + b"\0\x08" + struct.pack(">q", 6) + b"\1\x08" + struct.pack(">q", -1)
    tags += b"\2\2" + struct.pack(">h", 2) + b"\3\2" + struct.pack(">h", 9) + b"\x64\1\xff"
    logged = decode_value(v1(tags=tags))
    assert (logged.previous_producer_id, logged.next_producer_id) == (6, None)
    assert (logged.client_transaction_version, logged.next_producer_epoch) == (2, 9)


@pytest.mark.parametrize(
    ("status", "state"),
    [*enumerate(("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead")),
     (7, "PrepareEpochFence"), (8, "Unknown"), (-1, "Unknown")],
)  # fmt: skip
def test_every_status_has_its_name(status: int, state: str) -> None:
    assert decode_value(v0(status=status)).state == state


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (v0(version=2), "version 2"),
        (v0()[:-1], "cut off"),
        (v1()[:-1], "cut off"),
        (v0() + b"\0", "1 bytes"),
        (v1() + b"\0", "1 bytes"),
        (b"", "cut off"),
        (v1(tags=b"\xff\xff\xff\xff\xff\x0f"), "longer"),
        (v1(tags=b"\1\2\3abc"), "left|known"),
    ],
)
def test_what_is_not_a_value(value: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        decode_value(value)


@given(st.binary(max_size=80))
def test_garbage_is_an_error_of_ours(data: bytes) -> None:
    for decode in (decode_key, decode_value):
        try:
            decode(data)
        except ProtocolError:
            continue


def test_a_key() -> None:
    assert decode_key(b"\0\0\0\x03g-1") == "g-1"
    for bad in (b"\0\1\0\x01g", b"\0\0\0\x04g-1", b"\0\0\0\x02g-1", b"\0\0\0\x01\xff"):
        with pytest.raises(ProtocolError):
            decode_key(bad)


@pytest.mark.parametrize(
    ("transactional_id", "partition"),
    [
        ("connect-cluster-foo", 24),
        ("grp-conn-0", 27),
        ("my-connect-source-0", 38),
        ("connect-cluster-connect", 46),
        ("polygenelubricants", 0),  # String.hashCode is Integer.MIN_VALUE
        ("", 0),
    ],
)
def test_the_partition_of_an_id(transactional_id: TransactionalId, partition: int) -> None:
    """Seen with Kafka's own classes; abs(-2**31) % 50 would be 48."""
    assert coordinator_partition(transactional_id, 50) == partition


def test_java_hashes_utf_16_code_units() -> None:
    assert java_string_hash("polygenelubricants") == -(2**31)
    assert java_string_hash("é") == 233
    assert java_string_hash("😀") == 0xD83D * 31 + 0xDE00


_PARTITIONS = st.dictionaries(st.text(max_size=9), st.sets(st.integers(0, 2**31 - 1), max_size=3), max_size=3)


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + _varint(number >> 7)


@given(
    st.integers(-1, 2**63 - 1), st.integers(-1, 2**15 - 1), st.integers(0, 7), _PARTITIONS, st.integers(0, 2**62),
    st.one_of(st.none(), st.integers(0, 2**63 - 1)), st.booleans(),
)  # fmt: skip
def test_a_transaction_log_value_is_read_as_it_was_written(
    producer_id: int, epoch: int, status: int, partitions: dict[str, set[int]], at_ms: int, next_id: int | None,
    flexible: bool,
) -> None:  # fmt: skip
    data = struct.pack(">hqhib", int(flexible), producer_id, epoch, 60_000, status)
    data += _varint(len(partitions) + 1) if flexible else struct.pack(">i", len(partitions))
    for topic, numbers in partitions.items():
        name = topic.encode()
        data += (_varint(len(name) + 1) if flexible else struct.pack(">h", len(name))) + name
        data += _varint(len(numbers) + 1) if flexible else struct.pack(">i", len(numbers))
        data += struct.pack(f">{len(numbers)}i", *numbers) + (b"\0" if flexible else b"")
    data += struct.pack(">qq", at_ms, -1)
    if flexible:
        data += b"\0" if next_id is None else b"\1\1\x08" + struct.pack(">q", next_id)
    read = decode_value(data)
    assert (read.producer_id, read.producer_epoch, read.last_update_ms) == (producer_id, epoch, at_ms)
    assert read.partitions == tuple(sorted((topic, n) for topic, numbers in partitions.items() for n in numbers))
    assert read.next_producer_id == (next_id if flexible else None)
    assert read.started_ms is None
