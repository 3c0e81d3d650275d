"""kill -9, Ctrl-C and dead workers in the middle of moves under load: `--resume` goes on, and each line comes once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest

import pytest

from eosctl.sandbox.servers import process
from tests.audit.proven import assert_exactly_once
from tests.conftest import Invoke
from tests.move.live.ground import Moved, Scene, Watcher, load
from tests.sandbox_fixtures import wait_until

pytestmark = pytest.mark.live

WALKERS = 3
WAYS = {"there": (), "back": ("--back",)}


def test_killed_at_every_step_on_both_ways_and_resumed(
    scene: Scene, connector: Callable[..., Moved], invoke: Invoke
) -> None:
    """One goes there and back undisturbed, which shows the moments; three others are each killed at a third of them."""
    here, beside = scene.sides["here"], scene.sides["beside"]
    scout, *walkers = [connector(str(number)) for number in range(WALKERS + 1)]
    with load(scout, *walkers), Watcher(here, beside) as watcher:
        for moved in (scout, *walkers):
            moved.on(here).wait_running()
        moments = {way: len(undisturbed(scene, scout, way)) for way in WAYS}
        shares = [[range(first, last + 1, WALKERS) for last in moments.values()] for first in range(1, WALKERS + 1)]
        with ThreadPoolExecutor(WALKERS) as pool:
            walks = [pool.submit(walk, scene, *each) for each in zip(walkers, shares, strict=True)]
            for each in walks:
                each.result()
        for moved in (scout, *walkers):
            moved.assert_all_once(here)
    assert watcher.unseen == []
    for moved in (scout, *walkers):
        assert watcher.together(moved.name) == []
        assert len(watcher.sides_of(moved.name)) >= 3, "it ran there, and here again"
        assert_exactly_once(invoke, scene.flags("here"), moved.name)


def way_of(moved: Moved, way: str) -> tuple[str, ...]:
    return ("--connector", moved.name, "--to", "beside", *WAYS[way])


def undisturbed(scene: Scene, moved: Moved, way: str) -> list[str]:
    """The moments of a move that nothing disturbs."""
    ticking = scene.start("here", *way_of(moved, way))
    done = ticking.wait()
    assert done.exit_code == 0, done.stdout + done.stderr
    return ticking.ticks()


def walk(scene: Scene, moved: Moved, moments: Sequence[Sequence[int]]) -> None:
    """There and back, again and again: each move is killed at a moment of its own, and goes on."""
    for pair in zip_longest(*moments):
        for way, at in zip(WAYS, pair, strict=True):
            if at is not None:
                killed = scene.start("here", *way_of(moved, way), at=at).wait()
                assert killed.exit_code == -signal.SIGKILL, (way, at, killed.stdout + killed.stderr)
            again = scene.start("here", *way_of(moved, way)).wait()
            assert again.exit_code == 0, (way, at, again.stdout + again.stderr)


def test_ctrl_c_between_two_writes(scene: Scene, connector: Callable[..., Moved]) -> None:
    """It is created there by then: exit code 130, neither side runs, and the same command goes on."""
    here, beside = scene.sides["here"], scene.sides["beside"]
    moved = connector()
    with load(moved), Watcher(here, beside) as watcher:
        moved.on(here).wait_running()
        stopped = scene.start("here", *way_of(moved, "there"), at="/resume", signal_number=signal.SIGINT).wait()
        assert stopped.exit_code == 130, stopped.stdout + stopped.stderr
        assert here.state(moved.name) == "STOPPED"
        scene.move("here", "--connector", moved.name, "--resume")
        assert (here.state(moved.name), beside.state(moved.name)) == ("STOPPED", "RUNNING")
        moved.assert_all_once(here)
    assert watcher.together(moved.name) == []


def test_the_worker_there_dies_before_it_is_resumed(scene: Scene, connector: Callable[..., Moved]) -> None:
    """It is not started here by itself: whether it runs there is not known. With the worker back, the move goes on."""
    here, beside = scene.sides["here"], scene.sides["beside"]
    moved = connector()
    worker = beside.stack.node("beside-worker-0")
    with load(moved):
        moved.on(here).wait_running()
        halted = scene.start("here", *way_of(moved, "there"), at="/resume", signal_number=signal.SIGSTOP)
        halted.wait_halted()
        process.kill([worker.process])
        halted.go_on()
        failed = halted.wait()
        assert failed.exit_code in (4, 7), failed.stdout + failed.stderr
        assert "--resume" in failed.stderr
        assert here.state(moved.name) == "STOPPED"
        refused = scene.start("here", "--connector", moved.name, "--resume").wait()
        assert refused.exit_code in (4, 6), refused.stdout + refused.stderr
        assert here.state(moved.name) == "STOPPED"
        beside.stack.start_node(worker.name)
        wait_until(lambda: moved.name in beside.names(), what="the worker to know it")
        scene.move("here", "--connector", moved.name, "--resume")
        assert beside.state(moved.name) == "RUNNING"
        moved.assert_all_once(here)
