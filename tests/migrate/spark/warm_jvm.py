"""A JVM for Spark that outlives the commands that use it: they find it as under spark-submit, and start in a second.

A command that is killed leaves its Spark context in there, and Python processes that still write: `end_spark` kills
them, as whoever kills a whole machine does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway  # type: ignore[import-untyped]
from pyspark.serializers import UTF8Deserializer, read_int

from eosctl.migrate.spark.session import session_conf
from tests.migrate.spark.standalone import BIN
from tests.quick_spark import quick_settings
from tests.sandbox_fixtures import wait_until

_PATIENCE_S = 300.0


@dataclass(frozen=True)
class WarmJvm:
    """`environ` is what a command needs to find it."""

    pid: int
    environ: Mapping[str, str]
    gateway: Any

    def end_spark(self) -> None:
        """Kills the Python processes of the JVM, and stops the Spark context that a killed command has left."""
        self._kill_python()
        contexts = getattr(getattr(self.gateway.jvm.org.apache.spark, "SparkContext$"), "MODULE$")
        context = contexts.getActive()
        if context.isDefined():
            context.get().stop()
        wait_until(self._kill_python, what="Spark's Python processes to end", timeout_s=_PATIENCE_S)

    def _kill_python(self) -> bool:
        """Whether none is left; one that has just started has no process group of its own yet."""
        there = self._python_daemons()
        for daemon in there:
            for kill in (os.killpg, os.kill):
                with suppress(ProcessLookupError):
                    kill(daemon, signal.SIGKILL)
        return not there

    def _python_daemons(self) -> list[int]:
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it ended meanwhile
                state, parent = stat.read_text().rpartition(")")[2].split()[:2]
                if int(parent) == self.pid and state != "Z":
                    found.append(int(stat.parent.name))
        return found


@contextmanager
def warm_jvm(folder: Path) -> Iterator[WarmJvm]:
    """The JVM, which ends with the block; it writes to `folder`."""
    settings = quick_settings(folder, master="local[2]")
    conf = [word for name, value in session_conf(settings).items() for word in ("--conf", f"{name}={value}")]
    found = folder / "gateway"
    environ = {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": str(settings.java_home),
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(found),  # where pyspark.java_gateway.launch_gateway looks, too
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONNECT_MODE": "0",
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),  # a JVM keeps that of its first context, which a command removes
    }
    with settings.log_file.open("ab") as log:
        process = subprocess.Popen(
            [BIN / "spark-submit", *conf, "pyspark-shell"], env=environ, start_new_session=True,
            stdin=subprocess.PIPE, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        wait_until(found.exists, what="Spark's JVM", timeout_s=_PATIENCE_S)
        jvm = _connected(process.pid, found)
        yield jvm
        jvm.gateway.shutdown()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=_PATIENCE_S)


def _connected(pid: int, found: Path) -> WarmJvm:
    with found.open("rb") as file:
        port, secret = read_int(file), UTF8Deserializer().loads(file)  # type: ignore[no-untyped-call]
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret, auto_convert=True))
    environ = {**os.environ, "PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    return WarmJvm(pid, environ, gateway)
