"""The commands that resume an upgrade or take it back to the mode in which it began, and its patches to print.

`upgrade apply --print-patch` prints the patches of the workloads for somebody else; it writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.clients.hidden_secrets import holds_secrets
from eosctl.core.wording import counted
from eosctl.core.workers.modes import POSSIBLE, Mode
from eosctl.errors import UsageError
from eosctl.foreign import shell_words
from eosctl.offsets import codes as file_codes
from eosctl.report import Problem, Report
from eosctl.upgrade import codes
from eosctl.upgrade.apply_rows import UPGRADE_PATCHES, PatchData, PatchRow, PatchSummary
from eosctl.upgrade.drivers import DeletesPods, OwnsWorkers
from eosctl.upgrade.drivers.manifests.fields import Patch
from eosctl.upgrade.roll.owned import manifests_of
from eosctl.upgrade.roll.prepare import PreparedRoll


def patch_report(app: App, roll: PreparedRoll, *, with_secrets: bool = False) -> Report:
    """Return a row for each patch, pass by pass; gates that would stop the upgrade, and hidden patches, are warnings.

    Without `with_secrets`, a patch that has secrets besides the mode is shown as its change only.

    Raises UsageError for a driver without a platform, and what reading the workloads raises.
    """
    driver = roll.driver
    if not isinstance(driver, OwnsWorkers):
        raise UsageError(f"--driver {driver.name} changes nothing that has patches")
    modes = list(dict.fromkeys(mode for mode, _worker in roll.steps()))
    wanted = [mode.value for mode in modes] or [roll.target.value]
    rows = [
        _row(driver, mode, patch, with_secrets=with_secrets) for mode in modes for patch in driver.patches(app, mode)
    ]
    hidden = sum(row.patch is None for row in rows)
    return Report(
        kind=UPGRADE_PATCHES,
        rows=rows,
        summary=PatchSummary(target_mode=roll.target, passes=len(modes)),
        data=PatchData(manifests=manifests_of(roll.origins, wanted), watch=_watch(roll)),
        target={"kafka_cluster_id": roll.cluster_id, "group_id": app.target.group_id},
        problems=[
            *_hidden_problems(hidden),
            *_by_hand_problems(driver),
            *(
                Problem(gate.id, f"gate {gate.id} {gate.verb}: {gate.evidence}", gate.fix).as_warning()
                for gate in roll.blocking
            ),
        ],
    )


def _row(driver: OwnsWorkers, mode: Mode, patch: Patch, *, with_secrets: bool) -> PatchRow:
    hidden = bool(patch.change) and not with_secrets and holds_secrets(patch.body)
    return PatchRow(
        mode=mode,
        object=patch.thing,
        type=patch.type,
        change=patch.change or None,
        patch=None if hidden else patch.body,
        command=None if hidden else driver.command(patch),
    )


def _by_hand_problems(driver: OwnsWorkers) -> list[Problem]:
    """Warn of workloads whose pods do not change after a patch."""
    names = ", ".join(sorted(driver.deleted_by_us)) if isinstance(driver, DeletesPods) else ""
    if not names:
        return []
    message = (
        f"{names} has updateStrategy OnDelete: after the patch of each pass somebody must delete its pods, one by one"
    )
    hint = "Delete the next one when the pod before is Ready, and its worker in the group again."
    return [Problem(codes.PODS_DELETED_BY_HAND, message, hint=hint)]


def _hidden_problems(count: int) -> list[Problem]:
    if not count:
        return []
    message = f"{counted(count, 'patch', 'patches')} may show secrets: only the change is shown"
    hint = "--with-secrets prints the whole patch: keep it out of logs."
    return [Problem(file_codes.SECRETS_HIDDEN, message, hint=hint)]


def _watch(roll: PreparedRoll) -> str:
    """Return the command that watches and checks while the changes are made."""
    words = ["eosctl", "upgrade", "apply", "--driver", roll.driver.name, *roll.request.driver_options]
    words += ["--resume"] if roll.begun else ["--to", roll.target.value]
    return shell_words(*words, *([] if "--no-write" in words else ["--no-write"]))


def origin_of(modes: Iterable[Mode]) -> Mode | None:
    """Return the one mode of the members before the upgrade; None if it is unknown or differs.

    For workers known only as not enabled it is disabled: the mode of every group that never used exactly-once.
    """
    found = {mode for mode in modes if mode is not Mode.ABSENT}
    if found in ({Mode.ENABLED}, {Mode.PREPARING}):
        return found.pop()
    return Mode.DISABLED if found and not any(Mode.ENABLED in POSSIBLE[mode] for mode in found) else None


def undo_command(roll: PreparedRoll, *, unfinished: bool) -> str | None:
    """Return the command that goes back, with the driver's options; None without a mode to go back to.

    One that is not finished has to be forgotten first.
    """
    origin = roll.begun.origin if roll.begun else origin_of(worker.mode for worker in roll.plan.workers)
    if origin is None or origin is roll.target:
        return None
    words = ["eosctl", "upgrade", "apply", "--to", origin.value, "--driver", roll.driver.name]
    return shell_words(*words, *roll.request.driver_options, *([Waiver.START_OVER] if unfinished else ()))


def resume_command(roll: PreparedRoll) -> str:
    """Return the command that resumes, with the options of the driver and its gates."""
    return command_to_resume(roll.driver.name, roll.request.driver_options, roll.request.accepted)


def command_to_resume(driver: str, options: Sequence[str], accepted: Iterable[str]) -> str:
    """Return the command that resumes a roll known only from the journal."""
    gates = [word for name in sorted(accepted) for word in (Waiver.ACCEPT_GATE, name)]
    return shell_words("eosctl", "upgrade", "apply", "--resume", "--driver", driver, *options, *gates)
