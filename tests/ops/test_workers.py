"""Workers as a group and as REST show them, joined; and which tasks run, for what must not hit a live one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.core.transactions import RawGroup
from eosctl.core.worker_config import WorkerConfig, parse_worker_config
from eosctl.deadline import Clock, Deadline
from eosctl.errors import (
    ConnectError,
    EosctlError,
    ExitCode,
    NotFoundError,
    RefusedError,
    UnauthorizedError,
    UnreachableError,
    UsageError,
)
from eosctl.ops.app import App
from eosctl.ops.workers import TaskStatus, discover_urls, list_workers, observe_workers, probe_workers, running_tasks
from eosctl.profiles import Target
from tests.fakes.connect import CLUSTER_ID, FILE_SOURCE, FakeConnect, FakeConnector, FakeGroups
from tests.sandbox_fixtures import GROUP, FileSource

W0, W1 = "http://w0:8083", "http://w1:8083"


@dataclass
class World:
    """An App over fakes, on a clock that only sleeping moves."""

    connect: FakeConnect = field(default_factory=lambda: FakeConnect(modes={W0: "enabled", W1: "preparing"}))
    groups: FakeGroups = field(init=False)
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.groups = FakeGroups(self.connect)

    def app(self, **target: Any) -> App:
        settings: dict[str, Any] = {"client": ClientSettings(("kafka:9092",)), "group_id": "g", **target}
        clock = Clock(now_s=lambda: self.now_s, monotonic_s=lambda: self.now_s, sleep_s=self._sleep)
        return App(
            target=Target(**settings),
            deadline=Deadline.after(60, clock),
            state_dir=Path("unused"),
            clock=clock,
            open_transactions=self.groups.open,
            open_worker=self.connect.open_worker,
        )

    def _sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def world() -> World:
    return World()


def _config(path: str, mode: str, host: str) -> WorkerConfig:
    text = f"group.id=g\nexactly.once.source.support={mode}\nlisteners=http://{host}:8083\n"
    return parse_worker_config(text, source=path)


def test_members_are_joined_with_what_they_say_themselves(world: World) -> None:
    world.groups.owned = {W0: [("c", -1), ("c", 0)], W1: [("c", 1)]}
    report = list_workers(world.app())
    first, second = report.rows
    assert first == {
        "url": W0,
        "member_id": f"member {W0}",
        "leader": True,
        "version": "4.3.1",
        "health": "healthy",
        "config_offset": 7,
        "assigned": {"connectors": ["c"], "tasks": [{"connector": "c", "task": 0}]},
        "mode": "enabled",
        "evidence": [
            "validating FileStreamSourceConnector with exactly.once.support=required: no objection from the worker"
        ],
    }
    assert (second["url"], second["leader"], second["mode"]) == (W1, False, "not_enabled")
    assert second["assigned"] == {"connectors": [], "tasks": [{"connector": "c", "task": 1}]}
    assert report.kind == "workers-list"
    assert report.target == {"kafka_cluster_id": CLUSTER_ID, "group_id": "g"}
    assert report.summary == {"workers": 2, "modes": {"enabled": 1, "not_enabled": 1}}
    assert report.data["group"] == {
        "state": "Stable",
        "protocol": "sessioned",
        "leader_member_id": f"member {W0}",
        "leader_url": W0,
    }
    assert (report.exit_code, report.problems) == (0, [])


def test_the_workers_files_tell_preparing_from_disabled(world: World) -> None:
    world.connect.modes = {W0: "disabled", W1: "preparing"}
    configs = (_config("a", "disabled", "w0"), _config("b", "preparing", "w1"))
    rows = probe_workers(world.app(worker_configs=configs)).rows
    assert [(row["mode"], cast(list[str], row["evidence"])[-1]) for row in rows] == [
        ("disabled", "a says disabled"),
        ("preparing", "b says preparing"),
    ]


def test_a_worker_that_is_down_is_a_row(world: World) -> None:
    world.connect.down.add(W1)
    report = probe_workers(world.app())
    row = report.rows[1]
    assert (row["health"], row["mode"], row["version"]) == ("unreachable", "unknown", None)
    assert row["evidence"] == [f"the Connect worker at {W1} can't be reached: Connection refused"]
    assert report.exit_code == ExitCode.PARTIAL
    world.connect.down.add(W0)
    assert probe_workers(world.app()).exit_code == ExitCode.UNREACHABLE


@pytest.mark.parametrize(
    ("call", "error", "health"),
    [
        ("root", UnauthorizedError("not allowed"), "unknown"),
        ("health", ConnectError("not Connect"), "unknown"),
        ("validate", UnreachableError("no answer in time"), "healthy"),
        ("plugins", ConnectError("answered 500"), "healthy"),
    ],
)
def test_what_a_worker_refuses_is_unknown_with_the_reason(
    world: World, call: str, error: EosctlError, health: str
) -> None:
    world.connect.modes = {W0: "enabled"}
    world.connect.fail_next(call, error)
    (row,) = probe_workers(world.app()).rows
    assert (row["health"], row["mode"], row["evidence"]) == (health, "unknown", [error.message])


def test_a_plugin_that_fails_is_passed_over(world: World) -> None:
    world.connect.modes = {W0: "preparing"}
    world.connect.plugins.append({"class": "com.acme.Jdbc", "type": "source"})
    world.connect.fail_next("validate", ConnectError("answered 500: boom"))
    (row,) = probe_workers(world.app()).rows
    assert row["mode"] == "not_enabled"
    assert "validating Jdbc" in cast(list[str], row["evidence"])[0]


@pytest.mark.parametrize(
    ("plugins", "reason"),
    [
        ([], "no source plugin"),
        ([{"class": FILE_SOURCE.replace("Source", "Sink"), "type": "sink"}], "no source plugin"),
    ],
)
def test_without_a_source_plugin_the_mode_is_unknown(
    world: World, plugins: list[Mapping[str, object]], reason: str
) -> None:
    world.connect.plugins = plugins
    row = probe_workers(world.app()).rows[0]
    assert row["mode"] == "unknown"
    assert reason in cast(list[str], row["evidence"])[0]


def test_a_rebalance_is_waited_out(world: World) -> None:
    world.groups.states = ["PreparingRebalance", "CompletingRebalance", "Stable"]
    assert observe_workers(world.app()).stable
    assert world.groups.asked == 3


def test_a_group_whose_first_worker_is_about_to_join_is_waited_for(world: World) -> None:
    """A worker that already answered REST used to be told that its group does not exist."""
    world.groups.states = ["Dead", "Dead", "PreparingRebalance", "Stable"]
    assert observe_workers(world.app()).stable


def test_a_rebalance_without_end_is_reported_with_what_is_known(world: World) -> None:
    world.groups.states = ["PreparingRebalance"]
    report = list_workers(world.app(connect_urls=(W0,)))
    assert world.now_s == pytest.approx(10, abs=0.5)
    assert [(row["url"], row["member_id"], row["assigned"], row["leader"]) for row in report.rows] == [
        (None, f"member {W0}", None, False),
        (None, f"member {W1}", None, False),
        (W0, None, None, False),
    ]
    assert [problem.code for problem in report.problems] == ["group_not_stable"]
    assert report.problems[0].severity == "warning"


def test_an_empty_group_has_no_rows(world: World) -> None:
    world.connect.modes = {}
    report = list_workers(world.app())
    assert (list(report.rows), report.exit_code, list(report.problems)) == ([], 0, [])
    assert cast(dict[str, object], report.data["group"])["state"] == "Empty"


def test_an_unknown_group_is_not_found(world: World) -> None:
    world.groups.raw = RawGroup("g", "Dead", "", "", ())
    with pytest.raises(NotFoundError, match="'g' does not exist"):
        list_workers(world.app())
    assert world.now_s == pytest.approx(2, abs=0.5)


def test_credentials_go_to_given_urls_only(world: World) -> None:
    observe_workers(world.app(connect_urls=("http://me:secret@W0:8083/",)))
    assert sorted(world.connect.opened) == ["http://me:secret@W0:8083/", W1]


def test_a_given_url_that_no_member_advertises_is_a_row_of_its_own(world: World) -> None:
    world.connect.modes[forwarded := "http://localhost:18083"] = "enabled"
    world.groups.raw = FakeConnect(modes={W0: "enabled"}).raw_group("g")
    rows = list_workers(world.app(connect_urls=(forwarded,))).rows
    assert [(row["url"], row["member_id"]) for row in rows] == [(W0, f"member {W0}"), (forwarded, None)]
    assert "no member of the group advertises this URL" in cast(list[str], rows[1]["evidence"])


def test_a_worker_of_another_cluster_is_said(world: World) -> None:
    world.connect.kafka_cluster_id = "elsewhere"
    assert "another Kafka cluster, elsewhere" in str(list_workers(world.app()).rows[0]["evidence"])


def test_urls_alone_are_enough(world: World) -> None:
    report = probe_workers(world.app(client=None, group_id=None, connect_urls=(W1,)))
    (row,) = report.rows
    assert (row["url"], row["member_id"], row["mode"], row["assigned"]) == (W1, None, "not_enabled", None)
    assert world.groups.asked == 0


@pytest.mark.parametrize("missing", ["client", "group_id"])
def test_without_urls_cluster_and_group_must_be_named(world: World, missing: str) -> None:
    app = world.app(**{missing: None})
    real = App(app.target, app.deadline, app.state_dir)
    with pytest.raises(UsageError, match=r"no Kafka cluster|no Connect group"):
        list_workers(real)


def test_discovered_urls_are_the_given_ones_or_the_members(world: World) -> None:
    assert discover_urls(world.app(connect_urls=("http://u:p@x:1",))) == ["http://u:p@x:1"]
    assert discover_urls(world.app()) == [W0, W1]


def test_running_tasks_come_from_the_first_worker_that_answers(world: World) -> None:
    world.connect.down.add(W0)
    world.connect.connectors = {
        "b": FakeConnector({"connector.class": FILE_SOURCE, "tasks.max": "2"}, failed={1}),
        "a": FakeConnector({"connector.class": FILE_SOURCE}, state="STOPPED"),
    }
    assert running_tasks(world.app()) == {
        "a": (),
        "b": (
            TaskStatus(0, "RUNNING", "w1:8083"),
            TaskStatus(1, "FAILED", "w1:8083", "java.lang.RuntimeException: it broke"),
        ),
    }


def test_running_tasks_are_not_guessed_when_no_worker_answers(world: World) -> None:
    world.connect.down |= {W0, W1}
    with pytest.raises(UnreachableError, match=f"no worker says which tasks run: .*{W0}.*{W1}"):
        running_tasks(world.app())


def test_an_empty_group_runs_nothing(world: World) -> None:
    world.connect.modes = {}
    assert running_tasks(world.app()) == {}


def test_a_group_in_a_rebalance_is_not_taken_for_an_empty_one(world: World) -> None:
    """No member tells its URL then; this used to answer "no task runs", so that a live task could be fenced."""
    world.groups.states = ["PreparingRebalance"]
    with pytest.raises(UnreachableError, match="PreparingRebalance"):
        running_tasks(world.app())


def test_a_worker_of_another_cluster_proves_nothing(world: World) -> None:
    world.connect.kafka_cluster_id = "elsewhere"
    with pytest.raises(RefusedError, match=f"uses Kafka cluster elsewhere, not {CLUSTER_ID}"):
        running_tasks(world.app(connect_urls=(W0,)))


@pytest.mark.live
def test_a_real_group(stack: Any, file_source: FileSource, tmp_path: Path) -> None:
    """The group's bytes and REST tell the same of a running connector."""
    file_source.put()
    file_source.wait_running()
    target = Target(client=ClientSettings((stack.bootstrap_servers,)), group_id=GROUP)
    app = App(target, Deadline.after(60), tmp_path)
    (row,) = list_workers(app).rows
    assert (row["url"], row["leader"], row["version"], row["health"]) == (file_source.url, True, "4.3.1", "healthy")
    assigned = cast(dict[str, list[object]], row["assigned"])
    assert file_source.name in assigned["connectors"]
    assert {"connector": file_source.name, "task": 0} in assigned["tasks"]
    assert row["mode"] == "enabled"
    (task,) = running_tasks(app)[file_source.name]
    assert (task.task, task.state, f"http://{task.worker_id}") == (0, "RUNNING", file_source.url)
