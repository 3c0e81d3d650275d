"""eosctl as a process of its own: one that can be waited for, killed, or given a full disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import Outcome

_PATIENCE_S = 300.0
_WITH_LIMIT = """
import resource, runpy, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.argv[:] = ["eosctl", *sys.argv[2:]]
runpy.run_module("eosctl", run_name="__main__")
"""


class Child:
    """`eosctl WORDS…` with `home` for its state and what it prints; no file may grow beyond `disk_bytes`.

    A limit for files is the full disk that needs no root: the write that would pass it fails, or is cut short.
    `program` is what Python is given before the words.
    """

    def __init__(
        self,
        words: list[str],
        home: Path,
        *,
        disk_bytes: int | None = None,
        program: Sequence[str] = ("-m", "eosctl"),
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        environ = {**os.environ, "XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config")}
        program = program if disk_bytes is None else ["-c", _WITH_LIMIT, str(disk_bytes)]
        self._process = subprocess.Popen(
            [sys.executable, *program, *words],
            env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait(self) -> Outcome:
        """Its end, and what it printed."""
        try:
            stdout, stderr = self._process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return Outcome(self._process.returncode, stdout, stderr)

    def kill(self) -> None:
        """kill -9 of all of its group; returns when it is gone."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
