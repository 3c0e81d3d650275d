"""Who holds a task: one rule for all commands that must not meet one that runs, and one look."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.connectors.holders import (
    HeldTask,
    Holding,
    TaskHolders,
    connector_statuses,
    group_or_doubt,
    holders_now,
    is_at_rest,
    judge_task,
    who_holds,
)
from eosctl.core.ids import WorkerId
from eosctl.core.workers.connector_entry import TaskStatus
from eosctl.errors import EosctlError, RefusedError, StalePlanError, UnreachableError
from eosctl.fence.gather import FenceRequest
from eosctl.fence.plan import plan_fence
from eosctl.offsets.guard import refuse_running
from eosctl.rescue.plan import plan_rescue
from eosctl.task_counts.write import WriteRequest, apply_write, plan_write
from tests.fakes.rescue_scene import Scene, stop
from tests.fakes.world import World

W0, W1, W2, STRANGER = WorkerId("w0:8083"), WorkerId("w1:8083"), WorkerId("w2:8083"), WorkerId("x:8083")
FOLLOWER = "http://w9:8083"


@pytest.mark.parametrize(
    ("state", "worker", "holders", "members", "started", "stopped"),
    [
        ("RUNNING", W1, [W1], [W1, W2], Holding.RUNS, Holding.HELD),
        ("PAUSED", W1, [W1], [W1, W2], Holding.RUNS, Holding.HELD),
        ("FAILED", W1, [W1], [W1, W2], Holding.FAILED, Holding.FAILED),
        ("UNASSIGNED", W1, [W1], [W1, W2], Holding.HELD, Holding.HELD),  # it has a producer before REST says RUNNING
        ("UNASSIGNED", W1, [], [W1, W2], Holding.FREE, Holding.FREE),
        ("DESTROYED", W1, [W1], [W1, W2], Holding.FAILED, Holding.FAILED),
        (None, None, [W1], [W1, W2], Holding.HELD, Holding.HELD),  # REST does not know it
        ("FAILED", W2, [W1], [W1, W2], Holding.HELD, Holding.HELD),  # it has moved since
        ("FAILED", STRANGER, [W1], [W1], Holding.HELD, Holding.HELD),  # a worker of another group
        ("RUNNING", W2, [W1], [W1, W2], Holding.RUNS, Holding.HELD),  # it is moving
        ("RUNNING", STRANGER, [W1], [W1], Holding.HELD, Holding.HELD),
        ("RUNNING", STRANGER, [], [W1], Holding.UNKNOWN, Holding.UNKNOWN),
        ("UNASSIGNED", STRANGER, [], [W1], Holding.UNKNOWN, Holding.UNKNOWN),
        ("FAILED", STRANGER, [], [W1], Holding.UNKNOWN, Holding.UNKNOWN),
        ("RUNNING", W1, [], [W1], Holding.RUNS, Holding.FREE),  # REST shows it for minutes after the stop
        ("FAILED", W1, [], [W1], Holding.FREE, Holding.FREE),
        ("RUNNING", STRANGER, [], None, Holding.RUNS, Holding.RUNS),  # nobody says who is a member
        ("FAILED", STRANGER, [], None, Holding.UNKNOWN, Holding.UNKNOWN),
        (None, None, [], None, Holding.UNKNOWN, Holding.UNKNOWN),
        (None, None, [], [W1], Holding.FREE, Holding.FREE),
        (None, None, [], [], Holding.FREE, Holding.FREE),
    ],
)
def test_who_holds_a_task(
    state: str | None,
    worker: WorkerId | None,
    holders: list[WorkerId],
    members: list[WorkerId] | None,
    started: Holding,
    stopped: Holding,
) -> None:
    """What REST shows counts for members of the group; what it does not show is no proof of anything."""
    status = None if state is None or worker is None else TaskStatus(0, state, worker)
    for is_stopped, holding in ((False, started), (True, stopped)):
        assert judge_task(status, stopped=is_stopped, holders=holders, members=members) is holding


@pytest.fixture
def ending(scene: Scene) -> Scene:
    """Connector c, STOPPED, whose follower has not let go of task 0, which REST shows no more."""
    scene.connect.modes[FOLLOWER] = "enabled"
    stop(scene)
    scene.connect.stops_slowly["c", 0] = 1000.0
    scene.connect.take(("c", 0), FOLLOWER)
    scene.connector.tasks.clear()
    return scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize(("timeout_s", "patience_s"), [(60.0, 15.0), (20.0, 10.0)])
def test_the_patience_with_an_ending_task_leaves_half_of_the_time(
    ending: Scene, timeout_s: float, patience_s: float
) -> None:
    began_s = ending.time.now_s
    held = who_holds(ending.app(timeout_s=timeout_s), ["c"])
    assert [task.holding for task in held.tasks.values()] == [Holding.HELD]
    assert ending.time.now_s - began_s == pytest.approx(patience_s)


def test_only_a_stopped_connector_that_nobody_holds_is_at_rest(ending: Scene) -> None:
    def rests() -> bool:
        return is_at_rest(ending.app(), "c", connector_statuses(ending.app())["c"])

    assert not rests()
    ending.time.sleep(1000)
    assert rests()
    ending.connector.state = "RUNNING"
    assert not rests()


@pytest.mark.parametrize(
    ("others", "shown_at", "silent", "waits"),
    [
        ([], [], False, True),
        ([Holding.FREE, Holding.FAILED], [], False, True),
        ([Holding.FREE, Holding.HELD], [], False, False),
        ([Holding.RUNS], [], False, False),
        ([], [W0, STRANGER], False, True),
        ([], [STRANGER], False, False),  # the workers are of another group
        ([], [], True, False),
    ],
)
def test_what_is_waited_for(
    scene: Scene, others: list[Holding], shown_at: list[WorkerId], silent: bool, waits: bool
) -> None:
    """A task of a connector that REST shows no more, and tasks of one that it shows, held by nobody or by a member."""
    group, _doubt = group_or_doubt(scene.app())
    assert group is not None
    ended = HeldTask("deleted", 0, Holding.HELD, None, group.members)
    left = [HeldTask("c", task, holding) for task, holding in enumerate(others)]
    shown = connector_statuses(scene.app())["c"]
    shown = replace(shown, tasks=tuple(TaskStatus(0, "RUNNING", worker) for worker in shown_at))
    held = TaskHolders(
        {(each.connector, each.task): each for each in (ended, *left)},
        {"c": shown},
        group,
        silence=UnreachableError("silent") if silent else None,
    )
    assert held.is_worth_waiting_for() is waits


def test_workers_that_are_silent_show_no_task_to_be_free(scene: Scene) -> None:
    scene.connect.down |= set(scene.connect.modes)
    held = holders_now(scene.app(), ["c"])
    assert (held.tasks, isinstance(held.silence, UnreachableError), held.is_at_rest("c")) == ({}, True, False)


def test_every_command_meets_a_task_that_rest_shows_no_more(ending: Scene) -> None:
    """`task-counts write --no-fence` asked REST alone: it wrote while a follower still had the task."""
    with pytest.raises(RefusedError, match="still ending: task 0 of c at http://w9:8083"):
        refuse_running(ending.app(), ["c"], workers_down=False, force_running=False)
    with pytest.raises(RefusedError, match="worker w9:8083 of group g may run their tasks"):
        plan_fence(ending.app(), FenceRequest(connector="c"))
    for fence in (True, False):
        with pytest.raises(RefusedError, match="connector c has 1 task"):
            plan_write(ending.app(), WriteRequest("c", 5, fence))
    assert ending.records() == []


def test_a_task_that_ends_in_time_is_waited_for_by_every_command(scene: Scene, tmp_path: Path) -> None:
    scene.connect.modes[FOLLOWER] = "enabled"
    stop(scene)
    scene.connect.stops_slowly["c", 0] = 4.0
    scene.connect.take(("c", 0), FOLLOWER)
    scene.connector.tasks.clear()
    began_s = scene.time.now_s
    plan = plan_write(scene.app(), WriteRequest("c", 5, fence=False))
    assert scene.time.now_s - began_s >= 4.0
    refuse_running(scene.app(), ["c"], workers_down=False, force_running=False)
    assert apply_write(scene.app(tmp_path), plan).exit_code == 0


def test_a_task_that_a_follower_took_since_the_plan_stops_the_record(scene: Scene, tmp_path: Path) -> None:
    stop(scene)
    plan = plan_write(scene.app(tmp_path), WriteRequest("c", 5, fence=False))
    scene.connect.modes[FOLLOWER] = "enabled"
    scene.connect.stops_slowly["c", 0] = 1000.0
    scene.connect.take(("c", 0), FOLLOWER)
    scene.connector.tasks.clear()
    with pytest.raises((RefusedError, StalePlanError)):
        apply_write(scene.app(tmp_path), plan)
    assert scene.records() == []


def test_members_that_are_not_known_are_no_members_without_tasks(scene: Scene) -> None:
    """A group that may not be described was taken for one whose members hold nothing: offsets were written."""
    stop(scene)
    scene.connector.tasks.clear()
    refuse_running(scene.app(), ["c"], workers_down=False, force_running=False)
    scene.brokers.deny_groups.add("g")
    held = who_holds(scene.app(), ["c"])
    assert (held.group, held.is_at_rest("c")) == (None, False)
    with pytest.raises(RefusedError, match="whether a worker still runs their tasks is not known"):
        refuse_running(scene.app(), ["c"], workers_down=False, force_running=False)


def test_a_worker_that_answers_is_of_another_group_than_one_without_members(scene: Scene) -> None:
    stop(scene)
    scene.connector.tasks.clear()
    with pytest.raises(EosctlError, match="a worker answers, and the group another has no member"):
        refuse_running(scene.app(group_id="another"), ["c"], workers_down=False, force_running=False)


def test_a_group_in_a_rebalance_is_not_at_rest(scene: Scene) -> None:
    stop(scene)
    scene.connector.tasks.clear()
    scene.connect.rebalance(math.inf)
    held = holders_now(scene.app(), ["c"])
    assert (held.tasks, held.doubt is None, held.is_at_rest("c")) == ({}, False, False)


def test_without_a_group_rest_is_all_there_is(scene: Scene) -> None:
    stop(scene)
    scene.connector.tasks.clear()
    held = holders_now(scene.app(group_id=None), ["c"])
    assert (held.group, held.doubt, held.is_at_rest("c")) == (None, None, True)


def test_rescue_does_not_believe_in_a_failure_at_a_worker_that_has_lost_the_task(scene: Scene) -> None:
    """REST shows the status that was written last: the task may run elsewhere by now."""
    assert plan_rescue(scene.app(), "c").steps
    scene.connect.modes[FOLLOWER] = "enabled"
    scene.connect.own(FOLLOWER, ("c", 0))
    scene.connector.tasks[0].url = "http://w0:8083"
    with pytest.raises(RefusedError, match="whether task 0 of c at http://w9:8083 runs is not known"):
        plan_rescue(scene.app(), "c")


def test_the_name_of_a_host_is_the_same_in_any_case(scene: Scene) -> None:
    """A worker whose rest.advertised.host.name has capitals was no member: what FAILED there might run, for ever."""
    scene.connector.url = "http://W0:8083"
    for task in scene.connector.tasks.values():
        task.url = scene.connector.url
    held = holders_now(scene.app(), ["c"])
    assert {task.holding for task in held.tasks.values()} == {Holding.FAILED}
    assert plan_rescue(scene.app(), "c").steps


def test_connectors_that_are_not_asked_for_are_not_judged() -> None:
    world = World()
    world.connect.add("c", {"tasks.max": "2"})
    world.connect.add("d", {"tasks.max": "1"})
    held = who_holds(world.app(), ["c"])
    assert {work: task.holding for work, task in held.tasks.items()} == {("c", 0): "runs", ("c", 1): "runs"}
    assert held.connectors.keys() == {"c", "d"}
