"""An incident of plugins: a worker that lacks the class of a connector which runs on the other one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eosctl.core.workers.modes import Mode
from eosctl.sandbox.settings import GroupSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.gameday.ground import ONE_BROKER, Ground
from tests.gameday.incident import Incident, Named, play
from tests.gameday.test_workers_live import last_worker
from tests.sandbox_fixtures import SLOW_SOURCE, added_group, rest, slow_config, wait_until

pytestmark = pytest.mark.live
PLUGGED = "plugged"


@pytest.fixture(scope="module")
def group(game_stack: Stack) -> Iterator[Stack]:
    """Two workers that have a plugin beside Kafka's own."""
    plugin = {"plugin.path": str(SLOW_SOURCE)}
    with added_group(game_stack, GroupSpec(PLUGGED, (Mode.ENABLED,) * 2, worker_config=plugin)):
        yield game_stack


@pytest.fixture
def ground(group: Stack, invoke: Invoke, tmp_path: Path) -> Ground:
    """The group of the workers with the plugin."""
    return Ground(group, PLUGGED, invoke, tmp_path, ONE_BROKER)


def restart_with(ground: Ground, text: str) -> None:
    """Start the last worker again with this file."""
    node = last_worker(ground)
    ground.stack.stop_node(node.name)
    Path(node.config).write_text(text, encoding="ascii")
    ground.stack.start_node(node.name)


@contextmanager
def plugin_lost(ground: Ground, name: str) -> Iterator[None]:
    """The last worker finds an empty folder; the connector's config is committed, and its other tasks run."""
    path, at = Path(last_worker(ground).config), f"{ground.urls[0]}/connectors/{name}"
    whole = path.read_text("ascii")
    empty = ground.folder / "empty"
    empty.mkdir()

    def states() -> list[str]:
        return sorted(task["state"] for task in rest(f"{at}/status")["tasks"])

    rest(f"{at}/config", "PUT", slow_config(f"topic-{name}", tasks=4, poll_ms=500))
    try:
        wait_until(lambda: states() == ["RUNNING"] * 4, what="the tasks to run")
        restart_with(ground, f"{whole}\nplugin.path={empty}\n")
        wait_until(lambda: states() == ["FAILED"] * 2 + ["RUNNING"] * 2, what="its tasks there to fail")
        yield
        wait_until(lambda: states() == ["RUNNING"] * 4, what="the tasks to run again")
    finally:
        rest(at, "DELETE")
        if path.read_text("ascii") != whole:
            restart_with(ground, whole)


def _put_it_back(ground: Ground) -> None:
    [line] = [line for line in Path(last_worker(ground).config).read_text("ascii").splitlines() if "empty" in line]
    restart_with(ground, Path(last_worker(ground).config).read_text("ascii").replace(f"\n{line}\n", ""))


MISSING = Incident(
    "a plugin is on one of two workers",
    plugin_lost,
    (Named("plugin_missing", "{worker}", follows=("connector_type_unknown",)),),
    ("eosctl connectors restart --failed {}",),
    by_hand=_put_it_back,
)


def test_it_is_named_and_the_printed_remedy_heals(ground: Ground, unique: str) -> None:
    """The fix was to delete the connector, whose config was committed, and which ran on the other worker."""
    play(MISSING, ground, unique)
