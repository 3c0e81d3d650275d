"""Writes a node's files, starts its JVM, and waits until it is ready or explains why it is not.

The files suffice to start the node again from another process. Brokers and workers are asked whether they are ready: no
log decides it.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from eosctl.core.java.properties import properties_text
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError
from eosctl.foreign import Lines
from eosctl.machine.class_archive import ClassArchive, KeptFile, archive_name
from eosctl.sandbox.login import SandboxLogin, SecureFiles, SecureListener, write_private
from eosctl.sandbox.servers import process
from eosctl.sandbox.servers.process import Node, TakePorts, keep_storage, name_storage, take_ports, take_storage
from eosctl.sandbox.settings import (
    AGENT_CONFIG,
    CONNECTORS_CLIENTS,
    BrokerPorts,
    GroupSpec,
    StackSpec,
    broker_properties,
    logging_files,
    worker_properties,
)

# short-lived test servers: the fast compiler only, the small collector, shared class data, nothing left in /tmp
_JVM = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
)
_MAIN = {"broker": "kafka.Kafka", "worker": "org.apache.kafka.connect.cli.ConnectDistributed"}
_AGENT_FILE = "jmx-agent.yaml"
_ARGUMENTS_FILE, _CLASSES_FILE = "java.arguments", "java.classes"
_HEAP = {"broker": "-Xmx512m", "worker": "-Xmx256m"}
# not the caller's environment: $JAVA_TOOL_OPTIONS, $CLASSPATH or a proxy of the user's would make another Kafka
_ENVIRON = {"LC_ALL": "C.UTF-8"}


class Launcher:
    """The launcher of the nodes of the stack in `directory`; `prepare` must have run there once.

    `cache` is what all stacks share. With `records_classes` a JVM of which no archive of classes is kept may make it.
    """

    def __init__(
        self,
        java: Path,
        directory: Path,
        cache: Path,
        *,
        take_ports: TakePorts = take_ports,
        records_classes: bool = True,
    ) -> None:
        self._java, self._directory, self._cache, self._records = java, directory, cache, records_classes
        self._take_ports = partial(take_ports, folder=cache / "ports", owner=directory)

    def prepare(self, jars: Sequence[Path], kafka_version: str) -> None:
        """Write what all JVMs of the stack share: class path, logging, temporary files."""
        file_name, text, option = logging_files(kafka_version)
        (self._directory / file_name).write_text(text, encoding="utf-8")
        (self._directory / "tmp").mkdir()
        words = [
            *_JVM,
            f"{option}{(self._directory / file_name).as_uri()}",
            f"-Djava.io.tmpdir={self._directory / 'tmp'}",
            "-cp",
            os.pathsep.join(str(jar) for jar in jars),
        ]
        _write_words(self._directory / _ARGUMENTS_FILE, words)
        name = archive_name(self._java, jars)
        if name:
            (self._directory / _CLASSES_FILE).write_text(f"kafka-{kafka_version}-{name}", encoding="ascii")

    @property
    def secure_files(self) -> SecureFiles:
        """The certificate and the users' settings of a secured stack."""
        return SecureFiles(self._directory / "secure")

    @property
    def login(self) -> SandboxLogin:
        """The login of the stack, if it requires one."""
        return SandboxLogin(self._directory / "login")

    def prepare_security(self, listener: SecureListener) -> None:
        """Make the certificate and the users' settings files."""
        self.secure_files.write(listener, self._java)

    def prepare_brokers(self, spec: StackSpec, template: KeptFile, cluster_id: str) -> list[Node]:
        """Write each broker's files and its storage, from `template` if that suffices; start nothing yet.

        A password that may have been sent to somebody who took one of the ports is not used again.
        """
        if spec.broker_login:
            self.login.make_for_brokers()
        free = self._take_ports(3 * spec.brokers)
        ports = [BrokerPorts(*free[index : index + 3]) for index in range(0, len(free), 3)]
        nodes = []
        for number in range(1, spec.brokers + 1):
            name = f"broker-{number}"
            data = self._directory / name / "data"
            data.mkdir(parents=True)
            properties = broker_properties(number, ports, data, spec, self.secure_files, self.login)
            node = self._node(name, "broker", f"127.0.0.1:{ports[number - 1].client}", properties)
            secure = f"127.0.0.1:{ports[number - 1].secure}" if spec.secure else None
            forwarded = f"127.0.0.1:{ports[number - 1].secure}" if spec.forwarded else None
            nodes.append(replace(node, secure_address=secure, forwarded_address=forwarded))
        self._format(nodes, spec, template, cluster_id)
        return nodes

    def prepare_workers(
        self, group: GroupSpec, spec: StackSpec, bootstrap_servers: str, *, agent: Path | None = None
    ) -> list[Node]:
        """Write each worker's configuration; start nothing yet. `agent` is the jar that exposes their metrics."""
        login = {**self._login(group, spec.secure), **self.login.worker_properties()}
        nodes = []
        for number, (mode, port) in enumerate(zip(group.modes, self._take_ports(len(group.modes)), strict=True)):
            properties = worker_properties(
                group,
                mode,
                bootstrap_servers=bootstrap_servers,
                port=port,
                replication=min(3, spec.brokers),
                login=login,
                has_agent=agent is not None,
            )
            name = f"{group.group_id}-worker-{number}"
            node = self._node(name, "worker", f"{group.scheme}://127.0.0.1:{port}", properties)
            node = replace(node, group_id=group.group_id, mode=mode.value)
            if group.jvm_options:
                _write_words(_options_file(node), group.jvm_options)
            nodes.append(self._with_agent(node, agent) if agent else node)
        return nodes

    def _with_agent(self, node: Node, agent: Path) -> Node:
        Path(node.config).with_name(_AGENT_FILE).write_text(AGENT_CONFIG, encoding="ascii")
        (port,) = self._take_ports(1)
        return replace(node, metrics_url=f"http://127.0.0.1:{port}/metrics", agent=str(agent))

    def _login(self, group: GroupSpec, listener: SecureListener | None) -> dict[str, str]:
        """Return the properties with which the worker and its connectors' clients log in as the group's users.

        A group without users has the stack's own login.
        """
        clients = dict.fromkeys(("", *CONNECTORS_CLIENTS), self.login.client_properties())
        if listener is not None and group.users:
            clients = {
                prefix: self.secure_files.client_properties(user, listener.passwords[user])
                for prefix, user in group.users.items()
            }
        return {f"{prefix}{name}": value for prefix, client in clients.items() for name, value in client.items()}

    def launch(self, node: Node) -> Node:
        """Start the node's JVM; return the node with its process."""
        archive = self._class_archive(node)
        used = archive.use() if archive else []
        recorded = archive.record() if archive and not used and self._may_record(node) else []
        options = [_HEAP[node.kind], *used, *recorded, *_agent_options(node)]
        if _options_file(node).exists():
            options.append(f"@{_options_file(node)}")
        if node.kind == "worker":
            options += self.login.worker_options()
        command = [
            str(self._java),
            *options,
            f"@{self._directory / _ARGUMENTS_FILE}",
            _MAIN[node.kind],
            node.config,
        ]
        directory = Path(node.config).parent
        started = process.spawn(command, log=Path(node.log), directory=directory, environ=_ENVIRON)
        return replace(node, pid=started.pid, start_ticks=started.start_ticks, records_classes=bool(recorded))

    def lacks_classes_of(self, node: Node) -> bool:
        """Decide whether the node's JVM would write the missing archive of classes if it were stopped."""
        archive = self._class_archive(node)
        return node.records_classes and archive is not None and archive.kept() is None

    def keep_classes_of(self, node: Node) -> None:
        """Keep the archive of classes that the node's JVM wrote when it was stopped, if it did."""
        archive = self._class_archive(node)
        if node.records_classes and archive is not None:
            archive.keep()

    def _class_archive(self, node: Node) -> ClassArchive | None:
        """Return the archive for JVMs of the node's kind; None if the jars are unknown."""
        classes = self._directory / _CLASSES_FILE
        if not classes.exists():
            return None
        name = f"{node.kind}-{classes.read_text(encoding='ascii')}"
        return ClassArchive(KeptFile(self._cache / "classes", name, ".jsa"), Path(node.config).with_name("classes.jsa"))

    def _may_record(self, node: Node) -> bool:
        """Decide whether the archive may come from this JVM: not with an agent, own options or passwords."""
        has_passwords = self.secure_files.directory.exists()
        return self._records and not (node.agent or _options_file(node).exists() or has_passwords)

    def _node(self, name: str, kind: str, address: str, properties: Mapping[str, str]) -> Node:
        home = self._directory / name
        home.mkdir(exist_ok=True)
        config = home / ("server.properties" if kind == "broker" else "worker.properties")
        write_private(config, properties_text(properties))
        return Node(name, kind, address, pid=0, start_ticks=0, config=str(config), log=str(home / "log.txt"))

    def _format(self, brokers: Sequence[Node], spec: StackSpec, template: KeptFile, cluster_id: str) -> None:
        """Format the first broker's storage, or take the template, and copy it to the other brokers.

        Users' passwords and properties of the spec's own may be in what StorageTool writes: those stay in this stack.
        """
        first, *others = [Path(broker.config).with_name("data") for broker in brokers]
        is_common = not (spec.secure or spec.broker_config)
        if not (is_common and take_storage(template, first)):
            self._run_storage_tool(brokers[0], cluster_id, spec.secure.format_arguments() if spec.secure else [])
            if is_common:
                keep_storage(template, first)
        for data in others:
            shutil.copytree(first, data, dirs_exist_ok=True)
        for node_id, data in enumerate((first, *others), 1):
            name_storage(data, cluster_id=cluster_id, node_id=node_id)

    def _run_storage_tool(self, node: Node, cluster_id: str, more: Sequence[str]) -> None:
        """Format a broker's storage; `more` has passwords, so it is passed in a file and not on a command line."""
        words = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", node.config, *more]
        arguments = Path(node.config).with_name("format.arguments")
        _write_words(arguments, words)
        archive = self._class_archive(node)  # the tool loads a part of what a broker does
        used = archive.use() if archive else []
        command = [str(self._java), *used, f"@{self._directory / _ARGUMENTS_FILE}", f"@{arguments}"]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=_ENVIRON)
        arguments.unlink()
        if done.returncode:
            raise EosctlError(f"formatting the storage of {node.name} failed: {(done.stderr or done.stdout)[-500:]}")


def _agent_options(node: Node) -> list[str]:
    """Return the JVM option that loads the agent into a worker, if the node has one."""
    if node.agent is None or node.metrics_url is None:
        return []
    address = urlsplit(node.metrics_url).netloc
    return [f"-javaagent:{node.agent}={address}:{Path(node.config).with_name(_AGENT_FILE)}"]


def _options_file(node: Node) -> Path:
    """Return the file with the options of one node's JVM, which need not exist."""
    return Path(node.config).with_name("jvm.options")


def _write_words(path: Path, words: Sequence[str]) -> None:
    """Write a java argument file that only its owner may read."""
    write_private(path, "".join(_quoted(word) + "\n" for word in words))


def _quoted(word: str) -> str:
    """Quote a word of a java argument file: quotes keep spaces, a backslash escapes."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_POLL_S = 0.1
_SEARCHED_LINES = 400
_NO_CONNECTOR = "eosctl-asks-whether-this-worker-is-up"
_UNKNOWN = f"Connector {_NO_CONNECTOR} not found".encode()
_PORT_TAKEN = "Address already in use"


class PortTakenError(EosctlError):
    """A node ended because somebody else had bound one of its ports."""


def _loopback() -> urllib.request.OpenerDirector:
    """Make an opener that ignores $http_proxy and accepts any certificate: it only asks whether our process answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))


_direct = _loopback()


def wait_ready(
    nodes: Sequence[Node],
    *,
    watched: Sequence[Node],
    brokers: int,
    cluster_id: str,
    login: SandboxLogin,
    deadline: Deadline,
) -> None:
    """Wait until every node answers; brokers must see `brokers` of their kind.

    A node of another cluster than `cluster_id` is somebody else's on our port. It is empty if it is unknown. Raises
    EosctlError with the end of its log as soon as one of `nodes` or `watched` has ended (PortTakenError if that was the
    cause), and DeadlineError with the same when the time is up.
    """
    waiting = list(nodes)
    for _ in deadline.rounds(_POLL_S):
        ended = next((node for node in (*nodes, *watched) if not node.process.alive()), None)
        if ended is not None:
            is_port = any(_PORT_TAKEN in line for line in log_tail(Path(ended.log), _SEARCHED_LINES))
            error = PortTakenError if is_port else EosctlError
            raise error(Lines.of(f"{ended.name} ended:", *_explanation(ended)), hint=f"Its log is {ended.log}.")
        waiting = [node for node in waiting if not answers(node, login, brokers=brokers, cluster_id=cluster_id)]
        if not waiting:
            return
    late = waiting[0]
    raise DeadlineError(
        Lines.of(f"{late.name} did not answer within {deadline.timeout_s:g} s:", *_explanation(late)),
        hint=f"Its log is {late.log}. A slow machine may need a longer --timeout.",
    )


def answers(node: Node, login: SandboxLogin, *, brokers: int = 1, cluster_id: str = "") -> bool:
    """Decide whether a broker, which must see `brokers` of its kind, or a worker answers now, from this cluster."""
    if node.kind == "broker":
        return broker_answers(node.address, login.librdkafka_settings(), brokers=brokers, cluster_id=cluster_id)
    return worker_answers(node.address, login.rest_headers(), cluster_id=cluster_id)


def broker_answers(address: str, login: Mapping[str, str], *, brokers: int, cluster_id: str) -> bool:
    """Decide whether the broker at `host:port` answers a metadata request with a controller and `brokers` brokers."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    host, port = address.rsplit(":", 1)
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex((host, int(port))):
            return False
    silent = logging.Logger("sandbox")  # not registered: a starting broker is no news
    silent.addHandler(logging.NullHandler())
    admin = AdminClient({"bootstrap.servers": address, "enable.metrics.push": False, **login}, logger=silent)
    try:
        metadata = admin.list_topics(timeout=2)
    except KafkaException:
        return False
    is_ours = cluster_id in ("", metadata.cluster_id)
    return is_ours and len(metadata.brokers) >= brokers and metadata.controller_id >= 0


def worker_answers(url: str, headers: Mapping[str, str], *, cluster_id: str) -> bool:
    """Decide whether the worker denies a connector of a made-up name, as only a member of its group does.

    It lists connectors, none, some time before that. One that wants another password (401) answers, and no more can be
    asked.
    """
    try:
        _get(f"{url}/connectors/{_NO_CONNECTOR}", headers)
        root = json.loads(_get(url, headers)) if cluster_id else {}
    except urllib.error.HTTPError as exc:
        exc.close()
        return exc.code == HTTPStatus.UNAUTHORIZED
    except (OSError, http.client.HTTPException, ValueError):
        return False
    return isinstance(root, dict) and root.get("kafka_cluster_id", "") == cluster_id


def _get(url: str, headers: Mapping[str, str]) -> bytes:
    """Return the answer's body, also that of "there is no such connector", which differs from a path not yet served."""
    try:
        request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310 - a node of ours
        with _direct.open(request, timeout=5) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as exc:
        body = exc.read()
        if _UNKNOWN not in body:
            raise
        exc.close()
        return body


def log_tail(path: Path, count: int) -> list[str]:
    """Return the last `count` lines of a log file; empty if there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
    except OSError:
        return []


def _explanation(node: Node) -> list[str]:
    """Return the last lines of the node's log without stack frames, and the missing class, if that was the cause."""
    lines = [line for line in log_tail(Path(node.log), _SEARCHED_LINES) if not line.startswith("\tat ")]
    missing = next((line for line in lines if "NoClassDefFoundError" in line or "ClassNotFound" in line), None)
    last = lines[-6:]
    return [f"  {line}" for line in ([*last, missing] if missing and missing not in last else last)]
