"""A Spark cluster of a master and two workers on loopback, out of pyspark's own jars."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from eosctl.machine.java import require_java, spark_java_home
from eosctl.migrate.spark.class_archive import spark_class_archive
from eosctl.sandbox.downloads.jars import cache_dir
from tests.sandbox_fixtures import wait_until

BIN = Path(pyspark.__file__).parent / "bin"
_DEPLOY = "org.apache.spark.deploy"
_LISTENS = re.compile(r"Successfully started service 'sparkMaster' on port (\d+)")
_LOOPBACK = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]  # the kernel chooses
_WORKERS = ("worker-1", "worker-2")


@dataclass(frozen=True)
class Standalone:
    """`master` is its URL, `folder` has a log per process and a folder of work per worker.

    `quick` are options for JVMs that run some seconds only.
    """

    master: str
    folder: Path
    quick: str

    def workers_at_work(self) -> list[str]:
        """The names of the workers whose executors have finished tasks."""
        return [
            name
            for name in _WORKERS
            if any("Finished task" in log.read_text() for log in (self.folder / name).glob("app-*/*/stderr"))
        ]


@contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    """Two workers of one core each, for executors of 512 MB; all of it is gone at the end of the block."""
    java_home = spark_java_home(require_java(os.environ), folder)
    quick = _quick(java_home, folder)
    with ExitStack() as processes:
        master = processes.enter_context(
            _process(folder, java_home, quick, "master", [f"{_DEPLOY}.master.Master", *_LOOPBACK])
        )
        found = wait_until(lambda: _LISTENS.search(master.read_text()), what="the master to listen")
        url = f"spark://127.0.0.1:{found[1]}"
        for name in _WORKERS:
            words = [*_LOOPBACK, "--cores", "1", "--memory", "512m", "--work-dir", str(folder / name), url]
            processes.enter_context(_process(folder, java_home, quick, name, [f"{_DEPLOY}.worker.Worker", *words]))
        wait_until(lambda: len(_registered(master)) == len(_WORKERS), what="both workers")
        yield Standalone(url, folder, quick)


def _registered(log: Path) -> set[str]:
    """The addresses of the workers; one that hears nothing registers again."""
    return set(re.findall(r"Registering worker (\S+)", log.read_text()))


def _quick(java_home: Path, folder: Path) -> str:
    """The fast compiler, the small collector, and the classes that eosctl keeps of Spark's JVMs, if there are any."""
    archive = spark_class_archive(cache_dir(os.environ) / "spark", java_home=java_home, work_dir=folder)
    return " ".join(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *(archive.use() if archive else ())])


@contextmanager
def _process(folder: Path, java_home: Path, quick: str, name: str, words: list[str]) -> Iterator[Path]:
    """One of Spark's daemons in a process group of its own, with its executors; yields its log."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [BIN / "spark-class", *words], env=_environ(java_home, quick), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        yield log
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def _environ(java_home: Path, quick: str) -> dict[str, str]:
    """Nothing of the caller's but its path: $SPARK_HOME or a $SPARK_CONF_DIR would make another Spark."""
    return {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": str(java_home),
        "SPARK_LOCAL_IP": "127.0.0.1",  # where their web pages are
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{quick} -Dspark.master.rest.enabled=false",
    }
