"""Where the mode stands in a workload, who else writes there, and the patches for those who make the changes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Event
from eosctl.errors import ExitCode, RefusedError, UsageError
from eosctl.report import Report, plain
from eosctl.upgrade.drivers.kubernetes.driver import kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from eosctl.upgrade.drivers.kubernetes.mode_places import MountedProperties
from eosctl.upgrade.plan import plan_upgrade
from eosctl.upgrade.roll.roll import apply_roll
from eosctl.upgrade.roll.undo import patch_report
from tests.conftest import Invoke
from tests.fakes.kubectl import Cluster
from tests.upgrade.drivers.kubernetes_stage import (
    CONNECT,
    FIELD,
    FILE,
    ON_DELETE,
    SETTING,
    TEXT,
    VARIABLE,
    deleted,
    file_of,
    let_roll,
    mode_in,
    mounting,
    pods,
    prepare,
    roll,
    set_by,
    template,
)


def test_a_properties_file_in_a_configmap(cluster: Cluster, tmp_path: Path) -> None:
    """The variable was set that the image does not know: all pods were restarted, and nothing had changed."""
    there = mounting(cluster)
    report = roll(there, tmp_path / "state", driver={"file": FILE})
    assert report.exit_code is ExitCode.OK, report.problems
    assert set(there.workers.values()) == {"enabled"}
    assert [mode for _url, mode in there.starts] == ["preparing"] * 2 + ["enabled"] * 2
    assert cluster.read(FILE.thing)["data"] == {FILE.key: f"{TEXT}{SETTING}=enabled\n", "other": "untouched"}
    assert VARIABLE not in cluster.variables(CONNECT)
    backups = [Path(str(row.backup)).read_text() for row in report.rows]
    assert backups == [TEXT, TEXT, *[f"{TEXT}{SETTING}=preparing\n"] * 2]
    (restarted, _second) = [entry for entry in journal(tmp_path) if entry["event"] == "restarted"]
    assert Path(restarted["backup"]).read_text() == TEXT
    back = roll(there, tmp_path / "state", Mode.DISABLED, driver={"file": FILE})
    assert back.exit_code is ExitCode.OK, back.problems
    assert file_of(cluster) == f"{TEXT}{SETTING}=disabled\n"


def journal(tmp_path: Path) -> list[dict[str, Any]]:
    (path,) = (tmp_path / "state" / "journals").glob("upgrade-*")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_backup_is_named_when_the_step_fails_after_it(cluster: Cluster, tmp_path: Path) -> None:
    """Neither the row nor the journal named it, and a resumed run, which found nothing to change, made no other one."""
    there = mounting(cluster, 1)
    there.held = True
    failed = roll(there, tmp_path / "state", Mode.PREPARING, driver={"file": FILE})
    assert failed.exit_code is ExitCode.PARTIAL
    written = [entry["path"] for entry in journal(tmp_path) if entry["event"] == "backup"]
    assert [Path(path).read_text() for path in written] == [TEXT]
    assert [row.backup for row in failed.rows] == written
    assert any(written[0] in event.message for event in there.events), "it is told at once"
    again = roll(there, tmp_path / "state", None, driver={"file": FILE}, resume=True)
    assert again.exit_code is ExitCode.PARTIAL
    there.held = False
    done = roll(there, tmp_path / "state", None, driver={"file": FILE}, resume=True)
    assert done.exit_code is ExitCode.OK, done.problems
    assert [row.backup for row in [*again.rows, *done.rows]] == written * 2


def test_the_backup_of_a_rollout_that_does_not_end(cluster: Cluster, tmp_path: Path) -> None:
    """It was named after the rollout only."""
    there = mounting(cluster, 1)
    cluster.breaks("CrashLoopBackOff")
    failed = roll(there, tmp_path / "state", Mode.PREPARING, driver={"file": FILE})
    assert "not rolled out" in failed.problems[0].message
    assert [Path(str(row.backup)).read_text() for row in failed.rows] == [TEXT]


def test_what_somebody_else_writes_into_the_configmap_meanwhile_is_kept(cluster: Cluster, tmp_path: Path) -> None:
    there = mounting(cluster, 1)
    cluster.writes_between.append(lambda found: found["data"].update({FILE.key: f"{TEXT}more=1\n"}))
    assert roll(there, tmp_path / "state", Mode.PREPARING, driver={"file": FILE}).exit_code is ExitCode.OK
    assert file_of(cluster) == f"{TEXT}more=1\n{SETTING}=preparing\n"


@pytest.mark.parametrize(
    ("manifest", "file", "complaint"),
    [
        ({"immutable": True}, FILE, "configmap/connect-config is immutable: nothing can change it"),
        ({}, replace(FILE, key="x"), "configmap/connect-config has no key x"),
        ({}, replace(FILE, key="other"), "other of configmap/connect-config has no group.id, and this is group g"),
        ({}, replace(FILE, configmap="x"), "statefulset/connect does not mount configmap/x"),
    ],
)
def test_a_configmap_that_would_change_no_worker(
    cluster: Cluster, tmp_path: Path, manifest: dict[str, Any], file: MountedProperties, complaint: str
) -> None:
    there = mounting(cluster, **manifest)
    with pytest.raises(RefusedError, match=complaint):
        prepare(there, tmp_path / "state", driver={"file": file})
    assert cluster.calls() == []


def test_one_variable_with_all_properties(cluster: Cluster, tmp_path: Path) -> None:
    """Its whole value was replaced by the mode."""
    there = pods(cluster, 1, **template([{"name": "A", "value": "1"}, {"name": "PROPERTIES", "value": TEXT}]))
    there.mode_of = lambda cluster: mode_in(cluster.variables(CONNECT)["PROPERTIES"])
    report = roll(there, tmp_path / "state", driver={"variable": "PROPERTIES"})
    assert report.exit_code is ExitCode.OK, report.problems
    assert cluster.variables(CONNECT) == {"A": "1", "PROPERTIES": f"{TEXT}{SETTING}=enabled\n"}
    assert Path(str(report.rows[0].backup)).read_text() == TEXT


def test_strimzi_s_resource_takes_no_configmap(cluster: Cluster, app: App) -> None:
    cluster.add("kafkaconnect/connect", spec={"config": {}})
    with pytest.raises(UsageError, match="kafkaconnect/connect has the mode in its own spec"):
        kubernetes_driver(app, ["kc/connect"], Kubectl(), file=FILE)


def manifests(report: Report) -> list[dict[str, Any]]:
    return plain(report.data.manifests)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("what", "spec", "field", "body"),
    [
        (
            "kafkaconnect/c", {"config": {}}, f'spec.config["{SETTING}"]', {"spec": {"config": {SETTING: "enabled"}}},
        ),
        (
            "kafkamirrormaker2/c",
            {"connectCluster": "b", "clusters": [{"alias": "b", "config": {}}]},
            f'spec.clusters[0].config["{SETTING}"]',
            [{"op": "add", "path": f"/spec/clusters/0/config/{SETTING}", "value": "enabled"}],
        ),
    ],
)  # fmt: skip
def test_fields_and_patches_of_strimzi_s_resources(
    cluster: Cluster, app: App, what: str, spec: dict[str, Any], field: str, body: object
) -> None:
    cluster.add(what, spec=spec)
    driver = kubernetes_driver(app, [what], Kubectl())
    (patch,) = driver.patches(app, Mode.ENABLED)
    assert (patch.thing, patch.body) == (what, body)
    assert [each.field for each in driver.origins(app)] == [field]
    cluster.run(shlex.split(driver.command(patch))[1:])
    assert driver.taken_back(app, [Mode.ENABLED]) is None
    assert driver.taken_back(app, [Mode.PREPARING]) == f"{what}: {field} is enabled, no longer preparing"


def test_what_the_next_deploy_takes_back_is_told(cluster: Cluster, tmp_path: Path) -> None:
    """Nothing was said of the chart, and the next `helm upgrade` brought disabled workers beside enabled ones."""
    there = pods(cluster, 1)
    found = cluster.read(CONNECT)
    found["metadata"]["annotations"] = {"meta.helm.sh/release-name": "c", "meta.helm.sh/release-namespace": "ns"}
    cluster.write(CONNECT, found)
    set_by(cluster, "helm", "disabled")
    let_roll(cluster, there)
    app, prepared = prepare(there, tmp_path / "state")
    (told,) = manifests(patch_report(app, prepared))
    assert told == {
        "object": CONNECT,
        "field": FIELD,
        "deployed_by": "Helm (release c in ns)",
        "held": True,
        "words": f"statefulset/connect is deployed by Helm (release c in ns): {FIELD} must be preparing, then enabled. "
        "Change it in the chart's values; the next `helm upgrade` reverts changes made here.",
    }
    assert manifests(plan_upgrade(app, Mode.ENABLED, driver=prepared.driver)) == [told]
    report = apply_roll(app, prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    (after,) = manifests(report)
    assert after["words"] == told["words"].replace("preparing, then ", "")


def test_a_field_that_is_set_back_in_mid_pass_ends_the_run_which_says_by_whom(cluster: Cluster, tmp_path: Path) -> None:
    """The next pass set it once more, beside workers that were disabled again."""
    there = pods(cluster, 1)
    app, prepared = prepare(there, tmp_path / "state")

    def sync(event: Event) -> None:
        if event.message.endswith("preparing, everything as before"):
            set_by(cluster, "argocd-controller", "disabled")

    report = apply_roll(replace(app, on_event=sync), prepared)
    assert report.exit_code is ExitCode.PARTIAL
    assert report.problems[0].message == (
        f"statefulset/connect: {FIELD} is disabled, no longer preparing; Argo CD (argocd-controller) wrote it at "
        "2026-02-01T00:00:00Z"
    )
    assert "--no-write" in str(report.problems[0].hint)
    assert [mode for _url, mode in there.starts] == ["preparing"]
    let_roll(cluster, there)
    assert there.workers == {"http://connect-0:8083": "disabled"}
    again = roll(there, tmp_path / "state", None, resume=True)
    assert again.exit_code is ExitCode.OK, again.problems
    assert there.workers == {"http://connect-0:8083": "enabled"}


def test_a_field_that_is_set_back_while_pods_are_restarted(cluster: Cluster, tmp_path: Path) -> None:
    there = pods(cluster, 2)
    app, prepared = prepare(there, tmp_path / "state")

    def sync(event: Event) -> None:
        if "revision r2" in event.message:
            set_by(cluster, "kustomize-controller", "disabled")

    report = apply_roll(replace(app, on_event=sync), prepared)
    assert "is disabled, no longer preparing; Flux (kustomize-controller) wrote it" in report.problems[0].message
    (told,) = manifests(report)
    assert f"{FIELD} must be preparing, then enabled" in told["words"], "enabled alone rolls beside disabled workers"


def test_what_was_set_back_when_all_passes_were_done_is_found_by_each_resume(cluster: Cluster, tmp_path: Path) -> None:
    """--resume saw enabled workers only and ended the upgrade; the next pod that started was disabled beside them."""
    there = pods(cluster, 1, **ON_DELETE)
    app, prepared = prepare(there, tmp_path / "state")

    def sync(event: Event) -> None:
        if event.message.endswith("enabled, everything as before"):
            set_by(cluster, "argocd-controller", "disabled")

    report = apply_roll(replace(app, on_event=sync), prepared)
    assert f"{FIELD} is disabled, no longer enabled" in report.problems[0].message
    assert manifests(report)[0]["words"].endswith(f"{FIELD} must be preparing, then enabled")
    for _time in range(2):
        again = roll(there, tmp_path / "state", None, resume=True)
        assert again.exit_code is ExitCode.PARTIAL
        assert f"{FIELD} is disabled, no longer enabled; Argo CD" in again.problems[0].message
        assert "Set it to enabled again" in str(again.problems[0].hint)
    set_by(cluster, "kubectl-set", "enabled")
    assert roll(there, tmp_path / "state", None, resume=True).exit_code is ExitCode.OK


def test_what_was_set_back_between_passes_is_found_by_a_resume(cluster: Cluster, tmp_path: Path) -> None:
    """With OnDelete no worker had another mode yet, and the second pass began while the tool was still at work."""
    there = pods(cluster, 1, **ON_DELETE)
    app, prepared = prepare(there, tmp_path / "state")

    def sync(event: Event) -> None:
        if event.message.endswith("preparing, everything as before"):
            set_by(cluster, "argocd-controller", "disabled")

    assert apply_roll(replace(app, on_event=sync), prepared).exit_code is ExitCode.PARTIAL
    again = roll(there, tmp_path / "state", None, resume=True)
    assert f"{FIELD} is disabled, no longer preparing; Argo CD" in again.problems[0].message
    assert "Set it to preparing again" in str(again.problems[0].hint)
    assert there.workers == {"http://connect-0:8083": "preparing"}
    set_by(cluster, "kubectl-set", "preparing")
    assert roll(there, tmp_path / "state", None, resume=True).exit_code is ExitCode.OK
    assert there.workers == {"http://connect-0:8083": "enabled"}


def test_a_field_that_is_set_back_while_pods_are_deleted_one_by_one(cluster: Cluster, tmp_path: Path) -> None:
    """The next pod was deleted, and came back disabled."""
    there = pods(cluster, 2, **ON_DELETE)
    app, prepared = prepare(there, tmp_path / "state")

    def sync(event: Event) -> None:
        if "connect-1: replaced, Ready" in event.message:
            set_by(cluster, "argocd-controller", "disabled")

    report = apply_roll(replace(app, on_event=sync), prepared)
    assert "is disabled, no longer preparing; Argo CD (argocd-controller) wrote it" in report.problems[0].message
    assert deleted(cluster) == ["pod/connect-1"]


def test_the_patches_of_both_passes(cluster: Cluster, tmp_path: Path) -> None:
    there = pods(cluster, 1)
    app, prepared = prepare(there, tmp_path / "state", driver={"watches": True}, driver_options=("--workload", CONNECT))
    report = patch_report(app, prepared)
    assert [row.mode for row in report.rows] == ["preparing", "enabled"]
    for row in report.rows:
        cluster.run(shlex.split(str(row.command))[1:])
        assert cluster.variables(CONNECT) == {VARIABLE: row.mode}
    assert report.data.watch == (
        "eosctl upgrade apply --driver kubernetes --workload statefulset/connect --to enabled --no-write"
    )


def test_the_patches_of_a_workload_whose_controller_restarts_no_pod(cluster: Cluster, tmp_path: Path) -> None:
    """Nothing said that its pods stay as they are until somebody deletes them."""
    there = pods(cluster, 2, **ON_DELETE)
    (told,) = patch_report(*prepare(there, tmp_path / "state", driver={"watches": True})).problems
    assert (told.code, told.severity) == ("pods_deleted_by_hand", "warning")
    assert told.message == (
        f"{CONNECT} has updateStrategy OnDelete: after the patch of each pass somebody must delete its pods, one by one"
    )


def test_the_patches_of_a_file(cluster: Cluster, tmp_path: Path) -> None:
    there = mounting(cluster, 1)
    report = patch_report(*prepare(there, tmp_path / "state", Mode.PREPARING, driver={"file": FILE, "watches": True}))
    assert [row.object for row in report.rows] == [FILE.thing, CONNECT]
    for row in report.rows:
        cluster.run(shlex.split(str(row.command))[1:])
    assert file_of(cluster) == f"{TEXT}{SETTING}=preparing\n"
    annotations = cluster.read(CONNECT)["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {f"eosctl/{SETTING}": "preparing"}


def test_the_command_line(cluster: Cluster, invoke: Invoke) -> None:
    """What is printed can be pasted into a shell: all that is no command is a comment, and what must not begin yet."""
    there = pods(cluster, 1)
    words = ["upgrade", "apply", "-b", "localhost:1", "-g", "g", "--to", "enabled"]
    where = ["--driver", "kubernetes", "--workload", "sts/connect", "--namespace", "ns"]
    printed = invoke(*words, *where, "--print-patch", **there.surroundings)
    assert (printed.exit_code, printed.stderr) == (0, "")
    lines = [line for line in printed.stdout.splitlines() if not line.startswith("#")]
    assert [shlex.split(line)[1:5] for line in lines] == [["--namespace", "ns", "patch", CONNECT]]
    assert "preparing" in lines[0]
    assert (
        "# pass enabled: when eosctl waits for enabled, run these without the leading #\n# kubectl --namespace ns"
        in printed.stdout
    )
    assert cluster.calls() == []
    planned = invoke(*words, *where, "--no-write", "--dry-run", **there.surroundings)
    assert f"not by eosctl (--no-write): kubectl --namespace ns set env {CONNECT}" in planned.stdout
    assert (
        f"change at source: {CONNECT} does not say what deploys it: where it is deployed from, {FIELD} must be "
        in planned.stdout
    )
    for wrong in (
        ["--driver", "print", "--print-patch"], ["--driver", "print", "--no-write"], [*where, "--configmap", "c"],
        [*where, "--configmap", "c", "--key", "k", "--env-name", "n"],
    ):  # fmt: skip
        assert invoke(*words, *wrong, **there.surroundings).exit_code == 2
