"""`upgrade apply --driver kubernetes` on a real control plane, with a real Connect worker in each pod."""

from __future__ import annotations

import os
import signal

import pytest

from eosctl.upgrade.gates import DRIVER_GATE_IDS
from tests.envelope import envelope_of
from tests.kubernetes.node import KubeNode
from tests.kubernetes.workloads import Scene, ended
from tests.sandbox_fixtures import wait_until

pytestmark = pytest.mark.live


@pytest.fixture
def scene(idle_scene: Scene) -> Scene:
    """The StatefulSet `connect` with one disabled worker."""
    idle_scene.add("connect", replicas=1)
    return idle_scene


def test_up_and_down(scene: Scene, node: KubeNode) -> None:
    """Seen on a real control plane: the other group's pods were restarted (`--workload` was compared with nothing),
    a run that was resumed with nobody in the group ended after `preparing`, and a pod more was waited for in vain.
    """
    wait_until(lambda: scene.ready() == ["connect-0"], what="the worker", timeout_s=240)
    _refused(scene)
    _cut_off_with_nobody_there(scene, node)
    resumed = scene.eosctl(*scene.apply("--resume", "--dry-run"))
    rows = envelope_of(resumed, "upgrade-apply-plan")["data"]["rows"]
    assert [row["mode"] for row in rows] == ["preparing", "enabled"]
    assert rows[1]["worker"] == "pod connect-0", "nobody is in the group"
    node.held.clear()
    done = scene.eosctl(*scene.apply("--resume", "--yes"))
    assert done.exit_code == 0, done
    where = ["--workload", "sts/connect", "--namespace", scene.namespace]
    verified = scene.eosctl("upgrade", "verify", "--to", "enabled", *where)
    found = {row["code"] for row in envelope_of(verified, "upgrade-verify", verified.exit_code)["data"]["rows"]}
    assert found.isdisjoint({"wrong_mode", "mode_unproven", "workload_matches"}), verified
    _scaled_on_the_way_down(scene)


def _refused(scene: Scene) -> None:
    """Before anything is written: another workload, a user without rights, a server that is not there.

    The plan says of that workload what `apply` says, and of the right one that nothing is in the way.
    """
    scene.add("other", kind="deployment", replicas=2, workers=False, strategy={"type": "Recreate"})
    other = scene.eosctl(*scene.apply("--to", "enabled", "--yes", workload="deploy/other"))
    assert other.exit_code == 6, other
    assert "gate workload_matches fails: " in other.stderr, other
    assert "gate workload_rolls fails: deployment/other: strategy Recreate stops all pods" in other.stderr, other
    assert "one after the other" not in other.stdout + other.stderr, other
    assert _planned(scene, "deploy/other") == {
        "workload_matches": "fail",
        "workload_rolls": "fail",
        "kubectl_rights": "pass",
    }
    assert set(_planned(scene, "sts/connect").values()) == {"pass"}
    forbidden = scene.eosctl(*scene.apply("--to", "enabled", "--yes"), kubeconfig=scene.plane.observer)
    assert (forbidden.exit_code, "forbidden: User" in forbidden.stderr + forbidden.stdout) == (5, True), forbidden
    config = scene.folder / "nowhere.kubeconfig"
    config.write_text(scene.plane.kubeconfig.read_text().replace(scene.plane.server, "https://127.0.0.1:1"))
    nowhere = scene.eosctl(*scene.apply("--to", "enabled", "--yes"), kubeconfig=config)
    assert nowhere.exit_code == 4, nowhere
    scene.scale("other", 0, kind="deployment")


def _planned(scene: Scene, workload: str) -> dict[str, str]:
    """The driver's gates in a plan."""
    where = ["--workload", workload, "--namespace", scene.namespace]
    done = scene.eosctl("upgrade", "plan", "--to", "enabled", "--no-validate", *where)
    gates = envelope_of(done, "upgrade-plan", done.exit_code)["data"]["gates"]
    return {gate["id"]: gate["status"] for gate in gates if gate["id"] in DRIVER_GATE_IDS}


def _cut_off_with_nobody_there(scene: Scene, node: KubeNode) -> None:
    """The pod is recreated, its worker not started yet, and eosctl killed."""
    before = scene.pod_uid("connect-0")
    node.held.add("connect-0")
    running = scene.start(*scene.apply("--to", "enabled", "--yes"))
    try:
        wait_until(lambda: scene.pod_uid("connect-0") not in (None, before), what="the new pod", timeout_s=240)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        ended(running)


def _scaled_on_the_way_down(scene: Scene) -> None:
    """A second pod in the middle of the first pass."""
    before = scene.pod_uid("connect-0")
    running = scene.start(*scene.apply("--to", "disabled", "--yes"))
    try:
        wait_until(lambda: scene.pod_uid("connect-0") not in (None, before), what="the new pod", timeout_s=240)
        scene.scale("connect", 2)
        done = ended(running)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
    rows = envelope_of(done, "upgrade-apply-result")["data"]["rows"]
    assert [row["mode"] for row in rows if row["outcome"] == "done"] == [
        "preparing",
        "disabled",
        "preparing",
        "disabled",
    ]
    assert scene.modes() == ["not_enabled"] * 2
