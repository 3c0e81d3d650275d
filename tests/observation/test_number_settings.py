"""Settings that are no plain numbers: read as Kafka reads them, or not known; never taken for the default."""

from __future__ import annotations

import pytest

from eosctl.core.records import Record
from tests.conftest import Invoke
from tests.fakes.config_topic import config_records, created
from tests.fakes.doctor_scene import WHERE, cluster

TIMEOUT, EVERY = "producer.override.transaction.timeout.ms", "transaction.boundary.interval.ms"
IN_FLIGHT = "producer.override.max.in.flight.requests.per.connection"
BY_CLOCK = {"transaction.boundary": "interval"}


@pytest.mark.parametrize(
    ("config", "code", "exit_code"),
    [
        ({TIMEOUT: " 1000000"}, "timeout_above_broker", 3),
        ({TIMEOUT: "${file:x:y}"}, "value_unknown", 0),
        ({TIMEOUT: "99999999999"}, "value_unknown", 0),
        ({"transaction.boundary": "interval ", EVERY: "120000"}, "interval_exceeds_timeout", 3),
        ({"transaction.boundary": "${env:B}", EVERY: "120000"}, "value_unknown", 0),
        ({**BY_CLOCK, EVERY: " 120000", TIMEOUT: "+90000"}, "interval_exceeds_timeout", 3),
        ({**BY_CLOCK, EVERY: "${env:EVERY}"}, "value_unknown", 0),
        ({"producer.override.retries": " 0"}, "producer_refuses", 3),
        ({"producer.override.retries": "many"}, "value_unknown", 0),
        ({IN_FLIGHT: "+6"}, "producer_refuses", 3),
        ({IN_FLIGHT: "${env:N}"}, "value_unknown", 0),
        ({"producer.override.acks": "${env:ACKS}"}, "value_unknown", 0),
        ({"admin.override.retry.backoff.ms": "${env:N}"}, "value_unknown", 0),
    ],
)
def test_it_is_judged_or_said_to_be_unknown(invoke: Invoke, config: dict[str, str], code: str, exit_code: int) -> None:
    """Each passed as the default would; a reference to acks was said to be refused."""
    there = cluster(configs={"orders": config})
    done = invoke("connectors", "check", "-o", "json", *WHERE, **there.surroundings)
    assert code in [row["code"] for row in done.json()["data"]["rows"]]
    assert done.exit_code in (exit_code, 7)


@pytest.mark.parametrize("config", [{TIMEOUT: " 90000 "}, {**BY_CLOCK, EVERY: "+5000"}, {IN_FLIGHT: " 5"}])
def test_what_kafka_reads_and_takes_is_no_finding(invoke: Invoke, config: dict[str, str]) -> None:
    there = cluster(configs={"orders": config})
    done = invoke("connectors", "check", "--strict", "-o", "json", *WHERE, **there.surroundings)
    assert (done.exit_code, done.json()["data"]["rows"]) == (0, [])


@pytest.mark.parametrize(
    ("value", "ids", "codes"),
    [
        ("4", 4, []),
        (" 4", 4, []),
        ("${env:TASKS}", 1, ["tasks_unknown"]),
        ("four", 1, ["tasks_unknown"]),
    ],
)
def test_rights_are_for_as_many_tasks_as_there_may_be(invoke: Invoke, value: str, ids: int, codes: list[str]) -> None:
    """` 4` and a reference were taken for one task, without a word."""
    records: list[Record] = config_records(*created("orders", 1, config={"tasks.max": value})[:1])
    there = cluster(records=records, connectors={})
    words = ("acls", "generate", "--connector", "orders", "--role", "producer", "-o", "json")
    document = invoke(*words, *WHERE, **there.surroundings).json()
    names = {row["resource_name"] for row in document["data"]["rows"] if row["resource_type"] == "TransactionalId"}
    assert len(names) == ids
    assert [each["code"] for each in document["errors"] if each["code"] == "tasks_unknown"] == codes
