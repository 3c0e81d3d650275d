"""The former fake of Connect, for users that have not moved to tests.fakes.connect yet: to be deleted with the last.

tests/contract/test_connect_worker.py holds it to real workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from eosctl.core.group_protocol import Assignment, Metadata, Work, encode_assignment, encode_metadata
from eosctl.core.transactions import RawGroup, RawGroupMember
from eosctl.core.worker_url import parse_worker_url
from eosctl.errors import ConnectError, NotFoundError, UnreachableError, UnsupportedError
from eosctl.ops.app import App
from eosctl.ops.ports import TransactionAdmin
from tests.fakes.faults import Faults

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
OBJECTION = "This worker does not have exactly-once source support enabled."
CLUSTER_ID = "cluster-1"
STATES = {"stop": "STOPPED", "pause": "PAUSED", "resume": "RUNNING"}


@dataclass
class FakeConnector:
    """A connector: STOPPED has no tasks, PAUSED and RUNNING have `tasks.max` (default 1)."""

    config: dict[str, str]
    state: str = "RUNNING"
    offsets: list[Mapping[str, object]] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)
    trace: str = "java.lang.RuntimeException: it broke"

    def task_states(self) -> list[str]:
        """The state of each task, by number."""
        if self.state == "STOPPED":
            return []
        count = int(self.config.get("tasks.max", "1"))
        return ["FAILED" if task in self.failed else self.state for task in range(count)]


@dataclass
class FakeConnect(Faults):
    """One Connect group. `modes` maps each worker's URL to its mode; the first one leads.

    A URL in `down` never answers. The calls that Faults knows are those of ConnectWorker, at whichever worker.
    """

    modes: dict[str, str] = field(default_factory=lambda: {"http://w0:8083": "enabled"})
    connectors: dict[str, FakeConnector] = field(default_factory=dict)
    plugins: list[Mapping[str, object]] = field(
        default_factory=lambda: [{"class": FILE_SOURCE, "type": "source", "version": "4.3.1"}]
    )
    version: str = "4.3.1"
    kafka_cluster_id: str = CLUSTER_ID
    health: str = "healthy"
    down: set[str] = field(default_factory=set)
    opened: list[str] = field(default_factory=list)
    fenced: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def open_worker(self, _app: App, url: str) -> FakeConnectWorker:
        """App's door; `opened` keeps the URLs as they were given, credentials included."""
        self.opened.append(url)
        return FakeConnectWorker(self, parse_worker_url(url).text)

    def raw_group(
        self, group_id: str, *, state: str = "Stable", owned: Mapping[str, Sequence[Work]] | None = None
    ) -> RawGroup:
        """What DescribeGroups would say; `owned` maps a worker's URL to its work."""
        leader_url = next(iter(self.modes), "")
        members = []
        for url in self.modes:
            work = tuple((owned or {}).get(url, ()))
            assignment = Assignment(2, 0, f"member {leader_url}", f"{leader_url}/", 7, work)
            metadata = b"" if state != "Stable" else encode_metadata(Metadata(2, f"{url}/", 5))
            members.append(RawGroupMember(f"member {url}", "c", "h", metadata, encode_assignment(assignment)))
        protocol = "sessioned" if state == "Stable" else ""
        return RawGroup(group_id, state if members else "Empty", "connect", protocol, tuple(members))


@dataclass
class FakeConnectWorker:
    """One worker of a FakeConnect; all workers share its connectors."""

    group: FakeConnect
    url: str

    def root(self) -> Mapping[str, str]:
        self._arrive("root")
        return {"version": self.group.version, "commit": "abc", "kafka_cluster_id": self.group.kafka_cluster_id}

    def health(self) -> str:
        self._arrive("health")
        return self.group.health

    def connectors(self) -> Mapping[str, Mapping[str, object]]:
        self._arrive("connectors")
        return {name: self._expanded(name, connector) for name, connector in self.group.connectors.items()}

    def connector_config(self, connector: str) -> Mapping[str, str]:
        return dict(self._connector("connector_config", connector).config)

    def put_connector_config(self, connector: str, config: Mapping[str, str]) -> None:
        self._arrive("put_connector_config")
        if "connector.class" not in config:
            raise ConnectError(f"Connector config {dict(config)} contains no connector type")
        complete = {**config, "name": connector}
        known = self.group.connectors.get(connector)
        if known is None:
            self.group.connectors[connector] = FakeConnector(complete)
        else:
            known.config, known.failed = complete, set()

    def delete_connector(self, connector: str) -> None:
        self._connector("delete_connector", connector)
        del self.group.connectors[connector]

    def set_state(self, connector: str, verb: str) -> None:
        self._arrive("set_state")
        if verb not in STATES:
            raise UnsupportedError(f"{self.url} does not offer PUT /connectors/{connector}/{verb}")
        self._connector("set_state", connector).state = STATES[verb]

    def restart(self, connector: str, *, only_failed: bool = True) -> None:
        self._connector("restart", connector).failed.clear()

    def offsets(self, connector: str) -> Sequence[Mapping[str, object]]:
        return list(self._connector("offsets", connector).offsets)

    def alter_offsets(self, connector: str, offsets: Sequence[Mapping[str, object]]) -> None:
        known = self._stopped("alter_offsets", connector)
        if not offsets:
            raise ConnectError("400: Partitions / offsets need to be provided for an alter offsets request")
        named = [entry["partition"] for entry in offsets]
        kept = [entry for entry in known.offsets if entry["partition"] not in named]
        known.offsets = kept + [entry for entry in offsets if entry["offset"] is not None]

    def _stopped(self, call: str, name: str) -> FakeConnector:
        connector = self._connector(call, name)
        if connector.state != "STOPPED":
            raise ConnectError("400: Connectors must be in the STOPPED state before their offsets can be modified")
        return connector

    def validate(self, plugin: str, config: Mapping[str, str]) -> Mapping[str, object]:
        self._arrive("validate")
        objects = self.group.modes[self.url] != "enabled" and config.get("exactly.once.support") == "required"
        errors = [OBJECTION] if objects else []
        value = {"name": "exactly.once.support", "value": config.get("exactly.once.support"), "errors": errors}
        return {"name": plugin, "error_count": len(errors), "configs": [{"definition": {}, "value": value}]}

    def plugins(self) -> Sequence[Mapping[str, object]]:
        self._arrive("plugins")
        return list(self.group.plugins)

    def fence(self, connector: str, headers: Mapping[str, str]) -> None:
        self._connector("fence", connector)
        if not headers:
            raise ConnectError("Internal request missing required signature")
        self.group.fenced.append((connector, dict(headers)))

    def _arrive(self, call: str) -> None:
        if self.url in self.group.down:
            raise UnreachableError(f"the Connect worker at {self.url} can't be reached: Connection refused")
        with self.group.call(call):
            pass

    def _connector(self, call: str, name: str) -> FakeConnector:
        self._arrive(call)
        if name not in self.group.connectors:
            raise NotFoundError(f"{self.url}: Connector {name} not found")
        return self.group.connectors[name]

    def _expanded(self, name: str, connector: FakeConnector) -> Mapping[str, object]:
        worker_id = self.url.partition("://")[2]
        states = connector.task_states()
        tasks = [
            {"id": task, "state": state, "worker_id": worker_id}
            | ({"trace": connector.trace} if state == "FAILED" else {})
            for task, state in enumerate(states)
        ]
        kind = "sink" if "Sink" in connector.config["connector.class"] else "source"
        ids = [{"connector": name, "task": task} for task in range(len(states))]
        return {
            "info": {"name": name, "config": dict(connector.config), "tasks": ids, "type": kind},
            "status": {
                "name": name,
                "connector": {"state": connector.state, "worker_id": worker_id},
                "tasks": tasks,
                "type": kind,
            },
        }


@dataclass
class FakeGroups:
    """TransactionAdmin, as far as groups go: `states` are given one after the other, the last one for ever."""

    connect: FakeConnect
    states: list[str] = field(default_factory=lambda: ["Stable"])
    owned: Mapping[str, Sequence[Work]] = field(default_factory=dict)
    raw: RawGroup | None = None
    asked: int = 0

    def open(self, _app: App) -> TransactionAdmin:
        return cast(TransactionAdmin, self)

    def __enter__(self) -> FakeGroups:
        return self

    def __exit__(self, *_exc: object) -> None:
        pass

    def cluster_id(self) -> str:
        return CLUSTER_ID

    def describe_group(self, group_id: str) -> RawGroup:
        self.asked += 1
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if state == "Dead":
            return RawGroup(group_id, state, "", "", ())
        return self.raw or self.connect.raw_group(group_id, state=state, owned=self.owned)
