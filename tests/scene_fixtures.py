"""Fixtures of many rooms: a connector that moves between offsets topics, and `eosctl offsets …` on it.

A file that has a `world`, an `app` or a `run` of its own uses that.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from tests.conftest import Invoke, Outcome
from tests.fakes.switching import URL, SwitchWorld
from tests.fakes.world import World


@pytest.fixture
def world() -> SwitchWorld:
    return SwitchWorld()


@pytest.fixture
def app(world: SwitchWorld, tmp_path: Path) -> App:
    return world.app(tmp_path)


@pytest.fixture
def run(world: World, invoke: Invoke) -> Callable[..., Outcome]:
    def offsets(*words: str, **surroundings: Any) -> Outcome:
        where = ["-b", "memory:9092", "-g", "g", "-u", URL]
        return invoke(*where, "offsets", *words, **world.surroundings, **surroundings)

    return offsets
