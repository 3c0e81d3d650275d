"""Topics and a Connect worker in memory: compacted topics that a test can edit, for operations on offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.core.client_settings import ClientSettings
from eosctl.core.group_protocol import Assignment, Metadata, encode_assignment, encode_metadata
from eosctl.core.records import OutRecord, Record, Written
from eosctl.core.transactions import RawGroup, RawGroupMember
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.ops.app import App
from eosctl.profiles import Target
from tests.fakes.topics import FakeTopicStore

GLOBAL, OWN = "connect-offsets", "own"
A, B = b'["c",{"f":"a"}]', b'["c",{"f":"b"}]'


class MemoryTopics(FakeTopicStore):
    """A FakeTopicStore with a hand on it: `put` writes as others would, and each record is a second younger.

    `fail_writes_after` takes that many more writes and breaks off in the next one with `failure`, once: of a
    transaction then nothing is committed. `lose_answer` raises that error after the next write was done. `writes`
    counts the records that came through `write`.
    """

    def __init__(self, *, cluster_id: str = "memory-cluster") -> None:
        super().__init__(cluster_id=cluster_id)
        self.fail_writes_after: int | None = None
        self.failure = EosctlError("the broker went away")
        self.lose_answer: EosctlError | None = None
        self.writes = 0

    def put(self, topic: str, key: bytes | None, value: bytes | None, *, partition: int | None = None) -> Record:
        """Appends one record, where Connect's producer would unless told otherwise."""
        out = OutRecord(topic, key, value, partition=0 if key is None else partition)
        self._append(out, self._partition(out))
        return self.topics[topic].partitions[self._partition(out)].records[-1]

    def records(self, topic: str) -> list[Record]:
        """All records but aborted ones, the oldest first."""
        logs = self.topics[topic].partitions
        there = (record for log in logs for record in log.records if record.offset not in log.aborted)
        return sorted(there, key=lambda record: record.timestamp_ms)

    def newest(self, topic: str) -> dict[bytes | None, bytes | None]:
        """Key -> value of the newest record, tombstones included."""
        return {record.key: record.value for record in self.records(topic)}

    def write(self, records: Iterable[OutRecord], *, transactional_id: str | None = None) -> Sequence[Written]:
        wanted = tuple(records)
        if self.fail_writes_after is not None:
            self.fail_writes_after -= 1
        if self.fail_writes_after == -1:
            self.fail_writes_after = None
            if transactional_id is not None:
                self.write_aborted(wanted[: len(wanted) // 2 + 1])
            raise self.failure
        written = super().write(wanted, transactional_id=transactional_id)
        self.writes += len(written)
        if self.lose_answer is not None:
            error, self.lose_answer = self.lose_answer, None
            raise error
        return written

    def _append(self, record: OutRecord, partition: int) -> Written:
        self._now_ms += 1000
        return super()._append(record, partition)


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

    def root(self) -> Mapping[str, str]:
        return {"kafka_cluster_id": "memory-cluster"}

    def connectors(self) -> Mapping[str, Mapping[str, object]]:
        if self.failure is not None:
            raise self.failure
        return self.known


@dataclass
class MemoryGroup:
    """The Connect group's members, by the URLs that they advertise."""

    urls: tuple[str, ...] = ()

    def __enter__(self) -> MemoryGroup:
        return self

    def __exit__(self, *_exc: object) -> None: ...

    def cluster_id(self) -> str:
        return "memory-cluster"

    def describe_producers(self, partitions: Iterable[tuple[str, int]]) -> Mapping[tuple[str, int], Sequence[Any]]:
        """No broker tells who writes."""
        return {place: [] for place in partitions}

    def describe_group(self, group_id: str) -> RawGroup:
        assignment = (
            encode_assignment(Assignment(2, 0, f"member {self.urls[0]}", self.urls[0], 7)) if self.urls else b""
        )
        members = tuple(
            RawGroupMember(f"member {url}", "c", "h", encode_metadata(Metadata(2, url, 7)), assignment)
            for url in self.urls
        )
        return RawGroup(group_id, "Stable" if members else "Empty", "connect", "sessioned", members)


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

    def app(self, state_dir: Path) -> App:
        """An App for group g that looks at this world."""
        client = ClientSettings(bootstrap_servers=("memory:9092",))
        target = Target(client=client, connect_urls=(self.worker.url,), group_id="g")
        return App(target=target, deadline=Deadline.after(5), state_dir=state_dir, **self.doors())


def merge_world() -> OffsetWorld:
    """Connector c, STOPPED: a merge into its topic OWN writes A there, and deletes B."""
    world = OffsetWorld()
    world.topics.add_topic(GLOBAL, 5)
    world.topics.add_topic(OWN, 5)
    world.topics.put(OWN, B, b"2")
    world.topics.put(GLOBAL, A, b"1")
    world.topics.put(GLOBAL, B, None)
    world.worker.add("c", offsets_storage_topic=OWN)
    return world
