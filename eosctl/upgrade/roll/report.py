"""`upgrade apply` as reports: the plan and its result, a row per worker and pass."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from msgspec.structs import replace as replaced

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.errors import ExitCode
from eosctl.foreign import Lines
from eosctl.output.rows import Kind
from eosctl.report import Problem, Report
from eosctl.state.journal import Progress
from eosctl.upgrade import codes
from eosctl.upgrade.apply_rows import (
    UPGRADE_APPLY_PLAN,
    UPGRADE_APPLY_RESULT,
    ApplyData,
    ApplyOutcome,
    ApplyRow,
    ApplySummary,
)
from eosctl.upgrade.drivers import DeletesPods, TakenBackError
from eosctl.upgrade.gate import Gate
from eosctl.upgrade.gate_rows import open_gates
from eosctl.upgrade.look import accept_hint, describe_roll
from eosctl.upgrade.roll.owned import manifests_of
from eosctl.upgrade.roll.prepare import PreparedRoll, losses
from eosctl.upgrade.roll.step import UNPROVEN, StepOutcome
from eosctl.upgrade.roll.undo import resume_command, undo_command

PROVEN_BY_A_ROLL = frozenset({codes.MODES_PROVEN, codes.NO_MIXED_MODES})
"""What the steps of a roll prove of each worker; no look at the whole group comes after the last one."""

_TO_DO = ("planned", "failed", "not_reached")
JOINED = "it joined while the others were restarted, and was proven with them"


def plan_report(app: App, roll: PreparedRoll) -> Report:
    """Report the steps to come; gates that forbid the roll are its errors, with exit code 6.

    Raises UsageError for a worker that the driver can't handle.
    """
    earlier = [*_earlier(roll), *_of_mirror_maker(roll), *_of_pods(roll)]
    report = _report(app, roll, UPGRADE_APPLY_PLAN, _planned(roll), problems=earlier, unfinished=True)
    if not roll.blocking or not roll.steps():
        return report
    problems = [
        Problem(
            gate.id,
            f"gate {gate.id} {gate.verb}: {gate.evidence}; nothing was written",
            hint=f"{gate.fix} {accept_hint([gate])}",
        )
        for gate in roll.blocking
    ]
    return replace(report, problems=[*report.problems, *problems], exit_code=ExitCode.REFUSED)


def result_report(
    app: App, roll: PreparedRoll, outcomes: Sequence[StepOutcome], progress: Progress[str], *, gates: Sequence[Gate]
) -> Report:
    """Report the result of every step; exit 7 if a worker was touched and a step failed.

    `gates` are those of the last look: what was unknown when the plan was made may be known by now.
    """
    failure = progress.error
    there = {(each.mode, name): each for each in outcomes for name in each.workers}
    rows: list[ApplyRow] = []
    for row in _planned(roll):
        outcome = there.get((row.mode, row.worker))
        if row.outcome == "done_before":
            rows.append(row)
        elif outcome is None:
            rows.append(replaced(row, outcome="not_reached"))
        else:
            rows.append(replaced(row, outcome=outcome.outcome, detail=outcome.detail, backup=outcome.backup))
    for each in outcomes:
        rows += [replaced(_row(roll, each.mode, name, outcome=each.outcome), detail=JOINED) for name in each.joined]
    left = [gate for gate in gates if failure is not None or gate.id not in PROVEN_BY_A_ROLL]
    report = _report(app, roll, UPGRADE_APPLY_RESULT, rows, problems=[], unfinished=failure is not None)
    manifests = manifests_of(roll.origins, _modes_to_come(roll, rows, anew=isinstance(failure, TakenBackError)))
    data = replaced(report.data_of(ApplyData), gates=open_gates(left), manifests=manifests)
    ways = [] if failure is None else [Problem.of(failure), _way_on(roll)]
    problems = [*ways, *_of_mirror_maker(roll), *progress.problems]
    touched = bool(outcomes) or roll.begun is not None
    return replace(report, data=data, problems=problems, exit_code=progress.exit_code(touched=touched))


def _planned(roll: PreparedRoll) -> list[ApplyRow]:
    before = (
        [] if roll.begun is None else [_row(roll, mode, name, outcome="done_before") for mode, name in roll.begun.steps]
    )
    return [*before, *(_row(roll, mode, name, outcome="planned") for mode, name in roll.steps())]


def _row(roll: PreparedRoll, mode: Mode, worker: str, *, outcome: ApplyOutcome) -> ApplyRow:
    actions = [] if outcome == "done_before" else list(roll.driver.actions([worker], mode))
    if worker in roll.dead and actions:
        is_last = mode is roll.target
        when = "its mode is set first, and it is started last" if is_last else "its mode is set, and it is not started"
        actions = [f"it is no member of the group: {when}", *(actions if is_last else actions[:1])]
    leader = any(each.name == worker and each.leader for each in roll.view.observation.workers)
    return ApplyRow(mode=mode, worker=worker, leader=leader, actions=actions, outcome=outcome, detail=None, backup=None)


def _report(
    app: App, roll: PreparedRoll, kind: Kind, rows: Sequence[ApplyRow], *, problems: Sequence[Problem], unfinished: bool
) -> Report:
    return Report(
        kind=kind,
        rows=rows,
        summary=ApplySummary(
            target_mode=roll.target,
            driver=roll.driver.name,
            steps=len(rows),
            to_do=sum(row.outcome in _TO_DO for row in rows),
        ),
        data=ApplyData(
            plan=roll.plan.digest(),
            place=roll.place,
            gates=open_gates(roll.gates),
            losses=list(losses(roll)),
            manifests=manifests_of(roll.origins, _modes_to_come(roll, rows)),
            journal=str(roll.journal.path),
            undo=undo_command(roll, unfinished=unfinished),
        ),
        target={"kafka_cluster_id": roll.cluster_id, "group_id": app.target.group_id},
        problems=problems,
    )


def _modes_to_come(roll: PreparedRoll, rows: Sequence[ApplyRow], *, anew: bool = False) -> list[str]:
    """Return the modes that a field must have, in order; after a revert it goes through all passes `anew`."""
    modes = dict.fromkeys(row.mode.value for row in rows if anew or row.outcome in _TO_DO)
    return list(modes) or [roll.target.value]


def _earlier(roll: PreparedRoll) -> list[Problem]:
    if roll.begun is None:
        return []
    stopped = f"; it stopped because {roll.begun.stopped}" if roll.begun.stopped else ""
    return [Problem(codes.UPGRADE_UNFINISHED, describe_roll(roll.begun) + stopped).as_warning()]


def _of_mirror_maker(roll: PreparedRoll) -> list[Problem]:
    """Warn of what can't be proven of MirrorMaker nodes, and of groups that change their mode with them."""
    if not roll.mirror_maker:
        return []
    message = "these are nodes of a dedicated MirrorMaker: each step goes " + UNPROVEN
    hint = "If a node leads, its claim of the leader's transactional id shows the mode; if it runs tasks, their ids do."
    problems = [Problem(codes.MODE_BY_FILE_AND_MEMBERSHIP, message, hint)]
    groups = sorted({group for each in roll.configs for group in each.moved_with})
    if groups:
        message = f"the same property sets the mode of group {', '.join(groups)}, whose workers are in the same nodes"
        hint = "See `eosctl workers list` with -g of each: only these nodes may be its members."
        problems.append(Problem(codes.GROUPS_MOVED_TOGETHER, message, hint))
    return problems


def _of_pods(roll: PreparedRoll) -> list[Problem]:
    """Warn of the pods that will be deleted, and explain why."""
    driver = roll.driver
    hint = "Its controller does not replace such a pod when the workload changes: it is deleted unless it gets Ready."
    told = driver.deletes().values() if isinstance(driver, DeletesPods) and roll.steps() else ()
    return [Problem(codes.POD_NOT_READY, each, hint) for each in told]


def question(roll: PreparedRoll, *, watching: bool) -> str:
    """Return the question to confirm; `watching`: somebody else changes the workers."""
    pods = sorted(roll.driver.deletes()) if isinstance(roll.driver, DeletesPods) else []
    deleted = f", and delete pod {', '.join(pods)} if not Ready" if pods else ""
    return f"{'Watch' if watching else 'Restart'} the workers to reach {roll.target.value}{deleted}?"


def _way_on(roll: PreparedRoll) -> Problem:
    back = undo_command(roll, unfinished=True)
    return Problem(
        codes.UPGRADE_UNFINISHED,
        f"the upgrade to {roll.target.value} is not finished; the workers run as the rows say",
        hint=Lines.of(f"Go on: {resume_command(roll)}", *([f"Go back: {back}"] if back else [])),
    )
