"""Processes of a sandbox, with their ports, their formatted storage and their recorded state.

Each process is in its own group, remembered by pid and start time, and ended only if still the same.

A broker's storage is formatted once per Kafka version: StorageTool takes a JVM's second, and writes 500 bytes.

Loopback ports of a stack are reserved when chosen: its JVMs bind them seconds later, and again after restarts. They are
outside the range from which the kernel assigns ports, where any outgoing connection could take one in between. A
reservation is a link in a folder of the cache: port -> the stack's directory. A link whose directory is gone no longer
counts, so nothing has to be released, not even after a kill.

The state of a running stack is recorded so that `status` and `down` know it after a crash of eosctl.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, to_builtins

from eosctl.core.java.properties import set_property
from eosctl.errors import EosctlError
from eosctl.machine.class_archive import KeptFile
from eosctl.machine.files import make_folder, write_whole
from eosctl.sandbox.downloads.jars import locked

_META = "meta.properties"


def storage_template(cache: Path, kafka_version: str, jars: Iterable[Path]) -> KeptFile:
    """Return the place of formatted storage for these jars, whose paths depend on their content.

    Only storage without users belongs there: StorageTool writes their passwords into it, salted.
    """
    digest = hashlib.sha256("\n".join(map(str, jars)).encode()).hexdigest()[:16]
    return KeptFile(cache / "storage", f"storage-{kafka_version}-{digest}", ".zip")


def keep_storage(template: KeptFile, data: Path) -> None:
    """Keep the formatted storage in `data` for the next stack."""
    with tempfile.TemporaryDirectory(dir=data.parent) as directory:
        template.keep(Path(shutil.make_archive(f"{directory}/storage", "zip", data)))


def take_storage(template: KeptFile, data: Path) -> bool:
    """Fill `data` from the template; return False if there is none yet."""
    kept = template.path()
    if kept is not None:
        shutil.unpack_archive(kept, data, "zip")
    return kept is not None


def name_storage(data: Path, *, cluster_id: str, node_id: int) -> None:
    """Set the ids of one node in formatted storage, with an own id of its directory if it has one (Kafka 3.7)."""
    path = data / _META
    text = path.read_text(encoding="ascii")
    text = set_property(set_property(text, "cluster.id", cluster_id), "node.id", str(node_id))
    if "\ndirectory.id=" in text:
        text = set_property(text, "directory.id", kafka_uuid())
    path.write_text(text, encoding="ascii")


def kafka_uuid() -> str:
    """Make a new id as Kafka writes them; without a dash, because none may come first."""
    return urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode("ascii").replace("-", "a")


_LOWEST, _HIGHEST = 10_000, 65_535
_FEW = 1000
_KERNEL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


TakePorts = Callable[..., list[int]]


def take_ports(count: int, *, folder: Path, owner: Path, candidates: Iterable[int] | None = None) -> list[int]:
    """Reserve the first `count` free ports of `candidates` in `folder`, for as long as `owner` exists.

    Without `candidates` any usable port may be one. Raises EosctlError when there are not so many.
    """
    untried = iter(candidates or from_anywhere(usable_ports(_kernel_range())))
    make_folder(folder)
    with locked(folder / ".lock"):
        _forget_gone(folder)
        taken: list[int] = []
        while len(taken) < count:
            port = next(untried, None)
            if port is None:
                raise EosctlError(f"127.0.0.1 has no {count} free ports", hint=f"Sandboxes have those in {folder}.")
            link = folder / str(port)
            if not link.is_symlink() and _is_free(port):
                link.symlink_to(owner)
                taken.append(port)
    return taken


def usable_ports(kernel_range: tuple[int, int]) -> range:
    """Return the ports that the kernel never assigns by itself; all ports if it leaves only a few."""
    first, last = kernel_range
    below, above = range(_LOWEST, first), range(last + 1, _HIGHEST + 1)
    widest = max(below, above, key=len)
    return widest if len(widest) >= _FEW else range(_LOWEST, _HIGHEST + 1)


def _kernel_range() -> tuple[int, int]:
    """Read the range from which the kernel assigns ports to outgoing connections, and to servers that want any."""
    first, last = _KERNEL_RANGE.read_text(encoding="ascii").split()
    return int(first), int(last)


def from_anywhere(ports: range) -> Iterator[int]:
    """Yield all ports, from a random one on: sandboxes unknown to each other rarely try the same."""
    start = secrets.randbelow(len(ports))
    return (ports[(start + step) % len(ports)] for step in range(len(ports)))


def _forget_gone(folder: Path) -> None:
    """Remove the links of stacks that are gone."""
    for link in folder.iterdir():
        if link.is_symlink() and not link.exists():
            link.unlink()


def _is_free(port: int) -> bool:
    """Decide whether a server could bind the port now; like Java, ignore one that was just closed."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


STOP_S = 60.0
"""A JVM that writes its classes at its end is not quick, and a worker that is killed stays a member of its group."""
_POLL_S = 0.02


class ProcessId(Struct, frozen=True):
    """A pid and the kernel's start time of that process (clock ticks since boot): a reused pid is another process."""

    pid: int
    start_ticks: int

    def alive(self) -> bool:
        """Decide whether exactly this process still runs (a zombie process does not)."""
        return _start_ticks(self.pid) == self.start_ticks


def spawn(command: Sequence[str], *, log: Path, directory: Path, environ: Mapping[str, str]) -> ProcessId:
    """Start `command` in a session and process group of its own, with its output appended to `log`."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=directory, env=dict(environ), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    ticks = _start_ticks(process.pid)
    process.returncode = 0  # the sandbox outlives this object on purpose: it is found again by ProcessId
    return ProcessId(process.pid, ticks or 0)


def stop(processes: Sequence[ProcessId], *, grace_s: float = STOP_S) -> None:
    """Send SIGTERM to each process group, and SIGKILL to those left after `grace_s`; wait until all are gone.

    One that is stopped (SIGSTOP) is continued, for it would not end before.
    """
    _signal_all(processes, signal.SIGTERM)
    _signal_all(processes, signal.SIGCONT)
    if not _wait_gone(processes, grace_s):
        kill(processes)


def kill(processes: Sequence[ProcessId]) -> None:
    """Send SIGKILL to each process group; wait until all are gone."""
    _signal_all(processes, signal.SIGKILL)
    _wait_gone(processes, STOP_S)


def signal_group(process: ProcessId, number: signal.Signals) -> None:
    """Send a signal to the process's group, if it is still the same process."""
    _signal_all([process], number)


def _signal_all(processes: Sequence[ProcessId], number: signal.Signals) -> None:
    for process in processes:
        if process.alive():
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                continue


def _wait_gone(processes: Sequence[ProcessId], wait_s: float) -> bool:
    deadline_s = time.monotonic() + wait_s
    while any(process.alive() for process in processes):
        if time.monotonic() > deadline_s:
            return False
        _reap(processes)
        time.sleep(_POLL_S)
    _reap(processes)
    return True


def _reap(processes: Sequence[ProcessId]) -> None:
    """Reap our own children that ended, so that they don't stay as zombies while we run."""
    for process in processes:
        try:
            os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:
            continue


def _start_ticks(pid: int) -> int | None:
    """Read field 22 of /proc/PID/stat (starttime); None if the process is gone, or ended and not yet reaped.

    A JVM's first thread can end long before the others; then the state is Z too, but num_threads (field 20) is not 1.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, threads, ticks = fields[0], int(fields[17]), int(fields[19])
    return None if state in "ZX" and threads <= 1 else ticks


_FILE = "stack.json"


class Node(Struct, frozen=True):
    """One process of a stack. `address` is `host:port` of a broker, the REST URL of a worker; brokers have no group.

    `metrics_url` is the Prometheus endpoint of a worker that has the agent, whose jar is `agent`. One that
    `records_classes` writes an archive of its loaded classes when it is stopped. `forwarded_address` is the listener of
    a broker for forwarded connections.
    """

    name: str
    kind: str
    address: str
    pid: int
    start_ticks: int
    config: str
    log: str
    group_id: str | None = None
    mode: str | None = None
    secure_address: str | None = None
    metrics_url: str | None = None
    agent: str | None = None
    records_classes: bool = False
    forwarded_address: str | None = None

    @property
    def process(self) -> ProcessId:
        """The process behind it."""
        return ProcessId(self.pid, self.start_ticks)


class StackState(Struct, frozen=True):
    """A stack as it was started: its files, its Kafka, its processes, the topics of each group, its Java.

    `command_configs` are the client.properties of the users of a secured stack; `cache` is what all stacks share. An
    older eosctl wrote down neither that nor the id of the cluster.
    """

    name: str
    directory: str
    kafka_version: str
    nodes: tuple[Node, ...]
    topics: dict[str, dict[str, str]]
    java: str = "java"
    command_configs: dict[str, str] = {}
    cache: str = ""
    cluster_id: str = ""

    def of_kind(self, kind: str) -> tuple[Node, ...]:
        """Return the nodes that are a `broker` or a `worker`."""
        return tuple(node for node in self.nodes if node.kind == kind)

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, comma separated."""
        return ",".join(node.address for node in self.of_kind("broker"))


def save(state: StackState) -> None:
    """Write the state into the stack's directory, atomically."""
    text = json.dumps(to_builtins(state), indent=1)
    write_whole(Path(state.directory) / _FILE, lambda file: file.write(text.encode()))


def load(directory: Path) -> StackState | None:
    """Read the state of the stack in `directory`; return None if there is none or it is unreadable."""
    try:
        document = json.loads((directory / _FILE).read_text(encoding="utf-8"))
        nodes = tuple(Node(**node) for node in document.pop("nodes"))
        return StackState(nodes=nodes, **document)
    except (OSError, ValueError, TypeError, KeyError):
        return None
