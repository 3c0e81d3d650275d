"""Topics and a Connect worker in memory, for operations on offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.core.client_settings import ClientSettings
from eosctl.core.group_protocol import Assignment, Metadata, encode_assignment, encode_metadata
from eosctl.core.transactions import RawGroup, RawGroupMember
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.ops.app import App
from eosctl.profiles import Target
from tests.fakes.clock import FakeTime
from tests.fakes.topics import FakeTopicStore

GLOBAL, OWN = "connect-offsets", "own"
A, B = b'["c",{"f":"a"}]', b'["c",{"f":"b"}]'


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

    topics: FakeTopicStore = field(default_factory=lambda: FakeTopicStore(cluster_id="memory-cluster"))
    worker: MemoryWorker = field(default_factory=MemoryWorker)
    group: MemoryGroup = field(default_factory=MemoryGroup)
    time: FakeTime = field(default_factory=lambda: FakeTime(1_700_000_000.0))

    def doors(self) -> dict[str, Any]:
        """App's open_* callables."""
        return {
            "open_topics": lambda _app: self.topics,
            "open_worker": lambda _app, _url: self.worker,
            "open_transactions": lambda _app: self.group,
        }

    @property
    def surroundings(self) -> dict[str, Any]:
        """Keyword arguments of `invoke`."""
        return {"doors": self.doors(), "clock": self.time.clock()}

    def app(self, state_dir: Path) -> App:
        """An App for group g that looks at this world."""
        client = ClientSettings(bootstrap_servers=("memory:9092",))
        target = Target(client=client, connect_urls=(self.worker.url,), group_id="g")
        clock = self.time.clock()
        return App(target=target, deadline=Deadline.after(5, clock), state_dir=state_dir, clock=clock, **self.doors())


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
