"""`eosctl acls` as a person runs it, on an ACL store and a config topic in memory."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml

from tests.acls.acl_commands import OFFLINE, WHERE, doors, needed
from tests.conftest import Invoke
from tests.fakes.acls import FakeAclStore


def test_generate_needs_no_cluster(invoke: Invoke) -> None:
    outcome = invoke("acls", "generate", *OFFLINE, "--role", "producer", "--to", "enabled")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert outcome.stdout.splitlines()[1].split()[:5] == ["producer", "-", "WRITE", "TransactionalId", "g-orders-0"]
    prepared = invoke("acls", "generate", *OFFLINE, "--role", "producer", "--to", "preparing", "-o", "json").json()
    assert {row["resource_name"] for row in prepared["data"]["rows"]} == {"out"}


def test_the_lines_grant_what_the_rows_say(invoke: Invoke) -> None:
    lines = invoke("acls", "generate", *OFFLINE, "--principal", "User:w", "--format", "kafka-acls").stdout.splitlines()
    granted = set()
    for line in lines:
        words = shlex.split(line)
        assert words[:5] == ["kafka-acls.sh", "--bootstrap-server", "HOST:PORT", "--add", "--allow-principal"]
        operations = [words[at + 1] for at, word in enumerate(words) if word == "--operation"]
        resource = " ".join(words[words.index("--operation") + 2 * len(operations) :])
        granted |= {(words[5], operation.upper(), resource) for operation in operations}
    flags = {"Topic": "--topic {}", "TransactionalId": "--transactional-id {}", "Group": "--group {}"}
    asked = {
        (acl.principal, acl.operation.replace("_", ""), flags[acl.resource_type].format(acl.name))
        for acl in needed(invoke, *OFFLINE)
    }
    assert granted == asked


def test_yaml_for_terraform(invoke: Invoke) -> None:
    outcome = invoke("acls", "generate", *OFFLINE, "--prefixed", "--principal", "User:ü=1", "--format", "terraform")
    acls = yaml.safe_load(outcome.stdout)["acls"]
    assert len(acls) == outcome.stdout.count("principal:")  # YAML keeps one of two members of the same name
    assert len(acls) == len(set(needed(invoke, *OFFLINE, "--prefixed", principal="User:ü=1")))
    assert acls["User:ü=1/WRITE/TRANSACTIONAL_ID/PREFIXED/g-orders-"] == {
        "resource_type": "TRANSACTIONAL_ID", "resource_name": "g-orders-", "pattern_type": "PREFIXED",
        "principal": "User:ü=1", "host": "*", "operation": "WRITE", "permission": "ALLOW",
    }  # fmt: skip


def test_each_role_has_its_principal(invoke: Invoke, tmp_path: Path) -> None:
    """A distinguished name has equals signs, too; what is not said is in the worker's file."""
    worker = tmp_path / "worker.properties"
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{}" password="canary";'
    worker.write_text(
        "bootstrap.servers=k:1\ngroup.id=g\nsecurity.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.jaas.config={jaas.format('connect')}\nproducer.sasl.jaas.config={jaas.format('writer')}\n"
    )
    worker.chmod(0o600)
    words = ["acls", "generate", *OFFLINE, "-w", str(worker), "--principal", "admin=User:CN=a,O=b", "-o", "json"]
    outcome = invoke(*words)
    found = {row["role"]: row["principal"] for row in outcome.json()["data"]["rows"]}
    assert found == {
        "worker": "User:connect", "producer": "User:writer", "consumer": "User:connect", "admin": "User:CN=a,O=b"
    }  # fmt: skip
    assert "canary" not in outcome.stdout + outcome.stderr
    every = needed(invoke, *OFFLINE, principal="User:CN=a,O=b")
    assert {acl.principal for acl in every} == {"User:CN=a,O=b"}


def test_tasks_and_topics_come_from_the_config_topic(invoke: Invoke) -> None:
    """tasks.max, not the one task that runs now, says which ids it may come to."""
    config = {"offsets.storage.topic": "own"}
    store = FakeAclStore()
    acls = needed(invoke, *WHERE, "--all", "--role", "producer", doors=doors(store, **config))
    assert {acl.name for acl in acls} == {"g-orders-0", "g-orders-1", "g-orders-2", "own"}


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (["-g", "g", "--connector", "c"], 2, "how many tasks has c?"),
        (["-g", "g", "--connector", "c", "--tasks", "1", "--tasks", "2"], 2, "2 times --tasks for 1 connectors"),
        (["-g", "g", "--principal", "w"], 2, "'w' is no principal"),
        (["--connector", "c", "--tasks", "1"], 2, "no Connect group was named"),
        ([*WHERE, "--connector", "nope"], 1, "the group has no connector nope"),
    ],
)
def test_what_is_not_said_is_asked_for(invoke: Invoke, words: list[str], exit_code: int, said: str) -> None:
    outcome = invoke("acls", "generate", *words, doors=doors(FakeAclStore()))
    assert (outcome.exit_code, outcome.stdout) == (exit_code, "")
    assert said in outcome.stderr


def test_output_topics_that_nobody_named_are_missed(invoke: Invoke) -> None:
    outcome = invoke("acls", "generate", "-g", "g", "--connector", "c", "--tasks", "1")
    assert outcome.exit_code == 0
    assert "the topics: --output-topic NAME" in outcome.stderr
