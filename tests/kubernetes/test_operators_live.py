"""Resources of operators on a real API server. The operators themselves do not run: the tests write what they would."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.core.workers.modes import Mode
from eosctl.errors import ConnectError, EosctlError, RefusedError
from eosctl.upgrade.drivers import SETTING
from eosctl.upgrade.drivers.kubernetes.driver import kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.custom_resources import define, operator
from tests.kubernetes.workloads import Scene
from tests.sandbox_fixtures import wait_until

pytestmark = pytest.mark.live
STRIMZI, CONFLUENT = "kafka.strimzi.io", "platform.confluent.io"
STORED = f"kafkaconnects.v1beta2.{STRIMZI}/connect"


@pytest.fixture(scope="module")
def _kinds(plane: ControlPlane) -> None:
    required = ["groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic"]
    define(plane, "KafkaConnect", STRIMZI, {"v1": required, "v1beta2": []})
    define(plane, "KafkaMirrorMaker2", STRIMZI, {"v1": ["target"], "v1beta2": []})
    define(plane, "Connect", CONFLUENT, {"v1beta1": []})


def path_of(scene: Scene, version: str, plural: str, name: str = "") -> str:
    return f"/apis/{version}/namespaces/{scene.namespace}/{plural}{f'/{name}' if name else ''}"


def create(scene: Scene, version: str, kind: str, name: str, spec: dict[str, Any]) -> str:
    """A resource; gives its path."""
    plural = f"{kind.lower()}s"
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
    scene.plane.create(path_of(scene, version, plural), manifest)
    return path_of(scene, version, plural, name)


def say(scene: Scene, path: str, *conditions: dict[str, str]) -> None:
    """Strimzi's operator is through with the newest spec: observedGeneration moves also where it failed."""
    seen = scene.plane.api("GET", path)["metadata"]["generation"]
    status = {"observedGeneration": seen, "conditions": list(conditions)}
    scene.plane.api("PATCH", f"{path}/status", {"status": status})


@pytest.mark.usefixtures("_kinds")
def test_strimzi_s_resource_is_changed_in_the_version_that_it_is_kept_in(here: Scene) -> None:
    """kubectl took v1, where it is not valid, and of what the API server said one line was shown; that the operator
    refused the change counted as done.
    """
    path = create(here, f"{STRIMZI}/v1beta2", "KafkaConnect", "connect", {"replicas": 0, "config": {"group.id": "g"}})
    app, one = here.app(timeout_s=60), Kubectl(here.namespace)
    newest = [f'{{"spec": {{"config": {{"{SETTING}": "enabled"}}}}}}']
    with pytest.raises(EosctlError) as whole:
        one.run(app, "patch", "kafkaconnect/connect", "--type", "merge", "--patch", *newest)
    for member in ("groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic"):
        assert f"spec.{member}: Required value" in whole.value.message
    driver = kubernetes_driver(app, ["kc/connect"], one)
    assert [each.text for each in driver.workloads] == [STORED]
    assert kubernetes_driver(app, [STORED], one).workloads == driver.workloads
    with operator(lambda: say(here, path, {"type": "Ready", "status": "True"})):
        driver.bring(app, [], Mode.PREPARING)
    assert here.plane.api("GET", path)["spec"]["config"] == {"group.id": "g", SETTING: "preparing"}
    assert driver.mode(app) is Mode.PREPARING
    ill = {"type": "NotReady", "status": "True", "reason": "InvalidResourceException", "message": "no groupId"}
    with (
        operator(lambda: say(here, path, ill)),
        pytest.raises(ConnectError, match="is NotReady: InvalidResourceException: no groupId"),
    ):
        driver.bring(here.app(timeout_s=60), [], Mode.ENABLED)


@pytest.mark.usefixtures("_kinds")
def test_strimzi_s_mirror_maker_in_both_versions(here: Scene) -> None:
    """It was no kind that could be named."""
    clusters = [{"alias": "a"}, {"alias": "b", "config": {"offset.flush.interval.ms": "1"}}]
    old = create(here, f"{STRIMZI}/v1beta2", "KafkaMirrorMaker2", "old", {"connectCluster": "b", "clusters": clusters})
    new = create(here, f"{STRIMZI}/v1", "KafkaMirrorMaker2", "new", {"target": {"alias": "b", "config": {}}})
    for name, path in (("old", old), ("new", new)):
        driver = kubernetes_driver(here.app(timeout_s=60), [f"kafkamirrormaker2/{name}"], Kubectl(here.namespace))
        with operator(lambda path=path: say(here, path)):  # type: ignore[misc]
            driver.bring(here.app(timeout_s=60), [], Mode.ENABLED)
        assert driver.mode(here.app()) is Mode.ENABLED
    assert here.plane.api("GET", old)["spec"]["clusters"][1]["config"][SETTING] == "enabled"
    assert here.plane.api("GET", new)["spec"]["target"]["config"] == {SETTING: "enabled"}


@pytest.mark.usefixtures("_kinds")
def test_confluent_s_resource_and_the_stateful_set_that_is_made_of_it(here: Scene) -> None:
    """The StatefulSet was changed, and its operator takes that back."""
    path = create(here, f"{CONFLUENT}/v1beta1", "Connect", "idle", {"replicas": 1})
    here.add("idle", replicas=1, workers=False)
    made = f"/apis/apps/v1/namespaces/{here.namespace}/statefulsets/idle"
    uid = here.plane.api("GET", path)["metadata"]["uid"]
    owner = {"apiVersion": f"{CONFLUENT}/v1beta1", "kind": "Connect", "name": "idle", "uid": uid, "controller": True}
    here.plane.api("PATCH", made, {"metadata": {"ownerReferences": [owner]}})
    wait_until(lambda: here.ready() == ["idle-0"], what="the pod", timeout_s=120)
    one, before = Kubectl(here.namespace), here.pod_uid("idle-0")
    with pytest.raises(RefusedError, match=r"statefulset/idle is made by Connect/idle \(platform.confluent.io/v1beta1"):
        kubernetes_driver(here.app(), ["sts/idle"], one)

    def reconcile() -> None:
        server = here.plane.api("GET", path)["spec"].get("configOverrides", {}).get("server", [])
        annotations = {"annotations": {"hash": ",".join(server)}}
        here.plane.api("PATCH", made, {"spec": {"template": {"metadata": annotations}}} if server else {})

    driver = kubernetes_driver(here.app(), ["connect/idle"], one)
    with operator(reconcile):
        driver.bring(here.app(), [], Mode.PREPARING)
    assert here.plane.api("GET", path)["spec"]["configOverrides"] == {"server": [f"{SETTING}=preparing"]}
    after = here.pod_uid("idle-0")
    assert after not in (None, before)
    driver.bring(here.app(), [], Mode.PREPARING)  # nothing to be changed: the pods are restarted all the same
    assert here.pod_uid("idle-0") not in (None, before, after)
    assert driver.mode(here.app()) is Mode.PREPARING
