"""murmur2 against Java's own vectors, and against the C implementation that confluent-kafka carries."""

from __future__ import annotations

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.names import murmur2, partition_for


@pytest.mark.parametrize(
    ("data", "java_hash"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_as_java_does(data: bytes, java_hash: int) -> None:
    """The vectors of Kafka's own UtilsTest; Java's int is signed."""
    assert murmur2(data) == java_hash % 2**32


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        (b'["conn",{"filename":"tmp/x"}]', 21),
        (b'["file-source",{"filename":"tmp/test.txt"}]', 11),
        (b'["mm2",{"cluster":"A","partition":3,"topic":"t1"}]', 13),
        (b'["conn",null]', 24),
        (b'["verifiable",{"id":0}]', 4),
    ],
)
def test_offset_keys_fall_where_connect_writes_them(key: bytes, partition: int) -> None:
    """Computed with `Utils.toPositive(Utils.murmur2(key)) % 25` of kafka-clients 4.3.1."""
    assert partition_for(key, 25) == partition


@given(st.binary(max_size=64), st.integers(min_value=1, max_value=200))
def test_agrees_with_librdkafka(key: bytes, partitions: int) -> None:
    assert partition_for(key, partitions) == confluent_kafka.murmur2(key, partitions)


def test_a_topic_without_partitions_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one partition"):
        partition_for(b"k", 0)
