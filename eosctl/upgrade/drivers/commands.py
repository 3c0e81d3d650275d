"""The driver `command`: the user's own programs set a worker's configuration and restart it.

The driver `print`: prints what a person is to do, and waits without a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.java.properties import ENCODING
from eosctl.core.workers.config import parse_worker_config
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Event
from eosctl.errors import InputFileError, RefusedError, UsageError
from eosctl.foreign import shell_words
from eosctl.upgrade.drivers import SETTING, DriverResult, require_own
from eosctl.upgrade.drivers.programs import edit_mode, fill, fill_command, run_program, worker_values


class CommandDriver(Struct, frozen=True):
    """Templates with {url} {host} {port} {mode} {config}; without `set_config` eosctl edits the file `properties`.

    `setting` is what the files call the mode. A MirrorMaker's, which is theirs to say, is read from each of them.
    """

    name: ClassVar[str] = "command"
    at_once: ClassVar[bool] = False
    waits_for_person: ClassVar[bool] = False

    restart: str
    set_config: str | None = None
    properties: str | None = None
    setting: str = SETTING

    def for_mirror_maker(self, setting: str) -> CommandDriver:
        """Return this driver for nodes, with {host} and {number} in place of {url} and {port}."""
        return replace(self, setting=setting)

    def __post_init__(self) -> None:
        if self.set_config is None and self.properties is None:
            raise UsageError(
                "--driver command does not know how the mode is set",
                hint="Give --set-config-command, or --properties-file for a file that eosctl edits.",
            )

    def files(self, workers: Sequence[str]) -> Sequence[Path]:
        """Return the properties files that were named and are on this machine."""
        return [path for path in map(self._file, workers) if path is not None and path.is_file()]

    def actions(self, workers: Sequence[str], mode: Mode) -> Sequence[str]:
        """Return the edit and the command lines as they will be run."""
        (worker,) = workers
        return [
            self._set_words(worker, mode) or f"set {self.setting}={mode.value} in {self._file(worker)}",
            f"run {shell_words(*self._words(self.restart, worker, mode, '--restart-command'))}",
        ]

    def check(self, app: App, workers: Sequence[str]) -> None:
        """Check that each worker has a command line of its own and, if eosctl edits it, a file."""
        require_own(workers, lambda worker: self.actions([worker], Mode.ENABLED)[1], options="--restart-command")
        for worker in workers if self.set_config is None else ():
            file = self._file(worker)
            if file is not None and not file.is_file():
                raise RefusedError(
                    f"there is no file {file} for {worker}; nothing was written", hint="Check --properties-file."
                )
            if file is not None:
                self._setting_in(app, file)

    def bring(self, app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
        """Run --set-config-command or edit the file, then run --restart-command."""
        (worker,) = workers
        backup = self.set_alone(app, worker, mode).backup
        run_program(app, self._words(self.restart, worker, mode, "--restart-command"))
        return DriverResult("configured and restarted", backup)

    def set_alone(self, app: App, worker: str, mode: Mode) -> DriverResult:
        """Run --set-config-command or edit the file."""
        backup, file = None, self._file(worker)
        if self.set_config is not None:
            run_program(app, self._words(self.set_config, worker, mode, "--set-config-command"))
        elif file is not None:
            edited = edit_mode(file, mode, app.clock, setting=self._setting_in(app, file))
            backup = str(edited.backup) if edited.backup else None
        return DriverResult("configured", backup)

    def _setting_in(self, app: App, file: Path) -> str:
        """Return the name of the mode in the file; raise RefusedError if it is no dedicated MirrorMaker's."""
        if self.setting == SETTING:
            return SETTING
        try:
            text = file.read_bytes().decode(ENCODING)
        except OSError as exc:
            raise InputFileError(f"cannot read {file}: {exc.strerror or exc}", hint="Check --properties-file.") from exc
        servers = app.target.client.bootstrap_servers if app.target.client else ()
        read = parse_worker_config(text, source=str(file), group_id=app.target.group_id, servers=servers)
        if read.mode_setting == SETTING:
            raise RefusedError(
                f"{file} is not the file of a dedicated MirrorMaker: it names no clusters; nothing was written",
                hint="Check --properties-file.",
            )
        return read.mode_setting

    def _file(self, worker: str) -> Path | None:
        if self.properties is None:
            return None
        return Path(fill(self.properties, worker_values(worker), option="--properties-file")).expanduser()

    def _set_words(self, worker: str, mode: Mode) -> str | None:
        if self.set_config is None:
            return None
        return f"run {shell_words(*self._words(self.set_config, worker, mode, '--set-config-command'))}"

    def _words(self, template: str, worker: str, mode: Mode, option: str) -> list[str]:
        values = {**worker_values(worker), "mode": mode.value}
        file = self._file(worker)
        return fill_command(template, values if file is None else {**values, "config": str(file)}, option=option)


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
