"""Processes of the sandbox: each in its own group, remembered by pid and start time, ended only if still the same."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

STOP_S = 60.0
"""A JVM that writes its classes at its end is not quick, and a worker that is killed stays a member of its group."""
_KILLED_S = 5.0
_POLL_S = 0.02


class ProcessId(Struct, frozen=True):
    """A pid and the kernel's start time of that process (clock ticks since boot): a reused pid is another process."""

    pid: int
    start_ticks: int

    def alive(self) -> bool:
        """Decide whether exactly this process still runs (a zombie process does not)."""
        return _start_ticks(self.pid) == self.start_ticks


def spawn(command: Sequence[str], *, log: Path, directory: Path, environ: Mapping[str, str]) -> ProcessId:
    """Start `command` in a session and process group of its own, with its output appended to `log`."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=directory, env=dict(environ), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    ticks = _start_ticks(process.pid)
    process.returncode = 0  # the sandbox outlives this object on purpose: it is found again by ProcessId
    return ProcessId(process.pid, ticks or 0)


def stop(processes: Sequence[ProcessId], *, grace_s: float = STOP_S) -> None:
    """Send SIGTERM to each process group, and SIGKILL to those left after `grace_s`; wait until all are gone.

    One that is stopped (SIGSTOP) is continued, for it would not end before.
    """
    _signal_all(processes, signal.SIGTERM)
    _signal_all(processes, signal.SIGCONT)
    if not _wait_gone(processes, grace_s):
        kill(processes)


def kill(processes: Sequence[ProcessId]) -> None:
    """Send SIGKILL to each process group; wait until all are gone."""
    _signal_all(processes, signal.SIGKILL)
    _wait_gone(processes, _KILLED_S)


def signal_group(process: ProcessId, number: signal.Signals) -> None:
    """Send a signal to the process's group, if it is still the same process."""
    _signal_all([process], number)


def _signal_all(processes: Sequence[ProcessId], number: signal.Signals) -> None:
    for process in processes:
        if process.alive():
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                continue


def _wait_gone(processes: Sequence[ProcessId], wait_s: float) -> bool:
    deadline_s = time.monotonic() + wait_s
    while any(process.alive() for process in processes):
        if time.monotonic() > deadline_s:
            return False
        _reap(processes)
        time.sleep(_POLL_S)
    _reap(processes)
    return True


def _reap(processes: Sequence[ProcessId]) -> None:
    """Reap our own children that ended, so that they don't stay as zombies while we run."""
    for process in processes:
        try:
            os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:
            continue


def _start_ticks(pid: int) -> int | None:
    """Read field 22 of /proc/PID/stat (starttime); None if the process is gone, or ended and not yet reaped.

    A JVM's first thread can end long before the others; then the state is Z too, but num_threads (field 20) is not 1.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, threads, ticks = fields[0], int(fields[17]), int(fields[19])
    return None if state in "ZX" and threads <= 1 else ticks
