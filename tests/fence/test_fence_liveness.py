"""Whose running tasks `fence` protects: what the members of every group that fits may run, held against REST."""

from __future__ import annotations

import math
import re
import threading
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import RawGroup, RawGroupMember
from eosctl.errors import ExitCode, RefusedError, UnauthorizedError, UnreachableError
from eosctl.fence.gather import FenceRequest, restart_commands
from eosctl.fence.liveness import find_liveness
from eosctl.fence.plan import apply_fence, plan_fence
from eosctl.group.modes import silences_of
from eosctl.group.protocol import Assignment, Metadata, Work, encode_assignment, encode_metadata
from eosctl.wire import error_codes
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.clock import PLENTY_S
from tests.fakes.connect_worker import FakeConnectWorker
from tests.fakes.fence_stage import W1, Stage, outcomes
from tests.fakes.world import World
from tests.reports import codes

H1 = "http://h1:8083"
HELD = [("c", 0)]


def refusal(stage: Stage, *ids: TransactionalId, request: Any = None, **target: Any) -> RefusedError:
    """Why the ids can't be fenced; nothing is sent."""
    with pytest.raises(RefusedError) as caught:
        plan_fence(stage.app(**target), FenceRequest(ids, **(request or {})))
    assert stage.brokers.count("InitProducerId") == 0
    return caught.value


def flags_of(error: RefusedError) -> list[str]:
    return re.findall("--[a-z-]+", str(error.hint))


@pytest.mark.parametrize("there", ["nothing of that name", "a FAILED task of that name"])
def test_a_worker_of_another_group_does_not_vouch_for_a_task(stage: Stage, there: str) -> None:
    """With -g of one group and -u of another, a running task used to be fenced in silence, with exit code 0."""
    stage.runs(("c", 0))
    other = stage.other_group("h", H1)
    other.add("c" if there.startswith("a FAILED") else "d", failed=(0,))
    error = refusal(stage, TransactionalId("g-c-0"), connect_urls=(H1,))
    assert "worker w1:8083 of group g may run their tasks" in error.message
    assert "Compare -u and -g" in str(error.hint)
    assert flags_of(error) == ["--unknown-liveness"]


def test_a_task_that_only_a_worker_of_another_group_runs_is_not_known_to_be_ours(stage: Stage) -> None:
    stage.other_group("h", H1).add("c")
    error = refusal(stage, TransactionalId("g-c-0"), connect_urls=(H1,))
    assert "worker h1:8083 runs tasks of these names, and is no member of group g" in error.message
    assert str(error.hint).startswith("Compare -u and -g.")
    stage.others[0].add("c", failed=(0,))
    plan = plan_fence(stage.app(connect_urls=(H1,)), FenceRequest((TransactionalId("g-c-0"),)))
    assert plan.wanted() == ["g-c-0"], "a FAILED one has no producer, of whichever group"


@pytest.mark.parametrize("named", ["g", None], ids=["a stale -g", "no -g"])
def test_a_running_task_of_another_group_is_protected(stage: Stage, named: str | None) -> None:
    """It used to be fenced without a word: its id was none of the group's that was named."""
    stage.other_group("h", H1).add("c")
    stage.brokers.state.transactions["h-c-0"] = FakeTransaction(31, 0)
    error = refusal(stage, TransactionalId("h-c-0"), group_id=named)
    assert error.message == "cannot fence h-c-0: worker h1:8083 of group h runs task 0 of connector c now"
    assert flags_of(error) == ["--live"]


def test_one_id_that_two_groups_may_have_is_protected_for_both(stage: Stage) -> None:
    """Group g, connector h-c; group g-h, connector c."""
    stage.other_group("g-h", H1).add("c")
    stage.brokers.state.transactions["g-h-c-0"] = FakeTransaction(31, 0)
    assert "of group g-h runs task 0 of connector c" in refusal(stage, TransactionalId("g-h-c-0")).message
    stage.runs(("h-c", 0))
    assert "worker w1:8083 runs task 0 of connector h-c now" in refusal(stage, TransactionalId("g-h-c-0")).message


def test_a_failed_task_of_another_group_is_no_obstacle(stage: Stage) -> None:
    stage.other_group("h", H1).add("c", failed=(0,))
    stage.brokers.state.transactions["h-c-0"] = FakeTransaction(31, 0)
    assert outcomes(stage.plan("h-c-0")) == {"h-c-0": "would_fence"}
    assert stage.brokers.count("DescribeGroups") == 1, "its workers are those of the members that were asked"
    assert outcomes(stage.fence("h-c-0")) == {"h-c-0": "fenced"}


def test_a_task_of_another_group_whose_workers_are_silent_may_run(stage: Stage) -> None:
    other = stage.other_group("h", H1)
    other.add("c")
    other.down.add(H1)
    stage.brokers.state.transactions["h-c-0"] = FakeTransaction(31, 0)
    error = refusal(stage, TransactionalId("h-c-0"))
    assert "worker h1:8083 of group h may run their tasks: no worker says which tasks run" in error.message
    assert flags_of(error)[-1] == "--unknown-liveness"


def test_a_task_of_a_dedicated_mirror_maker_may_run_and_nobody_can_be_asked(stage: Stage) -> None:
    """It was told to compare -u and -g, though no -u leads to a worker without REST."""
    stage.runs(("c", 0))
    stage.connect.mirror_maker = True
    error = refusal(stage, TransactionalId("g-c-0"), connect_urls=())
    assert "of group g may run their tasks: it is a worker of a dedicated MirrorMaker, which has no" in error.message
    assert str(error.hint).startswith("Stop the nodes of the MirrorMaker first")
    assert flags_of(error) == ["--unknown-liveness"]
    assert outcomes(stage.fence("g-c-0", unknown_liveness=True)) == {"g-c-0": "fenced"}


W2 = "http://w2:8083"


@pytest.mark.parametrize("answers", [(W1,), ()], ids=["the other worker was asked", "nobody was named"])
def test_a_worker_that_was_killed_is_not_said_to_run_its_tasks_now(stage: Stage, answers: tuple[str, ...]) -> None:
    """Until the group drops it, its members and REST tell what they know from before: "runs task 0 now"."""
    stage.connect.modes[W2] = "enabled"
    stage.runs(("c", 0))
    stage.connect.own(W2, ("c", 0))
    assert (
        "worker w2:8083 runs task 0 of connector c now"
        in refusal(stage, TransactionalId("g-c-0"), connect_urls=answers).message
    )
    stage.connect.down.add(W2)
    error = refusal(stage, TransactionalId("g-c-0"), connect_urls=answers)
    assert "worker w2:8083 of group g has them, and does not answer: " in error.message
    assert "session.timeout.ms" in str(error.hint)
    assert flags_of(error) == ["--unknown-liveness"]
    assert outcomes(stage.fence("g-c-0", unknown_liveness=True)) == {"g-c-0": "fenced"}
    assert outcomes(stage.fence("g-c-0", live=True)) == {"g-c-0": "fenced"}


def test_a_worker_that_turns_us_away_runs_its_tasks(stage: Stage) -> None:
    """It answers: 401 comes from a worker that is there."""
    stage.connect.modes[W2] = "enabled"
    stage.runs(("c", 0))
    stage.connect.own(W2, ("c", 0))
    stage.connect.before("root", lambda call: _turn_away() if call.what[0] == W2 else None)
    assert "worker w2:8083 runs task 0 of connector c now" in refusal(stage, TransactionalId("g-c-0")).message


def _turn_away() -> None:
    raise UnauthorizedError("not allowed: 401")


def test_running_tasks_of_another_group_are_restarted_at_its_own_worker(stage: Stage) -> None:
    stage.other_group("h", H1).add("c")
    stage.brokers.state.transactions["h-c-0"] = FakeTransaction(31, 0)
    app = stage.app()
    (command,) = restart_commands(app, plan_fence(app, FenceRequest((TransactionalId("h-c-0"),), live=True)).items)
    assert command == "eosctl connectors restart --failed -u http://h1:8083 c"


def test_a_task_of_the_group_that_may_run_is_refused(stage: Stage) -> None:
    """With a wrong worker URL, `fence --connector C --yes` only warned, and fenced what may have been a live task."""
    stage.runs(("c", 0))
    stage.connect.fail_always("connectors", UnreachableError("w1 is down", hint="Start it."))
    error = refusal(stage, TransactionalId("g-c-0"))
    assert re.search(r"cannot fence g-c-0: .*w1 is down", error.message)
    assert str(error.hint).startswith("Start it. ")
    assert flags_of(error) == ["--unknown-liveness"]
    report = stage.fence("g-c-0", unknown_liveness=True)
    assert (outcomes(report), codes(report)) == ({"g-c-0": "fenced"}, ["liveness_unknown"])


def test_a_task_that_no_member_may_run_needs_no_word_of_a_worker(stage: Stage) -> None:
    """The workers' own network may be out of reach: ids of stopped connectors could not be fenced from outside it."""
    stage.connect.down.add(W1)
    report = stage.fence("g-c-0")
    assert (outcomes(report), codes(report)) == ({"g-c-0": "fenced"}, [])


def test_an_id_that_will_not_be_fenced_may_belong_to_any_task(stage: Stage) -> None:
    """Nobody can say whether tasks run; that stands in the way of what is fenced, and of nothing else."""
    stage.runs(("c", 1), ("nosuch", 0))
    stage.connect.fail_always("connectors", UnreachableError("w1 is down"))
    stage.brokers.deny_describe.add("g-c-1")
    report = stage.plan("g-nosuch-0", "g-c-1", "elsewhere-c-0")
    assert outcomes(report) == {"g-nosuch-0": "skipped_unknown", "g-c-1": "failed", "elsewhere-c-0": "skipped_unknown"}
    assert "liveness_unknown" in codes(report)


def test_a_worker_of_another_cluster_is_refused(stage: Stage) -> None:
    stage.connect.kafka_cluster_id = "another"
    error = refusal(stage, TransactionalId("g-c-0"))
    assert "another" in error.message
    assert str(error.hint).startswith("Compare -u and -b")


@pytest.fixture
def world() -> World:
    """Id g-c-0 (empty), on a clock that does not wait."""
    made = World(modes={W1: "enabled"})
    made.brokers.state.transactions["g-c-0"] = FakeTransaction(1, 4)
    return made


def planned(world: World, **options: Any) -> dict[str, str]:
    app = world.app(connect_urls=(W1,))
    return outcomes(plan_fence(app, FenceRequest((TransactionalId("g-c-0"),), **options)).report(app))


def test_a_group_in_a_rebalance_does_not_tell_what_runs(world: World) -> None:
    world.connect.add("c", state="STOPPED")
    world.connect.rebalance(math.inf)
    with pytest.raises(RefusedError, match="the group g is PreparingRebalance") as caught:
        planned(world)
    assert str(caught.value.hint).startswith("Run again when the rebalance is over.")
    assert flags_of(caught.value) == ["--unknown-liveness"]
    began_s = world.time.now_s
    assert planned(world, unknown_liveness=True) == {"g-c-0": "would_fence"}
    assert world.time.now_s == began_s, "what the flag sets aside is not waited for"


@pytest.mark.parametrize(
    ("call", "wanted", "said"),
    [
        ("describe_group", "g-c-0", "the members of group g are unknown: no broker answers"),
        ("list_groups", "g-c-0", "the list of Connect groups is unknown: no broker answers"),
        ("describe_groups", "h-c-0", "the list of Connect groups is unknown: no broker answers"),
    ],
)
def test_a_group_that_cannot_be_asked_is_no_group_without_members(
    stage: Stage, call: str, wanted: str, said: str
) -> None:
    stage.brokers.state.transactions[wanted] = FakeTransaction(31, 0)
    stage.brokers.calls.fail_always(call, UnreachableError("no broker answers", hint="Start one."))
    error = refusal(stage, TransactionalId(wanted))
    assert said in error.message
    assert str(error.hint).startswith("Start one. ")
    assert flags_of(error)[-1] == "--unknown-liveness"


def test_where_no_group_is_to_be_seen_that_is_said(stage: Stage) -> None:
    stage.brokers.state.groups.clear()
    stage.asked_group = None
    report = stage.plan("g-c-0")
    assert (codes(report), report.exit_code) == (["liveness_unknown"], ExitCode.OK)
    assert codes(stage.plan("connect-cluster-g", allow_leader=True)) == ["leader_id"], "no task has such an id"


def held_by_w1(*held: tuple[str, int]) -> RawGroup:
    """Group g, whose one member had these when it joined; they have been taken from it since."""
    leader = ("m1", f"{W1}/", 7)
    metadata = encode_metadata(Metadata(2, f"{W1}/", 7, Assignment(2, 0, *leader, held)))
    assignment = encode_assignment(Assignment(2, 0, *leader, (), held))
    return RawGroup("g", "Stable", "connect", "sessioned", (RawGroupMember("m1", "c", "/h", metadata, assignment),))


@pytest.mark.parametrize("deleted", [False, True])
def test_a_task_that_is_about_to_end_is_waited_for(world: World, deleted: bool) -> None:
    """REST shows no tasks of a connector that was stopped, or deleted, while a worker waits for their last commit."""
    if not deleted:
        world.connect.add("c", state="STOPPED")
    looks = iter([held_by_w1(*HELD)] * 8)
    world.brokers.state.groups["g"] = lambda: next(looks, held_by_w1())
    assert planned(world) == {"g-c-0": "would_fence"}
    assert next(looks, None) is None
    world.brokers.state.groups["g"] = held_by_w1(*HELD)
    with pytest.raises(RefusedError, match="worker w1:8083 of group g may run their tasks") as caught:
        planned(world)
    assert str(caught.value.hint).startswith("Compare -u and -g." if deleted else "Run again in some seconds.")


@pytest.mark.parametrize(
    ("held", "flags"),
    [([("c", 1)], {}), (HELD, {"live": True}), (HELD, {"unknown_liveness": True, "live": False})],
    ids=["another task", "live", "unknown liveness"],
)
def test_a_task_that_is_about_to_end_is_not_waited_for_without_need(
    world: World, held: list[tuple[str, int]], flags: Any
) -> None:
    world.brokers.state.groups["g"] = held_by_w1(*held)
    began_s = world.time.now_s
    assert planned(world, **flags) == {"g-c-0": "would_fence"}
    assert world.time.now_s == began_s


@pytest.mark.parametrize("flags", [{"live": True}, {"live": True, "unknown_liveness": True}], ids=["live", "both"])
def test_what_the_flags_set_aside_is_not_asked_of_a_worker(stage: Stage, flags: Any) -> None:
    """A frozen worker used to cost the whole timeout, and exit code 4, although --live had set its answer aside."""
    stage.runs(("c", 0))
    stage.connect.frozen.add(W1)
    report = stage.fence("g-c-0", **flags)
    assert outcomes(report) == {"g-c-0": "fenced"}
    assert stage.connect.opened == []
    asked = stage.brokers.count("DescribeGroups") + stage.brokers.count("ListGroups")
    if "unknown_liveness" in flags:
        assert (asked, codes(report)) == (0, ["liveness_unknown"])
    else:
        assert codes(report) == ["live_tasks"]
        assert asked > 0


def test_live_alone_does_not_set_aside_that_nobody_knows(stage: Stage) -> None:
    stage.brokers.fail_next("DescribeGroups", error_codes.GROUP_AUTHORIZATION_FAILED)
    error = refusal(stage, TransactionalId("g-c-0"), request={"live": True})
    assert flags_of(error)[-1] == "--unknown-liveness"


def test_unknown_liveness_alone_does_not_set_aside_that_a_task_runs(stage: Stage) -> None:
    stage.runs(("c", 0))
    error = refusal(stage, TransactionalId("g-c-0"), request={"unknown_liveness": True})
    assert "runs task 0 of connector c" in error.message
    assert flags_of(error) == ["--live"]


@pytest.mark.parametrize(("flags", "patience_s"), [({}, 10.0), ({"unknown_liveness": True}, 5.0)])
def test_a_silent_worker_leaves_time_to_say_so_or_to_fence(stage: Stage, flags: Any, patience_s: float) -> None:
    """The last worker used to have the whole time of the command, which then ended with exit code 4."""
    stage.runs(("c", 0))
    given_s: list[float] = []

    def open_worker(app: App, url: str) -> FakeConnectWorker:
        given_s.append(app.deadline.remaining_s())
        return stage.open_worker(app, url)

    app = replace(stage.app(), open_worker=open_worker)
    stage.connect.fail_always("connectors", UnreachableError("no answer in time"))
    if flags:
        assert outcomes(apply_fence(app, plan_fence(app, FenceRequest((TransactionalId("g-c-0"),), **flags)))) == {
            "g-c-0": "fenced"
        }
    else:
        with pytest.raises(RefusedError, match="no answer in time"):
            plan_fence(app, FenceRequest((TransactionalId("g-c-0"),)))
    assert max(given_s) == patience_s


def test_workers_that_are_silent_are_waited_for_side_by_side(stage: Stage) -> None:
    """One after the other: ten seconds for each, and the command had sixty."""
    urls = [f"http://w{number}:8083" for number in range(4)]
    together = threading.Barrier(len(urls), timeout=PLENTY_S)

    class Frozen(FakeConnectWorker):
        def root(self) -> dict[str, Any]:
            together.wait()  # breaks where they come one by one
            raise UnreachableError("no answer in time")

    app = replace(stage.app(), open_worker=lambda _app, url: Frozen(stage.connect, url, _app.deadline))
    found = silences_of(app, {url: url for url in urls})
    assert {url: error.message for url, error in found.items()} == dict.fromkeys(urls, "no answer in time")


@pytest.mark.parametrize("other", ["h", "g-eu", "h-eu"])
def test_a_running_task_of_a_group_that_may_not_be_described(stage: Stage, other: str) -> None:
    """ListGroups leaves out what one may not DESCRIBE, and does not say so: its running task was fenced, exit 0."""
    stage.other_group(other, H1).add("c")
    stage.brokers.state.transactions[f"{other}-c-0"] = FakeTransaction(31, 0)
    stage.brokers.deny_groups.add(other)
    error = refusal(stage, TransactionalId(f"{other}-c-0"))
    assert f"can't describe group {other}" in error.message
    assert f"DESCRIBE on group {other}" in str(error.hint)
    assert "--unknown-liveness" in flags_of(error)


def test_every_id_of_a_group_that_may_not_be_described_is_unknown_and_no_other(stage: Stage) -> None:
    ids = [TransactionalId(f"{group}-c-{task}") for group in ("h", "i") for task in range(3)]
    stage.brokers.deny_groups.add("h")
    assert list(find_liveness(stage.app(), FenceRequest(tuple(ids)), ids).unknown) == ids[:3]


def test_what_may_not_be_described_hinders_no_connector_of_the_group(stage: Stage) -> None:
    """A fencer may DESCRIBE its own group alone: `g-my-c-0` could be that of a group g-my as well."""
    stage.brokers.state.transactions["g-my-c-0"] = FakeTransaction(31, 0)
    stage.brokers.deny_groups.add("g-my")
    request = FenceRequest(connector="my-c", tasks=1)
    assert plan_fence(stage.app(), request).wanted() == ["g-my-c-0"]
    with pytest.raises(RefusedError, match="can't describe group g-my"):
        stage.plan("g-my-c-0")


EU = "connect-cluster-eu"


def two_groups(asked: str | None) -> Stage:
    """Groups connect-cluster, with connector orders, and connect-cluster-eu, with a stopped connector orders, too."""
    stage = Stage(group_id="connect-cluster", asked_group=asked)
    stage.other_group(EU, H1)
    stage.configs([("connector-orders", {"properties": {}})])
    stage.brokers.state.transactions[f"{EU}-orders-0"] = FakeTransaction(31, 0)
    return stage


@pytest.mark.parametrize(
    ("asked", "failed", "kind"),
    [
        ("connect-cluster", [], "other"),
        ("connect-cluster", [("eu-orders", 0)], "task"),
        (EU, [], "task"),
        (None, [], "ambiguous"),
    ],
)
def test_whose_an_id_is_that_two_groups_could_have(asked: str | None, failed: list[Work], kind: str) -> None:
    """With -g connect-cluster it was a task of its connector eu-orders, which there is not; without -g, too."""
    stage = two_groups(asked)
    stage.runs(*failed, state="FAILED")
    report = stage.plan(f"{EU}-orders-0")
    assert [(row.owner.kind, row.outcome) for row in report.rows] == [(kind, "would_fence")]
    assert "leader_id" not in codes(report)
    assert stage.brokers.count("ListGroups") == stage.nodes, "whoever owns it is asked of the groups that were listed"


def test_a_running_task_of_the_other_one_is_protected() -> None:
    stage = two_groups("connect-cluster")
    stage.others[0].add("orders")
    with pytest.raises(RefusedError, match=f"of group {EU} runs task 0 of connector orders"):
        stage.plan(f"{EU}-orders-0")
