"""What happens again and again, without a memory: failures after each restart, configs that are always written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from eosctl.core.ids import TransactionalId
from eosctl.core.records import OutRecord
from eosctl.core.transaction_log import TOPIC as TRANSACTION_LOG
from eosctl.core.transaction_log import coordinator_partition
from eosctl.errors import UnauthorizedError
from eosctl.txn.log import MOST_RECENT
from tests.checks.truths.test_statuses import TOPICS, row_of, told
from tests.conftest import Invoke
from tests.fakes.config_topic import config_records, created
from tests.fakes.config_world import ConfigWorld
from tests.fakes.doctor_scene import cluster, doctor
from tests.fakes.transaction_log import log_key
from tests.fakes.world import STATUSES

FENCED = "org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer"
ID = "g-orders-0"
LATE_S = 1_700_100_000.0


def scene(**changes: Any) -> ConfigWorld:
    """Long after all that its topics have."""
    there = cluster(**{"described": TOPICS, **changes})
    there.topics.read(STATUSES)
    there.time.now_s = LATE_S
    there.brokers.state.stamp_ms = int((LATE_S - 1) * 1000)
    return there


def said(
    there: ConfigWorld, states: Sequence[str], *, every_s: float, ended_s: float = 0, trace: str = "it.Broke: x"
) -> None:
    """The worker wrote these states of the task, the last one `ended_s` ago."""
    for number, state in enumerate(states, start=1):
        at_ms = int((there.time.now_s - ended_s - (len(states) - number) * every_s) * 1000)
        value = {"state": state, "worker_id": "w1:8083", "trace": trace if state == "FAILED" else None}
        record = OutRecord(STATUSES, b"status-task-orders-0", json.dumps(value).encode(), None, at_ms)
        there.topics.write([record])


def recent(there: ConfigWorld) -> list[Any]:
    """What the status topic has of the task in the window."""
    records = there.topics.records(STATUSES)
    since_ms = (there.time.now_s - 600) * 1000
    return [each for each in records if each.key == b"status-task-orders-0" and each.timestamp_ms >= since_ms]


LOOP = ["RUNNING", "FAILED", "RESTARTING"]


def test_a_task_that_somebody_restarts_all_the_time_is_said_while_it_runs(invoke: Invoke) -> None:
    """Exit codes of three looks were 3, 3 and 0, by the luck of the moment."""
    there = scene()
    said(there, [*LOOP * 4, "RUNNING"], every_s=7)
    assert told(invoke, there, 3) == [("fails_again", "orders/0", "error")]
    assert row_of(invoke, there, "fails_again")["evidence"]["failures"] == 4


def test_what_is_failed_now_stands_below_it(invoke: Invoke) -> None:
    there = scene()
    there.connect.connectors["orders"].fail()
    said(there, [*LOOP * 3, "RUNNING", "FAILED"], every_s=7)
    assert told(invoke, there, 3) == [("fails_again", "orders/0", "error")]
    [below] = row_of(invoke, there, "fails_again")["evidence"]["follows"]
    assert (below["code"], below["subject"]) == ("task_failed", "orders/0")


def test_one_that_ended_a_while_ago_is_no_alarm(invoke: Invoke) -> None:
    there = scene()
    said(there, [*LOOP * 4, "RUNNING"], every_s=7, ended_s=240)
    assert told(invoke, there, 0) == []
    assert row_of(invoke, there, "fails_again")["severity"] == "info"


@pytest.mark.parametrize(
    "states",
    [
        pytest.param(["UNASSIGNED", "RUNNING"] * 6, id="a rolling restart of six workers"),
        pytest.param(["RESTARTING", "RUNNING"] * 12, id="restarts of what is well"),
        pytest.param(["RUNNING", "FAILED", "RESTARTING"] * 2 + ["RUNNING"], id="two failures"),
        pytest.param(["RUNNING"] + ["FAILED"] * 9 + ["RUNNING"], id="a failure that is written again"),
    ],
)
def test_what_happens_to_a_healthy_group_is_silent(invoke: Invoke, states: list[str]) -> None:
    there = scene()
    said(there, states, every_s=5)
    assert told(invoke, there, 0) == []


def initialised(there: ConfigWorld, times: int) -> None:
    """Somebody's InitProducerIds of the task's id, as its coordinator logs them."""
    state = there.brokers.state
    state.keeps_log = True
    state.transactions[ID].state = "Empty"
    for _ in range(times):
        state.transactions[ID].producer_epoch += 1
        state.stamp_ms = int((there.time.now_s - 100) * 1000)
        state.log_of(ID)


def test_another_producer_under_the_id_is_told_from_a_slow_transaction(invoke: Invoke) -> None:
    """Two looks of three exited with 0; the third said that the transaction took longer, or another producer."""
    there = scene()
    said(there, [*LOOP * 6, "RUNNING"], every_s=5, trace=FENCED)
    initialised(there, 14)
    row = row_of(invoke, there, "fails_again")
    runs = sum(b"RUNNING" in (each.value or b"") for each in recent(there))
    assert (row["subject"], row["severity"]) == ("orders/0", "error")
    assert row["evidence"]["transactional_id"] == ID
    assert row["evidence"]["other_initialisations"] == 14 - runs - 1, "one start may have been before the window"
    assert f"another producer took {ID}" in row["message"]


@pytest.mark.parametrize(("times", "is_taken"), [(4, False), (5, True)])
def test_an_id_that_two_producers_use_in_turn_is_said_of_a_task_that_failed_once(
    invoke: Invoke, times: int, is_taken: bool
) -> None:
    """It was said that its transaction took longer, or another producer took its id; restart it."""
    there = scene()
    there.connect.connectors["orders"].fail()
    there.connect.connectors["orders"].tasks[0].trace = FENCED
    said(there, ["RUNNING", "FAILED"], every_s=5, trace=FENCED)
    initialised(there, times)
    found = told(invoke, there, 3)
    assert (("id_used_in_turn", "orders/0", "error") in found) == is_taken
    assert len(found) == 1
    if is_taken:
        evidence = row_of(invoke, there, "id_used_in_turn")["evidence"]
        assert (evidence["transactional_id"], evidence["other_initialisations"]) == (ID, 3)


def test_its_own_starts_and_fencing_rounds_are_no_other_producer(invoke: Invoke) -> None:
    pairs = [*created("orders", 1, record=1), *created("orders", 1, record=1) * 2]
    there = scene(records=config_records(*pairs))
    for record in there.topics.records("connect-configs"):
        there.topics.put("connect-configs", record.key, record.value)  # within the last minutes
    said(there, [*LOOP * 4, "RUNNING"], every_s=5, trace=FENCED)
    initialised(there, 8)
    row = row_of(invoke, there, "fails_again")
    assert row["evidence"]["other_initialisations"] == 0
    assert "times more than the task was started" not in row["message"]


def test_a_log_that_can_not_be_read_accuses_nobody(invoke: Invoke) -> None:
    there = scene(faults={TRANSACTION_LOG: UnauthorizedError("READ is denied")})
    said(there, [*LOOP * 6, "RUNNING"], every_s=5, trace=FENCED)
    row = row_of(invoke, there, "fails_again")
    assert row["evidence"]["other_initialisations"] is None
    assert "is not known: READ is denied" in row["message"]


def test_a_coordinator_too_busy_for_its_log_to_be_read_that_far_back_acquits_nobody(invoke: Invoke) -> None:
    """What lay before the records that are read was none: somebody was said to restart the task."""
    there = scene()
    said(there, [*LOOP * 6, "RUNNING"], every_s=5, trace=FENCED)
    initialised(there, 14)
    partition, now_ms = coordinator_partition(TransactionalId(ID), 50), int(there.time.now_s * 1000)
    there.topics.write([OutRecord(TRANSACTION_LOG, log_key("busy"), None, partition, now_ms)] * MOST_RECENT)
    row = row_of(invoke, there, "fails_again")
    assert row["evidence"]["other_initialisations"] is None
    assert f"whether another producer takes {ID} is not known" in row["message"]


@pytest.mark.parametrize(("level", "is_said"), [(1, True), (2, False)])
def test_the_epoch_of_a_task_near_its_end(invoke: Invoke, level: int, is_said: bool) -> None:
    there = scene()
    there.brokers.state.finalized["transaction.version"] = level
    there.brokers.state.transactions[ID].producer_epoch = 32_700
    rows = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    found = [(row["check"], row["subject"], row["severity"]) for row in rows if row["code"] == "epochs_nearly_spent"]
    assert found == ([("connectors", ID, "warning")] if is_said else [])


def test_the_log_of_coordinators_is_not_read_of_a_group_that_is_well(invoke: Invoke) -> None:
    read: list[object] = []
    there = scene()
    there.topics.before("read", lambda call: read.append(call.what[0]))
    assert told(invoke, there, 0) == []
    assert TRANSACTION_LOG not in read


@pytest.mark.parametrize(
    ("writes", "ended_s", "severity"), [(18, 3, "warning"), (9, 3, None), (18, 200, "info"), (18, 700, None)]
)
def test_a_config_that_is_written_all_the_time(invoke: Invoke, writes: int, ended_s: int, severity: str | None) -> None:
    """Eighteen PUTs in a minute were said by nobody."""
    there = scene()
    state = there.brokers.state
    state.stamp_ms = int((there.time.now_s - ended_s - 3 * writes) * 1000)
    for number in range(writes):
        state.stamp_ms += 2000
        [(key, value), *_rest] = created("orders", 1, config={"n": str(number)})
        there.topics.put("connect-configs", key.encode(), json.dumps(value).encode())
    wanted = [("config_written_again", "orders", "warning")] if severity == "warning" else []
    assert told(invoke, there, 0) == wanted
    if severity is not None:
        row = row_of(invoke, there, "config_written_again")
        assert (row["severity"], row["evidence"]["writes"]) == (severity, writes)


@pytest.mark.parametrize(
    ("also", "expected"),
    [
        (None, ["tasks_written_again"]),
        (("target-state-orders", {"state": "STARTED", "state.v2": "STARTED"}), []),
        (("connector-orders", {"properties": {"connector.class": "X"}}), ["config_written_again"]),
    ],
)
def test_tasks_that_are_configured_all_the_time(
    invoke: Invoke, also: tuple[str, dict[str, object]] | None, expected: list[str]
) -> None:
    """Each rebalance wrote the tasks anew, and began the next one; stops, resumes and PUTs are somebody's."""
    there = scene()
    state = there.brokers.state
    state.stamp_ms = int((there.time.now_s - 60) * 1000)
    records = [("task-orders-0", {"properties": {"n": "1"}}), ("commit-orders", {"tasks": 1})]
    written = [*([] if also is None else [also]), *records] * 12
    for key, value in [*written, ("tasks-fencing-orders", {"task-count": 1})]:
        state.stamp_ms += 1000
        there.topics.put("connect-configs", key.encode(), json.dumps(value).encode())
    assert told(invoke, there, 0) == [(code, "orders", "warning") for code in expected]


def test_a_status_topic_that_may_not_be_read_is_said(invoke: Invoke) -> None:
    there = cluster(described=TOPICS, faults={STATUSES: UnauthorizedError("READ is denied")})
    row = row_of(invoke, there, "statuses_unread")
    assert (row["severity"], "READ is denied" in row["message"]) == ("warning", True)
