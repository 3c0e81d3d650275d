"""A process of eosctl that sends itself a signal at a moment of its own: before a note in a journal, or a REST write.

Python tells of both by itself (audit events): nothing of eosctl is replaced. A process that is killed before a note has
done what the note is about; one that is killed before a write has noted what it is about to do.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import Outcome
from tests.faults.child import Child
from tests.sandbox_fixtures import wait_until

_PROGRAM = r"""
import os, runpy, signal, sys

which, at, told = int(sys.argv[1]), sys.argv[2], os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
count = 0

def tick(what):
    global count, at
    count += 1
    os.write(told, what.encode() + b"\n")
    if at == str(count) or (at and what.endswith(at)):
        at = ""
        os.kill(os.getpid(), which)

def listen(event, arguments):
    if event == "http.client.send":
        line = bytes(arguments[1][:300]).split(b"\r\n")[0].decode("latin-1").removesuffix(" HTTP/1.1")
        if line.split(" ")[0] in ("PUT", "POST", "PATCH", "DELETE") and "/connector-plugins/" not in line:
            tick(line)
    elif event == "open" and "/journals/" in str(arguments[0]) and (arguments[2] or 0) & os.O_APPEND:
        tick("note")

sys.addaudithook(listen)
sys.argv[:] = ["eosctl", *sys.argv[4:]]
runpy.run_module("eosctl", run_name="__main__")
"""


@dataclass
class Ticking:
    """`eosctl WORDS…` that gets a signal at a moment, and tells of each in a file.

    `at` is the moment's number, from 1, or the end of what is written there ("/resume"); without it there is no signal.
    """

    words: list[str]
    home: Path
    at: int | str = ""
    signal_number: int = signal.SIGKILL
    child: Child = field(init=False)

    def __post_init__(self) -> None:
        path = self._path = self.home / f"ticks-{os.urandom(4).hex()}"
        program = ("-c", _PROGRAM, str(int(self.signal_number)), str(self.at), str(path))
        self.child = Child(self.words, self.home, program=program)

    def ticks(self) -> list[str]:
        """The moments so far."""
        return self._path.read_text().splitlines() if self._path.exists() else []

    def wait(self) -> Outcome:
        """Its end, and what it printed."""
        return self.child.wait()

    def wait_halted(self) -> None:
        """Until SIGSTOP has halted it."""
        stat = Path(f"/proc/{self.child.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(") ")[2].startswith("T"), what="it to halt", poll_s=0.1)

    def go_on(self) -> None:
        """SIGCONT."""
        os.kill(self.child.pid, signal.SIGCONT)
