"""Kafka records and topics as plain values, shared by everything that reads or writes topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from eosctl.core.offsets.murmur2 import Partitioner, partition_for

Headers = tuple[tuple[str, bytes | None], ...]
"""Names and values; bytes of a name that are not UTF-8 are surrogates in it, as with `surrogateescape`."""


class Record(NamedTuple):
    """One record as stored in a topic; `value` None is a tombstone; `timestamp_ms` is -1 when the record has none.

    A tuple, because topics are read by the million and nothing else is created as fast.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


RecordFilter = Callable[[Sequence[Record]], Sequence[Record]]
"""A filter that takes some records of a topic at a time, those of a partition in order, and returns the ones to keep.
"""


class OutRecord(NamedTuple):
    """One record to write; `partition` None means the one that Connect's own producer would choose (murmur2)."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Headers = ()


class Written(Struct, frozen=True):
    """The place of a written OutRecord, from its delivery report."""

    topic: str
    partition: int
    offset: int


class Bounds(Struct, frozen=True):
    """First offset, last stable offset and high watermark of a partition; `lso < end` means an open transaction."""

    partition: int
    begin: int
    lso: int
    end: int


def hidden_of(
    offsets: Mapping[tuple[str, int], int], bounds: Mapping[str, Sequence[Bounds]]
) -> dict[tuple[str, int], int]:
    """Return those `offsets`, by topic and partition, that read_committed does not see yet.

    The LSO has not passed them.
    """
    stable = {(topic, bound.partition): bound.lso for topic, found in bounds.items() for bound in found}
    return {place: offset for place, offset in offsets.items() if stable.get(place, -1) <= offset}


class KnownBounds(Struct, frozen=True):
    """The bounds of the partitions whose leaders respond; `missing` has the reason for each other one."""

    known: tuple[Bounds, ...]
    missing: Mapping[int, str] = {}

    def partitions(self) -> int:
        """Return the topic's number of partitions."""
        return len(self.known) + len(self.missing)


class TopicRead(Struct, frozen=True):
    """The outcome of reading a topic up to bounds that were fixed at the start.

    `records` are in partition, then offset order: every record, or those that a filter kept; if requested, the newest
    of these per (partition, key). `records_read` counts all records that were read. `missing` has the partitions that
    could not be read, where that was allowed, and why. `partition_for` is the reader's partitioner: that of librdkafka
    is a hundred times as fast as the one in Python.
    """

    topic: str
    bounds: tuple[Bounds, ...]
    records: tuple[Record, ...]
    records_read: int
    missing: Mapping[int, str] = {}
    partition_for: Partitioner = partition_for

    def blocked(self) -> tuple[Bounds, ...]:
        """Return the partitions where an open transaction hides committed records behind it."""
        return tuple(bound for bound in self.bounds if bound.lso < bound.end)


class NewTopic(Struct, frozen=True):
    """A topic to create; offsets topics are compacted."""

    topic: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = field(default_factory=lambda: {"cleanup.policy": "compact"})


class Placement(Struct, frozen=True):
    """The replicas of a partition, as broker ids.

    `leader` is None without one; `offline` replicas are not in the cluster.
    """

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...] = ()


class TopicDescription(Struct, frozen=True):
    """A topic as the cluster describes it; `config` holds the effective values, empty where they may not be read."""

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = {}
    placements: tuple[Placement, ...] = ()


class LogDir(Struct, frozen=True):
    """A log directory of a broker; the bytes are those of its volume, None where the broker does not report them.

    One that `is_offline` is out of use: its disk failed or is full.
    """

    path: str
    is_offline: bool = False
    total_bytes: int | None = None
    usable_bytes: int | None = None
