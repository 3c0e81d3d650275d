"""What the tests of looks share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collect.watched import Watched


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)
