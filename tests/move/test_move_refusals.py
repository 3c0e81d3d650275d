"""What a move refuses before it stops anything, what ends it half-way, and what it never takes for rest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.configs.given_settings import parse_settings
from eosctl.core.configs.records import Selection
from eosctl.core.java.json import encode_key, encode_offset
from eosctl.core.workers.access import ConnectAccess
from eosctl.errors import (
    EosctlError,
    ExitCode,
    NotFoundError,
    RefusedError,
    StalePlanError,
    UnreachableError,
    UnsupportedError,
    UsageError,
)
from eosctl.move.apply import prepare_move
from eosctl.move.journal import Direction
from eosctl.move.plan import MoveRequest
from eosctl.offsets.writes import offsets_journal
from tests.fakes.connectors import FILE_SINK, FILE_SOURCE
from tests.fakes.faults import Call
from tests.fakes.moving import HERE, NAME, PARTITION, PROFILE, THERE, MovingWorld, move, outcomes

BACK, DELETE = Direction.BACK, Direction.DELETE


def a_sink(world: MovingWorld) -> None:
    world.place("STOPPED")
    world.place("RUNNING", connector_class=FILE_SINK)


def the_same_name_there(world: MovingWorld) -> None:
    world.place("STOPPED", world.there)


def no_plugin_there(world: MovingWorld) -> None:
    world.there.connect.lacking[THERE] = {FILE_SOURCE}


def an_objection_there(world: MovingWorld) -> None:
    world.there.connect.objections["file"] = "there is no such file"


def a_rebalance_there(world: MovingWorld) -> None:
    world.there.connect.rebalance(3600.0)


def another_config_topic_there(world: MovingWorld) -> None:
    world.there.world.topics.put(world.there.configs, b"connector-other", b'{"properties":{"connector.class":"x"}}')


def newer_offsets_there(world: MovingWorld) -> None:
    key, topics = encode_key(NAME, PARTITION), world.there.world.topics
    topics.put(world.there.offsets, key, encode_offset({"position": 300}))


def offsets_of_another_partition_there(world: MovingWorld) -> None:
    key = encode_key(NAME, {"filename": "other"})
    world.there.world.topics.put(world.there.offsets, key, encode_offset({"position": 1}))


def a_twin_there(world: MovingWorld) -> None:
    made = world.there.connect.add("twin", {"file": "f", "topic": "out"})
    world.there.keep_config("connector-twin", {"properties": made.config})


REFUSED: dict[Callable[[MovingWorld], None], str] = {
    a_sink: "is a sink connector",
    the_same_name_there: "has a connector c already",
    no_plugin_there: "has no plugin",
    an_objection_there: "there is no such file",
    a_rebalance_there: "is in a rebalance",
    another_config_topic_there: "do not agree on other",
    newer_offsets_there: "already that is newer than what would come",
    offsets_of_another_partition_there: "or of a source partition that it does not have",
    a_twin_there: "twin runs in group h",
}


@pytest.mark.parametrize("scene", REFUSED, ids=lambda scene: scene.__name__)
def test_it_is_refused_before_anything_is_stopped(
    app: App, world: MovingWorld, scene: Callable[[MovingWorld], None]
) -> None:
    scene(world)
    with pytest.raises(RefusedError) as caught:
        move(app)
    assert REFUSED[scene] in caught.value.message
    assert world.here.connect.connectors[NAME].state == "RUNNING"
    assert not list(app.state_dir.rglob("connectors-move*"))


def test_workers_that_are_too_old_are_named(app: App, world: MovingWorld) -> None:
    world.there.connect.version = "3.6.2"
    with pytest.raises(UnsupportedError, match=r"created STOPPED from Kafka 3\.7 on"):
        move(app)
    world.there.connect.version, world.here.connect.version = "4.3.1", "3.4.1"
    with pytest.raises(UnsupportedError, match=r"can be stopped from Kafka 3\.5 on"):
        move(app)
    world.there.connect.version, world.here.connect.version = "3.7.0", "3.5.0"
    assert outcomes(move(app))["stop"] == "done", "the first versions that can"


def test_both_sides_must_be_two_groups(app: App, world: MovingWorld) -> None:
    same = replace(app.target, profile=PROFILE)
    with pytest.raises(RefusedError, match="leads to group g too"):
        move(replace(app, target_of=lambda _profile: same))
    assert world.here.is_running(NAME)


@pytest.mark.parametrize("expect", [{"kafka_cluster_id": "another"}, {"group_id": "another"}])
def test_what_the_profile_expects_is_checked_there_too(app: App, world: MovingWorld, expect: dict[str, str]) -> None:
    far = replace(world.target_of(PROFILE), expect=expect)
    with pytest.raises(RefusedError, match="the profile expects another"):
        move(replace(app, target_of=lambda _profile: far))


def test_a_worker_that_nobody_named_gets_no_config(app: App, world: MovingWorld) -> None:
    far = replace(world.target_of(PROFILE), connect_urls=(), connect=ConnectAccess())
    with pytest.raises(RefusedError, match="may not have the connector's config"):
        move(replace(app, target_of=lambda _profile: far))


def test_a_side_that_does_not_answer_is_exit_4(app: App, world: MovingWorld) -> None:
    world.there.connect.down.add(THERE)
    with pytest.raises(EosctlError) as caught:
        move(app)
    assert caught.value.exit_code is ExitCode.UNREACHABLE
    assert world.here.is_running(NAME)


def test_older_offsets_there_are_replaced(app: App, world: MovingWorld) -> None:
    key, topics = encode_key(NAME, PARTITION), world.there.world.topics
    topics.put(world.there.offsets, key, encode_offset({"position": 1}))
    world.here.connect.after("set_state", lambda _call: world.lines.append("more"))
    assert move(app).exit_code is ExitCode.OK
    assert world.delivered == world.lines


def test_newer_offsets_there_are_replaced_only_if_told(app: App, world: MovingWorld) -> None:
    newer_offsets_there(world)
    offsets_of_another_partition_there(world)
    world.here.connect.after("set_state", lambda _call: world.lines.append("more"))
    report = move(app, overwrite_offsets=True)
    assert (report.data.moves[0].offsets.write, report.data.moves[0].offsets.delete) == (1, 1)
    assert world.delivered == world.lines
    other = encode_key(NAME, {"filename": "other"})
    assert world.there.world.topics.newest(world.there.offsets)[other] is None


def test_a_config_that_starts_over_is_refused_unless_told(app: App, world: MovingWorld) -> None:
    with pytest.raises(RefusedError, match="c starts over"):
        move(app, settings={"file": "another"})
    assert world.here.is_running(NAME)
    report = move(app, settings={"file": "another"}, read_again=True)
    assert "starts_over" in [problem.code for problem in report.problems]


@pytest.mark.parametrize("setting", ["password=x", "ssl.keystore.password=y", "noequals", "name=other"])
def test_a_setting_that_is_a_secret_or_none_is_a_usage_error(setting: str) -> None:
    with pytest.raises(UsageError):
        parse_settings([setting], name_option="--rename")


def test_a_reference_to_a_secret_is_none() -> None:
    found = parse_settings(["password=${file:/x:y}", "topic=a=b"], name_option="--rename")
    assert found == {"password": "${file:/x:y}", "topic": "a=b"}


def test_there_must_be_something_to_go_on_with_or_back_from(app: App) -> None:
    for direction, request in ((Direction.THERE, {"resume": True}), (BACK, {}), (DELETE, {})):
        with pytest.raises(NotFoundError):
            move(app, direction, **request)
    with pytest.raises(UsageError, match="where to"):
        prepare_move(app, Selection((NAME,)), MoveRequest())


def test_what_was_begun_goes_nowhere_else(app: App, world: MovingWorld) -> None:
    world.there.connect.fail_next("create_connector", EosctlError("500"))
    assert move(app).exit_code is ExitCode.PARTIAL
    for request in ({"to": "elsewhere"}, {"rename": "another"}, {"settings": {"batch.size": "1"}}):
        with pytest.raises(RefusedError, match="began to move, with"):
            move(app, **request)
    with pytest.raises(RefusedError, match="is not finished"):
        move(app, DELETE)
    assert move(app, resume=True).exit_code in (ExitCode.OK, ExitCode.PARTIAL)


def changed_here(world: MovingWorld) -> None:
    world.place("RUNNING", file="another")


def changed_there(world: MovingWorld) -> None:
    the_same_name_there(world)


@pytest.mark.parametrize("change", [changed_here, changed_there], ids=lambda change: change.__name__)
def test_a_plan_goes_stale(app: App, world: MovingWorld, change: Callable[[MovingWorld], None]) -> None:
    plan = prepare_move(app, Selection((NAME,)), MoveRequest(to=PROFILE))
    change(world)
    assert plan.apply is not None
    with pytest.raises((StalePlanError, RefusedError)):
        plan.apply()
    assert world.here.connect.connectors[NAME].state == "RUNNING"


def test_two_at_once_are_kept_apart(app: App, world: MovingWorld) -> None:
    plan = prepare_move(app, Selection((NAME,)), MoveRequest(to=PROFILE))
    world.here.connect.before("set_state", lambda _call: refused())

    def refused() -> None:
        with pytest.raises(RefusedError, match="another eosctl is at work on"):
            move(app)

    assert plan.apply is not None
    assert plan.apply().exit_code in (ExitCode.OK, ExitCode.PARTIAL)


@pytest.mark.parametrize(("held_s", "state"), [(20.0, "done"), (500.0, "failed")])
def test_offsets_wait_for_another_eosctl_that_writes(app: App, world: MovingWorld, held_s: float, state: str) -> None:
    """Two moves to one Kafka cluster write their offsets one after the other, within the step's timeout."""
    other = ExitStack()
    other.enter_context(offsets_journal(app, world.there.world.cluster_id).hold("offsets"))
    world.there.world.time.later(held_s, other.close)
    with other:
        assert outcomes(move(app))["offsets"] == state


def when_created(world: MovingWorld, happens: Callable[[], Any]) -> None:
    world.there.connect.after("create_connector", lambda _call: happens())


def test_here_not_answering_it_is_not_started_there(app: App, world: MovingWorld) -> None:
    """Silence is never taken for rest."""
    when_created(world, lambda: world.here.connect.down.add(HERE))
    report = move(app)
    assert (report.exit_code, outcomes(report)["resume"]) == (ExitCode.PARTIAL, "not_reached")
    assert "whether c runs in group g is not known" in report.problems[0].message
    assert not world.there.is_running(NAME)
    world.here.connect.down.clear()
    again = move(app, resume=True)
    assert again.exit_code in (ExitCode.OK, ExitCode.PARTIAL)
    assert (world.there.is_running(NAME), world.both) == (True, False)


def test_who_starts_it_here_meanwhile_keeps_it_from_starting_there(app: App, world: MovingWorld) -> None:
    when_created(world, lambda: world.here.connect.set_target(NAME, "STARTED"))
    report = move(app)
    assert report.exit_code is ExitCode.PARTIAL
    assert (world.there.is_running(NAME), world.both) == (False, False)
    assert world.delivered == world.lines


def test_a_start_that_is_asked_for_and_not_shown_yet_is_no_rest(app: App, world: MovingWorld) -> None:
    """REST showed STOPPED for a moment; taken back then, it ran on both sides."""

    def ask(call: Call) -> None:
        if call.what[1:] == (NAME, "resume"):
            raise KeyboardInterrupt

    world.there.connect.after("set_state", ask)
    assert move(app).exit_code is ExitCode.INTERRUPTED
    world.lines.append("more")
    assert move(app, BACK).exit_code in (ExitCode.OK, ExitCode.PARTIAL)
    for side in world.sides:
        world.run(side)
    assert (world.delivered, world.both) == (world.lines, False)
    assert [side.is_running(NAME) for side in world.sides] == [True, False]


def test_deleting_needs_a_commit_there(app: App, world: MovingWorld) -> None:
    """RUNNING alone proves nothing."""
    move(app)
    with pytest.raises(AssertionError):
        assert_deleted(move(app, DELETE))
    assert NAME in world.here.connect.connectors
    world.lines.append("more")
    world.run(world.there)
    assert_deleted(move(app, DELETE))
    assert NAME not in world.here.connect.connectors


def assert_deleted(report: Any) -> None:
    assert outcomes(report) == {"check": "done", "remove": "done"}


def test_a_config_that_was_changed_there_stays(app: App, world: MovingWorld) -> None:
    move(app)
    changed = {**world.there.connect.connectors[NAME].config, "batch.size": "9"}
    world.there.connect.put(NAME, changed)
    world.there.world.time.pass_until(world.there.world.time.now_s + 5)
    report = move(app, BACK)
    assert "left_there" in [problem.code for problem in report.problems]
    assert world.there.connect.connectors[NAME].state == "STOPPED"
    assert world.here.is_running(NAME)


def test_ctrl_c_reports_the_rows_so_far(app: App, world: MovingWorld) -> None:
    world.there.connect.fail_next("create_connector", KeyboardInterrupt())
    report = move(app)
    assert (report.exit_code, report.problems[0].code) == (ExitCode.INTERRUPTED, "interrupted")
    assert outcomes(report)["settle"] == "done"
    assert "here it is STOPPED; there it is not there" in report.problems[1].message


def test_a_network_that_fails_in_a_step_is_exit_7_and_goes_on(app: App, world: MovingWorld) -> None:
    world.there.connect.fail_next("offsets", UnreachableError("the network is gone"))
    report = move(app)
    assert (report.exit_code, outcomes(report)["check"]) == (ExitCode.PARTIAL, "failed")
    assert "Go on: eosctl connectors move --connector c --resume" in str(report.problems[1].hint)
    assert move(app, resume=True).exit_code in (ExitCode.OK, ExitCode.PARTIAL)
    assert world.delivered == world.lines


def test_offsets_that_somebody_moved_on_there_are_not_left_there(app: App, world: MovingWorld) -> None:
    """It was never started there by this move; who takes it back would deliver again what was read meanwhile."""
    world.there.connect.fail_next("offsets", UnreachableError("the network is gone"))
    assert move(app).exit_code is ExitCode.PARTIAL
    key = encode_key(NAME, PARTITION)
    world.there.world.topics.put(world.there.offsets, key, encode_offset({"position": 5}))
    with pytest.raises(RefusedError, match="ran on both sides"):
        move(app, BACK)


def test_offsets_that_moved_on_here_while_it_may_have_run_there_are_refused(app: App, world: MovingWorld) -> None:
    """The start was begun and lost; since then it ran here: started there, it would read all that again."""
    world.there.connect.fail_next("set_state", UnreachableError("the network is gone"))
    assert outcomes(move(app))["resume"] == "failed"
    world.here.world.topics.put(
        world.here.offsets, encode_key(NAME, PARTITION), encode_offset({"position": len(world.lines) + 2})
    )
    with pytest.raises(RefusedError, match="ran on both sides"):
        move(app, resume=True)
    assert not world.there.is_running(NAME)


def test_a_connector_of_that_name_that_came_meanwhile_is_left_alone(app: App, world: MovingWorld) -> None:
    world.here.connect.fail_next("set_state", EosctlError("500"))
    assert outcomes(move(app))["stop"] == "failed"
    the_same_name_there(world)
    report = move(app, BACK)
    assert (report.exit_code, outcomes(report)) == (ExitCode.OK, {"None": "done_before"})
    assert NAME in world.there.connect.connectors


def test_the_way_back_is_named_to_who_moves_it_from_there(app: App, world: MovingWorld) -> None:
    """The name is taken by what the move left STOPPED."""
    move(app)
    there = replace(app, target=world.target_of(PROFILE), target_of=lambda _name: replace(app.target, profile="near"))
    with pytest.raises(RefusedError) as caught:
        prepare_move(there, Selection((NAME,)), MoveRequest(to="near"))
    assert "eosctl connectors move -p near --connector c --back" in str(caught.value.hint)


@pytest.mark.parametrize("clusters", [1, 2])
def test_ids_that_another_connector_has_are_refused_on_one_cluster(tmp_path: Path, clusters: int) -> None:
    """Group a with connector b-x, and group a-b with connector x: each task would fence the other's."""
    world = MovingWorld(clusters, groups=("a-b", "a"))
    other = world.here.connect.add("x", {"file": "other"})
    world.here.keep_config("connector-x", {"properties": other.config})
    app = world.app(tmp_path)
    if clusters == 2:
        world.names[PROFILE] = "b-x"
        assert move(app, rename="b-x").exit_code in (ExitCode.OK, ExitCode.PARTIAL)
        return
    with pytest.raises(RefusedError, match="would have the transactional ids of connector x of group a-b"):
        move(app, rename="b-x")
