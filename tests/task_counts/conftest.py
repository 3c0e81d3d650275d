"""A connector whose task-count record is written, on brokers and workers in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.rescue_scene import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(state_dir=tmp_path)
