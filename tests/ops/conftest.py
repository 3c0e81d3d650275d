"""A connector that moves between offsets topics: the world of every file here that has none of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.ops.app import App
from tests.fakes.switching import SwitchWorld


@pytest.fixture
def world() -> SwitchWorld:
    return SwitchWorld()


@pytest.fixture
def app(world: SwitchWorld, tmp_path: Path) -> App:
    return world.app(tmp_path)
