"""`eosctl txn`, as typed: whole output and exit codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.fakes.transactions import Scene, scene

Invoke = Any
Golden = Callable[[str, str], None]


@pytest.fixture
def stage() -> Iterator[Scene]:
    with scene() as built:
        built.brokers.state.add_topic("__transaction_state", 50)
        yield built


@pytest.fixture
def txn(invoke: Invoke, stage: Scene) -> Invoke:
    """`eosctl txn ARGS…` on the scene."""

    def run(*args: str, **more: Any) -> Any:
        return invoke("txn", *args, *stage.flags, **stage.surroundings, **more)

    return run


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("list", ("list",)),
        ("describe", ("describe", "g-orders-1", "g-done-0")),
        ("producers", ("producers", "--topic", "sink")),
        ("hanging-none", ("hanging", "--topic", "sink", "--max-transaction-timeout", "1m")),
    ],
)
def test_text(txn: Invoke, golden: Golden, name: str, arguments: tuple[str, ...]) -> None:
    outcome = txn(*arguments)
    golden(f"txn/{name}.txt", outcome.stdout)
    assert outcome.exit_code == 0, outcome.stderr


def test_a_hanging_transaction_is_a_finding(txn: Invoke, stage: Scene, golden: Golden) -> None:
    """Without options it was a usage error, and remedies name it so."""
    del stage.brokers.state.transactions["g-orders-1"]
    outcome = txn("hanging", "--max-transaction-timeout", "1m")
    golden("txn/hanging.txt", outcome.stdout)
    assert txn("hanging", "--all", "--max-transaction-timeout", "1m").stdout == outcome.stdout
    assert outcome.exit_code == 3
    document = txn("hanging", "--topic", "sink", "--max-transaction-timeout", "1m", "-o", "json").json()
    assert (document["kind"], document["status"]) == ("txn-hanging", "findings")
    assert document["target"] == {"kafka_cluster_id": "fake-cluster-id", "group_id": "g"}


def test_states_are_taken_in_any_case(txn: Invoke) -> None:
    rows = txn("list", "--state", "ongoing", "-o", "json").json()["data"]["rows"]
    assert [row["transactional_id"] for row in rows] == ["g-orders-1"]
    assert txn("list", "--state", "nosuch").exit_code == 2


def test_coordinator(txn: Invoke) -> None:
    (row,) = txn("coordinator", "my-connect-source-0", "-o", "json").json()["data"]["rows"]
    assert (row["partition"], row["coordinator"], row["host"]) == (38, 1, "127.0.0.1")


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (("describe",), 2),
        (("describe", ""), 2),
        (("describe", "nosuch"), 1),
        (("describe", "nosuch", "g-done-0"), 7),
        (("producers", "--topic", "nosuch"), 1),
        (("hanging", "--topic", "sink", "--all"), 2),
        (("abort", "--topic", "sink", "--partition", "0"), 2),
        (("abort", "--topic", "sink", "--partition", "0", "--start-offset", "99"), 1),
        (("abort", "--topic", "sink", "--partition", "0", "--start-offset", "0"), 6),
    ],
)
def test_exit_codes(txn: Invoke, arguments: tuple[str, ...], exit_code: int) -> None:
    outcome = txn(*arguments)
    assert outcome.exit_code == exit_code
    assert outcome.stderr


@pytest.mark.parametrize("timestamp_ms", [2**63 - 1, -(2**63)])
def test_a_producers_time_may_be_any_number(txn: Invoke, stage: Scene, timestamp_ms: int) -> None:
    """Clients choose it: a time behind the year 9999 was an unexpected error, and hid every other producer."""
    producers = stage.brokers.state.log("sink", 0).producers
    next(iter(producers.values())).last_timestamp_ms = timestamp_ms
    rows = txn("producers", "--topic", "sink", "-o", "json").json()["data"]["rows"]
    later = "+292278994-08-17T07:12:55.807Z" if timestamp_ms > 0 else None
    assert (timestamp_ms, later) in [(row["last_timestamp_ms"], row["last_timestamp"]) for row in rows]
    for command in (("producers", "--topic", "sink"), ("hanging", "--topic", "sink")):
        assert txn(*command).exit_code in (0, 3)
