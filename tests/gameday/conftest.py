"""The cluster of the game day: one broker, two workers, and nothing that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eosctl.core.workers.modes import Mode
from eosctl.sandbox.settings import GroupSpec, StackSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.gameday.ground import ONE_BROKER, Ground
from tests.sandbox_fixtures import GROUP, sandbox

BROKER = {"log.cleaner.backoff.ms": "500"}
"""A record that only compaction removes is gone soon."""


@pytest.fixture(scope="session")
def game_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One broker and two workers in `enabled`, Kafka 4.3.1, group and topics as in `stack`.

    Each incident leaves it as it was, so that doctor finds nothing.
    """
    spec = StackSpec(groups=(GroupSpec(modes=(Mode.ENABLED,) * 2),), broker_config=BROKER)
    with sandbox(spec, tmp_path_factory, name="game") as started:
        yield started


@pytest.fixture
def ground(game_stack: Stack, invoke: Invoke, tmp_path: Path) -> Ground:
    """The group of `game_stack`."""
    return Ground(game_stack, GROUP, invoke, tmp_path, ONE_BROKER)
