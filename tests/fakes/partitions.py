"""The log of a partition as its leader keeps it: records, control markers, open transactions, compaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eosctl.core.ids import ProducerId
from eosctl.core.records import Batch, Record
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
    """A log: `end` also counts offsets that hold control markers, `aborted` are offsets that committed reads skip.

    `batches` are all that was appended and is still there, one record each, and the markers; who reads them
    adds topic and partition.
    """

    records: list[Record] = field(default_factory=list)
    producers: dict[int, FakeProducer] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    begin: int = 0
    end: int = 0
    batches: list[Batch] = field(default_factory=list)
    _writers: dict[int, int] = field(default_factory=dict)
    _sequences: dict[tuple[int, int], int] = field(default_factory=dict)

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
        self.batches.append(self._batch(self.records[-1], producer, transactional=transactional))
        known = self.producers.setdefault(producer_id, FakeProducer(epoch, now_ms))
        known.producer_epoch, known.last_timestamp_ms = epoch, now_ms
        if transactional and known.start_offset < 0:
            known.start_offset = offset
        return offset

    def _batch(self, record: Record, producer: tuple[int, int], *, transactional: bool) -> Batch:
        sequence = self._sequences.get(producer, 0)
        self._sequences[producer] = sequence + 1
        return Batch(
            topic="",
            partition=-1,
            base_offset=record.offset,
            last_offset=record.offset,
            producer_id=ProducerId(producer[0]),
            producer_epoch=producer[1],
            base_sequence=sequence,
            is_transactional=transactional,
            is_control=False,
            first_timestamp_ms=record.timestamp_ms,
            max_timestamp_ms=record.timestamp_ms,
            records=1,
            size_bytes=70 + len(record.key or b"") + len(record.value or b""),
        )

    def mark(
        self, producer: tuple[int, int], *, commit: bool, coordinator_epoch: int = 0, now_ms: int | None = None
    ) -> int:
        """Writes the marker that ends a transaction, and returns the error code (`ProducerAppendInfo`).

        Its time is `now_ms`, else as late as anything here: a broker stamps it with its own, which the fakes' records
        don't follow.
        """
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
        if now_ms is None:
            now_ms = max((each.max_timestamp_ms for each in self.batches), default=0)
        self.batches.append(self._marker(producer, commit=commit, coordinator_epoch=coordinator_epoch, now_ms=now_ms))
        self.end += 1
        return codes.NONE

    def _marker(self, producer: tuple[int, int], *, commit: bool, coordinator_epoch: int, now_ms: int) -> Batch:
        return Batch(
            topic="",
            partition=-1,
            base_offset=self.end,
            last_offset=self.end,
            producer_id=ProducerId(producer[0]),
            producer_epoch=producer[1],
            base_sequence=-1,
            is_transactional=True,
            is_control=True,
            first_timestamp_ms=now_ms,
            max_timestamp_ms=now_ms,
            records=0,
            size_bytes=78,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
        )

    def writer_of(self, offset: int) -> int:
        """The producer id of a record."""
        return self._writers[offset]

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
        left = {record.offset for record in self.records}
        self.batches = [each for each in self.batches if each.is_control or each.base_offset in left]

    def delete_before(self, offset: int) -> None:
        """What DeleteRecords does."""
        self.begin = offset
        self.records = [record for record in self.records if record.offset >= offset]
        self.batches = [each for each in self.batches if each.last_offset >= offset]


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
