"""The rows of `connectors move`: the steps of each connector, and what was moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from eosctl.audit.rows import Verdict
from eosctl.foreign import printable
from eosctl.move.journal import Direction, MoveStep
from eosctl.offsets.write_rows import ActionCounts, TopicPart, new_topic_lines
from eosctl.output.cells import format_cell, summary_lines
from eosctl.output.rows import Printed, Text, plan_and_result
from eosctl.report import Report

MoveOutcome = Literal["planned", "done", "done_before", "failed", "not_reached", "left_out", "refused"]


class MoveRow(Printed):
    """A step of a connector's move."""

    connector: Annotated[str, "The connector."]
    step: Annotated[MoveStep | None, "The name of the step; null for a connector that has none."]
    side: Annotated[Literal["here", "there"] | None, "The side that the step changes or asks; null for both."]
    outcome: Annotated[MoveOutcome, "The outcome of the step; `left_out` or `refused` is a connector that stays."]
    action: Annotated[str | None, "What is done."]
    before: Annotated[str | None, "The state before it."]
    after: Annotated[str | None, "The state after it."]
    detail: Annotated[str | None, "The result of the step, or the reason of its failure."]


class MoveSummary(Printed):
    """The numbers of connectors and of steps."""

    connectors: Annotated[int, "Connectors in all."]
    steps: Annotated[int, "Steps in all."]
    to_do: Annotated[int, "Steps that are not done."]
    left_out: Annotated[int, "Connectors that are left out, or refused."]


class SidePart(Printed):
    """One side of a move."""

    profile: Annotated[str | None, "The profile that names it; null for the command's own target."]
    kafka_cluster_id: Annotated[str, "Its Kafka cluster."]
    group_id: Annotated[str, "Its Connect group."]
    connector: Annotated[str, "The connector's name there."]
    state: Annotated[str | None, "The state that a worker shows when the move is planned; null for no such connector."]
    version: Annotated[str, "The version of the worker that is asked."]
    plugin_version: Annotated[str | None, "The version of the connector's plugin; null where the worker lists none."]
    offsets_topic: Annotated[str | None, "The topic of the connector's offsets; null where the move does not use it."]


class MovedSetting(Printed):
    """A change of the config."""

    name: Annotated[str, "The setting."]
    before: Annotated[str | None, "Its value here; null where it has none, *** where it may be a secret."]
    after: Annotated[str, "Its value there; *** where it may be a secret."]


class SideAudit(Printed):
    """The audit of one side: here up to the stop, there since the start."""

    side: Annotated[Literal["here", "there"], "The side."]
    verdict: Annotated[Verdict, "What the logs prove."]
    why: Annotated[str, "Why."]
    transactions: Annotated[int, "Transactions of the connector that were committed."]
    records: Annotated[int, "Records in them."]


class MovePart(Printed):
    """The move of one connector."""

    connector: Annotated[str, "The connector's name here."]
    direction: Annotated[Direction, "`there`, `back`, or `delete` for the deletion of what is left here."]
    here: Annotated[SidePart, "The side of the command's own target."]
    there: Annotated[SidePart, "The side of the profile."]
    state: Annotated[str, "The state of the connector in the end, on the side that it moves to."]
    settings: Annotated[list[MovedSetting], "The changes of its config."]
    resolved_there: Annotated[
        list[str], "Settings whose values refer to config providers: they are carried as they are, and resolved there."
    ]
    topics: Annotated[list[str], "Topics that it writes to, as far as is known."]
    offsets: Annotated[ActionCounts | None, "Its offsets by action; null where none has to be copied."]
    source_partitions: Annotated[int | None, "Source partitions with an offset; null where it was not looked at."]
    creates: Annotated[list[TopicPart], "Topics to create."]
    backups: Annotated[list[str], "Files with the offsets that were replaced, in the order of the writes."]
    verdict: Annotated[Verdict | None, "What the audits of both sides prove; null where nothing was audited."]
    audits: Annotated[list[SideAudit], "The audit of each side."]
    journal: Annotated[str, "The journal of the steps."]
    undo: Annotated[str | None, "The command that goes back; null where there is no way back."]
    kept_elsewhere: Annotated[str | None, "What to do by hand if its config is kept elsewhere, too."]


class MoveData(Printed):
    """The connectors, and the way back."""

    moves: Annotated[list[MovePart], "What is moved of each connector."]
    undo: Annotated[str | None, "The command that goes back, of the only connector; null for several, or without one."]


def _lines(report: Report) -> Iterator[str]:
    """Yield, for each connector, where it goes, its offsets, and the verdict; then the summary.

    What is to be done by hand is said once of several.
    """
    moves = report.data_of(MoveData).moves
    for move in moves:
        yield from _lines_of(move, notes=len(moves) == 1)
    if len(moves) > 1 and any(move.kept_elsewhere for move in moves):
        yield (
            "note: if their configs are kept elsewhere too (Git, Terraform, Kubernetes resources), move those, too: "
            "the next apply would start the connectors on this side again"
        )
    yield from summary_lines(report)


def _lines_of(move: MovePart, *, notes: bool) -> Iterator[str]:
    sides = " -> " if move.direction is Direction.THERE else " <- " if move.direction is Direction.BACK else " left; "
    here, there = (
        f"{format_cell(side.connector)} in group {format_cell(side.group_id)}" for side in (move.here, move.there)
    )
    yield f"{here}{sides}{there} (profile {format_cell(move.there.profile)})"
    for setting in move.settings:
        yield f"  set {format_cell(setting.name)}: {format_cell(setting.before)} -> {format_cell(setting.after)}"
    if move.resolved_there:
        names = ", ".join(map(format_cell, move.resolved_there))
        yield f"  resolved by the workers there: {names}"
    if move.offsets is not None:
        counts = move.offsets
        yield f"  offsets: {counts.write:,} to write, {counts.delete:,} to delete, {counts.keep:,} to keep"
    yield from (f"  {line}" for line in new_topic_lines(move.creates))
    for audit in move.audits:
        yield f"  audit {audit.side}: {audit.verdict}. {printable(audit.why)}"
    if notes and move.kept_elsewhere:
        yield f"  note: {format_cell(move.kept_elsewhere)}"
    yield f"  journal: {format_cell(move.journal)}"


_STEPS, _STATES = ("connector", "step", "side", "outcome", "action"), ("before", "after")
_TEXT = Text(columns=(*_STEPS, *_STATES, "detail?"), lines=_lines, empty="Nothing to do.")
_RESULT_TEXT = Text(columns=(*_STEPS, "detail"), wide=_STATES, lines=_lines, empty="Nothing to do.")
CONNECTORS_MOVE_PLAN, CONNECTORS_MOVE_RESULT = plan_and_result(
    "connectors-move",
    "The steps of moves between Connect groups.",
    "The progress of moves between Connect groups.",
    row=MoveRow,
    summary=MoveSummary,
    data=MoveData,
    text=_TEXT,
    result={"text": _RESULT_TEXT},
)
