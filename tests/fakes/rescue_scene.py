"""A connector whose fencing round Connect could not finish: broker, topics and worker in memory, and its clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.core.client_settings import ClientSettings
from eosctl.core.records import OutRecord
from eosctl.core.rescue import FENCING_FAILED
from eosctl.deadline import Deadline
from eosctl.kafka.transaction_admin import NativeTransactionAdmin
from eosctl.ops.app import App
from eosctl.profiles import Target
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.clock import FakeTime
from tests.fakes.config_cluster import CONFIG_TOPIC, created
from tests.fakes.connect_before import FILE_SOURCE, FakeConnect, FakeConnector, FakeConnectWorker
from tests.fakes.faults import KilledError
from tests.fakes.topics import FakeTopicStore

URL = "http://w0:8083"
CLUSTER = "fake-cluster-id"


@dataclass
class Scene:
    """Group g on one worker, and a connector c whose newest record is older than its newest commit.

    `kill_at` breaks the n-th call from outside off, like kill -9: see `Ticking`.
    """

    broker: FakeCluster
    connect: FakeConnect
    topics: FakeTopicStore
    state_dir: Path
    time: FakeTime = field(default_factory=lambda: FakeTime(1_700_000_000.0))
    restarted_take_ids: bool = True
    kill_at: int | None = None
    ticks: int = 0

    def tick(self) -> None:
        """One call from outside."""
        self.ticks += 1
        if self.ticks == self.kill_at:
            raise KilledError

    @property
    def app(self) -> App:
        client = ClientSettings(bootstrap_servers=self.broker.bootstrap_servers)
        clock = self.time.clock()
        return App(
            target=Target(client=client, connect_urls=tuple(self.connect.modes), group_id="g"),
            deadline=Deadline.after(30, clock),
            state_dir=self.state_dir,
            clock=clock,
            open_transactions=self._door(
                lambda app: NativeTransactionAdmin(
                    app.target.require_client(), deadline=Deadline.after(30), on_event=app.on_event
                )
            ),
            open_topics=self._door(lambda _app: self.topics),
            open_worker=self._door(lambda app, url: RestartingWorker(self, self.connect.open_worker(app, url))),
        )

    def _door(self, open_it: Callable[..., object]) -> Callable[..., Any]:
        return lambda *asked: Ticking(self, open_it(*asked))

    def set_group(self, state: str = "Stable") -> None:
        """Tells the coordinator who is in the group."""
        self.broker.state.groups["g"] = self.connect.raw_group("g", state=state)

    def empty_group(self) -> None:
        self.connect.modes.clear()
        self.set_group()

    def take_id(self, task: int, *, timeout_ms: int = 60_000) -> None:
        """A task, or a round of Connect's, initialises its id."""
        known = self.broker.state.transactions.setdefault(f"g-c-{task}", FakeTransaction(100 + task, 0))
        known.producer_epoch += 1
        known.timeout_ms = timeout_ms

    def records(self) -> list[tuple[str | None, bytes | None]]:
        """What eosctl wrote: transactional id and value."""
        return [(transactional_id, record.value) for transactional_id, batch in self.topics.written for record in batch]


class Ticking:
    """A port whose calls count as calls from outside, those that change something after their effect, too."""

    def __init__(self, scene: Scene, port: Any) -> None:
        self._scene, self._port = scene, port

    def __enter__(self) -> Ticking:
        self._port.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._port.__exit__(*exc)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._port, name)
        return self._counted(name, member) if callable(member) else member

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **how: Any) -> Any:
            self._scene.tick()
            answer = call(*args, **how)
            if name in ("write", "restart"):
                self._scene.tick()
            return self._answers(answer) if isinstance(answer, Iterator) else answer

        return counted

    def _answers(self, answers: Iterator[Any]) -> Iterator[Any]:
        for answer in answers:
            self._scene.tick()
            yield answer


@dataclass
class RestartingWorker:
    """A worker whose restarted tasks take their ids."""

    scene: Scene
    worker: FakeConnectWorker

    def __getattr__(self, name: str) -> object:
        return getattr(self.worker, name)

    def restart(self, connector: str, *, only_failed: bool = True) -> None:
        failed = sorted(self.scene.connect.connectors[connector].failed)
        self.worker.restart(connector, only_failed=only_failed)
        for task in failed if self.scene.restarted_take_ids else ():
            self.scene.take_id(task)


@contextmanager
def rescue_scene(state_dir: Path) -> Iterator[Scene]:
    """c had three tasks and has two, both FAILED in zombie fencing."""
    connect = FakeConnect({URL: "enabled"}, kafka_cluster_id=CLUSTER)
    config = {"connector.class": FILE_SOURCE, "tasks.max": "2", "name": "c"}
    trace = f"org.apache.kafka.connect.errors.ConnectException: {FENCING_FAILED}"
    connect.connectors["c"] = FakeConnector(config, failed={0, 1}, trace=trace)
    topics = FakeTopicStore(cluster_id=CLUSTER)
    topics.add_topic(CONFIG_TOPIC, config={"cleanup.policy": "compact"})
    pairs = [*created("c", 3, record=3), *created("c", 2), ("target-state-c", {"state": "STARTED"})]
    for key, value in pairs:
        topics.write([OutRecord(CONFIG_TOPIC, key.encode(), json.dumps(value).encode())])
    topics.written.clear()
    with FakeCluster() as broker:
        built = Scene(broker, connect, topics, state_dir)
        for task in range(3):
            built.take_id(task)
        built.set_group()
        yield built


def stop(scene: Scene) -> None:
    """As PUT /stop leaves it."""
    scene.connect.connectors["c"].state = "STOPPED"
    for key, value in (("commit-c", b'{"tasks":0}'), ("target-state-c", b'{"state":"PAUSED","state.v2":"STOPPED"}')):
        scene.topics.write([OutRecord(CONFIG_TOPIC, key.encode(), value)])
    scene.topics.written.clear()
