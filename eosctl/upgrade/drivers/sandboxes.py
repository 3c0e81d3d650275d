"""The driver `sandbox`: restarts the workers of a sandbox on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.errors import NotFoundError, UsageError
from eosctl.sandbox.stack import Stack
from eosctl.upgrade.drivers import SETTING, DriverResult
from eosctl.upgrade.drivers.programs import edit_mode


class SandboxDriver(Struct, frozen=True):
    """A driver for the sandbox in `directory`."""

    name: ClassVar[str] = "sandbox"
    at_once: ClassVar[bool] = False
    waits_for_person: ClassVar[bool] = False

    directory: Path

    def files(self, workers: Sequence[str]) -> Sequence[Path]:
        """Return the workers' properties files."""
        stack = self._stack()
        return [Path(stack.node(self._node(stack, worker)).config) for worker in workers]

    def actions(self, workers: Sequence[str], mode: Mode) -> Sequence[str]:
        """Return the edit and the restart, with the name of the node."""
        (worker,) = workers
        name = self._node(self._stack(), worker)
        return [f"set {SETTING}={mode.value} in the properties file of {name}", f"restart {name}"]

    def check(self, _app: App, workers: Sequence[str]) -> None:
        """Check that each worker is a node of the sandbox."""
        stack = self._stack()
        for worker in workers:
            self._node(stack, worker)

    def bring(self, _app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
        """Stop the node, change its file, start it and wait until it answers."""
        (worker,) = workers
        stack = self._stack()
        name = self._node(stack, worker)
        stack.restart_node(name, mode=mode)
        return DriverResult(f"{name} restarted")

    def set_alone(self, app: App, worker: str, mode: Mode) -> DriverResult:
        """Change the node's file."""
        (file,) = self.files([worker])
        edited = edit_mode(file, mode, app.clock)
        return DriverResult(f"{SETTING}={mode.value} set in {file}", str(edited.backup) if edited.backup else None)

    def _stack(self) -> Stack:
        stack = Stack.find(self.directory)
        if stack is None:
            raise NotFoundError(f"there is no sandbox in {self.directory}", hint="Name it with --sandbox.")
        return stack

    def _node(self, stack: Stack, worker: str) -> str:
        for node in stack.state.of_kind("worker"):
            if node.address == worker:
                return node.name
        raise UsageError(f"no worker of the sandbox is at {worker}", hint="Name the right sandbox with --sandbox.")
