"""The gates of `--driver kubernetes` where nothing is changed: `upgrade plan` and `upgrade verify`."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.core.workers.modes import Mode
from eosctl.errors import ExitCode, RefusedError
from eosctl.report import Report
from eosctl.upgrade.drivers.kubernetes.driver import kubernetes_driver, named_workloads
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from eosctl.upgrade.gates import DRIVER_GATE_IDS
from eosctl.upgrade.plan import plan_upgrade
from eosctl.upgrade.rows import PlanData
from eosctl.upgrade.status import verify_upgrade
from tests.fakes.kubectl import Cluster
from tests.upgrade.drivers.kubernetes_stage import Pods, pods, roll


def planned(there: Pods, state: Path, workload: str, target: Mode = Mode.ENABLED) -> Report:
    app = there.app(state)
    return plan_upgrade(app, target, driver=kubernetes_driver(app, [workload], Kubectl("ns")))


def gates_of(report: Report) -> dict[str, str]:
    """Those of the driver, by their ids."""
    return {row.id: row.status for row in report.data_of(PlanData).gates if row.id in DRIVER_GATE_IDS}


def test_a_plan_says_what_apply_would_stop_at(cluster: Cluster, tmp_path: Path) -> None:
    """A plan had no failing gate, and `apply --driver kubernetes` then refused."""
    there = pods(cluster, 2, strategy={"type": "Recreate"})
    cluster.add("statefulset/other", pods=2)
    cluster.forbid("patch")
    mine = planned(there, tmp_path, "sts/connect")
    assert gates_of(mine) == {"workload_matches": "pass", "workload_rolls": "fail", "kubectl_rights": "fail"}
    assert mine.exit_code is ExitCode.FINDINGS
    assert mine.data.place == "statefulset/connect in namespace ns of context dev (https://dev.example:6443)"
    assert gates_of(planned(there, tmp_path, "sts/other"))["workload_matches"] == "fail"
    assert cluster.calls() == []


@pytest.mark.parametrize("reason", ["", " - no RBAC policy matched", " - RBAC: clusterrole x not found"])
def test_a_no_with_a_reason_is_a_no(cluster: Cluster, tmp_path: Path, reason: str) -> None:
    """It was an error that no --accept-gate could set aside; a warning of kubectl's hid the word."""
    there = pods(cluster, 1)
    cluster.forbid("patch", f"no{reason}")
    assert gates_of(planned(there, tmp_path, "sts/connect"))["kubectl_rights"] == "fail"


def test_the_right_to_restart_strimzi_s_pods_is_asked_for(cluster: Cluster, tmp_path: Path) -> None:
    """Every right was there, it said, and the annotation of the pod set was refused in mid-run."""
    app = pods(cluster, 1).app(tmp_path)
    cluster.add("kafkaconnect/c", spec={"config": {}})
    cluster.forbid("patch strimzipodset/c-connect")
    gates = kubernetes_driver(app, ["kc/c"], Kubectl()).gates(app, [], accepted=(), complete=True)
    (rights,) = [gate for gate in gates if gate.id == "kubectl_rights"]
    assert (rights.status, rights.evidence) == ("fail", "kubectl auth can-i says no: patch strimzipodset/c-connect")


@pytest.mark.parametrize("kind", ["KafkaConnect", "KafkaMirrorMaker2"])
def test_a_resource_of_strimzi_s_rolls_one_by_one_and_has_three_pods_by_default(
    cluster: Cluster, tmp_path: Path, kind: str
) -> None:
    """Eight replicas were a Deployment's 25 percent, so that two could be down; and without a number there was one."""
    app = pods(cluster, 1).app(tmp_path)
    what = f"{kind.lower()}/c"
    cluster.add(what, spec={"config": {}, "replicas": 8})
    driver = kubernetes_driver(app, [what], Kubectl())
    assert dict(driver.crowded) == {what: ()}
    found = cluster.read(what)
    cluster.write(what, {"kind": kind, "metadata": found["metadata"], "spec": {"config": {}}})
    assert driver.expected(app) == 3


def test_on_the_way_back_a_plan_misses_no_pod(cluster: Cluster, tmp_path: Path) -> None:
    """A pod that an upgrade broke is no obstacle to leaving it, as with `apply`."""
    there = pods(cluster, 2)
    there.after_start.append(lambda url: there.stop(url))
    assert roll(there, tmp_path).exit_code is ExitCode.PARTIAL
    assert gates_of(planned(there, tmp_path, "sts/connect"))["workload_matches"] == "fail"
    assert gates_of(planned(there, tmp_path, "sts/connect", Mode.DISABLED))["workload_matches"] == "pass"


def test_verify_misses_the_members_of_pods(cluster: Cluster, tmp_path: Path) -> None:
    """A pod whose worker had never joined was not missed: whoever was in the group was enabled."""
    there = pods(cluster, 2)
    assert roll(there, tmp_path).exit_code is ExitCode.OK
    app = there.app(tmp_path)
    driver = named_workloads(app, ["sts/connect"], Kubectl())
    assert verify_upgrade(app, Mode.ENABLED, driver=driver).exit_code is ExitCode.OK
    there.stop("http://connect-1:8083")
    there.settle()
    there.held = True
    [finding] = verify_upgrade(app, Mode.ENABLED, driver=driver).rows
    assert (finding.code, "no member of the group is in connect-1" in finding.message) == (
        "workload_matches",
        True,
    )
    accepted = frozenset({"workload_matches"})
    assert verify_upgrade(app, Mode.ENABLED, accepted=accepted, driver=driver).exit_code is ExitCode.OK


def test_what_is_only_looked_at_need_not_be_fit_for_a_change(cluster: Cluster, tmp_path: Path) -> None:
    there = pods(cluster, 1, paused=True)
    app = there.app(tmp_path)
    with pytest.raises(RefusedError, match="is paused"):
        kubernetes_driver(app, ["sts/connect"], Kubectl())
    driver = named_workloads(app, ["sts/connect"], Kubectl())
    findings = verify_upgrade(app, Mode.ENABLED, driver=driver).rows
    assert "workload_matches" not in {row.code for row in findings}
