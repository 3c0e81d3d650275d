"""What doctor proves of a failed part before it prints what deletes, stops or rescues: a plugin, a ghost, a round."""

from __future__ import annotations

import re
from pathlib import Path

from eosctl.core.records import Record
from eosctl.core.transactions import FENCING_FAILED
from tests.conftest import Invoke, Outcome
from tests.failures.manifest import FOLDER
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld
from tests.fakes.connectors import FILE_SOURCE
from tests.fakes.doctor_scene import W1, W2, WHERE, cluster, doctor, row_of, run_fix

TYPE_UNKNOWN = (FOLDER / "missing-plugin-task-4.3.1.txt").read_text(encoding="utf-8")
OTHER = "com.acme.OrdersSource"
ZOMBIE = f"org.apache.kafka.connect.errors.ConnectException: {FENCING_FAILED}"


def test_a_plugin_that_a_worker_lacks_is_no_ghost(invoke: Invoke) -> None:
    """The fix was to delete the connector, whose config was committed, and which ran elsewhere."""
    config = {"connector.class": OTHER, "tasks.max": "2"}
    there = cluster(
        modes={W1: "enabled", W2: "enabled"}, configs={"orders": config},
        records=config_records(*created("orders", 2, record=2, config=config)),
    )  # fmt: skip
    there.connect.plugins = [*there.connect.plugins, {"class": OTHER, "type": "source", "version": "1"}]
    there.connect.connectors["orders"].fail(1, trace=TYPE_UNKNOWN)
    there.connect.lacking = {there.connect.connectors["orders"].tasks[1].url: {OTHER}}
    rows = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    assert not any("DELETE" in row["fix"] for row in rows)
    assert rows[0]["code"] == "plugin_missing"
    assert [each["code"] for each in rows[0]["evidence"]["follows"]] == ["connector_type_unknown"]


def test_it_is_none_either_where_every_worker_lists_the_plugin(invoke: Invoke) -> None:
    there = cluster(modes={W1: "enabled", W2: "enabled"})
    there.connect.connectors["orders"].fail(0, trace=TYPE_UNKNOWN)
    assert "DELETE" not in row_of(invoke, there, "connector_type_unknown")["fix"]


def ghost(*more: Record) -> ConfigWorld:
    there = cluster(aborted=list(more), modes={W1: "enabled", W2: "enabled"})
    there.connect.add("ghost", {"connector.class": FILE_SOURCE, "tasks.max": "1"}).fail(trace=TYPE_UNKNOWN)
    return there


def test_a_connector_that_only_an_aborted_record_has_is_a_ghost(invoke: Invoke) -> None:
    there = ghost(Record(CONFIG_TOPIC, 0, 9, -1, b"connector-ghost", b'{"properties":{}}'))
    row = row_of(invoke, there, "connector_is_a_ghost")
    assert (row["severity"], row["subject"]) == ("error", "ghost/0")
    run_fix(invoke, there, row)


def test_a_connector_that_the_config_topic_never_had_is_none(invoke: Invoke) -> None:
    """Another topic than the group's may be looked at: then it lacks every connector."""
    row_of(invoke, ghost(), "connector_type_unknown")


def behind_a_round(*failed: int) -> ConfigWorld:
    """The commit is newer than the record of three tasks: a fencing round is due."""
    pairs = [*created("orders", 3, record=3), *created("orders", 2), ("target-state-orders", {"state": "STARTED"})]
    there = cluster(records=config_records(*pairs), configs={"orders": {"tasks.max": "2"}})
    there.connect.connectors["orders"].fail(*failed, trace=ZOMBIE)
    return there


def test_rescue_is_printed_where_it_accepts(invoke: Invoke) -> None:
    there = behind_a_round(0, 1)
    row = doctor(invoke, there, "-o", "json").json()["data"]["rows"][0]
    assert row["code"] == "fencing_failed"
    assert "`eosctl rescue --connector orders`" in row["fix"]
    assert rescue(invoke, there).exit_code == 0


def test_where_rescue_refuses_what_it_takes_instead_is_printed(invoke: Invoke, tmp_path: Path) -> None:
    """doctor said rescue, and rescue refused: of 96 tasks, 41 waited for the round."""
    there = behind_a_round(0)
    there.state_dir = tmp_path  # a backup is written there
    refused = rescue(invoke, there)
    assert refused.exit_code == 6
    row = row_of(invoke, there, "fencing_failed")
    assert "eosctl rescue" not in row["fix"]
    printed = re.findall(r"`(eosctl [^`]*)`", row["fix"])
    assert [line for line in printed if line not in refused.stderr] == []
    run_fix(invoke, there, row)
    assert there.connect.connectors["orders"].state == "RUNNING"


def rescue(invoke: Invoke, there: ConfigWorld) -> Outcome:
    return invoke("rescue", "--connector", "orders", "--dry-run", *WHERE, "-u", W1, **there.surroundings)
