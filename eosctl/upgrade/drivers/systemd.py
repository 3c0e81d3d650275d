"""The driver `systemd`: edits a worker's properties file and restarts its unit, here or over ssh."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError, RefusedError
from eosctl.foreign import arguments, shell_word
from eosctl.upgrade.drivers import SETTING, DriverResult, require_own
from eosctl.upgrade.drivers.programs import edit_mode, fill, run_program, stamp, with_mode, worker_values

# $1 file, $2 stamp, $3 length, $4 and $5 sha256 of the new and of the old content. A connection that breaks looks like
# the end of the input, so nothing replaces the file but what is whole. A link must be root's, of who runs this, or of
# the user whose file it leads to. The folder may be a service user's, who can put
# links there at any moment: all is made in a folder in it that is only ours, which is what is entered even if the name
# leads elsewhere by then. cp -p: the new file has the owner and the rights of the old one. mv -T puts a file in the
# place of a link, and does not follow it.
_REPLACE = """set -e
umask 077
f=$(readlink -f -- "$1")
link=$1
while test -L "$link"; do
  case $(stat -c %u -- "$link") in
    0 | "$(id -u)" | "$(stat -c %u -- "$f")") ;;
    *) echo "$link is a link that others on this machine can set; $f is as it was" >&2; exit 1 ;;
  esac
  to=$(readlink -- "$link")
  case $to in /*) link=$to ;; *) link=$(dirname -- "$link")/$to ;; esac
done
work=$(mktemp -d -- "${f%/*}/.eosctl.XXXXXXXX")
trap 'rmdir -- "$work"' EXIT
cd -P -- "$work"
if ! test -O . || test "$(pwd -P)" != "$work"; then
  echo "somebody else has set $work; $f is as it was" >&2; exit 1
fi
trap 'rm -f -- old new; cd /; rmdir -- "$work"' EXIT
cp -p -- "$f" old
cp -p -- old new
cat > new
sync -- new
if ! test "$(wc -c < new)" -eq "$3" || ! test "$(sha256sum < new)" = "$4  -"; then
  echo "not all of the new $f has arrived; it is as it was" >&2; exit 1
fi
if ! test "$(sha256sum < old)" = "$5  -"; then
  echo "$f was changed meanwhile; it is as it was" >&2; exit 1
fi
mv -fT -- old "$f"."$2".bak
mv -fT -- new "$f"
sync -- "${f%/*}/" || true
printf %s "$f"."$2".bak
"""


class SystemdDriver(Struct, frozen=True):
    """`unit`, `properties` and `ssh` (a destination, as ssh takes it) are templates with {url} {host} {port}.

    `sudo`: file and unit are root's, and whoever runs eosctl (or logs in by ssh) may use sudo without a password.
    """

    name: ClassVar[str] = "systemd"
    at_once: ClassVar[bool] = False
    waits_for_person: ClassVar[bool] = False

    unit: str
    properties: str
    ssh: str | None = None
    sudo: bool = False

    def files(self, workers: Sequence[str]) -> Sequence[Path]:
        """Return the properties files that are on this machine."""
        if self.ssh is not None:
            return ()
        paths = [Path(self._properties(worker)).expanduser() for worker in workers]
        return [path for path in paths if os.access(path, os.R_OK)]

    def actions(self, workers: Sequence[str], mode: Mode) -> Sequence[str]:
        """Return the edit and the restart."""
        (worker,) = workers
        where = self._where(worker)
        return [
            f"set {SETTING}={mode.value} in {shell_word(self._properties(worker))}{where}",
            f"{'sudo ' if self.sudo else ''}systemctl restart {arguments(self._unit(worker))}{where}",
        ]

    def check(self, app: App, workers: Sequence[str]) -> None:
        """Check that each worker has a unit and a file of its own, and that they exist."""
        require_own(
            workers, lambda worker: f"unit {self._unit(worker)}{self._where(worker)}", options="--unit or --ssh"
        )
        require_own(
            workers, lambda worker: f"file {self._properties(worker)}{self._where(worker)}",
            options="--properties-file or --ssh",
        )  # fmt: skip
        for worker in workers:
            try:
                self._run(app, worker, ["test", "-f", self._properties(worker)])
                self._run(app, worker, ["systemctl", "cat", "--", self._unit(worker)])
            except EosctlError as exc:
                raise RefusedError(
                    f"{worker} can't be changed: {exc.message}; nothing was written",
                    hint=f"Check --unit and --properties-file{' and --sudo' if self.sudo else ', or try --sudo'}.",
                ) from exc

    def bring(self, app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
        """Edit the file, keeping a backup beside it, and restart the unit."""
        (worker,) = workers
        backup = self.set_alone(app, worker, mode).backup
        self._run(app, worker, ["systemctl", "restart", self._unit(worker)])
        return DriverResult(f"{self._unit(worker)}{self._where(worker)} restarted", backup)

    def set_alone(self, app: App, worker: str, mode: Mode) -> DriverResult:
        """Edit the file."""
        words = f"{SETTING}={mode.value} set in {self._properties(worker)}{self._where(worker)}"
        if self.ssh is not None or self.sudo:
            return DriverResult(words, self._edit_by_shell(app, worker, mode))
        backup = edit_mode(Path(self._properties(worker)), mode, app.clock).backup
        return DriverResult(words, str(backup) if backup else None)

    def _where(self, worker: str) -> str:
        return "" if self.ssh is None else f" on {shell_word(self._destination(worker))}"

    def _edit_by_shell(self, app: App, worker: str, mode: Mode) -> str | None:
        file = self._properties(worker)
        before = self._run(app, worker, ["cat", "--", file])
        after = with_mode(before, mode, source=f"{file}{self._where(worker)}")
        if after == before:
            return None
        digests = [hashlib.sha256(content).hexdigest() for content in (after, before)]
        words = ["sh", "-c", _REPLACE, "sh", file, stamp(app.clock), str(len(after)), *digests]
        backup = os.fsdecode(self._run(app, worker, words, stdin=after))
        return backup if self.ssh is None else f"{self._destination(worker)}:{backup}"

    def _run(self, app: App, worker: str, words: list[str], *, stdin: bytes = b"") -> bytes:
        """Run a command where the worker is; sudo asks for no password, as nobody could answer."""
        words = ["sudo", "-n", "--", *words] if self.sudo else words
        if self.ssh is not None:
            words = ["ssh", "-o", "BatchMode=yes", "--", self._destination(worker), shlex.join(words)]
        return run_program(app, words, stdin=stdin)

    def _unit(self, worker: str) -> str:
        return fill(self.unit, worker_values(worker), option="--unit")

    def _properties(self, worker: str) -> str:
        return fill(self.properties, worker_values(worker), option="--properties-file")

    def _destination(self, worker: str) -> str:
        return fill(self.ssh or "", worker_values(worker), option="--ssh")
