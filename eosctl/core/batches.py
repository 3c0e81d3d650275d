"""The log of a partition as `audit` reads it: batches by their headers, control markers, and gaps.

Named tuples, as a topic has them by the hundred thousand. Records are not kept: a batch has only their number.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import NamedTuple

from msgspec import Struct

from eosctl.core.ids import ProducerId

NO_PRODUCER = ProducerId(-1)
"""The producer id of a batch that was written by a producer without idempotence."""
OLD_FORMAT = 2
"""Batches of a lower `magic` are message sets from before Kafka 0.11, without producers and transactions."""

Place = tuple[str, int]
"""A topic and a partition."""


class Batch(NamedTuple):
    """The header of one record batch, or one control marker: then `commit` says which, and `records` is 0.

    `records` is the number of records left in the batch: compaction removes records and leaves `last_offset` as it was.
    For a compressed message set of `magic` 0 or 1 it is derived from the offsets. `first_timestamp_ms` and
    `max_timestamp_ms` are the producer's unless the topic stamps (`message.timestamp.type=LogAppendTime`), those of a
    marker the broker's. The epoch of a marker is that of its transaction's batches, or higher: a fence aborts with a
    higher one, and from transaction version 2 on (KIP-890, Kafka 4.0) every end raises it by one. `commit` is None
    unless it is the marker of a transaction, `coordinator_epoch` unless it is a marker. `crc_ok` is None if the
    checksum was not computed.
    """

    topic: str
    partition: int
    base_offset: int
    last_offset: int
    producer_id: ProducerId
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    first_timestamp_ms: int
    max_timestamp_ms: int
    records: int
    size_bytes: int
    magic: int = 2
    commit: bool | None = None
    coordinator_epoch: int | None = None
    crc_ok: bool | None = None


class Window(Struct, frozen=True):
    """The offsets or times that limit what a scan reads of each partition.

    None stands for the start of the log, or for its end when the scan is planned. A time is converted to an offset as
    brokers do it (ListOffsets): that of the first record, or marker, with at least this timestamp. Sources may give
    their records any time; markers have the broker's. So a transaction that begins before the window and ends in it may
    have some records outside: `audit` must distinguish it from one whose records are missing.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    since_offset: int | None = None
    until_offset: int | None = None


class Span(Struct, frozen=True):
    """One partition to be scanned: from `first` on, `stop` is the first offset that is not read.

    `log_start`, `last_stable` and `end` (the high watermark) are those of the partition when the scan was planned;
    `last_stable < end` means an open transaction.
    """

    topic: str
    partition: int
    first: int
    stop: int
    log_start: int
    last_stable: int
    end: int


@unique
class UnseenReason(StrEnum):
    """The reason why offsets of a window were not seen."""

    REMOVED = "removed"
    """They lie before the log's start: retention or DeleteRecords removed them."""
    COMPACTED = "compacted"
    """The log cleaner removed them; they lie between, or in, batches that are still there."""
    UNREADABLE = "unreadable"
    """The partition could not be read; `detail` has the reason."""


class Unseen(NamedTuple):
    """Offsets of a window that a scan did not see: `offsets` of those from `first_offset` to `last_offset`.

    The gaps of compaction are one of these per partition, so that not all offsets in between are missing.
    `first_offset`, `last_offset` and `offsets` are None where they are unknown.
    """

    topic: str
    partition: int
    reason: UnseenReason
    first_offset: int | None = None
    last_offset: int | None = None
    offsets: int | None = None
    detail: str = ""


class ScanPlan(Struct, frozen=True):
    """The partitions that can be read, and the offsets that are already known not to be."""

    spans: tuple[Span, ...]
    unseen: tuple[Unseen, ...] = ()
