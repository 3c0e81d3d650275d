"""Workers as a group and as REST show them, joined: `workers list` and `probe`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.workers import group_problems, list_workers, probe_workers
from eosctl.connectors.holders import connector_statuses
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import OutRecord
from eosctl.core.transactions import RawGroup
from eosctl.core.workers.config import WorkerConfig, parse_worker_config
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError, EosctlError, ExitCode, NotFoundError, UnauthorizedError, UnreachableError
from eosctl.group.gather import observe_workers
from eosctl.group.rows import TaskPart
from eosctl.report import plain
from eosctl.target import Target
from tests.fakes.connect import FakeConnect
from tests.fakes.connectors import FILE_SINK
from tests.fakes.faults import Call
from tests.fakes.two_workers import W0, W1, two_workers
from tests.fakes.world import CONFIGS, World
from tests.sandbox_fixtures import GROUP, FileSource


@pytest.fixture
def world() -> World:
    """w0 leads and is enabled, w1 is preparing."""
    return two_workers()


def waited_s(world: World) -> float:
    return world.time.now_s - World().time.now_s


def _config(path: str, mode: str, host: str) -> WorkerConfig:
    text = f"group.id=g\nexactly.once.source.support={mode}\nlisteners=http://{host}:8083\n"
    return parse_worker_config(text, source=path)


def test_members_that_share_a_url_and_a_protocol_without_signatures_are_named(world: World) -> None:
    """Each look reached whichever worker of the service answered, and both were taken for proven."""
    described = world.connect.describe

    def doubled(group_id: str | None = None) -> RawGroup:
        raw = described(group_id)
        another = replace(raw.members[1], member_id="another", host="/10.0.0.2")
        return replace(raw, protocol="compatible", members=(*raw.members, another))

    world.brokers.state.groups["g"] = doubled
    report = list_workers(world.app())
    shared, unsigned = report.problems
    assert (shared.code, shared.severity, unsigned.code, unsigned.severity) == (
        ("shared_url", "warning", "unsigned_protocol", "warning")
    )
    assert shared.message == (
        f"2 members advertise {W1}, a name that they share (a Service, a scaled container): each request reaches "
        "whichever answers, so that none is proven; they are connected to Kafka from 10.0.0.2, 127.0.0.1"
    )
    assert "rest.advertised.host.name" in str(shared.hint)
    assert unsigned.message.startswith("the group's protocol is compatible")
    assert "connect.protocol=sessioned" in str(unsigned.hint)
    world.brokers.state.groups["g"] = described
    assert list_workers(world.app()).problems == []


@pytest.mark.parametrize(("host", "address"), [("10.0.0.1", "10.0.0.1"), ("localhost", "127.0.0.1")])
def test_members_that_share_a_url_are_told_apart_by_their_own_addresses(host: str, address: str) -> None:
    """A scaled service: with -u of each pod, too, both looks went to the service's name, and neither was proven.

    A name in -u was never held against an address.
    """
    pods = {f"http://{host}:8083": "enabled", "http://10.0.0.2:8083": "preparing"}
    addresses = {host: address, "10.0.0.2": "10.0.0.2"}
    service = "http://connect:8083"
    world = World(pods)
    world.topics.add_topic(CONFIGS)
    described, first = world.connect.describe, next(iter(pods))
    world.connect.forwarded = {service: first}

    def seen(group_id: str | None = None) -> RawGroup:
        raw = described(group_id)
        service_only = FakeConnect({service: "enabled"}).describe().members[0].metadata
        members = [
            replace(each, host=f"/{addresses[str(urlsplit(url).hostname)]}", metadata=service_only)
            for each, url in zip(raw.members, pods, strict=True)
        ]
        return replace(raw, members=tuple(members))

    world.brokers.state.groups["g"] = seen
    assert [row.url for row in list_workers(world.app()).rows] == [service, service]
    report = list_workers(world.app(connect_urls=tuple(pods)))
    modes = {row.url: row.mode for row in report.rows}
    assert modes == dict(zip(pods, ("enabled", "not_enabled"), strict=True))
    assert (report.problems, report.data.group.leader_url) == ([], first)
    alone = list_workers(world.app(connect_urls=(first,)))
    assert {row.url for row in alone.rows} == {first, service}


@pytest.mark.parametrize(
    ("urls", "hosts", "codes", "words"),
    [
        (
            ["http://localhost:8083"],
            ["/10.0.0.1"],
            ["loopback_url"],
            "connected to Kafka from 10.0.0.1 advertises http",
        ),
        (
            ["http://localhost:8083"] * 2,
            ["/10.0.0.1", "/10.0.0.2"],
            ["shared_url"],
            "by which each machine means itself",
        ),
        (["http://127.0.0.1:8083"], ["/127.0.0.1"], [], ""),
        (["http://w0:8083"], ["/10.0.0.1"], [], ""),
    ],
)
def test_localhost_is_named_as_what_it_is(urls: list[str], hosts: list[str], codes: list[str], words: str) -> None:
    """Whoever asked there asked a worker of his own machine, if any, and took it for the member."""
    world = World({urls[0]: "enabled"})
    described = world.connect.describe

    def seen(group_id: str | None = None) -> RawGroup:
        raw = described(group_id)
        [first] = raw.members
        others = [replace(first, member_id=host, host=host) for host in hosts[1:]]
        return replace(raw, members=(replace(first, host=hosts[0]), *others))

    world.brokers.state.groups["g"] = seen
    problems = [each for each in list_workers(world.app()).problems if each.code != "config_topic_unread"]
    assert [each.code for each in problems] == codes
    assert words in " ".join(each.message for each in problems)
    assert {each.severity for each in problems} <= {"warning"}
    assert all("rest.advertised.host.name" in str(each.hint) for each in problems)


def test_a_member_with_a_name_of_its_own_hides_no_other() -> None:
    """The look at the members ended at the first one that was well."""
    world = World({"http://a:8083": "enabled", "http://localhost:8083": "enabled"})
    described = world.connect.describe

    def seen(group_id: str | None = None) -> RawGroup:
        raw = described(group_id)
        return replace(raw, members=tuple(replace(each, host="/10.0.0.1") for each in raw.members))

    world.brokers.state.groups["g"] = seen
    assert "loopback_url" in [each.code for each in list_workers(world.app()).problems]


def test_members_are_joined_with_what_they_say_themselves(world: World) -> None:
    world.connect.add("c", {"tasks.max": "2"})
    report = list_workers(world.app())
    first, second = report.rows
    assert plain(first) == {
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
    assert (second.url, second.leader, second.mode) == (W1, False, "not_enabled")
    assert plain(second.assigned) == {"connectors": [], "tasks": [{"connector": "c", "task": 1}]}
    assert report.kind == "workers-list"
    assert report.target == {"kafka_cluster_id": world.cluster_id, "group_id": "g"}
    assert plain(report.summary) == {"workers": 2, "modes": {"enabled": 1, "not_enabled": 1}}
    assert plain(report.data.group) == {
        "state": "Stable",
        "protocol": "sessioned",
        "leader_member_id": f"member {W0}",
        "leader_url": W0,
    }
    assert (report.exit_code, report.problems) == (0, [])


def test_the_lag_counts_the_records_after_the_offset_that_a_member_told(world: World) -> None:
    for number in range(9):
        world.topics.write([OutRecord(CONFIGS, b"connector-%d" % number, None)])
    assert [row.config_lag for row in list_workers(world.app()).rows] == [2, 2]  # told 7: has read 0 to 6


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
    assert ([row.config_lag for row in report.rows], report.exit_code) == ([None, None], ExitCode.OK)
    (problem,) = report.problems
    assert (problem.code, problem.severity) == ("config_topic_unread", "warning")
    assert said in problem.message
    assert problem.hint


def test_a_group_that_was_looked_at_already_has_the_same_problems_but_for_silent_workers(world: World) -> None:
    """doctor has a finding of its own for each of those."""
    world.connect.down.add(W1)
    del world.topics.topics[CONFIGS]
    app = world.app()
    told = [problem.code for problem in list_workers(app).problems]
    assert told == ["config_topic_unread", "worker_unreachable"]
    assert [problem.code for problem in group_problems(app, observe_workers(app))] == told[:1]


def test_what_no_member_told_needs_no_config_topic(world: World) -> None:
    world.connect.rebalance(lasts_s=math.inf)
    del world.topics.topics[CONFIGS]
    assert [problem.code for problem in list_workers(world.app()).problems] == ["group_not_stable"]


def test_a_file_that_contradicts_the_probe_is_a_finding(world: World) -> None:
    configs = (_config("a", "enabled", "w0"), _config("b", "enabled", "w1"))
    report = probe_workers(world.app(worker_configs=configs))
    assert [row.mode for row in report.rows] == ["enabled", "not_enabled"]
    (problem,) = report.problems
    assert (problem.code, problem.severity, report.exit_code) == ("file_contradicts_probe", "warning", ExitCode.OK)
    assert problem.message.startswith(
        f"the worker at {W1} is not_enabled: b says enabled, but the worker runs otherwise"
    )


def test_the_workers_files_tell_preparing_from_disabled(world: World) -> None:
    world.connect.modes = {W0: "disabled", W1: "preparing"}
    configs = (_config("a", "disabled", "w0"), _config("b", "preparing", "w1"))
    rows = probe_workers(world.app(worker_configs=configs)).rows
    assert [(row.mode, cast(list[str], row.evidence)[-1]) for row in rows] == [
        ("disabled", "a says disabled"),
        ("preparing", "b says preparing"),
    ]


def test_a_worker_that_is_down_is_a_row(world: World) -> None:
    world.connect.down.add(W1)
    report = probe_workers(world.app())
    row = report.rows[1]
    assert (row.health, row.mode, row.version) == ("unreachable", "unknown", None)
    assert row.evidence == [f"the Connect worker at {W1} can't be reached: Connection refused"]
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
    assert (row.health, row.mode, row.evidence) == (health, "unknown", [error.message])


def test_a_standalone_worker_is_told_from_an_enabled_one(world: World) -> None:
    """It objects to nothing, and was said to be enabled."""
    world.connect.modes = {W0: "standalone"}
    report = probe_workers(replace(world.app(), target=Target(connect_urls=(W0,))))
    assert [(row.mode, row.evidence) for row in report.rows] == [
        ("unknown", ["a standalone worker, which is of no group and does not know exactly-once"])
    ]
    assert [(each.code, each.severity) for each in report.problems] == [("standalone_worker", "warning")]


def test_a_plugin_that_fails_is_passed_over(world: World) -> None:
    world.connect.modes = {W0: "preparing"}
    world.connect.plugins.append({"class": "com.acme.Jdbc", "type": "source"})
    world.connect.fail_next("validate", ConnectError("answered 500: boom"))
    (row,) = probe_workers(world.app()).rows
    assert row.mode == "not_enabled"
    assert "validating Jdbc" in cast(list[str], row.evidence)[0]


@pytest.mark.parametrize("version", [None, "4.3.1"])
def test_plugins_that_can_not_be_loaded_are_named_and_the_next_one_is_asked(world: World, version: str | None) -> None:
    """Three of Kafka's own failed on workers of 4.4, and the fourth, which would have answered, was not tried."""
    old = [
        f"{package}Connector"
        for package in ("file.FileStreamSource", "mirror.MirrorHeartbeat", "mirror.MirrorCheckpoint")
    ]
    names = [f"org.apache.kafka.connect.{name}" for name in old]
    versioned = {} if version is None else {"version": version}
    world.connect.plugins = [
        *({"class": name, "type": "source", **versioned} for name in names),
        {"class": "com.acme.Jdbc", "type": "source", **versioned},
    ]

    def fail(made: Call) -> None:
        if made.what[1] in names:
            missing = "java.lang.NoClassDefFoundError: org/apache/kafka/common/utils/AppInfoParser"
            raise ConnectError(f"{made.what[0]} answered 500: {missing}")

    world.connect.before("validate", fail)
    report = probe_workers(world.app())
    assert [row.mode for row in report.rows] == ["enabled", "not_enabled"]
    told = [problem.message for problem in report.problems if problem.code == "plugin_not_loaded"]
    assert len(told) == 6, "of each worker and plugin"
    assert "AppInfoParser" in told[0]
    world.connect.plugins = world.connect.plugins[:3]
    row = probe_workers(world.app()).rows[0]
    assert row.mode == "unknown"
    assert "FileStreamSourceConnector, MirrorHeartbeatConnector, MirrorCheckpointConnector failed" in str(row.evidence)


def test_a_worker_that_lets_nobody_validate_is_not_asked_for_every_plugin(world: World) -> None:
    world.connect.plugins = [{"class": f"com.acme.N{n}", "type": "source", "version": "1"} for n in range(9)]
    asked: list[Call] = []
    world.connect.before("validate", asked.append)
    world.connect.fail_always("validate", UnauthorizedError("answered 403"))
    assert {row.mode for row in probe_workers(world.app()).rows} == {"unknown"}
    assert len(asked) == 2 * 3


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
    assert row.mode == "unknown"
    assert reason in cast(list[str], row.evidence)[0]


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
    assert [(row.url, row.member_id, row.assigned, row.leader) for row in report.rows] == [
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
    assert report.data.group.state == "Empty"


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


@pytest.mark.live
def test_a_real_group(stack: Any, file_source: FileSource, tmp_path: Path) -> None:
    """The group's bytes and REST tell the same of a running connector."""
    file_source.put()
    file_source.wait_running()
    target = Target(client=ClientSettings((stack.bootstrap_servers,)), group_id=GROUP)
    app = App(target, Deadline.after(120), tmp_path)
    (row,) = list_workers(app).rows
    assert (row.url, row.leader, row.version, row.health) == (file_source.url, True, "4.3.1", "healthy")
    assert file_source.name in row.assigned.connectors
    assert TaskPart(connector=file_source.name, task=0) in row.assigned.tasks
    assert row.mode == "enabled"
    (task,) = connector_statuses(app)[file_source.name].tasks
    assert (task.task, task.state, f"http://{task.worker_id}") == (0, "RUNNING", file_source.url)
