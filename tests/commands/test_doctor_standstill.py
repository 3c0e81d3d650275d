"""What `eosctl doctor` says of connectors and tasks that do nothing: unassigned, paused, RUNNING without a commit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Invoke
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.doctor_scene import HEALTHY, OFFSETS, W1, W2, cluster, doctor, found, transaction_topic
from tests.fakes.world import STATUSES


def row_of(invoke: Invoke, there: ConfigWorld, code: str) -> dict[str, Any]:
    """The one row with that code."""
    rows = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    [row] = [row for row in rows if row["code"] == code]
    return dict(row)


def later(there: ConfigWorld, seconds: float) -> None:
    """So long after the newest record of the topics."""
    newest_ms = max(record.timestamp_ms for topic in there.topics.topics for record in there.topics.records(topic))
    there.time.now_s = newest_ms / 1000 + seconds


@pytest.mark.parametrize(("minutes", "severity"), [(5, "warning"), (7, "error")])
def test_a_task_that_has_no_worker_for_longer_than_a_rebalance_is_an_error(
    invoke: Invoke, minutes: int, severity: str
) -> None:
    """It was a warning to look again, also after hours."""
    topics = [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), compacted(STATUSES, 5), transaction_topic()]
    there = cluster(described=topics)
    there.connect.connectors["orders"].tasks[0].state = "UNASSIGNED"
    there.topics.read(STATUSES)  # which has it from now on
    later(there, minutes * 60)
    row = row_of(invoke, there, "unassigned")
    assert (row["subject"], row["severity"]) == ("orders/0", severity)
    assert row["evidence"]["unassigned_ms"] == pytest.approx(minutes * 60_000, abs=3000)
    assert ("longer than a rebalance takes" in row["message"]) == (severity == "error")


def test_without_the_status_topic_it_stays_a_warning(invoke: Invoke) -> None:
    there = cluster()
    there.connect.connectors["orders"].tasks[0].state = "UNASSIGNED"
    later(there, 3600)
    assert row_of(invoke, there, "unassigned")["severity"] == "warning"


def test_connectors_at_rest_are_said_and_no_error(invoke: Invoke) -> None:
    """That a connector was paused and forgotten was not to be seen."""
    there = cluster()
    there.connect.add("parked", {}, state="STOPPED")
    there.connect.add("my 1", {}, state="PAUSED")
    rows = found(invoke, there, 0)
    assert [row for row in rows if row[1] == "at_rest"] == [("connectors", "at_rest", "info")] * 2
    told = [row for row in doctor(invoke, there, "-o", "json").json()["data"]["rows"] if row["code"] == "at_rest"]
    assert [row["subject"] for row in told] == ["my 1", "parked"]
    assert "`eosctl connectors resume 'my 1'`" in told[0]["fix"]


def test_a_connector_of_a_group_that_is_not_enabled_and_commits_no_offset_is_a_warning(invoke: Invoke) -> None:
    """Where there are no transactions nothing was said of it."""
    there = cluster(modes={W1: "disabled"}, records=config_records(*created("orders", 1)))
    there.topics.put(OFFSETS, b'["orders",{"f":1}]', b'{"n":1}')
    assert "nothing_committed" not in {code for _check, code, _severity in found(invoke, there, 0)}
    later(there, 600)
    row = row_of(invoke, there, "nothing_committed")
    assert (row["subject"], row["severity"]) == ("orders", "warning")
    assert "no offset was committed for 10 m" in row["message"]


def test_a_worker_whose_tasks_commit_nothing_is_one_row(invoke: Invoke) -> None:
    """A warning per task, and none said that all of them were on one worker."""
    tasks = 4
    there = cluster(
        modes={W1: "enabled", W2: "enabled"}, records=config_records(*created("orders", tasks, record=tasks)),
        configs={"orders": {"tasks.max": str(tasks)}}, known_ids=[f"g-orders-{task}" for task in range(tasks)],
    )  # fmt: skip
    later(there, 600)
    now_ms = there.clock().now_ms()
    for number, task in there.connect.connectors["orders"].tasks.items():
        known = there.brokers.state.transactions[f"g-orders-{number}"]
        known.state = "CompleteCommit"
        known.started_ms = now_ms - (600_000 if task.url == W2 else 1000)
    rows = found(invoke, there, 0)
    assert [row for row in rows if row[1] != HEALTHY[0][1]] == [("connectors", "worker_commits_nothing", "warning")]
    assert row_of(invoke, there, "worker_commits_nothing")["subject"] == "w2:8083"
