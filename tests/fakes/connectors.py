"""A connector of FakeConnect: what the config topic says of it, and what the status topic says, which comes later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
TRACE = "java.lang.RuntimeException: it broke"
STARTED, PAUSED, STOPPED = "STARTED", "PAUSED", "STOPPED"
TARGETS = {"stop": STOPPED, "pause": PAUSED, "resume": STARTED}
SHOWN = {STARTED: "RUNNING", PAUSED: "PAUSED", STOPPED: "STOPPED"}
"""Target state -> the state that REST shows once it is reached."""


class SourceOffsets(Protocol):
    """Where a connector's offsets are, as REST reads and changes them."""

    def read(self, connector: str) -> Sequence[Mapping[str, object]]:
        """The answer's `offsets`."""

    def alter(self, connector: str, offsets: Sequence[Mapping[str, object]]) -> None:
        """What a PATCH does."""


@dataclass
class MemoryOffsets:
    """Connector -> the entries of its answer, in the order of their first mention."""

    of: dict[str, list[Mapping[str, object]]] = field(default_factory=dict)

    def read(self, connector: str) -> Sequence[Mapping[str, object]]:
        return list(self.of.get(connector, ()))

    def alter(self, connector: str, offsets: Sequence[Mapping[str, object]]) -> None:
        named = [entry["partition"] for entry in offsets]
        kept = [entry for entry in self.read(connector) if entry["partition"] not in named]
        self.of[connector] = kept + [entry for entry in offsets if entry["offset"] is not None]


@dataclass
class FakeTask:
    """What the status topic says of one task; `url` is the worker that said it."""

    state: str
    url: str
    trace: str = ""

    def needs_start(self, url: str) -> bool:
        """Whether the worker at `url`, which owns it, has still to start it."""
        return self.url != url or self.state == "UNASSIGNED"


@dataclass
class FakeConnector:
    """`config`, `target` and `task_count` are the config topic's; `state` and `tasks` the status topic's.

    `state` is empty until the connector was started for the first time; `url` is the worker that said it. The next
    rebalance starts the tasks `to_start`. `reconfigured`: new tasks are made once the connector is started.
    `fencing_due`: the newest commit has no task-count record yet. `topics` are those that its tasks have written to.
    """

    config: dict[str, str]
    target: str = STARTED
    task_count: int = 0
    state: str = ""
    url: str = ""
    trace: str = ""
    tasks: dict[int, FakeTask] = field(default_factory=dict)
    to_start: set[int] = field(default_factory=set)
    reconfigured: bool = False
    fencing_due: bool = False
    topics: set[str] = field(default_factory=set)

    @property
    def type(self) -> str:
        """As Connect takes it from the class."""
        return "sink" if "Sink" in self.config["connector.class"] else "source"

    def most_tasks(self) -> int:
        """How many tasks it makes: as many as it may."""
        return int(self.config.get("tasks.max", "1"))

    def failed(self) -> list[int]:
        """Its FAILED tasks."""
        return sorted(number for number, task in self.tasks.items() if task.state == "FAILED")

    def fail(self, *tasks: int, trace: str = TRACE) -> None:
        """Its tasks fail, all of them if none is named."""
        for number in tasks or tuple(self.tasks):
            self.tasks[number].state, self.tasks[number].trace = "FAILED", trace

    def show_restart(self, tasks: Sequence[int], *, itself: bool) -> None:
        """Its workers say that they restart it."""
        if itself:
            self.state, self.trace = "RESTARTING", ""
        for number in tasks:
            if number in self.tasks:
                self.tasks[number].state, self.tasks[number].trace = "RESTARTING", ""

    def write(self) -> None:
        """Its tasks that run have something to write."""
        if "topic" in self.config and any(task.state == "RUNNING" for task in self.tasks.values()):
            self.topics.add(self.config["topic"])

    def heal(self) -> None:
        """Its tasks are as they should be, whoever did that."""
        for task in self.tasks.values():
            task.state, task.trace = SHOWN[self.target], ""

    def expanded(self, name: str) -> Mapping[str, Any]:
        """Its entry in `GET /connectors?expand=info&expand=status`."""
        tasks = [
            {"id": number, "state": task.state, "worker_id": worker_id(task.url)}
            | ({"trace": task.trace} if task.trace else {})
            for number, task in sorted(self.tasks.items())
        ]
        itself = {"state": self.state, "worker_id": worker_id(self.url)}
        return {
            "info": {
                "name": name,
                "config": dict(self.config),
                "tasks": [{"connector": name, "task": number} for number in range(self.task_count)],
                "type": self.type,
            },
            "status": {
                "name": name,
                "connector": itself | ({"trace": self.trace} if self.trace else {}),
                "tasks": tasks,
                "type": self.type,
            },
        }


def worker_id(url: str) -> str:
    """How the status topic names a worker."""
    return url.partition("://")[2].rstrip("/")
