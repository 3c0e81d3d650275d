"""Confluent's operator: a Connect resource, and the StatefulSet that it makes. By its documentation; not tried."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.errors import RefusedError
from eosctl.upgrade.drivers import SETTING
from eosctl.upgrade.drivers.kubernetes.driver import KubernetesDriver, kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from tests.fakes.kubectl import Cluster

CONNECT = "connects.platform.confluent.io/c"
OWNER = {"apiVersion": "platform.confluent.io/v1beta1", "kind": "Connect", "name": "c", "controller": True}


def resource(cluster: Cluster, *server: str, **metadata: object) -> None:
    """Two replicas, and what the operator made of them."""
    cluster.add("statefulset/c", pods=2, metadata={"ownerReferences": [OWNER]})
    spec = {"replicas": 2, "configOverrides": {"server": list(server)}} if server else {"replicas": 2}
    cluster.write("connect/c", {"metadata": {"name": "c", "generation": 1, **metadata}, "spec": spec})


def driver_of(app: App, given: str = "connect/c") -> KubernetesDriver:
    return kubernetes_driver(app, [given], Kubectl())


def overrides(cluster: Cluster) -> Sequence[str]:
    return list(cluster.read("connect/c")["spec"]["configOverrides"]["server"])


@pytest.mark.parametrize("before", [(), ("a=b", f"{SETTING}=disabled", "c=d")], ids=["none", "some"])
def test_the_mode_is_one_of_the_server_s_overrides(cluster: Cluster, app: App, before: Sequence[str]) -> None:
    """Its StatefulSet was changed, and the operator took that back; now the resource is a kind of its own."""
    resource(cluster, *before)
    driver = driver_of(app)
    assert driver.actions([], Mode.PREPARING)[0] == (
        f"set {SETTING}=preparing in spec.configOverrides.server of {CONNECT}"
    )
    driver.bring(app, [], Mode.PREPARING)
    assert overrides(cluster) == [*(line for line in before if SETTING not in line), f"{SETTING}=preparing"]
    assert {pod["starts"] for pod in cluster.pods().values()} == {2}
    assert driver.mode(app) is Mode.PREPARING
    driver.bring(app, [], Mode.PREPARING)
    assert cluster.calls()[-1] == ["rollout", "restart", "statefulset/c"], "as its documentation says"
    assert {pod["starts"] for pod in cluster.pods().values()} == {3}
    assert driver.expected(app) == 2
    (patch,) = driver.patches(app, Mode.ENABLED)
    assert json.loads(json.dumps(patch.body))["spec"]["configOverrides"]["server"][-1] == f"{SETTING}=enabled"


@pytest.mark.parametrize("given", ["connects/c", CONNECT, "connect.v1beta1.platform.confluent.io/c"])
def test_how_it_may_be_called(cluster: Cluster, app: App, given: str) -> None:
    resource(cluster)
    assert driver_of(app, given).workloads[0].text.partition(".")[2].endswith("platform.confluent.io/c")


def test_its_stateful_set_is_refused_and_the_resource_named(cluster: Cluster, app: App) -> None:
    resource(cluster)
    with pytest.raises(RefusedError, match="statefulset/c is made by Connect/c") as refused:
        driver_of(app, "sts/c")
    assert str(refused.value.hint).endswith("--workload connect/c does so.")


def test_one_that_the_operator_leaves_alone_is_refused(cluster: Cluster, app: App) -> None:
    resource(cluster, annotations={"platform.confluent.io/block-reconcile": "true"})
    with pytest.raises(RefusedError, match="is paused: Confluent's operator would not restart its pods") as refused:
        driver_of(app)
    assert f"kubectl annotate {CONNECT} platform.confluent.io/block-reconcile-" in str(refused.value.hint)


def test_what_somebody_else_overrides_meanwhile_is_kept(cluster: Cluster, app: App) -> None:
    """The first refusal as a conflict ended the pass, where a properties file was edited once more."""
    resource(cluster, "a=b", resourceVersion="1")
    driver = driver_of(app)
    cluster.writes_between.append(lambda found: found["spec"]["configOverrides"]["server"].append("c=d"))
    driver.bring(app, [], Mode.PREPARING)
    assert overrides(cluster) == ["a=b", "c=d", f"{SETTING}=preparing"]
