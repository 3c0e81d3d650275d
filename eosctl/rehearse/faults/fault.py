"""The faults of a rehearsal, by workers and by brokers: each begins, ends, and reports when its effects are over.

A fault begins (`inject`), ends (`undo`), and reports when its own effects are over (`recovered`).

A worker may be killed, frozen until it comes back as a zombie, or leave and join. Faults of brokers include those of
the way to them.
"""

from __future__ import annotations

import signal
from typing import ClassVar, Protocol

from msgspec import Struct

from eosctl.core.ids import worker_id_of_url
from eosctl.rehearse.ground import Ground
from eosctl.sandbox.servers import process
from eosctl.sandbox.servers.process import Node


class Setup(Struct, frozen=True):
    """The sandbox that faults are chosen for; `knows_tasks`: the connector's `tasks.max` is a number.

    `has_one_task`: the connector never makes more. `single_replicas`: its config asks for topics of one replica.
    """

    brokers: int
    workers: int
    kafka_version: tuple[int, int]
    knows_tasks: bool = True
    has_one_task: bool = False
    single_replicas: bool = False


class Fault(Protocol):
    """One kind of fault; `what` ends the sentence "will …" of the plan. An object of it is used once.

    `leaves_mode`: the workers are not enabled meanwhile, so that no transactions can be expected.
    """

    name: ClassVar[str]
    what: ClassVar[str]
    leaves_mode: ClassVar[bool]

    @staticmethod
    def why_not(setup: Setup, /) -> str:
        """Return why the fault is impossible in such a sandbox, in words; empty if it is possible."""

    def inject(self, ground: Ground, /) -> None:
        """Make the fault happen; raise EosctlError if the sandbox fails to do so."""

    def undo(self, ground: Ground, /) -> None:
        """Undo the fault: nodes run again, settings are as they were."""

    def recovered(self, ground: Ground, /) -> bool:
        """Decide whether the fault's own effects are over; that all tasks run is checked besides."""

    def verify(self, ground: Ground, /) -> None:
        """Record a miss if nothing shows that the fault hit, now that all is well again; raise EosctlError."""


class SimpleFault:
    """The defaults of most faults: any sandbox has them, and nothing but the tasks has to recover."""

    leaves_mode: ClassVar[bool] = False

    @staticmethod
    def why_not(_setup: Setup) -> str:
        """Return no reason: any sandbox has it."""
        return ""

    def undo(self, _ground: Ground) -> None:
        """Undo nothing."""

    def recovered(self, _ground: Ground) -> bool:
        """Return True: nothing else has to recover."""
        return True

    def verify(self, _ground: Ground) -> None:
        """Require nothing: what `inject` saw is enough."""


class RestartsTasks(SimpleFault):
    """A fault that ends all tasks: new ones take their transactional ids, which fences the former."""

    def verify(self, ground: Ground) -> None:
        """Require that each task that runs now was started since."""
        ground.require_traces(ground.all_tasks())


class _Worker(SimpleFault):
    """A fault of one worker, which hits the tasks that it has."""

    def __init__(self) -> None:
        self._node: Node | None = None
        self._tasks: list[int] = []

    def verify(self, ground: Ground) -> None:
        """Require that new tasks have taken the transactional ids."""
        ground.require_traces(self._tasks)


class KillWorker(_Worker):
    """A fault that kills a worker with a task, if possible in the middle of a transaction."""

    name: ClassVar[str] = "kill-worker"
    what: ClassVar[str] = "kill -9 a worker in the middle of a transaction, and start it again"

    def __init__(self) -> None:
        super().__init__()
        self._had_open_transaction = False

    def inject(self, ground: Ground) -> None:
        """Freeze a worker and then kill it, so that the transaction seen open can't end in between."""
        self._node = node = ground.busy_worker()
        self._tasks = tasks = ground.tasks_of(node)
        self._had_open_transaction = ground.freeze_in_transaction(node, tasks)
        process.kill([node.process])
        if not self._had_open_transaction:
            ground.miss(f"{node.name} had no open transaction")
        ground.note(f"killed {node.name} ({_told(tasks)})")

    def undo(self, ground: Ground) -> None:
        """Start the worker."""
        if self._node is not None:
            ground.stack.start_node(self._node.name)

    def verify(self, ground: Ground) -> None:
        """Require also that the open transaction was aborted."""
        ground.require_traces(self._tasks, aborted=self._had_open_transaction)


class FreezeWorker(_Worker):
    """A fault that freezes a worker until its tasks run elsewhere; then it continues its work as a zombie."""

    name: ClassVar[str] = "freeze-worker"
    what: ClassVar[str] = "freeze a worker until its tasks have moved, then let it continue as a zombie"

    @staticmethod
    def why_not(setup: Setup) -> str:
        """Require two workers, as the tasks have to move."""
        return "" if setup.workers > 1 else "needs 2 workers (--workers)"

    def inject(self, ground: Ground) -> None:
        """Freeze a worker and wait until every task is on another one."""
        self._node = node = ground.busy_worker()
        self._tasks = tasks = ground.tasks_of(node)
        ground.await_open_transaction(tasks)
        process.signal_group(node.process, signal.SIGSTOP)
        if not tasks:
            ground.miss(f"{node.name} had no tasks")
        ground.frozen.add(node.name)
        ground.note(f"froze {node.name} ({_told(tasks)})")
        ground.wait_for(f"the tasks to leave {node.name}", ground.is_well)

    def undo(self, ground: Ground) -> None:
        """Let the worker continue."""
        if self._node is not None:
            process.signal_group(self._node.process, signal.SIGCONT)
            ground.frozen.discard(self._node.name)
            ground.note(f"let {self._node.name} continue after its tasks had moved")


class Rebalance(_Worker):
    """A fault that lets a worker leave and join again: two rebalances."""

    name: ClassVar[str] = "rebalance"
    what: ClassVar[str] = "let a worker leave the group and join it again"

    def inject(self, ground: Ground) -> None:
        """Stop a worker as an administrator would."""
        self._node = node = ground.busy_worker()
        self._tasks = tasks = ground.tasks_of(node)
        if not tasks:
            ground.miss(f"{node.name} had no tasks")
        ground.stack.stop_node(node.name)
        ground.note(f"stopped {node.name} ({_told(tasks)})")
        left = {worker_id_of_url(each.address) for each in ground.workers()}
        if left:
            ground.wait_for("the rebalance without it", ground.is_well)

    def undo(self, ground: Ground) -> None:
        """Start the worker."""
        if self._node is not None:
            ground.stack.start_node(self._node.name)


def _told(tasks: list[int]) -> str:
    return "tasks " + ", ".join(map(str, tasks)) if tasks else "no tasks"


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
