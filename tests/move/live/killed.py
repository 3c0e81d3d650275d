"""A process of eosctl that sends itself a signal at a moment of its own: before a note in a journal, or a REST write.

Python tells of both by itself (audit events): nothing of eosctl is replaced. A note is known by the one before it:
before the one that follows "start offsets", that step is done, and nobody has noted it.
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
import json, os, runpy, signal, sys

which, at = int(sys.argv[1]), sys.argv[2]

def tick(what):
    global at
    if at and what.endswith(at):
        at = ""
        os.kill(os.getpid(), which)

def last_note(path):
    with open(path, "rb") as file:
        lines = file.read().splitlines()
    note = json.loads(lines[-1]) if lines else {}
    return f"{note.get('event')} {note.get('step', '')}"

def listen(event, arguments):
    if event == "http.client.send":
        line = bytes(arguments[1][:300]).split(b"\r\n")[0].decode("latin-1").removesuffix(" HTTP/1.1")
        if line.split(" ")[0] in ("PUT", "POST", "PATCH", "DELETE") and "/connector-plugins/" not in line:
            tick(line)
    elif event == "open" and "/journals/" in str(arguments[0]) and (arguments[2] or 0) & os.O_APPEND:
        tick(last_note(arguments[0]) if os.path.exists(arguments[0]) else "")

sys.addaudithook(listen)
sys.argv[:] = ["eosctl", *sys.argv[3:]]
runpy.run_module("eosctl", run_name="__main__")
"""


@dataclass
class Signalled:
    """`eosctl WORDS…` that gets a signal at the first moment that ends with `at`: "start offsets", "/resume"."""

    words: list[str]
    home: Path
    at: str
    signal_number: int = signal.SIGKILL
    child: Child = field(init=False)

    def __post_init__(self) -> None:
        program = ("-c", _PROGRAM, str(int(self.signal_number)), self.at)
        self.child = Child(self.words, self.home, program=program)

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
