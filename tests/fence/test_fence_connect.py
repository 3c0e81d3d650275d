"""`fence --via connect`: the leader is asked with a signature, and the coordinators are asked what it did."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.core.transactions import ROUND_TIMEOUTS_MS
from eosctl.core.workers.access import ConnectAccess
from eosctl.errors import (
    ConnectError,
    ExitCode,
    RefusedError,
    StalePlanError,
    UnauthorizedError,
    UnreachableError,
    UnsupportedError,
)
from eosctl.fence.gather import FenceRequest
from eosctl.fence.plan import apply_fence, plan_fence
from eosctl.group.absent import leader_worker
from eosctl.report import Report
from tests.fakes.connectors import FakeTask
from tests.fakes.faults import Call
from tests.fakes.fence_stage import outcomes, row
from tests.fakes.rescue_scene import URL, Scene, stop
from tests.fakes.world import CONFIGS
from tests.reports import codes

REQUEST = FenceRequest(connector="c", via="connect")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Connector c, STOPPED, with three recorded ids, and a group with a session key."""
    scene = Scene(state_dir=tmp_path)
    stop(scene)
    rotate_session_key(scene, b"0123456789abcdef")
    return scene


def rotate_session_key(scene: Scene, key: bytes) -> None:
    scene.connect.session_key = key
    scene.keep_config("session-key", {"key": base64.b64encode(key).decode()})


def fences(scene: Scene, *tasks: int) -> Callable[[Call], None]:
    """What the leader's round does: it takes the ids of `tasks`."""

    def fence(_call: Call) -> None:
        for task in tasks:
            scene.take_id(task, timeout_ms=max(ROUND_TIMEOUTS_MS))

    return fence


def fence(scene: Scene) -> Report:
    return apply_fence(scene.app(), plan_fence(scene.app(), REQUEST))


def test_the_leader_fences_and_the_coordinators_tell(scene: Scene) -> None:
    scene.connect.after("fence", fences(scene, 0, 1, 2))
    report = fence(scene)
    assert (set(outcomes(report).values()), report.exit_code) == ({"fenced"}, ExitCode.OK)
    assert row(report, "g-c-1")["after"]["producer_epoch"] == row(report, "g-c-1")["before"]["producer_epoch"] + 1
    assert scene.connect.fenced == ["c"]
    assert scene.brokers.count("InitProducerId") == 0


def test_a_leader_that_nobody_named_is_refused_at_plan(scene: Scene) -> None:
    """Whoever may join the group can lead it; the signature that it got opens /fence of each connector."""
    other = ConnectAccess(named=frozenset({"http://w1:8083"}))
    with pytest.raises(RefusedError) as caught:
        plan_fence(scene.app(connect=other), REQUEST)
    assert f"-u {URL}." in str(caught.value.hint)
    for access in (replace(other, trust_discovered=True), replace(other, named=frozenset({URL}))):
        plan_fence(scene.app(connect=access), REQUEST)
    assert scene.connect.fenced == []


def test_a_connector_that_rest_cannot_name_is_refused_at_plan(scene: Scene) -> None:
    """Kafka 4 takes no slash in a path: the request was refused after the plan had been agreed to."""
    with pytest.raises(UnsupportedError, match="takes no slash, backslash"):
        plan_fence(scene.app(), replace(REQUEST, connector="a/b"))


@pytest.mark.parametrize(
    ("taken", "fenced", "exit_code"), [((0, 1), {"g-c-0", "g-c-1"}, ExitCode.PARTIAL), ((), set(), ExitCode.FAILED)]
)
def test_an_id_that_the_leader_left_as_it_was_is_not_called_fenced(
    scene: Scene, taken: tuple[int, ...], fenced: set[str], exit_code: ExitCode
) -> None:
    """To the leader fencing is not due where its newest record is newer than the task set: it answers 200."""
    scene.connect.after("fence", fences(scene, *taken))
    report = fence(scene)
    expected = {f"g-c-{task}": "fenced" if f"g-c-{task}" in fenced else "failed" for task in range(3)}
    assert (outcomes(report), report.exit_code) == (expected, exit_code)
    assert row(report, "g-c-2")["error"]["code"] == "NOT_FENCED"


def commits(scene: Scene, *tasks: int, state: str = "CompleteCommit") -> Callable[[Call], None]:
    """What zombies do meanwhile: from KIP-890 on every commit raises the epoch."""

    def commit(_call: Call) -> None:
        for task in tasks:
            known = scene.brokers.state.transactions[f"g-c-{task}"]
            known.producer_epoch, known.state = known.producer_epoch + 1, state

    return commit


@pytest.mark.parametrize("state", ["CompleteCommit", "Ongoing"])
@pytest.mark.parametrize("fails", [True, False], ids=["the round fails", "fencing is not due"])
def test_a_zombie_that_commits_meanwhile_is_not_called_fenced(scene: Scene, fails: bool, state: str) -> None:
    """HTTP 500 twice, nothing fenced, three commits: three rows `fenced`, exit code 0."""
    if fails:
        scene.connect.before("fence", commits(scene, 0, 1, 2, state=state))
        for _attempt in range(2):
            scene.connect.fail_next("fence", ConnectError("HTTP 500: Failed to fence zombies"))
    else:
        scene.connect.after("fence", commits(scene, 0, 1, 2, state=state))
    report = fence(scene)
    assert set(outcomes(report).values()) == {"unconfirmed"}
    assert report.exit_code is not ExitCode.OK
    assert row(report, "g-c-0")["confirmed_by"] is None


def test_a_round_that_failed_never_ends_with_exit_code_0(scene: Scene) -> None:
    """All ids look fenced afterwards, and the route says that it failed: the connector may still have to be fenced."""
    scene.connect.before("fence", fences(scene, 0, 1, 2))
    for _attempt in range(2):
        scene.connect.fail_next("fence", ConnectError("HTTP 500: Failed to fence zombies"))
    report = fence(scene)
    assert (set(outcomes(report).values()), report.exit_code) == ({"fenced"}, ExitCode.PARTIAL)


def test_an_id_that_no_coordinator_knows_is_created_by_the_leader(scene: Scene) -> None:
    del scene.brokers.state.transactions["g-c-2"]
    planned = plan_fence(scene.app(), REQUEST)
    assert planned.wanted() == ["g-c-0", "g-c-1", "g-c-2"]
    scene.connect.after("fence", fences(scene, 0, 1, 2))
    assert set(outcomes(apply_fence(scene.app(), planned)).values()) == {"fenced"}


def test_an_id_whose_coordinator_does_not_tell_is_unconfirmed(scene: Scene) -> None:
    scene.connect.after("fence", fences(scene, 0, 1, 2))
    scene.connect.after("fence", lambda _call: scene.brokers.deny_describe.add("g-c-2"))
    report = fence(scene)
    assert outcomes(report) == {"g-c-0": "fenced", "g-c-1": "fenced", "g-c-2": "unconfirmed"}
    assert report.exit_code is ExitCode.PARTIAL


def test_what_was_fenced_before_the_leader_gave_up_is_told(scene: Scene) -> None:
    fences(scene, 0, 1)
    for _attempt in range(2):
        scene.connect.fail_next("fence", ConnectError("500: Failed to fence zombies"))
    scene.connect.before("fence", lambda call: fences(scene, 0)(call))
    report = fence(scene)
    assert outcomes(report) == {"g-c-0": "fenced", "g-c-1": "unconfirmed", "g-c-2": "unconfirmed"}
    assert (report.exit_code, report.problems[0].message) == (ExitCode.PARTIAL, "500: Failed to fence zombies")


def test_what_the_round_fenced_is_read_back_when_its_answer_is_lost(scene: Scene) -> None:
    """Connect's 90000 was not taken for a fence: ids of a round that --timeout did not wait for stayed unconfirmed."""
    fenced = fences(scene, 0, 1)

    def slow(call: Call) -> None:
        fenced(call)
        scene.time.sleep(40)

    scene.connect.before("fence", slow)
    scene.connect.fail_next("fence", UnreachableError("the Connect worker can't be reached: read timed out"))
    report = fence(scene)
    assert outcomes(report) == {"g-c-0": "fenced", "g-c-1": "fenced", "g-c-2": "unconfirmed"}
    assert [row(report, each)["confirmed_by"] for each in ("g-c-0", "g-c-2")] == ["read_back", None]
    assert (report.exit_code, codes(report)) == (ExitCode.PARTIAL, ["unreachable", "unconfirmed"])


def test_a_round_that_failed_late_is_not_begun_again(scene: Scene) -> None:
    """The second request started another round of 90 s, at the first id again."""
    scene.connect.before("fence", lambda _call: scene.time.sleep(90))
    scene.connect.fail_next("fence", ConnectError("500: Request timed out"))
    plan = plan_fence(scene.app(timeout_s=200), REQUEST)
    report = apply_fence(scene.app(timeout_s=200), plan)
    assert report.problems[0].message == "500: Request timed out"
    assert scene.connect.fenced == []


@pytest.mark.parametrize(
    ("ids", "timeout_s", "override", "said"),
    [
        (50, 60, "1000", None),
        (50, 40, "1000", ("fencing_slow", "50 ids take it about 50 s, and --timeout leaves 40", "--timeout 80s")),
        (50, 40, "10", None),
        (120, 600, "1000", ("fencing_impossible", "120 ids take it about 120 s, and it gives up after 90", "=10")),
    ],
)
def test_how_long_a_round_takes_is_said_before(
    scene: Scene, ids: int, timeout_s: float, override: str, said: tuple[str, str, str] | None
) -> None:
    """The default timeout ends a round of more than about sixty ids, and nobody was told."""
    scene.brokers.state.nodes = [1]
    for task in range(ids):
        scene.take_id(task)
    scene.keep_config("tasks-fencing-c", {"task-count": ids})
    scene.connector.config["admin.override.retry.backoff.max.ms"] = override
    plan = plan_fence(scene.app(timeout_s=timeout_s), replace(REQUEST, live=True, unknown_liveness=True))
    found = [each for each in plan.problems if each.code.startswith("fencing_")]
    assert [each.code for each in plan.problems] == ["liveness_unknown", *([] if said is None else [said[0]])]
    if said is not None:
        assert said[1] in found[0].message
        assert said[2] in str(found[0].hint)
        assert found[0].severity == "warning"


@pytest.mark.parametrize("failure", [ConnectError("409: rebalance"), UnauthorizedError("403: invalid signature")])
def test_a_key_or_an_id_that_was_just_taken_deserves_a_second_try_and_no_third(
    scene: Scene, failure: ConnectError | UnauthorizedError
) -> None:
    scene.connect.fail_next("fence", failure)
    scene.connect.after("fence", fences(scene, 0, 1, 2))
    assert fence(scene).exit_code is ExitCode.OK
    scene.commit(0)  # fencing is due again
    for _attempt in range(2):
        scene.connect.fail_next("fence", failure)
    assert fence(scene).exit_code is failure.exit_code
    assert len(scene.connect.fenced) == 1


def test_a_refusal_is_no_success_where_no_id_is_recorded(scene: Scene) -> None:
    """Right after a fence the record says 0: an error was told then, and the exit code was 0."""
    scene.connect.after("fence", fences(scene, 0, 1, 2))
    assert fence(scene).exit_code is ExitCode.OK
    scene.connect.fail_always("fence", UnauthorizedError("403: invalid signature"))
    again = fence(scene)
    assert (list(again.rows), again.exit_code) == ([], ExitCode.UNAUTHORIZED)


def test_without_a_session_key_it_is_asked_without_a_signature(scene: Scene) -> None:
    """As in groups whose workers don't sign; others refuse it."""
    scene.keep_config("session-key", None)
    report = apply_fence(scene.app(), plan_fence(scene.app(), REQUEST))
    assert report.exit_code is ExitCode.FAILED
    assert "Internal request missing required signature" in report.problems[0].message


def test_the_newest_session_key_signs(scene: Scene) -> None:
    rotate_session_key(scene, b"the next key")
    scene.connect.after("fence", fences(scene, 0, 1, 2))
    assert fence(scene).exit_code is ExitCode.OK
    assert scene.connect.fenced == ["c"]


def test_a_signature_by_another_key_is_refused_by_the_leader(scene: Scene) -> None:
    scene.connect.session_key = b"one that the config topic does not have"
    report = fence(scene)
    assert (report.exit_code, scene.connect.fenced) == (ExitCode.UNAUTHORIZED, [])
    assert "invalid signature" in report.problems[0].message


@pytest.mark.parametrize("value", [b"[]", b"{}", b'{"key":7}', b'{"key":"no base64"}', b"\xff", b"[" * 100_000])
def test_a_session_key_that_is_none(scene: Scene, value: bytes) -> None:
    scene.topics.put(CONFIGS, b"session-key", value)
    report = fence(scene)
    assert (report.exit_code, codes(report)[0]) == (ExitCode.FAILED, "connect_error")
    assert "the session key in topic connect-configs can't be read" in report.problems[0].message
    assert scene.connect.fenced == []


@pytest.mark.parametrize(("state", "tasks"), [("RUNNING", "2 tasks"), ("PAUSED", "2 tasks")])
def test_it_needs_the_connector_stopped_also_when_the_plan_is_applied(scene: Scene, state: str, tasks: str) -> None:
    plan = plan_fence(scene.app(), REQUEST)
    scene.connect.add("c", {"tasks.max": "2"}, state=state)
    for attempt in (lambda: plan_fence(scene.app(), REQUEST), lambda: apply_fence(scene.app(), plan)):
        with pytest.raises(RefusedError, match=f"connector c is {state} with {tasks}; --via connect needs it STOPPED"):
            attempt()
    assert scene.connect.fenced == []


def test_a_task_that_has_not_ended_yet_keeps_it_from_being_fenced(scene: Scene) -> None:
    """It would fail at its last commit."""
    follower = "http://w9:8083"
    scene.connect.modes[follower] = "enabled"
    scene.connect.stops_slowly["c", 0] = 1000.0
    scene.connect.take(("c", 0), follower)
    scene.connector.tasks[0] = FakeTask("RUNNING", follower)
    with pytest.raises(RefusedError, match="connector c is STOPPED with 1 task; --via connect needs it STOPPED"):
        plan_fence(scene.app(), REQUEST)
    del scene.connector.tasks[0]
    with pytest.raises(RefusedError, match="worker w9:8083 of group g may run their tasks"):
        plan_fence(scene.app(), REQUEST)


def test_a_task_that_ended_is_not_in_the_way_though_rest_shows_it(scene: Scene) -> None:
    """Its worker's last word brings it back to REST, until the next rebalance: `fence` was refused all that time."""
    scene.connector.tasks[0] = FakeTask("UNASSIGNED", URL)
    scene.connect.after("fence", fences(scene, 0, 1, 2))
    report = fence(scene)
    assert (set(outcomes(report).values()), report.exit_code) == ({"fenced"}, ExitCode.OK)


def test_the_leader_is_shown_the_credentials_that_were_given_for_it(scene: Scene) -> None:
    app = scene.app()
    app = replace(app, target=replace(app.target, connect_urls=("http://other:8083", "http://user:pw@w0:8083/")))
    leader_worker(app).connectors()
    assert scene.connect.opened == ["http://user:pw@w0:8083/"]


def test_the_leader_is_asked_and_no_other_worker(scene: Scene) -> None:
    scene.connect.modes = {"http://w9:8083": "enabled", URL: "enabled"}
    scene.connect.opened.clear()
    scene.connect.after("fence", lambda _call: opened.append(scene.connect.opened[-1]))
    opened: list[str] = []
    fence(scene)
    assert opened == ["http://w9:8083"]


def test_without_a_leader_there_is_nobody_to_ask(scene: Scene) -> None:
    scene.connect.rebalance(math.inf)
    with pytest.raises(ConnectError, match="group g has no leader now"):
        plan_fence(scene.app(), REQUEST)


def test_another_record_than_planned_makes_the_plan_stale(scene: Scene) -> None:
    plan = plan_fence(scene.app(), REQUEST)
    scene.keep_config("tasks-fencing-c", {"task-count": 2})
    with pytest.raises(StalePlanError, match="was 3 in the plan and is 2 now"):
        apply_fence(scene.app(), plan)
    assert scene.connect.fenced == []
