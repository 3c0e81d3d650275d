"""A group that is gone needs no waiver; one that was never there is told from it, everywhere by the same rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from eosctl.core.transactions import RawGroup
from eosctl.core.workers.config import parse_worker_config
from eosctl.errors import NotFoundError, RefusedError, UnauthorizedError, UnreachableError
from eosctl.fence.gather import FenceRequest
from eosctl.fence.plan import plan_fence
from eosctl.group.absent import require_ever_there
from eosctl.offsets.guard import refuse_running
from eosctl.report import Report
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import created
from tests.fakes.connect import FakeConnect
from tests.fakes.fence_stage import W1, outcomes
from tests.fakes.world import CONFIGS, World
from tests.reports import codes

H1 = "http://h1:8083"


@pytest.fixture
def world() -> World:
    """Ids 0 and 1 of connector c of group g, whose only worker has stopped long ago."""
    made = World(modes={W1: "enabled"})
    made.topics.add_topic(CONFIGS, 1)
    made.brokers.state.transactions |= {"g-c-0": FakeTransaction(1, 4), "g-c-1": FakeTransaction(2, 0)}
    made.connect.stop_worker(W1)
    made.connect.forgotten = True
    return made


def plan(world: World, *, group_id: str = "g", urls: tuple[str, ...] = (), **options: Any) -> Report:
    app = world.app(group_id=group_id, connect_urls=urls)
    return plan_fence(app, FenceRequest(**options)).report(app)


def configs(world: World, pairs: Iterable[tuple[str, object]]) -> None:
    for key, value in pairs:
        world.keep_config(key, value)


@pytest.mark.parametrize("forgotten", [True, False], ids=["Dead", "Empty"])
def test_a_group_that_is_gone_needs_no_waiver(world: World, forgotten: bool) -> None:
    """It is the hour in which one fences zombies: `--connector` was refused without --live while no worker was up."""
    world.connect.forgotten = forgotten
    configs(world, created("c", 2, record=2))
    for urls in ((), (W1,)):  # nobody is there to answer
        report = plan(world, urls=urls, connector="c")
        assert (outcomes(report), codes(report)) == ({"g-c-0": "would_fence", "g-c-1": "would_fence"}, [])


def test_ids_that_coordinators_know_are_evidence_without_a_config_topic(world: World) -> None:
    del world.topics.topics[CONFIGS]
    assert outcomes(plan(world, connector="c", tasks=2)) == {"g-c-0": "would_fence", "g-c-1": "would_fence"}


def test_known_ids_count_more_than_a_config_topic_that_seems_to_be_another_groups(world: World) -> None:
    other = world.other_group("h", H1)
    other.add("c")
    configs(world, created("c", 1))
    other.config_offset = 3  # its worker has read them
    assert outcomes(plan(world, connector="c", tasks=2)) == {"g-c-0": "would_fence", "g-c-1": "would_fence"}
    with pytest.raises(RefusedError, match="seems to be another group's"):
        down(world, "g")


@pytest.mark.parametrize("live", [False, True])
def test_a_group_that_was_never_there_is_not_found_and_what_was_looked_at_is_said(world: World, live: bool) -> None:
    """A mistyped -g used to fence nothing, with exit code 0, and later was refused as if a flag were missing."""
    with pytest.raises(NotFoundError) as caught:
        plan(world, group_id="mistyped", connector="c", tasks=2, live=live)
    assert "the Connect group 'mistyped' does not exist on this Kafka cluster" in caught.value.message
    assert "no transactional id is its leader's or a task's of it" in caught.value.message
    assert "topic connect-configs has no connector c" in caught.value.message
    assert "add --unknown-liveness" in str(caught.value.hint)
    waived = plan(world, group_id="mistyped", connector="c", tasks=1, unknown_liveness=True)
    assert outcomes(waived) == {"mistyped-c-0": "skipped_unknown"}


@pytest.mark.parametrize(
    ("group_id", "each", "refused"),
    [
        ("mistyped", "mistyped-c-0", True),
        ("mistyped", "connect-cluster-mistyped", True),
        ("connect-cluster", "connect-cluster-c-0", True),  # a task's, or that of the leader of group c-0
        ("mistyped", "job", False),
        ("g", "g-c-9", False),
    ],
)
def test_an_unknown_id_needs_a_group_only_where_it_may_be_one_of_its_own(
    world: World, group_id: str, each: str, refused: bool
) -> None:
    world.brokers.state.transactions["connect-cluster-g"] = FakeTransaction(3, 0)
    world.other_group("c-0", H1)  # that its worker answers says nothing about another group
    if not refused:
        report = plan(world, group_id=group_id, urls=(H1,), transactional_ids=(each,))
        assert outcomes(report) == {each: "skipped_unknown"}
        return
    with pytest.raises(NotFoundError):
        plan(world, group_id=group_id, urls=(H1,), transactional_ids=(each,))


def down(world: World, group_id: str, connector: str = "c", **target: Any) -> None:
    """What offset commands ask with --workers-down."""
    app = world.app(group_id=group_id, connect_urls=(), **target)
    refuse_running(app, [connector], workers_down=True, force_running=False)


def empty_group(world: World, group_id: str) -> FakeConnect:
    """Another Connect group, whose only worker has just stopped."""
    made = world.other_group(group_id, "http://empty:8083")
    made.stop_worker("http://empty:8083")
    assert made.state == "Empty"
    return made


def test_workers_down_is_true_of_a_group_that_was_there(world: World) -> None:
    world.other_group("h", H1)
    down(world, "g")
    configs(world, created("new", 1))
    down(world, "g", "new")


def test_workers_down_is_refused_for_a_group_that_was_never_there(world: World) -> None:
    """A mistyped -g counted as a group without members, and offsets were written past the workers of the right one."""
    right = world.other_group("h", H1)
    with pytest.raises(NotFoundError, match="topic connect-configs has no connector c; nothing was written"):
        down(world, "mistyped")
    right.add("c")
    configs(world, created("c", 1))
    right.config_offset = 3  # they have read it
    with pytest.raises(NotFoundError, match="another group's: members of group h have connector c; nothing"):
        down(world, "mistyped")


def test_a_group_that_is_forgotten_at_this_moment_hides_no_other(world: World) -> None:
    """One that was listed and is Dead when it is described made the members of all others count as unknown."""
    right = world.other_group("h", H1)
    right.add("c")
    configs(world, created("c", 1))
    right.config_offset = 3
    world.brokers.state.groups["fading"] = RawGroup("fading", "Dead", "connect", "", ())
    with pytest.raises(NotFoundError, match="another group's: members of group h have connector c; nothing"):
        down(world, "mistyped")


def test_workers_down_is_true_where_no_connect_group_has_members(world: World) -> None:
    """Offsets may be brought to a cluster before its workers are started for the first time."""
    down(world, "new")


def test_workers_down_is_refused_while_the_worker_that_was_named_answers(world: World) -> None:
    world.other_group("h", H1)
    app = world.app(connect_urls=(H1,))
    with pytest.raises(NotFoundError, match="the worker at http://h1:8083 answers, but the Connect group 'g' does not"):
        refuse_running(app, ["c"], workers_down=True, force_running=False)


@pytest.mark.parametrize("ids", [(), ("empty-c-0",)], ids=["no ids", "ids"])
def test_workers_down_is_refused_for_an_empty_group_while_another_one_runs_by_the_config_topic(
    world: World, ids: tuple[str, ...]
) -> None:
    """A mistyped -g that was the name of another group, whose workers were down, let offsets be written at once."""
    empty_group(world, "empty")
    world.brokers.state.transactions |= {each: FakeTransaction(9, 0) for each in ids}
    right = world.other_group("h", H1)
    right.add("c")
    configs(world, created("c", 1))
    right.config_offset = 3
    with pytest.raises(RefusedError) as caught:
        down(world, "empty")
    assert caught.value.message == (
        "the group empty has no member, and topic connect-configs seems to be another group's: members of group h have "
        "connector c; nothing was written"
    )
    right.stop_worker(H1)
    down(world, "empty")  # now nobody runs it


@pytest.mark.parametrize("forgotten", [True, False], ids=["Dead", "Empty"])
def test_workers_down_is_true_of_a_group_beside_one_with_connectors_of_the_same_names(
    world: World, forgotten: bool
) -> None:
    """Blue and green: the old group, without exactly-once, has stopped, and the new one runs what it ran."""
    world.connect.forgotten = forgotten
    world.brokers.state.transactions.clear()
    right = world.other_group("h", H1)
    right.add("c")
    right.config_offset = 1_000
    configs(world, created("c", 1))
    world.brokers.state.transactions["h-c-0"] = FakeTransaction(1, 0)
    if forgotten:  # what is there may as well be the new group's
        with pytest.raises(NotFoundError, match="another group's: h-c-0 looks like an id of its connectors"):
            down(world, "g")
        del world.brokers.state.transactions["h-c-0"]
    down(world, "g")


def test_workers_down_is_refused_where_the_worker_file_is_of_another_group(world: World) -> None:
    """-g beside -w took the topics from the file, and asked a group that has nothing to do with them."""
    text = f"bootstrap.servers=b:1\ngroup.id=h\nconfig.storage.topic={CONFIGS}\n"
    theirs: dict[str, Any] = {"worker_configs": (parse_worker_config(text, source="w.properties"),)}
    world.connect.forgotten = False
    with pytest.raises(RefusedError, match=r"topic connect-configs seems .*: w\.properties has group\.id=h; nothing"):
        down(world, "g", **theirs)
    with pytest.raises(RefusedError, match=r"w\.properties has group\.id=h; nothing"):
        down(world, "new", **theirs)
    down(world, "g", config_topic="g-configs", **theirs)


def test_a_group_that_was_never_there_is_refused_where_nobody_runs_but_the_topic_has_its_connector(
    world: World,
) -> None:
    """A mistyped -g passed whenever no worker of any group was up: the hour for which --workers-down is made."""
    configs(world, created("c", 2, record=2))
    with pytest.raises(NotFoundError, match="another group's: g-c-0 looks like an id of its connectors; nothing"):
        down(world, "mistyped")
    down(world, "g")
    down(world, "mistyped", "new")  # as for the first workers of a new group


def test_workers_down_wants_the_config_topic_where_another_group_runs_a_connector_of_that_name(world: World) -> None:
    world.connect.forgotten = False
    world.brokers.state.transactions.clear()
    del world.topics.topics[CONFIGS]
    down(world, "g")
    world.other_group("h", H1).add("c")
    with pytest.raises(RefusedError, match="that shows its owner: members of group h have connector c;"):
        down(world, "g")
    down(world, "g", "d")


@pytest.mark.parametrize("known", [True, False])
def test_fence_of_an_empty_group_asks_whether_the_connector_is_its_own(world: World, known: bool) -> None:
    """The recorded ids of a mistyped group are unknown to every coordinator: exit 0, and the zombies went on."""
    empty_group(world, "empty")
    configs(world, created("c", 2, record=2))
    if known:
        world.brokers.state.transactions["empty-c-0"] = FakeTransaction(9, 0)
        expected = {"empty-c-0": "would_fence", "empty-c-1": "skipped_unknown"}
        assert outcomes(plan(world, group_id="empty", connector="c")) == expected
        return
    with pytest.raises(RefusedError, match=r"the group empty has no member, and .*: g-c-0 looks like") as caught:
        plan(world, group_id="empty", connector="c")
    assert "add --unknown-liveness" in str(caught.value.hint)


def test_what_cannot_be_looked_at_is_no_evidence(world: World) -> None:
    world.other_group("h", H1)
    world.brokers.state.transactions.clear()
    world.brokers.state.transactions["h-d-0"] = FakeTransaction(1, 0)
    world.topics.fail_always("describe", UnauthorizedError("not allowed"))
    with pytest.raises(NotFoundError, match="there is no topic connect-configs to be read"):
        down(world, "g")


def test_what_cannot_be_asked_is_no_evidence(world: World) -> None:
    """A broker that comes back after minutes knows no member, and nothing else yet: doctor said `not_found` then."""
    app = world.app(group_id="g", connect_urls=())
    world.brokers.state.transactions.clear()
    with pytest.raises(NotFoundError):
        require_ever_there(app)
    world.topics.fail_always("describe", UnreachableError("no broker answers"))
    with pytest.raises(NotFoundError):
        require_ever_there(app)
    world.brokers.calls.fail_always("list_transactions", UnreachableError("no broker answers"))
    require_ever_there(app)
