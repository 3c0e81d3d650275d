"""Clusters of one broker with which nothing is wrong: doctor has neither error nor warning, and exits with 0."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eosctl.core.findings import WARNING
from eosctl.core.java.properties import set_property
from eosctl.core.workers.modes import Mode
from eosctl.sandbox.settings import GroupSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.gameday.ground import ONE_BROKER, Ground
from tests.gameday.incident import Incident, Named, play
from tests.sandbox_fixtures import added_group

pytestmark = pytest.mark.live
NEVER = "never-enabled"


def test_two_idle_workers(ground: Ground) -> None:
    ground.wait_until_quiet()


def test_a_source_and_a_sink(ground: Ground, unique: str) -> None:
    with ground.source(unique), ground.running({f"sink-{unique}": ground.sink()}):
        ground.wait_until_quiet()


@contextmanager
def as_it_is(_ground: Ground, _name: str) -> Iterator[None]:
    yield


def sign(ground: Ground) -> None:
    """Sets the protocol that signs what workers ask of each other, as doctor says."""
    [node] = [node for node in ground.stack.state.of_kind("worker") if node.group_id == ground.group]
    config = Path(node.config)
    config.write_text(set_property(config.read_text(encoding="ascii"), "connect.protocol", "sessioned"))
    ground.stack.restart_node(node.name)


UNSIGNED = Incident(
    "workers whose requests are not signed", as_it_is, (Named("unsigned_protocol", "workers", WARNING),), by_hand=sign
)


def test_never_exactly_once(game_stack: Stack, invoke: Invoke, unique: str, tmp_path: Path) -> None:
    group = GroupSpec(NEVER, (Mode.DISABLED,), worker_config={"connect.protocol": "compatible"})
    with added_group(game_stack, group):
        ground = Ground(game_stack, NEVER, invoke, tmp_path, ONE_BROKER)
        play(UNSIGNED, ground, unique)
        with ground.source(unique), ground.running({f"sink-{unique}": ground.sink()}):
            ground.wait_until_quiet()
