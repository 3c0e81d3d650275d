"""An in-memory TopicStore; tests/contract/test_topic_store.py runs the same suite on it and on a real broker."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from eosctl.core.murmur2 import partition_for
from eosctl.core.records import Bounds, NewTopic, OutRecord, Record, TopicDescription, TopicRead, Written
from eosctl.errors import BrokerError, DeadlineError, EosctlError, NotFoundError, UnreachableError, UsageError


@dataclass
class FakePartition:
    """A log: `end` also counts offsets that hold control markers; `open_from` is where an open transaction begins.

    `aborted` are the offsets of records that readers of committed ones never see.
    """

    records: list[Record] = field(default_factory=list)
    aborted: set[int] = field(default_factory=set)
    end: int = 0
    open_from: int | None = None

    @property
    def lso(self) -> int:
        return self.end if self.open_from is None else self.open_from


@dataclass
class FakeTopic:
    partitions: list[FakePartition]
    config: dict[str, str]
    topic_id: str
    replication_factor: int = 1


class FakeTopicStore:
    """Topics in a dict; `add_topic`, `open_transaction` and `fail_next` are the knobs, `written` the log of writes."""

    def __init__(self, *, cluster_id: str = "fake-cluster", now_ms: int = 1_700_000_000_000) -> None:
        self.topics: dict[str, FakeTopic] = {}
        self.written: list[tuple[str | None, tuple[OutRecord, ...]]] = []
        self._cluster_id, self._now_ms = cluster_id, now_ms
        self._failures: dict[str, EosctlError] = {}
        self.brokers = 3
        self.settings = {"transaction.max.timeout.ms": "900000"}

    def __enter__(self) -> FakeTopicStore:
        return self

    def __exit__(self, *_exc: object) -> None:
        return None

    def add_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """A topic that is there from the start."""
        logs = [FakePartition() for _ in range(partitions)]
        self.topics[name] = FakeTopic(logs, dict(config or {}), f"id-{len(self.topics)}-{name}")

    def open_transaction(self, topic: str, partition: int) -> None:
        """From here on an open transaction holds back the LSO of that partition."""
        log = self._topic(topic).partitions[partition]
        log.open_from = log.end

    def close_transaction(self, topic: str, partition: int) -> None:
        """Commits it: a control marker takes one offset."""
        log = self._topic(topic).partitions[partition]
        log.open_from, log.end = None, log.end + 1

    def write_aborted(self, records: Iterable[OutRecord]) -> None:
        """A transaction that was begun with `records` and aborted."""
        answer = [self._append(record, self._partition(record)) for record in records]
        for written in answer:
            self.topics[written.topic].partitions[written.partition].aborted.add(written.offset)
        for topic, partition in {(written.topic, written.partition) for written in answer}:
            self.topics[topic].partitions[partition].end += 1

    def fail_next(self, method: str, error: EosctlError) -> None:
        """The next call of `method` raises `error`."""
        self._failures[method] = error

    def cluster_id(self) -> str:
        self._maybe_fail("cluster_id")
        return self._cluster_id

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicDescription]:
        self._maybe_fail("describe")
        found = {name: self.topics[name] for name in sorted(set(topics)) if name in self.topics}
        return {
            name: TopicDescription(
                name, topic.topic_id, len(topic.partitions), topic.replication_factor, dict(topic.config)
            )
            for name, topic in found.items()
        }

    def broker_settings(self, name: str) -> Mapping[int, str]:
        self._maybe_fail("broker_settings")
        return {1: self.settings[name]} if name in self.settings else {}

    def create(self, topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        self._maybe_fail("create")
        self._check_creatable(NewTopic(topic, partitions, replication_factor, config))
        self.add_topic(topic, partitions, config)
        self.topics[topic].replication_factor = replication_factor

    def create_all(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Mapping[str, EosctlError]:
        self._maybe_fail("create_all")
        refused: dict[str, EosctlError] = {}
        for new in topics:
            try:
                self._check_creatable(new)
                if not validate_only:
                    self.create(
                        new.topic,
                        partitions=new.partitions,
                        replication_factor=new.replication_factor,
                        config=new.config,
                    )
            except (UnreachableError, DeadlineError):
                raise
            except EosctlError as exc:
                refused[new.topic] = exc
        return refused

    def bounds_of(self, topics: Collection[str]) -> Mapping[str, tuple[Bounds, ...]]:
        return {topic: self.bounds(topic) for topic in topics}

    def bounds(self, topic: str) -> tuple[Bounds, ...]:
        self._maybe_fail("bounds")
        return tuple(Bounds(p, 0, log.lso, log.end) for p, log in enumerate(self._topic(topic).partitions))

    def read(self, topic: str, *, isolation: str = "read_committed", newest_per_key: bool = False) -> TopicRead:
        self._maybe_fail("read")
        bounds = self.bounds(topic)
        records: list[Record] = []
        count = 0
        for bound, log in zip(bounds, self._topic(topic).partitions, strict=True):
            stop, hidden = (bound.lso, log.aborted) if isolation == "read_committed" else (bound.end, frozenset())
            visible = [record for record in log.records if record.offset < stop and record.offset not in hidden]
            count += len(visible)
            records += _newest(visible) if newest_per_key else visible
        return TopicRead(topic, bounds, tuple(records), count)

    def write(self, records: Iterable[OutRecord], *, transactional_id: str | None = None) -> Sequence[Written]:
        self._maybe_fail("write")
        wanted = tuple(records)
        placed = [(record, self._partition(record)) for record in wanted]
        self.written.append((transactional_id, wanted))
        answer = [self._append(record, partition) for record, partition in placed]
        if transactional_id is not None:
            for topic, partition in {(written.topic, written.partition) for written in answer}:
                self.topics[topic].partitions[partition].end += 1
        return answer

    def _append(self, record: OutRecord, partition: int) -> Written:
        log = self.topics[record.topic].partitions[partition]
        timestamp_ms = self._now_ms if record.timestamp_ms is None else record.timestamp_ms
        log.records.append(
            Record(record.topic, partition, log.end, timestamp_ms, record.key, record.value, record.headers)
        )
        log.end += 1
        return Written(record.topic, partition, log.end - 1)

    def _partition(self, record: OutRecord) -> int:
        partitions = len(self._topic(record.topic).partitions)
        if record.partition is None:
            if record.key is None:
                raise UsageError(f"a record for topic {record.topic} has neither a key nor a partition")
            return partition_for(record.key, partitions)
        if not 0 <= record.partition < partitions:
            raise UsageError(f"topic {record.topic} has {partitions} partitions, no number {record.partition}")
        return record.partition

    def _check_creatable(self, new: NewTopic) -> None:
        if new.topic in self.topics:
            raise BrokerError(f"creating topic {new.topic} failed: TOPIC_ALREADY_EXISTS")
        if new.replication_factor > self.brokers:
            raise BrokerError(f"creating topic {new.topic} failed: INVALID_REPLICATION_FACTOR")

    def _topic(self, name: str) -> FakeTopic:
        if name not in self.topics:
            raise NotFoundError(f"topic {name} does not exist")
        return self.topics[name]

    def _maybe_fail(self, method: str) -> None:
        error = self._failures.pop(method, None)
        if error is not None:
            raise error


def _newest(records: Sequence[Record]) -> list[Record]:
    last = {record.key: record.offset for record in records}
    return [record for record in records if record.key is None or last[record.key] == record.offset]
