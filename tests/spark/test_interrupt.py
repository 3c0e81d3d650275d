"""Ctrl-C during a Spark stage: the job ends, nothing is left behind, no traceback is printed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, sys, threading, time
from pathlib import Path
from eosctl.spark.job import MigrationJob
from eosctl.spark.session import SessionSettings, spark_session

def slow(batches):
    import time
    for batch in batches:
        time.sleep(120)
        yield batch

folder = Path(sys.argv[1])
try:
    with spark_session(SessionSettings(folder, folder / "spark.log", master="local[1]")) as spark:
        job = MigrationJob(spark, {})
        threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with job._stage("sleeping"):
            spark.range(0, 1, 1, 1).mapInArrow(slow, "id long").collect()
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.spark
def test_interrupt(tmp_path: Path) -> None:
    """py4j used to print two tracebacks here, and Spark's own handler failed inside its call to the JVM."""
    started_s = time.monotonic()
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
    assert time.monotonic() - started_s < 90, "the task was waited for"
