"""A migration of one connector, on topics in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.migration import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    scene.put_all(["a"])
    return scene
