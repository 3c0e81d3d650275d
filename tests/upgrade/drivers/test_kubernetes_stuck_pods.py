"""Pods that never get Ready, and that the controller of a StatefulSet leaves as they are: the way back."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline, Event
from eosctl.errors import DeadlineError, ExitCode, RefusedError
from eosctl.target import Target
from eosctl.upgrade.drivers.kubernetes.driver import kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from eosctl.upgrade.drivers.kubernetes.pods import StuckPods
from eosctl.upgrade.drivers.manifests.pods import Pod
from eosctl.upgrade.roll.report import plan_report, question
from eosctl.upgrade.roll.roll import apply_roll
from tests.fakes.clock import FakeTime
from tests.fakes.kubectl import Cluster
from tests.upgrade.drivers.kubernetes_stage import Pods, deleted, pods, prepare, roll

WHY = "is not Ready: CrashLoopBackOff; container connect logged last: no such broker / bye"


def broken_upgrade(cluster: Cluster, state: Path, count: int) -> Pods:
    """The first pod that became preparing never got Ready; by now what broke it is mended."""
    there = pods(cluster, count)
    cluster.breaks("CrashLoopBackOff", "no such broker", "bye")
    report = roll(there, state, settle_timeout_s=20.0)
    assert report.exit_code is ExitCode.PARTIAL
    assert f"; pod connect-{count - 1} {WHY}" in report.problems[0].message
    cluster.breaks(None)
    return there


@pytest.mark.parametrize("count", [1, 2])
def test_the_way_back_names_the_pod_and_deletes_it_after_asking(cluster: Cluster, tmp_path: Path, count: int) -> None:
    """It was deleted without a question, and with one replica nothing was to be done, with exit code 0."""
    there = broken_upgrade(cluster, tmp_path, count)
    app, prepared = prepare(there, tmp_path, Mode.DISABLED, start_over=True)
    last = f"connect-{count - 1}"
    assert (
        question(prepared, watching=False)
        == f"Restart the workers to reach disabled, and delete pod {last} if not Ready?"
    )
    plan = plan_report(app, prepared)
    assert [(each.code, each.message) for each in plan.problems] == [("pod_not_ready", f"pod {last} {WHY}")]
    assert f"kubectl delete pod/{last}, if it is not Ready by then" in str(plan.rows[0].actions)
    assert deleted(cluster) == []
    report = apply_roll(app, prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert deleted(cluster) == [f"pod/{last}"]
    assert there.workers == {f"http://connect-{number}:8083": "disabled" for number in range(count)}
    (said,) = [event.message for event in there.events if event.warning]
    assert said.endswith("and its controller does not replace such a pod: deleting it")


def test_a_pod_that_broke_after_the_question_is_left_for_the_next(cluster: Cluster, tmp_path: Path) -> None:
    there = pods(cluster, 2)
    app = there.app(tmp_path)
    driver = kubernetes_driver(app, ["sts/connect"], Kubectl())
    cluster.hang("connect-1", "CrashLoopBackOff")
    with pytest.raises(DeadlineError, match="pod connect-1 is not Ready: CrashLoopBackOff") as late:
        driver.bring(app, [], Mode.DISABLED)
    assert str(late.value.hint).startswith("Pod connect-1: --resume asks whether to delete it. ")
    assert deleted(cluster) == []
    told = [event.message for event in there.events if event.warning]
    assert told == [
        "pod connect-1: it is of the former revision and not Ready (CrashLoopBackOff), and its controller does not "
        "replace such a pod; --resume asks whether to delete it"
    ]
    app = there.app(tmp_path)
    kubernetes_driver(app, ["sts/connect"], Kubectl()).bring(app, [], Mode.DISABLED)
    assert deleted(cluster) == ["pod/connect-1"]


def test_a_pod_that_gets_ready_after_all_is_not_deleted(cluster: Cluster, tmp_path: Path) -> None:
    there = pods(cluster, 2)
    cluster.hang("connect-1", "CrashLoopBackOff")
    app = there.app(tmp_path)
    driver = kubernetes_driver(app, ["sts/connect"], Kubectl())
    assert list(driver.deletes()) == ["connect-1"]

    def heal(event: Event) -> None:
        if "connect-1: not Ready" in event.message:
            cluster.write("pod/connect-1", {**cluster.read("pod/connect-1"), "stuck": False})

    driver.bring(replace(app, on_event=heal), [], Mode.DISABLED)
    assert deleted(cluster) == []


@pytest.mark.parametrize("spec", [{}, {"updateStrategy": {"type": "OnDelete"}}], ids=["none", "on delete"])
def test_nothing_is_asked_where_no_pod_is_stuck(cluster: Cluster, tmp_path: Path, spec: dict[str, object]) -> None:
    """With OnDelete every pod is deleted anyway, and the plan says so."""
    there = pods(cluster, 1, **spec)
    if spec:
        cluster.hang("connect-0", "CrashLoopBackOff")
    _app, prepared = prepare(there, tmp_path)
    assert question(prepared, watching=False) == "Restart the workers to reach enabled?"


def test_a_group_without_members_is_not_where_it_should_be(cluster: Cluster, tmp_path: Path) -> None:
    """No worker had to change, as none was there: exit code 0."""
    there = pods(cluster, 1)
    cluster.hang("connect-0", "CrashLoopBackOff")
    there.stop("http://connect-0:8083")
    there.settle()
    with pytest.raises(RefusedError, match="nothing is left to be done, but pod connect-0 is no member of the group"):
        prepare(there, tmp_path)


def test_secrets_in_a_log_are_not_told(cluster: Cluster, tmp_path: Path) -> None:
    """Images print the properties that they make of variables: passwords went into the plan and the journal."""
    there = pods(cluster, 1)
    line = "--- Setting property from CONNECT_SASL_JAAS_CONFIG: sasl.jaas.config=x.Module required password=hunter2;"
    cluster.breaks("CrashLoopBackOff", line, "Invalid token: expired", "ssl.keystore.password = hunter2")
    report = roll(there, tmp_path, settle_timeout_s=20.0)
    said = report.problems[0].message
    assert "Setting property from CONNECT_SASL_JAAS_CONFIG: sasl.jaas.config=*** / Invalid token: expired / " in said
    assert "ssl.keystore.password = ***" in said
    assert "hunter2" not in said


def test_logs_that_no_node_gives_take_no_longer_than_the_look(tmp_path: Path) -> None:
    """Each pod of a node that was gone took its own time, when the whole time was over."""

    class Silent(Kubectl, frozen=True):
        def run(self, app: App, *words: str, stdin: bytes = b"") -> bytes:
            assert words[0] == "logs"
            app.clock.sleep_s(app.deadline.remaining_s())
            raise DeadlineError("kubectl did not end in time")

    time = FakeTime()
    app = App(Target(), Deadline.after(30, time.clock()), tmp_path, clock=time.clock())
    there = [Pod(f"connect-{number}", "n", "sts/connect", (), "", ready=False, container="c") for number in range(9)]
    told = StuckPods(Silent(), ()).timed_out(app, "sts/connect", there, timeout_s=60)
    assert [pod.name in told.message for pod in there] == [True] * 9
    assert time.now_s == 30
