"""Faults of workers: one that is killed, one that is frozen and comes back as a zombie, one that leaves and joins."""

from __future__ import annotations

import signal
from typing import ClassVar

from eosctl.core.ids import worker_id_of_url
from eosctl.rehearse.faults.fault import Setup, SimpleFault
from eosctl.rehearse.ground import Ground
from eosctl.sandbox.servers import process
from eosctl.sandbox.state import Node


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
