"""What `eosctl doctor` finds where brokers are down and nothing can be written: it said that all was well."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.core.transaction_log import TOPIC as TRANSACTION_LOG
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.config_topic import CONFIG_TOPIC
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.doctor_scene import HEALTHY, OFFSETS, cluster, doctor, found, transaction_topic

OWN = "orders-offsets"


def guarded(*, least: int = 2, **changes: Any) -> ConfigWorld:
    """Topics with three replicas of which two have to be in sync; the connector has an offsets topic of its own."""
    topics = [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), compacted(OWN, 25)]
    for topic in topics:
        topic.config["min.insync.replicas"] = str(least)  # type: ignore[index]
    configs = {"orders": {"offsets.storage.topic": OWN}}
    return cluster(described=[*topics, transaction_topic()], configs=configs, **changes)


def errors(invoke: Invoke, there: ConfigWorld) -> list[dict[str, Any]]:
    rows = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", 3)["data"]["rows"]
    return [row for row in rows if row["check"] == "topics"]


def test_one_broker_of_three_that_is_down_is_said(invoke: Invoke) -> None:
    assert found(invoke, guarded(), 0) == HEALTHY
    there = guarded()
    there.brokers.state.gone = {3}
    [row] = errors(invoke, there)
    assert (row["code"], row["severity"], row["subject"]) == ("broker_down", "error", "broker 3")
    assert row["evidence"] == {"broker": 3, "topics": [OFFSETS, OWN, TRANSACTION_LOG, CONFIG_TOPIC]}
    assert row["fix"].startswith("Start broker 3; if it is gone for good, ")


def test_two_brokers_that_are_down_leave_too_few_replicas_in_sync(invoke: Invoke) -> None:
    there = guarded()
    there.brokers.state.gone = {2, 3}
    down, standing = errors(invoke, there)[:2], errors(invoke, there)[2:]
    assert [(row["code"], row["subject"]) for row in down] == [("broker_down", "broker 2"), ("broker_down", "broker 3")]
    assert {(row["code"], row["severity"]) for row in standing} == {("below_min_isr", "error")}
    assert {row["subject"] for row in standing} == {OFFSETS, OWN, TRANSACTION_LOG, CONFIG_TOPIC}
    assert {row["fix"] for row in standing} == {"Start brokers 2, 3."}
    of_offsets = next(row for row in standing if row["subject"] == OFFSETS)
    assert of_offsets["evidence"] == {
        "topic": OFFSETS,
        "min.insync.replicas": 2,
        "partitions": list(range(25)),
        "in_sync": 1,
    }


@pytest.mark.parametrize("topic", [OFFSETS, OWN, TRANSACTION_LOG, CONFIG_TOPIC])
def test_replicas_that_lag_are_named_where_every_broker_is_up(invoke: Invoke, topic: str) -> None:
    there = guarded()
    there.brokers.state.lagging[topic, 0] = {2, 3}
    [row] = errors(invoke, there)
    assert (row["code"], row["subject"], row["evidence"]["partitions"]) == ("below_min_isr", topic, [0])
    assert row["message"].startswith(f"1 partition of {topic} with fewer replicas in sync than min.insync.replicas=2: ")
    assert row["fix"] == "See the logs of brokers 2, 3: not in sync."


def test_one_replica_that_lags_is_nothing_while_enough_are_in_sync(invoke: Invoke) -> None:
    there = guarded()
    there.brokers.state.lagging[OFFSETS, 0] = {2}
    assert found(invoke, there, 0) == HEALTHY


def test_a_topic_that_can_never_have_so_many_replicas_in_sync(invoke: Invoke) -> None:
    rows = errors(invoke, guarded(least=4))
    assert [(row["code"], row["subject"]) for row in rows] == [
        ("below_min_isr", name) for name in (OFFSETS, OWN, CONFIG_TOPIC)
    ]
    assert {row["fix"] for row in rows} == {
        "Add replicas (kafka-reassign-partitions.sh), or lower min.insync.replicas."
    }


def test_partitions_of_an_offsets_topic_without_a_leader(invoke: Invoke) -> None:
    there = guarded()
    there.brokers.state.leaderless.update({(OFFSETS, 7), (OFFSETS, 11)})
    [row] = errors(invoke, there)
    assert (row["code"], row["subject"], row["evidence"]) == (
        "partition_without_leader", OFFSETS, {"topic": OFFSETS, "partitions": [7, 11]},
    )  # fmt: skip
    assert row["message"].startswith(f"2 partitions of {OFFSETS} without a leader: ")


def test_a_coordinators_log_without_any_leader_is_an_error_and_the_other_topics_are_checked(invoke: Invoke) -> None:
    """The whole check was "could not run" then."""
    there = guarded()
    there.brokers.state.leaderless.update((TRANSACTION_LOG, number) for number in range(50))
    there.brokers.state.lagging[CONFIG_TOPIC, 0] = {2, 3}
    assert {(row["code"], row["subject"]) for row in errors(invoke, there)} == {
        ("partition_without_leader", TRANSACTION_LOG), ("below_min_isr", CONFIG_TOPIC),
    }  # fmt: skip


def in_a_transaction(open_s: int, *, state: str = "Ongoing", **config: str) -> ConfigWorld:
    """The task's transaction, which brokers abort after a minute, has been open for so long."""
    there = cluster(configs={"orders": config})
    known = there.brokers.state.transactions["g-orders-0"]
    known.state, known.timeout_ms = state, 60_000
    known.started_ms = there.brokers.state.clock.now_ms() - 1000 * open_s
    return there


@pytest.mark.parametrize("state", ["Ongoing", "PrepareCommit"])
def test_a_transaction_that_is_open_for_more_than_half_its_timeout(invoke: Invoke, state: str) -> None:
    """The task was RUNNING, committed nothing, and failed when the time was over."""
    rows = envelope_of(doctor(invoke, in_a_transaction(45, state=state), "-o", "json"), "doctor", 3)["data"]["rows"]
    [row] = [row for row in rows if row["severity"] == "error"]
    assert (row["check"], row["code"], row["subject"]) == ("connectors", "transaction_open_long", "orders/0")
    assert row["evidence"]["transactional_id"] == "g-orders-0"
    assert (row["evidence"]["state"], row["evidence"]["transaction_timeout_ms"]) == (state, 60_000)
    assert 45_000 <= row["evidence"]["open_ms"] < 60_000
    assert row["fix"].startswith("See `eosctl txn describe g-orders-0` and the log of w1:8083.")


@pytest.mark.parametrize(
    "there",
    [
        in_a_transaction(20),
        in_a_transaction(45, state="CompleteCommit"),
        in_a_transaction(35, **{"transaction.boundary": "interval", "transaction.boundary.interval.ms": "50000"}),
    ],
    ids=["young", "over", "by the clock"],
)
def test_transactions_that_are_as_they_should_be(invoke: Invoke, there: ConfigWorld) -> None:
    assert "transaction_open_long" not in {row[1] for row in found(invoke, there, 0)}
