"""Workers behind a load balancer, an ingress or a forwarded port: found by what answers there, and by --connect-map."""

from __future__ import annotations

import pytest

from eosctl.checks.workers import list_workers
from eosctl.connectors.holders import connector_statuses
from eosctl.core.workers.config import parse_connect_map
from eosctl.core.workers.modes import Mode
from eosctl.report import Report
from eosctl.upgrade.gate_rows import GatePart
from eosctl.upgrade.plan import plan_upgrade
from eosctl.upgrade.rows import PlanData
from tests.fakes.two_workers import W0, W1, two_workers
from tests.fakes.world import OFFSETS, World

LB = "http://connect.example.com:80"


@pytest.fixture
def world() -> World:
    """w0 leads and is enabled, w1 is preparing; connector c runs; a load balancer leads to w1."""
    made = two_workers()
    made.topics.add_topic(OFFSETS)
    made.connect.forwarded = {LB: W1}
    made.connect.add("c")
    return made


def hide_members(world: World) -> None:
    """Their names lead nowhere from here; w1 is reached through the load balancer alone."""
    world.connect.hidden |= {W0, W1}


def rows(report: Report) -> dict[object, object]:
    return {row.url: row.member_id for row in report.rows}


def gate(report: Report, gate_id: str) -> GatePart:
    return next(each for each in report.data_of(PlanData).gates if each.id == gate_id)


def test_a_load_balancer_is_another_way_to_a_member(world: World) -> None:
    """It was taken for a worker that is not in the group, and `members_known` failed."""
    report = list_workers(world.app(connect_urls=(LB,)))
    assert rows(report) == {W0: f"member {W0}", W1: f"member {W1}", LB: None}
    assert "another way to one of them" in str(report.rows[2].evidence)
    assert (report.summary.workers, report.problems) == (2, [])
    planned = plan_upgrade(world.app(connect_urls=(LB,)), Mode.ENABLED)
    assert gate(planned, "members_known").status == "pass"
    assert [row.worker for row in planned.rows] == [W0, W1]


def test_it_is_known_where_no_member_can_be_reached(world: World) -> None:
    """Then nobody compared its connectors; the coordinator tells them, too."""
    hide_members(world)
    report = list_workers(world.app(connect_urls=(LB,)))
    assert "another way to one of them" in str(report.rows[2].evidence)
    assert {each.code for each in report.problems} == {"worker_unreachable"}
    assert str(report.problems[0].hint).startswith(f"{LB} leads to one of the members; --connect-map ADVERTISED=REACH")
    planned = plan_upgrade(world.app(connect_urls=(LB,)), Mode.ENABLED)
    assert "is a member, but its REST interface can't be reached" in str(gate(planned, "members_known").evidence)
    assert gate(planned, "connectors_healthy").status == "pass", "any worker knows the connectors"


def test_the_way_to_the_only_member_is_said_so_that_it_can_be_pasted(world: World) -> None:
    hide_members(world)
    del world.connect.modes[W0]
    report = list_workers(world.app(connect_urls=(LB,)))
    assert report.problems[0].hint == f"{LB} leads to it: --connect-map {W1}={LB}"
    mapped = world.app(connect_urls=(LB,), connect_map=parse_connect_map([f"{W1}={LB}"]))
    report = list_workers(mapped)
    assert ([row.mode for row in report.rows], report.problems) == (["not_enabled", "not_enabled"], [])


def test_mapped_workers_are_asked_where_they_are_reached(world: World) -> None:
    """Their advertised names don't resolve where eosctl runs."""
    hide_members(world)
    ports = {W0: "http://127.0.0.1:18080", W1: "http://127.0.0.1:18081"}
    world.connect.forwarded = {reached: url for url, reached in ports.items()}
    app = world.app(connect_map=parse_connect_map(["w*:8083=http://127.0.0.1:1808*"]))
    report = list_workers(app)
    assert [(row.url, row.mode) for row in report.rows] == [(W0, "enabled"), (W1, "not_enabled")]
    assert (report.problems, set(world.connect.opened)) == ([], set(ports.values()))
    assert set(connector_statuses(app)) == {"c"}
