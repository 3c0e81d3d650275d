"""`offsets migrate` by Spark's own Kubernetes master: it writes what a local Spark and a standalone cluster write.

Executors are pods of the control plane, and processes here. docs/how-to/migrate-on-a-cluster.md has the settings.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from eosctl.core.offsets.names import partition_for
from tests.kubernetes.node import KubeNode
from tests.kubernetes.test_job_live import apply
from tests.kubernetes.workloads import Scene
from tests.migrate.spark.cluster import PARTITIONS, Cluster
from tests.migrate.spark.event_log import at_each_stage, lost_tasks
from tests.migrate.spark.standalone import standalone, tasks_of
from tests.sandbox_fixtures import wait_until

pytestmark = [pytest.mark.live, pytest.mark.spark]

RIGHTS = Path(__file__).parents[2] / "deploy" / "spark-executors" / "rights.yaml"
# as many as two tasks are worth
KEYS = {b'["c%d",{"file":"f%d"}]' % (number % 2, number): b'{"position":%d}' % number for number in range(10_000)}
WRITING = "eosctl writing"
CLUSTER = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}


def on_kubernetes(scene: Scene, shared: Path) -> dict[str, str]:
    """What the page says to set, for a service account with the rights of deploy/spark-executors alone."""
    manifests = RIGHTS.read_text().replace("namespace: spark", f"namespace: {scene.namespace}")
    apply(scene, *yaml.safe_load_all(manifests))
    account = f"/api/v1/namespaces/{scene.namespace}/serviceaccounts/eosctl-spark/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = scene.folder / "token"
    token.write_text(scene.plane.create(account, request)["status"]["token"])
    volume = "spark.kubernetes.executor.volumes.hostPath.snapshots"
    return {
        **CLUSTER,
        "spark.kubernetes.namespace": scene.namespace,
        "spark.kubernetes.authenticate.oauthTokenFile": str(token),
        "spark.kubernetes.authenticate.caCertFile": str(scene.plane.folder / "apiserver" / "apiserver.crt"),
        "spark.kubernetes.container.image": "spark:tests",
        "spark.executor.instances": "2",
        "spark.pyspark.python": sys.executable,
        "spark.python.worker.reuse": "false",  # whoever has Python processes is at work
        f"{volume}.mount.path": str(shared),
        f"{volume}.options.path": str(shared),
    }


def migrate(cluster: Cluster, folder: Path, to: str, master: str, conf: Mapping[str, str]) -> Any:
    """The document's data of a whole migration into topics of its own, with its snapshots below `folder`."""
    flags = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    what = ["--all", "--dedicated-topic", f"{cluster.name}-{to}-{{connector}}", "--force-running", "--yes"]
    where = ["--master", master, *flags, "--snapshot-dir", str(folder / to), "-b", cluster.servers]
    line = [sys.executable, "-m", "eosctl", "offsets", "migrate", *what, *where, "--offset-topic", cluster.name]
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(
        [*line, "--timeout", "300s", "-o", "json"], env=environ, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["data"]


def planned(data: Any, to: str) -> Any:
    """The plan as it would be for any target; where and when it was made is left out."""
    plan = json.loads((Path(data["snapshot"]) / "plan.json").read_text().replace(f"-{to}-", "-"))["plan"]
    return {name: value for name, value in plan.items() if name not in ("snapshot_base", "planned_at")}


def written(cluster: Cluster, to: str) -> dict[bytes, tuple[int, bytes | None]]:
    """key -> (partition, value) of both targets; a key that was written twice fails the test."""
    found: dict[bytes, tuple[int, bytes | None]] = {}
    for connector in ("c0", "c1"):
        topic = f"{cluster.name}-{to}-{connector}"
        found |= cluster.committed(topic)
        assert sum(1 for _ in cluster.messages(topic)) == len(KEYS) // 2
    return found


def busy(node: KubeNode) -> list[int]:
    """The executors in pods that run tasks."""
    there = [each.program.pid for each in list(node.pods.values()) if each.program]
    return [pid for pid in there if tasks_of(pid)]


def test_the_same_from_three_masters(idle_scene: Scene, node: KubeNode, tmp_path: Path) -> None:
    """One of the pods is killed while it writes: the other one does its task again, and no key is there twice."""
    scene, killed = idle_scene, list[int]()
    cluster = Cluster(scene.stack.bootstrap_servers, scene.namespace)
    cluster.create(cluster.name)
    cluster.write(cluster.name, KEYS.items())

    def kill(stage: str) -> None:
        if stage == WRITING:
            killed.append(wait_until(lambda: busy(node), what="an executor at work", poll_s=0.01)[0])
            os.kill(killed[0], signal.SIGKILL)

    done = {"local": migrate(cluster, tmp_path, "local", "local[2]", {})}
    (machines := tmp_path / "machines").mkdir()
    with standalone(machines) as spark:
        quick = {"spark.executor.extraJavaOptions": spark.quick}
        done["standalone"] = migrate(cluster, tmp_path, "standalone", spark.master, CLUSTER | quick)
    shared = tmp_path / "kubernetes"
    with at_each_stage(tmp_path / "events", kill) as events:
        conf = on_kubernetes(scene, shared) | quick | events
        done["kubernetes"] = migrate(cluster, tmp_path, "kubernetes", f"k8s://{scene.plane.server}", conf)
    assert lost_tasks(tmp_path / "events") == {WRITING: 1}
    expected = {key: (partition_for(key, PARTITIONS), value) for key, value in KEYS.items()}
    assert [to for to in done if written(cluster, to) != expected] == []
    plans = [planned(data, to) for to, data in done.items()]
    assert plans[1:] == plans[:-1]
    assert "forbidden" not in (shared / "spark.log").read_text()
    path = f"/api/v1/namespaces/{scene.namespace}"
    left = [
        each["metadata"]
        for kind in ("pods", "configmaps")
        for each in scene.plane.api("GET", f"{path}/{kind}")["items"]
    ]
    assert [each["name"] for each in left if "deletionTimestamp" not in each] == []
