"""`upgrade plan` over a group in memory: what is seen, what stays unknown, what fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eosctl.core.records import Record
from eosctl.core.workers.config import parse_worker_config
from eosctl.core.workers.modes import Mode
from eosctl.errors import ConnectError, EosctlError, ExitCode, NotFoundError, UnauthorizedError, UnreachableError
from eosctl.report import Report
from eosctl.upgrade.plan import plan_upgrade
from eosctl.upgrade.rows import PlanData
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.faults import Call

W1, W2 = "http://w1:8083", "http://w2:8083"


def group(**changes: Any) -> ConfigWorld:
    """Two disabled workers, w1 leading, and a connector that runs."""
    values: dict[str, Any] = {
        "records": config_records(*created("a", 1)),
        "described": [compacted(CONFIG_TOPIC, 1), compacted("connect-offsets", 2)],
        "connectors": {"a": "source"},
        "modes": {W1: "disabled", W2: "disabled"},
    }
    return ConfigWorld(**{**values, **changes})


def rebalancing() -> ConfigWorld:
    there = group()
    there.connect.rebalance(lasts_s=10**6)
    return there


def failed() -> ConfigWorld:
    there = group()
    there.connect.connectors["a"].fail()
    return there


def plan(
    world: ConfigWorld, target: Mode = Mode.ENABLED, *files: str, client: bool = True, also: tuple[str, ...] = ()
) -> Report:
    configs = [parse_worker_config(text, source=f"w{at}.properties") for at, text in enumerate(files, start=1)]
    given = {"connect_urls": also} if client else {"client": None, "connect_urls": tuple(world.modes)}
    return plan_upgrade(world.app(worker_configs=tuple(configs), **given), target)


def gates(report: Report) -> dict[str, str]:
    return {gate.id: gate.status for gate in report.data_of(PlanData).gates}


def passes(report: Report) -> list[tuple[str, list[str]]]:
    return [(each.mode, [step.worker for step in each.steps]) for each in report.data_of(PlanData).passes]


def test_two_disabled_workers_need_two_passes_with_the_leader_last() -> None:
    report = plan(group())
    assert passes(report) == [("preparing", [W2, W1]), ("enabled", [W2, W1])]
    assert set(gates(report).values()) == {"pass"}
    assert (report.exit_code, report.data_of(PlanData).losses) == (ExitCode.OK, [])
    assert [(row.worker, row.leader, row.mode) for row in report.rows] == [
        (W1, True, "not_enabled"),
        (W2, False, "not_enabled"),
    ]


def test_a_connector_created_while_the_topic_is_read_is_no_aborted_record() -> None:
    """The two views of the config topic were read one after the other; what came in between failed the gate."""
    world, late = group(), config_records(*created("b", 1))

    def arrives(call: Call) -> None:
        if call.what[0] == CONFIG_TOPIC:
            while late:
                record = late.pop(0)
                world.topics.put(CONFIG_TOPIC, record.key, record.value)

    world.topics.after("read", arrives)
    assert gates(plan(world))["no_aborted_records"] == "pass"
    assert late == []


def test_a_url_that_no_member_has_is_no_member() -> None:
    """A wrong -u was called a member that can't be reached."""
    report = plan(group(), also=("http://nobody:8083",))
    assert gates(report)["members_known"] == "fail"
    gate = next(gate for gate in report.data_of(PlanData).gates if gate.id == "members_known")
    assert "http://nobody:8083 is not a member of the group" in str(gate.evidence)


def test_nothing_to_do_is_no_pass() -> None:
    assert passes(plan(group(modes={W1: "enabled", W2: "enabled"}))) == []


def test_the_way_back_goes_through_preparing_and_says_what_is_lost() -> None:
    report = plan(group(modes={W1: "enabled", W2: "enabled"}), Mode.DISABLED)
    assert [mode for mode, _workers in passes(report)] == ["preparing", "disabled"]
    assert report.data_of(PlanData).losses


@pytest.mark.parametrize(("value", "named"), [("required", True), ("REQUIRED", True), ("requested", False)])
def test_the_way_down_names_connectors_that_require_exactly_once(value: str, named: bool) -> None:
    """They were told of as a kind, and whoever went down did not know which ones."""
    there = group(modes={W1: "enabled", W2: "enabled"}, configs={"a": {"exactly.once.support": value}})
    losses = plan(there, Mode.DISABLED).data_of(PlanData).losses
    assert any(each.endswith("can no longer be created or changed: here a.") for each in losses) is named


@pytest.mark.parametrize(
    ("world", "gate", "status"),
    [
        (rebalancing, "group_stable", "fail"),
        (failed, "connectors_healthy", "fail"),
        (lambda: group(described=[]), "config_topic", "fail"),
        (lambda: group(faults={"describe": UnauthorizedError("no")}), "config_topic", "unknown"),
        (lambda: group(open_from=1), "no_open_transactions", "fail"),
        (lambda: group(open_from=1), "no_aborted_records", "unknown"),
        (
            lambda: group(aborted=[Record(CONFIG_TOPIC, 0, 9, -1, b"connector-ghost", b'{"properties":{}}')]),
            "no_aborted_records",
            "fail",
        ),
        (
            lambda: group(records=config_records(*created("a", 1), ("commit-a", {"tasks": 2}))),
            "task_sets_complete",
            "fail",
        ),
        (
            lambda: group(records=config_records(*created("a", 1), ("tasks-fencing-a", {"tasks": 1}))),
            "config_topic_readable",
            "fail",
        ),
        (lambda: group(configs={"a": {"offset.storage.topic": "x"}}), "property_names", "fail"),
        (lambda: group(faults={W2: UnreachableError("no answer")}), "members_known", "fail"),
        (
            lambda: group(faults={W1: UnreachableError("no"), W2: UnreachableError("no")}),
            "connectors_healthy",
            "unknown",
        ),
        (lambda: group(faults={"validate": ConnectError("no")}), "connector_support", "unknown"),
        (lambda: group(faults={"validate": ConnectError("no")}), "modes_proven", "unknown"),
        (lambda: group(modes={}), "members_known", "fail"),
    ],
)
def test_a_group_that_is_not_as_it_should_be(world: Callable[[], ConfigWorld], gate: str, status: str) -> None:
    report = plan(world())
    assert gates(report)[gate] == status
    assert report.exit_code == (ExitCode.FINDINGS if "fail" in gates(report).values() else ExitCode.OK)


def test_a_transaction_that_ends_while_we_look_is_none() -> None:
    """Tasks under exactly-once write to the offsets topic in transactions all the time: a first look proves nothing."""

    world, looks = group(), list[Call]()
    world.topics.open_transaction("connect-offsets", 1)

    def ends(call: Call) -> None:
        if call.what == (("connect-configs", "connect-offsets"),):
            looks.append(call)
            if len(looks) == 1:
                world.topics.close_transaction("connect-offsets", 1)

    world.topics.after("bounds_of", ends)
    assert gates(plan(world))["no_open_transactions"] == "pass"
    assert len(looks) > 1


LISTENER = "listeners=http://w{}:8083\ngroup.id=g\nexactly.once.source.support={}\n"


def test_files_tell_preparing_from_disabled_and_who_is_missing() -> None:
    files = [LISTENER.format(1, "disabled"), LISTENER.format(2, "preparing"), LISTENER.format(3, "disabled")]
    report = plan(group(), Mode.ENABLED, *files)
    assert {row.worker: row.mode for row in report.rows} == {
        W1: "disabled",
        W2: "preparing",
        "w3.properties": "absent",
    }
    assert passes(report) == [("preparing", ["w3.properties", W1]), ("enabled", [W2, "w3.properties", W1])]
    assert gates(report)["members_known"] == "fail"


POD = """listeners=https://:8443,http://${env:POD_NAME}.connect:8083
group.id=${env:GROUP}
exactly.once.source.support=disabled \t
"""


@pytest.mark.parametrize(
    ("files", "worker_files"),
    [
        ([LISTENER.format(1, "disabled").replace("\n", " \n"), LISTENER.format(2, "Disabled")], "pass"),
        ([POD], "pass"),
        ([LISTENER.format(1, "disabled"), LISTENER.format(2, "disabled"), POD], "unknown"),
        ([LISTENER.format(1, "disabled"), LISTENER.format(2, "${env:EOS}")], "pass"),
    ],
)
def test_blanks_at_an_end_and_references_to_config_providers_fail_no_gate(files: list[str], worker_files: str) -> None:
    """Groups and hosts were compared as they were spelled: each such file was a worker that is not a member."""
    found = gates(plan(group(), Mode.ENABLED, *files))
    assert {name: status for name, status in found.items() if status == "fail"} == {}
    assert (found["members_known"], found["worker_files"]) == ("pass", worker_files)


def test_without_kafka_its_gates_are_unknown() -> None:
    report = plan(group(), client=False)
    assert {"topics", "same"} & set(gates(report)) == set()
    assert gates(report)["config_topic"] == gates(report)["no_open_transactions"] == "unknown"
    assert gates(report)["connectors_healthy"] == "pass"


def test_a_group_that_does_not_exist_is_an_error() -> None:
    world = group(modes={}, connectors={})
    world.brokers.state.groups.clear()
    with pytest.raises(NotFoundError, match="'g' does not exist"):
        plan(world)


def test_secrets_of_connectors_are_not_in_the_plan() -> None:
    report = plan(group(configs={"a": {"db.password": "hunter2"}}, faults={"validate": EosctlError("x")}))
    assert "hunter2" not in str(report.envelope())
