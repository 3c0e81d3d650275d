"""The examples of docs/how-to/rehearse-a-connector.md, each in a sandbox of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eosctl.rehearse.plan import GrowingFile
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke, Outcome
from tests.rehearse.rehearsing import (
    documented,
    ended_table,
    every_tick,
    growing_table,
    rehearse,
    rows_of,
    table_plugin,
)

pytestmark = [pytest.mark.live, pytest.mark.slow]

FAULTS = ("--faults", "kill-worker,restart-tasks,stop-resume,slow-network")


def assert_exactly_once(outcome: Outcome) -> None:
    assert outcome.exit_code == 0, outcome.stdout + outcome.stderr
    verdicts = {name: row["verdict"] for name, row in rows_of(outcome).items()}
    assert verdicts == dict.fromkeys(FAULTS[1].split(","), "exactly_once"), outcome.stdout


def test_a_file(invoke: Invoke, tmp_path: Path) -> None:
    source = GrowingFile(tmp_path / "clicks.ndjson", seed=1)
    source.start()
    try:
        connector = documented("clicks", file=str(source.path))
        outcome = rehearse(invoke, tmp_path, *FAULTS, "--unique", "n", "--sequence", "n", connector=connector)
    finally:
        source.stop()
    assert_exactly_once(outcome)


def test_a_mirror_between_two_sandboxes(invoke: Invoke, tmp_path: Path, stack: Stack, unique: str) -> None:
    """The target of the document, which would be a real cluster, is never asked."""
    producer, number = Producer({"bootstrap.servers": stack.bootstrap_servers, "log_level": 0}), 0

    def produce() -> None:
        nonlocal number
        producer.produce(unique, json.dumps({"n": number}))
        producer.poll(0)
        number += 1

    produce()
    producer.flush()
    connector = documented("mirror", topics=unique, source__cluster__bootstrap__servers=stack.bootstrap_servers)
    with every_tick(produce):
        outcome = rehearse(invoke, tmp_path, *FAULTS, connector=connector)
    producer.flush()
    assert_exactly_once(outcome)
    assert "target.example.com" not in outcome.stdout


@pytest.mark.parametrize(
    ("table", "fields"),
    [(growing_table, ("--unique", "id")), (growing_table, ()), (ended_table, ())],
    ids=["a field tells", "no field", "no field, and nothing new"],
)
def test_a_table_that_is_read_twice_is_found_out(
    invoke: Invoke, tmp_path: Path, table: Callable[[Path], AbstractContextManager[None]], fields: tuple[str, ...]
) -> None:
    """It says SUPPORTED, and every record is in a transaction with its offset: some are there twice all the same."""
    connector = documented("orders", connection__url=f"jdbc:sqlite:{tmp_path / 'orders.db'}", forgets="true")
    plugins = table_plugin(tmp_path)
    with table(tmp_path / "orders.db"):
        outcome = rehearse(
            invoke, tmp_path, "--plugin-path", str(plugins), "--faults", "restart-tasks", "--workers", "1",
            *fields, connector=connector,
        )  # fmt: skip
    row = rows_of(outcome)["restart-tasks"]
    assert (outcome.exit_code, row["verdict"]) == (3, "not_exactly_once"), outcome.stdout
    assert "duplicate" in {each["code"] for each in row["findings"]}


def test_a_table(invoke: Invoke, tmp_path: Path) -> None:
    connector = documented("orders", connection__url=f"jdbc:sqlite:{tmp_path / 'orders.db'}")
    plugins = table_plugin(tmp_path)
    with growing_table(tmp_path / "orders.db"):
        outcome = rehearse(
            invoke, tmp_path, *FAULTS, "--plugin-path", str(plugins), "--unique", "id", "--sequence", "id",
            connector=connector,
        )  # fmt: skip
    assert_exactly_once(outcome)
