"""The table of rights on real workers: with exactly these a connector delivers; each one that is taken away is missed.

A worker in `enabled` and the clients of its connectors log in as four users that have nothing but what ACLs grant.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.conftest import Invoke, Outcome
from tests.sandbox_fixtures import GROUP, PATIENCE_S, FileSource, rest, wait_until
from tests.secure_stack import SecureStack

pytestmark = pytest.mark.live

_TYPES = {"TransactionalId": ResourceType.TRANSACTIONAL_ID, "Topic": ResourceType.TOPIC}


@dataclass
class Stage:
    """A connector of its own on the secured worker, with an offsets topic and an output topic of its own."""

    secure: SecureStack
    source: FileSource
    admin: AdminClient

    @property
    def scope(self) -> list[str]:
        """The options that say whose rights are meant."""
        name = self.source.name
        return ["--connector", name, "--tasks", "1", "--dedicated-topic", "offsets-{connector}",
                "--output-topic", self.source.topic]  # fmt: skip

    def run(self, invoke: Invoke, *words: str, user: str = "super") -> Outcome:
        """One command as `user`, through the secure listener; no password may be said."""
        stack = self.secure.stack
        where = ["-b", stack.secure_bootstrap_servers, "-u", self.source.url, "-g", GROUP]
        config = stack.state.command_configs[user]
        outcome = invoke(*words, *where, "--command-config", config, "-o", "json")
        assert not [word for word in self.secure.passwords.values() if word in outcome.stdout + outcome.stderr]
        return outcome

    def acls(self, invoke: Invoke, verb: str, *more: str) -> Outcome:
        """`eosctl acls VERB` for the connector; the worker's file names the users."""
        worker = self.secure.stack.state.of_kind("worker")[0].config
        return self.run(invoke, "acls", verb, *self.scope, "-w", worker, *more)

    def revoke(self, user: str, operation: str, resource_type: str, name: str) -> None:
        """Takes one ACL away and waits until the broker has forgotten it."""
        wanted = AclBindingFilter(
            _TYPES[resource_type], name, ResourcePatternType.LITERAL, f"User:{user}", "*", AclOperation[operation],
            AclPermissionType.ALLOW,
        )  # fmt: skip
        (future,) = self.admin.delete_acls([wanted]).values()
        assert len(future.result(PATIENCE_S)) == 1
        wait_until(lambda: not self.admin.describe_acls(wanted).result(PATIENCE_S), what="the ACL to be forgotten")

    def trace(self) -> str:
        """Why the connector or its task has FAILED; empty while neither has."""
        status = rest(f"{self.source.url}/connectors/{self.source.name}/status")
        failed = [part for part in (status["connector"], *status["tasks"]) if part["state"] == "FAILED"]
        return "\n".join(part["trace"] for part in failed)

    def restart(self) -> None:
        """Starts the connector and its task again."""
        rest(f"{self.source.url}/connectors/{self.source.name}/restart?includeTasks=true", "POST")

    def deliver(self) -> None:
        """Adds a line, and waits until its offset is committed."""
        self.source.append("one more")
        self.source.wait_position(self.source.path.stat().st_size)


@pytest.fixture(scope="module")
def stage(secure_stack: SecureStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The connector's name and files; nothing is granted or created yet."""
    directory = tmp_path_factory.mktemp("acls")
    name = f"acl{uuid.uuid4().hex[:8]}"
    path = directory / "lines.txt"
    path.write_text("one\n")
    source = FileSource(secure_stack.stack.urls(GROUP)[0], name, path, f"{name}-out")
    source.more = {"offsets.storage.topic": f"offsets-{name}", "exactly.once.support": "required"}
    admin = AdminClient({"bootstrap.servers": secure_stack.stack.bootstrap_servers, "log_level": 0})
    yield Stage(secure_stack, source, admin)
    if name in rest(f"{source.url}/connectors"):
        rest(f"{source.url}/connectors/{name}", "DELETE")


@pytest.fixture
def running(stage: Stage, invoke: Invoke) -> Stage:
    """The connector with exactly the rights of the table, RUNNING, its first line delivered."""
    assert stage.acls(invoke, "apply", "--yes").exit_code == 0
    if stage.source.name not in rest(f"{stage.source.url}/connectors"):
        stage.source.put()
    if stage.trace():
        stage.restart()
    stage.source.wait_running()
    stage.source.wait_position(stage.source.path.stat().st_size)
    return stage


def test_a_connector_delivers_with_exactly_these_rights(stage: Stage, invoke: Invoke) -> None:
    before = stage.acls(invoke, "check")
    assert before.exit_code == 3, before.stderr
    lacking = {(row["evidence"]["role"], row["evidence"]["resource_name"]) for row in before.json()["data"]["rows"]
               if row["severity"] == "error"}  # fmt: skip
    name = stage.source.name
    task = f"{GROUP}-{name}-0"
    assert lacking == {
        ("producer", task), ("producer", f"offsets-{name}"), ("producer", f"{name}-out"),
        ("consumer", f"offsets-{name}"), ("admin", task), ("admin", f"offsets-{name}"),
    }  # fmt: skip

    applied = stage.acls(invoke, "apply", "--yes")
    assert applied.exit_code == 0, applied.stderr
    counts = applied.json()["data"]["summary"]["counts"]
    assert counts["created"] == before.json()["data"]["summary"]["missing"]
    assert stage.acls(invoke, "check", "--strict").json()["data"]["rows"] == []
    assert stage.acls(invoke, "apply", "--dry-run").json()["data"]["summary"]["counts"] == {
        "keep": sum(counts.values())
    }

    stage.source.put()
    stage.source.wait_running()
    stage.deliver()
    listed = stage.run(invoke, "offsets", "list", "--connector", name).json()["data"]["rows"]
    assert [row["effective"]["runtime"] for row in listed] == [{"position": stage.source.path.stat().st_size}]
    # what the connector and its worker say is enough now: its tasks, its offsets topic, and what it has written to
    worker = stage.secure.stack.state.of_kind("worker")[0].config
    known = stage.run(invoke, "acls", "check", "--connector", name, "-w", worker)
    assert (known.exit_code, known.json()["data"]["rows"]) == (0, [])
    asked = {right["resource_name"] for right in known.json()["data"]["rights"]}
    assert {task, f"offsets-{name}", f"{name}-out"} <= asked


def _fails_after(act: Callable[[Stage], None]) -> Callable[[Stage, str], str]:
    def wait(stage: Stage, words: str) -> str:
        def said() -> str:
            trace = stage.trace()
            return trace if words in trace else ""

        act(stage)
        return str(wait_until(said, what=f"the connector or its task to fail with {words}"))

    return wait


def _append(stage: Stage) -> None:
    stage.source.append("this one is held back")


def _refused(stage: Stage, verb: str, path: str, body: object = None) -> str:
    """What the worker answers to a request that it can't fulfil; 409, while the group rebalances, is asked again."""

    def ask() -> str | None:
        request = urllib.request.Request(
            f"{stage.source.url}/connectors/{stage.source.name}{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=verb,
            headers={"Content-Type": "application/json"},
        )
        with pytest.raises(HTTPError) as caught:
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120)
        with caught.value as answer:
            return None if answer.code == 409 else str(answer.code) + answer.read().decode()

    return str(wait_until(ask, what="an answer other than 409"))


def _reset_offsets(stage: Stage, _words: str) -> str:
    """DELETE of the offsets makes Connect fence the task that ran before."""
    stage.source.stop_and_wait()
    try:
        return _refused(stage, "DELETE", "/offsets")
    finally:
        stage.source.set_state("resume")


def _put_config(stage: Stage, _words: str) -> str:
    return _refused(stage, "PUT", "/config", {**stage.source.config(), "unused": "property"})


TASK, OFFSETS = "connect-eos-{name}-0", "offsets-{name}"
LEADER = f"connect-cluster-{GROUP}"


@pytest.mark.parametrize(
    ("role", "operations", "resource_type", "resource", "act", "words"),
    [
        ("producer", "WRITE", "TransactionalId", TASK, _fails_after(Stage.restart), "TransactionalIdAuthorization"),
        ("producer", "WRITE", "Topic", OFFSETS, _fails_after(_append), "Not authorized to access topics: [offsets-"),
        # with DESCRIBE alone the worker polls on and on, and fills its log
        ("consumer", "READ DESCRIBE", "Topic", OFFSETS, _fails_after(Stage.restart), "Not authorized to access topics"),
        ("admin", "DESCRIBE", "Topic", OFFSETS, _fails_after(Stage.restart), "Not authorized to get the end offsets"),
        ("admin", "WRITE", "TransactionalId", TASK, _reset_offsets, "Failed to perform zombie fencing"),
        ("worker", "WRITE", "TransactionalId", LEADER, _put_config, "Failed to write to config topic"),
    ],
    ids=["task id", "offsets written", "offsets read", "end of offsets", "fencing", "leader id"],
)  # fmt: skip
def test_a_right_that_is_taken_away_is_missed_named_and_given_back(
    running: Stage, invoke: Invoke, role: str, operations: str, resource_type: str, resource: str,
    act: Callable[[Stage, str], str], words: str,
) -> None:  # fmt: skip
    name = resource.format(name=running.source.name)
    for operation in operations.split():
        running.revoke(role, operation, resource_type, name)
    assert words in act(running, words)

    found = running.acls(invoke, "check", "--strict")
    assert found.exit_code == 3
    (finding,) = [row for row in found.json()["data"]["rows"] if row["severity"] != "info"]
    evidence = finding["evidence"]
    assert (finding["code"], evidence["role"], evidence["operations"]) == ("acl_missing", role, operations.split())
    assert (evidence["resource_type"], evidence["resource_name"]) == (resource_type, name)

    healed = running.acls(invoke, "apply", "--yes")
    assert healed.json()["data"]["summary"]["counts"]["created"] == len(operations.split()), healed.stderr
    if running.trace():
        running.restart()
    running.source.wait_running()
    running.deliver()


def test_a_right_that_is_lacking_holds_an_upgrade_up(running: Stage, invoke: Invoke) -> None:
    """Without it the connector goes on, and fails at its next reconfiguration: `upgrade plan` said nothing of it."""
    task = TASK.format(name=running.source.name)

    def gate() -> dict[str, str]:
        worker = running.secure.stack.state.of_kind("worker")[0].config
        planned = running.run(invoke, "upgrade", "plan", "--to", "enabled", "-w", worker)
        (found,) = [each for each in planned.json()["data"]["gates"] if each["id"] == "rights_granted"]
        return dict(found)

    running.revoke("admin", "WRITE", "TransactionalId", task)
    lacking = gate()
    assert lacking["status"] == "fail"
    assert f"admin User:admin: no ACL allows WRITE on TransactionalId {task}: " in lacking["evidence"]
    assert running.acls(invoke, "apply", "--yes").exit_code == 0
    assert task not in gate()["evidence"], "connectors of other tests may lack rights of their own"


def test_every_command_runs_with_the_rights_of_its_role_and_is_refused_without(
    running: Stage, invoke: Invoke, tmp_path: Path
) -> None:
    """The roles' rights on the group were granted with the sandbox; those on the connector are granted here."""
    name, topic = running.source.name, running.source.topic
    task = TASK.format(name=name)
    roles = ["observer", "fencer", "offset-writer", "config-writer", "acl-writer"]
    users = [word for role in roles for word in ("--role", role, "--principal", f"{role}=User:{role}")]
    applied = running.run(invoke, "acls", "apply", *running.scope, *users, "--yes")
    assert applied.exit_code == 0, applied.stderr
    running.source.stop_and_wait()
    partition = json.dumps({"filename": str(running.source.path)})
    commands: dict[str, list[tuple[str, ...]]] = {
        "observer": [
            ("workers", "list"), ("task-counts", "show", name), ("offsets", "list", "--connector", name),
            ("txn", "describe", task), ("txn", "producers", "--topic", topic), ("txn", "log", task),
            ("acls", "check", "--role", "observer", *running.scope, "--principal", "User:observer"),
            ("fence", "--connector", name, "--dry-run"),
        ],
        "fencer": [("fence", "--connector", name, "--yes")],
        "offset-writer": [
            ("offsets", "set", "--connector", name, "--partition", partition, "--offset", '{"position": 0}',
             "--via", "topic", "--yes"),
            ("offsets", "merge", "--connector", name, "--into", "dedicated", "--yes"),
        ],
        "config-writer": [("task-counts", "write", name, "--count", "1", "--yes")],
        "acl-writer": [("acls", "apply", "--role", "observer", *running.scope, "--principal", "User:late", "--yes")],
    }  # fmt: skip
    for role, lines in commands.items():
        for line in lines:
            refused = running.run(invoke, *line, user="nobody")
            assert refused.exit_code == 5, (line, refused.stdout, refused.stderr)
            outcome = running.run(invoke, *line, user=role)
            assert outcome.exit_code == 0, (role, line, outcome.stdout, outcome.stderr)
            assert "authorized" not in outcome.stderr, (role, line, outcome.stderr)
    _exports(running, invoke, tmp_path / "eosctl.prom")
    _migrates(running, invoke, tmp_path, json.dumps([name, json.loads(partition)], separators=(",", ":")))
    running.source.set_state("resume")


def _exports(stage: Stage, invoke: Invoke, textfile: Path) -> None:
    """Everything that the exporter reads; a source without its rights says so for itself."""
    line = ("exporter", "--once", "--textfile", str(textfile))
    assert stage.run(invoke, *line, user="fencer").exit_code == 7
    refused = re.findall(r'eosctl_collection_error\{code="not_authorized",source="(\w+)"\} 1', textfile.read_text())
    assert "offsets" in refused
    outcome = stage.run(invoke, *line, user="observer")
    assert outcome.exit_code == 0, (outcome.stdout, outcome.stderr)
    assert "eosctl_collection_error{" not in textfile.read_text()


def _migrates(stage: Stage, invoke: Invoke, folder: Path, key: str) -> None:
    """Plan, apply and verify with the rights of `offset-writer` and nothing else: none on a consumer group.

    The reader on Spark died of a group that it never uses, and the writer had no right to its transactional ids.
    """
    dump = folder / "global.ndjson"
    dump.write_text(json.dumps({"topic": "x", "partition": 0, "key": key, "value": '{"position":1}'}))
    assert stage.run(invoke, "offsets", "import", str(dump), "--store", "global", "--yes").exit_code == 0
    which = ["--connector", stage.source.name, "--to", "dedicated", "--conflict", "take-source"]
    stack = stage.secure.stack
    where = ["-b", stack.secure_bootstrap_servers, "-u", stage.source.url, "-g", GROUP]
    where += ["--command-config", str(stack.state.command_configs["offset-writer"]), "-o", "json", "--timeout", "200s"]
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}

    def run(*words: str) -> Any:  # a process of its own: there is one Spark in each
        line = [sys.executable, "-m", "eosctl", "offsets", *words, *where]
        done = subprocess.run(line, env=environ, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return json.loads(done.stdout)["data"]

    migrated = run("migrate", *which, "--yes")
    verified = run("verify", f"{migrated['snapshot']}/plan.json")
    assert verified["summary"]["target_compared"] == 1
