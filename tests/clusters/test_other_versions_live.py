"""Kafka 4.4, 3.9, 3.5 and 3.3, broker and worker: what works there does, the rest is refused with what can.

4.4 is the newest, 3.9 the last line before 4, 3.5 the first that stops connectors and tells their offsets, and 3.3 the
first with exactly-once sources: there a connector is deleted where newer ones stop it. README.md has the same versions
in a table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not listed as re-exported

from eosctl.core.transactions import ROUND_TIMEOUTS_MS
from eosctl.core.workers.modes import Mode
from eosctl.sandbox.operations import Zombie
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke, Outcome
from tests.hanging_transactions import (
    offsets,
    unverified_transactions,
    write_in_a_transaction_that_no_coordinator_knows,
)
from tests.other_versions import OtherSource, on
from tests.sandbox_fixtures import GROUP, PATIENCE_S, wait_until

pytestmark = pytest.mark.live

Eosctl = Callable[..., Outcome]


@pytest.fixture
def eosctl(other: Stack, invoke: Invoke) -> Eosctl:
    """Runs a command line against the other stack, with JSON as output."""
    where = ["-b", other.bootstrap_servers, "-u", other.urls(GROUP)[0], "-g", GROUP, "-o", "json"]
    return lambda *words: invoke(*words, *where)


def rows(outcome: Outcome, exit_code: int = 0) -> Any:
    assert outcome.exit_code == exit_code, outcome.stdout + outcome.stderr
    return outcome.json()["data"]["rows"]


@on("4.4.0", "3.9.2", "3.5.1", "3.3.2")
def test_what_is_read_of_a_connector_that_runs(other: Stack, eosctl: Eosctl, other_source: OtherSource) -> None:
    name, task_id = other_source.name, other_source.task_id
    wait_until(lambda: rows(eosctl("workers", "list"))[0]["assigned"], what="a stable group")
    (worker,) = rows(eosctl("workers", "probe"))
    health = "unknown" if other.state.kafka_version in ("3.5.1", "3.3.2") else "healthy"
    assert (worker["version"], worker["mode"], worker["health"]) == (other.state.kafka_version, "enabled", health)

    listed = {row["transactional_id"]: row["owner"]["kind"] for row in rows(eosctl("txn", "list"))}
    assert (listed[task_id], listed[f"connect-cluster-{GROUP}"]) == ("task", "leader")
    assert [row["transaction_timeout_ms"] for row in rows(eosctl("txn", "describe", task_id))] == [60_000]
    for words in (("producers", "--topic", other_source.topic), ("log", task_id)):
        assert [row["transactional_id"] for row in rows(eosctl("txn", *words))] == [task_id]
    assert rows(eosctl("txn", "hanging", "--all")) == []

    (offset,) = rows(eosctl("offsets", "get", "--connector", name, *(["--rest"] if other_source.stops else [])))
    assert offset["effective"]["runtime"] == {"position": 8}
    assert not other_source.stops or offset["rest"]["status"] == "same"
    assert name in {row["connector"] for row in rows(eosctl("offsets", "list"))}
    assert "single_replica" in {row["code"] for row in rows(eosctl("offsets", "lint"))}

    (record,) = rows(eosctl("task-counts", "show", name))
    assert (record["recorded"], record["alive_ids"], record["findings"]) == (1, [task_id], [])
    assert name in {row["connector"] for row in rows(eosctl("task-counts", "replay", "--topic"))}
    found = [row["code"] for row in rows(eosctl("connectors", "check", "--connector", name))]
    assert found == ([] if other_source.declares else ["support_undeclared"])
    assert eosctl("rescue", "--connector", name, "--dry-run").json()["data"]["summary"]["verdict"] == "healthy"


@on("4.4.0", "3.9.2", "3.3.2")
@pytest.mark.usefixtures("other_source")
def test_the_checks_of_the_whole_cluster_can_be_passed(eosctl: Eosctl) -> None:
    """`upgrade verify` never could below Kafka 3.9, where no worker tells its health.

    Nor with a connector that declares no support, as all do on 3.3, though `requested` lets it run.
    """
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


@on("4.4.0", "3.9.2", "3.5.1", "3.3.2")
def test_a_zombie_of_a_connector_that_was_halted_ends(other: Stack, eosctl: Eosctl, other_source: OtherSource) -> None:
    name, task_id = other_source.name, other_source.task_id
    running = eosctl("fence", "--connector", name, "--dry-run")
    assert running.exit_code == 6
    other_source.halt()
    with Zombie(other.bootstrap_servers, task_id, topic=other_source.topic, record=b"x") as zombie:
        (planned,) = rows(eosctl("fence", "--connector", name, "--dry-run"))
        assert (planned["outcome"], planned["before"]["state"]) == ("would_fence", "Ongoing")
        open_ones = rows(eosctl("txn", "list", "--open-longer-than", "1ms", "--client-side"))
        assert task_id in [each["transactional_id"] for each in open_ones], "other tests may have some, too"
        (fenced,) = rows(eosctl("fence", "--connector", name, "--yes"))
        assert (fenced["outcome"], zombie.commit()) == ("fenced", "_FENCED")
        assert fenced["after"]["producer_epoch"] >= fenced["before"]["producer_epoch"] + 2  # one for the abort
    wait_until(lambda: rows(eosctl("txn", "describe", task_id))[0]["state"] == "Empty", what="the id to be Empty")

    if other_source.stops:  # the leader's own way, which leaves the timeout that tells its rounds from everybody else's
        done = rows(eosctl("fence", "--connector", name, "--via", "connect", "--yes"))
        assert [row["outcome"] for row in done] == ["fenced"]
        (left,) = rows(eosctl("txn", "describe", task_id))
        assert left["transaction_timeout_ms"] == (1 if other.state.kafka_version == "3.5.1" else 90_000)
        assert left["transaction_timeout_ms"] in ROUND_TIMEOUTS_MS
    other_source.append("three")
    other_source.go_on()
    other_source.wait_position(14)


@on("3.9.2", "3.3.2")
@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")  # kafka-python, when imported
def test_a_hanging_transaction_is_found_and_aborted(other: Stack, eosctl: Eosctl, unique: str) -> None:
    admin = AdminClient({"bootstrap.servers": other.bootstrap_servers})
    admin.create_topics([NewTopic(unique, 1, 1)])[unique].result(PATIENCE_S)
    write = partial(write_in_a_transaction_that_no_coordinator_knows, other, unique, producer_id=987_654_321)
    if other.state.kafka_version == "3.9.2":
        with unverified_transactions(other):
            wait_until(write, what="the broker to take the batch")
    else:  # nobody asks the coordinator before Kafka 3.6
        wait_until(write, what="the topic's leader to know of it")
    assert offsets(other, unique) == (0, 1)
    (hanging,) = rows(eosctl("txn", "hanging", "--topic", unique), exit_code=3)
    assert (hanging["producer_id"], hanging["reason"]) == (987_654_321, "no_transactional_id")
    (done,) = rows(eosctl("txn", "abort", "--topic", unique, "--partition", "0", "--start-offset", "0", "--yes"))
    assert (done["outcome"], done["lso_before"], done["lso_after"]) == ("aborted", 0, 2)
    assert rows(eosctl("txn", "hanging", "--topic", unique)) == []


Refusal = tuple[str, int, str]
IN_4_1: Refusal = ("txn list --match x.*", 1, "needs Kafka 4.1 ")
IN_3_8: Refusal = ("txn list --open-longer-than 1s", 1, "needs Kafka 3.8 ")
IN_3_6: Refusal = (
    "offsets reset --connector {connector} --all-partitions --via rest --yes", 1, "needs Kafka 3.6 ",
)  # fmt: skip
IN_3_5: tuple[Refusal, ...] = (
    ("offsets get --connector {connector} --rest", 1, "came with Kafka 3.5 "),
    ("offsets switch --connector {connector} --to any --yes", 1, "can be stopped from Kafka 3.5 on"),
    ("connectors stop {connector} --yes", 1, "can be stopped from Kafka 3.5 on"),
    ("fence --connector {connector} --via connect --yes", 6, "` (Kafka 3.5+)"),
    ("task-counts write {connector} --count 2 --yes", 6, "`; before Kafka 3.5 DELETE"),
    ("offsets reset --connector {connector} --all-partitions --yes", 6, "`; before Kafka 3.5 DELETE"),
)
REFUSED = {"3.9.2": (IN_4_1,), "3.5.1": (IN_4_1, IN_3_8, IN_3_6), "3.3.2": (IN_4_1, IN_3_8, IN_3_6, *IN_3_5)}


@on("3.9.2", "3.5.1", "3.3.2")
def test_what_is_refused_names_the_version_that_can(other: Stack, eosctl: Eosctl, other_source: OtherSource) -> None:
    for words, exit_code, said in REFUSED[other.state.kafka_version]:
        refused = eosctl(*words.format(connector=other_source.name).split())
        (error,) = (each for each in refused.json()["errors"] if each["severity"] == "error")
        assert (refused.exit_code, said in f"{error['message']} {error['hint']}") == (exit_code, True), error
    other_source.halt()
    reset = eosctl("offsets", "reset", "--connector", other_source.name, "--all-partitions", "--yes").json()
    via = "rest" if other.state.kafka_version == "3.9.2" else "topic"
    assert (reset["exit_code"], reset["data"]["via"]) == (0, via), reset
    wait_until(lambda: other_source.offset() is None, what="readers to see the reset")
    other_source.go_on()
    other_source.wait_position(8)


@on("3.3.2")
def test_a_worker_is_brought_to_enabled(
    other: Stack, eosctl: Eosctl, other_source: OtherSource, tmp_path: Path
) -> None:
    """The second of the upgrade's two passes, with the connector's task running before and after."""
    (worker,) = other.state.of_kind("worker")
    other.restart_node(worker.name, mode=Mode.PREPARING)
    wait_until(lambda: other_source.task_states() == ["RUNNING"], what="the task")
    place = tmp_path / "state" / "eosctl" / "sandbox" / "other"  # where the driver looks for it
    place.parent.mkdir(parents=True)
    place.symlink_to(other.directory)
    try:
        words = ("upgrade", "apply", "--to", "enabled", "--driver", "sandbox", "--sandbox", "other", "--yes")
        done = eosctl(*words, "--timeout", "400s")
    finally:
        found = Stack.find(other.directory)
        assert found is not None
        other.state = found.state
    assert [row["outcome"] for row in rows(done)] == ["done"]
    (now,) = rows(eosctl("workers", "probe"))
    assert (now["url"], now["mode"]) == (worker.address, "enabled")
    other_source.append("three")
    other_source.wait_position(14)


@on("3.3.2")
def test_a_connector_whose_fencing_failed_is_rescued(eosctl: Eosctl, other_source: OtherSource) -> None:
    """An id every other second, and a new config while the round goes on: the task fails as in one of many tasks."""
    other_source.halt()
    ids = [f"{GROUP}-{other_source.name}-{task}" for task in range(5)]
    rows(eosctl("task-counts", "write", other_source.name, "--count", "5", "--yes"))
    other_source.put(**{"admin.override.retry.backoff.ms": "2000"})

    def round_began() -> bool:
        described = eosctl("txn", "describe", *ids).json()["data"]["rows"]
        return 1 in [row["transaction_timeout_ms"] for row in described]

    wait_until(round_began, what="the worker's round to begin")
    other_source.put(**{"batch.size": "7"})
    wait_until(lambda: other_source.task_states() == ["FAILED"], what="the round to fail the task")
    done = eosctl("rescue", "--connector", other_source.name, "--yes")
    assert [(row["action"], row["outcome"]) for row in rows(done)] == [
        (action, "done") for action in ("fence", "write", "restart", "watch")
    ]
    other_source.append("three")
    other_source.wait_position(14)
