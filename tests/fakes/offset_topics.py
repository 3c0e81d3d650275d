"""Topics and a Connect worker in memory: compacted topics that a test can edit, for operations on offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eosctl.core.murmur2 import partition_for
from eosctl.core.records import Bounds, OutRecord, Record, TopicDescription, TopicRead, Written
from eosctl.core.transactions import RawGroup, RawGroupMember
from eosctl.errors import EosctlError, NotFoundError


@dataclass
class MemoryTopics:
    """Every partition is a list of records; `clock_ms` stamps what is written and ticks with each record.

    `open_transactions` maps (topic, partition) to the offset where one is open: what lies there is invisible.
    `fail_writes_after` lets that many records through and then fails, once.
    """

    topics: dict[str, list[list[Record]]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    open_transactions: dict[tuple[str, int], int] = field(default_factory=dict)
    clock_ms: int = 1_700_000_000_000
    fail_writes_after: int | None = None
    writes: int = 0

    def __enter__(self) -> MemoryTopics:
        return self

    def __exit__(self, *_exc: object) -> None: ...

    def cluster_id(self) -> str:
        return "memory-cluster"

    def create(self, topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        assert config == {"cleanup.policy": "compact"}
        assert replication_factor == 3
        self.add_topic(topic, partitions)

    def add_topic(self, topic: str, partitions: int) -> None:
        """Creates, or recreates under another topic id."""
        self.topics[topic] = [[] for _ in range(partitions)]
        self.ids[topic] = f"id-{len(self.ids)}-{topic}"

    def put(self, topic: str, key: bytes | None, value: bytes | None, *, partition: int | None = None) -> Record:
        """Appends one record, where Connect's producer would unless told otherwise."""
        logs = self.topics[topic]
        chosen = partition_for(key or b"", len(logs)) if partition is None else partition
        record = Record(topic, chosen, len(logs[chosen]), self.clock_ms, key, value)
        logs[chosen].append(record)
        self.clock_ms += 1000
        return record

    def newest(self, topic: str) -> dict[bytes | None, bytes | None]:
        """Key -> value of the newest record, tombstones included."""
        return {record.key: record.value for log in self.topics[topic] for record in log}

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicDescription]:
        return {
            name: TopicDescription(name, self.ids[name], len(self.topics[name]), 3)
            for name in topics
            if name in self.topics
        }

    def bounds(self, topic: str) -> tuple[Bounds, ...]:
        if topic not in self.topics:
            raise NotFoundError(f"there is no topic {topic}")
        return tuple(
            Bounds(at, 0, self.open_transactions.get((topic, at), len(log)), len(log))
            for at, log in enumerate(self.topics[topic])
        )

    def read(self, topic: str, *, isolation: str = "read_committed", newest_per_key: bool = False) -> TopicRead:
        assert isolation == "read_committed"
        bounds = self.bounds(topic)
        visible = [record for bound in bounds for record in self.topics[topic][bound.partition][: bound.lso]]
        newest = {(record.partition, record.key): record for record in visible}
        kept = [r for r in visible if not newest_per_key or newest[r.partition, r.key] is r]
        return TopicRead(topic, bounds, tuple(kept), len(visible))

    def write(self, records: Iterable[OutRecord], *, transactional_id: str | None = None) -> Sequence[Written]:
        written = []
        for count, record in enumerate(records):
            if count == self.fail_writes_after:
                self.fail_writes_after = None
                raise EosctlError("the broker went away")
            there = self.put(record.topic, record.key, record.value, partition=record.partition)
            written.append(Written(there.topic, there.partition, there.offset))
        self.writes += len(written)
        return written


@dataclass
class MemoryWorker:
    """The REST interface of one worker: connectors with their config, state and task states."""

    url: str = "http://worker:8083"
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    failure: EosctlError | None = None

    def add(self, connector: str, *, state: str = "STOPPED", tasks: int = 0, **config: str) -> None:
        """A source connector; property names are given with _ for the dots."""
        dotted = {name.replace("_", "."): value for name, value in config.items()}
        running = [{"id": task, "state": "RUNNING", "worker_id": "w"} for task in range(tasks)]
        status = {"name": connector, "connector": {"state": state, "worker_id": "w"}, "tasks": running}
        self.known[connector] = {"info": {"name": connector, "config": dotted}, "status": {**status, "type": "source"}}

    def connectors(self) -> Mapping[str, Mapping[str, object]]:
        if self.failure is not None:
            raise self.failure
        return self.known


@dataclass
class MemoryGroup:
    """DescribeGroups' answer: `members` of them."""

    members: int = 0

    def __enter__(self) -> MemoryGroup:
        return self

    def __exit__(self, *_exc: object) -> None: ...

    def describe_group(self, group_id: str) -> RawGroup:
        there = tuple(RawGroupMember(f"m{n}", "c", "h", b"", b"") for n in range(self.members))
        return RawGroup(group_id, "Stable" if there else "Empty", "connect", "sessioned", there)


@dataclass
class OffsetWorld:
    """All of it, and the doors that make an App look at it; no tick of the clock is real."""

    topics: MemoryTopics = field(default_factory=MemoryTopics)
    worker: MemoryWorker = field(default_factory=MemoryWorker)
    group: MemoryGroup = field(default_factory=MemoryGroup)

    def doors(self) -> dict[str, Any]:
        """App's open_* callables."""
        return {
            "open_topics": lambda _app: self.topics,
            "open_worker": lambda _app, _url: self.worker,
            "open_transactions": lambda _app: self.group,
        }
