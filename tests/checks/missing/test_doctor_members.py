"""What `eosctl doctor` says of workers that were in the group, or are named, and are not members of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.plan import examine
from eosctl.collect.looks import ConnectGroupLook
from eosctl.collect.overview import Overview
from eosctl.core.clients.settings import Secret
from eosctl.core.ids import WorkerId
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.url import parse_worker_url
from eosctl.errors import ConnectError, UnauthorizedError, UnreachableError
from eosctl.group.topics import Departure, departures, status_history
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.config_topic import CONFIG_TOPIC
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.connect import FakeConnect
from tests.fakes.connect_worker import FakeConnectWorker
from tests.fakes.doctor_scene import (
    HEALTHY,
    OFFSETS,
    W1,
    W2,
    WHERE,
    cluster,
    doctor,
    found,
    transaction_topic,
    write_worker_file,
)
from tests.fakes.faults import Call
from tests.fakes.world import STATUSES

W3 = "http://w3:8083"
TOPICS = [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), compacted(STATUSES, 1), transaction_topic()]


def rows_of(invoke: Invoke, there: ConfigWorld, *more: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = doctor(invoke, there, *more, "-o", "json").json()["data"]["rows"]
    return [row for row in rows if row["code"] != HEALTHY[0][1]]


def loud(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(row["code"], row["severity"], row["subject"]) for row in rows]


def scene() -> ConfigWorld:
    return cluster(modes={W1: "enabled", W2: "enabled"}, described=TOPICS)


def cut_off(there: ConfigWorld, *, health: str = "unhealthy") -> FakeConnect:
    """W3 has lost the brokers: it answers, and still takes orders/0 for its own."""
    lost = there.other_group("nobody", W3)
    lost.health = health
    lost.add("orders")
    return lost


def says(there: ConfigWorld, worker: str, state: str, task: int = 0, *, name: str = "orders") -> None:
    """A record of the status topic."""
    value = {"state": state, "trace": None, "worker_id": worker, "generation": 1}
    there.topics.put(STATUSES, f"status-task-{name}-{task}".encode(), json.dumps(value).encode())


def later(there: ConfigWorld, seconds: float) -> None:
    newest_ms = max(record.timestamp_ms for record in there.topics.records(STATUSES))
    there.time.now_s = newest_ms / 1000 + seconds


@pytest.mark.parametrize("health", ["unhealthy", "healthy", "unknown"])
def test_a_worker_that_was_named_runs_and_is_no_member(invoke: Invoke, health: str) -> None:
    """It was taken for a load balancer in front of the members, and no view had a word about it."""
    there = scene()
    cut_off(there, health=health)
    urls = ("-u", W1, "-u", W2, "-u", W3)
    [row] = rows_of(invoke, there, *urls)
    assert loud([row]) == [("worker_not_a_member", "error", W3)]
    assert {each["code"] for each in row["evidence"]["follows"]} >= {"members_known", "modes_proven"}
    assert doctor(invoke, there, *urls).exit_code == 3
    document = envelope_of(invoke("workers", "list", *urls, *WHERE, "-o", "json", **there.surroundings), "workers-list")
    assert [problem["code"] for problem in document["errors"]] == ["worker_not_a_member"]
    members = {each["url"]: each["member_id"] is not None for each in document["data"]["rows"]}
    assert members == {W1: True, W2: True, W3: False}


def test_the_exporter_has_it_too() -> None:
    """It had no series of it."""
    there = scene()
    cut_off(there)
    facts = ConnectGroupLook()(there.app(connect_urls=(W1, W2, W3)), Overview(0, 0))
    assert [(each.name, each.health, each.is_member) for each in facts.workers] == [
        (W1, "healthy", True), (W2, "healthy", True), (W3, "unhealthy", False),
    ]  # fmt: skip


def test_one_that_is_known_by_its_file_is_found_before_it_is_missed(invoke: Invoke, tmp_path: Path) -> None:
    """The file was all that was missed, and "Start it" the remedy, for a worker that ran."""
    there = scene()
    cut_off(there)
    says(there, "w3:8083", "RUNNING")
    there.connect.connectors["orders"].tasks[0].url = W3
    file = write_worker_file(tmp_path / "w3.properties")
    file.write_text(f"{file.read_text()}rest.advertised.host.name=w3\nrest.advertised.port=8083\n")
    codes = [row["code"] for row in rows_of(invoke, there, "-w", str(file)) if row["severity"] == "error"]
    assert codes[0] == "worker_not_a_member"
    assert "members_known" in codes[1:]


def test_what_it_believes_of_its_connectors_counts_for_nothing(invoke: Invoke) -> None:
    """Named first, it was asked for what runs, and said FAILED of what runs elsewhere by now."""
    there = scene()
    lost = cut_off(there)
    lost.connectors["orders"].fail(0)
    urls = ("-u", W3, "-u", W1)
    assert loud(rows_of(invoke, there, *urls)) == [("worker_not_a_member", "error", W3)]


def test_a_load_balancer_in_front_of_members_is_none(invoke: Invoke) -> None:
    there = scene()
    there.connect.forwarded = {"http://connect:80": W2}
    assert rows_of(invoke, there, "-u", "http://connect:80") == []


def test_a_load_balancer_in_front_of_an_unhealthy_member_is_none(invoke: Invoke) -> None:
    there = scene()
    there.connect.health = "unhealthy"
    there.connect.forwarded = {"http://connect:80": W2}
    rows = rows_of(invoke, there, "-u", "http://connect:80")
    assert "worker_not_a_member" not in {row["code"] for row in rows}


def test_a_forwarded_port_to_workers_that_once_said_localhost_is_none(invoke: Invoke) -> None:
    """The members are elsewhere, so that localhost is none of theirs, whatever an old status calls them."""
    there = scene()
    there.connect.hosts = {W1: "10.0.0.1", W2: "10.0.0.2"}
    there.connect.forwarded = {"http://localhost:8083": W2}
    there.connect.connectors["orders"].tasks[0].url = "http://localhost:8083"
    assert "worker_not_a_member" not in {row["code"] for row in rows_of(invoke, there, "-u", "http://localhost:8083")}


def test_a_worker_that_has_just_started_joins_in_time(invoke: Invoke) -> None:
    there = scene()
    there.connect.start_worker(W3, "enabled")
    codes = {row["code"] for row in rows_of(invoke, there, "-u", W1, "-u", W3)}
    assert "worker_not_a_member" not in codes


def test_workers_that_all_lost_the_brokers_are_not_of_another_group(invoke: Invoke) -> None:
    """The group has no member then, and the healthy one of another group is what it was."""
    there = scene()
    there.connect.modes.clear()
    lost = cut_off(there)
    assert "worker_not_a_member" in {row["code"] for row in rows_of(invoke, there, "-u", W3)}
    lost.health = "healthy"
    assert "other_group" in {row["code"] for row in rows_of(invoke, there, "-u", W3)}


def test_a_former_member_that_runs_is_found_without_being_named(invoke: Invoke) -> None:
    """doctor said that 2 of 2 workers are enabled, and nothing is wrong."""
    there = scene()
    cut_off(there)
    says(there, "w3:8083", "RUNNING")
    there.connect.connectors["orders"].tasks[0].url = W3
    rows = rows_of(invoke, there)
    assert loud(rows) == [("worker_not_a_member", "error", W3)]
    assert envelope_of(doctor(invoke, there, "-o", "json"), "doctor", 3)


def test_its_work_may_have_been_taken_over_within_the_hour(invoke: Invoke) -> None:
    there = scene()
    cut_off(there)
    says(there, "w3:8083", "RUNNING")
    says(there, "w2:8083", "RUNNING")
    for seconds, codes in ((1800, {"worker_not_a_member"}), (3700, set())):
        later(there, seconds)
        assert {row["code"] for row in rows_of(invoke, there)} - {"nothing_committed"} == codes


def test_one_that_does_not_answer_is_a_doubt_while_work_is_said_to_run_there(invoke: Invoke) -> None:
    there = scene()
    says(there, "w3:8083", "RUNNING")
    there.connect.connectors["orders"].tasks[0].url = W3
    [row] = rows_of(invoke, there)
    assert loud([row]) == [("worker_left", "warning", "w3:8083")]
    assert row["evidence"]["left"] == 1
    there.connect.connectors["orders"].tasks[0].url = W1
    [row] = rows_of(invoke, there)
    assert loud([row]) == [("worker_left", "info", "w3:8083")]
    assert row["evidence"]["moved"] == 1


@pytest.mark.parametrize("states", [("UNASSIGNED",), ("FAILED",)])
def test_one_that_was_stopped_said_so(invoke: Invoke, states: tuple[str, ...]) -> None:
    """Pods have other names after each rollout."""
    there = scene()
    for state in ("RUNNING", *states):
        says(there, "10.0.0.9:8083", state)
    says(there, "w1:8083", "RUNNING")
    assert found(invoke, there, 0) == HEALTHY


def test_who_has_the_address_now_gets_no_credentials() -> None:
    """--connect-trust-discovered is about members."""
    there = scene()
    cut_off(there)
    says(there, "w3:8083", "RUNNING")
    trusted: dict[str, set[bool]] = {}

    def opened(app: App, url: str) -> FakeConnectWorker:
        trusted.setdefault(url, set()).add(app.target.connect.trusts(parse_worker_url(url)))
        return there.open_worker(app, url)

    app = there.app(connect=ConnectAccess(token=Secret("t"), trust_discovered=True))
    examine(replace(app, open_worker=opened))
    assert trusted[W3] == {False}
    assert True in trusted[W1]


def test_who_has_the_address_now_is_not_accused(invoke: Invoke) -> None:
    """A worker of another group, in a pod with the address that a pod of this one had."""
    there = scene()
    there.other_group("others", W3).add("bills")
    says(there, "w3:8083", "RUNNING")
    says(there, "w2:8083", "RUNNING")
    assert loud(rows_of(invoke, there)) == [("worker_left", "info", "w3:8083")]


def test_a_status_topic_that_may_not_be_read_is_said(invoke: Invoke) -> None:
    """Who left, and what repeats, is not known then: that is no yes."""
    for fault in (UnauthorizedError("not allowed to read"), UnreachableError("no leader")):
        there = cluster(described=TOPICS, faults={STATUSES: fault})
        assert found(invoke, there, 7) == [("failures", "statuses_unread", "warning"), *HEALTHY]


def test_statuses_of_connectors_that_are_gone_do_not_count(invoke: Invoke) -> None:
    there = scene()
    says(there, "w3:8083", "RUNNING", name="deleted")
    assert found(invoke, there, 0) == HEALTHY


def _departures(there: ConfigWorld, **changes: Any) -> list[Departure]:
    asked: Mapping[str, Any] = {"members": {"w1:8083"}, "connectors": {"orders"}, "since_ms": 0, **changes}
    return departures(status_history(there.topics.records(STATUSES)), **asked)


def test_work_goes_from_worker_to_worker() -> None:
    there = scene()
    says(there, "w8:8083", "RUNNING", 1)
    says(there, "w9:8083", "RUNNING", 1)
    says(there, "w9:8083", "RUNNING", 2)
    times = [record.timestamp_ms for record in there.topics.records(STATUSES)]
    assert _departures(there) == [
        Departure(WorkerId("w8:8083"), (), 1, times[1]),
        Departure(WorkerId("w9:8083"), (("orders", 1), ("orders", 2)), 0, -1),
    ]
    assert [each.worker for each in _departures(there, since_ms=times[1] + 1)] == ["w9:8083"]


@pytest.mark.parametrize("validates", [True, False])
def test_a_plugin_that_a_member_can_not_load_is_named_though_others_show_its_mode(
    invoke: Invoke, validates: bool
) -> None:
    """A worker lists it without a version, and nothing was said of it before a connector of it was to be created."""
    there, old = scene(), "com.acme.OldSource"
    there.connect.plugins = [
        *there.connect.plugins, {"class": old, "type": "source"}, {"class": "com.acme.Fine", "type": "sink"},
    ]  # fmt: skip

    def fail(made: Call) -> None:
        if made.what[1] == old:
            raise ConnectError("answered 500: java.lang.NoClassDefFoundError: org/apache/kafka/common/utils/Sanitizer")

    there.connect.before("validate", fail)
    rows = rows_of(invoke, there, *([] if validates else ["--no-validate"]))
    told = [row for row in rows if row["code"] == "plugin_not_loaded"]
    assert [(row["severity"], old in row["message"]) for row in told] == [("warning", True)] * 2 * validates
