"""upgrade status and upgrade verify: the state of the workers, and whether it is as it should be. Read-only."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from eosctl.app import App
from eosctl.codes import Code
from eosctl.core.allowances import Waiver
from eosctl.core.findings import ERROR, Finding
from eosctl.core.wording import counted, rfc3339
from eosctl.core.workers.modes import Mode, UpgradeWorker
from eosctl.deadline import Deadline
from eosctl.errors import ExitCode
from eosctl.group import codes as group_codes
from eosctl.group.observation.rules import STARTING, Observation
from eosctl.group.observed import GroupObservation
from eosctl.group.rows import WorkersSummary
from eosctl.output.rows import finding_row
from eosctl.report import Problem, Report
from eosctl.state.journal import Journal
from eosctl.upgrade import codes
from eosctl.upgrade.drivers import OwnsWorkers
from eosctl.upgrade.gate import Gate
from eosctl.upgrade.gates import FORBIDDABLE_GATES
from eosctl.upgrade.look import (
    NOTHING_KNOWN,
    AcceptedRisks,
    Brought,
    GroupLook,
    Memory,
    Roll,
    accepted_risks,
    describe_roll,
    look,
)
from eosctl.upgrade.roll.owned import match_gates, newest_roll, upgrade_journal
from eosctl.upgrade.rows import (
    UPGRADE_STATUS,
    UPGRADE_VERIFY,
    DonePart,
    RollPart,
    StatusData,
    UnderWayPart,
    VerifySummary,
    status_row,
)

_JUDGED_PER_WORKER = codes.MODES_PROVEN
_PATIENCE_S, _POLL_S = 20.0, 1.0


def upgrade_status(app: App) -> Report:
    """Report each worker's mode with its evidence, and the newest roll in the journal.

    Exit 7 when a worker can't be reached, or a rebalance hides the members. Raises what `observe_workers` raises.
    """
    journal, cluster_id = _journal(app)
    roll = newest_roll(journal)
    memory = roll.memory if roll else NOTHING_KNOWN
    view = look(app, roll.target if roll else Mode.ENABLED, memory, validate=False)
    workers = view.observation.workers
    silent = [worker for worker in workers if worker.mode is Mode.UNREACHABLE]
    problems = [Problem(group_codes.WORKER_UNREACHABLE, f"the worker at {w.name} can't be reached") for w in silent]
    problems += _hidden_problems(view.group)
    if roll is not None and roll.unfinished:
        problems.append(_unfinished(roll, journal.holder()))
    hidden = {member.name for member in view.group.hidden}  # those that were named may be the same
    counted_once = [worker for worker in workers if not hidden or worker.name in hidden]
    modes = Counter(worker.mode.value for worker in counted_once)
    return Report(
        kind=UPGRADE_STATUS,
        rows=[status_row(worker, roll=_place(worker.name, roll)) for worker in workers],
        summary=WorkersSummary(workers=len(counted_once), modes=dict(sorted(modes.items()))),
        data=StatusData(roll=None if roll is None else _roll_part(roll)),
        target={"kafka_cluster_id": cluster_id, "group_id": app.target.group_id},
        problems=problems,
        exit_code=ExitCode.PARTIAL if silent or hidden else ExitCode.OK,
    )


def verify_upgrade(
    app: App, target: Mode, *, accepted: frozenset[str] = frozenset(), driver: OwnsWorkers | None = None
) -> Report:
    """Report the findings that keep the group from being wholly and provably in `target`; exit 3 if there are any.

    A finding that a rebalance or the start of a task explains must last for a while. A rebalance that lasts hides the
    members: then no worker is judged, nor what is unknown, and exit 7 says so unless there are findings. Rights that
    can't be judged or read are only a warning: they say nothing of what workers do now. So are gates that are
    `accepted`, and with `modes_proven` modes that nothing proves, or only a file shows. With a `driver`, the members
    must be the workers of its platform. Raises what `observe_workers` raises.
    """
    journal, cluster_id = _journal(app)
    roll = newest_roll(journal)
    view = _calm_look(app, target, roll.memory if roll else NOTHING_KNOWN, accepted_risks(accepted, roll))
    view = replace(view, gates=(*view.gates, *match_gates(app, driver, view.group, accepted=accepted)))
    hidden, workers = view.group.hidden, () if view.group.hidden else view.observation.workers
    elsewhere = [each for each in workers if each.mode is not target or not each.confirmed]
    taken = [each for each in elsewhere if codes.MODES_PROVEN in accepted and target in each.possible]
    findings = [
        *(_worker_finding(worker, target) for worker in elsewhere if worker not in taken),
        *(
            _gate_finding(gate, str(app.target.group_id))
            for gate in _open_gates(view)
            if not hidden or (gate.status == "fail" and gate.id not in _passing(view))
        ),
    ]
    if not view.observation.workers:
        findings.append(
            Finding(
                codes.NO_WORKERS, ERROR, str(app.target.group_id), "the group has no workers", codes.NO_WORKERS.next
            )
        )
    return Report(
        kind=UPGRADE_VERIFY,
        rows=[finding_row(finding) for finding in findings],
        summary=VerifySummary(
            target_mode=target,
            workers=len(hidden or workers),
            proven=len(workers) - len(elsewhere),
            gates=len(view.gates),
            passed=sum(gate.status == "pass" for gate in view.gates),
            findings=len(findings),
        ),
        target={"kafka_cluster_id": cluster_id, "group_id": app.target.group_id},
        problems=[
            *_hidden_problems(view.group),
            *(
                _gate_problem(gate)
                for gate in view.gates
                if (gate.accepted and gate.status != "pass") or _may_stay_unknown(gate, view.observation)
            ),
        ],
        exit_code=ExitCode.FINDINGS if findings else ExitCode.PARTIAL if hidden else ExitCode.OK,
    )


def _calm_look(app: App, target: Mode, memory: Memory, risks: AcceptedRisks) -> GroupLook:
    """Look at the group; repeat the look for some seconds if it shows only a rebalance, or tasks that start."""
    patience = Deadline.after(min(_PATIENCE_S, app.deadline.remaining_s() / 2), app.clock)
    view = look(app, target, memory, risks=risks)
    while _is_passing(view) and patience.remaining_s() > view.took_s + _POLL_S:
        patience.sleep(_POLL_S)
        view = look(app, target, memory, risks=risks)
    return view


def _is_passing(view: GroupLook) -> bool:
    """Decide whether gates fail, and each of them may fail only because of a rebalance or a connector that starts."""
    failing = {gate.id for gate in _open_gates(view) if gate.status == "fail"}
    return bool(failing) and failing <= _passing(view)


def _passing(view: GroupLook) -> set[Code]:
    """Return the gates that may fail only because of a rebalance or a connector that starts."""
    states = {state for each in view.observation.connectors or () for state in each.unhealthy_parts().values()}
    passing = {codes.GROUP_STABLE, codes.TASK_SETS_COMPLETE}
    if states <= STARTING:
        passing.add(codes.CONNECTORS_HEALTHY)
    if view.group.hidden:  # members are not known by their files, nor by their pods
        passing |= {codes.MEMBERS_KNOWN, codes.WORKLOAD_MATCHES}
    return passing


def _hidden_problems(group: GroupObservation) -> list[Problem]:
    if not group.hidden:
        return []
    message = (
        f"group {group.group_id} is in a rebalance ({group.state}), which hides the URLs of its "
        f"{counted(len(group.hidden), 'member')}: their modes, and what they alone report, are not known"
    )
    hint = "Run again when `eosctl workers list` shows it stable."
    return [Problem(codes.GROUP_STABLE, message, hint, unseen=True).as_warning()]


def _journal(app: App) -> tuple[Journal, str]:
    with app.transactions() as admin:
        cluster_id = admin.cluster_id()
    return upgrade_journal(app, cluster_id), cluster_id


def _unfinished(roll: Roll, holder: str | None) -> Problem:
    if holder is not None:
        message = f"{describe_roll(roll)}; eosctl is at work on it now ({holder})"
        return Problem(codes.UPGRADE_UNFINISHED, message, "Wait for it.").as_warning()
    return Problem(codes.UPGRADE_UNFINISHED, describe_roll(roll), "--resume continues.").as_warning()


def _open_gates(view: GroupLook) -> list[Gate]:
    open_ones = [gate for gate in view.gates if gate.status != "pass" and gate.id != _JUDGED_PER_WORKER]
    return [gate for gate in open_ones if not gate.accepted and not _may_stay_unknown(gate, view.observation)]


def _may_stay_unknown(gate: Gate, seen: Observation) -> bool:
    """Decide whether an unknown gate says nothing of what workers do now: rights, and what a reading role may not see.

    Rights may stay unknown for good: ACLs and principals are not everybody's to see.
    """
    hidden = (part in seen.forbidden for part in FORBIDDABLE_GATES.get(gate.id, ()))
    return gate.status == "unknown" and (gate.id == codes.RIGHTS_GRANTED or any(hidden))


def _gate_problem(gate: Gate) -> Problem:
    more = f"; it is accepted as it is ({Waiver.ACCEPT_GATE})" if gate.accepted else ""
    return Problem(gate.id, f"gate {gate.id} {gate.verb}: {gate.evidence}{more}", gate.fix).as_warning()


def _worker_finding(worker: UpgradeWorker, target: Mode) -> Finding:
    if not worker.confirmed:
        return Finding(
            codes.MODE_UNPROVEN, ERROR, worker.name,
            f"that it is {target.value} can't be proven: " + (
                f"its file says {worker.mode.value}, and no request confirms it"
                if worker.mode is not Mode.UNKNOWN else "no request reaches it, and no file has its mode"
            ),
            f"{Waiver.ACCEPT_GATE} modes_proven goes by its file (-w); `eosctl upgrade apply` knows what it restarted.",
            {"mode": worker.mode.value, "evidence": list(worker.evidence)},
        )  # fmt: skip
    unproven = worker.mode in (Mode.NOT_ENABLED, Mode.UNKNOWN) and not (
        target is Mode.ENABLED and worker.mode is Mode.NOT_ENABLED
    )
    return Finding(
        code=codes.MODE_UNPROVEN if unproven else codes.WRONG_MODE,
        severity=ERROR,
        subject=worker.name,
        message=f"that it is {target.value} can't be proven: it is {worker.mode.value}"
        if unproven
        else f"it is {worker.mode.value}, not {target.value}",
        fix="Give its properties file with -w." if unproven else f"eosctl upgrade plan --to {target.value}",
        evidence={"mode": worker.mode.value, "evidence": list(worker.evidence)},
    )


def _gate_finding(gate: Gate, group_id: str) -> Finding:
    return Finding(
        gate.id, ERROR, group_id, f"gate {gate.id} {gate.verb}: {gate.evidence}", gate.fix, {"status": gate.status}
    )


def _place(name: str, roll: Roll | None) -> str | None:
    """Return where the worker stands in an unfinished roll."""
    if roll is None or not roll.unfinished:
        return None
    if roll.open is not None and name in roll.open.workers:
        return f"under way to {roll.open.mode.value}"
    brought: Brought | None = roll.brought.get(name)
    return "not begun" if brought is None else f"brought to {brought.mode.value}"


def _roll_part(roll: Roll) -> RollPart:
    step = roll.open
    return RollPart(
        target_mode=roll.target,
        driver=roll.driver,
        plan=roll.digest,
        finished=not roll.unfinished,
        began=str(rfc3339(roll.began_ms)),
        began_ms=roll.began_ms,
        ended=rfc3339(roll.ended_ms),
        ended_ms=roll.ended_ms,
        done=[DonePart(mode=mode, worker=name) for mode, name in roll.steps],
        under_way=None if step is None else UnderWayPart(mode=step.mode, workers=list(step.workers)),
        stopped=roll.stopped,
    )
