"""Workers as a group and as REST show them, joined; and which tasks run, for what must not hit a live one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.core.records import OutRecord
from eosctl.core.worker_config import WorkerConfig, parse_worker_config
from eosctl.deadline import Deadline
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
from eosctl.ops.worker_report import list_workers, probe_workers
from eosctl.ops.workers import TaskStatus, discover_urls, observe_workers, running_tasks
from eosctl.profiles import Target
from tests.fakes.connect import FakeConnect
from tests.fakes.connectors import FILE_SINK
from tests.fakes.world import CONFIGS, World
from tests.sandbox_fixtures import GROUP, FileSource

W0, W1 = "http://w0:8083", "http://w1:8083"


@pytest.fixture
def world() -> World:
    """w0 leads and is enabled, w1 is preparing."""
    made = World({W0: "enabled", W1: "preparing"})
    made.topics.add_topic(CONFIGS)
    return made


def waited_s(world: World) -> float:
    return world.time.now_s - World().time.now_s


def _config(path: str, mode: str, host: str) -> WorkerConfig:
    text = f"group.id=g\nexactly.once.source.support={mode}\nlisteners=http://{host}:8083\n"
    return parse_worker_config(text, source=path)


def test_members_are_joined_with_what_they_say_themselves(world: World) -> None:
    world.connect.add("c", {"tasks.max": "2"})
    report = list_workers(world.app())
    first, second = report.rows
    assert first == {
        "url": W0,
        "member_id": f"member {W0}",
        "leader": True,
        "version": "4.3.1",
        "health": "healthy",
        "config_offset": 7,
        "config_lag": 0,
        "assigned": {"connectors": ["c"], "tasks": [{"connector": "c", "task": 0}]},
        "mode": "enabled",
        "evidence": [
            "validating FileStreamSourceConnector with exactly.once.support=required: no objection from the worker"
        ],
    }
    assert (second["url"], second["leader"], second["mode"]) == (W1, False, "not_enabled")
    assert second["assigned"] == {"connectors": [], "tasks": [{"connector": "c", "task": 1}]}
    assert report.kind == "workers-list"
    assert report.target == {"kafka_cluster_id": world.cluster_id, "group_id": "g"}
    assert report.summary == {"workers": 2, "modes": {"enabled": 1, "not_enabled": 1}}
    assert report.data["group"] == {
        "state": "Stable",
        "protocol": "sessioned",
        "leader_member_id": f"member {W0}",
        "leader_url": W0,
    }
    assert (report.exit_code, report.problems) == (0, [])


def test_the_lag_counts_the_records_after_the_offset_that_a_member_told(world: World) -> None:
    for number in range(9):
        world.topics.write([OutRecord(CONFIGS, b"connector-%d" % number, None)])
    assert [row["config_lag"] for row in list_workers(world.app()).rows] == [2, 2]  # told 7: has read 0 to 6


@pytest.mark.parametrize(
    ("partitions", "said"), [(None, "there is no topic connect-configs"), (2, "connect-configs has 2 partitions")]
)
def test_without_a_config_topic_the_lag_is_null_and_that_is_said(
    world: World, partitions: int | None, said: str
) -> None:
    del world.topics.topics[CONFIGS]
    if partitions is not None:
        world.topics.add_topic(CONFIGS, partitions)
    report = list_workers(world.app())
    assert ([row["config_lag"] for row in report.rows], report.exit_code) == ([None, None], ExitCode.OK)
    (problem,) = report.problems
    assert (problem.code, problem.severity) == ("config_topic_unread", "warning")
    assert said in problem.message
    assert problem.hint


def test_what_no_member_told_needs_no_config_topic(world: World) -> None:
    world.connect.rebalance(lasts_s=math.inf)
    del world.topics.topics[CONFIGS]
    assert [problem.code for problem in list_workers(world.app()).problems] == ["group_not_stable"]


def test_a_file_that_contradicts_the_probe_is_a_finding(world: World) -> None:
    configs = (_config("a", "enabled", "w0"), _config("b", "enabled", "w1"))
    report = probe_workers(world.app(worker_configs=configs))
    assert [row["mode"] for row in report.rows] == ["enabled", "not_enabled"]
    (problem,) = report.problems
    assert (problem.code, problem.severity, report.exit_code) == ("file_contradicts_probe", "warning", ExitCode.OK)
    assert problem.message.startswith(
        f"the worker at {W1} is not_enabled: b says enabled, but the worker runs otherwise"
    )


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
    assert (report.kind, report.exit_code) == ("workers-probe", ExitCode.PARTIAL)
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
        ([{"class": FILE_SINK, "type": "sink"}], "no source plugin"),
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
    world.connect.rebalance(0.6)
    assert observe_workers(world.app()).stable
    assert waited_s(world) == pytest.approx(0.75)


def test_a_group_whose_first_worker_is_about_to_join_is_waited_for(world: World) -> None:
    """A worker that already answered REST used to be told that its group does not exist."""
    world.connect.modes, world.connect.forgotten = {}, True
    world.connect.start_worker(W0, "enabled")
    assert world.connect.worker(W0).health() == "starting"
    assert world.connect.describe().state == "Dead"
    assert observe_workers(world.app()).stable


def test_a_rebalance_without_end_is_reported_with_what_is_known(world: World) -> None:
    world.connect.rebalance(lasts_s=math.inf)
    report = list_workers(world.app(connect_urls=(W0,)))
    assert waited_s(world) == pytest.approx(10, abs=0.5)
    assert [(row["url"], row["member_id"], row["assigned"], row["leader"]) for row in report.rows] == [
        (None, f"member {W0}", None, False),
        (None, f"member {W1}", None, False),
        (W0, None, None, False),
    ]
    assert [problem.code for problem in report.problems] == ["group_not_stable"]
    assert report.problems[0].severity == "warning"
    assert report.problems[0].hint


def test_an_empty_group_has_no_rows(world: World) -> None:
    world.connect.modes = {}
    report = list_workers(world.app())
    assert (list(report.rows), report.exit_code, list(report.problems)) == ([], 0, [])
    assert cast(dict[str, object], report.data["group"])["state"] == "Empty"


def test_an_unknown_group_is_not_found(world: World) -> None:
    with pytest.raises(NotFoundError, match="'nope' does not exist"):
        list_workers(world.app(group_id="nope"))
    assert waited_s(world) == pytest.approx(2, abs=0.5)


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_group_whose_workers_are_all_stopped_is_empty_and_then_forgotten(world: World, forgotten: bool) -> None:
    world.connect.stop_worker(W0)
    world.connect.stop_worker(W1)
    world.time.sleep(world.connect.forgotten_after_s if forgotten else 1)
    if not forgotten:
        assert list(list_workers(world.app()).rows) == []
        return
    with pytest.raises(NotFoundError, match="'g' does not exist"):
        list_workers(world.app())


def test_credentials_go_to_given_urls_only(world: World) -> None:
    observe_workers(world.app(connect_urls=("http://me:secret@W0:8083/",)))
    assert sorted(world.connect.opened) == ["http://me:secret@W0:8083/", W1]


def test_a_given_url_that_no_member_advertises_is_a_row_of_its_own(world: World) -> None:
    forwarded = "http://localhost:18083"
    world.connect.modes, world.connect.forwarded = {W0: "enabled"}, {forwarded: W0}
    rows = list_workers(world.app(connect_urls=(forwarded,))).rows
    assert [(row["url"], row["member_id"]) for row in rows] == [(W0, f"member {W0}"), (forwarded, None)]
    assert "no member of the group advertises this URL" in cast(list[str], rows[1]["evidence"])


def test_a_worker_of_another_cluster_is_said(world: World) -> None:
    world.connect.kafka_cluster_id = "elsewhere"
    report = list_workers(world.app())
    assert "another Kafka cluster, elsewhere" in str(report.rows[0]["evidence"])
    assert [problem.code for problem in report.problems] == ["other_kafka_cluster"] * 2
    assert report.problems[0].message == f"the worker at {W0} uses Kafka cluster elsewhere, not {world.cluster_id}"


@pytest.mark.parametrize(
    ("error", "code", "said", "exit_code"),
    [
        (UnreachableError("no route"), "worker_unreachable", "no route", 4),
        (UnreachableError(f"{W0}: unknown authority", hint="Name it."), "worker_unreachable", "unknown authority", 4),
        (
            ConnectError(f"{W0} (GET /): it redirects", hint="Follow it."),
            "worker_not_answering",
            f"{W0} (GET /): it redirects",
            1,
        ),
        (UnauthorizedError(f"no: GET / at {W0}", hint="Log in."), "worker_not_answering", f"GET / at {W0}", 5),
    ],
)
def test_urls_that_do_not_answer_as_a_worker_are_named(
    world: World, error: EosctlError, code: str, said: str, exit_code: int
) -> None:
    world.connect.modes = {W0: "enabled"}
    world.connect.fail_next("root", error)
    report = list_workers(world.app())
    assert [(problem.code, problem.severity) for problem in report.problems] == [(code, "error")]
    assert said in report.problems[0].message
    assert report.problems[0].hint == (
        error.hint or "See whether it runs; -u gives the URL by which it is reached from here."
    )
    assert report.exit_code == exit_code


@pytest.mark.parametrize(
    ("theirs", "ours", "codes", "said"),
    [
        ({"x"}, {"c"}, ["other_group"], "(only there: x; only in the group: c): it is of another group"),
        ({"c"}, {"c"}, [], "another way to one of them"),
        (set(), set(), [], "no member of the group advertises this URL"),
    ],
)
def test_a_url_of_another_group_is_told_from_a_forwarded_port(
    world: World, theirs: set[str], ours: set[str], codes: list[str], said: str
) -> None:
    """REST says no group; but the workers of one group all know the same connectors."""
    stranger = "http://localhost:18083"
    there = FakeConnect({stranger: "enabled"}, kafka_cluster_id=world.cluster_id)
    for name in theirs:
        there.add(name)
    for name in ours:
        world.connect.add(name)
    app = replace(
        world.app(connect_urls=(stranger,)),
        open_worker=lambda app, url: (there if url == stranger else world.connect).open_worker(app, url),
    )
    report = list_workers(app)
    row = next(row for row in report.rows if row["url"] == stranger)
    assert [problem.code for problem in report.problems] == codes
    assert said in str([*(problem.message for problem in report.problems), *cast(list[str], row["evidence"])])
    assert report.exit_code is ExitCode.OK


def test_a_worker_that_answers_for_an_empty_group_is_of_another_one(world: World) -> None:
    stranger = FakeConnect({W0: "enabled"}, kafka_cluster_id=world.cluster_id)
    world.connect.modes = {}
    report = list_workers(replace(world.app(connect_urls=(W0,)), open_worker=stranger.open_worker))
    assert [problem.code for problem in report.problems] == ["other_group"]
    assert "answers, while the group g has no member" in report.problems[0].message


def test_urls_alone_are_enough(world: World) -> None:
    report = probe_workers(world.app(client=None, group_id=None, connect_urls=(W1,)))
    (row,) = report.rows
    assert (row["url"], row["member_id"], row["mode"], row["assigned"]) == (W1, None, "not_enabled", None)
    assert world.brokers.seen == []


@pytest.mark.parametrize("missing", ["client", "group_id"])
def test_without_urls_cluster_and_group_must_be_named(world: World, missing: str) -> None:
    without: dict[str, Any] = {missing: None}
    app = world.app(**without)
    real = App(app.target, app.deadline, app.state_dir)
    with pytest.raises(UsageError, match=r"no Kafka cluster|no Connect group"):
        list_workers(real)


def test_discovered_urls_are_the_given_ones_or_the_members(world: World) -> None:
    assert discover_urls(world.app(connect_urls=("http://u:p@x:1",))) == ["http://u:p@x:1"]
    assert discover_urls(world.app()) == [W0, W1]


def test_running_tasks_come_from_the_first_worker_that_answers(world: World) -> None:
    world.connect.down.add(W0)
    world.connect.add("b", {"tasks.max": "2"}, failed=(1,))
    world.connect.add("a", state="STOPPED")
    assert running_tasks(world.app()) == {
        "a": (),
        "b": (
            TaskStatus(0, "RUNNING", "w0:8083"),
            TaskStatus(1, "FAILED", "w1:8083", "java.lang.RuntimeException: it broke"),
        ),
    }


def test_running_tasks_are_not_guessed_when_no_worker_answers(world: World) -> None:
    world.connect.down |= {W0, W1}
    with pytest.raises(UnreachableError, match=f"no worker says which tasks run: .*{W0}.*{W1}"):
        running_tasks(world.app())


def test_who_is_turned_away_by_every_worker_is_not_authorized(world: World) -> None:
    """It was exit code 4, and the advice to name a worker that can be reached."""
    world.connect.modes = {W0: "enabled"}
    world.connect.fail_next("root", UnauthorizedError("not allowed: 401", hint="Give --connect-username."))
    with pytest.raises(UnauthorizedError, match="no worker says which tasks run: not allowed: 401") as caught:
        running_tasks(world.app(connect_urls=(W0,)))
    assert caught.value.hint == "Give --connect-username."


def test_an_empty_group_runs_nothing(world: World) -> None:
    world.connect.modes = {}
    assert running_tasks(world.app()) == {}


def test_a_group_in_a_rebalance_is_not_taken_for_an_empty_one(world: World) -> None:
    """No member tells its URL then; this used to answer "no task runs", so that a live task could be fenced."""
    world.connect.rebalance(lasts_s=math.inf)
    with pytest.raises(UnreachableError, match="PreparingRebalance"):
        running_tasks(world.app())


def test_a_worker_of_another_cluster_proves_nothing(world: World) -> None:
    world.connect.kafka_cluster_id = "elsewhere"
    with pytest.raises(RefusedError, match=f"uses Kafka cluster elsewhere, not {world.cluster_id}"):
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
