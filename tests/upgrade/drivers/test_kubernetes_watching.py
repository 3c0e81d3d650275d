"""`--no-write`: somebody else makes the changes, in his own time, and eosctl waits for each and checks it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Event
from eosctl.errors import ConnectError, ExitCode
from eosctl.upgrade.drivers.kubernetes.driver import kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from eosctl.upgrade.drivers.kubernetes.mode_places import MountedProperties
from eosctl.upgrade.roll.roll import apply_roll
from tests.fakes.kubectl import Cluster
from tests.upgrade.drivers.kubernetes_stage import (
    CONNECT,
    FIELD,
    FILE,
    SETTING,
    TEXT,
    deleted,
    deploy_file,
    let_roll,
    look,
    mounting,
    pods,
    prepare,
    roll,
    set_by,
)


def test_eosctl_only_watches(cluster: Cluster, tmp_path: Path) -> None:
    """Those whose GitOps tool makes the changes had no way."""
    there = pods(cluster, 2, updateStrategy={"type": "OnDelete"})
    app, prepared = prepare(there, tmp_path / "state", driver={"watches": True})
    said: list[str] = []

    def deploy(event: Event) -> None:
        said.append(event.message)
        mode = event.message.rpartition(" sets it to ")[2]
        if event.message.startswith(CONNECT) and mode in ("preparing", "enabled"):
            set_by(cluster, "argocd-controller", mode)
            look(cluster, times=2)
            for name in cluster.pods():
                cluster.run(["delete", f"pod/{name}", "--wait=false"])

    report = apply_roll(replace(app, on_event=deploy), prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert set(there.workers.values()) == {"enabled"}
    waited = [line for line in said if line.startswith(CONNECT)]
    assert waited == [
        f"statefulset/connect: {FIELD} is not set; waiting until somebody sets it to preparing",
        f"statefulset/connect: {FIELD} is preparing; waiting until somebody sets it to enabled",
    ]
    assert {words[0] for words in cluster.calls()} == {"set", "delete"}, "what the test did"
    assert len(deleted(cluster)) == 4


def test_nobody_makes_the_change(cluster: Cluster, tmp_path: Path) -> None:
    there = pods(cluster, 1)
    report = roll(there, tmp_path / "state", driver={"watches": True})
    assert report.exit_code is ExitCode.PARTIAL
    assert report.problems[0].message == (
        f"nobody changed it within 60 s: statefulset/connect: {FIELD} is not set; waiting until somebody sets it to "
        "preparing"
    )
    set_by(cluster, "argocd-controller", "preparing")
    app, prepared = prepare(there, tmp_path / "state", None, driver={"watches": True}, resume=True)

    def deploy(event: Event) -> None:
        if event.message.endswith("sets it to enabled"):
            set_by(cluster, "argocd-controller", "enabled")

    report = apply_roll(replace(app, on_event=deploy), prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert there.workers == {"http://connect-0:8083": "enabled"}


def test_who_makes_the_changes_may_be_ahead_of_eosctl(cluster: Cluster, tmp_path: Path) -> None:
    """The plan knew it, and the pass was refused: the worker might have been disabled."""
    there = pods(cluster, 1)
    set_by(cluster, "argocd-controller", "preparing")
    let_roll(cluster, there)
    assert there.workers == {"http://connect-0:8083": "preparing"}
    app, prepared = prepare(there, tmp_path / "state", driver={"watches": True})
    assert prepared.steps() == [(Mode.ENABLED, "http://connect-0:8083")]
    assert "nobody changed it within 60 s" in apply_roll(app, prepared).problems[0].message


def test_a_file_that_has_the_mode_says_nothing_of_pods_that_were_made_before(cluster: Cluster, tmp_path: Path) -> None:
    """The pass `preparing` was left out: workers were still disabled beside the first that were enabled."""
    there = mounting(cluster, 1)
    deploy_file(cluster, "preparing")
    _app, prepared = prepare(there, tmp_path / "state", driver={"file": FILE, "watches": True})
    assert [mode for mode, _worker in prepared.steps()] == [Mode.PREPARING, Mode.ENABLED]


def test_pods_that_are_restarted_before_the_file_changes_do_not_count(cluster: Cluster, tmp_path: Path) -> None:
    """They are new, and have the former mode."""
    there = mounting(cluster, 1)
    app, prepared = prepare(
        there, tmp_path / "state", Mode.PREPARING, driver={"file": FILE, "watches": True}, settle_timeout_s=20.0
    )

    def deploy(event: Event) -> None:
        if event.message.endswith("sets it to preparing"):
            cluster.run(["rollout", "restart", CONNECT])
            look(cluster, times=8)
            deploy_file(cluster, "preparing", time="2026-03-01T00:00:00Z")

    report = apply_roll(replace(app, on_event=deploy), prepared)
    assert report.problems[0].message == (
        "timed out after 20 s while waiting for somebody to restart pod connect-0, which was made before "
        f'data["connect.properties"] ({SETTING}) of configmap/connect-config was changed'
    )
    assert "kubectl rollout restart statefulset/connect" in str(report.problems[0].hint)


def restart_with(cluster: Cluster, mode: str, day: int) -> None:
    """What a GitOps tool does, with a checksum of the file in the template."""
    deploy_file(cluster, mode, time=f"2026-03-{day:02}T00:00:00Z")
    cluster.now = f"2026-03-{day:02}T00:00:05Z"
    cluster.run(["rollout", "restart", CONNECT])
    look(cluster, times=8)


def test_a_file_that_was_changed_before_eosctl_began_to_watch(cluster: Cluster, tmp_path: Path) -> None:
    """Only eosctl's own annotation told what pods have: it waited for restarts that never came, and so did --resume."""
    there = mounting(cluster, 1)
    restart_with(cluster, "preparing", 1)
    let_roll(cluster, there)
    app, prepared = prepare(there, tmp_path / "state", driver={"file": FILE, "watches": True})
    assert [mode for mode, _worker in prepared.steps()] == [Mode.ENABLED]

    def deploy(event: Event) -> None:
        if event.message.endswith("sets it to enabled"):
            restart_with(cluster, "enabled", 2)

    report = apply_roll(replace(app, on_event=deploy), prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert there.workers == {"http://connect-0:8083": "enabled"}


def test_a_pod_that_is_added_between_passes_takes_its_mode_from_the_file(cluster: Cluster, tmp_path: Path) -> None:
    """Nothing told its mode, and no worker could become enabled."""
    there = mounting(cluster, 1)
    app, prepared = prepare(there, tmp_path / "state", driver={"file": FILE, "watches": True})

    def deploy(event: Event) -> None:
        mode = event.message.rpartition(" sets it to ")[2]
        if event.message.startswith(FILE.thing) and mode in ("preparing", "enabled"):
            restart_with(cluster, mode, 1 if mode == "preparing" else 3)
        elif event.message.endswith("preparing, everything as before"):
            cluster.now = "2026-03-02T00:00:00Z"
            cluster.scale(CONNECT, 2)
            let_roll(cluster, there)

    report = apply_roll(replace(app, on_event=deploy), prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert set(there.workers.values()) == {"enabled"}
    assert len(there.workers) == 2


def rename(cluster: Cluster, name: str, text: str) -> None:
    """What kustomize does where a ConfigMap changes."""
    cluster.add_configmap(name, data={FILE.key: text})
    volumes = [{"name": "config", "configMap": {"name": name}}]
    patch = json.dumps({"spec": {"template": {"spec": {"volumes": volumes}}}})
    cluster.run(["patch", CONNECT, "--type", "merge", "--patch", patch])


def test_a_run_is_resumed_after_the_configmap_got_another_name(cluster: Cluster, tmp_path: Path) -> None:
    """The old name was refused (not mounted), and the new one too (the upgrade was begun with another place)."""
    there = mounting(cluster, 1)
    watches = {"file": FILE, "watches": True}
    app, prepared = prepare(there, tmp_path / "state", driver=watches, settle_timeout_s=30.0)

    def deploy(event: Event) -> None:
        head, _, mode = event.message.rpartition(" sets it to ")
        if head and mode == wanted:
            rename(cluster, f"connect-config-{mode}", f"{TEXT}{SETTING}={mode}\n")
            there.mode_of = lambda _cluster: mode

    wanted = "preparing"
    stopped = apply_roll(replace(app, on_event=deploy), prepared)
    assert "nobody changed it within 30 s: configmap/connect-config-preparing" in stopped.problems[0].message
    renamed = MountedProperties("connect-config-preparing", FILE.key)
    prepare(there, tmp_path / "state", None, driver={**watches, "file": renamed}, resume=True)
    app, prepared = prepare(there, tmp_path / "state", None, driver=watches, resume=True)
    wanted = "enabled"
    report = apply_roll(replace(app, on_event=deploy), prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert there.workers == {"http://connect-0:8083": "enabled"}
    prepare(there, tmp_path / "state", Mode.DISABLED, driver=watches)


def test_a_configmap_that_is_made_anew_under_another_name(cluster: Cluster, tmp_path: Path) -> None:
    """As kustomize does: a change of anything else in it is none of the mode."""
    there = mounting(cluster, 1, immutable=True)
    app, prepared = prepare(there, tmp_path / "state", driver={"file": FILE, "watches": True})
    waited: list[str] = []

    def deploy(event: Event) -> None:
        head, _, mode = event.message.rpartition(" sets it to ")
        if not head:
            return
        waited.append(head.partition(":")[0])
        unrelated = len(waited) == 1
        name = f"connect-config-{len(waited)}"
        rename(cluster, name, f"{TEXT}#\n" if unrelated else f"{TEXT}{SETTING}={mode}\n")
        if not unrelated:
            there.mode_of = lambda _cluster: mode

    report = apply_roll(replace(app, on_event=deploy), prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert there.workers == {"http://connect-0:8083": "enabled"}
    assert waited == [FILE.thing, "configmap/connect-config-1", "configmap/connect-config-2"]


def test_another_value_than_the_one_that_is_awaited(cluster: Cluster, app: App) -> None:
    cluster.add(CONNECT, pods=1)
    driver = kubernetes_driver(app, [CONNECT], Kubectl(), watches=True)

    def deploy(event: Event) -> None:
        if event.message.endswith("sets it to preparing"):
            set_by(cluster, "helm", "enabled")

    with pytest.raises(ConnectError, match=r"value is enabled, while this pass waits for preparing; Helm \(helm\)"):
        driver.bring(replace(app, on_event=deploy), [], Mode.PREPARING)


def test_a_mode_that_is_taken_back_while_the_next_one_is_awaited(cluster: Cluster, app: App) -> None:
    """The hint said to set `enabled`, beside workers that were disabled again."""
    cluster.add(CONNECT, pods=1)
    set_by(cluster, "argocd-controller", "preparing")
    driver = kubernetes_driver(app, [CONNECT], Kubectl(), watches=True)

    def deploy(event: Event) -> None:
        if event.message.endswith("sets it to enabled"):
            set_by(cluster, "helm", "disabled")

    with pytest.raises(ConnectError, match="value is disabled, while this pass waits for enabled") as refused:
        driver.bring(replace(app, on_event=deploy), [], Mode.ENABLED)
    assert str(refused.value.hint).startswith("Set it to preparing again. ")


_NOBODY = "Unable to connect to the server: net/http: TLS handshake timeout"


def test_an_api_server_that_does_not_answer_for_a_while_is_asked_again(cluster: Cluster, tmp_path: Path) -> None:
    """One `kubectl get` that failed ended a run that had waited for hours."""
    there = pods(cluster, 1)
    app, prepared = prepare(there, tmp_path / "state", driver={"watches": True})
    said: list[str] = []

    def deploy(event: Event) -> None:
        said.append(event.message)
        mode = event.message.rpartition(" sets it to ")[2]
        if event.message.startswith(CONNECT) and mode in ("preparing", "enabled"):
            set_by(cluster, "argocd-controller", mode)
            cluster.refuse(_NOBODY)
        elif "not Ready" in event.message:
            cluster.refuse(_NOBODY)
        elif event.message.endswith("asking again"):
            cluster.answer()

    report = apply_roll(replace(app, on_event=deploy), prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert there.workers == {"http://connect-0:8083": "enabled"}
    assert len([line for line in said if "TLS handshake timeout" in line]) == 4, "of the field, and of the pods"


def test_an_api_server_that_does_not_answer_to_the_end(cluster: Cluster, tmp_path: Path) -> None:
    there = pods(cluster, 1)
    app, prepared = prepare(there, tmp_path / "state", driver={"watches": True})
    said: list[str] = []

    def deploy(event: Event) -> None:
        said.append(event.message)
        if event.message.endswith("sets it to preparing"):
            cluster.refuse(_NOBODY)

    report = apply_roll(replace(app, on_event=deploy), prepared)
    assert report.problems[0].code == "unreachable"
    assert len([line for line in said if line.endswith("asking again")]) == 1, "told once"
