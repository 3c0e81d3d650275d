"""Whether tasks that were started have committed: what a former task did is no commit of theirs."""

from __future__ import annotations

import pytest

from eosctl.offsets.steps import before_the_start
from tests.fakes.world import OFFSETS, World


@pytest.mark.parametrize("hidden", [True, False])
def test_an_id_that_was_hidden_before_the_start_shows_no_commit_of_its_task(hidden: bool) -> None:
    """The former task's last commit was taken for one of the new task, which had not taken its id yet."""
    world = World()
    world.topics.add_topic(OFFSETS)
    state = world.brokers.state
    state.open_transaction("g-c-0", (OFFSETS, 0))
    state.transactions["g-c-0"].state = "CompleteCommit"
    if hidden:
        world.brokers.deny_describe.add("g-c-0")
    watch = before_the_start(world.app(), "c", OFFSETS)
    world.brokers.deny_describe.clear()
    assert watch.wait(world.app(), 1)[1] is False
    state.init_producer_id("g-c-0", 60_000)
    state.transactions["g-c-0"].state = "CompleteCommit"
    assert watch.wait(world.app(), 1)[1] is not hidden
