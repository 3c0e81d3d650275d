"""A JVM with the jars of a lock file, driven from Python by py4j: nothing has to be compiled.

The locks have the sandbox's format. `flink-sink.lock` is what Flink's own jars and its Kafka connector load while a job
runs (`-Xlog:class+load` tells), `kafka-streams.lock` the one jar that a Kafka stack lacks.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway  # type: ignore[import-untyped]

from eosctl.deadline import ignore_events
from eosctl.machine.java import require_java
from eosctl.sandbox.downloads.jars import ca_file, cache_dir, ensure_jars, proxy_options
from eosctl.sandbox.settings import Jar, parse_lock
from tests.sandbox_fixtures import wait_until

_LOCKS = Path(__file__).parent
# what Flink's serializers look into; the fast compiler only, for a program of seconds
_OPTIONS = [
    *(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util")),
    *("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
]


def locked(name: str) -> list[Jar]:
    """The jars of a lock file of this folder."""
    return parse_lock((_LOCKS / f"{name}.lock").read_text(encoding="utf-8"))


@contextmanager
def jvm(jars: Sequence[Jar], folder: Path, *, options: Sequence[str] = ()) -> Iterator[Any]:
    """What py4j calls `gateway.jvm`; at the end of the block the JVM is killed, as a job whose machine is lost.

    `options` are further ones of the JVM; what it logs to its console is in jvm.out of `folder`.
    """
    java = require_java(os.environ)
    paths = ensure_jars(
        jars, cache=cache_dir(os.environ), java=java, maven_url=os.environ.get("EOSCTL_MAVEN_URL"),
        on_event=ignore_events, java_options=proxy_options(os.environ), ca_file=ca_file(os.environ),
    )  # fmt: skip
    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    class_path = os.pathsep.join(map(str, [py4j, *paths]))
    mine = f"-Djava.io.tmpdir={folder}"  # Flink's files, which stay when it is killed
    command = [str(java.executable), *_OPTIONS, mine, *options, "-cp", class_path]
    command += ["py4j.GatewayServer", "--enable-auth", "0"]
    said = folder / "jvm.out"
    with said.open("wb") as output, (folder / "jvm.err").open("wb") as errors:
        process = subprocess.Popen(
            command, env={"LC_ALL": "C.UTF-8"}, cwd=folder, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
        )  # fmt: skip
    try:
        port, token = wait_until(lambda: _port_and_token(said), what="the JVM to listen")
        parameters = GatewayParameters(
            address="127.0.0.1", port=port, auth_token=token, auto_convert=True, enable_memory_management=False
        )
        gateway = JavaGateway(gateway_parameters=parameters)
        try:
            yield gateway.jvm
        finally:
            gateway.close()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def _port_and_token(said: Path) -> tuple[int, str] | None:
    """The first two lines that the gateway prints."""
    lines = said.read_text(encoding="utf-8").split("\n")
    return (int(lines[0]), lines[1]) if len(lines) > 2 else None


def properties(java: Any, **values: str) -> Any:
    """A java.util.Properties; `_` stands for a dot."""
    made = java.java.util.Properties()
    for name, value in values.items():
        made.setProperty(name.replace("_", "."), value)
    return made
