"""A connector whose fencing round Connect could not finish: broker, topics and worker in memory, and its clock."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.app import App
from eosctl.core.transactions import FENCING_FAILED
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import created
from tests.fakes.connectors import FakeConnector
from tests.fakes.faults import EVERY, Call, Kill
from tests.fakes.world import CONFIGS, World

URL = "http://w0:8083"
CLUSTER = "fake-cluster-id"
TRACE = f"org.apache.kafka.connect.errors.ConnectException: {FENCING_FAILED}"


@dataclass
class Scene(World):
    """Group g on one worker, and a connector c whose newest record is older than its newest commit.

    It had three tasks and has two, both FAILED in zombie fencing. `kill` is told of every call to Kafka and Connect, of
    those that change something after their effect, too. Tasks take their ids when they start, if `tasks_take_ids`.
    """

    tasks_take_ids: bool = True
    kill: Kill = field(default_factory=Kill)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.topics.add_topic(CONFIGS, config={"cleanup.policy": "compact"})
        pairs = [*created("c", 3, record=3), *created("c", 2), ("target-state-c", {"state": "STARTED"})]
        for key, value in pairs:
            self.keep_config(key, value)
        self.connect.add("c", {"tasks.max": "2"}).fail(trace=TRACE)
        for task in range(3):
            self.take_id(task)
        self.connect.after("start_task", self._started)
        for faults in (self.topics, self.connect, self.brokers.calls):
            faults.before(EVERY, self.kill.tick)
        self.topics.after("write", self.kill.tick)
        self.connect.after("restart", self.kill.tick)
        self.brokers.calls.after("fence", self.kill.tick)

    def app(self, state_dir: Path | None = None, *, timeout_s: float = 30.0, **target: Any) -> App:
        """An App that names the workers."""
        urls = tuple(self.connect.modes)
        return super().app(state_dir, timeout_s=timeout_s, **{"connect_urls": urls, **target})

    @property
    def connector(self) -> FakeConnector:
        return self.connect.connectors["c"]

    def _started(self, call: Call) -> None:
        _name, task = call.what
        if self.tasks_take_ids:
            self.take_id(int(str(task)))

    def take_id(self, task: int, *, timeout_ms: int = 60_000) -> None:
        """A task, or a round of Connect's, initialises its id."""
        known = self.brokers.state.transactions.setdefault(f"g-c-{task}", FakeTransaction(100 + task, 0))
        known.producer_epoch += 1
        known.timeout_ms = timeout_ms

    def records(self) -> list[tuple[str | None, bytes | None]]:
        """What eosctl wrote: transactional id and value."""
        return [(transactional_id, record.value) for transactional_id, batch in self.topics.written for record in batch]

    def timeouts(self) -> list[int]:
        """The transaction timeouts of the ids of tasks 0 to 2: they tell who initialised them."""
        return [self.brokers.state.transactions[f"g-c-{task}"].timeout_ms for task in range(3)]

    def commit(self, tasks: int) -> None:
        """The leader commits another set of tasks."""
        self.topics.put(CONFIGS, b"commit-c", json.dumps({"tasks": tasks}, separators=(",", ":")).encode())


def stop(scene: Scene) -> None:
    """Stopped, some time ago."""
    scene.connect.worker().set_state("c", "stop")
    scene.time.sleep(1)
