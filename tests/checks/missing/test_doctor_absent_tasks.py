"""What `eosctl doctor` says of a class that only some workers have, and of sources that are RUNNING without tasks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Invoke
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.connectors import FILE_SOURCE
from tests.fakes.doctor_scene import OFFSETS, W1, W2, cluster, doctor, row_of, transaction_topic
from tests.fakes.world import STATUSES

TOPICS = [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), compacted(STATUSES, 1), transaction_topic()]
PLUGIN, TASKS = "plugin_missing", "source_without_tasks"
GD = "com.acme.GdSource"


def rows_with(invoke: Invoke, there: ConfigWorld, code: str) -> list[dict[str, Any]]:
    rows = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    return [row for row in rows if row["code"] == code]


def with_gd(name: str = GD, **changes: Any) -> ConfigWorld:
    """Both workers list the class of connector gd, which is named in one way or another."""
    there = cluster(modes={W1: "enabled", W2: "enabled"}, **changes)
    there.connect.plugins = [*there.connect.plugins, {"class": GD, "type": "source", "version": "1"}]
    there.connect.add("gd", {"connector.class": name}, state="STOPPED")
    return there


@pytest.mark.parametrize("name", [GD, "GdSource", "GdSourceConnector"])
def test_the_worker_that_lacks_a_class_is_named(invoke: Invoke, name: str) -> None:
    """doctor said that the connector came from an aborted config record, and that it be deleted."""
    there = with_gd(name)
    assert rows_with(invoke, there, PLUGIN) == []
    there.connect.lacking = {W2: {GD}}
    row = row_of(invoke, there, PLUGIN)
    assert (row["check"], row["severity"], row["subject"]) == ("workers", "error", W2)
    assert row["evidence"] == {"connectors": ["gd"], "classes": [name], "had_by": [W1]}
    assert doctor(invoke, there).exit_code == 3


def test_it_stands_before_what_fails_because_of_it(invoke: Invoke) -> None:
    there = cluster(modes={W1: "enabled", W2: "enabled"}, configs={"orders": {"tasks.max": "2"}})
    there.connect.plugins = [*there.connect.plugins, {"class": GD, "type": "source", "version": "1"}]
    there.connect.lacking = {W2: {FILE_SOURCE}}
    there.connect.connectors["orders"].fail(1)
    rows = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    assert rows[0]["code"] == PLUGIN


@pytest.mark.parametrize("lacking", [{W1: {GD}, W2: {GD}}, {}])
def test_what_no_worker_lists_accuses_none(invoke: Invoke, lacking: dict[str, set[str]]) -> None:
    """Workers leave some classes of Kafka's own out of the list, VerifiableSourceConnector for one."""
    there = with_gd()
    there.connect.lacking = lacking
    assert rows_with(invoke, there, PLUGIN) == []


def test_workers_that_one_address_reaches_prove_nothing(invoke: Invoke) -> None:
    there = with_gd()
    there.connect.lacking = {W2: {GD}}
    there.addresses |= {"w1": {"10.0.0.1"}, "w2": {"10.0.0.1"}}
    assert rows_with(invoke, there, PLUGIN) == []


@pytest.mark.parametrize("name", ["${file:/x:class}", ""])
def test_a_class_that_only_workers_can_resolve_is_not_looked_for(invoke: Invoke, name: str) -> None:
    there = with_gd(name)
    there.connect.lacking = {W2: {GD}}
    assert rows_with(invoke, there, PLUGIN) == []


def idle(seconds: float, *, url: str = W2, written: int | None = None, kind: str = FILE_SOURCE) -> ConfigWorld:
    """A second source that has been RUNNING for so long without a task; the config topic may have some of it."""
    records = [*created("orders", 1, record=1), *(created("idle", written, record=written) if written else ())]
    there = cluster(modes={W1: "enabled", W2: "enabled"}, records=config_records(*records), described=TOPICS)
    there.connect.add("idle", {"connector.class": kind}, tasks=0)
    there.connect.connectors["idle"].url = url
    there.topics.read(STATUSES)  # which has it from now on
    there.time.now_s = max(record.timestamp_ms for record in there.topics.records(STATUSES)) / 1000 + seconds
    return there


@pytest.mark.parametrize(
    ("url", "written", "seconds", "severity"),
    [
        (W2, None, 100, "warning"),  # it may not reach the leader
        (W1, None, 100, "info"),  # the leader itself
        (W2, 2, 100, "warning"),
        (W1, 2, 400, "error"),
    ],
)
def test_a_source_that_runs_without_tasks_is_named(
    invoke: Invoke, url: str, written: int | None, seconds: float, severity: str
) -> None:
    """Two of them read nothing, and doctor had no word about them."""
    there = idle(seconds, url=url, written=written)
    row = row_of(invoke, there, TASKS)
    assert (row["check"], row["subject"], row["severity"]) == ("failures", "idle", severity)
    assert row["evidence"]["tasks_written"] == (written or 0)
    assert row["evidence"]["running_ms"] == pytest.approx(seconds * 1000, abs=15_000)


def test_a_moment_without_tasks_is_a_rebalance(invoke: Invoke) -> None:
    assert rows_with(invoke, idle(30), TASKS) == []


@pytest.mark.parametrize("name", ["MirrorCheckpointConnector", "org.apache.kafka.connect.mirror.MirrorSourceConnector"])
def test_mirror_makers_connectors_may_have_nothing_to_copy(invoke: Invoke, name: str) -> None:
    there = idle(4000, kind=name)
    assert rows_with(invoke, there, TASKS) == []


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED", "FAILED", "UNASSIGNED"])
def test_one_that_does_not_run_needs_no_task(invoke: Invoke, state: str) -> None:
    there = idle(4000)
    there.connect.connectors["idle"].state = state
    assert rows_with(invoke, there, TASKS) == []


def test_a_sink_is_none(invoke: Invoke) -> None:
    there = idle(4000, kind="FileStreamSink")
    assert rows_with(invoke, there, TASKS) == []
