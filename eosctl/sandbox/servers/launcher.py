"""Writes a node's files and starts its JVM; the files suffice to start it again from another process."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from eosctl.core.java.properties import properties_text
from eosctl.errors import EosctlError
from eosctl.machine.class_archive import ClassArchive, archive_name
from eosctl.machine.kept_file import KeptFile
from eosctl.sandbox.lock import connect_version
from eosctl.sandbox.login import SandboxLogin
from eosctl.sandbox.secure import SecureFiles, SecureListener, write_private
from eosctl.sandbox.servers import process
from eosctl.sandbox.servers.ports import TakePorts, take_ports
from eosctl.sandbox.servers.storage import keep_storage, name_storage, take_storage
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
from eosctl.sandbox.state import Node

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

    def _shared_file(self, name: str, kind: str) -> Path:
        """Return a file that JVMs share: that of the kind, if brokers have one of their own, else the common one."""
        own = self._directory / f"java.{kind}.{name}"
        return own if own.exists() else self._directory / f"java.{name}"

    def prepare(self, jars: Sequence[Path], kafka_version: str, *, broker_jars: Sequence[Path] | None = None) -> None:
        """Write what JVMs of the stack share: class path, logging, temporary files; brokers may have other jars.

        `kafka_version` is the brokers'.
        """
        file_name, text, option = logging_files(kafka_version)
        (self._directory / file_name).write_text(text, encoding="utf-8")
        (self._directory / "tmp").mkdir()
        shared = [
            *_JVM,
            f"{option}{(self._directory / file_name).as_uri()}",
            f"-Djava.io.tmpdir={self._directory / 'tmp'}",
        ]
        self._write_shared("java", shared, jars, connect_version(kafka_version))
        if broker_jars is not None and list(broker_jars) != list(jars):
            self._write_shared("java.broker", shared, broker_jars, kafka_version)

    def _write_shared(self, begin: str, options: Sequence[str], jars: Sequence[Path], kafka_version: str) -> None:
        words = [*options, "-cp", os.pathsep.join(str(jar) for jar in jars)]
        _write_words(self._directory / f"{begin}.arguments", words)
        name = archive_name(self._java, jars)
        if name:
            (self._directory / f"{begin}.classes").write_text(f"kafka-{kafka_version}-{name}", encoding="ascii")

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
            f"@{self._shared_file('arguments', node.kind)}",
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
        classes = self._shared_file("classes", node.kind)
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
        command = [str(self._java), *used, f"@{self._shared_file('arguments', node.kind)}", f"@{arguments}"]
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
