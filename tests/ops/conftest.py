"""A connector that moves between offsets topics: the world of every file here that has none of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosctl.ops.app import App
from tests.fakes.kubectl import Cluster
from tests.fakes.switching import SwitchWorld


@pytest.fixture
def world() -> SwitchWorld:
    return SwitchWorld()


@pytest.fixture
def app(world: SwitchWorld, tmp_path: Path) -> App:
    return world.app(tmp_path)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A kubectl on PATH, and what it keeps."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    found = Cluster(tmp_path / "cluster")
    with found.install(directory):
        yield found
