"""Pods with containers beside the worker's: nothing is changed in those."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.errors import RefusedError, UsageError
from eosctl.upgrade.drivers.kubernetes.driver import kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from tests.fakes.kubectl import Cluster
from tests.upgrade.drivers.kubernetes_stage import CONNECT, FILE, VARIABLE, mounting


def add(cluster: Cluster, *containers: dict[str, object], pods: int = 2) -> None:
    cluster.add("statefulset/connect", pods=pods, spec={"template": {"spec": {"containers": list(containers)}}})


def test_sidecars_are_left_alone(cluster: Cluster, app: App) -> None:
    """`kubectl set env` changed every container of the template, and init containers too."""
    old = {"name": VARIABLE, "value": "disabled"}
    add(cluster, {"name": "proxy"}, {"name": "worker", "env": [old], "readinessProbe": {}})
    driver = kubernetes_driver(app, ["sts/connect"], Kubectl())
    driver.bring(app, [], Mode.ENABLED)
    assert cluster.variables("statefulset/connect", "proxy") == {}
    assert cluster.variables("statefulset/connect", "worker") == {VARIABLE: "enabled"}
    assert driver.mode(app) is Mode.ENABLED


def test_a_probe_of_a_sidecar_says_nothing_of_the_worker(cluster: Cluster, app: App) -> None:
    """Any container's readinessProbe counted: the next pod went down before the worker was back."""
    add(cluster, {"name": "proxy", "readinessProbe": {}}, {"name": "worker"})
    driver = kubernetes_driver(app, ["sts/connect"], Kubectl(), container="worker", variable=VARIABLE)
    assert "has a readinessProbe" in driver.crowded["statefulset/connect"][0]
    other = kubernetes_driver(app, ["sts/connect"], Kubectl(), container="proxy", variable=VARIABLE)
    assert other.crowded["statefulset/connect"] == ()


def test_with_a_file_too_the_probe_of_the_worker_counts(cluster: Cluster, tmp_path: Path) -> None:
    """With --configmap any container's readinessProbe counted, if no --container was given."""
    there = mounting(cluster)
    found = cluster.read(CONNECT)
    pod = found["spec"]["template"]["spec"]
    pod["containers"] = [{"name": "proxy", "readinessProbe": {}}, {"name": "main", "image": "debezium/connect:3"}]
    cluster.write(CONNECT, found)
    app = there.app(tmp_path)
    assert "has a readinessProbe" in kubernetes_driver(app, [CONNECT], Kubectl(), file=FILE).crowded[CONNECT][0]
    pod["containers"][1]["image"] = "mine"
    cluster.write(CONNECT, found)
    assert kubernetes_driver(app, [CONNECT], Kubectl(), file=FILE).crowded[CONNECT] == (), "nothing tells which it is"


def test_which_container_it_is_must_be_said_where_nothing_tells(cluster: Cluster, app: App) -> None:
    add(cluster, {"name": "a"}, {"name": "b"})
    with pytest.raises(RefusedError, match="has the containers a, b"):
        kubernetes_driver(app, ["sts/connect"], Kubectl())
    kubernetes_driver(app, ["sts/connect"], Kubectl(), container="b", variable=VARIABLE).bring(app, [], Mode.PREPARING)
    assert cluster.variables("statefulset/connect", "b") == {VARIABLE: "preparing"}
    cluster.add("kafkaconnect/other")
    with pytest.raises(UsageError, match="--container is for statefulset/ and deployment/"):
        kubernetes_driver(app, ["kc/other"], Kubectl(), container="b")
