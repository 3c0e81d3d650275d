"""Fixtures of many rooms: a connector that moves between offsets topics, a kubectl, and `eosctl offsets …` on both.

A file that has a `world`, an `app` or a `run` of its own uses that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from tests.conftest import Invoke, Outcome
from tests.fakes.kubectl import Cluster
from tests.fakes.switching import URL, SwitchWorld
from tests.fakes.world import World


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


@pytest.fixture
def run(world: World, invoke: Invoke) -> Callable[..., Outcome]:
    def offsets(*words: str, **surroundings: Any) -> Outcome:
        where = ["-b", "memory:9092", "-g", "g", "-u", URL]
        return invoke(*where, "offsets", *words, **world.surroundings, **surroundings)

    return offsets
