"""The Job of deploy/upgrade-job, as it stands there: eosctl in a pod, with the rights of its service account only."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from eosctl.core.java.properties import properties_text
from tests.kubernetes.node import KubeNode
from tests.kubernetes.workloads import Scene
from tests.sandbox_fixtures import wait_until

pytestmark = pytest.mark.live
JOB = Path(__file__).parents[2] / "deploy" / "upgrade-job" / "upgrade-job.yaml"
FILE = "connect.properties"


def documented(scene: Scene) -> list[dict[str, Any]]:
    """The manifests, with what each user changes in them."""
    text = JOB.read_text()
    for there, here in (
        ("namespace: kafka-connect", f"namespace: {scene.namespace}"),
        ("kafka.example:9092", scene.stack.bootstrap_servers),
        ("connect-cluster", scene.group),
        ("connect-configs", f"{scene.group}-configs"),
        ("connect-offsets", f"{scene.group}-offsets"),
    ):
        assert there in text
        text = text.replace(there, here)
    return list(yaml.safe_load_all(text))


def apply(scene: Scene, *manifests: dict[str, Any]) -> None:
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    words = [str(scene.plane.program), "kubectl", "--kubeconfig", str(scene.plane.kubeconfig), "apply", "--filename=-"]
    subprocess.run(words, input=given, text=True, check=True, capture_output=True)


def add_workers(scene: Scene) -> str:
    """One worker of an image that takes a properties file; gives the file's text."""
    metadata = {"name": "worker", "namespace": scene.namespace}
    text = f"# of the worker\n{properties_text(scene.properties())}"
    apply(scene, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {FILE: text}})
    mount = {"name": "config", "mountPath": "/etc/connect"}
    container = {"env": [], "args": [f"/etc/connect/{FILE}"], "volumeMounts": [mount]}
    volume = {"name": "config", "configMap": {"name": "worker"}}
    scene.add("connect", replicas=1, container=container, volumes=[volume])
    return text


def volume_at(scene: Scene, folder: Path) -> dict[str, Any]:
    """What a storage class would make."""
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": str(folder)}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": scene.namespace}, "spec": spec}


def test_eosctl_as_a_job(idle_scene: Scene, node: KubeNode) -> None:
    """No right more than the Role's was used, and the mode stands in a file that a ConfigMap holds."""
    scene = idle_scene
    before = add_workers(scene)
    *others, job = documented(scene)
    job["spec"]["template"]["spec"]["containers"][0]["args"] += ["--configmap=worker", f"--key={FILE}"]
    state = scene.folder / "volume"
    state.mkdir()
    apply(scene, *others, volume_at(scene, state))
    wait_until(lambda: scene.ready() == ["connect-0"], what="the worker", timeout_s=240)
    apply(scene, job)
    where = f"/apis/batch/v1/namespaces/{scene.namespace}/jobs/eosctl-upgrade"

    def ended() -> bool:
        status = scene.plane.api("GET", where)["status"]
        return bool(status.get("succeeded") or status.get("failed"))

    wait_until(ended, what="the Job", timeout_s=300)
    (log,) = node.folder.glob("eosctl-upgrade-*/log.txt")
    assert scene.plane.api("GET", where)["status"].get("succeeded") == 1, log.read_text()
    assert scene.modes() == ["enabled"]
    now = scene.plane.api("GET", f"/api/v1/namespaces/{scene.namespace}/configmaps/worker")["data"]
    assert "\nexactly.once.source.support=disabled\n" in before
    assert now == {FILE: before.replace("support=disabled", "support=enabled")}
    (journal,) = state.glob("eosctl/journals/*")
    assert json.loads(journal.read_text().splitlines()[-1])["event"] == "end"
    scene.plane.api("DELETE", where)
