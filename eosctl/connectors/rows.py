"""Rows of `connectors stop`, `pause`, `resume`, `restart` and `trace`: one per part of a connector."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal

from eosctl.foreign import printable
from eosctl.output.cells import TOTAL, format_cell, summary_lines
from eosctl.output.rows import Kind, Printed, Text, plan_and_result
from eosctl.report import Report


class Verb(StrEnum):
    """A change of a connector."""

    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    RESTART = "restart"


ChangeOutcome = Literal["would_change", "changed", "failed", "would_be_asked", "asked"]
Connector = Annotated[str, "The connector."]
Part = Annotated[str, "The part of the connector: `connector`, or `task 0` and so on."]
PartWorker = Annotated[str | None, "The worker that the part is on; null where it is on none."]
State = Annotated[str, "The state of the connector, as the worker's REST interface shows it."]


class ChangeRow(Printed):
    """A part of a connector that changes, or that has changed."""

    connector: Connector
    part: Part
    worker: PartWorker
    before: Annotated[str | None, "The state of the part before; null where there was no such part."]
    after: Annotated[str | None, "The state of the part after; null where there is no such part any more."]
    outcome: Annotated[
        ChangeOutcome,
        "Whether the part will change, has changed, or is FAILED now; `asked`: it was asked for the state that it had, "
        "and has.",
    ]


class ChangeSummary(Printed):
    """The requested change, and the connector's state."""

    connector: Connector
    action: Annotated[Verb, "What is asked of the connector."]
    state: State
    tasks: Annotated[int, "How many tasks the connector has.", TOTAL]
    failed: Annotated[int, "How many parts of the connector are FAILED."]


class ChangeData(Printed):
    """The way back."""

    undo: Annotated[str | None, "The command that brings back the state that was before; null where there is none."]


class TraceRow(Printed):
    """A FAILED part of a connector, and its failure."""

    connector: Connector
    part: Part
    worker: PartWorker
    code: Annotated[str, "The code of the failure; `eosctl explain CODE` says what it means."]
    message: Annotated[str, "What the part died of."]
    causes: Annotated[list[str], "The exceptions of the trace, the outermost first."]
    fix: Annotated[str, "What to do about it."]
    trace: Annotated[str | None, "The stack trace, as the worker has it."]


class TraceSummary(Printed):
    """The connector's state."""

    connector: Connector
    state: State
    tasks: Annotated[int, "How many tasks the connector has.", TOTAL]
    failed: Annotated[int, "How many parts of the connector are FAILED."]


def _trace_lines(report: Report) -> Iterable[str]:
    """Yield each FAILED part with its chain of causes, the outermost first, and its fix."""
    for row in report.rows_of(TraceRow):
        yield f"{printable(row.message)} ({row.code}, {row.part} on {format_cell(row.worker)})"
        for number, cause in enumerate(row.causes):
            yield f"  {'caused by: ' if number else ''}{printable(cause)}"
        yield f"  fix: {printable(row.fix)}"
    yield from summary_lines(report)


_CHANGE = Text(empty="There is nothing to do.")
CONNECTORS_CHANGE_PLAN, CONNECTORS_CHANGE_RESULT = plan_and_result(
    "connectors-change",
    "What would stop, pause, resume or restart.",
    "What was stopped, paused, resumed or restarted.",
    row=ChangeRow,
    summary=ChangeSummary,
    data=ChangeData,
    text=_CHANGE,
)
CONNECTORS_TRACE = Kind(
    "connectors-trace",
    "What each FAILED part of a connector died of.",
    row=TraceRow,
    summary=TraceSummary,
    text=Text(columns=(), lines=_trace_lines, empty="Nothing is FAILED.", prose=False),
)
