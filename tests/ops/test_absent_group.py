"""A group that is gone needs no waiver; one that was never there is told from it, everywhere by the same rule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eosctl.errors import RefusedError, UnauthorizedError
from eosctl.ops.fence import plan_fence
from eosctl.ops.fence_gather import FenceRequest
from eosctl.ops.migrate_guard import refuse_running
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import created
from tests.fakes.fence_stage import W1, Stage, codes, fence_stage, outcomes

H1 = "http://h1:8083"


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Ids of group g, whose only worker has stopped long ago."""
    with fence_stage() as built:
        built.connect.stop_worker(W1)
        built.connect.forgotten = True
        yield built


@pytest.mark.parametrize("forgotten", [True, False], ids=["Dead", "Empty"])
def test_a_group_that_is_gone_needs_no_waiver(stage: Stage, forgotten: bool) -> None:
    """It is the hour in which one fences zombies: `--connector` was refused without --live while no worker was up."""
    stage.connect.forgotten = forgotten
    stage.configs(created("c", 2, record=2))
    for urls in ((), (W1,)):  # nobody is there to answer
        report = plan_fence(stage.app(connect_urls=urls), FenceRequest(connector="c")).report(stage.app())
        assert (outcomes(report), codes(report)) == ({"g-c-0": "would_fence", "g-c-1": "would_fence"}, [])


def test_ids_that_coordinators_know_are_evidence_without_a_config_topic(stage: Stage) -> None:
    del stage.topics.topics["connect-configs"]
    assert outcomes(stage.plan(connector="c", tasks=2)) == {"g-c-0": "would_fence", "g-c-1": "would_fence"}


def test_a_connector_of_a_group_that_was_never_there_is_refused_with_what_was_looked_at(stage: Stage) -> None:
    """A mistyped -g used to fence nothing, with exit code 0."""
    stage.asked_group = "mistyped"
    with pytest.raises(RefusedError) as caught:
        stage.plan(connector="c", tasks=2)
    assert "the Connect group 'mistyped' does not exist on this Kafka cluster" in caught.value.message
    assert "no transactional id is its leader's or a task's of it" in caught.value.message
    assert "topic connect-configs has no connector c" in caught.value.message
    assert set(outcomes(stage.plan(connector="c", tasks=1, unknown_liveness=True)).values()) == {"skipped_unknown"}


def down(stage: Stage, group_id: str, connector: str = "c") -> None:
    """What offset commands ask with --workers-down."""
    app = stage.app(group_id=group_id, connect_urls=())
    refuse_running(app, [connector], workers_down=True, force_running=False)


def test_workers_down_is_true_of_a_group_that_was_there(stage: Stage) -> None:
    stage.other_group("h", H1)
    down(stage, "g")
    stage.configs(created("new", 1))
    down(stage, "g", "new")


def test_workers_down_is_refused_for_a_group_that_was_never_there(stage: Stage) -> None:
    """A mistyped -g counted as a group without members, and offsets were written past the workers of the right one."""
    right = stage.other_group("h", H1)
    with pytest.raises(RefusedError, match="topic connect-configs has no connector c; nothing was written"):
        down(stage, "mistyped")
    right.add("c")
    stage.configs(created("c", 1))
    with pytest.raises(RefusedError, match="another group's: members of group h have connector c; nothing"):
        down(stage, "mistyped")


def test_workers_down_is_true_where_no_connect_group_has_members(stage: Stage) -> None:
    """Offsets may be brought to a cluster before its workers are started for the first time."""
    down(stage, "new")


def test_workers_down_is_refused_while_the_worker_that_was_named_answers(stage: Stage) -> None:
    stage.other_group("h", H1)
    app = stage.app(connect_urls=(H1,))
    with pytest.raises(RefusedError, match="the worker at http://h1:8083 answers, but the Connect group 'g' does not"):
        refuse_running(app, ["c"], workers_down=True, force_running=False)


def test_what_cannot_be_looked_at_is_no_evidence(stage: Stage) -> None:
    stage.other_group("h", H1)
    stage.brokers.state.transactions.clear()
    stage.brokers.state.transactions["h-d-0"] = FakeTransaction(1, 0)
    stage.topics.fail_always("describe", UnauthorizedError("not allowed"))
    with pytest.raises(RefusedError, match="there is no topic connect-configs to be read"):
        down(stage, "g")
