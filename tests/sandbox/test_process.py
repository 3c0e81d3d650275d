"""Ending processes of a sandbox."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from eosctl.sandbox.servers.process import signal_group, spawn, stop
from tests.fakes.clock import PLENTY_S
from tests.sandbox_fixtures import wait_until

_PROGRAM = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("ended by itself", flush=True)))
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_a_process_that_is_frozen_is_continued_so_that_it_ends_by_itself(tmp_path: Path) -> None:
    """Whoever froze a worker with SIGSTOP waited for the whole grace before it was killed."""
    log = tmp_path / "log"
    process = spawn([sys.executable, "-c", _PROGRAM], log=log, directory=tmp_path, environ=os.environ)
    try:
        wait_until(lambda: log.exists() and "ready" in log.read_text(), what="the program to start", timeout_s=PLENTY_S)
        signal_group(process, signal.SIGSTOP)
        stop([process], grace_s=PLENTY_S)
    finally:
        signal_group(process, signal.SIGKILL)
    assert log.read_text().splitlines() == ["ready", "ended by itself"]
