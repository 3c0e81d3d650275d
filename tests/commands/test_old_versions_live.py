"""Kafka 3.9 and 3.5, broker and worker: what works there does, and what can't be is refused with the version that can.

The walk is the same on both. 3.5 is the oldest Kafka that eosctl is tried on; what it can't do is a table below, which
README.md's table repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not listed as re-exported

from eosctl.core.rescue import ROUND_TIMEOUTS_MS
from eosctl.sandbox.stack import Stack
from eosctl.sandbox.zombie import Zombie
from tests.conftest import Invoke, Outcome
from tests.hanging_transactions import (
    offsets,
    unverified_transactions,
    write_in_a_transaction_that_no_coordinator_knows,
)
from tests.sandbox_fixtures import GROUP, FileSource, rest, wait_until

pytestmark = pytest.mark.live

STACKS = {"3.9.2": "old_stack", "3.5.1": "oldest_stack"}
Eosctl = Callable[..., Outcome]


@pytest.fixture(params=[pytest.param(version, marks=pytest.mark.on(name)) for version, name in STACKS.items()])
def old(request: pytest.FixtureRequest) -> Stack:
    """A broker and a worker of an older Kafka."""
    found: Stack = request.getfixturevalue(STACKS[request.param])
    return found


@pytest.fixture
def eosctl(old: Stack, invoke: Invoke) -> Eosctl:
    """Runs a command line against the old stack, with JSON as output."""
    where = ["-b", old.bootstrap_servers, "-u", old.urls(GROUP)[0], "-g", GROUP, "-o", "json"]
    return lambda *words: invoke(*words, *where)


@pytest.fixture
def source(old: Stack, tmp_path: Path, unique: str) -> Iterator[FileSource]:
    """A connector that has delivered two lines, and runs."""
    path = tmp_path / f"{unique}.txt"
    path.write_text("one\ntwo\n")
    source = FileSource(url=old.urls(GROUP)[0], name=unique, path=path, topic=f"topic-{unique}")
    source.put()
    source.wait_position(8)
    yield source
    rest(f"{source.url}/connectors/{source.name}", "DELETE")


def rows(outcome: Outcome, exit_code: int = 0) -> Any:
    assert outcome.exit_code == exit_code, outcome.stdout + outcome.stderr
    return outcome.json()["data"]["rows"]


def test_what_is_read_of_a_connector_that_runs(old: Stack, eosctl: Eosctl, source: FileSource) -> None:
    name, task_id = source.name, f"{GROUP}-{source.name}-0"
    wait_until(lambda: rows(eosctl("workers", "list"))[0]["assigned"], what="a stable group")
    (worker,) = rows(eosctl("workers", "probe"))
    health = "healthy" if old.state.kafka_version == "3.9.2" else "unknown"
    assert (worker["version"], worker["mode"], worker["health"]) == (old.state.kafka_version, "enabled", health)

    listed = {row["transactional_id"]: row["owner"]["kind"] for row in rows(eosctl("txn", "list"))}
    assert (listed[task_id], listed[f"connect-cluster-{GROUP}"]) == ("task", "leader")
    assert [row["transaction_timeout_ms"] for row in rows(eosctl("txn", "describe", task_id))] == [60_000]
    assert [row["transactional_id"] for row in rows(eosctl("txn", "producers", "--topic", source.topic))] == [task_id]
    assert [row["transactional_id"] for row in rows(eosctl("txn", "log", task_id))] == [task_id]
    assert rows(eosctl("txn", "hanging", "--all")) == []

    (offset,) = rows(eosctl("offsets", "get", "--connector", name, "--rest"))
    assert (offset["effective"]["runtime"], offset["rest"]["status"]) == ({"position": 8}, "same")
    assert name in {row["connector"] for row in rows(eosctl("offsets", "list"))}
    assert "single_replica" in {row["code"] for row in rows(eosctl("offsets", "lint"))}

    (record,) = rows(eosctl("task-counts", "show", name))
    assert (record["recorded"], record["alive_ids"], record["findings"]) == (1, [task_id], [])
    assert name in {row["connector"] for row in rows(eosctl("task-counts", "replay", "--topic"))}
    assert rows(eosctl("connectors", "check", "--connector", name)) == []
    assert eosctl("rescue", "--connector", name, "--dry-run").json()["data"]["summary"]["verdict"] == "healthy"


@pytest.mark.usefixtures("source")
def test_the_checks_of_the_whole_cluster_can_be_passed(eosctl: Eosctl) -> None:
    """`upgrade verify` never could below Kafka 3.9, where no worker tells its health."""
    wait_until(lambda: eosctl("upgrade", "verify", "--to", "enabled").exit_code == 0, what="every gate to pass")
    planned = eosctl("upgrade", "plan", "--to", "enabled").json()["data"]
    assert {gate["status"] for gate in planned["gates"]} == {"pass"}
    back = eosctl("upgrade", "plan", "--to", "disabled", "--hard").json()["data"]
    assert [each["mode"] for each in back["passes"]] == ["preparing", "disabled"]
    found = eosctl("doctor").json()["data"]
    assert [row for row in found["rows"] if row["severity"] == "error"] == []
    assert found["summary"]["not_checked"] == 0
    (refusal,) = rows(eosctl("acls", "check", *(f"--principal={role}=User:x" for role in ("worker", "observer"))))
    assert refusal["code"] == "no_authorizer"


def test_a_zombie_of_a_stopped_connector_ends(old: Stack, eosctl: Eosctl, source: FileSource) -> None:
    name, task_id = source.name, f"{GROUP}-{source.name}-0"
    running = eosctl("fence", "--connector", name, "--dry-run")
    assert running.exit_code == 6
    source.stop_and_wait()
    with Zombie(old.bootstrap_servers, task_id, topic=source.topic, record=b"x") as zombie:
        (planned,) = rows(eosctl("fence", "--connector", name, "--dry-run"))
        assert (planned["outcome"], planned["before"]["state"]) == ("would_fence", "Ongoing")
        (open_one,) = rows(eosctl("txn", "list", "--open-longer-than", "1ms", "--client-side"))
        assert open_one["transactional_id"] == task_id
        (fenced,) = rows(eosctl("fence", "--connector", name, "--yes"))
        assert (fenced["outcome"], zombie.commit()) == ("fenced", "_FENCED")
        assert fenced["after"]["producer_epoch"] == fenced["before"]["producer_epoch"] + 2  # one for the abort
    wait_until(lambda: rows(eosctl("txn", "describe", task_id))[0]["state"] == "Empty", what="the id to be Empty")

    # the leader's own way, which leaves the timeout that tells its rounds from everybody else's
    assert [row["outcome"] for row in rows(eosctl("fence", "--connector", name, "--via", "connect", "--yes"))] == [
        "fenced"
    ]
    (left,) = rows(eosctl("txn", "describe", task_id))
    assert left["transaction_timeout_ms"] == (90_000 if old.state.kafka_version == "3.9.2" else 1)
    assert left["transaction_timeout_ms"] in ROUND_TIMEOUTS_MS
    source.append("three")
    source.set_state("resume")
    source.wait_position(14)


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")  # kafka-python, when imported
def test_a_hanging_transaction_is_found_and_aborted(old: Stack, eosctl: Eosctl, unique: str) -> None:
    admin = AdminClient({"bootstrap.servers": old.bootstrap_servers})
    admin.create_topics([NewTopic(unique, 1, 1)])[unique].result(30)
    write = partial(write_in_a_transaction_that_no_coordinator_knows, old, unique, producer_id=987_654_321)
    if old.state.kafka_version == "3.9.2":
        with unverified_transactions(old):
            wait_until(write, what="the broker to take the batch")
    else:  # nobody asks the coordinator before Kafka 3.6
        wait_until(write, what="the topic's leader to know of it")
    assert offsets(old, unique) == (0, 1)
    (hanging,) = rows(eosctl("txn", "hanging", "--topic", unique), exit_code=3)
    assert (hanging["producer_id"], hanging["reason"]) == (987_654_321, "no_transactional_id")
    (done,) = rows(eosctl("txn", "abort", "--topic", unique, "--partition", "0", "--start-offset", "0", "--yes"))
    assert (done["outcome"], done["lso_before"], done["lso_after"]) == ("aborted", 0, 2)
    assert rows(eosctl("txn", "hanging", "--topic", unique)) == []


REFUSED = {
    "3.9.2": [("txn list --match x.*", "4.1")],
    "3.5.1": [
        ("txn list --match x.*", "4.1"),
        ("txn list --open-longer-than 1s", "3.8"),
        ("offsets reset --connector {connector} --all-partitions --via rest --yes", "3.6"),
    ],
}


def test_what_is_refused_names_the_version_that_can(old: Stack, eosctl: Eosctl, source: FileSource) -> None:
    source.stop_and_wait()
    for words, version in REFUSED[old.state.kafka_version]:
        refused = eosctl(*words.format(connector=source.name).split())
        (error,) = refused.json()["errors"]
        assert (refused.exit_code, error["code"]) == (1, "unsupported"), error
        assert f"needs Kafka {version} " in error["message"]
    reset = eosctl("offsets", "reset", "--connector", source.name, "--all-partitions", "--yes").json()
    via = "rest" if old.state.kafka_version == "3.9.2" else "topic"
    assert (reset["exit_code"], reset["data"]["via"]) == (0, via), reset
    assert rest(f"{source.url}/connectors/{source.name}/offsets") == {"offsets": []}
