"""What the fake cluster knows, and how a transaction coordinator changes it (kafka.md 1.2 of the facts: Kafka 4.1+)."""

from __future__ import annotations

import itertools
import time
import zlib
from dataclasses import dataclass, field

from eosctl.wire import error_codes as codes

EXHAUSTED_EPOCH = 32766
MAX_TIMEOUT_MS = 900_000


@dataclass(slots=True)
class FakeTransaction:
    """One transactional id at its coordinator."""

    producer_id: int
    producer_epoch: int
    state: str = "Empty"
    timeout_ms: int = 60_000
    started_ms: int = -1
    partitions: set[tuple[str, int]] = field(default_factory=set)
    aborts_left: int = 0


@dataclass(slots=True)
class FakeProducer:
    """One producer on a partition; `start_offset` -1 is no open transaction."""

    producer_epoch: int
    last_timestamp_ms: int
    start_offset: int = -1
    coordinator_epoch: int = -1


@dataclass(slots=True)
class FakeGroup:
    """A group, its members as (member id, client id, host, metadata, assignment)."""

    state: str = "Stable"
    protocol_type: str = "connect"
    protocol: str = "sessioned"
    members: tuple[tuple[str, str, str, bytes, bytes], ...] = ()


class BrokerState:
    """Shared by all brokers of a fake cluster; the caller holds the lock."""

    def __init__(self) -> None:
        self.transactions: dict[str, FakeTransaction] = {}
        self.producers: dict[tuple[str, int], dict[int, FakeProducer]] = {}
        self.topics: dict[str, int] = {}
        self.groups: dict[str, FakeGroup] = {}
        self.nodes: list[int] = []
        self.moved: dict[str, int] = {}
        self.abort_rounds = 1
        self._producer_ids = itertools.count(1000)

    def coordinator(self, key: str) -> int:
        """The node that coordinates a key: where it was moved to, else by hash over the nodes that are up."""
        if self.moved.get(key) in self.nodes:
            return self.moved[key]
        return self.nodes[zlib.crc32(key.encode()) % len(self.nodes)]

    def leader(self, partition: int) -> int:
        """The node that leads partition number `partition` of every topic."""
        return self.nodes[partition % len(self.nodes)]

    def open_transaction(self, transactional_id: str, *partitions: tuple[str, int], epoch: int = 0) -> int:
        """A producer begins a transaction and writes to the partitions; returns its producer id."""
        now_ms = int(time.time() * 1000)
        producer_id = next(self._producer_ids)
        self.transactions[transactional_id] = FakeTransaction(
            producer_id, epoch, "Ongoing", started_ms=now_ms, partitions=set(partitions)
        )
        for topic, partition in partitions:
            self.topics[topic] = max(self.topics.get(topic, 0), partition + 1)
            self.producers.setdefault((topic, partition), {})[producer_id] = FakeProducer(epoch, now_ms, 0)
        return producer_id

    def init_producer_id(self, transactional_id: str, timeout_ms: int) -> tuple[int, int, int]:
        """(error, producer id, epoch) of InitProducerId(-1, -1)."""
        if not transactional_id:
            return codes.INVALID_REQUEST, -1, -1
        if not 0 < timeout_ms <= MAX_TIMEOUT_MS:
            return 50, -1, -1
        known = self.transactions.get(transactional_id)
        if known is None:
            known = self.transactions[transactional_id] = FakeTransaction(next(self._producer_ids), -1)
        elif known.state == "Ongoing":
            known.producer_epoch += 1  # an epoch that nobody is ever given
            known.state, known.aborts_left = "PrepareAbort", self.abort_rounds
        if known.state == "PrepareAbort":
            self._finish_abort(known)
            return codes.CONCURRENT_TRANSACTIONS, -1, -1
        if known.producer_epoch >= EXHAUSTED_EPOCH:
            known.producer_id, known.producer_epoch = next(self._producer_ids), -1
        known.producer_epoch += 1
        known.state, known.timeout_ms = "Empty", timeout_ms
        return codes.NONE, known.producer_id, known.producer_epoch

    def _finish_abort(self, known: FakeTransaction) -> None:
        known.aborts_left -= 1
        if known.aborts_left > 0:
            return
        for partition in known.partitions:
            self.write_abort_marker(partition, known.producer_id, known.producer_epoch, coordinator_epoch=0)
        known.state, known.started_ms = "CompleteAbort", -1
        known.partitions.clear()

    def write_abort_marker(
        self, partition: tuple[str, int], producer_id: int, producer_epoch: int, *, coordinator_epoch: int
    ) -> int:
        """The error code of an ABORT marker (`ProducerAppendInfo`)."""
        producer = self.producers.get(partition, {}).get(producer_id)
        if producer is None:
            return codes.NONE
        if coordinator_epoch < producer.coordinator_epoch:
            return codes.TRANSACTION_COORDINATOR_FENCED
        if producer_epoch < producer.producer_epoch:
            return codes.INVALID_PRODUCER_EPOCH
        producer.start_offset, producer.producer_epoch = -1, producer_epoch
        producer.coordinator_epoch = coordinator_epoch
        return codes.NONE
