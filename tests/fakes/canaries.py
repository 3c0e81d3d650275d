"""Inputs full of canaries: files, variables, a broker, topics, workers, ACLs, metrics; for tests/command_lines.py."""

from __future__ import annotations

import base64
import copy
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from eosctl.app import open_transactions
from eosctl.core.acls.lines import Acl
from eosctl.core.transaction_log import TOPIC
from eosctl.core.transactions import FENCING_FAILED, ROUND_TIMEOUTS_MS
from eosctl.target import Target
from tests.fakes import world as fakes
from tests.fakes.acls import FakeAclStore
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import config_records, created
from tests.fakes.connectors import FILE_SOURCE
from tests.fakes.http_server import metrics_endpoint

CLUSTER, URL, FAR = "fake-cluster-id", "http://w0:8083", "http://far:8083"
LEADER_ID = "connect-cluster-g"
SESSION_KEY = base64.b64encode(b"canary-session-key").decode()
CONNECTOR = {
    "name": "orders",
    "connector.class": FILE_SOURCE,
    "connection.password": "canary-connector",
    "connection.url": "jdbc:pg://me:canary-in-url@db/x",
    "producer.override.sasl.jaas.config": 'x required password="canary-override";',
    "api.key": "canary-api-key",
    "db.pwd": "canary-pwd",
    "exactly.once.support": "requested",
    "offsets.storage.topic": "orders-offsets",
}
CANARY_WORDS = ("canary-", SESSION_KEY, base64.b64encode(b"me:canary-url").decode())
CLIENT = """\
security.protocol=PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="me" password="canary-jaas";
sasl.password=canary-sasl
ssl.key.password=canary-key
ssl.keystore.password=canary-store
unknown.password=canary-unknown
"""
WORKER = f"""\
group.id=g
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
exactly.once.source.support=enabled
admin.{CLIENT}"""


@dataclass
class World(fakes.World):
    """Files and variables full of canaries, a broker, topics and workers that hold more, and what looked at them.

    All of it is about `connector`.

    Group g with one worker, whose properties file is `properties`; a program that touches `restart` restarts it.
    """

    modes: dict[str, str] = field(default_factory=lambda: {URL: "enabled"})
    directory: Path = Path("unused")
    acls: FakeAclStore = field(default_factory=FakeAclStore)
    until_end: ExitStack = field(default_factory=ExitStack)
    targets: list[Target] = field(default_factory=list)
    connector: str = "orders"

    @property
    def task_id(self) -> str:
        return f"g-{self.connector}-0"

    @property
    def config(self) -> dict[str, str]:
        return {**CONNECTOR, "name": self.connector}

    @property
    def key(self) -> bytes:
        """That of its only offset."""
        return json.dumps([self.connector, {"f": "a"}], separators=(",", ":")).encode()

    @property
    def properties(self) -> Path:
        return self.directory / "worker.properties"

    @property
    def restart(self) -> Path:
        return self.directory / "restart"

    def private(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return str(path)

    def metrics(self) -> str:
        """The URL of an endpoint that serves until the world ends."""
        name = self.connector.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        text = f'kafka_connect_source_task_metrics_transaction_size_max{{connector="{name}",task="0"}} 2000.0\n'
        return self.until_end.enter_context(metrics_endpoint(text)).url

    def take_id(self, transactional_id: str, *, timeout_ms: int = 60_000) -> None:
        """A task, a leader, or a round of the leader's, initialises its id."""
        known = self.brokers.state.transactions[transactional_id]
        known.producer_epoch, known.state, known.timeout_ms = known.producer_epoch + 1, "Empty", timeout_ms

    def everything_written(self) -> Mapping[str, object]:
        """All that commands can change here; another value afterwards means that something was written."""
        return {
            "topics": sorted(self.topics.topics),
            "records": list(self.topics.written),
            "requests": [self.brokers.count(api) for api in ("InitProducerId", "WriteTxnMarkers")],
            "connectors": copy.deepcopy(self.connect.connectors),
            "offsets": copy.deepcopy(self.connect.offsets),
            "fenced by Connect": list(self.connect.fenced),
            "ACLs": list(self.acls.created),
            "properties": self.properties.read_text(encoding="utf-8"),
            "workers": [member.member_id for member in self.connect.describe().members],
        }

    def doors(self, *, broken: bool = False) -> dict[str, Any]:
        """App's open_* callables; the broken ones fail where secrets are in reach."""

        def look(app: Any) -> None:
            self.targets.append(app.target)
            self._restart_if_asked()
            if broken:
                secrets = (app.target.client, app.target.connect, app.target.connect.token)
                raise RuntimeError(f"broken: {app} {secrets!r} {app.target.connect.token} {app.target}")

        def looking(door: Callable[..., Any]) -> Callable[..., Any]:
            def opened(app: Any, *url: str) -> Any:
                look(app)
                return door(app, *url)

            return opened

        def transactions(app: Any) -> Any:
            return open_transactions(app)

        doors = {**super().doors(), "open_transactions": transactions}
        return {name: looking(door) for name, door in doors.items()}

    def _restart_if_asked(self) -> None:
        """A restarted worker has the mode of its file."""
        if self.restart.exists():
            self.restart.unlink()
            lines = dict(line.split("=", 1) for line in self.properties.read_text().splitlines() if "=" in line)
            self.connect.stop_worker(URL)
            self.connect.start_worker(URL, lines["exactly.once.source.support"])


def failed_in_fencing(world: World) -> None:
    """The connector's only task has FAILED in zombie fencing: it had two, whose record is older than the commit."""
    world.connect.add(world.connector, world.config).fail(trace=FENCING_FAILED)
    world.keep_config(f"tasks-fencing-{world.connector}", {"task-count": 2})
    world.keep_config(f"commit-{world.connector}", {"tasks": 1})


def unreadable_record(world: World) -> None:
    """A task-count record that a worker which starts loses others with, and a good one after it."""
    world.keep_config(f"tasks-fencing-{world.connector}", {"tasks": 1})
    world.keep_config(f"tasks-fencing-{world.connector}", {"task-count": 1})


def plain_write(world: World) -> None:
    """A record outside any transaction, among the connector's."""
    world.topics.put("sink", b"k", b"v")


def lost_markers(world: World) -> None:
    """A transaction on orders-offsets that its coordinator has committed, without its marker."""
    state = world.brokers.state
    world.topics.add_topic(TOPIC, 1, {"cleanup.policy": "compact"})
    state.keeps_log = True
    state.open_transaction("committed", ("orders-offsets", 0), epoch=3)
    state.lose_markers("committed")


def another_group(world: World) -> None:
    """Group h on the same cluster, to which the profile `far` leads, with workers that find the connector's offset."""
    for name in ("far-configs", "far-offsets"):
        world.topics.add_topic(name, 1, {"cleanup.policy": "compact"})
    other = world.other_group("h", FAR)
    other.keep_config = lambda key, value: world.topics.put(
        "far-configs", key.encode(), None if value is None else json.dumps(value).encode()
    )
    other.offsets.alter(world.connector, [{"partition": {"f": "a"}, "offset": {"n": 1}}])
    config = world.directory.parent / "config" / "eosctl"
    config.mkdir(parents=True)
    (config / "config.yaml").write_text(yaml.safe_dump({"profiles": {"far": far_profile(world)}}), encoding="utf-8")


def far_profile(world: World) -> dict[str, str]:
    """The profile of `another_group`."""
    servers = ",".join(world.brokers.bootstrap_servers)
    topics = {"config_topic": "far-configs", "offset_topic": "far-offsets"}
    return {"bootstrap_server": servers, "group_id": "h", "connect_url": FAR, **topics}


@contextmanager
def canary_world(directory: Path, *, connector: str = "orders") -> Iterator[World]:
    """The connector is STOPPED; a transaction hangs on topic sink."""
    acls = FakeAclStore([Acl("User:w", "READ", "Topic", "connect-configs")], cluster_id=CLUSTER)
    inputs = directory / "inputs"
    inputs.mkdir()
    with ExitStack() as until_end:
        world = World(directory=inputs, acls=acls, until_end=until_end, connector=connector)
        until_end.enter_context(world.brokers)
        _fill(world)
        world.connect.session_key = base64.b64decode(SESSION_KEY)
        world.connect.add(connector, world.config, state="STOPPED")
        world.connect.offsets.alter(connector, [{"partition": {"f": "a"}, "offset": {"n": 1}}])
        for event, taken in (("start_task", world.task_id), ("rebalance", LEADER_ID)):
            world.connect.after(event, lambda _call, taken=taken: world.take_id(taken))  # type: ignore[misc]
        world.connect.after("fence", lambda _call: world.take_id(world.task_id, timeout_ms=max(ROUND_TIMEOUTS_MS)))
        state = world.brokers.state
        state.transactions[world.task_id] = FakeTransaction(7, 4, "CompleteCommit")
        state.transactions[LEADER_ID] = FakeTransaction(8, 0)
        producer_id = state.open_transaction("forgotten", ("sink", 0), epoch=3)
        del state.transactions["forgotten"]
        state.log("sink", 0).producers[producer_id].last_timestamp_ms -= 3_600_000
        world.private("worker.properties", WORKER)
        yield world


def _fill(world: World) -> None:
    topics, task_id = world.topics, world.task_id.encode()
    for name in ("connect-offsets", "connect-configs", "connect-status", "orders-offsets", "sink"):
        topics.add_topic(name, 1, {"cleanup.policy": "compact"})
    pairs = [
        ("session-key", {"key": SESSION_KEY, "algorithm": "HmacSHA256", "creation-timestamp": 1}),
        *created(world.connector, 1, record=1, config=world.config),
        (f"task-{world.connector}-0", {"properties": world.config}),
    ]
    for record in config_records(*pairs):
        topics.put("connect-configs", record.key, record.value)
    topics.put("connect-offsets", world.key, b'{"n":1}')
    topics.add_topic("__transaction_state", 50)
    logged_key = struct.pack(">hh", 0, len(task_id)) + task_id
    topics.put("__transaction_state", logged_key, struct.pack(">hqhibiqq", 0, 7, 4, 60_000, 4, 0, 2_000, -1))


def by_files(world: World) -> tuple[list[str], dict[str, str]]:
    """A client.properties, a worker's file, a URL with a password in the environment."""
    args = ["--command-config", world.private("client.properties", CLIENT), "-w", str(world.properties), "-g", "g"]
    environ = {"EOSCTL_CONNECT_URL": "http://me:canary-url@w0:8083", "EOSCTL_CONNECT_TOKEN": "canary-token"}
    return [*args, "-b", ",".join(world.brokers.bootstrap_servers)], environ


def by_profile(world: World) -> tuple[list[str], dict[str, str]]:
    """A profile with all three ways to a secret."""
    profile = {
        "bootstrap_server": ",".join(world.brokers.bootstrap_servers),
        "group_id": "g",
        "connect_url": URL,
        "client": {
            "security.protocol": "PLAINTEXT",
            "sasl.password_env": "CANARY_VARIABLE",
            "ssl.key.password_file": world.private("key-password", "canary-file\n"),
            "sasl.oauthbearer.client.secret_command": f"cat {world.private('secret', 'canary-command')}",
        },
        "connect": {"username": "me", "password_command": f"cat {world.private('rest', 'canary-rest')}"},
    }
    config = world.private(
        "config.yaml", yaml.safe_dump({"profiles": {"p": profile, "far": far_profile(world)}, "current": "p"})
    )
    return ["--config", config], {"CANARY_VARIABLE": "canary-env"}


WAYS = {"files": by_files, "profile": by_profile}
