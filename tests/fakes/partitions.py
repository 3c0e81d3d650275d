"""The log of a partition as its leader keeps it: records, control markers, open transactions, compaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eosctl.core.records import Record
from eosctl.wire import error_codes as codes

DEFAULT_CONFIG = {"cleanup.policy": "delete", "retention.ms": "604800000", "min.insync.replicas": "1"}


@dataclass(slots=True)
class FakeProducer:
    """One producer on a partition; `start_offset` -1 is no open transaction."""

    producer_epoch: int
    last_timestamp_ms: int
    start_offset: int = -1
    coordinator_epoch: int = -1


@dataclass
class FakePartition:
    """A log: `end` also counts offsets that hold control markers, `aborted` are offsets that committed reads skip."""

    records: list[Record] = field(default_factory=list)
    producers: dict[int, FakeProducer] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    begin: int = 0
    end: int = 0
    _writers: dict[int, int] = field(default_factory=dict)

    @property
    def lso(self) -> int:
        """Where the first open transaction begins, else the end."""
        return min((each.start_offset for each in self.producers.values() if each.start_offset >= 0), default=self.end)

    def append(self, record: Record, producer: tuple[int, int], *, now_ms: int, transactional: bool) -> int:
        """Takes a record of a producer (id, epoch), whatever its offset says, and returns the one that it got."""
        producer_id, epoch = producer
        offset, self.end = self.end, self.end + 1
        self.records.append(record._replace(offset=offset))
        self._writers[offset] = producer_id
        known = self.producers.setdefault(producer_id, FakeProducer(epoch, now_ms))
        known.producer_epoch, known.last_timestamp_ms = epoch, now_ms
        if transactional and known.start_offset < 0:
            known.start_offset = offset
        return offset

    def mark(self, producer: tuple[int, int], *, commit: bool, coordinator_epoch: int = 0) -> int:
        """Writes the marker that ends a transaction, and returns the error code (`ProducerAppendInfo`)."""
        producer_id, epoch = producer
        known = self.producers.get(producer_id)
        if known is None:
            return codes.NONE
        if coordinator_epoch < known.coordinator_epoch:
            return codes.TRANSACTION_COORDINATOR_FENCED
        if epoch < known.producer_epoch:
            return codes.INVALID_PRODUCER_EPOCH
        if known.start_offset >= 0 and not commit:
            begun = range(known.start_offset, self.end)
            self.aborted |= {offset for offset in begun if self._writers.get(offset) == producer_id}
        known.start_offset, known.producer_epoch, known.coordinator_epoch = -1, epoch, coordinator_epoch
        self.end += 1
        return codes.NONE

    def visible(self, isolation: str) -> list[Record]:
        """What a reader gets."""
        if isolation == "read_uncommitted":
            return list(self.records)
        lso = self.lso
        return [record for record in self.committed() if record.offset < lso]

    def committed(self) -> list[Record]:
        """What is committed, whether it can be read already or not."""
        return [
            record for record in self.records if not self._is_open(record.offset) and record.offset not in self.aborted
        ]

    def _is_open(self, offset: int) -> bool:
        writer = self.producers.get(self._writers[offset])
        return writer is not None and 0 <= writer.start_offset <= offset

    def compact(self) -> None:
        """What the log cleaner leaves below the last stable offset: the newest committed record of each key."""
        stable = self.lso
        cleaned = [record for record in self.visible("read_committed") if record.key is not None]
        newest = {record.key: record.offset for record in cleaned}
        self.records = [
            record for record in self.records if record.offset >= stable or newest.get(record.key) == record.offset
        ]

    def delete_before(self, offset: int) -> None:
        """What DeleteRecords does."""
        self.begin = offset
        self.records = [record for record in self.records if record.offset >= offset]


@dataclass
class FakeTopic:
    """A topic; `given` are the settings that it was made with."""

    partitions: list[FakePartition]
    given: Mapping[str, str]
    topic_id: str
    replication_factor: int = 1

    @property
    def config(self) -> dict[str, str]:
        """The effective settings."""
        return {**DEFAULT_CONFIG, **self.given}
