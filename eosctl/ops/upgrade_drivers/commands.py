"""The driver `command`: the user's own programs set a worker's configuration and restart it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from eosctl.core.upgrade import Mode
from eosctl.errors import RefusedError, UsageError
from eosctl.ops.app import App
from eosctl.ops.upgrade_drivers import SETTING, Acted, require_own
from eosctl.ops.upgrade_drivers.programs import run_program
from eosctl.ops.upgrade_drivers.properties_files import edit_mode
from eosctl.ops.upgrade_drivers.templates import fill, fill_command, worker_values


@dataclass(frozen=True, slots=True)
class CommandDriver:
    """Templates with {url} {host} {port} {mode} {config}; without `set_config` eosctl edits the file `properties`."""

    name: ClassVar[str] = "command"
    at_once: ClassVar[bool] = False
    waits_for_person: ClassVar[bool] = False

    restart: str
    set_config: str | None = None
    properties: str | None = None

    def __post_init__(self) -> None:
        if self.set_config is None and self.properties is None:
            raise UsageError(
                "--driver command does not know how the mode is set",
                hint="Give --set-config-command, or --properties-file for a file that eosctl shall edit.",
            )

    def files(self, workers: Sequence[str]) -> Sequence[Path]:
        """The properties files, where eosctl was told of them and they are here."""
        return [path for path in map(self._file, workers) if path is not None and path.is_file()]

    def actions(self, workers: Sequence[str], mode: Mode) -> Sequence[str]:
        """The edit, and the command lines as they will be run."""
        (worker,) = workers
        return [
            self._set_words(worker, mode) or f"set {SETTING}={mode.value} in {self._file(worker)}",
            f"run {shlex.join(self._words(self.restart, worker, mode, '--restart-command'))}",
        ]

    def check(self, _app: App, workers: Sequence[str]) -> None:
        """Each has a command line of its own, and its file, where eosctl edits it."""
        require_own(workers, lambda worker: self.actions([worker], Mode.ENABLED)[1], options="--restart-command")
        for worker in workers if self.set_config is None else ():
            file = self._file(worker)
            if file is not None and not file.is_file():
                raise RefusedError(
                    f"there is no file {file} for {worker}; nothing was written", hint="Check --properties-file."
                )

    def bring(self, app: App, workers: Sequence[str], mode: Mode) -> Acted:
        """Sets, then restarts."""
        (worker,) = workers
        backup = self.set_alone(app, worker, mode).backup
        run_program(app, self._words(self.restart, worker, mode, "--restart-command"))
        return Acted("configured and restarted", backup)

    def set_alone(self, app: App, worker: str, mode: Mode) -> Acted:
        """Sets."""
        backup, file = None, self._file(worker)
        if self.set_config is not None:
            run_program(app, self._words(self.set_config, worker, mode, "--set-config-command"))
        elif file is not None:
            edited = edit_mode(file, mode, app.clock)
            backup = str(edited.backup) if edited.backup else None
        return Acted("configured", backup)

    def _file(self, worker: str) -> Path | None:
        if self.properties is None:
            return None
        return Path(fill(self.properties, worker_values(worker), option="--properties-file")).expanduser()

    def _set_words(self, worker: str, mode: Mode) -> str | None:
        if self.set_config is None:
            return None
        return f"run {shlex.join(self._words(self.set_config, worker, mode, '--set-config-command'))}"

    def _words(self, template: str, worker: str, mode: Mode, option: str) -> list[str]:
        values = {**worker_values(worker), "mode": mode.value}
        file = self._file(worker)
        return fill_command(template, values if file is None else {**values, "config": str(file)}, option=option)
