"""A connector whose fencing fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.rescue_scene import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(state_dir=tmp_path)
