"""Fields of workloads on a real API server: who wrote them, patches to be pasted, files that pods mount.

The pods do nothing; that a worker takes its mode from such a file is in test_job_live.py.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError
from eosctl.upgrade.drivers.kubernetes.driver import kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from eosctl.upgrade.drivers.kubernetes.mode_places import MountedProperties
from tests.kubernetes.workloads import Scene
from tests.sandbox_fixtures import wait_until

pytestmark = pytest.mark.live
VARIABLE = "CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT"
FIELD = f"spec.template.spec.containers[connect].env[{VARIABLE}].value"
FILE = MountedProperties("worker", "connect.properties")
SETTING = "exactly.once.source.support"


def kubectl(here: Scene, *words: str, given: object = None) -> None:
    subprocess.run(
        ["kubectl", "--namespace", here.namespace, *words], input=json.dumps(given), text=True, check=True,
        capture_output=True,
    )  # fmt: skip


def deployment(mode: str) -> dict[str, Any]:
    """As Git has it."""
    container = {"name": "connect", "image": "connect:tests", "env": [{"name": VARIABLE, "value": mode}]}
    template = {"metadata": {"labels": {"app": "idle"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "idle"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "idle"}, "spec": spec}


def test_who_deploys_it_who_takes_it_back_and_who_makes_the_change(here: Scene) -> None:
    """What `managedFields` says is the API server's alone; and what is printed is pasted here as it stands."""
    sync = ["apply", "--server-side", "--field-manager", "argocd-controller", "--force-conflicts", "--filename", "-"]
    kubectl(here, *sync, given=deployment("disabled"))
    wait_until(lambda: len(here.ready()) == 1, what="the pod", timeout_s=120)
    app, one = here.app(), Kubectl(here.namespace)
    driver = kubernetes_driver(app, ["deploy/idle"], one)
    driver.bring(app, [], Mode.PREPARING)
    for _look in ("before it is taken back", "after"):
        (origin,) = driver.origins(app)
        assert (origin.field, origin.held, origin.deployer and origin.deployer.tool) == (FIELD, True, "Argo CD")
        kubectl(here, *sync, given=deployment("disabled"))
    said = driver.taken_back(app, [Mode.PREPARING])
    assert said is not None
    assert said.startswith(
        f"deployment/idle: {FIELD} is disabled, no longer preparing; Argo CD (argocd-controller) wrote it at 20"
    )
    _watched(here, replace(driver, watches=True))


def _watched(here: Scene, driver: Any) -> None:
    """The command that --print-patch prints is run by a user, while eosctl, which may not write, watches."""
    failures: list[BaseException] = []

    def watch() -> None:
        try:
            driver.bring(here.app(), [], Mode.PREPARING)
        except BaseException as exc:
            failures.append(exc)

    (patch,) = driver.patches(here.app(), Mode.PREPARING)
    watching = threading.Thread(target=watch)
    watching.start()
    subprocess.run(shlex.split(driver.command(patch)), check=True, capture_output=True)
    watching.join(240)
    assert failures == []
    assert driver.mode(here.app()) is Mode.PREPARING


def test_what_kubectl_apply_keeps(here: Scene) -> None:
    kubectl(here, "apply", "--filename", "-", given=deployment("disabled"))
    app = here.app()
    driver = kubernetes_driver(app, ["deploy/idle"], Kubectl(here.namespace))
    (origin,) = driver.origins(app)
    assert (origin.held, origin.deployer and origin.deployer.tool) == (True, "kubectl apply")
    (other,) = kubernetes_driver(app, ["deploy/idle"], Kubectl(here.namespace), variable="X").origins(app)
    assert other.held is False


def test_files_and_variables_that_have_all_properties(here: Scene) -> None:
    """The stand-in's merges, its refusal of an older resourceVersion and its rollouts are those of the real one."""
    text = f"# kept\ngroup.id={here.group}\n"
    kubectl(here, "create", "configmap", FILE.configmap, f"--from-literal={FILE.key}={text}")
    env = [{"name": "ALL", "value": text}, {"name": "B"}]
    config = [{"name": "config", "configMap": {"name": FILE.configmap}}]
    here.add("idle", replicas=1, workers=False, volumes=config, container={"env": env})
    wait_until(lambda: len(here.ready()) == 1, what="the pod", timeout_s=120)
    app, one = here.app(), Kubectl(here.namespace)
    driver = kubernetes_driver(app, ["sts/idle"], one, file=FILE)
    first = here.pod_uid("idle-0")
    acted = driver.bring(app, [], Mode.PREPARING)
    second = here.pod_uid("idle-0")
    assert second not in (None, first), "a ConfigMap that changes restarts nothing by itself"
    assert one.get(app, FILE.thing)["data"] == {FILE.key: f"{text}{SETTING}=preparing\n"}
    assert acted.backup is not None
    assert driver.mode(app) is Mode.PREPARING
    kubernetes_driver(app, ["sts/idle"], one, variable="ALL").bring(app, [], Mode.ENABLED)
    (container,) = one.get(app, "statefulset/idle")["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "ALL", "value": f"{text}{SETTING}=enabled\n"}, {"name": "B"}]
    old = json.dumps({"metadata": {"resourceVersion": "1"}, "data": {"x": "y"}})
    with pytest.raises(EosctlError, match=r"\(Conflict\)"):
        one.run(app, "patch", FILE.thing, "--type", "merge", "--patch", old)
