"""A connector that moves between two groups in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.app import App
from tests.fakes.moving import MovingWorld


@pytest.fixture(params=[1, 2], ids=["one cluster", "two clusters"])
def world(request: pytest.FixtureRequest) -> MovingWorld:
    return MovingWorld(clusters=request.param)


@pytest.fixture
def app(world: MovingWorld, tmp_path: Path) -> App:
    return world.app(tmp_path)
