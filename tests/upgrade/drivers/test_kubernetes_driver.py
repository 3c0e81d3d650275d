"""The driver `kubernetes` with a kubectl that keeps a cluster in a folder: who restarts the pods, and who doesn't."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from msgspec import field
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline, Event
from eosctl.errors import ConnectError, DeadlineError, EosctlError, ExitCode, UnauthorizedError, UnreachableError
from eosctl.target import Target
from eosctl.upgrade.drivers.kubernetes.driver import KubernetesDriver, kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from eosctl.upgrade.drivers.kubernetes.workloads import parse_workload
from eosctl.upgrade.roll.report import JOINED
from tests.fakes.clock import FakeTime
from tests.fakes.kubectl import Cluster
from tests.upgrade.drivers.kubernetes_stage import ON_DELETE, VARIABLE, deleted, pods, prepare, roll

SETTING = "exactly.once.source.support"


class Timed(Kubectl, frozen=True):
    """`left_s` is the time that each call had."""

    left_s: list[float] = field(default_factory=list)

    def run(self, app: App, *words: str, stdin: bytes = b"") -> bytes:
        self.left_s.append(app.deadline.remaining_s())
        return super().run(app, *words, stdin=stdin)


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
    assert any("updateStrategy OnDelete" in str(row.actions) for row in report.rows)


def test_no_second_pod_while_the_first_does_not_come_back(cluster: Cluster, tmp_path: Path) -> None:
    there = pods(cluster, 3, **ON_DELETE)
    there.after_start.append(lambda url: there.stop(url))  # Ready, and never a member
    report = roll(there, tmp_path / "state")
    assert report.exit_code is ExitCode.PARTIAL
    assert report.problems[0].message == (
        "pod connect-2: not back after 60 s; still waiting: no new member has joined the group"
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
    cluster.add(f"{kind}/connect", pods=1)
    driver = kubernetes_driver(app, [f"{kind}/connect"], Kubectl("ns"), variable="X")
    driver.bring(app, ["http://w"], Mode.ENABLED)
    set_env = ["set", "env", f"{kind}/connect", "--containers", "connect", "X=enabled"]
    assert cluster.calls() == [set_env]
    assert cluster.pods()["connect-0"]["starts"] == 2
    assert driver.actions(["http://w"], Mode.ENABLED)[0] == f"kubectl --namespace ns {' '.join(set_env)}"
    driver.bring(app, ["http://w"], Mode.ENABLED)
    assert cluster.calls()[1:] == [set_env, ["rollout", "restart", f"{kind}/connect"]]
    assert cluster.pods()["connect-0"]["starts"] == 3


def test_strimzi_rolls_by_itself_and_is_asked_to_where_nothing_changes(cluster: Cluster, app: App) -> None:
    cluster.add("kafkaconnect/connect", spec={"config": {}})
    cluster.write("strimzipodset/connect-connect", {"metadata": {}})
    driver = kubernetes_driver(app, ["kafkaconnect/connect"], Kubectl())
    patch = json.dumps({"spec": {"config": {SETTING: "preparing"}}})
    words = ["patch", "kafkaconnect/connect", "--type", "merge"]
    change = [*words, "--patch-file", "/dev/stdin", patch]
    assert shlex.split(driver.actions([], Mode.PREPARING)[0])[1:] == [*words, "--patch", patch], "to be pasted"
    driver.bring(app, [], Mode.PREPARING)
    assert cluster.calls() == [change]
    driver.bring(app, [], Mode.PREPARING)
    restart = ["annotate", "--overwrite", "strimzipodset/connect-connect", "strimzi.io/manual-rolling-update=true"]
    assert cluster.calls()[1:] == [change, restart]


def test_strimzi_s_resource_is_named_by_the_version_in_which_it_was_written(cluster: Cluster, app: App) -> None:
    """kubectl takes v1, where a resource of v1beta2 is not valid: `spec.groupId: Required value`."""
    written = [
        {"apiVersion": "kafka.strimzi.io/v1", "subresource": "status", "time": "2026-03-01T00:00:00Z"},
        {"apiVersion": "kafka.strimzi.io/v1beta2", "time": "2026-02-01T00:00:00Z"},
        {"apiVersion": "kafka.strimzi.io/v1", "time": "2026-01-01T00:00:00Z"},
    ]
    cluster.add("kafkaconnect/connect", spec={"config": {}}, metadata={"managedFields": written})
    cluster.write("kafkaconnect/connect", {**cluster.read("kafkaconnect/connect"), "apiVersion": "kafka.strimzi.io/v1"})
    stored = "kafkaconnects.v1beta2.kafka.strimzi.io/connect"
    driver = kubernetes_driver(app, ["kafkaconnect/connect"], Kubectl())
    assert shlex.split(driver.actions([], Mode.ENABLED)[0])[1:3] == ["patch", stored]
    assert kubernetes_driver(app, [stored], Kubectl()).workloads == driver.workloads


@pytest.mark.parametrize(
    ("spec", "patch"),
    [
        (
            {"connectCluster": "b", "clusters": [{"alias": "a"}, {"alias": "b", "config": {}}]},
            ["json", [{"op": "add", "path": f"/spec/clusters/1/config/{SETTING}", "value": "enabled"}]],
        ),
        ({"target": {"alias": "b", "config": {}}}, ["merge", {"spec": {"target": {"config": {SETTING: "enabled"}}}}]),
    ],
    ids=["v1beta2", "v1"],
)
def test_strimzi_s_mirror_maker(cluster: Cluster, app: App, spec: dict[str, Any], patch: list[object]) -> None:
    """It was no kind that could be named."""
    cluster.add("kafkamirrormaker2/mm", spec=spec)
    driver = kubernetes_driver(app, ["kmm2/mm"], Kubectl())
    driver.bring(app, [], Mode.ENABLED)
    ((*words, given),) = cluster.calls()
    assert words == ["patch", "kafkamirrormaker2/mm", "--type", patch[0], "--patch-file", "/dev/stdin"]
    assert json.loads(given) == patch[1]
    assert driver.mode(app) is Mode.ENABLED


def test_what_strimzis_operator_refuses_is_told_at_once(cluster: Cluster, app: App) -> None:
    """observedGeneration moves on failure, too: it counted as done."""
    cluster.add("kafkaconnect/connect", spec={"config": {}})
    found = cluster.read("kafkaconnect/connect")
    ill = {"type": "NotReady", "status": "True", "reason": "InvalidResourceException", "message": "groupId is missing"}
    found["status"]["conditions"] = [ill]
    cluster.write("kafkaconnect/connect", found)
    with pytest.raises(ConnectError, match="is NotReady: InvalidResourceException: groupId is missing"):
        kubernetes_driver(app, ["kc/connect"], Kubectl()).bring(app, [], Mode.ENABLED)


def test_an_operator_that_never_comes_is_a_timeout(cluster: Cluster, tmp_path: Path) -> None:
    cluster.add("kafkaconnect/connect", spec={"config": {SETTING: "preparing"}}, metadata={"generation": 2})
    cluster.write("strimzipodset/connect-connect", {"metadata": {}})
    cluster.operator = False
    clock, kubectl = FakeTime().clock(), Timed()
    app = App(target=Target(), deadline=Deadline.after(60, clock), state_dir=tmp_path, clock=clock)
    with pytest.raises(DeadlineError, match="Strimzi's operator to restart the pods of strimzipodset/connect-connect"):
        KubernetesDriver((parse_workload("kafkaconnect/connect"),), kubectl).bring(app, [], Mode.PREPARING)
    assert min(kubectl.left_s) == 30, "the last look had a second, and its end was what the command told"


def test_a_pod_of_the_newest_revision_that_never_gets_ready_is_named(cluster: Cluster, tmp_path: Path) -> None:
    """`rollout status` said how many pods there were, and neither which nor why."""
    there = pods(cluster, 1)
    app = there.app(tmp_path)

    def hang(event: Event) -> None:
        if "revision r2" in event.message:
            cluster.hang("connect-0", "ImagePullBackOff")

    app = replace(app, on_event=hang)
    with pytest.raises(DeadlineError, match=r"not rolled out after 60 s; pod connect-0 is not Ready: ImagePullBackOff"):
        kubernetes_driver(app, ["sts/connect"], Kubectl()).bring(app, [], Mode.DISABLED)
    assert deleted(cluster) == []


def test_an_old_partition_does_not_matter_to_on_delete(cluster: Cluster, app: App) -> None:
    strategy = {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 2}}}
    cluster.add("statefulset/connect", spec=strategy)
    assert kubernetes_driver(app, ["statefulset/connect"], Kubectl()).deleted_by_us


def test_a_group_of_two_workloads(cluster: Cluster, tmp_path: Path) -> None:
    """One of them could be named: the workers of the other were waited for in vain."""
    there = pods(cluster, 1)
    cluster.add("deployment/more", pods=1)
    there.files["http://10.0.0.1:8083"] = "disabled"
    there.start("http://10.0.0.1:8083")
    there.settle()
    both = ["statefulset/connect", "deploy/more"]
    _app, prepared = prepare(there, tmp_path / "state", workloads=both)
    assert prepared.blocking == ()
    assert [line for line in prepared.driver.actions([], Mode.ENABLED) if line.startswith("kubectl")] == [
        f"kubectl set env {what} --containers connect {VARIABLE}=enabled"
        for what in ("statefulset/connect", "deployment/more")
    ]


@pytest.mark.parametrize("spec", [{}, ON_DELETE], ids=["rolling", "on delete"])
def test_a_workload_that_is_scaled_in_the_middle_of_a_pass(
    cluster: Cluster, tmp_path: Path, spec: dict[str, Any]
) -> None:
    """`3 of 2 members` was waited for until the time was up, and --resume waited for it again."""
    there = pods(cluster, 2, **spec)
    to_come = [3]

    def scale(_url: str) -> None:
        if to_come:
            cluster.scale("statefulset/connect", to_come.pop())

    there.after_start.append(scale)
    report = roll(there, tmp_path / "state")
    assert report.exit_code is ExitCode.OK, report.problems
    assert there.workers == {f"http://connect-{number}:8083": "enabled" for number in range(3)}
    joined = [(row.mode, row.worker) for row in report.rows if row.detail == JOINED]
    assert joined == [("preparing", "http://connect-2:8083"), ("enabled", "http://connect-2:8083")]


@pytest.mark.parametrize(
    ("says", "error"),
    [
        ('Error from server (Forbidden): statefulsets.apps "connect" is forbidden: User "u" can\'t', UnauthorizedError),
        ("E1122 memcache.go\nUnable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout", UnreachableError),
        ("The connection to the server localhost:8080 was refused - did you specify the right host?", UnreachableError),
    ],
)
def test_what_kubectl_says_has_its_exit_code(cluster: Cluster, app: App, says: str, error: type[EosctlError]) -> None:
    """Everything that kubectl could say was exit code 1, and of four lines the first was lost."""
    cluster.refuse(says)
    with pytest.raises(error) as caught:
        kubernetes_driver(app, ["statefulset/connect"], Kubectl("ns", "dev", "/k"))
    assert caught.value.message == (
        "kubectl --kubeconfig /k --context dev --namespace ns get statefulset/connect --ignore-not-found --output "
        f"json: {' / '.join(says.splitlines())}"
    )
