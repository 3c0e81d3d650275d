"""Two Connect groups that write one connector's offsets, and what only looks like it."""

from __future__ import annotations

import pytest

from eosctl.core.records import OutRecord
from eosctl.errors import UnauthorizedError
from tests.checks.truths.test_statuses import row_of, told
from tests.conftest import Invoke
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_world import ConfigWorld
from tests.fakes.connect import FakeConnect
from tests.fakes.doctor_scene import OFFSETS, cluster, doctor

OTHER = "http://left:8083"


def renamed(name: str = "gd", *, connector: str = "orders", topic: str = OFFSETS, ago_s: float = 5) -> ConfigWorld:
    """A worker of the group's former name stayed behind, and its task writes on, last so many seconds ago."""
    there = cluster()
    former: FakeConnect = there.other_group(name, OTHER)
    former.add(connector)
    state = there.brokers.state
    producer = state.new_producer()
    transactional_id = f"{name}-{connector}-0"
    state.transactions[transactional_id] = FakeTransaction(*producer)
    if topic not in there.topics.topics:
        there.topics.add_topic(topic, 25)
    state.write_in(transactional_id, producer, OutRecord(topic, b"[]", b"{}"), 7)
    state.end_transaction(transactional_id, producer, commit=True)
    state.write_markers()
    there.time.now_s += ago_s
    return there


def groups_named(invoke: Invoke, there: ConfigWorld) -> list[str]:
    rows = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    return [row["evidence"]["group_id"] for row in rows if row["code"] == "two_groups"]


def test_both_groups_are_named(invoke: Invoke) -> None:
    """Both were exactly-once, and every record came twice."""
    there = renamed()
    assert ("two_groups", "orders", "error") in told(invoke, there, 3)
    row = row_of(invoke, there, "two_groups")
    assert {key: row["evidence"][key] for key in ("group_id", "transactional_ids", "topic", "workers")} == {
        "group_id": "gd", "transactional_ids": ["gd-orders-0"], "topic": OFFSETS, "workers": ["left:8083"],
    }  # fmt: skip
    assert "the groups g and gd both write the offsets of orders" in row["message"]


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(lambda: renamed(topic="gd-offsets"), id="a connector of that name with offsets of its own"),
        pytest.param(lambda: renamed(connector="items"), id="another connector in the same offsets topic"),
        pytest.param(lambda: renamed(ago_s=700), id="the group before, that is gone"),
    ],
)
def test_what_only_looks_like_it(invoke: Invoke, there: object) -> None:
    assert callable(there)
    assert groups_named(invoke, there()) == []


def test_a_group_that_has_given_its_tasks_away_is_none(invoke: Invoke) -> None:
    there = renamed()
    there.others[0].delayed.update({("orders", -1), ("orders", 0)})
    assert groups_named(invoke, there) == []


def test_while_the_other_group_rebalances_it_is_not_certain(invoke: Invoke) -> None:
    there = renamed()
    there.others[0].rebalancing = True
    row = row_of(invoke, there, "two_groups")
    assert (row["severity"], "which is not known" in row["message"]) == ("warning", True)


def test_what_could_not_be_looked_at_is_said_and_hides_nothing(invoke: Invoke) -> None:
    there = renamed()
    there.brokers.calls.fail_always("list_groups", UnauthorizedError("DESCRIBE is denied"))
    rows = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    assert [row["severity"] for row in rows if "writes the offsets of these" in row["message"]] == ["warning"]
    checks = doctor(invoke, there, "-o", "json").json()["data"]["checks"]
    assert [each["status"] for each in checks if each["check"] == "connectors"] == ["checked"]


def test_a_group_that_could_have_the_ids_and_does_not_run_such_a_connector_is_no_lead(invoke: Invoke) -> None:
    """`g-orders-0` may be task 0 of a connector of another group only where that group has the connector."""
    there = cluster(group_id="gd-new", connectors={"orders": "source"})
    there.other_group("gd", OTHER).add("orders")
    there.brokers.state.transactions["connect-cluster-gd"] = FakeTransaction(*there.brokers.state.new_producer())
    flags = ("-b", "localhost:1", "-g", "gd-new", "-o", "json")
    rows = invoke("doctor", *flags, **there.surroundings).json()["data"]["rows"]
    assert [row for row in rows if row["code"] == "id_collision"] == []
    there.others[0].add("new-orders")
    rows = invoke("doctor", *flags, **there.surroundings).json()["data"]["rows"]
    assert [row["severity"] for row in rows if row["code"] == "id_collision"] == ["error"]
