"""A `-g` under which nothing is known is said to be wrong, with the groups that exist: one rule for every command."""

from __future__ import annotations

import json

import pytest

from eosctl.core.transactions import RawGroup
from eosctl.errors import UnreachableError
from tests.conftest import Invoke, Outcome
from tests.envelope import envelope_of
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import config_records, created
from tests.fakes.config_world import ConfigWorld
from tests.fakes.doctor_scene import W1, cluster

LINES = (
    "doctor",
    "doctor --strict",
    "workers list",
    "workers probe",
    "task-counts list",
    "task-counts show orders",
    "task-counts validate",
    "task-counts write orders --count 2 --dry-run",
    "task-counts clean --dry-run",
    "connectors check",
    "connectors trace orders",
    "connectors stop orders --dry-run",
    "fence --connector orders --dry-run",
    "fence --connector orders --tasks 2 --dry-run",
    "fence --connector absent --dry-run",
    "fence --prefix wrong- --dry-run",
    "fence wrong-orders-0 --dry-run",
    "offsets list",
    "offsets get --connector orders",
    "offsets diff --connector orders",
    "offsets switch --connector orders --to global --dry-run",
    'offsets set --connector orders --partition {"f":"a"} --offset {"n":1} --dry-run',
    "rescue --connector orders --dry-run",
    "upgrade plan --to enabled",
    "upgrade status",
    "upgrade verify --to enabled",
)
THERE = "Connect groups of this Kafka cluster: g"


def run(invoke: Invoke, there: ConfigWorld, line: str, group: str, *more: str) -> Outcome:
    return invoke(*line.split(), "-b", "localhost:1", "-g", group, *more, **there.surroundings)


@pytest.mark.parametrize("topic", ["connect-configs", "absent"])
@pytest.mark.parametrize("line", LINES)
def test_a_wrong_group_is_exit_code_1_with_the_groups_that_exist(invoke: Invoke, line: str, topic: str) -> None:
    """doctor had six checks that could not run (7), fence nothing to do (0), offsets no offsets (0)."""
    done = run(invoke, cluster(), line, "wrong", "--config-topic", topic)
    assert (done.exit_code, done.stdout) == (1, ""), done.stderr
    assert "the Connect group 'wrong' does not exist on this Kafka cluster" in done.stderr
    assert THERE in done.stderr


@pytest.mark.parametrize("line", ["doctor", "fence --prefix g --dry-run", "offsets list", "task-counts list"])
def test_a_consumer_group_is_no_connect_group(invoke: Invoke, line: str) -> None:
    there = cluster(known_ids=[])
    there.brokers.state.groups["readers"] = RawGroup("readers", "Stable", "consumer", "range", ())
    done = run(invoke, there, line, "readers")
    assert (done.exit_code, done.stdout) == (1, ""), done.stderr
    assert "the group 'readers' is not a Connect group but one of protocol type 'consumer'" in done.stderr
    assert THERE in done.stderr


def gone(**changes: object) -> ConfigWorld:
    """Group g, whose only worker stopped long ago."""
    there = cluster(**changes)
    there.other_group("h", "http://h1:8083")
    there.connect.stop_worker(W1)
    there.connect.forgotten = True
    return there


@pytest.mark.parametrize("known_ids", [(), ("connect-cluster-g",)], ids=["config topic", "id"])
def test_a_group_whose_workers_stopped_long_ago_is_not_a_wrong_one(invoke: Invoke, known_ids: tuple[str, ...]) -> None:
    records = config_records(*created("orders", 1)) if not known_ids else ()
    there = gone(records=records, known_ids=known_ids)
    rows = envelope_of(run(invoke, there, "doctor", "g", "-o", "json"), "doctor", 3)["data"]["rows"]
    assert [row["message"] for row in rows if row["severity"] == "error"] == ["the group is Dead"]
    assert run(invoke, there, "offsets list", "g").exit_code == 0
    assert run(invoke, there, "fence --prefix g-orders- --dry-run", "g").exit_code == 0


def test_offsets_are_shown_where_nobody_can_say_which_groups_there_are(invoke: Invoke) -> None:
    """A connection that was cut at that question made exit code 1 of it."""
    there = cluster(known_ids=[], faults={"list_groups": UnreachableError("cut")})
    done = run(invoke, there, "offsets list", "new", "--config-topic", "absent")
    assert done.exit_code == 0, done.stderr


def test_fence_takes_a_waiver_for_ids_of_a_group_that_is_not_there(invoke: Invoke) -> None:
    line = "fence wrong-orders-0 --unknown-liveness --dry-run"
    assert run(invoke, cluster(), line, "wrong").exit_code == 0


def test_fence_of_ids_that_are_there_asks_nothing_about_the_group(invoke: Invoke) -> None:
    """They may be those of another application, whoever's group stands in the profile."""
    there = cluster()
    there.brokers.state.transactions["app-1"] = FakeTransaction(9, 0)
    assert run(invoke, there, "fence app-1 --dry-run", "wrong").exit_code == 0


@pytest.mark.parametrize("transactional_id", ["eosctl-offsets-wrong-writer", "app"])
def test_an_unknown_id_that_is_no_tasks_asks_nothing_about_the_group(invoke: Invoke, transactional_id: str) -> None:
    assert run(invoke, cluster(), f"fence {transactional_id} --dry-run", "wrong").exit_code == 0


def test_what_is_said_is_in_the_document_too(invoke: Invoke) -> None:
    done = run(invoke, cluster(), "doctor", "wrong", "-o", "json")
    assert json.loads(done.stdout)["status"] == "error"
    [error] = envelope_of(done, "error", 1)["errors"]
    assert (error["code"], THERE in error["hint"]) == ("not_found", True)
