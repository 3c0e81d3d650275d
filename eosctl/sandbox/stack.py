"""A real Kafka and real Connect workers on loopback: start, ask until ready, restart, stop, leave nothing behind."""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from eosctl.errors import EosctlError
from eosctl.events import Event, OnEvent, ignore_events
from eosctl.java import Java, require_java
from eosctl.sandbox import process, state
from eosctl.sandbox.jars import cache_dir, ensure_jars
from eosctl.sandbox.lock import read_lock
from eosctl.sandbox.settings import (
    BrokerPorts,
    Eos,
    GroupSpec,
    StackSpec,
    broker_properties,
    logging_files,
    properties_text,
    worker_properties,
)
from eosctl.sandbox.state import Node, StackState

_START_S = 90.0
# short-lived test servers: the fast compiler only, the small collector, shared class data
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.net.preferIPv4Stack=true")


class Stack:
    """A running stack; `Stack.up` makes one, `Stack.find` meets one that another process left running."""

    def __init__(self, known: StackState, launcher: _Launcher | None = None) -> None:
        self.state = known
        self._launcher = launcher

    @classmethod
    def up(
        cls,
        spec: StackSpec,
        directory: Path,
        *,
        name: str,
        environ: Mapping[str, str],
        on_event: OnEvent = ignore_events,
    ) -> Stack:
        """Starts everything in `spec` below `directory` (which must not exist) and waits until all of it answers.

        On any failure, Ctrl-C included, what was started is stopped again and the directory is left for its logs.
        Raises EosctlError with the end of the log of the process that did not come up.
        """
        java = require_java(environ)
        maven_url = environ.get("EOSCTL_MAVEN_URL")
        cache = cache_dir(environ)
        jars = ensure_jars(
            read_lock(spec.kafka_version), cache=cache, java=java, maven_url=maven_url, on_event=on_event
        )
        directory.mkdir(parents=True)
        launcher = _Launcher(java, jars, directory, spec)
        topics = {group.group_id: group.topics() for group in spec.groups}
        stack = cls(StackState(name, str(directory), spec.kafka_version, (), topics), launcher)
        try:
            stack._start_brokers(spec, on_event)
            stack._start_workers(spec, on_event)
        except BaseException:
            stack.stop_processes()
            raise
        return stack

    @classmethod
    def find(cls, directory: Path) -> Stack | None:
        """The stack that was started in `directory`, running or not; None when there is none."""
        known = state.load(directory)
        return cls(known) if known else None

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of all brokers, comma separated."""
        return self.state.bootstrap_servers

    @property
    def secure_bootstrap_servers(self) -> str:
        """The SASL_SSL listeners of all brokers; empty without a secure listener."""
        return ",".join(node.secure_address for node in self.state.of_kind("broker") if node.secure_address)

    @property
    def directory(self) -> Path:
        """Where configuration, data and logs are."""
        return Path(self.state.directory)

    def urls(self, group_id: str) -> list[str]:
        """The REST URLs of a group's workers, in order."""
        return [node.address for node in self.state.of_kind("worker") if node.group_id == group_id]

    def node(self, name: str) -> Node:
        """The node called `name` (`broker-1`, `connect-eos-worker-0`)."""
        for node in self.state.nodes:
            if node.name == name:
                return node
        raise EosctlError(f"the sandbox has no {name}", hint=f"It has {', '.join(n.name for n in self.state.nodes)}.")

    def alive(self) -> bool:
        """Whether any of its processes still runs."""
        return any(node.process.alive() for node in self.state.nodes)

    def stop_node(self, name: str) -> None:
        """Stops one process and waits until it is gone."""
        process.stop([self.node(name).process])

    def start_node(self, name: str, *, mode: Eos | None = None) -> None:
        """Starts a stopped node on its old port and files, a worker in `mode` if given; waits until it answers."""
        assert self._launcher is not None, "only the process that started a stack can restart its nodes"  # noqa: S101
        node = self.node(name)
        if mode is not None:
            config = Path(node.config)
            text = config.read_text(encoding="utf-8")
            changed = text.replace(f"support={node.mode}\n", f"support={mode.value}\n")
            config.write_text(changed, encoding="utf-8")
            node = replace(node, mode=mode.value)
        self._keep(self._launcher.launch(node))
        self._await([name])

    def stop_processes(self) -> None:
        """Stops workers first, because a worker without its broker takes long to end; then brokers."""
        process.stop([node.process for node in self.state.of_kind("worker")])
        process.stop([node.process for node in self.state.of_kind("broker")])

    def down(self) -> None:
        """Stops everything and removes the directory."""
        self.stop_processes()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _start_brokers(self, spec: StackSpec, on_event: OnEvent) -> None:
        assert self._launcher is not None  # noqa: S101 - set by up()
        on_event(Event(f"starting Kafka {spec.kafka_version}: {spec.brokers} broker{'s' * (spec.brokers > 1)}"))
        for node in self._launcher.prepare_brokers(spec):
            self._keep(self._launcher.launch(node))
        self._await([node.name for node in self.state.of_kind("broker")])

    def _start_workers(self, spec: StackSpec, on_event: OnEvent) -> None:
        assert self._launcher is not None  # noqa: S101 - set by up()
        names = []
        for group in spec.groups:
            on_event(Event(f"starting Connect group {group.group_id}: {', '.join(group.modes)}"))
            for node in self._launcher.prepare_workers(group, self.bootstrap_servers, replication=min(3, spec.brokers)):
                self._keep(self._launcher.launch(node))
                names.append(node.name)
        self._await(names)

    def _keep(self, node: Node) -> None:
        """Writes a started node down before anything else happens, so that a crash leaves no unknown process."""
        others = tuple(known for known in self.state.nodes if known.name != node.name)
        self.state = replace(self.state, nodes=tuple(sorted((*others, node), key=lambda known: known.name)))
        state.save(self.state)

    def _await(self, names: Sequence[str]) -> None:
        deadline_s = time.monotonic() + _START_S
        for name in names:
            node = self.node(name)
            ready = _broker_answers if node.kind == "broker" else _worker_answers
            while not ready(node.address):
                if not node.process.alive() or time.monotonic() > deadline_s:
                    raise _not_up(node)
                time.sleep(0.1)


class _Launcher:
    """Knows how to write a node's files and start its JVM."""

    def __init__(self, java: Java, jars: Sequence[Path], directory: Path, spec: StackSpec) -> None:
        self._java, self._directory = java, directory
        self._class_path = os.pathsep.join(str(jar) for jar in jars)
        file_name, text, option = logging_files(spec.kafka_version)
        (directory / file_name).write_text(text, encoding="utf-8")
        self._logging = f"{option}{directory / file_name}"

    def prepare_brokers(self, spec: StackSpec) -> list[Node]:
        """Writes and formats each broker's storage; nothing is started yet."""
        free = free_ports(3 * spec.brokers)
        ports = [BrokerPorts(*free[index : index + 3]) for index in range(0, len(free), 3)]
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode("ascii").replace("-", "a")
        nodes = []
        for number in range(1, spec.brokers + 1):
            name = f"broker-{number}"
            data = self._directory / name / "data"
            data.mkdir(parents=True)
            properties = broker_properties(number, ports, data, spec)
            node = self._node(name, "broker", f"127.0.0.1:{ports[number - 1].client}", properties)
            self._format(node, cluster_id, spec.secure.format_arguments() if spec.secure else [])
            secure = f"127.0.0.1:{ports[number - 1].secure}" if spec.secure else None
            nodes.append(replace(node, secure_address=secure))
        return nodes

    def prepare_workers(self, group: GroupSpec, bootstrap_servers: str, *, replication: int) -> list[Node]:
        """Writes each worker's configuration; nothing is started yet."""
        nodes = []
        for number, (mode, port) in enumerate(zip(group.modes, free_ports(len(group.modes)), strict=True)):
            properties = worker_properties(
                group, mode, bootstrap_servers=bootstrap_servers, port=port, replication=replication
            )
            name = f"{group.group_id}-worker-{number}"
            node = self._node(name, "worker", f"http://127.0.0.1:{port}", properties)
            nodes.append(replace(node, group_id=group.group_id, mode=mode.value))
        return nodes

    def launch(self, node: Node) -> Node:
        """Starts the node's JVM; the answer carries its process."""
        main = "kafka.Kafka" if node.kind == "broker" else "org.apache.kafka.connect.cli.ConnectDistributed"
        heap = "-Xmx512m" if node.kind == "broker" else "-Xmx256m"
        command = [str(self._java.executable), heap, *_JVM, self._logging, "-cp", self._class_path, main, node.config]
        directory = Path(node.config).parent
        started = process.spawn(command, log=Path(node.log), directory=directory, environ=dict(os.environ))
        return replace(node, pid=started.pid, start_ticks=started.start_ticks)

    def _node(self, name: str, kind: str, address: str, properties: Mapping[str, str]) -> Node:
        home = self._directory / name
        home.mkdir(exist_ok=True)
        config = home / ("server.properties" if kind == "broker" else "worker.properties")
        config.write_text(properties_text(properties), encoding="utf-8")
        return Node(name, kind, address, pid=0, start_ticks=0, config=str(config), log=str(home / "log.txt"))

    def _format(self, node: Node, cluster_id: str, more: Sequence[str]) -> None:
        command = [str(self._java.executable), *_JVM, self._logging, "-cp", self._class_path, "kafka.tools.StorageTool"]
        command += ["format", "-t", cluster_id, "-c", node.config, *more]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise EosctlError(f"formatting the storage of {node.name} failed: {(done.stderr or done.stdout)[-500:]}")


def free_ports(count: int) -> list[int]:
    """`count` different loopback ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _broker_answers(address: str) -> bool:
    """Whether the broker answers a metadata request with a controller in place."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    host, port = address.rsplit(":", 1)
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex((host, int(port))):
            return False
    silent = logging.Logger("sandbox")
    silent.addHandler(logging.NullHandler())
    admin = AdminClient({"bootstrap.servers": address, "enable.metrics.push": False}, logger=silent)
    try:
        metadata = admin.list_topics(timeout=2)
    except KafkaException:
        return False
    return bool(metadata.brokers) and metadata.controller_id >= 0


def _worker_answers(address: str) -> bool:
    """Whether the worker lists connectors: it answers that only after it joined the group (404 or 503 before)."""
    try:
        with urllib.request.urlopen(f"{address}/connectors", timeout=5) as answer:  # noqa: S310 - our own loopback URL
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _not_up(node: Node) -> EosctlError:
    """The error of a node that did not come up: what its log complains of, else its last lines."""
    lines = [line for line in log_tail(Path(node.log), 2000) if line.strip() and not line.startswith("\tat ")]
    complaints = [line for line in lines if re.search(r" (ERROR|FATAL) |^Caused by|Exception|NoClassDefFound", line)]
    why = "ended" if not node.process.alive() else f"did not answer within {_START_S:g} s"
    telling = "\n".join(complaints[:8] or lines[-8:])
    return EosctlError(f"{node.name} {why}:\n{telling}", hint=f"Its log is {node.log}.")


def log_tail(path: Path, count: int) -> list[str]:
    """The last `count` lines of a log file; empty when there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
    except OSError:
        return []
