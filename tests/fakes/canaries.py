"""Inputs full of canaries: files and variables, a broker, topics and workers, and a command line for every leaf."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.profiles import Target
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import FakeGroup, FakeTransaction
from tests.fakes.config_cluster import config_records, created
from tests.fakes.connect import FILE_SOURCE, FakeConnect, FakeConnector
from tests.fakes.offset_topics import MemoryTopics

CLUSTER, URL = "fake-cluster-id", "http://w0:8083"
SESSION_KEY = base64.b64encode(b"canary-session-key").decode()
CONNECTOR = {
    "connector.class": FILE_SOURCE,
    "connection.password": "canary-connector",
    "connection.url": "jdbc:pg://me:canary-in-url@db/x",
    "producer.override.sasl.jaas.config": 'x required password="canary-override";',
    "api.key": "canary-api-key",
    "db.pwd": "canary-pwd",
    "exactly.once.support": "requested",
    "offsets.storage.topic": "orders-offsets",
}
CANARY_WORDS = ("canary", SESSION_KEY, base64.b64encode(b"me:canary-url").decode())
KEY = b'["orders",{"f":"a"}]'

# every leaf; {file} is a record file, {backup} a backup, {out} a file to write, {worker} a worker's properties,
# {configs} records of a config topic
LINES = [
    "workers list",
    "workers probe",
    "metrics --prometheus 127.0.0.1:1/metrics",
    "offsets list",
    "offsets list --store connect-configs",
    "offsets get --connector orders",
    "offsets diff --connector orders",
    "offsets diff --connector orders global connect-configs",
    "offsets lint",
    "offsets lint --store connect-configs",
    "offsets export --store global {out}",
    "offsets export --store connect-configs -",
    "offsets export --store connect-configs {out}",
    "offsets export --store connect-configs --all-records {out}",
    "offsets merge --connector orders --into dedicated --yes --force-running",
    "offsets merge --connector orders --into connect-configs --yes --force-running",
    'offsets set --connector orders --partition {{"f":"a"}} --offset {{"n":9}} --via topic --yes',
    "offsets reset --connector orders --all --via topic --yes",
    "offsets import {file} --store global --yes --force-running",
    "offsets import {configs} --store connect-configs --yes --force-running",
    "offsets restore {backup} --yes --force-running",
    "offsets restore {configs} --yes --force-running",
    "offsets switch --connector orders --to global --yes",
    "offsets verify {file}",
    "task-counts list",
    "task-counts show orders",
    "task-counts validate",
    "task-counts replay --topic",
    "task-counts replay {file}",
    "task-counts write orders --count 1 --yes",
    "rescue --connector orders --yes",
    "fence g-orders-0 --live --yes",
    "fence --connector orders --live --yes",
    "txn list",
    "txn describe g-orders-0",
    "txn coordinator g-orders-0",
    "txn log g-orders-0",
    "txn producers --topic connect-offsets",
    "txn hanging --topic connect-offsets",
    "txn abort --topic connect-offsets --partition 0 --start-offset 0 --yes",
    "connectors check",
    "doctor",
    "acls generate --connector orders",
    "acls check --connector orders --principal User:w",
    "acls apply --connector orders --principal User:w --yes",
    "upgrade plan --to enabled",
    "upgrade status",
    "upgrade verify --to enabled",
    "upgrade apply {file} --driver print --yes",
    "profile list",
    "profile show --origin",
    "profile check",
    "profile set other group_id=g",
    "profile use p",
    "profile import other {worker}",
    "history",
]


@dataclass
class World:
    """Files and variables full of canaries, a broker, topics and workers that hold more, and what looked at them."""

    directory: Path
    broker: FakeCluster
    topics: MemoryTopics
    connect: FakeConnect
    targets: list[Target] = field(default_factory=list)

    def private(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return str(path)

    def doors(self, *, broken: bool = False) -> dict[str, Any]:
        """App's open_* callables; the broken ones fail where secrets are in reach."""

        def look(app: Any) -> None:
            self.targets.append(app.target)
            if broken:
                secrets = (app.target.client, app.target.connect, app.target.connect.token)
                raise RuntimeError(f"broken: {app} {secrets!r} {app.target.connect.token} {app.target}")

        def topics(app: Any) -> MemoryTopics:
            look(app)
            return self.topics

        def worker(app: Any, url: str) -> Any:
            look(app)
            return self.connect.open_worker(app, url)

        def transactions(app: Any) -> Any:
            from eosctl.kafka.transaction_admin import NativeTransactionAdmin

            look(app)
            return NativeTransactionAdmin(app.target.require_client(), deadline=app.deadline, on_event=app.on_event)

        return {"open_topics": topics, "open_worker": worker, "open_transactions": transactions}


@contextmanager
def canary_world(directory: Path) -> Iterator[World]:
    topics = MemoryTopics(cluster_id=CLUSTER)
    for name in ("connect-offsets", "connect-configs", "orders-offsets"):
        topics.add_topic(name, 1)
    pairs = [
        ("session-key", {"key": SESSION_KEY, "algorithm": "HmacSHA256", "creation-timestamp": 1}),
        *created("orders", 1, record=1, config=CONNECTOR),
        ("task-orders-0", {"properties": CONNECTOR}),
    ]
    for record in config_records(*pairs):
        topics.put("connect-configs", record.key, record.value)
    topics.put("connect-offsets", KEY, b'{"n":1}')
    connect = FakeConnect(
        modes={URL: "enabled"},
        connectors={"orders": FakeConnector(CONNECTOR, state="STOPPED")},
        kafka_cluster_id=CLUSTER,
    )
    with FakeCluster() as broker:
        raw = connect.raw_group("g")
        members = tuple((m.member_id, m.client_id, m.host, m.metadata, m.assignment) for m in raw.members)
        broker.state.groups["g"] = FakeGroup(raw.state, "connect", raw.protocol, members)
        broker.state.transactions["g-orders-0"] = FakeTransaction(7, 4, "CompleteCommit")
        (directory / "inputs").mkdir()
        yield World(directory / "inputs", broker, topics, connect)


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


def by_files(world: World) -> tuple[list[str], dict[str, str]]:
    """A client.properties, a worker's file, a URL with a password in the environment."""
    worker = world.private("worker.properties", f"group.id=g\noffset.storage.topic=connect-offsets\nadmin.{CLIENT}")
    args = ["--command-config", world.private("client.properties", CLIENT), "-w", worker, "-g", "g"]
    environ = {"EOSCTL_CONNECT_URL": "http://me:canary-url@w0:8083", "EOSCTL_CONNECT_TOKEN": "canary-token"}
    return [*args, "-b", ",".join(world.broker.bootstrap_servers)], environ


def by_profile(world: World) -> tuple[list[str], dict[str, str]]:
    """A profile with all three ways to a secret."""
    profile = {
        "bootstrap_server": ",".join(world.broker.bootstrap_servers),
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
    config = world.private("config.yaml", json.dumps({"profiles": {"p": profile}, "current": "p"}))
    return ["--config", config], {"CANARY_VARIABLE": "canary-env"}


WAYS = {"files": by_files, "profile": by_profile}


def words_of(world: World, line: str, tmp_path: Path) -> list[str]:
    record = {"topic": "connect-configs", "partition": 0, "offset": 0, "key": "connector-x"}
    record["value"] = json.dumps({"properties": CONNECTOR})
    offset = {
        "topic": "connect-offsets",
        "partition": 0,
        "key": KEY.decode(),
        "value": '{"n":5}',
        "cluster_id": CLUSTER,
    }
    files = {
        "file": world.private("records.ndjson", json.dumps(record if "replay" in line else offset) + "\n"),
        "backup": world.private("backup.ndjson", json.dumps(offset) + "\n"),
        "worker": world.private("other.properties", f"bootstrap.servers=h:1\noffset.storage.topic=x\n{CLIENT}"),
        "configs": world.private("configs.ndjson", json.dumps({**record, "cluster_id": CLUSTER}) + "\n"),
        "out": str(tmp_path / "out.ndjson"),
    }
    return [word.format(**files) for word in line.split()]
