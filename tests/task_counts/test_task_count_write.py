"""`task-counts write` over a broker that speaks the protocol, topics and workers in memory."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.core.ids import TransactionalId
from eosctl.core.transaction_log import TOPIC, coordinator_partition
from eosctl.deadline import Deadline
from eosctl.errors import ExitCode, NotFoundError, RefusedError, StalePlanError, UnauthorizedError, UnreachableError
from eosctl.fence.rules import FENCE_TRANSACTION_TIMEOUT_MS
from eosctl.report import Report, plain
from eosctl.task_counts.rules import MAX_PLAUSIBLE_TASKS
from eosctl.task_counts.write import TaskCountWritePlan, WriteRequest, apply_write, plan_write, show_write
from tests.fakes.connectors import FILE_SINK
from tests.fakes.faults import KilledError, worth_a_kill
from tests.fakes.rescue_scene import CLUSTER, Scene, stop
from tests.fakes.world import CONFIGS


def write(scene: Scene, count: int, *, fence: bool = True) -> Report:
    return apply_write(scene.app(), plan_write(scene.app(), WriteRequest("c", count, fence)))


def test_the_plan_shows_decisions_before_and_after_and_the_native_way(scene: Scene) -> None:
    stop(scene)
    report = show_write(scene.app(), plan_write(scene.app(), WriteRequest("c", 5)))
    (row,) = report.rows
    assert plain(row.before) == {"task_count": 3, "offset": 5}
    assert plain(row.after) == {"task_count": 5, "offset": None}
    assert row.decision_before.now.would_fence_count == 3
    assert row.decision_after.now.would_fence_count == 0
    assert row.decision_after.after_next_commit.would_fence_count == 5
    assert [problem.code for problem in report.problems] == ["connect_can"]
    assert "--via connect" in str(report.problems[0].hint)
    assert scene.records() == []


def test_write_fences_first_then_writes_under_an_id_of_its_own(scene: Scene) -> None:
    stop(scene)
    report = write(scene, 0)
    assert (report.exit_code, report.rows[0].outcome) == (ExitCode.OK, "written")
    assert scene.timeouts() == [FENCE_TRANSACTION_TIMEOUT_MS] * 3
    assert scene.records() == [("eosctl-config-g", b'{"task-count":0}')]
    assert report.data.undo == "eosctl task-counts write --count 3 c"
    (line,) = Path(str(report.data.backup)).read_text().splitlines()
    kept = json.loads(line)
    assert (kept["key"], kept["value"], kept["offset"]) == ("tasks-fencing-c", '{"task-count": 3}', 5)
    assert (kept["written"], kept["cluster_id"]) == ('{"task-count":0}', CLUSTER)
    again = plan_write(scene.app(), WriteRequest("c", 0))
    assert not again.changes_something


def test_what_is_recorded_already_is_nothing_to_do_while_tasks_run(scene: Scene) -> None:
    """It used to be refused for the running tasks, so that a job that runs twice failed the second time."""
    stop(scene)
    assert write(scene, 3).exit_code is ExitCode.OK
    scene.connect.add("c", {"tasks.max": "2"})
    plan = plan_write(scene.app(), WriteRequest("c", 3))
    assert not plan.changes_something
    assert show_write(scene.app(), plan).rows[0].outcome == "unchanged"
    with pytest.raises(RefusedError, match="has 2 tasks"):
        plan_write(scene.app(), WriteRequest("c", 4))


def test_a_first_record_is_not_taken_for_one_that_is_there(scene: Scene) -> None:
    scene.connector.heal()
    scene.keep_config("tasks-fencing-c", None)
    with pytest.raises(RefusedError, match="has 2 tasks"):
        plan_write(scene.app(), WriteRequest("c", 0))


def test_a_write_killed_anywhere_is_done_by_the_next_run(tmp_path: Path) -> None:
    """Whatever a kill can leave; what a record replaced is in a backup by then."""
    scene = Scene(state_dir=tmp_path / "undisturbed")
    stop(scene)
    kills = worth_a_kill(scene.kill, partial(write, scene, 5), partial(scene.left, scene.state_dir))
    assert (len(kills) > 6, scene.kill.ticks > 20) == (True, True), "fewer than that were never made"
    for kill_at in kills:
        scene = Scene(state_dir=tmp_path / str(kill_at))
        stop(scene)
        scene.kill.at, scene.kill.ticks = kill_at, 0
        with pytest.raises(KilledError):
            write(scene, 5)
        scene.kill.at = None
        kept = [json.loads(path.read_text()) for path in sorted(scene.state_dir.rglob("task-counts-write*"))]
        assert {each["value"] for each in kept} <= {'{"task-count": 3}'}
        assert len(kept) >= len(scene.records()), f"killed at call {kill_at}: a record without a backup"
        plan = plan_write(scene.app(), WriteRequest("c", 5))
        assert plan.changes_something is not bool(scene.records()), f"killed at call {kill_at}"
        if plan.changes_something:
            assert apply_write(scene.app(), plan).exit_code is ExitCode.OK, f"killed at call {kill_at}"
        assert scene.records() == [("eosctl-config-g", b'{"task-count":5}')], f"killed at call {kill_at}"
        assert scene.timeouts() == [FENCE_TRANSACTION_TIMEOUT_MS] * 3, f"killed at call {kill_at}"


def test_without_workers_it_is_written_under_the_leaders_id(scene: Scene) -> None:
    scene.connect.modes.clear()
    scene.time.slept.clear()
    assert write(scene, 2).exit_code is ExitCode.OK
    assert scene.records() == [("connect-cluster-g", b'{"task-count":2}')]
    assert 3.0 not in scene.time.slept, "without workers there is no round to look for"


def test_without_fencing_the_plan_says_what_that_means(scene: Scene) -> None:
    stop(scene)
    plan = plan_write(scene.app(), WriteRequest("c", 3, fence=False))
    report = apply_write(scene.app(), plan)
    assert (report.data.overrides, report.data.fenced_before) == (["no-fence"], False)
    shown = show_write(scene.app(), plan)
    assert (shown.data.overrides, shown.data.fenced_before) == (["no-fence"], False)
    (problem,) = report.problems
    assert problem.code == "not_fenced"
    assert "the leader takes it as done" in problem.message
    assert scene.timeouts() == [60_000] * 3


@pytest.mark.parametrize(("fence", "round_timeout_ms"), [(True, 90_000), (False, 90_000), (True, 1)])
def test_a_round_that_still_runs_on_the_leader_is_seen(scene: Scene, fence: bool, round_timeout_ms: int) -> None:
    """Stopping a connector does not stop its round, which fences on and may write its own record after ours.

    The rounds of workers before Kafka 3.7.1, which send a timeout of 1 ms, were overlooked.
    """
    stop(scene)
    touches = iter([(1, round_timeout_ms)])

    def sleep(seconds: float) -> None:
        scene.time.sleep(seconds)
        for task, timeout_ms in touches:
            scene.take_id(task, timeout_ms=timeout_ms)

    def plan() -> TaskCountWritePlan:
        clock = replace(scene.time.clock(), sleep_s=sleep)
        app = replace(scene.app(), clock=clock, deadline=Deadline.after(30, clock))
        return plan_write(app, WriteRequest("c", 3, fence))

    with pytest.raises(RefusedError, match=r"round of the leader is under way: in the last 3 s it fenced g-c-1; noth"):
        plan()
    assert plan().changes_something, "nothing was touched the second time"
    touches = iter([(1, 60_000)])
    assert plan().changes_something, "a zombie that commits is no round"
    scene.time.slept.clear()
    scene.time.now_s += 100
    plan()
    assert not scene.time.slept, "no round is that old, so nothing is waited for"


def test_a_round_whose_ids_cannot_be_seen_may_be_under_way(scene: Scene) -> None:
    """None was touched, as none could be seen."""
    stop(scene)
    scene.brokers.deny_describe.add("g-c-1")
    with pytest.raises(RefusedError, match="whether a fencing round of the leader is under way is not known"):
        plan_write(scene.app(), WriteRequest("c", 3, fence=False))


def test_what_write_refuses(scene: Scene) -> None:
    with pytest.raises(RefusedError, match=r"has 2 tasks \(task 0 is FAILED at w0:8083.*nothing was written"):
        plan_write(scene.app(), WriteRequest("c", 3))
    with pytest.raises(NotFoundError, match="no connector 'nope'"):
        plan_write(scene.app(), WriteRequest("nope", 3))
    stop(scene)
    with pytest.raises(RefusedError, match="would leave out 2 known ids: g-c-1 g-c-2"):
        plan_write(scene.app(), WriteRequest("c", 1, fence=False))
    scene.take_id(7)
    with pytest.raises(RefusedError, match="would leave out 1 known id: g-c-7"):
        plan_write(scene.app(), WriteRequest("c", 2))
    scene.brokers.state.transactions["g-c-7"].timeout_ms = FENCE_TRANSACTION_TIMEOUT_MS  # fenced by eosctl since
    plan_write(scene.app(), WriteRequest("c", 2))
    del scene.connect.connectors["c"]
    with pytest.raises(RefusedError, match="which the workers do not know"):
        plan_write(scene.app(), WriteRequest("c", 2))
    scene.topics.open_transaction(CONFIGS, 0)
    scene.commit(0)
    with pytest.raises(RefusedError, match="an open transaction hides newer records"):
        plan_write(scene.app(), WriteRequest("c", 3))
    scene.connect.rebalance(math.inf)
    with pytest.raises(RefusedError, match="the group g is PreparingRebalance"):
        plan_write(scene.app(), WriteRequest("c", 3))
    assert scene.records() == []


def test_a_refusal_of_fencing_says_whose_options_it_names(scene: Scene) -> None:
    """The hint named --live, which `task-counts write` does not have."""
    stop(scene)
    scene.brokers.calls.fail_always("list_groups", UnreachableError("no broker"))
    with pytest.raises(RefusedError, match="the list of Connect groups is unknown: no broker") as caught:
        plan_write(scene.app(), WriteRequest("c", 3))
    assert "--unknown-liveness" in str(caught.value.hint)
    assert str(caught.value.hint).endswith("These are options of `eosctl fence`.")


def test_a_sink_has_no_record(scene: Scene) -> None:
    stop(scene)
    scene.keep_config("connector-c", {"properties": {"connector.class": FILE_SINK, "name": "c"}})
    with pytest.raises(RefusedError, match="c is a sink connector: it has no task-count record"):
        plan_write(scene.app(), WriteRequest("c", 3))


def test_a_record_that_is_there_and_leaves_out_an_id_is_told_of(scene: Scene) -> None:
    """There is nothing to write, and what the leader would leave out is alive all the same."""
    stop(scene)
    assert write(scene, 3).exit_code is ExitCode.OK
    assert not plan_write(scene.app(), WriteRequest("c", 3)).changes_something
    scene.take_id(7)
    with pytest.raises(RefusedError, match="would leave out 1 known id: g-c-7"):
        plan_write(scene.app(), WriteRequest("c", 3))


def test_nothing_is_written_while_ids_may_be_alive_that_nobody_can_list(scene: Scene) -> None:
    """A partial listing must not be taken for all: the record would leave out what an offline coordinator has."""
    stop(scene)
    state = scene.brokers.state
    state.add_topic(TOPIC, partitions := 50)
    scene.take_id(7)
    lost = coordinator_partition(TransactionalId("g-c-7"), partitions)
    assert lost not in {
        coordinator_partition(each, partitions)
        for each in (TransactionalId("g"), TransactionalId("g-c-0"), TransactionalId("g-c-1"), TransactionalId("g-c-2"))
    }
    state.leaderless.add((TOPIC, lost))
    with pytest.raises(UnreachableError, match=f"can't list all transactional ids: .*partition {lost} of {TOPIC}"):
        plan_write(scene.app(), WriteRequest("c", 3))


def test_an_id_that_its_coordinator_forgets_meanwhile_is_left_out_by_nobody(scene: Scene) -> None:
    stop(scene)
    scene.take_id(7)
    scene.brokers.calls.after("list_transactions", lambda _call: scene.brokers.state.transactions.pop("g-c-7", None))
    assert plan_write(scene.app(), WriteRequest("c", 3)).changes_something


def test_a_plan_goes_stale_when_the_connector_changes(scene: Scene) -> None:
    stop(scene)
    plan = plan_write(scene.app(), WriteRequest("c", 3))
    scene.commit(0)
    with pytest.raises(StalePlanError, match="changed since the plan was made"):
        apply_write(scene.app(), plan)
    assert scene.brokers.count("InitProducerId") == 0, "nothing is fenced for a plan that holds no longer"


def test_a_plan_goes_stale_when_the_group_or_the_cluster_is_another(scene: Scene) -> None:
    """Without workers the record goes under the leader's id, which a leader that came meanwhile would lose."""
    stop(scene)
    plan = plan_write(scene.app(), WriteRequest("c", 4))
    with pytest.raises(StalePlanError, match=f"the plan was made for cluster another, this is {CLUSTER}"):
        apply_write(scene.app(), replace(plan, scene=replace(plan.scene, cluster_id="another")))
    scene.connect.modes.clear()
    with pytest.raises(StalePlanError, match="connector c or its group changed"):
        apply_write(scene.app(), plan)
    assert (scene.records(), scene.brokers.count("InitProducerId")) == ([], 0)


@pytest.mark.parametrize(
    ("key", "value", "count"), [(b"tasks-fencing-c", b'{"task-count":9}', 9), (b"commit-c", b'{"tasks":2}', 5)]
)
def test_what_someone_else_writes_after_it_makes_it_differ(scene: Scene, key: bytes, value: bytes, count: int) -> None:
    """Then the leader decides by something else than the plan has shown."""
    stop(scene)
    plan = plan_write(scene.app(), WriteRequest("c", 5))
    scene.topics.after("write", lambda _call: scene.topics.put(CONFIGS, key, value))
    report = apply_write(scene.app(), plan)
    assert (report.exit_code, report.rows[0].outcome) == (ExitCode.PARTIAL, "differs")
    assert report.rows[0].after.task_count == count
    (problem,) = [each for each in report.problems if each.code == "record_differs"]
    assert "`eosctl connectors stop c`" in str(problem.hint), "it used to say that it differs, and no more"


def test_a_task_set_that_comes_just_before_the_record_makes_it_differ(scene: Scene) -> None:
    """The record is the newest then, and says that nobody of that task set is left to fence."""
    stop(scene)
    plan = plan_write(scene.app(), WriteRequest("c", 5))
    scene.topics.before("write", lambda _call: scene.topics.put(CONFIGS, b"commit-c", b'{"tasks":7}'))
    report = apply_write(scene.app(), plan)
    assert (report.exit_code, report.rows[0].outcome) == (ExitCode.PARTIAL, "differs")


def test_a_write_of_which_nothing_is_seen_is_unconfirmed(scene: Scene) -> None:
    """Its transaction is committed, and a reader does not find the record: nobody may say that it was not written."""
    stop(scene)
    plan = plan_write(scene.app(), WriteRequest("c", 5))
    scene.topics.before("write", lambda _call: scene.topics.open_transaction(CONFIGS, 0))
    report = apply_write(scene.app(), plan)
    assert (report.exit_code, report.rows[0].outcome) == (ExitCode.PARTIAL, "unconfirmed")


def test_of_two_failures_of_a_write_the_first_is_told(scene: Scene) -> None:
    stop(scene)
    plan = plan_write(scene.app(), WriteRequest("c", 5))
    scene.topics.fail_next("write", UnauthorizedError("not authorized: writing"))
    scene.topics.before("write", lambda _call: scene.topics.fail_next("read", UnreachableError("no answer")))
    report = apply_write(scene.app(), plan)
    assert report.rows[0].outcome == "unconfirmed"
    assert [problem.message for problem in report.problems] == ["not authorized: writing"]


@pytest.mark.parametrize("recorded", [MAX_PLAUSIBLE_TASKS + 1, -1])
def test_as_many_ids_as_no_connector_has_are_not_fenced(scene: Scene, recorded: int) -> None:
    """Nothing would end it: a record may say two thousand million."""
    stop(scene)
    scene.keep_config("tasks-fencing-c", {"task-count": recorded})
    with pytest.raises(RefusedError, match=f"the record says {recorded} tasks, which no connector has") as refused:
        plan_write(scene.app(), WriteRequest("c", 3))
    assert "--no-fence" in str(refused.value.hint)
    assert scene.brokers.count("DescribeTransactions") == 0, "no id was asked for"
    assert plan_write(scene.app(), WriteRequest("c", 3, fence=False)).changes_something


def test_nothing_is_written_unless_every_recorded_id_is_fenced(scene: Scene) -> None:
    stop(scene)
    plan = plan_write(scene.app(), WriteRequest("c", 0))
    scene.brokers.fail_next("InitProducerId", 53)
    report = apply_write(scene.app(), plan)
    assert (report.exit_code, report.rows[0].outcome) == (ExitCode.PARTIAL, "not_written")
    assert report.problems[-1].code == "not_written"
    assert scene.records() == []


def test_a_write_that_fails_is_read_back_before_anything_is_claimed(scene: Scene) -> None:
    stop(scene)
    plan = plan_write(scene.app(), WriteRequest("c", 0))
    scene.topics.fail_next("write", UnreachableError("no answer"))
    report = apply_write(scene.app(), plan)
    assert (report.exit_code, report.rows[0].outcome) == (ExitCode.PARTIAL, "not_written")
    assert [problem.code for problem in report.problems] == ["unreachable"]
