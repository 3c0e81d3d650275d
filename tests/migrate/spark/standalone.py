"""A Spark cluster of a master and two workers on loopback, out of pyspark's own jars."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from eosctl.machine.java import require_java, spark_java_home
from eosctl.migrate.spark.session import spark_class_archive
from eosctl.sandbox.downloads.jars import cache_dir
from tests.sandbox_fixtures import wait_until

BIN = Path(pyspark.__file__).parent / "bin"
_DEPLOY = "org.apache.spark.deploy"
_LISTENS = re.compile(r"Successfully started service 'sparkMaster' on port (\d+)")
_PORTS = ["--port", "0", "--webui-port", "0"]  # the kernel chooses
_MASTER = "127.0.0.1"
_WORKERS = {"worker-1": "127.0.0.1", "worker-2": "127.0.0.2"}
"""Their names and hosts: Spark tries a second copy of a task on another host only."""
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_ELSEWHERE = ("unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')
"""Starts what follows where the folder that is named first is another one, as on a machine that shares nothing."""


@dataclass(frozen=True)
class Standalone:
    """`master` is its URL, `folder` has a log per process and a folder of work per worker.

    `quick` are options for JVMs that run some seconds only. `apart` is a folder that the second worker has as well, and
    it is another one. `workers` are the pids. `java_home` is what Spark's own programs need.
    """

    master: str
    folder: Path
    quick: str
    apart: Path
    workers: tuple[int, ...]
    java_home: Path

    def workers_at_work(self) -> list[str]:
        """The names of the workers whose executors have finished tasks."""
        return [
            name
            for name in _WORKERS
            if any("Finished task" in log.read_text() for log in (self.folder / name).glob("app-*/*/stderr"))
        ]

    def executors(self) -> list[int]:
        """The pids of the executors that run."""
        return sorted(each.pid for each in _processes() if each.group in self.workers and _EXECUTOR in each.command())


def tasks_of(executor: int) -> list[int]:
    """The pids of the Python processes that run the tasks of an executor."""
    children = defaultdict(list)
    for each in _processes():
        children[each.parent].append(each.pid)
    return [task for daemon in children[executor] for task in children[daemon]]


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    group: int

    def command(self) -> bytes:
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except OSError:  # it ended meanwhile
            return b""


def _processes() -> Iterator[_Process]:
    """Those that run, of the whole machine."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, group = stat.read_text().rpartition(")")[2].split()[:3]
            if state != "Z":
                yield _Process(int(stat.parent.name), int(parent), int(group))


@contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    """Two workers of one core each, for executors of 512 MB; all of it is gone at the end of the block."""
    java_home = spark_java_home(require_java(os.environ), cache_dir(os.environ) / "spark")
    quick, apart, pids = _quick(java_home, folder), folder / "apart", []
    apart.mkdir()
    with ExitStack() as processes:
        master, _pid = processes.enter_context(
            _process(folder, java_home, quick, "master", [f"{_DEPLOY}.master.Master", "--host", _MASTER, *_PORTS])
        )
        found = wait_until(lambda: _LISTENS.search(master.read_text()), what="the master to listen")
        url = f"spark://{_MASTER}:{found[1]}"
        for name, host in _WORKERS.items():
            words = ["--host", host, *_PORTS, "--cores", "1", "--memory", "512m", "--work-dir", str(folder / name), url]
            where = (*_ELSEWHERE, str(apart)) if name == "worker-2" else ()
            words = [f"{_DEPLOY}.worker.Worker", *words]
            _log, pid = processes.enter_context(_process(folder, java_home, quick, name, words, where=where))
            pids.append(pid)
        wait_until(lambda: len(_registered(master)) == len(_WORKERS), what="both workers")
        yield Standalone(url, folder, quick, apart, tuple(pids), java_home)


def _registered(log: Path) -> set[str]:
    """The addresses of the workers; one that hears nothing registers again."""
    return set(re.findall(r"Registering worker (\S+)", log.read_text()))


def _quick(java_home: Path, folder: Path) -> str:
    """The fast compiler, the small collector, and the classes that eosctl keeps of Spark's JVMs, if there are any."""
    archive = spark_class_archive(cache_dir(os.environ) / "spark", java_home=java_home, work_dir=folder)
    return " ".join(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *(archive.use() if archive else ())])


@contextmanager
def _process(
    folder: Path, java_home: Path, quick: str, name: str, words: list[str], *, where: Sequence[str] = ()
) -> Iterator[tuple[Path, int]]:
    """One of Spark's daemons in a process group of its own, with its executors; yields its log and its pid."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*where, BIN / "spark-class", *words], env=_environ(folder, java_home, quick), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        yield log, process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def _environ(folder: Path, java_home: Path, quick: str) -> dict[str, str]:
    """Nothing of the caller's but its path: $SPARK_HOME or a $SPARK_CONF_DIR would make another Spark."""
    return {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": str(java_home),
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),  # of executors, too: what is killed leaves something there
        "SPARK_LOCAL_IP": "127.0.0.1",  # where their web pages are
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{quick} -Dspark.master.rest.enabled=false",
    }
