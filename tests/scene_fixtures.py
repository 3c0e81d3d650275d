"""Fixtures of many rooms: a connector that moves between offsets topics, `eosctl offsets …` on it, and transactions.

A room or a file that has a `world`, an `app`, a `stage` or a `run` of its own uses that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from tests.conftest import Invoke, Outcome
from tests.fakes.offset_topics import OffsetWorld
from tests.fakes.switching import SwitchWorld
from tests.fakes.transactions import Scene, scene


@pytest.fixture
def world() -> SwitchWorld:
    return SwitchWorld()


@pytest.fixture
def app(world: OffsetWorld | SwitchWorld, tmp_path: Path) -> App:
    return world.app(tmp_path)


@pytest.fixture
def stage() -> Iterator[Scene]:
    """The scene of the commands about transactions."""
    with scene() as built:
        yield built


@pytest.fixture
def run(world: OffsetWorld | SwitchWorld, invoke: Invoke) -> Callable[..., Outcome]:
    """`run("lint", …)` is `eosctl offsets lint …` on `world`; `url=False` names no worker."""

    def offsets(*words: str, url: bool = True, **more: Any) -> Outcome:
        where = world.flags if url else world.flags[:4]
        return invoke(*where, "offsets", *words, **{**world.surroundings, **more})

    return offsets
