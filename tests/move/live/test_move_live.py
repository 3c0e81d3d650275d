"""`connectors move` between real Connect groups under load: each line is delivered once, and never by both sides."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.audit.proven import assert_exactly_once
from tests.conftest import Invoke
from tests.move.live.ground import Moved, Scene, Watcher, load
from tests.sandbox_fixtures import rest

pytestmark = pytest.mark.live


def test_to_another_group_of_the_same_kafka_and_back(scene: Scene, connector: Callable[..., Moved]) -> None:
    """One with an offsets topic of its own, and one with the global topic that gets another name there.

    `audit` knows one group at a time; each move has audited both sides up to and from the handover.
    """
    here, beside = scene.sides["here"], scene.sides["beside"]
    own, shared = connector("own", **{"offsets.storage.topic": "own-of-moves"}), connector("shared")
    renamed = f"{shared.name}-renamed"
    with load(own, shared), Watcher(here, beside) as watcher:
        for moved in (own, shared):
            moved.on(here).wait_running()
        scene.move("here", "--connector", own.name, "--to", "beside", "--set", "batch.size=1000")
        scene.move("here", "--connector", shared.name, "--to", "beside", "--rename", renamed)
        for name, there in ((own.name, own.name), (shared.name, renamed)):
            assert (here.state(name), beside.state(there)) == ("STOPPED", "RUNNING")
        assert rest(f"{beside.url}/connectors/{own.name}/config")["batch.size"] == "1000"
        scene.move("here", "--connector", own.name, "--to", "beside", "--back")
        assert (here.state(own.name), own.name in beside.names()) == ("RUNNING", False)
        scene.move("here", "--connector", shared.name, "--to", "beside", "--delete")
        assert shared.name not in here.names()
        for moved in (own, shared):
            moved.assert_all_once(here)
    assert watcher.together(own.name) == watcher.together(shared.name, renamed) == []
    assert watcher.sides_of(own.name) == ["here", "beside", "here"]
    assert watcher.sides_of(shared.name, renamed) == ["here", "beside"]
    assert watcher.unseen == []


def test_to_another_kafka_cluster_and_back(scene: Scene, connector: Callable[..., Moved], invoke: Invoke) -> None:
    """What was delivered before the move stays in the topic there; what comes after it is in the other one's."""
    here, away = scene.sides["here"], scene.sides["away"]
    own, shared = connector("own", **{"offsets.storage.topic": "own-of-moves"}), connector("shared")
    with load(own, shared), Watcher(here, away) as watcher:
        for moved in (own, shared):
            moved.on(here).wait_running()
        scene.move("here", "--match", f"{own.name.removesuffix('own')}*", "--to", "away")
        assert {away.state(moved.name) for moved in (own, shared)} == {"RUNNING"}
        scene.move("here", "--connector", shared.name, "--to", "away", "--back")
        before, after = own.assert_all_once(here, away)
        assert before[-1] < after[0]
        again, between = shared.assert_all_once(here, away)
        assert again[0] < between[0] <= between[-1] < again[-1]
    for moved in (own, shared):
        assert watcher.together(moved.name) == []
        assert_exactly_once(invoke, scene.flags("here"), moved.name)
    assert_exactly_once(invoke, scene.flags("away"), own.name)
    assert watcher.sides_of(own.name) == ["here", "away"]
    assert watcher.sides_of(shared.name) == ["here", "away", "here"]
