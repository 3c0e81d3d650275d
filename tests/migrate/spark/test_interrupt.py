"""Ctrl-C during a Spark stage: the job ends, nothing is left behind, no traceback is printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from eosctl.migrate.spark.job import MigrationJob

PROGRAM = """
import os, signal, sys, threading, time
from pathlib import Path
from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.session import spark_context
from eosctl.migrate.spark.snapshots import run_tasks
from tests.quick_spark import quick_settings

def slow(_number):
    (folder / "begun").touch()
    time.sleep(600)

def interrupt():
    while not (folder / "begun").exists():
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)

folder = Path(sys.argv[1])
try:
    with spark_context(quick_settings(folder, master="local[1]")) as context:
        job = MigrationJob(context, None)
        threading.Thread(target=interrupt, daemon=True).start()
        with job._stage("sleeping"):
            run_tasks(context, 1, slow)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.spark
def test_interrupt(tmp_path: Path) -> None:
    """py4j used to print two tracebacks here, and Spark's own handler failed inside its call to the JVM."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)  # less than the task takes
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


@pytest.mark.parametrize("cleaning_up_fails", [False, True])
def test_interrupt_that_breaks_the_connection(cleaning_up_fails: bool) -> None:
    """The cancellation then failed with py4j's "Answer from Java side is empty", and Ctrl-C ended in a traceback.

    So did pyspark's own cleaning up, which took the place of the interrupt: exit 1, "failed in Spark".
    """

    def cancel(_group: str) -> None:
        raise Py4JNetworkError("Answer from Java side is empty")

    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            if cleaning_up_fails:
                raise Py4JNetworkError("Answer from Java side is empty")

    context: Any = SimpleNamespace(
        master="local[1]", setJobGroup=lambda *_a, **_k: None, cancelJobGroup=cancel, statusTracker=lambda: None
    )
    with pytest.raises(KeyboardInterrupt), MigrationJob(context, None)._stage("sleeping"):
        interrupted()
