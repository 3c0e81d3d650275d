"""Every command that writes: one line of the audit log per result, and nothing on a cluster that is not expected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Invoke, Outcome
from tests.fakes.canaries import CLUSTER, CONNECTOR, KEY, LINES, URL, World, by_files, canary_world, words_of

WRITES = [line for line in LINES if "--yes" in line]
SURE = {
    "fence --connector orders --live --yes",
    "offsets import {file} --store global --yes --force-running",
    "offsets merge --connector orders --into dedicated --yes --force-running",
    'offsets set --connector orders --partition {{"f":"a"}} --offset {{"n":9}} --via topic --yes',
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with canary_world(tmp_path) as built:
        yield built


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
