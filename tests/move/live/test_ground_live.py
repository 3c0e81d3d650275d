"""What the tests of moves are judged by: a connector that runs on two sides is seen, and a line that comes twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.move.live.ground import Moved, Scene, Watcher, load
from tests.sandbox_fixtures import wait_until

pytestmark = pytest.mark.live


def test_a_connector_that_runs_on_two_sides_is_seen(scene: Scene, connector: Callable[..., Moved]) -> None:
    twice, here, beside = connector(), scene.sides["here"], scene.sides["beside"]
    with load(twice), Watcher(*scene.sides.values()) as watcher:
        wait_until(lambda: watcher.sides_of(twice.name) == ["here"], what="it to run here")
        assert watcher.together(twice.name) == []
        twice.on(beside).put()
        wait_until(lambda: watcher.together(twice.name), what="it to be seen on both sides")
        with pytest.raises(AssertionError):
            twice.assert_all_once(here)
    assert watcher.unseen == []
