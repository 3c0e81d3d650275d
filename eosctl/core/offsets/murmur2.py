"""Kafka's murmur2 and the partition it chooses for a key; pure Python, so that Spark executors need nothing else.

Writers must use this: a record on another partition than Connect's own producer would choose is a second copy of the
key.
"""

from __future__ import annotations

from collections.abc import Callable

Partitioner = Callable[[bytes, int], int]
"""A function from a key and a number of partitions to a partition: `partition_for`, or the same in C."""

_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995


def murmur2(data: bytes) -> int:
    """Compute the hash of `data` as an unsigned 32-bit integer (`org.apache.kafka.common.utils.Utils.murmur2`, 4.3)."""
    length = len(data)
    whole = length & ~3
    state = _SEED ^ length
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        state = (state * _MULTIPLIER & _MASK) ^ word
    if whole != length:
        state = (state ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    state = (state ^ state >> 13) * _MULTIPLIER & _MASK
    return state ^ state >> 15


def partition_for(key: bytes, partitions: int) -> int:
    """Return the partition of `key` in a topic of `partitions` (`BuiltInPartitioner.partitionForKey`, Kafka 4.3).

    An empty key is hashed like any other; a record without a key has no such partition, so None is not accepted. Raises
    ValueError if `partitions` is not positive.
    """
    if partitions <= 0:
        raise ValueError(f"a topic has at least one partition, not {partitions}")
    return (murmur2(key) & 0x7FFFFFFF) % partitions
