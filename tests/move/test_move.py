"""`connectors move` in memory: every line once, never two sides at a time, wherever the process is killed."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from eosctl.errors import EosctlError, ExitCode, UnreachableError
from eosctl.move.journal import Direction
from tests.fakes.faults import KilledError, worth_a_kill
from tests.fakes.moving import NAME, OUT, MovingWorld, move, outcomes, settle, while_stopped

BACK, DELETE = Direction.BACK, Direction.DELETE


def test_it_goes_on_there_where_it_stopped_here(app: App, world: MovingWorld) -> None:
    while_stopped(world)
    report = move(app)
    assert (report.exit_code, report.problems) == (ExitCode.OK, [])
    assert list(outcomes(report)) == ["stop", "settle", "create", "offsets", "check", "resume", "watch", "audit"]
    assert set(outcomes(report).values()) == {"done"}
    settle(world)
    assert (world.delivered, world.both) == (world.lines, False)
    assert (world.here.connect.connectors[NAME].state, world.there.is_running(NAME)) == ("STOPPED", True)
    [part] = report.data.moves
    assert (part.verdict, [each.verdict for each in part.audits]) == ("exactly_once", ["exactly_once"] * 2)
    assert (part.offsets.write, part.source_partitions, part.topics) == (1, 1, [OUT])
    assert report.data.undo == "eosctl connectors move --connector c --back"


def test_it_comes_back_and_is_deleted_there(app: App, world: MovingWorld) -> None:
    while_stopped(world)
    move(app)
    world.lines.append("there")
    world.run(world.there)
    report = move(app, BACK)
    assert (report.exit_code, report.problems) == (ExitCode.OK, [])
    assert (world.here.is_running(NAME), NAME in world.there.connect.connectors) == (True, False)
    settle(world)
    assert (world.delivered, world.both) == (world.lines, False)
    again = move(app)
    assert again.exit_code is ExitCode.OK, again.problems
    settle(world)
    assert (world.delivered, world.both) == (world.lines, False)


def test_what_is_left_here_is_deleted_when_it_has_committed_there(app: App, world: MovingWorld) -> None:
    move(app)
    settle(world)
    report = move(app, DELETE)
    assert (report.exit_code, outcomes(report)) == (ExitCode.OK, {"check": "done", "remove": "done"})
    assert NAME not in world.here.connect.connectors
    assert world.delivered == world.lines


RUNS: dict[str, tuple[Any, ...]] = {"there": (), "back": (BACK,), "delete": (DELETE,)}


def begun(direction: str, world: MovingWorld, directory: Path) -> App:
    """The world before a run of this direction."""
    while_stopped(world)
    app = world.app(directory)
    if direction != "there":
        assert move(app).exit_code is ExitCode.OK
        world.lines.append("there")
        world.run(world.there)
    return app


@pytest.mark.parametrize(("direction", "clusters"), [("there", 1), ("there", 2), ("back", 1), ("delete", 2)])
def test_killed_anywhere_the_next_run_ends_as_if_nothing_had_happened(
    tmp_path: Path, direction: str, clusters: int
) -> None:
    """Whatever a kill can leave, before and after the effect of each call; then --resume, or the same command."""
    world = MovingWorld(clusters)
    app = begun(direction, world, tmp_path / "undisturbed")
    kills = worth_a_kill(world.kill, partial(move, app, *RUNS[direction]), partial(world.left, app.state_dir))
    assert len(kills) > (4 if direction == "delete" else 15), "fewer than that were never made"
    for number, kill_at in enumerate(kills):
        world = MovingWorld(clusters)
        app = begun(direction, world, tmp_path / str(kill_at))
        world.kill.ticks, world.kill.at = 0, kill_at
        with pytest.raises(KilledError):
            move(app, *RUNS[direction])
        world.kill.at = None
        world.lines.append("while it was down")
        began = journal_events(app)[-1] != "end" if journal_events(app) else False
        again = move(app, resume=True) if began and number % 2 else move(app, *RUNS[direction])
        assert again.exit_code in (ExitCode.OK, ExitCode.PARTIAL), again.problems
        assert "failed" not in outcomes(again).values(), (kill_at, again.problems)
        settle(world)
        assert (world.delivered, world.both) == (world.lines, False), f"killed at call {kill_at}"
        runs = [side.is_running(NAME) for side in world.sides]
        assert runs == ([True, False] if direction == "back" else [False, True]), f"killed at call {kill_at}"


def journal_events(app: App) -> list[str]:
    lines = [
        line
        for path in (app.state_dir / "journals").glob("connectors-move-*.ndjson")
        for line in path.read_text().splitlines()
    ]
    return [event for line in lines if (event := json.loads(line)["event"]) != "hold"]


@pytest.mark.parametrize("clusters", [2])
def test_killed_anywhere_it_can_be_taken_back(tmp_path: Path, clusters: int) -> None:
    world = MovingWorld(clusters)
    app = begun("there", world, tmp_path / "undisturbed")
    kills = worth_a_kill(world.kill, partial(move, app), partial(world.left, app.state_dir))
    for kill_at in kills:
        world = MovingWorld(clusters)
        app = begun("there", world, tmp_path / str(kill_at))
        world.kill.ticks, world.kill.at = 0, kill_at
        with pytest.raises(KilledError):
            move(app)
        world.kill.at = None
        if journal_events(app):
            again = move(app, BACK)
            assert again.exit_code in (ExitCode.OK, ExitCode.PARTIAL), again.problems
            assert "failed" not in outcomes(again).values(), (kill_at, again.problems)
        settle(world)
        assert (world.delivered, world.both) == (world.lines, False), f"killed at call {kill_at}"
        assert [side.is_running(NAME) for side in world.sides] == [True, False], f"killed at call {kill_at}"
        assert NAME not in world.there.connect.connectors, f"killed at call {kill_at}"


_FAILURES = {"network": UnreachableError("the network is gone"), "ctrl-c": KeyboardInterrupt()}


@pytest.mark.parametrize("error", _FAILURES.values(), ids=list(_FAILURES))
def test_a_call_that_fails_anywhere_is_gone_on_from(tmp_path: Path, error: BaseException) -> None:
    """Before its effect, or with its effect and without its answer."""
    world = MovingWorld(2)
    app = begun("there", world, tmp_path / "undisturbed")
    kills = worth_a_kill(world.kill, partial(move, app), partial(world.left, app.state_dir))
    for kill_at in kills:
        world = MovingWorld(2)
        app = begun("there", world, tmp_path / str(kill_at))
        world.kill.ticks, world.kill.at, world.kill.error = 0, kill_at, lambda: error
        with suppress(EosctlError, KeyboardInterrupt):
            move(app)
        world.kill.at = None
        again = move(app)
        assert "failed" not in outcomes(again).values(), (kill_at, again.problems)
        settle(world)
        assert (world.delivered, world.both) == (world.lines, False), f"failed at call {kill_at}"
        assert [side.is_running(NAME) for side in world.sides] == [False, True], f"failed at call {kill_at}"
