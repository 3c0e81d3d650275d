"""`upgrade plan` over a group in memory: what is seen, what stays unknown, what fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.core.records import Record, TopicDescription
from eosctl.core.upgrade import Mode
from eosctl.core.worker_config import parse_worker_config
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError, EosctlError, ExitCode, NotFoundError, UnauthorizedError, UnreachableError
from eosctl.ops.app import App
from eosctl.ops.upgrade import plan_upgrade
from eosctl.profiles import Target
from eosctl.report import Report
from tests.fakes.clock import FakeTime
from tests.fakes.config_cluster import CONFIG_TOPIC, FakeCluster, config_records, created

W1, W2 = "http://w1:8083", "http://w2:8083"


def topic(name: str, partitions: int) -> TopicDescription:
    return TopicDescription(name, "id", partitions, 3, {"cleanup.policy": "compact"})


def group(**changes: Any) -> FakeCluster:
    """Two disabled workers, w1 leading, and a connector that runs."""
    values = {
        "records": config_records(*created("a", 1)),
        "topics": {CONFIG_TOPIC: topic(CONFIG_TOPIC, 1), "connect-offsets": topic("connect-offsets", 2)},
        "connectors": {"a": "source"},
        "workers": {W1: "disabled", W2: "disabled"},
    }
    return FakeCluster(**{**values, **changes})


def plan(
    cluster: FakeCluster, target: Mode = Mode.ENABLED, *files: str, client: bool = True, also: tuple[str, ...] = ()
) -> Report:
    clock = FakeTime().clock()
    app = App(
        target=Target(
            client=ClientSettings(("localhost:1",)) if client else None,
            connect_urls=also if client else tuple(cluster.workers),
            group_id="g",
            worker_configs=tuple(
                parse_worker_config(text, source=f"w{at}.properties") for at, text in enumerate(files, start=1)
            ),
        ),
        deadline=Deadline.after(60, clock),
        state_dir=Path("unused"),
        clock=clock,
        **cluster.doors(),
    )
    return plan_upgrade(app, target)


def gates(report: Report) -> dict[str, str]:
    listed = report.data["gates"]
    assert isinstance(listed, list)
    return {gate["id"]: gate["status"] for gate in listed}


def passes(report: Report) -> list[tuple[str, list[str]]]:
    listed = report.data["passes"]
    assert isinstance(listed, list)
    return [(each["mode"], [step["worker"] for step in each["steps"]]) for each in listed]


def test_two_disabled_workers_need_two_passes_with_the_leader_last() -> None:
    report = plan(group())
    assert passes(report) == [("preparing", [W2, W1]), ("enabled", [W2, W1])]
    assert set(gates(report).values()) == {"pass"}
    assert (report.exit_code, report.data["losses"]) == (ExitCode.OK, [])
    assert [(row["worker"], row["leader"], row["mode"]) for row in report.rows] == [
        (W1, True, "not_enabled"),
        (W2, False, "not_enabled"),
    ]


def test_a_connector_created_while_the_topic_is_read_is_no_aborted_record() -> None:
    """The two views of the config topic were read one after the other; what came in between failed the gate."""
    cluster = group()
    cluster.arriving = config_records(*created("a", 1), *created("b", 1))[len(cluster.records) :]
    assert gates(plan(cluster))["no_aborted_records"] == "pass"


def test_a_url_that_no_member_has_is_no_member() -> None:
    """A wrong -u was called a member that can't be reached."""
    report = plan(group(), also=("http://nobody:8083",))
    assert gates(report)["members_known"] == "fail"
    gate = next(gate for gate in cast(list[dict[str, Any]], report.data["gates"]) if gate["id"] == "members_known")
    assert "http://nobody:8083 is not a member of the group" in str(gate["evidence"])


def test_nothing_to_do_is_no_pass() -> None:
    assert passes(plan(group(workers={W1: "enabled", W2: "enabled"}))) == []


def test_the_way_back_goes_through_preparing_and_says_what_is_lost() -> None:
    report = plan(group(workers={W1: "enabled", W2: "enabled"}), Mode.DISABLED)
    assert [mode for mode, _workers in passes(report)] == ["preparing", "disabled"]
    assert report.data["losses"]


@pytest.mark.parametrize(
    ("changes", "gate", "status"),
    [
        ({"group_state": "PreparingRebalance"}, "group_stable", "fail"),
        ({"task_state": "FAILED"}, "connectors_healthy", "fail"),
        ({"topics": {}}, "config_topic", "fail"),
        ({"faults": {"describe": UnauthorizedError("no")}}, "config_topic", "unknown"),
        ({"open_from": 1}, "no_open_transactions", "fail"),
        ({"open_from": 1}, "no_aborted_records", "unknown"),
        (
            {"aborted": [Record(CONFIG_TOPIC, 0, 9, -1, b"connector-ghost", b'{"properties":{}}')]},
            "no_aborted_records",
            "fail",
        ),
        ({"records": config_records(*created("a", 1), ("commit-a", {"tasks": 2}))}, "task_sets_complete", "fail"),
        ({"configs": {"a": {"offset.storage.topic": "x"}}}, "property_names", "fail"),
        ({"faults": {W2: UnreachableError("no answer")}}, "members_known", "fail"),
        ({"faults": {W1: UnreachableError("no"), W2: UnreachableError("no")}}, "connectors_healthy", "unknown"),
        ({"faults": {"validate": ConnectError("no")}}, "connector_support", "unknown"),
        ({"faults": {"validate": ConnectError("no")}}, "modes_proven", "unknown"),
        ({"workers": {}}, "members_known", "fail"),
    ],
)
def test_a_group_that_is_not_as_it_should_be(changes: dict[str, Any], gate: str, status: str) -> None:
    report = plan(group(**changes))
    assert gates(report)[gate] == status
    assert report.exit_code == (ExitCode.FINDINGS if "fail" in gates(report).values() else ExitCode.OK)


def test_a_transaction_that_ends_while_we_look_is_none() -> None:
    """Tasks under exactly-once write to the offsets topic in transactions all the time: a first look proves nothing."""

    class Moving(FakeCluster):
        looks = 0

        @property
        def open_from(self) -> int | None:
            self.looks += 1
            return 1 if self.looks == 1 else None

        @open_from.setter
        def open_from(self, _value: int | None) -> None: ...

    still = group()
    report = plan(
        Moving(records=still.records, topics=still.topics, connectors=still.connectors, workers=still.workers)
    )
    assert gates(report)["no_open_transactions"] == "pass"


LISTENER = "listeners=http://w{}:8083\ngroup.id=g\nexactly.once.source.support={}\n"


def test_files_tell_preparing_from_disabled_and_who_is_missing() -> None:
    files = [LISTENER.format(1, "disabled"), LISTENER.format(2, "preparing"), LISTENER.format(3, "disabled")]
    report = plan(group(), Mode.ENABLED, *files)
    assert {row["worker"]: row["mode"] for row in report.rows} == {
        W1: "disabled",
        W2: "preparing",
        "w3.properties": "absent",
    }
    assert passes(report) == [("preparing", ["w3.properties", W1]), ("enabled", [W2, "w3.properties", W1])]
    assert gates(report)["members_known"] == "fail"


def test_without_kafka_its_gates_are_unknown() -> None:
    report = plan(group(), client=False)
    assert {"topics", "same"} & set(gates(report)) == set()
    assert gates(report)["config_topic"] == gates(report)["no_open_transactions"] == "unknown"
    assert gates(report)["connectors_healthy"] == "pass"


def test_a_group_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(NotFoundError):
        plan(group(group_state="Dead", workers={}, faults={"describe_group": NotFoundError("no such group")}))


def test_secrets_of_connectors_are_not_in_the_plan() -> None:
    report = plan(group(configs={"a": {"db.password": "hunter2"}}, faults={"validate": EosctlError("x")}))
    assert "hunter2" not in str(report.envelope())
