"""The driver `systemd`: edits a worker's properties file and restarts its unit, here or over ssh."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from eosctl.core.property_edit import ENCODING, set_property
from eosctl.core.upgrade import Mode
from eosctl.ops.app import App
from eosctl.ops.upgrade_drivers import SETTING, Acted
from eosctl.ops.upgrade_drivers.programs import run_program
from eosctl.ops.upgrade_drivers.properties_files import edit_mode, stamp
from eosctl.ops.upgrade_drivers.templates import fill, worker_values

# cp -p first: the new file has the owner and the rights of the old one; mv puts it there whole or not at all
_REPLACE = 'set -e; f=$(readlink -f -- {file}); cp -p -- "$f" "$f".{stamp}.bak; cp -p -- "$f" "$f".eosctl; \
cat > "$f".eosctl; sync -- "$f".eosctl; mv -f -- "$f".eosctl "$f"'


@dataclass(frozen=True, slots=True)
class SystemdDriver:
    """`unit`, `properties` and `ssh` (a destination, as ssh takes it) are templates with {url} {host} {port}."""

    name: ClassVar[str] = "systemd"
    at_once: ClassVar[bool] = False
    waits_for_person: ClassVar[bool] = False

    unit: str
    properties: str
    ssh: str | None = None

    def files(self, workers: Sequence[str]) -> Sequence[Path]:
        """The properties files, where they are on this machine."""
        if self.ssh is not None:
            return ()
        paths = [Path(self._properties(worker)).expanduser() for worker in workers]
        return [path for path in paths if path.is_file()]

    def actions(self, workers: Sequence[str], mode: Mode) -> Sequence[str]:
        """The edit and the restart."""
        (worker,) = workers
        where = self._where(worker)
        return [
            f"set {SETTING}={mode.value} in {self._properties(worker)}{where}",
            f"systemctl restart {self._unit(worker)}{where}",
        ]

    def bring(self, app: App, workers: Sequence[str], mode: Mode) -> Acted:
        """Edits the file, keeping a backup beside it, and restarts the unit."""
        (worker,) = workers
        backup = self.set_alone(app, worker, mode).backup
        self._run(app, worker, ["systemctl", "restart", self._unit(worker)])
        return Acted(f"{self._unit(worker)}{self._where(worker)} restarted", backup)

    def set_alone(self, app: App, worker: str, mode: Mode) -> Acted:
        """Edits the file."""
        words = f"{SETTING}={mode.value} set in {self._properties(worker)}{self._where(worker)}"
        if self.ssh is not None:
            return Acted(words, self._edit_remote(app, worker, mode))
        backup = edit_mode(Path(self._properties(worker)), mode, app.clock).backup
        return Acted(words, str(backup) if backup else None)

    def _run(self, app: App, worker: str, words: list[str]) -> bytes:
        return run_program(app, words) if self.ssh is None else self._remote(app, worker, shlex.join(words))

    def _where(self, worker: str) -> str:
        return "" if self.ssh is None else f" on {self._destination(worker)}"

    def _edit_remote(self, app: App, worker: str, mode: Mode) -> str | None:
        file = self._properties(worker)
        before = self._remote(app, worker, shlex.join(["cat", "--", file]))
        after = set_property(before.decode(ENCODING), SETTING, mode.value).encode(ENCODING)
        if after == before:
            return None
        moment = stamp(app.clock)
        script = _REPLACE.format(file=shlex.quote(file), stamp=moment)
        self._remote(app, worker, script, stdin=after)
        return f"{self._destination(worker)}:{file}.{moment}.bak"

    def _remote(self, app: App, worker: str, script: str, *, stdin: bytes = b"") -> bytes:
        words = ["ssh", "-o", "BatchMode=yes", "--", self._destination(worker), script]
        return run_program(app, words, stdin=stdin)

    def _unit(self, worker: str) -> str:
        return fill(self.unit, worker_values(worker), option="--unit")

    def _properties(self, worker: str) -> str:
        return fill(self.properties, worker_values(worker), option="--properties-file")

    def _destination(self, worker: str) -> str:
        return fill(self.ssh or "", worker_values(worker), option="--ssh")
