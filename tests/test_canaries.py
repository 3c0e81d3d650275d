"""A canary for every secret that eosctl is given or reads, and a search of everything that it prints or keeps.

Every command runs on fakes with canaries in each of its inputs: once as it should, once with doors that break inside,
so that a traceback (-vv) is printed.
"""

from __future__ import annotations

import base64
import importlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.client_settings import Secret
from eosctl.core.config_view import without_secrets
from eosctl.core.records import Record
from eosctl.profiles import Target
from tests.conftest import Invoke, Outcome
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import FakeGroup, FakeTransaction
from tests.fakes.config_cluster import config_records, created
from tests.fakes.connect import FILE_SOURCE, FakeConnect, FakeConnector
from tests.fakes.offset_topics import MemoryTopics
from tests.test_contract_cli import _leaves

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
# nothing of a target is in them, or they start processes of their own: the live twin has some of these
WITHOUT_TARGET = {"completion", "demo", "explain", "offsets migrate", "schema"} | {
    f"sandbox {verb}" for verb in ("up", "down", "logs", "status")
}


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


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
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
        (tmp_path / "inputs").mkdir()
        yield World(tmp_path / "inputs", broker, topics, connect)


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
REVEALED = {
    "files": {"canary-sasl", "canary-key", "canary-token"},
    "profile": {"canary-env", "canary-file", "canary-command", "canary-rest"},
}


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


def everything(outcome: Outcome, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> dict[str, str]:
    """All that a command printed, logged or left behind, by where it is."""
    found = {"stdout": outcome.stdout, "stderr": outcome.stderr, "log": caplog.text}
    for path in tmp_path.rglob("*"):
        if path.is_file() and "inputs" not in path.parts:
            found[str(path.relative_to(tmp_path))] = path.read_text(encoding="utf-8")
    return found


def leaks(found: dict[str, str]) -> list[tuple[str, str]]:
    return [(where, word) for where, text in found.items() for word in CANARY_WORDS if word in text]


def test_every_leaf_is_searched() -> None:
    leaves = set(_leaves(importlib.import_module("eosctl.commands.root").root))
    searched = {leaf for leaf in leaves if any(f"{line} ".startswith(f"{leaf} ") for line in LINES)}
    assert leaves - searched == WITHOUT_TARGET


@pytest.mark.parametrize(("way", "output"), [("files", "json"), ("profile", "text")])
@pytest.mark.parametrize("line", LINES)
def test_no_secret_comes_out(
    invoke: Invoke, world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture, line: str, way: str, output: str
) -> None:
    caplog.set_level(logging.DEBUG)
    args, environ = WAYS[way](world)
    command = words_of(world, line, tmp_path)
    told = ["-o", output, "-vv", "--timeout", "20s", "--log-file", str(tmp_path / "log")]
    outcome = invoke(*command, *args, *told, environ=environ, doors=world.doors())
    assert not leaks(everything(outcome, tmp_path, caplog))
    assert "Traceback" not in outcome.stderr, outcome.stderr
    assert outcome.exit_code in ((4,) if line.startswith("metrics") else (0, 1, 2, 3, 6, 7))  # no metrics are served


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("line", ["workers list", "offsets list", "fence g-orders-0 --yes", "task-counts list"])
def test_no_secret_comes_out_of_a_traceback(
    invoke: Invoke, world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture, line: str, way: str
) -> None:
    args, environ = WAYS[way](world)
    told = ["-vv", "--log-file", str(tmp_path / "log")]
    outcome = invoke(*line.split(), *args, *told, environ=environ, doors=world.doors(broken=True))
    assert "Traceback" in outcome.stderr
    assert "Traceback" in (tmp_path / "log").read_text(encoding="utf-8")
    assert not leaks(everything(outcome, tmp_path, caplog))
    revealed = {each.reveal() for target in world.targets for each in secrets_of(target)}
    assert revealed >= REVEALED[way], "a canary did not even reach the target: the search proves nothing"
    assert not leaks({"repr": repr(world.targets), "str": str(world.targets)})


def test_only_a_loud_option_exports_secrets_and_a_replay_needs_none(
    invoke: Invoke, world: World, tmp_path: Path
) -> None:
    """A topic of configs could be exported and linted as a store: passwords and session key in clear."""
    args, environ = by_files(world)
    out = tmp_path / "out.ndjson"

    def run(*words: str) -> Any:
        return invoke(*words, *args, "-o", "json", environ=environ, doors=world.doors()).json()

    export = ("offsets", "export", "--store", "connect-configs", "--all-records", str(out))
    hidden = run(*export)
    assert [error["code"] for error in hidden["errors"]] == ["secrets_hidden"]
    of_file, of_topic = run("task-counts", "replay", str(out)), run("task-counts", "replay", "--topic")
    assert of_file["data"]["state"] == of_topic["data"]["state"]
    assert of_file["data"]["state"]["ignored"] == []
    loud = run(*export, "--with-secrets")
    assert loud["errors"] == []
    assert "canary-connector" in out.read_text(encoding="utf-8")
    assert SESSION_KEY in out.read_text(encoding="utf-8")


def secrets_of(target: Target) -> Iterator[Secret]:
    for settings in (target.client, target.connect):
        for name in type(settings).__dataclass_fields__:  # type: ignore[union-attr]
            value = getattr(settings, name)
            if isinstance(value, Secret):
                yield value


def test_the_search_finds_what_is_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "backup").write_text(json.dumps({"key": SESSION_KEY}))
    found = everything(Outcome(0, "a canary", ""), tmp_path, caplog)
    assert {where for where, _word in leaks(found)} == {"stdout", "state/backup"}


def test_a_secret_hides_itself() -> None:
    secret = Secret("canary")
    for text in (repr(secret), str(secret), f"{secret}", f"{secret:>9}", repr([secret])):
        assert "canary" not in text


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        (b"session-key", b'{"key":"a2V5","algorithm":"H"}', b'{"key":"***","algorithm":"H"}'),
        (b"connector-c", b'{"properties":{"a":"1","x.password":"p"}}', b'{"properties":{"a":"1","x.password":"***"}}'),
        (
            b"task-c-0",
            b'{"properties":{"x":"${file:/f:k}"},"other":"p"}',
            b'{"properties":{"x":"${file:/f:k}"},"other":"***"}',
        ),
        (b"connector-c", b"not json p", b'"***"'),
        (b"connector-c", b'["p"]', b'"***"'),
        (b"connector-c", None, None),
        (b"commit-c", b'{"tasks":1}', b'{"tasks":1}'),
        (b'["connector-c",{}]', b'{"password":"p"}', b'{"password":"p"}'),
        (None, b"p", b"p"),
    ],
)
def test_values_of_the_config_topic(key: bytes | None, value: bytes | None, shown: bytes | None) -> None:
    assert without_secrets(Record("t", 0, 0, 0, key, value)) == Record("t", 0, 0, 0, key, shown)


WRITES = [line for line in LINES if "--yes" in line]
SURE = {
    "fence --connector orders --live --yes",
    "offsets import {file} --store global --yes --force-running",
    "offsets merge --connector orders --into dedicated --yes --force-running",
    'offsets set --connector orders --partition {{"f":"a"}} --offset {{"n":9}} --via topic --yes',
}


def expecting(world: World, **expect: str) -> list[str]:
    """A profile that says nothing but what it expects."""
    return ["--config", world.private("expecting.yaml", json.dumps({"profiles": {"p": {"expect": expect}}})), "-p", "p"]


def run_write(invoke: Invoke, world: World, tmp_path: Path, line: str, *more: str) -> tuple[Outcome, list[Any]]:
    """What a writing command answered, and the audit log after it."""
    args, environ = by_files(world)
    words = [*words_of(world, line, tmp_path), *args, *more, "-o", "json", "--timeout", "20s"]
    outcome = invoke(*words, environ=environ, doors=world.doors())
    log = tmp_path / "state" / "eosctl" / "audit.jsonl"
    entries = [json.loads(each) for each in log.read_text().splitlines()] if log.exists() else []
    return outcome, entries


@pytest.mark.parametrize("line", WRITES)
def test_a_result_is_one_line_of_the_audit_log(invoke: Invoke, world: World, tmp_path: Path, line: str) -> None:
    outcome, entries = run_write(invoke, world, tmp_path, line)
    document = outcome.json()
    if document["kind"].endswith("-result"):
        [entry] = entries
        assert line.startswith(entry["command"])
        assert entry["exit_code"] == outcome.exit_code
        assert entry["summary"] == document["data"]["summary"]
        assert entry["target"]["kafka_cluster_id"] == CLUSTER
    else:  # refused, not found, or nothing to do: no write was begun, or it was and failed
        assert [entry["exit_code"] for entry in entries] in ([], [outcome.exit_code])


def test_enough_of_these_commands_write(invoke: Invoke, world: World, tmp_path: Path) -> None:
    outcomes = {line: run_write(invoke, world, tmp_path, line)[0] for line in WRITES}
    assert {line for line, outcome in outcomes.items() if outcome.json()["kind"].endswith("-result")} >= SURE


@pytest.mark.parametrize("line", WRITES)
def test_no_write_reaches_a_cluster_that_is_not_expected(
    invoke: Invoke, world: World, tmp_path: Path, line: str
) -> None:
    outcome, entries = run_write(invoke, world, tmp_path, line, *expecting(world, kafka_cluster_id="another"))
    assert not outcome.json()["kind"].endswith("-result")
    assert entries == []
    assert world.topics.writes == 0
    assert world.broker.count("InitProducerId") == 0
    assert world.connect.connectors["orders"].config == CONNECTOR
    if line in SURE:
        assert outcome.exit_code == 6
        assert "is fake-cluster-id, and the profile expects another" in outcome.stderr


@pytest.mark.parametrize(
    ("here", "there", "exit_code"), [("another", CLUSTER, 0), ("another", "another", 6), (CLUSTER, "another", 6)]
)
def test_a_store_of_another_profile_has_that_profiles_expectations(
    invoke: Invoke, world: World, here: str, there: str, exit_code: int
) -> None:
    where = {"bootstrap_server": ",".join(world.broker.bootstrap_servers), "group_id": "g", "connect_url": URL}
    profiles = {
        name: {**where, "expect": {"kafka_cluster_id": expected}} for name, expected in (("p", here), ("q", there))
    }
    config = world.private("two.yaml", json.dumps({"profiles": profiles, "current": "p"}))
    record = {"topic": "x", "partition": 0, "key": KEY.decode(), "value": '{"n":5}'}
    file = world.private("offsets.ndjson", json.dumps(record) + "\n")
    line = ["offsets", "import", file, "--store", "connect-offsets@q", "--yes", "--force-running"]
    outcome = invoke(*line, "--config", config, doors=world.doors())
    assert outcome.exit_code == exit_code, outcome.stderr
    assert world.topics.writes == (1 if exit_code == 0 else 0)
