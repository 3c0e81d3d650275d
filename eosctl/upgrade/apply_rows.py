"""The rows of `upgrade apply`, for its plan and its result: one per worker and pass; the patches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from eosctl.foreign import printable
from eosctl.output.cells import summary_lines
from eosctl.output.rows import Header, Kind, Printed, Text, plan_and_result
from eosctl.report import Json, Report
from eosctl.upgrade.drivers.manifests.fields import PatchType
from eosctl.upgrade.gate_rows import OpenGatePart
from eosctl.upgrade.rows import (
    Digest,
    Leader,
    Losses,
    ManifestPart,
    TargetMode,
    TargetOfRoll,
    Worker,
    manifest_lines,
)

ApplyOutcome = Literal["planned", "done_before", "done", "failed", "not_reached"]


class ApplyRow(Printed):
    """A worker in a pass."""

    mode: Annotated[TargetMode, "The mode that the worker is brought to.", Header("PASS")]
    worker: Worker
    leader: Leader
    actions: Annotated[list[str], "What is done with the worker, in words."]
    outcome: Annotated[ApplyOutcome, "What came of the step; `done_before` by a run before this one."]
    detail: Annotated[str | None, "How it went."]
    backup: Annotated[str | None, "The copies that were made of what was changed."]

    @Header("DETAIL")
    def told(self) -> str | None:
        """Return the planned actions, or what came of them."""
        return self.detail or "; ".join(self.actions) or None


class ApplySummary(Printed):
    """The number of restarts in all, and of those to do."""

    target_mode: TargetOfRoll
    driver: Annotated[str, "Who changes and restarts the workers."]
    steps: Annotated[int, "How many restarts of a worker there are."]
    to_do: Annotated[int, "How many of them are not done."]


class ApplyData(Printed):
    """The plan, the gates that do not pass, and the way back."""

    plan: Digest
    place: Annotated[str | None, "What is changed, and where, if the driver says so."]
    gates: Annotated[list[OpenGatePart], "The gates that do not pass."]
    losses: Losses
    manifests: Annotated[list[ManifestPart], "What must be changed where the workloads are deployed from."]
    journal: Annotated[str, "The file that has what was done."]
    undo: Annotated[str | None, "The command that goes back."]


class PatchRow(Printed):
    """The patch of a workload in one pass."""

    mode: Annotated[TargetMode, "The mode that the pass brings the workers to."]
    object: Annotated[str, "The workload."]
    type: Annotated[PatchType, "How `kubectl patch` reads the patch."]
    change: Annotated[str | None, "What is changed, where the patch has more than that."]
    patch: Annotated[Json, "The patch; null where it has secrets."]
    command: Annotated[str | None, "The command that applies the patch; null where it has secrets."]


class PatchSummary(Printed):
    """The number of passes."""

    target_mode: TargetOfRoll
    passes: Annotated[int, "How many rolling restarts there are."]


class PatchData(Printed):
    """The manual work besides the patches."""

    manifests: Annotated[list[ManifestPart], "What must be changed where the workloads are deployed from."]
    watch: Annotated[str, "The command that watches and checks while the changes are made."]


def _apply_lines(report: Report) -> Iterable[str]:
    data = report.data_of(ApplyData)
    if data.place:
        yield f"changes: {printable(data.place)}"
    for gate in data.gates:
        status = f"{gate.status}, accepted" if gate.accepted else gate.status
        yield f"gate {status}: {gate.id}: {printable(str(gate.evidence))}"
    yield from (f"lost: {loss}" for loss in data.losses)
    yield from manifest_lines(data.manifests)
    yield from (f"backup: {printable(row.backup)}" for row in report.rows_of(ApplyRow) if row.backup)
    yield f"journal: {printable(data.journal)}"
    yield from summary_lines(report)


def _patch_lines(report: Report) -> Iterable[str]:
    """Render a script of the first pass; later passes must wait for a check, so they stand behind a #."""
    data = report.data_of(PatchData)
    yield f"# begin this first, in another terminal: {printable(data.watch)}"
    told = first = None
    for row in report.rows_of(PatchRow):
        first = first or row.mode
        if row.mode != told:
            told = row.mode
            yield f"# pass {told}" + (
                "" if told == first else f": when eosctl waits for {told}, run these without the leading #"
            )
        if row.command is None:
            yield f"# no command, as it has secrets: {printable(str(row.change))}"
        else:
            yield ("" if told == first else "# ") + printable(row.command)
    yield from (f"# {printable(each.words)}" for each in data.manifests)


_APPLY = Text(
    columns=("mode", "worker", "leader", "outcome", "told"), lines=_apply_lines, empty="No worker has to change."
)
UPGRADE_APPLY_PLAN, UPGRADE_APPLY_RESULT = plan_and_result(
    "upgrade-apply",
    "What an upgrade will do, worker by worker.",
    "What an upgrade did, worker by worker.",
    row=ApplyRow,
    summary=ApplySummary,
    data=ApplyData,
    text=_APPLY,
)
UPGRADE_PATCHES = Kind(
    "upgrade-patches",
    "What changes the workloads, pass by pass, for whoever makes the changes.",
    row=PatchRow,
    summary=PatchSummary,
    data=PatchData,
    text=Text(columns=(), lines=_patch_lines, prose=False),
)
