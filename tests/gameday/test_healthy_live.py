"""Clusters of one broker with which nothing is wrong: doctor has neither error nor warning, and exits with 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.sandbox.settings import Eos, GroupSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.gameday.ground import ONE_BROKER, Ground
from tests.sandbox_fixtures import added_group

pytestmark = pytest.mark.live
NEVER = "never-enabled"


def test_two_idle_workers(ground: Ground) -> None:
    ground.wait_until_quiet()


def test_a_source_and_a_sink(ground: Ground, unique: str) -> None:
    with ground.source(unique), ground.running({f"sink-{unique}": ground.sink()}):
        ground.wait_until_quiet()


def test_never_exactly_once(game_stack: Stack, invoke: Invoke, unique: str, tmp_path: Path) -> None:
    with added_group(game_stack, GroupSpec(NEVER, (Eos.DISABLED,))):
        ground = Ground(game_stack, NEVER, invoke, tmp_path, ONE_BROKER)
        with ground.source(unique), ground.running({f"sink-{unique}": ground.sink()}):
            ground.wait_until_quiet()
