"""Faults of brokers and of the way to them."""

from __future__ import annotations

from typing import ClassVar

from eosctl.rehearse.faults.fault import Setup, SimpleFault
from eosctl.rehearse.ground import Ground
from eosctl.sandbox.servers import process
from eosctl.sandbox.state import Node

_SLOW_S = 8.0
_CUTS = 4


class _Broker(SimpleFault):
    def __init__(self) -> None:
        self._node: Node | None = None

    @staticmethod
    def why_not(setup: Setup) -> str:
        """Refuse sandboxes in which brokers lose what is not on disk, and markers of committed transactions.

        Nothing of that is the connector's.
        """
        if setup.brokers < 3:
            return "needs 3 brokers (--brokers 3)"
        return "needs topics with more than one replica" if setup.single_replicas else ""

    def _choose(self, ground: Ground) -> Node:
        self._node = ground.choose.choice(ground.stack.state.of_kind("broker"))
        return self._node

    def undo(self, ground: Ground) -> None:
        """Start the broker."""
        if self._node is not None and not ground.stack.node(self._node.name).process.alive():
            ground.stack.start_node(self._node.name)

    def verify(self, ground: Ground) -> None:
        """Require that another process runs now."""
        if self._node is not None and ground.stack.node(self._node.name).process == self._node.process:
            ground.miss(f"{self._node.name} did not end")


class BrokerRestart(_Broker):
    """A fault that stops a broker in an orderly way and starts it again."""

    name: ClassVar[str] = "broker-restart"
    what: ClassVar[str] = "restart a broker"

    def inject(self, ground: Ground) -> None:
        """Stop a broker and wait until it has ended."""
        node = self._choose(ground)
        ground.stack.stop_node(node.name)
        ground.note(f"stopped {node.name}")


class BrokerKill(_Broker):
    """A fault that kills a broker."""

    name: ClassVar[str] = "broker-kill"
    what: ClassVar[str] = "kill -9 a broker, and start it again"

    def inject(self, ground: Ground) -> None:
        """Kill a broker in the middle of a transaction, if there is one."""
        open_now = ground.await_open_transaction(ground.all_tasks())
        node = self._choose(ground)
        process.kill([node.process])
        if not open_now:
            ground.miss("no transaction was open")
        ground.note(f"killed {node.name} {'with' if open_now else 'without'} an open transaction")


class SlowNetwork(SimpleFault):
    """A fault that delays the traffic between workers and brokers, and resets connections now and then."""

    name: ClassVar[str] = "slow-network"
    what: ClassVar[str] = "delay what passes between workers and brokers, and cut their connections"

    def inject(self, ground: Ground) -> None:
        """Delay the traffic for some seconds, with some cuts at random moments."""
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
        """Restore the network."""
        for each in ground.forwarders:
            each.delay_s = 0.0
