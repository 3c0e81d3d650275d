"""The driver `print`: prints what a person is to do, and waits without a limit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.events import Event
from eosctl.upgrade.drivers import SETTING, DriverResult


class PrintDriver(Struct, frozen=True):
    """A driver that does nothing itself; `setting` is the name of the mode in the configuration."""

    name: ClassVar[str] = "print"
    at_once: ClassVar[bool] = False
    waits_for_person: ClassVar[bool] = True

    setting: str = SETTING

    def for_mirror_maker(self, setting: str) -> PrintDriver:
        """Return this driver with the name of that setting."""
        return PrintDriver(setting)

    def files(self, _workers: Sequence[str]) -> Sequence[Path]:
        """Return no files, as none are known."""
        return ()

    def actions(self, _workers: Sequence[str], mode: Mode) -> Sequence[str]:
        """Return what a person is to do."""
        return [f"you set {self.setting}={mode.value} in its configuration", "you restart it"]

    def check(self, _app: App, _workers: Sequence[str]) -> None:
        """Accept all workers: a person can handle any."""

    def bring(self, app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
        """Print what is to be done now."""
        (worker,) = workers
        app.on_event(Event(f"NOW: set {self.setting}={mode.value} in the configuration of {worker} and restart it"))
        return DriverResult("restarted by hand")
