"""What a move carries, and how: names, settings, topics, states, and several connectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.configs.records import Selection
from eosctl.errors import ConnectError, ExitCode, RefusedError
from eosctl.move.apply import prepare_move
from eosctl.move.journal import Direction
from eosctl.move.plan import MoveRequest
from eosctl.report import Report
from tests.fakes.connectors import FILE_SINK
from tests.fakes.faults import Call
from tests.fakes.moving import NAME, OWN, PROFILE, MovingWorld, move, outcomes, settle, while_stopped

BACK, DELETE = Direction.BACK, Direction.DELETE


def test_under_another_name_the_keys_have_that_name(app: App, world: MovingWorld) -> None:
    world.names[PROFILE] = "renamed"
    while_stopped(world)
    report = move(app, rename="renamed")
    assert report.exit_code is ExitCode.OK, report.problems
    settle(world)
    assert (world.delivered, world.both) == (world.lines, False)
    made = world.there.connect.connectors["renamed"]
    assert (made.config["name"], NAME in world.there.connect.connectors) == ("renamed", False)
    assert world.there.position(world.there.offsets, "renamed") == len(world.lines)
    assert move(app, BACK).exit_code is ExitCode.OK
    settle(world)
    assert world.delivered == world.lines


@pytest.mark.parametrize("clusters", [1, 2])
def test_a_topic_of_its_own_is_the_same_there_or_made_there(tmp_path: Path, clusters: int) -> None:
    world = MovingWorld(clusters, config={"offsets_storage_topic": OWN})
    app = world.app(tmp_path)
    while_stopped(world)
    report = move(app)
    assert report.exit_code is ExitCode.OK, report.problems
    settle(world)
    assert world.delivered == world.lines
    [part] = report.data.moves
    offsets = next(row for row in report.rows if row.step == "offsets")
    if world.clusters == 1:
        assert (part.offsets.write, part.offsets.keep, part.creates) == (0, 1, [])
        assert offsets.detail == "topic own has all of them"
    else:
        assert (part.offsets.write, [each.topic for each in part.creates]) == (1, [OWN])
    assert world.there.position(OWN, NAME) == len(world.lines)


def test_offsets_that_move_on_in_one_topic_of_both_are_no_others(tmp_path: Path) -> None:
    """It was read twice, and what a running task had committed in between was refused as another connector's."""
    world = MovingWorld(1, config={"offsets_storage_topic": OWN})

    def commit(call: Call) -> None:
        if call.what[0] == OWN and world.here.is_running(NAME):
            world.lines.append(f"line {len(world.lines)}")
            world.run(world.here)

    world.here.world.topics.after("read", commit)
    while_stopped(world)
    report = move(world.app(tmp_path))
    assert report.exit_code is ExitCode.OK, report.problems
    settle(world)
    assert (world.delivered, world.both) == (world.lines, False)


def test_brokers_of_its_own_keep_its_topics(tmp_path: Path) -> None:
    """Its group changes, and the Kafka cluster that it writes to does not: its offsets are where they were."""
    own = {f"{client}_override_bootstrap_servers": "memory:9092" for client in ("producer", "consumer", "admin")}
    world = MovingWorld(2, config={"offsets_storage_topic": OWN, **own})
    while_stopped(world)
    report = move(world.app(tmp_path))
    assert report.exit_code is ExitCode.OK, report.problems
    assert next(row for row in report.rows if row.step == "offsets").detail == "topic own has all of them"
    settle(world)
    assert (world.delivered, world.both) == (world.lines, False)
    assert world.here.world.topics.newest("out").keys() >= {b"last"}
    assert OWN not in world.there.world.topics.topics
    assert move(world.app(tmp_path), BACK).exit_code in (ExitCode.OK, ExitCode.PARTIAL)
    settle(world)
    assert world.delivered == world.lines


def test_settings_change_there_and_nowhere_else(app: App, world: MovingWorld) -> None:
    before = dict(world.here.connect.connectors[NAME].config)
    settings = {"batch.size": "7", "odd": "s3cr3t-looking"}
    report = move(app, settings=settings)
    assert world.there.connect.connectors[NAME].config == {**before, **settings}
    assert world.here.connect.connectors[NAME].config == before
    [part] = report.data.moves
    assert {each.name: each.after for each in part.settings} == {"batch.size": "7", "odd": "***"}
    kept = [path.read_text() for path in app.state_dir.rglob("*") if path.is_file()]
    assert not [text for text in kept if "s3cr3t" in text], "no value that may be a secret is kept"


def test_references_of_config_providers_are_carried_and_said(app: App, world: MovingWorld) -> None:
    world.place("STOPPED")
    world.place("RUNNING", password="${file:/secrets:password}")
    report = move(app)
    assert world.there.connect.connectors[NAME].config["password"] == "${file:/secrets:password}"
    assert report.data.moves[0].resolved_there == ["password"]


def test_a_resume_needs_a_setting_that_is_not_kept_until_it_is_there(app: App, world: MovingWorld) -> None:
    world.there.connect.fail_next("create_connector", ConnectError("500: try again"))
    failed = move(app, settings={"odd": "hidden one"})
    assert (failed.exit_code, outcomes(failed)["create"]) == (ExitCode.PARTIAL, "failed")
    with pytest.raises(Exception, match="value of --set odd is not kept"):
        move(app, resume=True)
    with pytest.raises(RefusedError, match="began to move, with other --set options"):
        move(app, settings={"another": "1"})
    assert move(app, settings={"odd": "hidden one"}).exit_code in (ExitCode.OK, ExitCode.PARTIAL)
    assert world.there.connect.connectors[NAME].config["odd"] == "hidden one"


@pytest.mark.parametrize("state", ["STOPPED", "PAUSED"])
def test_it_is_left_in_its_state_there(app: App, world: MovingWorld, state: str) -> None:
    world.place(state)
    report = move(app)
    assert (report.exit_code, world.there.connect.connectors[NAME].state) == (ExitCode.OK, state)
    assert not any(side.is_running(NAME) for side in world.sides)
    assert move(app).rows[-1].detail == "it has moved to c in group h (profile far)"
    assert move(app, BACK).exit_code is ExitCode.OK
    assert (world.here.connect.connectors[NAME].state, NAME in world.there.connect.connectors) == (state, False)
    assert world.delivered == world.lines


def test_workers_that_are_not_enabled_are_said_and_not_audited(tmp_path: Path) -> None:
    world = MovingWorld(clusters=2, mode="disabled")
    while_stopped(world)
    report = move(world.app(tmp_path))
    assert (report.exit_code, "audit" in outcomes(report)) == (ExitCode.OK, False)
    assert [problem.code for problem in report.problems] == ["at_least_once"] * 2
    settle(world)
    assert world.delivered == world.lines


def test_a_source_that_commits_nothing_leaves_it_unproven(app: App, world: MovingWorld) -> None:
    report = move(app)
    assert (report.exit_code, set(outcomes(report).values())) == (ExitCode.PARTIAL, {"done"})
    assert [problem.code for problem in report.problems] == ["nothing_committed_yet", "move_unproven"]
    [part] = report.data.moves
    assert (part.verdict, [each.verdict for each in part.audits]) == ("unproven", ["exactly_once", "unproven"])
    settle(world)
    assert world.delivered == world.lines


def test_a_record_outside_of_transactions_is_exit_3(app: App, world: MovingWorld) -> None:
    while_stopped(world)
    world.there.connect.before("start_task", lambda _call: world.there.world.topics.put("out", b"plain", b"plain"))
    report = move(app)
    assert report.exit_code is ExitCode.FINDINGS
    assert [problem.code for problem in report.problems] == ["move_not_exactly_once"]


def several(app: App, *, keep_going: bool = False) -> Callable[[], Report]:
    plan = prepare_move(app, Selection(all_connectors=True), MoveRequest(to=PROFILE), keep_going=keep_going)
    assert plan.apply is not None
    return plan.apply


def add(world: MovingWorld, name: str, **config: str) -> None:
    made = world.here.connect.add(name, {"topic": "out", **config})
    world.here.keep_config(f"connector-{name}", {"properties": made.config})
    world.here.keep_config(f"target-state-{name}", {"state": "STARTED", "state.v2": "STARTED"})


def test_of_all_each_moves_in_turn_and_sinks_are_left_out(app: App, world: MovingWorld) -> None:
    add(world, "another", file="other")
    add(world, "sink", **{"connector.class": FILE_SINK})
    report = several(app)()
    rows = {(row.connector, row.step): row.outcome for row in report.rows}
    assert rows["sink", None] == "left_out"
    assert {outcome for (name, _step), outcome in rows.items() if name != "sink"} == {"done"}
    assert set(world.there.connect.connectors) == {NAME, "another"}


def test_of_all_those_that_have_moved_come_back(app: App, world: MovingWorld) -> None:
    add(world, "another", file="other")
    move(app)
    plan = prepare_move(app, Selection(all_connectors=True), MoveRequest(BACK))
    assert plan.apply is not None
    report = plan.apply()
    assert {row.outcome for row in report.rows if row.connector == "another"} == {"left_out"}
    assert world.here.is_running(NAME)
    assert list(world.there.connect.connectors) == []


@pytest.mark.parametrize("keep_going", [True, False])
def test_of_several_the_first_that_fails_ends_it_unless_to_keep_going(
    app: App, world: MovingWorld, *, keep_going: bool
) -> None:
    add(world, "another", file="other")
    apply = several(app, keep_going=keep_going)
    world.there.connect.fail_next("create_connector", ConnectError("500: no"))
    report = apply()
    rows = {(row.connector, row.step): row.outcome for row in report.rows}
    assert report.exit_code is ExitCode.PARTIAL
    assert rows["another", "create"] == "failed"
    assert rows[NAME, "create"] == ("done" if keep_going else "not_reached")
    assert world.here.is_running(NAME) is not keep_going


def test_what_was_begun_is_in_the_journal_and_no_config(app: App) -> None:
    report = move(app)
    lines = [json.loads(line) for line in Path(report.data.moves[0].journal).read_text().splitlines()]
    begin = next(line for line in lines if line["event"] == "begin")
    assert set(begin) == {
        *("event", "time_ms", "direction", "to", "name", "cluster_id", "group_id", "state", "tasks", "settings"),
    }
    steps = [(line["event"], line["step"]) for line in lines if "step" in line]
    assert steps == [(event, row.step) for row in report.rows for event in ("start", "done")]


def test_who_starts_it_here_while_it_arrives_ends_it_there(app: App, world: MovingWorld) -> None:
    """Between the last look and the start nobody can be kept from it: then it is stopped where it has just arrived."""

    def start_here(call: Call) -> None:
        if call.what[1:] == (NAME, "resume"):
            world.here.connect.set_target(NAME, "STARTED")

    world.there.connect.after("set_state", start_here)
    report = move(app)
    assert (report.exit_code, outcomes(report)["watch"]) == (ExitCode.PARTIAL, "failed")
    assert "runs_on_both" in [problem.code for problem in report.problems]
    assert world.there.connect.connectors[NAME].state == "STOPPED"
    assert not world.there.is_running(NAME)


def test_a_plan_takes_what_a_worker_shows_of_its_group_once(app: App, world: MovingWorld) -> None:
    """It asked for all connectors of the groups seven times, and as often again before the first step of each."""
    asked: list[str] = []
    world.here.connect.before("connectors", lambda _call: asked.append("here"))
    world.there.connect.before("connectors", lambda _call: asked.append("there"))
    prepare_move(app, Selection((NAME,)), MoveRequest(to=PROFILE))
    owners = 1  # whose offsets the topic there has, is asked besides
    assert (asked.count("here"), asked.count("there")) == (1, 1 + owners)
