"""The archive of the classes that brokers and workers load: who makes it, who uses it, and when there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.errors import DeadlineError
from eosctl.sandbox.servers.launcher import Launcher
from eosctl.sandbox.servers.process import Node, StackState, take_ports
from eosctl.sandbox.stack import Stack
from tests.fakes.clock import PLENTY_S

# a worker's JVM as far as it matters here: answers, and writes the archive that it was asked for when it is stopped
_WORKER = """#!{python}
import http.server, pathlib, signal, sys
options = dict(word.split("=", 1) for word in sys.argv if word.startswith("-XX:") and "=" in word)
port = int(pathlib.Path(sys.argv[-1]).read_text().rpartition(":")[2])

def stop(*_):
    if "-XX:ArchiveClassesAtExit" in options:
        pathlib.Path(options["-XX:ArchiveClassesAtExit"]).write_bytes({archive!r})
    with open(sys.argv[0] + ".stops", "a") as stops:
        stops.write("x")
    sys.exit(143)

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({status})
        self.end_headers()

signal.signal(signal.SIGTERM, stop)
server = http.server.HTTPServer(("127.0.0.1", port), Answers)
server.serve_forever()
"""
Start = Callable[..., Stack]


def _write_java(path: Path, *, archive: bytes = b"classes", status: int = 200) -> None:
    path.write_text(_WORKER.format(python=sys.executable, archive=archive, status=status))
    path.chmod(0o755)


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A Java that runs nothing but this worker."""
    _write_java(tmp_path / "java")
    return tmp_path / "java"


@pytest.fixture
def start(tmp_path: Path, java: Path) -> Iterator[Start]:
    """Starts another stack each time: a worker alone, without waiting for it if told so."""
    started: list[Stack] = []
    jar = tmp_path / "kafka.jar"
    jar.touch()

    def run(
        *, agent: str | None = None, options: str | None = None, secret: str | None = None, records_classes: bool = True
    ) -> Stack:
        directory = tmp_path / f"stack-{len(started)}"
        config = directory / "worker" / "worker.properties"
        config.parent.mkdir(parents=True)
        (port,) = take_ports(1, folder=tmp_path / "cache" / "ports", owner=directory)
        config.write_text(f"listeners=http://127.0.0.1:{port}")
        if options:
            config.with_name("jvm.options").write_text(options)
        if secret:
            (directory / secret).mkdir()
        url, log = f"http://127.0.0.1:{port}", str(config.with_name("log.txt"))
        node = Node("worker", "worker", url, 0, 0, str(config), log, agent=agent)
        node = replace(node, metrics_url="http://127.0.0.1:1/metrics" if agent else None)
        cache = tmp_path / "cache"
        Launcher(java, directory, cache).prepare([jar], "4.3.1")
        known = StackState("s", str(directory), "4.3.1", (node,), {}, str(java), cache=str(cache))
        stack = Stack(known, records_classes=records_classes)
        started.append(stack)
        stack.start_node("worker", start_timeout_s=PLENTY_S)
        return stack

    yield run
    for stack in started:
        stack.kill()


def _options(stack: Stack) -> str:
    """The option about classes that the worker was started with, and which file of which folder it names."""
    words = Path(f"/proc/{stack.node('worker').pid}/cmdline").read_text().split("\0")
    found = [word for word in words if word.startswith(("-XX:ArchiveClassesAtExit", "-XX:SharedArchiveFile"))]
    assert len(found) <= 1
    return found[0] if found else ""


def _stops(java: Path) -> int:
    """How many workers were asked to end; those that were killed don't count."""
    path = java.with_name(f"{java.name}.stops")
    return len(path.read_text()) if path.exists() else 0


def _kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "classes").glob("*"))


def test_the_first_stack_makes_it_and_the_next_ones_use_it(start: Start, tmp_path: Path) -> None:
    """A third of a broker's and a worker's start is loading classes."""
    first = start()
    assert _options(first) == f"-XX:ArchiveClassesAtExit={first.directory}/worker/classes.jsa"
    first.down()
    (archive,) = _kept(tmp_path)
    assert archive.name.startswith("worker-kafka-4.3.1-")
    assert archive.read_bytes() == b"classes"
    second = start()
    assert _options(second) == f"-XX:SharedArchiveFile={archive}"
    second.restart_node("worker")
    assert _options(second) == f"-XX:SharedArchiveFile={archive}"
    second.down()
    assert _kept(tmp_path) == [archive]


def test_a_stop_of_one_node_makes_it_too(start: Start, tmp_path: Path) -> None:
    stack = start()
    stack.stop_node("worker")
    (archive,) = _kept(tmp_path)
    stack.start_node("worker")
    assert _options(stack) == f"-XX:SharedArchiveFile={archive}"


def test_one_that_makes_it_is_enough(start: Start, java: Path, tmp_path: Path) -> None:
    """It takes a JVM seconds more to end."""
    first, second = start(), start()
    first.down()
    assert _stops(java) == 1
    (archive,) = _kept(tmp_path)
    second.down()
    assert (_stops(java), _kept(tmp_path)) == (1, [archive])


def test_who_starts_it_once_has_nothing_of_it(start: Start, java: Path, tmp_path: Path) -> None:
    """A JVM that writes down its classes takes half as much CPU time again for its start."""
    stack = start(records_classes=False)
    assert _options(stack) == ""
    stack.down()
    assert (_stops(java), _kept(tmp_path)) == (0, [])
    start().down()
    assert "SharedArchiveFile" in _options(start(records_classes=False))


@pytest.mark.parametrize(
    "what", [{"agent": "agent.jar"}, {"options": '"-Da=b"'}, {"secret": "secure"}], ids=["agent", "options", "secure"]
)
def test_who_may_not_make_it(start: Start, tmp_path: Path, what: dict[str, str]) -> None:
    """Passwords must not get into the cache, and classes of an agent or of other options fit nobody else."""
    stack = start(**what)
    assert _options(stack) == ""
    stack.down()
    assert _kept(tmp_path) == []
    start().down()
    assert _options(start(**what)) == f"-XX:SharedArchiveFile={_kept(tmp_path)[0]}"


def test_a_worker_that_never_came_up_has_too_few_classes(start: Start, java: Path, tmp_path: Path) -> None:
    """A `sandbox up` that was killed, and `sandbox down` after it."""
    stack = start()
    stack.kill()
    _write_java(java, status=404)
    with pytest.raises(DeadlineError):
        stack.start_node("worker", start_timeout_s=0.5)
    assert "ArchiveClassesAtExit" in _options(stack)
    stack.down()
    assert _kept(tmp_path) == []


def test_another_java_or_other_jars_have_their_own(start: Start, java: Path, tmp_path: Path) -> None:
    start().down()
    (tmp_path / "kafka.jar").write_text("others")
    assert "ArchiveClassesAtExit" in _options(start())
    java.write_text(java.read_text() + "# a newer one\n")
    assert "ArchiveClassesAtExit" in _options(start())


@pytest.mark.live
def test_real_jvms_take_it(stack: Stack) -> None:
    """A JVM says nothing of an archive that it does not take: the file is mapped then no more."""
    for node in stack.state.nodes:
        words = Path(f"/proc/{node.pid}/cmdline").read_text().split("\0")
        archive = next((word.partition("=")[2] for word in words if word.startswith("-XX:SharedArchiveFile=")), None)
        assert not node.records_classes, "it would be for nothing"
        if archive is not None:  # not the first stack on this machine
            assert archive in Path(f"/proc/{node.pid}/maps").read_text()
