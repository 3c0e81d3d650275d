"""`upgrade apply --print-patch`: what changes the workloads, for whoever makes the changes. It writes nothing."""

from __future__ import annotations

import shlex

from eosctl.errors import UsageError
from eosctl.ops.app import App
from eosctl.ops.upgrade_apply import PreparedRoll
from eosctl.ops.upgrade_drivers import OwnsWorkers
from eosctl.ops.upgrade_owned import manifests_of
from eosctl.report import Problem, Report, Row


def patch_report(app: App, roll: PreparedRoll) -> Report:
    """A row per patch, pass by pass; a gate that would stop the upgrade is a warning.

    Raises UsageError for a driver without a platform, and what reading the workloads raises.
    """
    driver = roll.driver
    if not isinstance(driver, OwnsWorkers):
        raise UsageError(f"--driver {driver.name} changes nothing that has patches")
    modes = list(dict.fromkeys(mode for mode, _worker in roll.steps()))
    wanted = [mode.value for mode in modes] or [roll.target.value]
    rows: list[Row] = [
        {
            "mode": mode.value,
            "object": patch.thing,
            "type": patch.type,
            "patch": patch.body,
            "command": driver.command(patch),
        }
        for mode in modes
        for patch in driver.patches(app, mode)
    ]
    return Report(
        kind="upgrade-patches",
        rows=rows,
        summary={"target_mode": roll.target.value, "passes": len(modes)},
        data={"manifests": manifests_of(roll.origins, wanted), "watch": _watch(roll)},
        target={"kafka_cluster_id": roll.cluster_id, "group_id": app.target.group_id},
        problems=[
            Problem(gate.id, f"gate {gate.id} {gate.verb}: {gate.evidence}", hint=gate.fix, severity="warning")
            for gate in roll.blocking
        ],
    )


def _watch(roll: PreparedRoll) -> str:
    """What watches and checks while the changes are made."""
    words = ["eosctl", "upgrade", "apply", "--driver", roll.driver.name, *roll.request.driver_options]
    words += ["--resume"] if roll.begun else ["--to", roll.target.value]
    return shlex.join([*words, *([] if "--no-write" in words else ["--no-write"])])
