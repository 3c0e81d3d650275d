"""The driver's part of a pass on real controllers; the pods do nothing, so no worker is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError
from eosctl.target import Target
from eosctl.upgrade.drivers.kubernetes.driver import KubernetesDriver, kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from tests.kubernetes.node import KubeNode
from tests.kubernetes.workloads import Scene
from tests.sandbox_fixtures import wait_until

pytestmark = pytest.mark.live


def app_for(here: Scene, *, timeout_s: float = 240.0) -> App:
    return App(target=Target(), deadline=Deadline.after(timeout_s), state_dir=here.folder)


def driver_for(here: Scene, workload: str) -> KubernetesDriver:
    return kubernetes_driver(app_for(here), [workload], Kubectl(here.namespace))


def test_every_pod_is_made_anew_also_where_nothing_changes(here: Scene) -> None:
    """Of a Deployment with a sidecar, which is left alone, as its init container is; a StatefulSet is in
    test_upgrade_kubernetes_live.py.
    """
    beside, before = [{"name": "proxy", "image": "envoy"}], [{"name": "first", "image": "busybox"}]
    here.add("idle", kind="deployment", replicas=2, workers=False, beside=beside, before=before)
    wait_until(lambda: len(here.ready()) == 2, what="the pods", timeout_s=120)
    driver, seen = driver_for(here, "deploy/idle"), set(here.pod_uids().values())
    assert driver.expected(app_for(here)) == 2
    for _time in range(2):  # the second time its spec is what it was
        driver.bring(app_for(here), [], Mode.PREPARING)
        now = set(here.pod_uids().values())
        assert len(now) == 2
        assert seen.isdisjoint(now)
        assert driver.mode(app_for(here)) is Mode.PREPARING
        seen |= now
    pod = here.read("deployment/idle")["spec"]["template"]["spec"]
    env = {each["name"]: [one["value"] for one in each.get("env", ())] for each in _containers(pod)}
    assert env == {"proxy": [], "connect": ["preparing"], "first": []}


def _containers(pod: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [*pod["containers"], *pod["initContainers"]]


def test_what_the_manifests_say_of_pods_that_are_down_at_once(here: Scene) -> None:
    """As the API server keeps them, with its defaults: nobody was asked, and `one after the other` was said of all."""
    probe = {"readinessProbe": {"tcpSocket": {"port": 8083}}}
    recreate: dict[str, Any] = {"strategy": {"type": "Recreate"}}
    all_down: dict[str, Any] = {"strategy": {"rollingUpdate": {"maxUnavailable": "100%"}}}
    for name, given in {"good": {}, "recreate": recreate, "down": all_down}.items():
        here.add(name, kind="deployment", replicas=2, workers=False, container=probe, **given)
    here.add("bare", replicas=2, workers=False)
    driver = kubernetes_driver(
        app_for(here), ["deploy/good", "deploy/recreate", "deploy/down", "sts/bare"], Kubectl(here.namespace)
    )
    assert {name: list(found) for name, found in driver.crowded.items()} == {
        "deployment/good": [],
        "deployment/recreate": ["strategy Recreate stops all pods before the first new one starts"],
        "deployment/down": ["maxUnavailable lets 2 pods be down at once"],
        "statefulset/bare": ["no container has a readinessProbe, so a pod counts as Ready as soon as its process runs"],
    }
    told = [line for line in driver.actions([], Mode.ENABLED) if "one after the other" in line]
    assert told == ["its controller restarts all of its workers, one after the other"]


def test_a_pod_that_never_gets_ready_is_named_and_deleted_on_the_way_back(here: Scene, node: KubeNode) -> None:
    """A StatefulSet leaves it as it is when its spec changes again: the way back hung."""
    here.add("idle", replicas=1, workers=False)
    wait_until(lambda: len(here.ready()) == 1, what="the pod", timeout_s=120)
    node.broken.add("idle-0")
    why = "pod idle-0 is not Ready: CrashLoopBackOff: back-off restarting failed container; "
    why += "container connect logged last: connect of idle-0: no such broker"
    with pytest.raises(DeadlineError, match=f"not rolled out after 30 s; {why}"):
        driver_for(here, "sts/idle").bring(app_for(here, timeout_s=30), [], Mode.PREPARING)
    node.broken.clear()
    broken = here.pod_uid("idle-0")
    driver = driver_for(here, "sts/idle")
    assert driver.deletes() == {"idle-0": why}
    driver.bring(app_for(here), [], Mode.DISABLED)
    assert here.pod_uid("idle-0") not in (None, broken)
    assert driver.mode(app_for(here)) is Mode.DISABLED
