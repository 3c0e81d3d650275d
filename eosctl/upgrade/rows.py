"""The rows of `upgrade plan`, `status` and `verify`, and those parts that `upgrade apply` has as well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from eosctl.core.allowances import Waiver
from eosctl.core.workers.modes import TARGETS, Mode, Pass, UpgradeWorker
from eosctl.foreign import printable
from eosctl.group.rows import WorkersSummary, modes_line
from eosctl.output.cells import summary_lines
from eosctl.output.findings import findings_text
from eosctl.output.parts import Counts, FindingRow
from eosctl.output.rows import Kind, Printed, Schema, Text, Time
from eosctl.report import Report
from eosctl.upgrade.gate import Gate, GateStatus
from eosctl.upgrade.hard_rows import HardPart, hard_lines

TargetMode = Annotated[Mode, Schema({"enum": sorted(TARGETS)})]
"""A mode that a worker can be brought to."""
Worker = Annotated[str, "The worker: its URL, or its file where it is not in the group."]
Leader = Annotated[bool, "Whether the worker leads the group."]
TargetOfRoll = Annotated[TargetMode, "The mode that every worker is to have."]
Digest = Annotated[str, "The sha256 of the plan, in hex."]
Losses = Annotated[list[str], "What going back costs, in sentences."]


class GatePart(Printed):
    """A check before a change of the workers' mode."""

    id: Annotated[str, "The name of the gate; `eosctl explain GATE` says what it is about."]
    status: Annotated[GateStatus, "Whether the gate passes."]
    evidence: Annotated[object, "What its status is known by."]
    fix: Annotated[str, "What to do about it."]
    stops_apply: Annotated[bool, "Whether `upgrade apply` restarts no worker as long as the gate is like this."]
    accepted: Annotated[bool, "Whether the command line accepts it as it is."]


class OpenGatePart(GatePart):
    """A gate that does not pass."""

    status: Annotated[Literal["fail", "unknown"], "Whether the gate fails."]


def gate_part(gate: Gate) -> GatePart:
    """Return the gate as a document has it."""
    return GatePart(
        id=str(gate.id),
        status=gate.status,
        evidence=gate.evidence,
        fix=gate.fix,
        stops_apply=gate.stops_apply,
        accepted=gate.accepted,
    )


def open_gates(gates: Iterable[Gate]) -> list[OpenGatePart]:
    """Return the gates that do not pass."""
    return [
        OpenGatePart(
            id=str(gate.id),
            status=gate.status,
            evidence=gate.evidence,
            fix=gate.fix,
            stops_apply=gate.stops_apply,
            accepted=gate.accepted,
        )
        for gate in gates
        if gate.status != "pass"
    ]


class ManifestPart(Printed):
    """A field that must be changed where a workload is deployed from."""

    object: Annotated[str, "The workload."]
    field: Annotated[str, "The field that sets the mode."]
    deployed_by: Annotated[str | None, "What deploys the workload; null where the workload does not say it."]
    held: Annotated[bool | None, "Whether that sets the field; null where it is not known."]
    words: Annotated[str, "What must be changed, and where."]


def manifest_lines(manifests: Iterable[ManifestPart]) -> Iterable[str]:
    """Render what must be changed where the workloads are deployed from."""
    return (f"change at source: {printable(each.words)}" for each in manifests)


class UpgradeWorkerRow(Printed):
    """A worker, and the mode that it has now."""

    worker: Worker
    leader: Leader
    version: Annotated[str | None, "The version of Connect; `-` where it is not known."]
    health: Annotated[str | None, "Whether the worker's REST interface answers."]
    mode: Annotated[Mode, "The worker's exactly-once mode now."]
    evidence: Annotated[list[str], "What the mode is known by."]


def worker_row(worker: UpgradeWorker) -> UpgradeWorkerRow:
    """Return the worker as a row."""
    return UpgradeWorkerRow(
        worker=worker.name,
        leader=worker.leader,
        version=worker.version,
        health=worker.health,
        mode=worker.mode,
        evidence=list(worker.evidence),
    )


class StepPart(Printed):
    """The actions for one worker in a pass."""

    worker: Worker
    actions: Annotated[list[str], "What to do, in words."]
    gates: Annotated[list[str], "What must be true before the next step begins."]


class PassPart(Printed):
    """A rolling restart that brings workers to another mode."""

    mode: Annotated[str, "The mode that they are brought to."]
    barrier: Annotated[str, "What must be true before the first step."]
    steps: Annotated[list[StepPart], "The workers, in the order in which they are restarted."]


def pass_part(each: Pass) -> PassPart:
    """Return the pass as the plan has it."""
    steps = [StepPart(worker=step.worker, actions=list(step.actions), gates=list(step.gates)) for step in each.steps]
    return PassPart(mode=each.mode, barrier=each.barrier, steps=steps)


class PlanSummary(Printed):
    """The number of passes, restarts and gates of a plan."""

    target_mode: Annotated[str, "The mode that every worker is to have."]
    passes: Annotated[int, "How many rolling restarts lead there."]
    steps: Annotated[int, "How many restarts of a worker these are."]
    gates: Annotated[Counts, "How many gates pass, fail, and are unknown."]


class PlanData(Printed, kw_only=True):
    """The passes, the gates before them, and what is lost."""

    passes: Annotated[list[PassPart], "The rolling restarts, in their order."]
    gates: Annotated[list[GatePart], "What must be true before the first one."]
    losses: Losses
    hard: Annotated[HardPart, "What an older Connect needs besides; with `--hard`."] | UnsetType = UNSET
    place: Annotated[str, "What `upgrade apply` would change, and where."] | UnsetType = UNSET
    manifests: (
        Annotated[list[ManifestPart], "What must be changed where the workloads are deployed from."] | UnsetType
    ) = UNSET
    plan: Digest
    plan_file: Annotated[str | None, "The file that the plan was written to."]


class StatusRow(UpgradeWorkerRow):
    """A worker, its mode, and where it stands in an upgrade."""

    roll: Annotated[str | None, "Where the worker stands in an upgrade that is not finished."]


def status_row(worker: UpgradeWorker, *, roll: str | None) -> StatusRow:
    """Return the worker as a row, with its place in the upgrade."""
    return StatusRow(**asdict(worker_row(worker)), roll=roll)


class DonePart(Printed):
    """A step that is done."""

    mode: Annotated[TargetMode, "The mode that the worker was brought to."]
    worker: Worker


class UnderWayPart(Printed):
    """A step that has begun and has not ended."""

    mode: Annotated[TargetMode, "The mode that the workers are brought to."]
    workers: Annotated[list[str], "The workers of the step."]


class RollPart(Printed):
    """The newest upgrade in the journal."""

    target_mode: TargetOfRoll
    driver: Annotated[str, "Who changes and restarts the workers."]
    plan: Digest
    finished: Annotated[bool, "Whether the upgrade is finished."]
    began: Annotated[Time, "When the upgrade began."]
    began_ms: Annotated[int, "When the upgrade began, in milliseconds since 1970."]
    ended: Annotated[Time | None, "When the upgrade ended; null while it is not finished."]
    ended_ms: Annotated[int | None, "When the upgrade ended, in milliseconds since 1970."]
    done: Annotated[list[DonePart], "The steps that are done."]
    under_way: Annotated[UnderWayPart | None, "The step that has begun and has not ended."]
    stopped: Annotated[str | None, "Why its last run ended, if it could say so."]


class StatusData(Printed):
    """The state of the newest upgrade."""

    roll: Annotated[RollPart | None, "The newest upgrade in the journal; null where there is none."]


class VerifySummary(Printed):
    """The number of workers, gates and findings."""

    target_mode: TargetOfRoll
    workers: Annotated[int, "How many workers the group has."]
    proven: Annotated[int, "How many are proven to be in the mode."]
    gates: Annotated[int, "How many gates were checked."]
    findings: Annotated[int, "How many findings there are."]


def _plan_lines(report: Report) -> Iterable[str]:
    """Render the passes with their steps, the gates that do not pass, and the losses."""
    data = report.data_of(PlanData)
    yield from _pass_lines(data.passes)
    if data.place:
        yield from ("", f"changes: {printable(data.place)}")
    yield from manifest_lines(data.manifests or ())
    yield from ("", "gates")
    for gate in data.gates:
        yield f"  {gate.status:<7}  {gate.id}: {printable(str(gate.evidence))}"
        if gate.status != "pass":
            yield f"           fix: {printable(gate.fix)}"
        if gate.stops_apply:
            yield f"           apply stops here, unless it is given {Waiver.ACCEPT_GATE} {gate.id}"
    yield from (f"lost: {loss}" for loss in data.losses)
    if data.hard:
        yield from hard_lines(data.hard)
    yield from ("", *summary_lines(report))


def _pass_lines(passes: Sequence[PassPart]) -> Iterable[str]:
    for number, each in enumerate(passes, start=1):
        yield from ("", f"pass {number}: {each.mode} (first: {each.barrier})")
        for step in each.steps:
            yield f"  {printable(step.worker)}: {'; '.join(step.actions)}"
    if not passes:
        yield from ("", "no worker has to change")


def _status_lines(report: Report) -> Iterable[str]:
    roll = report.data_of(StatusData).roll
    if roll is not None:
        ended = f"finished at {roll.ended}" if roll.finished else "not finished"
        yield f"newest upgrade: to {roll.target_mode}, begun at {roll.began}, {ended}"
        if roll.stopped:
            yield f"it stopped: {printable(roll.stopped)}"
    summary = report.summary_of(WorkersSummary)
    yield modes_line(summary.workers, summary.modes)


UPGRADE_PLAN = Kind(
    "upgrade-plan",
    "The passes to another mode, and the gates before them.",
    row=UpgradeWorkerRow,
    summary=PlanSummary,
    data=PlanData,
    text=Text(
        columns=("worker", "leader", "version", "health", "mode"),
        lines=_plan_lines,
        empty="The group has no workers.",
    ),
)
UPGRADE_STATUS = Kind(
    "upgrade-status",
    "The workers' modes, and where the newest upgrade stands.",
    row=StatusRow,
    summary=WorkersSummary,
    data=StatusData,
    text=Text(
        columns=("worker", "leader", "version", "health", "mode", "roll", "evidence"),
        lines=_status_lines,
        empty="The group has no worker.",
    ),
)
UPGRADE_VERIFY = Kind(
    "upgrade-verify",
    "What keeps the workers from being provably in a mode.",
    row=FindingRow,
    summary=VerifySummary,
    text=findings_text("Every worker is proven, and every gate passes."),
)
