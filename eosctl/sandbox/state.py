"""The recorded state of a running stack, so that `status` and `down` know it after a crash of eosctl."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import Struct, to_builtins

from eosctl.machine.files import write_whole
from eosctl.sandbox.servers.process import ProcessId

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
