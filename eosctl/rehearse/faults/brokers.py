"""Faults of brokers and of the way to them."""

from __future__ import annotations

from typing import ClassVar

from eosctl.rehearse.faults.fault import Setup, Simple
from eosctl.rehearse.ground import Ground
from eosctl.sandbox.servers import process

_SLOW_S = 8.0
_CUTS = 4


class _Broker(Simple):
    def __init__(self) -> None:
        self._name: str | None = None

    def _choose(self, ground: Ground) -> str:
        self._name = ground.choose.choice([node.name for node in ground.stack.state.of_kind("broker")])
        return self._name

    def undo(self, ground: Ground) -> None:
        """Starts the broker."""
        if self._name is not None and not ground.stack.node(self._name).process.alive():
            ground.stack.start_node(self._name)


class BrokerRestart(_Broker):
    """A broker is stopped as it should be."""

    name: ClassVar[str] = "broker-restart"
    what: ClassVar[str] = "restart a broker"

    def inject(self, ground: Ground) -> None:
        """Waits until it has ended."""
        name = self._choose(ground)
        ground.stack.stop_node(name)
        ground.note(f"stopped {name}")


class BrokerKill(_Broker):
    """A broker is killed."""

    name: ClassVar[str] = "broker-kill"
    what: ClassVar[str] = "kill -9 a broker, and start it again"

    @staticmethod
    def why_not(setup: Setup) -> str:
        """What one broker has not yet written to its disk is lost with it, whoever is exactly-once."""
        return "" if setup.brokers >= 3 else "needs 3 brokers (--brokers 3)"

    def inject(self, ground: Ground) -> None:
        """In the middle of a transaction, if there is one."""
        status = ground.status()
        open_now = ground.await_open_transaction([task.task for task in status.tasks] if status else [])
        name = self._choose(ground)
        process.kill([ground.stack.node(name).process])
        ground.note(f"killed {name} {'with' if open_now else 'without'} an open transaction")


class SlowNetwork(Simple):
    """What passes between workers and brokers is late, and connections are reset now and then."""

    name: ClassVar[str] = "slow-network"
    what: ClassVar[str] = "delay what passes between workers and brokers, and cut their connections"

    def inject(self, ground: Ground) -> None:
        """Some seconds long, with some cuts at moments that are chosen."""
        delay_ms = ground.choose.randrange(100, 400)
        for each in ground.forwarders:
            each.delay_s = delay_ms / 1000
        cut = 0
        for _ in range(_CUTS):
            ground.app.clock.sleep_s(_SLOW_S / _CUTS * ground.choose.uniform(0.5, 1.5))
            cut += sum(each.cut() for each in ground.forwarders)
        if not cut:
            ground.miss("there was no connection to be cut")
        ground.note(f"delayed each packet by {delay_ms} ms for about {_SLOW_S:g} s and cut {cut} connections")

    def undo(self, ground: Ground) -> None:
        """The network is as it was."""
        for each in ground.forwarders:
            each.delay_s = 0.0
