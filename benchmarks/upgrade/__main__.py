"""`eosctl upgrade apply` of three workers on this machine: what it takes beside the workers' own restart.

A worker's own is from the announcement of its restart until it is healthy again, which it is as a member of its group.
Tasks that move after that are eosctl's to wait for, and are not taken off.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from benchmarks.pairs import compile_sources
from eosctl.connect.rest import RestConnectWorker
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.sandbox.settings import GroupSpec, StackSpec
from eosctl.sandbox.stack import Stack

GROUP, NAME, WORKERS, PATIENCE_S = "rolling", "roll", 3, 120


def main() -> None:
    """Start a broker and three workers, and give them another mode; tell by the last run where eosctl waits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, default=WORKERS)
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    compile_sources()
    with tempfile.TemporaryDirectory() as name:
        state = Path(name)
        group = GroupSpec(GROUP, (Mode.DISABLED,) * WORKERS)
        stack = Stack.up(StackSpec(groups=(group,)), state / "eosctl/sandbox" / NAME, name=NAME, environ=os.environ)
        try:
            for number in range(arguments.connectors):
                configure(stack.urls(GROUP)[0], number, state)
            for run in range(arguments.runs + 1):
                module = "eosctl" if run < arguments.runs else "benchmarks.waits"
                roll(stack, state, module, Mode.DISABLED if run % 2 else Mode.PREPARING)
        finally:
            (Stack.find(stack.directory) or stack).down()


def configure(url: str, number: int, state: Path) -> None:
    """Create a source with one task, and wait until it runs."""
    name, file, text = f"c{number}", state / f"lines-{number}", "org.apache.kafka.connect.storage.StringConverter"
    file.write_text("line\n")
    config = {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": str(file),
        "topic": "lines",
        "key.converter": text,
        "value.converter": text,
    }
    worker = RestConnectWorker(url, deadline=Deadline.after(PATIENCE_S))
    worker.put_connector_config(name, config)
    while (found := worker.connectors().get(name)) is None or [task.state for task in found.tasks] != ["RUNNING"]:
        time.sleep(0.5)


def roll(stack: Stack, state: Path, module: str, mode: Mode) -> None:
    """Run the upgrade; print what it says with the seconds since its start, and the seconds beside the restarts."""
    topics = stack.state.topics[GROUP]
    where = ["-b", stack.bootstrap_servers, "-g", GROUP, "--config-topic", topics["config"]]
    driver = ["--driver", "sandbox", "--sandbox", NAME, "--yes"]
    command = [sys.executable, "-m", module, "upgrade", "apply", "--to", mode.value, *driver, *where]
    restarts: list[Future[float]] = []
    began_s, environ = time.monotonic(), {**os.environ, "XDG_STATE_HOME": str(state)}
    with (
        ThreadPoolExecutor(1) as watching,
        subprocess.Popen(
            [*command, "--offset-topic", topics["offset"], "--timeout", "120s"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environ,
        ) as process,
    ):  # fmt: skip
        assert process.stderr is not None
        for line in process.stderr:
            print(f"{time.monotonic() - began_s:7.2f} s  {line}", end="")
            if "restarting as" in line:
                restarts.append(watching.submit(restart_s, line.split(": ")[0]))
    took_s, own_s = time.monotonic() - began_s, [each.result() for each in restarts]
    print(f"{took_s:7.2f} s  exit code {process.returncode}; own restarts {[round(each, 2) for each in own_s]}")
    print(f"{(took_s - sum(own_s)) / WORKERS:7.2f} s a worker beside its own restart", flush=True)


def restart_s(url: str) -> float:
    """Return how long it takes from now until the worker has gone and is healthy again; NaN if it does not come."""
    began_s, gone = time.monotonic(), False
    for _ in Deadline.after(PATIENCE_S).rounds(0.05):
        healthy = is_healthy(url)
        if gone and healthy:
            return time.monotonic() - began_s
        gone = gone or not healthy
    return math.nan


def is_healthy(url: str) -> bool:
    """Return whether the worker says so."""
    try:
        return RestConnectWorker(url, deadline=Deadline.after(PATIENCE_S)).health() == "healthy"
    except EosctlError:
        return False


if __name__ == "__main__":
    main()
