"""Faults of workers: one that is killed, one that is frozen and comes back as a zombie, one that leaves and joins."""

from __future__ import annotations

import signal
from typing import ClassVar

from eosctl.core.ids import worker_id_of_url
from eosctl.rehearse.faults.fault import Setup, Simple
from eosctl.rehearse.ground import Ground
from eosctl.sandbox.servers import process
from eosctl.sandbox.state import Node


class KillWorker(Simple):
    """SIGKILL to a worker that has a task, if possible in the middle of a transaction."""

    name: ClassVar[str] = "kill-worker"
    what: ClassVar[str] = "kill -9 a worker in the middle of a transaction, and start it again"

    def __init__(self) -> None:
        self._node: Node | None = None

    def inject(self, ground: Ground) -> None:
        """Waits a moment for an open transaction of one of its tasks."""
        self._node = node = ground.busy_worker()
        tasks = ground.tasks_of(node)
        open_now = ground.await_open_transaction(tasks)
        process.kill([node.process])
        if not open_now:
            ground.miss(f"{node.name} had no open transaction")
        ground.note(f"killed {node.name} ({_told(tasks)}) {'with' if open_now else 'without'} an open transaction")

    def undo(self, ground: Ground) -> None:
        """Starts the worker."""
        if self._node is not None:
            ground.stack.start_node(self._node.name)


class FreezeWorker(Simple):
    """SIGSTOP until its tasks run elsewhere, then SIGCONT: what it had begun goes on, as a zombie."""

    name: ClassVar[str] = "freeze-worker"
    what: ClassVar[str] = "freeze a worker until its tasks have moved, then let it go on as a zombie"

    def __init__(self) -> None:
        self._node: Node | None = None

    @staticmethod
    def why_not(setup: Setup) -> str:
        """Its tasks have to move somewhere."""
        return "" if setup.workers > 1 else "needs 2 workers (--workers)"

    def inject(self, ground: Ground) -> None:
        """Returns when every task is on another worker."""
        self._node = node = ground.busy_worker()
        tasks = ground.tasks_of(node)
        open_now = ground.await_open_transaction(tasks)
        process.signal_group(node.process, signal.SIGSTOP)
        if not tasks:
            ground.miss(f"{node.name} had no tasks")
        ground.frozen.add(node.name)
        ground.note(f"froze {node.name} ({_told(tasks)}) {'with' if open_now else 'without'} an open transaction")
        ground.wait_for(f"the tasks to leave {node.name}", ground.is_well)

    def undo(self, ground: Ground) -> None:
        """Lets it go on."""
        if self._node is not None:
            process.signal_group(self._node.process, signal.SIGCONT)
            ground.frozen.discard(self._node.name)
            ground.note(f"let {self._node.name} go on when its tasks had moved")


class Rebalance(Simple):
    """A worker leaves as it should, and joins again: two rebalances."""

    name: ClassVar[str] = "rebalance"
    what: ClassVar[str] = "let a worker leave the group and join it again"

    def __init__(self) -> None:
        self._node: Node | None = None

    def inject(self, ground: Ground) -> None:
        """Stops the worker as an administrator would."""
        self._node = node = ground.busy_worker()
        tasks = ground.tasks_of(node)
        if not tasks:
            ground.miss(f"{node.name} had no tasks")
        ground.stack.stop_node(node.name)
        ground.note(f"stopped {node.name} ({_told(tasks)})")
        left = {worker_id_of_url(each.address) for each in ground.workers()}
        if left:
            ground.wait_for("the rebalance without it", ground.is_well)

    def undo(self, ground: Ground) -> None:
        """Starts it."""
        if self._node is not None:
            ground.stack.start_node(self._node.name)


def _told(tasks: list[int]) -> str:
    return "tasks " + ", ".join(map(str, tasks)) if tasks else "no tasks"
