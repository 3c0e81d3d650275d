"""The driver `kubernetes` with a kubectl that keeps a cluster in a folder: who restarts the pods, and who doesn't."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.upgrade import Mode
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, ExitCode, NotFoundError, RefusedError, UsageError
from eosctl.ops.app import App
from eosctl.ops.upgrade_apply import RollRequest, prepare_roll
from eosctl.ops.upgrade_drivers.kubernetes import KubernetesDriver, kubernetes_driver
from eosctl.ops.upgrade_roll import apply_roll
from eosctl.profiles import Target
from eosctl.report import Report
from tests.fakes.faults import EVERY, Call, KilledError
from tests.fakes.kubectl import Cluster
from tests.fakes.rolling import RollWorld

ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
SETTING = "exactly.once.source.support"
VARIABLE = "CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    found = Cluster(tmp_path / "cluster")
    found.install(directory)
    return found


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(target=Target(), deadline=Deadline.after(30), state_dir=tmp_path)


@dataclass
class Pods(RollWorld):
    """A worker in each pod of the StatefulSet `connect`, in the mode that it had when the pod was made."""

    cluster: Cluster = field(default_factory=lambda: Cluster(Path()))
    seen: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.topics.before("read", self.follow)
        self.brokers.calls.before(EVERY, self.follow)
        self.connect.before("connectors", self.follow)

    def follow(self, _call: Call | None = None) -> None:
        """Pods that are deleted and made anew are workers that leave and come."""
        mode = self.cluster.read("statefulset/connect")["env"].get(VARIABLE, "disabled")
        for name, pod in sorted(self.cluster.pods().items()):
            url, uid = f"http://{name}:8083", pod["metadata"]["uid"]
            if self.seen.setdefault(url, uid) == uid:
                continue
            self.stop(url)
            if pod["status"]["conditions"][0]["status"] == "True":
                self.seen[url], self.files[url] = uid, mode
                self.start(url)


def pods(cluster: Cluster, count: int, **spec: Any) -> Pods:
    """So many disabled workers, the first pod's leads."""
    cluster.add("statefulset/connect", pods=count, spec=spec)
    there = Pods({f"http://connect-{number}:8083": "disabled" for number in range(count)}, cluster=cluster)
    there.follow()
    return there


def roll(there: Pods, state: Path, target: Mode | None = Mode.ENABLED, **request: Any) -> Report:
    app = there.app(state)
    driver = kubernetes_driver(app, "statefulset/connect", None, None)
    request = {"settle_timeout_s": 60.0, **request}
    return apply_roll(app, prepare_roll(app, RollRequest(target, **request), driver))


def deleted(cluster: Cluster) -> list[str]:
    return [words[1] for words in cluster.calls() if words[0] == "delete"]


def test_pods_that_nobody_restarts_are_deleted_one_by_one_the_leader_last(cluster: Cluster, tmp_path: Path) -> None:
    """`kubectl rollout status` refused them after the workload was changed, and no pod was ever restarted."""
    there = pods(cluster, 3, **ON_DELETE)
    report = roll(there, tmp_path / "state")
    assert report.exit_code is ExitCode.OK, report.problems
    assert there.starts == [
        ("http://connect-2:8083", "preparing"), ("http://connect-1:8083", "preparing"),
        ("http://connect-0:8083", "preparing"),
        ("http://connect-1:8083", "enabled"), ("http://connect-0:8083", "enabled"),
        ("http://connect-2:8083", "enabled"),
    ]  # fmt: skip
    assert deleted(cluster) == [f"pod/{url[7:16]}" for url, _mode in there.starts]
    assert "rollout" not in {words[0] for words in cluster.calls()}
    said = [event.message for event in there.events if event.message.startswith("pod connect-2")]
    assert said[:4] == [
        "pod connect-2: deleting it",
        "pod connect-2: waiting: the pod is not Ready",
        "pod connect-2: replaced, Ready and in the group as preparing",
        "pod connect-2: deleting it",
    ]
    assert any("updateStrategy OnDelete" in str(row["actions"]) for row in report.rows)


def test_a_run_that_was_cut_off_deletes_no_pod_twice(cluster: Cluster, tmp_path: Path) -> None:
    there = pods(cluster, 3, **ON_DELETE)

    def die(_url: str) -> None:
        raise KilledError

    there.after_start.append(die)
    with pytest.raises(KilledError):
        roll(there, tmp_path / "state")
    there.after_start.clear()
    assert deleted(cluster) == ["pod/connect-2"]
    report = roll(there, tmp_path / "state", None, resume=True)
    assert report.exit_code is ExitCode.OK, report.problems
    assert deleted(cluster)[:3] == ["pod/connect-2", "pod/connect-1", "pod/connect-0"]
    assert len(deleted(cluster)) == 6


def test_no_second_pod_while_the_first_does_not_come_back(cluster: Cluster, tmp_path: Path) -> None:
    there = pods(cluster, 3, **ON_DELETE)
    there.after_start.append(lambda url: there.stop(url))  # Ready, and never a member
    report = roll(there, tmp_path / "state", settle_timeout_s=10.0)
    assert report.exit_code is ExitCode.PARTIAL
    assert report.problems[0].message == (
        "pod connect-2: not back after 10 s; still waiting: no new member has joined the group"
    )
    assert deleted(cluster) == ["pod/connect-2"]


def test_a_workload_that_has_the_mode_already_is_restarted_all_the_same(cluster: Cluster, tmp_path: Path) -> None:
    """`preparing` can't be proven later: a second upgrade set it again, and waited for restarts that never came."""
    there = pods(cluster, 2, **ON_DELETE)
    assert roll(there, tmp_path / "state", Mode.PREPARING).exit_code is ExitCode.OK
    report = roll(there, tmp_path / "state")
    assert report.exit_code is ExitCode.OK, report.problems
    assert [mode for _url, mode in there.starts] == ["preparing"] * 4 + ["enabled"] * 2


@pytest.mark.parametrize("kind", ["statefulset", "deployment"])
def test_a_controller_that_rolls_is_waited_for(cluster: Cluster, app: App, kind: str) -> None:
    cluster.add(f"{kind}/connect", pods=0)
    driver = kubernetes_driver(app, f"{kind}/connect", "ns", "X")
    driver.bring(app, ["http://w"], Mode.ENABLED)
    set_env, status = ["set", "env", f"{kind}/connect", "X=enabled"], ["rollout", "status", f"{kind}/connect"]
    assert cluster.calls() == [set_env, status]
    assert driver.actions(["http://w"], Mode.ENABLED)[0] == f"kubectl --namespace ns set env {kind}/connect X=enabled"
    driver.bring(app, ["http://w"], Mode.ENABLED)
    assert cluster.calls()[2:] == [set_env, ["rollout", "restart", f"{kind}/connect"], status]


def test_strimzi_rolls_by_itself_and_is_asked_to_where_nothing_changes(cluster: Cluster, app: App) -> None:
    cluster.add("kafkaconnect/connect", spec={"config": {}})
    cluster.write("strimzipodset/connect-connect", {"metadata": {}})
    driver = kubernetes_driver(app, "kafkaconnect/connect", None, None)
    patch = json.dumps({"spec": {"config": {SETTING: "preparing"}}})
    change = ["patch", "kafkaconnect/connect", "--type", "merge", "--patch", patch]
    assert shlex.split(driver.actions([], Mode.PREPARING)[0]) == ["kubectl", *change], "to be pasted"
    driver.bring(app, [], Mode.PREPARING)
    assert cluster.calls() == [change]
    driver.bring(app, [], Mode.PREPARING)
    restart = ["annotate", "--overwrite", "strimzipodset/connect-connect", "strimzi.io/manual-rolling-update=true"]
    assert cluster.calls()[1:] == [change, restart]


def test_an_operator_that_never_comes_is_a_timeout(cluster: Cluster, tmp_path: Path) -> None:
    cluster.add("kafkaconnect/connect", spec={"config": {SETTING: "preparing"}}, metadata={"generation": 2})
    cluster.write("strimzipodset/connect-connect", {"metadata": {}})
    app = App(target=Target(), deadline=Deadline.after(0), state_dir=tmp_path)
    with pytest.raises(DeadlineError, match="Strimzi's operator to restart the pods of strimzipodset/connect-connect"):
        KubernetesDriver("kafkaconnect/connect").bring(app, [], Mode.PREPARING)


@pytest.mark.parametrize(
    ("what", "manifest", "complaint", "way_out"),
    [
        (
            "statefulset/connect",
            {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}},
            "partition 2: pods below that ordinal keep the old mode",
            "kubectl patch statefulset/connect --type merge --patch "
            """'{"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}'""",
        ),
        ("deployment/connect", {"spec": {"paused": True}}, "is paused", "kubectl rollout resume deployment/connect"),
        (
            "kafkaconnect/connect",
            {"metadata": {"annotations": {"strimzi.io/pause-reconciliation": "true"}}},
            "is paused: Strimzi's operator",
            "kubectl annotate kafkaconnect/connect strimzi.io/pause-reconciliation-",
        ),
    ],
)
def test_what_would_not_reach_every_pod_is_refused_before_anything_is_changed(
    cluster: Cluster, app: App, what: str, manifest: dict[str, Any], complaint: str, way_out: str
) -> None:
    cluster.add(what, **manifest)
    with pytest.raises(RefusedError, match=complaint) as planned:
        kubernetes_driver(app, what, None, None)
    assert way_out in str(planned.value.hint)
    with pytest.raises(RefusedError, match=complaint):
        KubernetesDriver(what).bring(app, ["http://w"], Mode.ENABLED)
    assert cluster.calls() == []


def test_an_old_partition_does_not_matter_to_on_delete(cluster: Cluster, app: App) -> None:
    strategy = {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 2}}}
    cluster.add("statefulset/connect", spec=strategy)
    assert kubernetes_driver(app, "statefulset/connect", None, None).deletes_pods


@pytest.mark.usefixtures("cluster")
def test_what_is_not_there(app: App, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no deployment/x in namespace ns"):
        kubernetes_driver(app, "deployment/x", "ns", None)
    (tmp_path / "bin" / "kubectl").write_text("#!/bin/sh\necho '[]'\n")
    with pytest.raises(EosctlError, match="answered with something else than an object"):
        kubernetes_driver(app, "deployment/x", None, None)


def test_a_pod_set_is_its_operators(app: App) -> None:
    with pytest.raises(UsageError, match="its operator takes back what is changed there") as refused:
        kubernetes_driver(app, "strimzipodset/my-connect", None, None)
    assert str(refused.value.hint).endswith("--workload kafkaconnect/my")


def test_a_workload_that_is_a_part_of_the_group_is_refused_before_anything_is_changed(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Its pods were restarted, and those of the other workload never: the roll waited for them in vain."""
    there = pods(cluster, 2)
    there.files["http://other:8083"] = "disabled"
    there.start("http://other:8083")
    there.settle()
    with pytest.raises(RefusedError, match="statefulset/connect has 2 pods, and the group 3 members: not all of"):
        roll(there, tmp_path / "state")
    assert cluster.calls() == []
