"""The rows of `upgrade plan`, `status` and `verify`, and those parts that `upgrade apply` has as well.

Those of `upgrade plan --hard` are what to copy, what to repair, then both variants with their risks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from eosctl.core.findings import ERROR
from eosctl.core.workers.modes import TARGETS, Mode, Pass, UpgradeWorker
from eosctl.foreign import printable
from eosctl.group.rows import WorkersSummary, modes_line
from eosctl.output.cells import TOTAL, summary_lines
from eosctl.output.rows import BytesText, Counts, FindingRow, Kind, Printed, Schema, Text, Time
from eosctl.output.text import findings_text
from eosctl.plugins.rows import PlannedPlugins
from eosctl.report import Report
from eosctl.upgrade.gate_rows import GatePart, gate_lines


class OffsetsCopyPart(Printed):
    """The offsets of a connector that are not in the global topic."""

    connector: Annotated[str, "The connector."]
    offsets_topic: Annotated[str, "The topic that has its offsets."]
    cluster: Annotated[str | None, "The brokers of that topic, where these are not the group's."]
    commands: Annotated[list[str], "What brings them into the global topic."]
    note: Annotated[str, "What to know before."]


class RepairRecord(Printed):
    """A committed record that is to be written again: a line for `offsets import`."""

    topic: Annotated[str, "The topic of the record."]
    partition: Annotated[int, "The partition of the record."]
    key: Annotated[BytesText, "The key of the record."]
    value: Annotated[BytesText | None, "The committed value; null deletes the key."]


class AbortedOffsetsPart(Printed):
    """Offsets whose newest record was aborted, which older workers read."""

    records: Annotated[list[RepairRecord], "The committed records to write again."]
    commands: Annotated[list[str], "What writes them."]


class AbortedConfigPart(Printed):
    """A connector whose newest config records were aborted, which older workers read."""

    connector: Annotated[str, "The connector."]
    exists: Annotated[bool, "Whether the connector exists."]
    steps: Annotated[list[str], "What makes its committed records the newest ones again."]


class Variant(Printed):
    """A way to the older version."""

    name: Annotated[Literal["two_step", "one_step"], "With a rolling restart of this version before, or without."]
    recommended: Annotated[bool, "Whether this is the better way."]
    steps: Annotated[list[str], "What to do, in this order."]
    risks: Annotated[list[str], "What can go wrong."]


class HardPart(Printed):
    """The additional steps that an older Connect needs, besides another mode."""

    offsets: Annotated[list[OffsetsCopyPart], "The offsets to copy into the global topic."]
    aborted_offsets: Annotated[AbortedOffsetsPart, "The offsets to repair."]
    aborted_configs: Annotated[list[AbortedConfigPart], "The connectors to repair."]
    variants: Annotated[list[Variant], "The ways to the older version."]
    unknown: Annotated[list[str], "What could not be looked at, and why."]


def hard_lines(hard: HardPart) -> Iterable[str]:
    """Render the lines of `data.hard`."""
    yield from ("", "to an older Connect")
    for row in hard.offsets:
        where = f" on {row.cluster}" if row.cluster else ""
        yield f"  copy the offsets of {printable(row.connector)} from {printable(row.offsets_topic + where)}"
        yield from _commands(row.commands)
        yield f"    {printable(row.note)}"
    if not hard.offsets:
        yield "  no connector has offsets outside the global topic"
    yield from _repairs(hard)
    for reason in hard.unknown:
        yield f"  not known: {printable(reason)}"
    for variant in hard.variants:
        best = " (recommended)" if variant.recommended else ""
        yield f"  {variant.name.replace('_', ' ')}{best}"
        yield from (f"    {number}. {step}" for number, step in enumerate(variant.steps, start=1))
        yield from (f"    risk: {risk}" for risk in variant.risks)


def _repairs(hard: HardPart) -> Iterable[str]:
    records = hard.aborted_offsets.records
    if records:
        yield f"  aborted offsets: {len(records)} (write the committed ones again)"
        yield from _commands(hard.aborted_offsets.commands)
    for each in hard.aborted_configs:
        yield f"  repair the config records of {printable(each.connector)}"
        yield from (f"    {printable(step)}" for step in each.steps)
    if not records and not hard.aborted_configs:
        yield "  no aborted record was seen that would come alive"


def _commands(commands: Iterable[str]) -> Iterable[str]:
    return (f"    {printable(command)}" for command in commands)


TargetMode = Annotated[Mode, Schema({"enum": sorted(TARGETS)})]
"""A mode that a worker can be brought to."""
Worker = Annotated[str, "The worker: its URL, or its file where it is not in the group."]
Leader = Annotated[bool, "Whether the worker leads the group."]
TargetOfRoll = Annotated[TargetMode, "The mode that every worker is to have."]
Digest = Annotated[str, "The sha256 of the plan, in hex."]
Losses = Annotated[list[str], "What going back costs, in sentences."]


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
    plugins: Annotated[PlannedPlugins, "The plugins that were looked at; with `--plugins`."] | UnsetType = UNSET
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
    workers: Annotated[int, "How many workers the group has.", TOTAL]
    proven: Annotated[int, "How many are proven to be in the mode.", TOTAL]
    gates: Annotated[int, "How many gates were checked.", TOTAL]
    passed: Annotated[int, "How many gates pass.", TOTAL]
    findings: Annotated[int, "How many findings there are."]


def _plan_lines(report: Report) -> Iterable[str]:
    """Render the passes with their steps, the gates that do not pass, and the losses."""
    data = report.data_of(PlanData)
    yield from _pass_lines(data.passes)
    if data.place:
        yield from ("", f"changes: {printable(data.place)}")
    yield from manifest_lines(data.manifests or ())
    yield from gate_lines(data.gates)
    yield from (f"lost: {loss}" for loss in data.losses)
    for finding in data.plugins.findings if data.plugins else ():
        if finding.severity != ERROR:  # the gate has the others
            yield from ("", f"plugin {finding.severity}: {printable(finding.message)}", f"  fix: {finding.fix}")
    if data.hard:
        yield from hard_lines(data.hard)
    yield from ("", *summary_lines(report, wide_only=("gates",)))


def _pass_lines(passes: Sequence[PassPart]) -> Iterable[str]:
    for number, each in enumerate(passes, start=1):
        yield from ("", f"pass {number}: {each.mode} (first: {each.barrier})")
        for actions, steps in itertools.groupby(each.steps, key=lambda step: step.actions):
            yield f"  {', '.join(printable(step.worker) for step in steps)}: {'; '.join(actions)}"
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
        columns=("worker", "leader", "version", "health", "mode", "roll?", "evidence"),
        lines=_status_lines,
        empty="The group has no worker.",
    ),
)
UPGRADE_VERIFY = Kind(
    "upgrade-verify",
    "What keeps the workers from being provably in a mode.",
    row=FindingRow,
    summary=VerifySummary,
    text=findings_text("No finding is against the target mode."),
)
