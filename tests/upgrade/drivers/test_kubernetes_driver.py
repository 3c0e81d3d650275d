"""The driver `kubernetes` with a kubectl that keeps a cluster in a folder: who restarts the pods, and who doesn't."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline
from eosctl.errors import (
    ConnectError,
    DeadlineError,
    EosctlError,
    ExitCode,
    NotFoundError,
    RefusedError,
    UnauthorizedError,
    UnreachableError,
    UsageError,
)
from eosctl.events import Event
from eosctl.target import Target
from eosctl.upgrade.drivers.kubernetes.driver import KubernetesDriver, kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from eosctl.upgrade.drivers.kubernetes.workloads import parse_workload
from eosctl.upgrade.roll.roll import apply_roll
from eosctl.upgrade.roll.rows import JOINED
from tests.fakes.clock import PLENTY_S
from tests.fakes.faults import Call, KilledError
from tests.fakes.kubectl import Cluster
from tests.upgrade.drivers.kubernetes_stage import ON_DELETE, VARIABLE, Pods, deleted, pods, prepare, roll

SETTING = "exactly.once.source.support"


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(target=Target(), deadline=Deadline.after(PLENTY_S), state_dir=tmp_path)


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
    app = App(target=Target(), deadline=Deadline.after(0), state_dir=tmp_path)
    with pytest.raises(DeadlineError, match="Strimzi's operator to restart the pods of strimzipodset/connect-connect"):
        KubernetesDriver((parse_workload("kafkaconnect/connect"),)).bring(app, [], Mode.PREPARING)


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
        kubernetes_driver(app, [what], Kubectl())
    assert way_out in str(planned.value.hint)
    with pytest.raises(RefusedError, match=complaint):
        KubernetesDriver((parse_workload(what),)).bring(app, ["http://w"], Mode.ENABLED)
    assert cluster.calls() == []


def test_a_workload_that_an_operator_made_is_refused(cluster: Cluster, app: App) -> None:
    """It was changed, and its operator took that back in the middle of the pass."""
    owner = {"apiVersion": "platform.confluent.io/v1beta1", "kind": "Connect", "name": "connect", "controller": True}
    cluster.add("statefulset/connect", metadata={"ownerReferences": [owner]})
    with pytest.raises(RefusedError, match=r"is made by Connect/connect \(platform.confluent.io/v1beta1\)"):
        kubernetes_driver(app, ["sts/connect"], Kubectl())
    cluster.add("statefulset/mine", metadata={"ownerReferences": [{**owner, "controller": False}]})
    assert kubernetes_driver(app, ["sts/mine"], Kubectl()).expected(app) == 0


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


@pytest.mark.usefixtures("cluster")
def test_what_is_not_there(app: App, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no deployment/x in namespace ns"):
        kubernetes_driver(app, ["deployment/x"], Kubectl("ns"))
    (tmp_path / "bin" / "kubectl").write_text("#!/bin/sh\necho '[]'\n")
    with pytest.raises(EosctlError, match="answered with something else than an object"):
        kubernetes_driver(app, ["deployment/x"], Kubectl())


def test_a_pod_set_is_its_operators(app: App) -> None:
    with pytest.raises(UsageError, match="its operator takes back what is changed there") as refused:
        kubernetes_driver(app, ["strimzipodset/my-connect"], Kubectl())
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


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_to_do_follows_from_the_journal_when_nobody_is_there(
    cluster: Cluster, tmp_path: Path, count: int
) -> None:
    """With no worker in the group `--resume` dropped the pass `enabled`, and called the upgrade finished."""
    there = pods(cluster, count)
    to_come = [KilledError()]

    def die(_call: Call) -> None:
        if to_come and not there.workers:
            raise to_come.pop()

    there.held = True
    there.connect.after("stop_worker", die)
    with pytest.raises(KilledError):
        roll(there, tmp_path / "state")
    app, prepared = prepare(there, tmp_path / "state", None, resume=True)
    assert not there.workers
    assert {mode for mode, _worker in prepared.steps()} == {Mode.PREPARING, Mode.ENABLED}
    there.held = False
    report = apply_roll(app, prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert set(there.workers.values()) == {"enabled"}
    assert len(there.workers) == count


def test_a_run_is_resumed_while_pods_are_being_restarted(cluster: Cluster, tmp_path: Path) -> None:
    """A worker that was a member and did not answer yet made `same_kafka_cluster` unknown: --resume was refused."""
    there = pods(cluster, 1)
    url = "http://connect-0:8083"

    def die(_url: str) -> None:
        raise KilledError

    there.after_start.append(die)
    with pytest.raises(KilledError):
        roll(there, tmp_path / "state")
    there.after_start.clear()
    there.connect.hidden.add(url)
    app, prepared = prepare(there, tmp_path / "state", None, resume=True)
    assert list(there.workers) == [url]
    assert "same_kafka_cluster" in {gate.id for gate in prepared.gates if gate.stops_apply}
    assert prepared.blocking == ()
    there.connect.hidden.clear()
    report = apply_roll(app, prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert there.workers == {url: "enabled"}


def run_until(there: Pods, state: Path, words: str) -> None:
    """A roll whose process is killed when a message begins with `words`."""

    def die(event: Event) -> None:
        if event.message.startswith(words):
            raise KilledError

    app, prepared = prepare(there, state)
    with pytest.raises(KilledError):
        apply_roll(replace(app, on_event=die), prepared)


def test_pods_that_are_new_already_are_not_restarted_again(cluster: Cluster, tmp_path: Path) -> None:
    """eosctl was killed while the controller was at work, and the same mode was then rolled out once more."""
    there = pods(cluster, 2)

    run_until(there, tmp_path / "state", "pod connect-0: Ready, revision r2")
    report = roll(there, tmp_path / "state", None, resume=True)
    assert report.exit_code is ExitCode.OK, report.problems
    assert [words[:2] for words in cluster.calls()] == [["set", "env"]] * 2, "one for each pass, and no restart"
    assert {pod["starts"] for pod in cluster.pods().values()} == {3}
    assert "the pods were made as preparing before this run" in str(report.rows[0]["detail"])


def test_between_the_passes_with_nobody_there(cluster: Cluster, tmp_path: Path) -> None:
    """Nobody was there to be brought to enabled, and so it was finished."""
    there = pods(cluster, 1)

    run_until(there, tmp_path / "state", "pass enabled")
    there.held = True
    there.stop("http://connect-0:8083")
    there.seen.clear()
    app, prepared = prepare(there, tmp_path / "state", None, resume=True)
    assert prepared.steps() == [(Mode.ENABLED, "pod connect-0")]
    there.held = False
    there.follow()
    there.settle()
    report = apply_roll(app, prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert there.workers == {"http://connect-0:8083": "enabled"}


def test_a_workload_of_another_group_is_refused_before_anything_is_written(cluster: Cluster, tmp_path: Path) -> None:
    """`-g` and `--workload` were never compared: the pods of another Connect cluster were restarted."""
    there = pods(cluster, 2)
    cluster.add("statefulset/other", pods=2)
    _app, prepared = prepare(there, tmp_path / "state", workloads=["sts/other"])
    (gate,) = prepared.blocking
    assert (gate.id, gate.status) == ("workload_matches", "fail")
    assert gate.evidence == (
        "http://connect-0:8083, http://connect-1:8083 is in no pod of statefulset/other (pods: other-0 10.0.0.2, "
        "other-1 10.0.0.3); no member of the group is in other-0, other-1"
    )
    assert cluster.calls() == []
    _app, prepared = prepare(
        there, tmp_path / "state", workloads=["sts/other"], accepted=frozenset({"workload_matches"})
    )
    assert prepared.blocking == ()


def test_what_can_not_be_changed_one_after_the_other_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """`one after the other` was said of `Recreate`, too, and a right that lacks was found in the middle of a pass."""
    there = pods(cluster, 2, strategy={"type": "Recreate"})
    cluster.forbid("patch")
    _app, prepared = prepare(there, tmp_path / "state")
    assert {gate.id: gate.evidence for gate in prepared.blocking} == {
        "workload_rolls": "statefulset/connect: strategy Recreate stops all pods before the first new one starts",
        "kubectl_rights": "kubectl auth can-i says no: patch statefulset/connect",
    }
    assert "several at once: strategy Recreate" in prepared.driver.actions([], Mode.ENABLED)[1]
    assert cluster.calls() == []


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
    joined = [(row["mode"], row["worker"]) for row in report.rows if row["detail"] == JOINED]
    assert joined == [("preparing", "http://connect-2:8083"), ("enabled", "http://connect-2:8083")]


def test_an_upgrade_is_resumed_where_it_was_begun(cluster: Cluster, tmp_path: Path) -> None:
    """`--resume` with another --workload would have gone on with the pods of that one."""
    there = pods(cluster, 1)
    cluster.add("statefulset/other", pods=1)
    there.after_start.append(lambda url: there.stop(url))
    assert roll(there, tmp_path / "state", settle_timeout_s=5.0).exit_code is ExitCode.PARTIAL
    with pytest.raises(RefusedError, match="was begun with statefulset/connect in the context's namespace of context"):
        prepare(there, tmp_path / "state", None, resume=True, workloads=["statefulset/other"])


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
