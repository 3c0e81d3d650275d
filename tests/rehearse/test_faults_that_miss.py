"""Faults say by themselves whether they hit: a row without that proves nothing."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eosctl.rehearse.faults.connectors import Reconfigure, RestartTasks, RollWorkers, StopResume, SwitchOffsets, Upgrade
from eosctl.rehearse.faults.fault import BrokerKill, FreezeWorker, KillWorker, Rebalance, SimpleFault, SlowNetwork
from eosctl.rehearse.ground import Forwarder
from eosctl.sandbox.servers import process
from eosctl.sandbox.servers.process import Node
from tests.audit.log_scene import OUT, LogScene
from tests.fakes.clock import FakeTime
from tests.fakes.world import World
from tests.rehearse.test_internal_topics import ground_on
from tests.sandbox_fixtures import wait_until


@dataclass
class OneWorker:
    """A ground with one worker, which is a process of its own."""

    node: Node
    tasks: list[int]
    has_open_transaction: bool = True
    app: Any = field(default_factory=lambda: World(time=FakeTime(0.0)).app())
    choose: random.Random = field(default_factory=random.Random)
    frozen: set[str] = field(default_factory=set)
    missed: list[str] = field(default_factory=list)
    required: list[tuple[list[int], bool]] = field(default_factory=list)
    forwarders: tuple[Forwarder, ...] = ()

    def busy_worker(self) -> Node:
        return self.node

    def tasks_of(self, _node: Node) -> list[int]:
        return self.tasks

    def await_open_transaction(self, tasks: list[int]) -> bool:
        return bool(tasks) and self.has_open_transaction

    def freeze_in_transaction(self, _node: Node, tasks: list[int]) -> bool:
        return self.await_open_transaction(tasks)

    def miss(self, why: str) -> None:
        self.missed.append(why)

    def note(self, _text: str) -> None:
        return

    def require_traces(self, tasks: list[int], *, aborted: bool = False) -> None:
        self.required.append((tasks, aborted))

    def all_tasks(self) -> list[int]:
        return self.tasks

    def wait_for(self, _what: str, _done: object) -> None:
        return

    def is_well(self) -> bool:
        return True

    def workers(self) -> list[Node]:
        return []

    @property
    def stack(self) -> OneWorker:
        return self

    def stop_node(self, _name: str) -> None:
        process.kill([self.node.process])


class OneBroker(OneWorker):
    """The process is a broker, and nobody starts it again."""

    @property
    def state(self) -> OneBroker:
        return self

    def of_kind(self, _kind: str) -> list[Node]:
        return [self.node]

    def node_named(self, _name: str) -> Node:
        return self.node

    @property
    def stack(self) -> Any:
        return SimpleNamespace(state=self, node=self.node_named)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Node]:
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    started = process.spawn(sleeps, log=tmp_path / "log", directory=tmp_path, environ=os.environ)
    yield Node("w-0", "worker", "http://127.0.0.1:1", started.pid, started.start_ticks, "", "")
    process.kill([started])


@pytest.mark.parametrize(
    ("kind", "tasks", "is_open", "missed"),
    [
        (KillWorker, [0], True, []),
        (KillWorker, [0], False, ["w-0 had no open transaction"]),
        (KillWorker, [], True, ["w-0 had no open transaction"]),
        (FreezeWorker, [0], False, []),
        (FreezeWorker, [], True, ["w-0 had no tasks"]),
        (Rebalance, [0], True, []),
        (Rebalance, [], True, ["w-0 had no tasks"]),
    ],
)
def test_a_worker_with_nothing_to_lose_is_a_miss(
    worker: Node, kind: type[SimpleFault], tasks: list[int], is_open: bool, missed: list[str]
) -> None:
    """It was a note in the evidence only."""
    ground: Any = OneWorker(worker, tasks, is_open)
    fault: Any = kind()
    fault.inject(ground)
    assert ground.missed == missed
    fault.verify(ground)
    assert ground.required == [(tasks, kind is KillWorker and is_open and bool(tasks))]


@pytest.mark.parametrize("kind", [RestartTasks, StopResume, Reconfigure, SwitchOffsets, RollWorkers, Upgrade])
def test_each_task_that_was_restarted_must_have_taken_its_transactional_id(kind: Any, worker: Node) -> None:
    """That a command was carried out was enough."""
    ground: Any = OneWorker(worker, [0, 1])
    kind().verify(ground)
    assert ground.required == [([0, 1], False)]


def test_more_tasks_that_are_none_are_a_miss() -> None:
    """A connector may have one task whatever tasks.max is: more, then fewer, never happened."""
    missed: list[str] = []
    rest = SimpleNamespace(connector_config=lambda _name: {}, put_connector_config=lambda *_: None)
    app = SimpleNamespace(
        target=SimpleNamespace(connect_urls=("http://w",)),
        worker=lambda _url: rest,
        deadline=SimpleNamespace(timeout_s=1),
    )
    ground: Any = SimpleNamespace(
        config={"tasks.max": "1"}, app=app, app_now=lambda: app, connector="lines", await_well=lambda **_: 0.0,
        status=lambda: SimpleNamespace(tasks=[0]), note=lambda _text: None, miss=missed.append,
    )  # fmt: skip
    Reconfigure().inject(ground)
    assert missed == ["the connector has 1 task whatever tasks.max is"]


@pytest.mark.parametrize(("is_open", "missed"), [(True, []), (False, ["no transaction was open"])])
def test_a_broker_that_is_killed_between_transactions_is_a_miss(worker: Node, is_open: bool, missed: list[str]) -> None:
    """It was a note in the evidence only."""
    ground: Any = OneBroker(worker, [0], is_open)
    fault = BrokerKill()
    fault.inject(ground)
    assert ground.missed == missed
    fault.verify(ground)
    assert ground.missed == [*missed, "w-0 did not end"]


def test_a_network_without_connections_is_a_miss(worker: Node) -> None:
    ground: Any = OneWorker(worker, [0], forwarders=(Forwarder(),))
    try:
        SlowNetwork().inject(ground)
    finally:
        ground.forwarders[0].close()
    assert ground.missed == ["there was no connection to be cut"]


def _is_stopped(node: Node) -> bool:
    return Path(f"/proc/{node.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize(
    ("ends_after_s", "is_open"),
    [(None, True), (0.0, False), (0.05, False)],
    ids=["stays open", "is over", "is just being committed"],
)
def test_a_worker_is_killed_in_a_transaction_that_can_not_end_any_more(
    worker: Node, ends_after_s: float | None, is_open: bool
) -> None:
    """A look before the kill was enough: short transactions were over when it came."""
    scene = LogScene()
    task = scene.task()
    task.write(OUT, b"k", b"v")
    ground = ground_on(scene)
    if ends_after_s is not None:
        scene.time.later(ends_after_s, task.end)
        scene.time.pass_until(scene.time.now_s)
    assert ground.freeze_in_transaction(worker, [0]) is is_open
    wait_until(lambda: _is_stopped(worker) is is_open, what="the signal to arrive")
