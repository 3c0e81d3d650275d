"""Which workers are asked, and whose they are."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.workers import list_workers, probe_workers
from eosctl.core.workers.url import NOT_REACHED_HINT
from eosctl.errors import (
    ConnectError,
    EosctlError,
    ExitCode,
    UnauthorizedError,
    UnreachableError,
    UsageError,
)
from eosctl.group.gather import discover_urls, observe_workers
from tests.fakes.connect import FakeConnect
from tests.fakes.two_workers import W0, W1, two_workers
from tests.fakes.world import World


@pytest.fixture
def world() -> World:
    """w0 leads and is enabled, w1 is preparing."""
    return two_workers()


def test_credentials_go_to_given_urls_only(world: World) -> None:
    observe_workers(world.app(connect_urls=("http://me:secret@W0:8083/",)))
    assert sorted(set(world.connect.opened)) == ["http://me:secret@W0:8083/", W1]


def test_a_given_url_that_no_member_advertises_is_a_row_of_its_own(world: World) -> None:
    forwarded = "http://localhost:18083"
    world.connect.modes, world.connect.forwarded = {W0: "enabled"}, {forwarded: W0}
    rows = list_workers(world.app(connect_urls=(forwarded,))).rows
    assert [(row.url, row.member_id) for row in rows] == [(W0, f"member {W0}"), (forwarded, None)]
    assert "no member of the group advertises this URL" in cast(list[str], rows[1].evidence)


def test_a_worker_of_another_cluster_is_said(world: World) -> None:
    world.connect.kafka_cluster_id = "elsewhere"
    report = list_workers(world.app())
    assert "another Kafka cluster, elsewhere" in str(report.rows[0].evidence)
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
    assert report.problems[0].hint == (error.hint or NOT_REACHED_HINT)
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
        there.connectors[name].url = there.connectors[name].tasks[0].url = W0
    for name in ours:
        world.connect.add(name)
    app = replace(
        world.app(connect_urls=(stranger,)),
        open_worker=lambda app, url: (there if url == stranger else world.connect).open_worker(app, url),
    )
    report = list_workers(app)
    row = next(row for row in report.rows if row.url == stranger)
    assert [problem.code for problem in report.problems] == codes
    assert said in str([*(problem.message for problem in report.problems), *cast(list[str], row.evidence)])
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
    assert (row.url, row.member_id, row.mode, row.assigned) == (W1, None, "not_enabled", None)
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
