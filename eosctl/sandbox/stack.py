"""A real Kafka and real Connect workers on loopback: start, ask until ready, restart, stop, leave nothing behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.java.properties import set_property
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.modes import CONNECT_SETTING, Mode
from eosctl.deadline import Deadline, Event, OnEvent, ignore_events
from eosctl.errors import EosctlError, NotFoundError
from eosctl.machine.class_archive import KeptFile
from eosctl.machine.java import require_java
from eosctl.sandbox.downloads.jars import ca_file, cache_dir, ensure_jars, jar_store, proxy_options
from eosctl.sandbox.downloads.moved_classes import fit_jars
from eosctl.sandbox.login import SandboxLogin, SecureListener
from eosctl.sandbox.servers import process
from eosctl.sandbox.servers import process as state
from eosctl.sandbox.servers.launcher import Launcher, PortTakenError, answers, wait_ready
from eosctl.sandbox.servers.process import Node, StackState, TakePorts, kafka_uuid, storage_template, take_ports
from eosctl.sandbox.settings import GroupSpec, StackSpec, read_agent_lock, read_lock
from eosctl.target import Target

START_TIMEOUT_S = 300.0  # slow machines need it; a process that ends is told of at once
_PORT_ATTEMPTS = 4


class Stack:
    """A running stack; `Stack.up` starts one, `Stack.find` finds one that another process left running."""

    def __init__(self, known: StackState, *, take_ports: TakePorts = take_ports, records_classes: bool = True) -> None:
        self.state = known
        cache = known.cache or known.directory  # a stack of an eosctl that wrote no cache down
        self._launcher = Launcher(
            Path(known.java), Path(known.directory), Path(cache),
            take_ports=take_ports, records_classes=records_classes,
        )  # fmt: skip

    @classmethod
    def up(
        cls,
        spec: StackSpec,
        directory: Path,
        *,
        name: str,
        environ: Mapping[str, str],
        on_event: OnEvent = ignore_events,
        start_timeout_s: float = START_TIMEOUT_S,
        before_workers: Callable[[Stack], None] | None = None,
        take_ports: TakePorts = take_ports,
        records_classes: bool = True,
    ) -> Stack:
        """Start everything in `spec` below `directory` (which must not exist) and wait until all of it answers.

        `before_workers` is called with the brokers up. `start_timeout_s` counts from the moment when all jars are
        there. `records_classes` pays only where the same version is started again (see `down`). On any failure, Ctrl-C
        included, what was started is killed and the directory is left for its logs.
        Raises EosctlError (DeadlineError when the time is up) with the end of the log of the process that did not
        come up.
        """
        lock = read_lock(spec.kafka_version)
        jars_wanted = [*lock, *(read_agent_lock() if spec.metrics else ())]
        java, cache = require_java(environ), cache_dir(environ).absolute()
        jars = ensure_jars(
            jars_wanted, cache=cache, java=java, maven_url=environ.get("EOSCTL_MAVEN_URL"),
            on_event=on_event, java_options=proxy_options(environ), ca_file=ca_file(environ),
        )  # fmt: skip
        path_of = fit_jars(dict(zip(lock, jars, strict=False)), spec.kafka_version, jar_store(cache))
        kafka_jars = list(path_of.values())
        directory = directory.absolute()
        directory.mkdir(parents=True, mode=0o700)  # connectors' passwords are in its topics
        topics = {group.group_id: group.topics() for group in spec.groups}
        stack = cls(
            StackState(
                name, str(directory), spec.kafka_version, (), topics, java=str(java.executable), cache=str(cache),
                cluster_id=kafka_uuid(),
            ),
            take_ports=take_ports,
            records_classes=records_classes,
        )  # fmt: skip
        state.save(stack.state)
        deadline = Deadline.after(start_timeout_s)
        try:
            stack._launcher.prepare(kafka_jars, spec.kafka_version)
            if spec.secure:
                stack._prepare_security(spec.secure)
            template = storage_template(cache, spec.kafka_version, kafka_jars)
            stack._start_brokers(spec, template, on_event, deadline)
            if before_workers is not None:
                before_workers(stack)
            stack._start_workers(spec, on_event, deadline, agent=jars[-1] if spec.metrics else None)
        except BaseException:
            stack.kill()
            raise
        return stack

    @classmethod
    def find(cls, directory: Path) -> Stack | None:
        """Find the stack that was started in `directory`, running or not; return None if there is none."""
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
    def login(self) -> SandboxLogin:
        """The login that its workers and brokers require."""
        return self._launcher.login

    def client_settings(self) -> ClientSettings:
        """Return the settings with which eosctl's own clients reach the brokers, with all rights."""
        return self.login.client_settings(self.bootstrap_servers)

    def connect_access(self) -> ConnectAccess:
        """Return how eosctl authenticates to the workers of all groups."""
        return self.login.connect_access(node.address for node in self.state.of_kind("worker"))

    def target(self, group_id: str) -> Target:
        """Return the target of operations on one of its groups."""
        topics = self.state.topics[group_id]
        return Target(
            client=self.client_settings(),
            connect_urls=tuple(self.urls(group_id)),
            connect=self.connect_access(),
            group_id=group_id,
            config_topic=topics["config"],
            offset_topic=topics["offset"],
            status_topic=topics["status"],
        )

    @property
    def ca(self) -> Path:
        """The PEM file that clients of the secure listener check the brokers against."""
        return self._launcher.secure_files.ca

    @property
    def directory(self) -> Path:
        """The directory of configuration, data and logs."""
        return Path(self.state.directory)

    def urls(self, group_id: str) -> list[str]:
        """Return the REST URLs of a group's workers, in order."""
        return [node.address for node in self.state.of_kind("worker") if node.group_id == group_id]

    def node(self, name: str) -> Node:
        """Return the node called `name` (`broker-1`, `connect-eos-worker-0`)."""
        for node in self.state.nodes:
            if node.name == name:
                return node
        raise NotFoundError(f"the sandbox has no {name}", hint=f"It has {', '.join(n.name for n in self.state.nodes)}.")

    def alive(self) -> bool:
        """Decide whether any of its processes still runs."""
        return any(node.process.alive() for node in self.state.nodes)

    def add_group(self, group: GroupSpec, *, start_timeout_s: float = START_TIMEOUT_S) -> None:
        """Start another Connect group, without users, beside the present ones; wait until it answers."""
        self.state = replace(self.state, topics={**self.state.topics, group.group_id: group.topics()})
        spec = StackSpec(brokers=len(self.state.of_kind("broker")), groups=(group,))
        self._start_workers(spec, ignore_events, Deadline.after(start_timeout_s), agent=None)

    def stop_node(self, name: str) -> None:
        """Stop one process and wait until it is gone."""
        self.stop_nodes([name])

    def stop_nodes(self, names: Sequence[str]) -> None:
        """Stop several processes at once and wait until all are gone."""
        nodes = [self.node(name) for name in names]
        process.stop([node.process for node in nodes])
        for node in nodes:
            self._launcher.keep_classes_of(node)

    def start_node(self, name: str, *, mode: Mode | None = None, start_timeout_s: float = START_TIMEOUT_S) -> None:
        """Start a stopped node on its old port and files, a worker in `mode` if given; wait until it answers."""
        node = self.node(name)
        if node.process.alive():
            raise EosctlError(f"{name} runs already (pid {node.pid})", hint="Stop it first.")
        if mode is not None:
            config = Path(node.config)
            text = config.read_text(encoding="ascii")
            config.write_text(set_property(text, CONNECT_SETTING, mode.value), encoding="ascii")
            node = replace(node, mode=mode.value)
        self._keep(self._launcher.launch(node))
        self._await([name], Deadline.after(start_timeout_s))

    def restart_node(self, name: str, *, mode: Mode | None = None) -> None:
        """Stop a node and start it again, a worker in `mode` if given."""
        self.stop_node(name)
        self.start_node(name, mode=mode)

    def kill(self) -> None:
        """Kill every process at once, without time to clean up: what they would write is deleted anyway."""
        process.kill([node.process for node in self.state.nodes])

    def down(self) -> None:
        """Kill everything and remove the directory; raise EosctlError if a process can't be ended.

        The first time, a process of each kind is stopped instead: then its JVM writes the archive of its classes, with
        which the next ones start faster. To write down the classes and the archive costs more than twice what it saves
        one start.
        """
        for kind in ("worker", "broker"):  # a worker without its broker takes long to end
            asked = [node for node in self.state.of_kind(kind) if self._launcher.lacks_classes_of(node)]
            self.stop_nodes([node.name for node in asked if node.process.alive() and answers(node, self.login)][:1])
        self.kill()
        left = [f"{node.name} (pid {node.pid})" for node in self.state.nodes if node.process.alive()]
        if left:
            raise EosctlError(f"still running after SIGKILL: {', '.join(left)}", hint=f"See {self.directory}.")
        shutil.rmtree(self.directory, ignore_errors=True)

    def _prepare_security(self, listener: SecureListener) -> None:
        """Make certificate and users, and record where each user's settings are, never a password."""
        self._launcher.prepare_security(listener)
        files = self._launcher.secure_files
        configs = {user: str(files.command_config(user)) for user in listener.passwords}
        self.state = replace(self.state, command_configs=configs)
        state.save(self.state)

    def _start_brokers(self, spec: StackSpec, template: KeptFile, on_event: OnEvent, deadline: Deadline) -> None:
        on_event(Event(f"starting Kafka {spec.kafka_version}: {spec.brokers} broker{'s' * (spec.brokers > 1)}"))
        self._start(lambda: self._launcher.prepare_brokers(spec, template, self.state.cluster_id), deadline)

    def _start_workers(self, spec: StackSpec, on_event: OnEvent, deadline: Deadline, *, agent: Path | None) -> None:
        def prepare() -> Iterator[Node]:
            if spec.rest_login:
                self.login.make_for_workers()
            for group in spec.groups:
                on_event(Event(f"starting Connect group {group.group_id}: {', '.join(group.modes)}"))
                servers = self.secure_bootstrap_servers if group.users else self.bootstrap_servers
                yield from self._launcher.prepare_workers(group, spec, servers, agent=agent)

        self._start(prepare, deadline)

    def _start(self, prepare: Callable[[], Iterable[Node]], deadline: Deadline) -> None:
        """Launch what `prepare` writes and wait for it; retry on other ports if one was taken meanwhile."""
        for _attempt in range(_PORT_ATTEMPTS - 1):
            names = self._launch(prepare())
            try:
                self._await(names, deadline)
            except PortTakenError:
                self._forget(names)
            else:
                return
        self._await(self._launch(prepare()), deadline)

    def _launch(self, nodes: Iterable[Node]) -> list[str]:
        """Start each node as soon as it is prepared; return their names."""
        launched = []
        for node in nodes:
            self._keep(self._launcher.launch(node))
            launched.append(node.name)
        return launched

    def _forget(self, names: Sequence[str]) -> None:
        """Kill nodes and remove them from the stack and its directory."""
        nodes = [self.node(name) for name in names]
        process.kill([node.process for node in nodes])
        for node in nodes:
            shutil.rmtree(Path(node.config).parent)
        self.state = replace(self.state, nodes=tuple(node for node in self.state.nodes if node not in nodes))
        state.save(self.state)

    def _keep(self, node: Node) -> None:
        """Record a started node before anything else happens, so that a crash leaves no unknown process."""
        others = tuple(known for known in self.state.nodes if known.name != node.name)
        self.state = replace(self.state, nodes=tuple(sorted((*others, node), key=lambda known: known.name)))
        state.save(self.state)

    def _await(self, names: Sequence[str], deadline: Deadline) -> None:
        """Wait until the named nodes answer; fail at once if one of them, or a node that ran before, ends."""
        brokers = [node for node in self.state.of_kind("broker") if node.process.alive()]
        watched = [node for node in self.state.nodes if node.process.alive()]
        wait_ready(
            [self.node(name) for name in names],
            watched=watched,
            brokers=len(brokers),
            cluster_id=self.state.cluster_id,
            login=self.login,
            deadline=deadline,
        )
