"""Faults say by themselves whether they hit: a row without that proves nothing."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eosctl.rehearse.faults.brokers import SlowNetwork
from eosctl.rehearse.faults.fault import Simple
from eosctl.rehearse.faults.workers import FreezeWorker, KillWorker, Rebalance
from eosctl.rehearse.network import Forwarder
from eosctl.sandbox.servers import process
from eosctl.sandbox.state import Node
from tests.fakes.clock import FakeTime
from tests.fakes.world import World


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
    forwarders: tuple[Forwarder, ...] = ()

    def busy_worker(self) -> Node:
        return self.node

    def tasks_of(self, _node: Node) -> list[int]:
        return self.tasks

    def await_open_transaction(self, tasks: list[int]) -> bool:
        return bool(tasks) and self.has_open_transaction

    def miss(self, why: str) -> None:
        self.missed.append(why)

    def note(self, _text: str) -> None:
        return

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
    worker: Node, kind: type[Simple], tasks: list[int], is_open: bool, missed: list[str]
) -> None:
    """It was a note in the evidence only."""
    ground: Any = OneWorker(worker, tasks, is_open)
    kind().inject(ground)  # type: ignore[attr-defined]  # each kind has it
    assert ground.missed == missed


def test_a_network_without_connections_is_a_miss(worker: Node) -> None:
    ground: Any = OneWorker(worker, [0], forwarders=(Forwarder(),))
    try:
        SlowNetwork().inject(ground)
    finally:
        ground.forwarders[0].close()
    assert ground.missed == ["there was no connection to be cut"]
