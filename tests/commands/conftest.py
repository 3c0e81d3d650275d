"""`eosctl offsets …` on the `world` of a file here, unless it has a `run` of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Invoke, Outcome
from tests.fakes.switching import URL
from tests.fakes.world import World


@pytest.fixture
def run(world: World, invoke: Invoke) -> Callable[..., Outcome]:
    def offsets(*words: str, **surroundings: Any) -> Outcome:
        where = ["-b", "memory:9092", "-g", "g", "-u", URL]
        return invoke(*where, "offsets", *words, **world.surroundings, **surroundings)

    return offsets
