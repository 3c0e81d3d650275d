"""One scene for the commands about transactions: brokers that listen, a worker, and a transaction that hangs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from eosctl.deadline import Clock
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.clock import FakeTime
from tests.fakes.config_topic import created
from tests.fakes.world import CONFIGS, World

NOW_MS = 1_795_000_000_000
W1 = "http://w1:8083"


@dataclass
class Scene(World):
    """Group g, connector orders with two recorded tasks; its task 1 has held a transaction open for 90 s."""

    modes: dict[str, str] = field(default_factory=lambda: {W1: "enabled"})
    nodes: int = 1
    time: FakeTime = field(default_factory=lambda: FakeTime(NOW_MS / 1000 - 90))

    def __post_init__(self) -> None:
        super().__post_init__()
        state = self.brokers.state
        state.transactions["g-orders-0"] = FakeTransaction(7, 4, "CompleteCommit")
        state.open_transaction("g-orders-1", ("sink", 0), epoch=8)
        state.transactions["g-done-0"] = FakeTransaction(9, 1, timeout_ms=30_000)
        self.time.now_s = NOW_MS / 1000
        self.topics.add_topic(CONFIGS, 1)
        for key, value in created("orders", 2, record=2):
            self.keep_config(key, value)

    @property
    def flags(self) -> list[str]:
        return ["-b", ",".join(self.brokers.bootstrap_servers), "-u", W1, "-g", "g"]

    def doors(self) -> dict[str, Any]:
        """App's own way to the brokers, which listen."""
        doors = super().doors()
        del doors["open_transactions"]
        return doors

    def clock(self) -> Clock:
        """The time of day stands still; what waits for sockets has real time."""
        return Clock(now_s=lambda: self.time.now_s)


@contextmanager
def scene() -> Iterator[Scene]:
    """The scene, until the block ends."""
    built = Scene()
    with built.brokers:
        yield built
