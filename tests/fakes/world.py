"""A Kafka cluster and a Connect group in memory, on one clock, and an App that looks at them.

Each of them passes tests/contract; a test's own scene is made of them and adds what is special about it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.url import parse_worker_url
from eosctl.deadline import Clock, Deadline, Event
from eosctl.errors import UnsupportedError
from eosctl.group.protocol import CONNECTOR_ITSELF, Work
from eosctl.target import Target
from tests.fakes.acls import FakeAclStore
from tests.fakes.batch_log import FakeBatchLog
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import BrokerState
from tests.fakes.clock import FakeTime
from tests.fakes.connect import FakeConnect
from tests.fakes.connect_worker import FakeConnectWorker
from tests.fakes.connectors import FakeTask
from tests.fakes.faults import Call
from tests.fakes.topics import FakeTopicStore

CONFIGS, OFFSETS, STATUSES = "connect-configs", "connect-offsets", "connect-status"


@dataclass
class World:
    """`modes` are the workers, URL -> mode, the first leads; they keep their configs in CONFIGS, if there is one.

    What they say of their work is in STATUSES, if there is one.

    `nodes` are the brokers; `others` are the other Connect groups; `events` are those of every App that was made;
    `addresses` are those of names that can be resolved. Without `acls` of a test's own there is no authorizer.
    """

    modes: dict[str, str] = field(default_factory=lambda: {"http://w0:8083": "enabled"})
    cluster_id: str = "fake-cluster-id"
    group_id: str = "g"
    nodes: int = 3
    time: FakeTime = field(default_factory=lambda: FakeTime(1_700_000_000.0))
    events: list[Event] = field(default_factory=list, repr=False)
    state_dir: Path = Path("unused")
    others: list[FakeConnect] = field(default_factory=list)
    addresses: dict[str, set[str]] = field(default_factory=lambda: {"localhost": {"127.0.0.1"}})
    acls: FakeAclStore = field(default_factory=lambda: FakeAclStore(refuse=UnsupportedError("there is no authorizer")))
    connect: FakeConnect = field(init=False)
    topics: FakeTopicStore = field(init=False)
    batches: FakeBatchLog = field(init=False)
    brokers: FakeCluster = field(init=False)

    def __post_init__(self) -> None:
        state = BrokerState(cluster_id=self.cluster_id, brokers=self.nodes, clock=self.clock())
        self.topics, self.brokers = FakeTopicStore(state), FakeCluster(state=state)
        self.batches = FakeBatchLog(state)
        self.connect = FakeConnect(self.modes, group_id=self.group_id, time=self.time, kafka_cluster_id=self.cluster_id)
        self.connect.keep_config = self.keep_config
        state.groups[self.group_id] = self.connect.describe
        self.topics.before("read", self._keep_statuses)

    def keep_config(self, key: str, value: object) -> None:
        """A record of the herder's; None is a tombstone."""
        if CONFIGS in self.topics.topics:
            self.topics.put(CONFIGS, key.encode(), None if value is None else json.dumps(value).encode())

    def _keep_statuses(self, call: Call) -> None:
        """What is new since the topic was read last."""
        if call.what[0] != STATUSES or STATUSES not in self.topics.topics:
            return
        now = {key: json.dumps(value).encode() for key, value in self.connect.statuses().items()}
        before = {key: value for key, value in self.topics.newest(STATUSES).items() if key is not None}
        for key in before.keys() | now.keys():
            if before.get(key) != now.get(key):
                self.topics.put(STATUSES, key, now.get(key))

    def other_group(self, group_id: str, url: str) -> FakeConnect:
        """Another Connect group on the same Kafka cluster, with one worker."""
        made = FakeConnect({url: "enabled"}, group_id=group_id, time=self.time, kafka_cluster_id=self.cluster_id)
        self.brokers.state.groups[group_id] = made.describe
        self.others.append(made)
        return made

    def open_worker(self, app: App, url: str) -> FakeConnectWorker:
        """App's door to the workers of all groups."""
        text = parse_worker_url(url).text
        return next((other for other in self.others if text in other.modes), self.connect).open_worker(app, url)

    def runs(self, *work: Work, state: str = "RUNNING") -> None:
        """These tasks are in this state at the leader; the others that their connectors must have are FAILED."""
        for name in {name for name, _task in work}:
            tasks = 1 + max(task for connector, task in work if connector == name)
            made = self.connect.add(name, tasks=tasks)
            self.connect.own(self.connect.leader, *((name, task) for task in range(CONNECTOR_ITSELF, tasks)))
            for task in range(tasks):
                made.tasks[task] = FakeTask(state if (name, task) in work else "FAILED", self.connect.leader)

    def app(self, state_dir: Path | None = None, *, timeout_s: float = 60.0, **target: Any) -> App:
        """An App for the group; `target` changes what it is given. Workers that it names are named."""
        client = ClientSettings(self.brokers.bootstrap_servers)
        clock = self.clock()
        named = frozenset(parse_worker_url(url).origin for url in target.get("connect_urls", ()))
        connect = ConnectAccess(named=named)
        return App(
            target=Target(**{"client": client, "group_id": self.group_id, "connect": connect, **target}),
            deadline=Deadline.after(timeout_s, clock),
            state_dir=state_dir or self.state_dir,
            clock=clock,
            on_event=self.events.append,
            **self.doors(),
        )

    def doors(self) -> dict[str, Any]:
        """App's open_* callables, and its lookup of names."""
        return {
            "open_topics": self.topics.open,
            "open_transactions": self.brokers.open_transactions,
            "open_batches": self.batches.open,
            "open_worker": self.open_worker,
            "open_acls": lambda _app: self.acls,
            "addresses_of": self.addresses_of,
        }

    def addresses_of(self, _app: App, host: str) -> frozenset[str]:
        """App's lookup of names; an address is its own."""
        is_address = ":" in host or host.replace(".", "").isdigit()
        return frozenset({host} if is_address else self.addresses.get(host, ()))

    @property
    def surroundings(self) -> dict[str, Any]:
        """Keyword arguments of `invoke`."""
        return {"doors": self.doors(), "clock": self.clock()}

    def left(self, state_dir: Path) -> str:
        """All that another process can find: what brokers and workers know, what happens later, the hour, and files."""
        known = {name: value for name, value in vars(self.brokers.state).items() if name not in ("clock", "groups")}
        files = [(str(path), path.read_bytes()) for path in sorted(state_dir.rglob("*")) if path.is_file()]
        return repr((self, known, self.time.due(), files))

    def clock(self) -> Clock:
        """The clock of every App."""
        return self.time.clock()
