"""`eosctl offsets migrate` as a process of its own, to be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.migrate.spark.cluster import Cluster
from tests.sandbox_fixtures import wait_until

_PATIENCE_S = 300.0


def migrate_command(cluster: Cluster, *arguments: str, master: str = "local[2]") -> list[str]:
    """`eosctl offsets migrate ARGUMENTS…` of that cluster."""
    command = [sys.executable, "-m", "eosctl", "offsets", "migrate", *arguments, "--master", master]
    return [*command, "-b", cluster.servers, "--offset-topic", cluster.name, "--timeout", f"{_PATIENCE_S:g}s"]


def kill_driver(
    cluster: Cluster,
    arguments: Sequence[str],
    there: Callable[[], bool],
    *,
    after_s: float = 0.0,
    environ: Mapping[str, str] | None = None,
    master: str = "local[2]",
) -> bool:
    """Runs `eosctl offsets migrate ARGUMENTS…`, and so long after `there()` kills Python and the JVM with -9.

    Returns, when nothing of it is left, whether it was killed before its end. A run that ends before `there()` fails
    the test.
    """
    process = subprocess.Popen(
        migrate_command(cluster, *arguments, master=master), env=environ, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        give_up_s = time.monotonic() + _PATIENCE_S
        while not there():
            assert process.poll() is None, f"it ended before it could be killed: exit code {process.returncode}"
            assert time.monotonic() < give_up_s, f"waited {_PATIENCE_S:g} s for the moment to kill it"
            time.sleep(0.02)
        time.sleep(after_s)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(_PATIENCE_S)
        wait_until(lambda: not _session_of(process.pid), what="Spark's processes to end", timeout_s=_PATIENCE_S)
    return process.returncode == -signal.SIGKILL


def _session_of(leader: int) -> list[str]:
    """What still runs of a session: Spark's Python daemon has a process group of its own."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _parent, _group, session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it ended meanwhile
            continue
        if int(session) == leader and state != "Z":
            found.append(stat.parent.name)
    return found
