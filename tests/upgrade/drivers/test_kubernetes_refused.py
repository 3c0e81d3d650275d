"""Workloads that the driver `kubernetes` refuses before anything is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError, NotFoundError, RefusedError, UsageError
from eosctl.upgrade.drivers.kubernetes.driver import KubernetesDriver, kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from eosctl.upgrade.drivers.kubernetes.workloads import parse_workload
from tests.fakes.kubectl import Cluster
from tests.upgrade.drivers.kubernetes_stage import pods, prepare, roll


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


@pytest.mark.usefixtures("cluster")
def test_what_is_not_there(app: App, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no deployment/x in namespace ns"):
        kubernetes_driver(app, ["deployment/x"], Kubectl("ns"))
    (tmp_path / "bin" / "kubectl").write_text("#!/bin/sh\necho '[]'\n")
    with pytest.raises(EosctlError, match="answered with something else than an object"):
        kubernetes_driver(app, ["deployment/x"], Kubectl())


def test_a_pod_set_is_its_operators(app: App) -> None:
    with pytest.raises(UsageError, match="its operator reverts changes there") as refused:
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
