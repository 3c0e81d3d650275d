"""kill -9, Ctrl-C and dead workers in the middle of moves under load: `--resume` goes on, and each line comes once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from eosctl.sandbox.servers import process
from tests.audit.proven import assert_exactly_once
from tests.conftest import Invoke
from tests.move.live.ground import Moved, Scene, Watcher, load
from tests.sandbox_fixtures import wait_until

pytestmark = pytest.mark.live

THERE = ("start stop", "start create", "start offsets", "/resume", "start resume")
BACK = ("start stop", "start offsets", "/resume", "start resume")
"""A step that changes something is done and not noted ("start …"); it is noted that it is resumed, and the worker is
not asked yet.
"""


def killed_at(scene: Scene, side: str, words: Sequence[str], moments: Sequence[str]) -> None:
    """One move that is killed again and again, each time a step further, and that ends at last."""
    for at in moments:
        killed = scene.start(side, *words, at=at).wait()
        assert killed.exit_code == -signal.SIGKILL, (at, killed.stderr)
    scene.move(side, *words)


def test_killed_after_every_change_on_the_way_there_and_back(
    scene: Scene, connector: Callable[..., Moved], invoke: Invoke
) -> None:
    """One is killed on its way to a group of the same Kafka, another one on its way back from there to its own Kafka.

    `tests/move/test_move.py` has every other moment, in memory.
    """
    leaving, returning = connector("leaving"), connector("returning", on="away")
    with load(leaving, returning), Watcher(*scene.sides.values()) as watcher:
        scene.move("away", "--connector", returning.name, "--to", "here")
        there = ("--connector", leaving.name, "--to", "beside")
        back = ("--connector", returning.name, "--to", "here", "--back")
        removed = (f"DELETE /connectors/{returning.name}", "start remove")
        with ThreadPoolExecutor(2) as pool:
            ways = [
                pool.submit(killed_at, scene, "here", there, THERE),
                pool.submit(killed_at, scene, "away", back, (*BACK, *removed)),
            ]
            for way in ways:
                way.result()
        leaving.assert_all_once(scene.sides["here"])
        returning.assert_all_once(scene.sides["away"], scene.sides["here"])
    assert watcher.unseen == []
    assert watcher.together(leaving.name) == watcher.together(returning.name) == []
    assert watcher.sides_of(leaving.name) == ["here", "beside"]
    assert watcher.sides_of(returning.name) == ["away", "here", "away"]
    assert_exactly_once(invoke, scene.flags("away"), returning.name)


def test_ctrl_c_and_then_the_worker_there_dies(scene: Scene, connector: Callable[..., Moved]) -> None:
    """It is not started here by itself: whether it runs there is not known. With the worker back, the move goes on."""
    here, beside = scene.sides["here"], scene.sides["beside"]
    moved = connector()
    worker = beside.stack.node("beside-worker-0")
    words = ("--connector", moved.name, "--to", "beside")
    with load(moved):
        moved.on(here).wait_running()
        stopped = scene.start("here", *words, at="start create", signal_number=signal.SIGINT).wait()
        assert stopped.exit_code == 130, stopped.stderr
        assert (here.state(moved.name), beside.state(moved.name)) == ("STOPPED", "STOPPED")

        halted = scene.start("here", *words, at="/resume", signal_number=signal.SIGSTOP)
        halted.wait_halted()
        process.kill([worker.process])
        halted.go_on()
        failed = halted.wait()
        assert failed.exit_code == 7, failed.stderr
        assert f"--connector {moved.name} --resume" in failed.stderr
        for way in ("--resume", "--back"):
            refused = scene.run("here", "--connector", moved.name, way)
            assert refused.exit_code in (4, 6), refused.stderr
            assert here.state(moved.name) == "STOPPED"

        beside.stack.start_node(worker.name)
        wait_until(lambda: moved.name in beside.names(), what="the worker to know it")
        scene.move("here", "--connector", moved.name, "--resume")
        assert beside.state(moved.name) == "RUNNING"
        moved.assert_all_once(here)
