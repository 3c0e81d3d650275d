"""States of REST beside the group's assignment and the status topic: stale, stuck, or not written by their worker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eosctl.checks.visit import MOST_RECENT, read_status_log
from eosctl.errors import UnauthorizedError
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.doctor_scene import OFFSETS, W1, W2, cluster, doctor, run_fix, transaction_topic
from tests.fakes.world import STATUSES

IDLE = "nothing_committed"
TOPICS = [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), compacted(STATUSES, 5), transaction_topic()]


def two_workers(**changes: Any) -> ConfigWorld:
    """Two sources; `payments` and its task are with W2, `orders` and its task with W1."""
    names = ("orders", "payments")
    values: dict[str, Any] = {
        "described": TOPICS,
        "modes": {W1: "enabled", W2: "enabled"},
        "records": config_records(*(each for name in names for each in created(name, 1, record=1))),
        "connectors": dict.fromkeys(names, "source"),
    }
    there = cluster(**{**values, **changes})
    for url, name in ((W1, "orders"), (W2, "payments")):
        there.connect.own(url, (name, -1), (name, 0))
        there.connect.connectors[name].url = url
    return there


def written(there: ConfigWorld, seconds: float) -> ConfigWorld:
    """What the statuses are now was written so long ago."""
    there.topics.read(STATUSES)
    newest_ms = max(record.timestamp_ms for record in there.topics.records(STATUSES))
    there.time.now_s = newest_ms / 1000 + seconds
    return there


def told(invoke: Invoke, there: ConfigWorld, exit_code: int) -> list[tuple[str, str, str]]:
    """Errors and warnings, but not that idle tasks commit nothing."""
    rows = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", exit_code)["data"]["rows"]
    return [
        (row["code"], row["subject"], row["severity"])
        for row in rows
        if row["severity"] != "info" and row["code"] != IDLE
    ]


def row_of(invoke: Invoke, there: ConfigWorld, code: str) -> Any:
    rows = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    [row] = [row for row in rows if row["code"] == code]
    return row


def test_a_state_that_a_lost_worker_wrote_too_late_is_stale_and_no_want_of_a_worker(invoke: Invoke) -> None:
    """It was `unassigned` for ever, an error after six minutes, while the connector ran."""
    there = two_workers()
    payments = there.connect.connectors["payments"]
    there.topics.read(STATUSES)
    payments.url, payments.state = W1, "UNASSIGNED"
    written(there, 3600)
    assert told(invoke, there, 0) == [("status_stale", "payments", "warning")]
    row = row_of(invoke, there, "status_stale")
    assert "only the status is stale" in row["message"]
    assert row["evidence"]["assigned_to"] == "w2:8083"
    assert row["evidence"]["status_age_ms"] == pytest.approx(3_600_000, abs=10_000)
    [restarted] = run_fix(invoke, there, row)
    assert restarted.exit_code == 0
    assert told(invoke, there, 0) == []


def test_what_is_left_of_a_task_that_is_no_more_has_no_worker_for_ever(invoke: Invoke) -> None:
    """Of a connector that was stopped or has fewer tasks now: an error after six minutes, with nothing to mend."""
    there = two_workers()
    payments = there.connect.connectors["payments"]
    payments.state, payments.target, payments.task_count = "STOPPED", "STOPPED", 0
    payments.tasks[0].state = "UNASSIGNED"
    assert told(invoke, written(there, 3600), 0) == []


def test_a_host_name_is_the_same_in_any_case(invoke: Invoke) -> None:
    """Workers are named as they are advertised, and URLs are put into lower case."""
    upper = "http://W1.Example:8083"
    there = cluster(described=TOPICS, modes={upper: "enabled"})
    there.connect.forwarded[upper.lower()] = upper
    assert told(invoke, written(there, 3600), 0) == []


@pytest.mark.parametrize("state", ["UNASSIGNED", "RESTARTING"])
def test_a_rebalance_and_a_restart_are_given_a_minute(invoke: Invoke, state: str) -> None:
    """Each look in the middle of one warned."""
    there = two_workers()
    there.connect.connectors["payments"].tasks[0].state = state
    written(there, 40)
    assert told(invoke, there, 0) == []


def test_a_start_that_is_slower_is_given_the_time_of_a_second_look(invoke: Invoke) -> None:
    there = two_workers()
    there.connect.connectors["payments"].tasks[0].state = "UNASSIGNED"
    written(there, 320)  # after scheduled.rebalance.max.delay.ms it was assigned, and starts
    there.time.later(3, there.connect.connectors["payments"].heal)
    assert told(invoke, there, 0) == []


@pytest.mark.parametrize(("seconds", "severity", "exit_code"), [(90, "warning", 0), (150, "error", 3)])
def test_what_stays_restarting_is_said(invoke: Invoke, seconds: int, severity: str, exit_code: int) -> None:
    """There was no finding at all, and the header had the task as exactly-once."""
    there = two_workers()
    there.connect.connectors["orders"].tasks[0].state = "RESTARTING"
    written(there, seconds)
    assert told(invoke, there, exit_code) == [("stuck_restarting", "orders/0", severity)]
    row = row_of(invoke, there, "stuck_restarting")
    assert row["evidence"]["worker"] == "w1:8083"
    assert "log of w1:8083" in row["fix"]


@pytest.mark.parametrize(("seconds", "severity", "exit_code"), [(120, "warning", 0), (400, "error", 3)])
def test_a_worker_that_writes_no_status_is_named(invoke: Invoke, seconds: int, severity: str, exit_code: int) -> None:
    """Its connectors had `no worker`; that W2 held them, and could not write, was nowhere."""
    there = two_workers()
    payments = there.connect.connectors["payments"]
    payments.state = payments.tasks[0].state = "UNASSIGNED"
    payments.url = payments.tasks[0].url = W1
    written(there, seconds)
    assert told(invoke, there, exit_code) == [("status_not_written", "w2:8083", severity)]
    assert row_of(invoke, there, "status_not_written")["evidence"]["parts"] == ["payments", "payments/0"]


def test_the_state_of_a_worker_that_died_is_stale_too(invoke: Invoke) -> None:
    there = two_workers()
    there.connect.connectors["payments"].tasks[0].url = W1
    written(there, 300)
    assert told(invoke, there, 0) == [("status_stale", "payments/0", "warning")]


def test_without_the_status_topic_nothing_is_guessed(invoke: Invoke) -> None:
    there = two_workers(faults={STATUSES: UnauthorizedError("READ is denied")})
    there.connect.connectors["payments"].state = "UNASSIGNED"
    there.time.now_s += 3600
    row = row_of(invoke, there, "status_age_unknown")
    assert (row["subject"], row["severity"], "READ is denied" in row["message"]) == ("payments", "warning", True)


def test_while_the_group_rebalances_it_is_not_known_who_holds_what(invoke: Invoke) -> None:
    there = two_workers()
    there.connect.connectors["payments"].tasks[0].state = "UNASSIGNED"
    written(there, 120)
    there.connect.rebalancing = True
    rows = doctor(invoke, there, "-u", W1, "-o", "json").json()["data"]["rows"]
    assert [row["subject"] for row in rows if row["code"] in ("unassigned", "status_stale")] == ["payments/0"]
    assert "unassigned" in {row["code"] for row in rows}


def test_whose_log_is_to_be_read_the_assignment_tells(invoke: Invoke) -> None:
    """The reader was sent to the worker that had the task before."""
    there = two_workers()
    there.connect.connectors["payments"].tasks[0].url = W1
    written(there, 0)
    there.brokers.state.open_transaction("g-payments-0", (OFFSETS, 3))
    there.time.now_s += 50
    assert "the log of w2:8083" in row_of(invoke, there, "transaction_open_long")["fix"]


def test_of_a_status_topic_that_is_not_compacted_so_many_records_are_read_whatever_its_partitions_are() -> None:
    """It was so many of each partition: with 25 of them and long traces, gigabytes."""
    there = cluster(described=[*TOPICS[:2], compacted(STATUSES, 25)])
    most = MOST_RECENT // 25
    for number in range(most + 50):
        status = {"state": "RUNNING", "worker_id": "w1:8083", "generation": number}
        there.topics.put(STATUSES, b"status-connector-orders", json.dumps(status).encode(), partition=3)
    log = read_status_log(there.app())
    assert (log.unread, most <= len(log.of("orders", "connector")) <= most + 1) == ("", True)


@pytest.mark.parametrize("name", ["a/b", ",x", "a-b"])
def test_a_connector_without_a_worker_may_have_any_name(invoke: Invoke, name: str) -> None:
    there = cluster(described=TOPICS, connectors={name: "source"}, records=config_records(*created(name, 1, record=1)))
    there.connect.delayed |= {(name, -1), (name, 0)}
    there.connect.connectors[name].state = there.connect.connectors[name].tasks[0].state = "UNASSIGNED"
    rows = doctor(invoke, written(there, 3600), "-o", "json").json()["data"]["rows"]
    ages = {row["subject"]: row["evidence"]["unassigned_ms"] // 60_000 for row in rows if row["code"] == "unassigned"}
    assert ages == {name: 60, f"{name}/0": 60}
