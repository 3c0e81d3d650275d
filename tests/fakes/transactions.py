"""One scene for the commands about transactions: a fake cluster, a worker, and a clock that stands still."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from eosctl.core.records import Record
from eosctl.deadline import Clock
from eosctl.errors import EosctlError
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_cluster import FakeCluster as ConfigCluster
from tests.fakes.config_cluster import config_records, created

NOW_MS = 1_795_000_000_000


@dataclass
class FakeTaskWorker:
    """One Connect worker: the tasks it says there are, as (connector, task) -> state."""

    url: str = "http://w1:8083"
    kafka_cluster_id: str = "fake-cluster-id"
    tasks: dict[tuple[str, int], str] = field(default_factory=dict)
    error: EosctlError | None = None

    def root(self) -> Mapping[str, str]:
        return {"kafka_cluster_id": self.kafka_cluster_id}

    def connectors(self) -> Mapping[str, Mapping[str, object]]:
        if self.error is not None:
            raise self.error
        names = {connector for connector, _task in self.tasks}
        return {
            name: {"status": {"tasks": [self._task(name, t) for c, t in self.tasks if c == name]}} for name in names
        }

    def _task(self, connector: str, task: int) -> dict[str, object]:
        return {"id": task, "state": self.tasks[connector, task], "worker_id": "w1:8083"}


@dataclass
class Scene:
    """Group g, connector orders with two recorded tasks; its task 1 has held a transaction open for 90 s."""

    cluster: FakeCluster
    worker: FakeTaskWorker
    config: ConfigCluster

    @property
    def flags(self) -> list[str]:
        return ["-b", ",".join(self.cluster.bootstrap_servers), "-u", "http://w1:8083", "-g", "g"]

    @property
    def surroundings(self) -> dict[str, Any]:
        """Keyword arguments of `invoke`."""
        doors = {
            "open_worker": lambda _app, _url: self.worker,
            "open_topics": self.config.doors()["open_topics"],
        }
        return {"doors": doors, "clock": Clock(now_s=lambda: NOW_MS / 1000)}


@contextmanager
def scene() -> Iterator[Scene]:
    """The scene, until the block ends."""
    records: list[Record] = config_records(*created("orders", 2, record=2))
    with FakeCluster() as cluster:
        state = cluster.state
        state.transactions["g-orders-0"] = FakeTransaction(7, 4, "CompleteCommit")
        producer_id = state.open_transaction("g-orders-1", ("sink", 0), epoch=8)
        state.transactions["g-orders-1"].started_ms = NOW_MS - 90_000
        state.log("sink", 0).producers[producer_id].last_timestamp_ms = NOW_MS - 90_000
        state.transactions["g-done-0"] = FakeTransaction(9, 1, timeout_ms=30_000)
        yield Scene(cluster, FakeTaskWorker(), ConfigCluster(records))
