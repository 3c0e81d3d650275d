"""What a fake cluster knows: topics with their logs, transactions as their coordinators have them, and groups.

FakeCluster and FakeTransactionAdmin speak the protocol over it, FakeTopicStore reads and writes its logs. The rules are
those of Kafka 4.1 and later (kafka.md 1.2 of the facts); tests/contract holds them to real brokers.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from eosctl.core.ids import TransactionalId
from eosctl.core.records import LogDir, OutRecord, Placement, Record
from eosctl.core.transaction_log import TOPIC, coordinator_partition
from eosctl.core.transactions import RawGroup
from eosctl.deadline import Clock
from eosctl.wire import error_codes as codes
from tests.fakes.partitions import FakePartition, FakeTopic
from tests.fakes.transaction_log import log_key, log_value

EXHAUSTED_EPOCH = 32766
MAX_TIMEOUT_MS = 900_000
ROLLS_AT_ONCE_MS, CLEANER_BACKOFF_S = 1000, 15.0
ENDING = {"PrepareCommit": "CompleteCommit", "PrepareAbort": "CompleteAbort"}
Group = RawGroup | Callable[[], RawGroup]


@dataclass(slots=True)
class FakeTransaction:
    """One transactional id at its coordinator; `looks_left` is how often its end still looks unfinished."""

    producer_id: int
    producer_epoch: int
    state: str = "Empty"
    timeout_ms: int = 60_000
    started_ms: int = -1
    partitions: set[tuple[str, int]] = field(default_factory=set)
    looks_left: int = 0


class BrokerState:
    """Shared by all brokers of a fake cluster.

    `late_markers` is how many looks at a transaction (the bounds of its partitions, InitProducerId of its id) come
    between the answer to its end and its markers: 0 writes them at once. `stamp_ms` is the time of the last record, and
    each is a second younger. `loading` are partitions of `__transaction_state` that are not read yet; no broker leads
    the `leaderless` ones of any topic. Replicas are on brokers that are `gone`, or are `lagging`: not in sync. A group
    may be a function that tells who is in it now. With `keeps_log` coordinators write `__transaction_state`. `log_dirs`
    are those of a node where they are not one directory on a disk that is half full.
    """

    def __init__(self, *, cluster_id: str = "fake-cluster-id", brokers: int = 1, clock: Clock | None = None) -> None:
        self.cluster_id, self.clock = cluster_id, clock or Clock()
        self.topics: dict[str, FakeTopic] = {}
        self.transactions: dict[str, FakeTransaction] = {}
        self.groups: dict[str, Group] = {}
        self.settings = {"transaction.max.timeout.ms": str(MAX_TIMEOUT_MS)}
        self.supported = {"metadata.version": 30, "transaction.version": 2}
        self.finalized = dict(self.supported)
        self.nodes = list(range(1, brokers + 1))
        self.moved: dict[str, int] = {}
        self.late_markers = 0
        self.loading: set[int] = set()
        self.leaderless: set[tuple[str, int]] = set()
        self.gone: set[int] = set()
        self.lagging: dict[tuple[str, int], set[int]] = {}
        self.keeps_log = False
        self.log_dirs: dict[int, tuple[LogDir, ...]] = {}
        self.stamp_ms = 1_700_000_000_000
        self.rolled_s: dict[str, float] = {}
        self._producer_ids, self._topic_numbers = itertools.count(1000), itertools.count()

    # -- where things are

    def coordinator(self, key: str) -> int | None:
        """The node that coordinates a key: where it was moved to, else by hash over the nodes that are up.

        With a topic `__transaction_state` it is the leader of the key's partition, as it is for transactional ids.
        """
        if self.moved.get(key) in self.nodes:
            return self.moved[key]
        if TOPIC in self.topics:
            return self.leader_of(
                TOPIC, coordinator_partition(TransactionalId(key), len(self.topics[TOPIC].partitions))
            )
        return self.nodes[zlib.crc32(key.encode()) % len(self.nodes)]

    def leader_of(self, topic: str, partition: int) -> int | None:
        """The node that leads a partition of a topic; None where it is one of the `leaderless`."""
        return None if (topic, partition) in self.leaderless else self.leader(partition)

    def leader(self, partition: int) -> int:
        """The node that leads partition number `partition` of every topic."""
        return self.nodes[partition % len(self.nodes)]

    def placement(self, topic: str, partition: int) -> Placement:
        """Where a partition lies; the last replica in sync stays so when its broker goes, and nobody leads it then."""
        count = self.topics[topic].replication_factor
        brokers = sorted({*self.nodes, *self.gone, *range(1, count + 1)})
        replicas = tuple(brokers[(partition + at) % len(brokers)] for at in range(count))
        out = self.gone | self.lagging.get((topic, partition), set())
        in_sync = tuple(each for each in replicas if each not in out)
        leader = in_sync[0] if in_sync and (topic, partition) not in self.leaderless else None
        offline = tuple(each for each in replicas if each in self.gone)
        return Placement(partition, leader, replicas, in_sync if leader else in_sync[:1] or replicas[:1], offline)

    def is_loading(self, transactional_id: str) -> bool:
        """Whether the id's coordinator still reads its partition of `__transaction_state`."""
        return bool(self.loading) and (
            coordinator_partition(TransactionalId(transactional_id), len(self.topics[TOPIC].partitions)) in self.loading
        )

    def group(self, group_id: str) -> RawGroup | None:
        """The group as its coordinator has it now; None for one that it does not know."""
        known = self.groups.get(group_id)
        return known() if callable(known) else known

    def log_dirs_of(self, node: int) -> tuple[LogDir, ...]:
        """The log directories of a node."""
        return self.log_dirs.get(node, (LogDir("/var/lib/kafka", total_bytes=100 << 30, usable_bytes=50 << 30),))

    # -- topics and their logs

    def add_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None, *, replication_factor: int = 1
    ) -> FakeTopic:
        """A topic, compacted unless its settings say otherwise."""
        given = {"cleanup.policy": "compact"} if config is None else dict(config)
        logs = [FakePartition() for _ in range(partitions)]
        made = FakeTopic(logs, given, f"id-{next(self._topic_numbers)}-{name}", replication_factor)
        self.topics[name] = made
        return made

    def log(self, topic: str, partition: int) -> FakePartition:
        """The log of a partition."""
        return self.topics[topic].partitions[partition]

    def new_producer(self) -> tuple[int, int]:
        """Producer id and epoch of an idempotent producer."""
        return next(self._producer_ids), 0

    def append(self, record: OutRecord, partition: int, producer: tuple[int, int], *, transactional: bool) -> int:
        """A record at the end of a log; returns its offset."""
        self.stamp_ms += 1000
        given_ms = record.timestamp_ms
        stamp_ms = self.stamp_ms if given_ms is None or given_ms < 0 else given_ms
        taken = Record(record.topic, partition, -1, stamp_ms, record.key, record.value, record.headers)
        log = self.log(record.topic, partition)
        if int(self.topics[record.topic].config.get("segment.ms", "604800000")) <= ROLLS_AT_ONCE_MS:
            self.rolled_s.setdefault(record.topic, self.clock.monotonic_s())
        return log.append(taken, producer, now_ms=self.clock.now_ms(), transactional=transactional)

    def clean(self, topic: str) -> None:
        """What the log cleaner has done by now: it takes closed segments where the settings want it at once."""
        ratio = float(self.topics[topic].config.get("min.cleanable.dirty.ratio", "0.5"))
        rolled_s = self.rolled_s.get(topic)
        if rolled_s is not None and ratio == 0 and self.clock.monotonic_s() - rolled_s >= CLEANER_BACKOFF_S:
            del self.rolled_s[topic]
            for log in self.topics[topic].partitions:
                log.compact()

    # -- transactions

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
            self._fence_and_abort(known)
            return codes.CONCURRENT_TRANSACTIONS, -1, -1
        if known.state in ENDING and not self._look(known):
            return codes.CONCURRENT_TRANSACTIONS, -1, -1
        if known.producer_epoch >= EXHAUSTED_EPOCH:
            known.producer_id, known.producer_epoch = next(self._producer_ids), -1
        known.producer_epoch += 1
        known.state, known.timeout_ms, known.started_ms = "Empty", timeout_ms, -1
        self.log_of(transactional_id)
        return codes.NONE, known.producer_id, known.producer_epoch

    def write_in(self, transactional_id: str, producer: tuple[int, int], record: OutRecord, partition: int) -> int:
        """A record of the id's transaction, which begins with its first one; returns its offset, or -1 once fenced."""
        known = self.transactions[transactional_id]
        if producer != (known.producer_id, known.producer_epoch):
            return -1
        if known.state != "Ongoing":
            known.state, known.started_ms = "Ongoing", self.clock.now_ms()
        if (record.topic, partition) not in known.partitions:
            known.partitions.add((record.topic, partition))
            self.log_of(transactional_id)
        return self.append(record, partition, producer, transactional=True)

    def end_transaction(self, transactional_id: str, producer: tuple[int, int], *, commit: bool) -> int:
        """EndTxn: answered before the markers are written; the error code."""
        known = self.transactions[transactional_id]
        if producer != (known.producer_id, known.producer_epoch):
            return codes.INVALID_PRODUCER_EPOCH
        if known.state == "Ongoing":
            self._end(known, "PrepareCommit" if commit else "PrepareAbort")
        return codes.NONE

    def open_transaction(
        self, transactional_id: str, *partitions: tuple[str, int], epoch: int = 0, key: bytes = b"open"
    ) -> int:
        """A producer begins a transaction and writes a record to each partition; returns its producer id."""
        producer_id, _ = self.new_producer()
        self.transactions[transactional_id] = FakeTransaction(producer_id, epoch)
        for topic, partition in partitions:
            there = self.topics.get(topic) or self.add_topic(topic, 0)
            there.partitions += [FakePartition() for _ in range(len(there.partitions), partition + 1)]
            self.write_in(transactional_id, (producer_id, epoch), OutRecord(topic, key, b"value"), partition)
        return producer_id

    def forget(self, transactional_id: str) -> None:
        """The id has expired: its coordinator deletes it."""
        del self.transactions[transactional_id]
        self.log_of(transactional_id)

    def lose_markers(
        self, transactional_id: str, *, written: Collection[tuple[str, int]] = (), commit: bool = True
    ) -> int:
        """The coordinator decides, answers, and writes no marker but on `written`; returns the epoch that it is at now.

        A clean stop of the broker that has the only replica makes Kafka 4.3.1 and 4.4.0 do so ("these partitions are
        likely deleted already and hence can be skipped"). As from KIP-890 on, the decision raises the epoch.
        """
        known = self.transactions[transactional_id]
        word = "Commit" if commit else "Abort"
        known.producer_epoch += 1
        known.state = f"Prepare{word}"
        self.log_of(transactional_id, client_version=2)
        for topic, partition in written:
            self.log(topic, partition).mark((known.producer_id, known.producer_epoch), commit=commit)
        known.state = f"Complete{word}"
        known.partitions.clear()
        self.log_of(transactional_id, client_version=2)
        return known.producer_epoch

    def log_of(self, transactional_id: str, *, client_version: int = 1) -> None:
        """Writes the state of an id to the coordinators' log, or its deletion, if that is kept.

        Most ends here do not raise the epoch, as those of clients before KIP-890 (`client_version` 1) don't.
        """
        if not self.keeps_log:
            return
        partition = coordinator_partition(TransactionalId(transactional_id), len(self.topics[TOPIC].partitions))
        known = self.transactions.get(transactional_id)
        value = log_value(known, client_version=client_version, now_ms=self.clock.now_ms())
        record = OutRecord(TOPIC, log_key(transactional_id), value)
        self.append(record, partition, (-1, -1), transactional=False)

    def expire(self, transactional_id: str) -> None:
        """The transaction was open for longer than its timeout: its coordinator aborts it."""
        self._fence_and_abort(self.transactions[transactional_id])

    def write_markers(self) -> None:
        """Ends every transaction whose end was answered."""
        for known in self.transactions.values():
            if known.state in ENDING:
                self._complete(known)

    def look_at(self, topic: str) -> None:
        """Somebody asks for the bounds of a topic: of transactions whose markers are late, one look less is left."""
        for known in self.transactions.values():
            if known.state in ENDING and any(name == topic for name, _partition in known.partitions):
                self._look(known)

    def _fence_and_abort(self, known: FakeTransaction) -> None:
        known.producer_epoch += 1  # an epoch that nobody is ever given
        self._end(known, "PrepareAbort")

    def _end(self, known: FakeTransaction, state: str) -> None:
        known.state, known.looks_left = state, self.late_markers
        self._log(known)
        if not self.late_markers:
            self._complete(known)

    def _log(self, known: FakeTransaction) -> None:
        for name, each in self.transactions.items():
            if each is known:
                self.log_of(name)

    def _look(self, known: FakeTransaction) -> bool:
        """Whether its markers are there now."""
        if known.looks_left == 0:
            self._complete(known)
            return True
        known.looks_left -= 1
        return False

    def _complete(self, known: FakeTransaction) -> None:
        for topic, partition in known.partitions:
            if topic in self.topics:
                producer = (known.producer_id, known.producer_epoch)
                self.log(topic, partition).mark(producer, commit=known.state == "PrepareCommit")
        known.state = ENDING[known.state]
        known.partitions.clear()
        self._log(known)
