"""What the workers show of connectors and their tasks: asked of the first that answers, and never guessed."""

from __future__ import annotations

import math

import pytest

from eosctl.connectors.holders import connector_statuses
from eosctl.core.ids import WorkerId
from eosctl.core.workers.connector_entry import TaskStatus
from eosctl.errors import DeadlineError, EosctlError, RefusedError, UnauthorizedError, UnreachableError
from tests.fakes.faults import Call
from tests.fakes.two_workers import W0, W1, two_workers
from tests.fakes.world import World


@pytest.fixture
def world() -> World:
    """w0 leads and is enabled, w1 is preparing."""
    return two_workers()


def test_running_tasks_come_from_the_first_worker_that_answers(world: World) -> None:
    world.connect.down.add(W0)
    world.connect.add("b", {"tasks.max": "2"}, failed=(1,))
    world.connect.add("a", state="STOPPED")
    assert {name: entry.tasks for name, entry in connector_statuses(world.app()).items()} == {
        "a": (),
        "b": (
            TaskStatus(0, "RUNNING", WorkerId("w0:8083")),
            TaskStatus(1, "FAILED", WorkerId("w1:8083"), "java.lang.RuntimeException: it broke"),
        ),
    }


def test_running_tasks_are_not_guessed_when_no_worker_answers(world: World) -> None:
    world.connect.down |= {W0, W1}
    with pytest.raises(UnreachableError, match=f"no worker says which tasks run: .*{W0}.*{W1}"):
        connector_statuses(world.app())


def test_who_is_turned_away_by_every_worker_is_not_authorized(world: World) -> None:
    """It was exit code 4, and the advice to name a worker that can be reached."""
    world.connect.modes = {W0: "enabled"}
    world.connect.fail_next("root", UnauthorizedError("not allowed: 401", hint="Give --connect-username."))
    with pytest.raises(UnauthorizedError, match="no worker says which tasks run: not allowed: 401") as caught:
        connector_statuses(world.app(connect_urls=(W0,)))
    assert caught.value.hint == "Give --connect-username."


def test_an_empty_group_runs_nothing(world: World) -> None:
    world.connect.modes = {}
    assert connector_statuses(world.app()) == {}


def test_a_group_in_a_rebalance_is_not_taken_for_an_empty_one(world: World) -> None:
    """No member tells its URL then; this used to answer "no task runs", so that a live task could be fenced."""
    world.connect.rebalance(lasts_s=math.inf)
    with pytest.raises(UnreachableError, match="PreparingRebalance"):
        connector_statuses(world.app())


@pytest.mark.parametrize("failure", [DeadlineError("no answer in 5 s"), UnreachableError("refused")])
def test_a_worker_that_uses_up_its_time_leaves_the_question_to_the_next(world: World, failure: EosctlError) -> None:
    def fail(call: Call) -> None:
        if call.what[0] == W0:
            raise failure

    world.connect.add("c")
    world.connect.before("connectors", fail)
    assert connector_statuses(world.app()).keys() == {"c"}


def test_a_worker_of_another_cluster_proves_nothing(world: World) -> None:
    world.connect.kafka_cluster_id = "elsewhere"
    with pytest.raises(RefusedError, match=f"uses Kafka cluster elsewhere, not {world.cluster_id}"):
        connector_statuses(world.app(connect_urls=(W0,)))
    world.connect.add("c")
    assert connector_statuses(world.app(connect_urls=(W0,), client=None)).keys() == {"c"}, "nothing to compare it with"
