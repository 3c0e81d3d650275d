"""The rows of `rescue`: the steps that heal a connector, and their outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import UNSET, UnsetType

from eosctl.fence.rows import FencePart
from eosctl.output.cells import format_cell, summary_lines
from eosctl.output.rows import Printed, Text, plan_and_result
from eosctl.report import Report


class RescueRow(Printed):
    """A step of the rescue."""

    step: Annotated[int, "Its number, the same in plan and result."]
    action: Annotated[str, "What it does: `wait`, `fence`, `write`, `restart` or `watch`."]
    detail: Annotated[str, "What it will do it to, or what came of it."]
    outcome: Annotated[str, "Whether it is `planned`, `done`, `failed`, or `done_before` by a run that was cut off."]


class RescueSummary(Printed):
    """The connector, and its diagnosis."""

    connector: Annotated[str, "The connector."]
    verdict: Annotated[str, "What can be done: `fence`, `restart`, `watch`, or nothing where it is `healthy`."]
    tasks: Annotated[int, "How many tasks it has."]


class RescueData(Printed):
    """The facts behind the verdict, and the settings that prevent a recurrence."""

    seen: Annotated[str, "What was seen of its tasks and its task-count record."]
    cure: Annotated[dict[str, str], "Settings that make Connect's own fencing fast enough."]
    journal: Annotated[str, "The file that the steps are written down in."]


class RescueResultData(RescueData, kw_only=True):
    """The same, and what the steps left behind."""

    fence: Annotated[FencePart | None, "The ids that were fenced."] | UnsetType = UNSET
    backup: Annotated[str | None, "The file that holds the record of before."] | UnsetType = UNSET


def _lines(report: Report) -> Iterator[str]:
    """Yield the observation, the summary, and the settings that prevent a recurrence."""
    data = report.data_of(RescueData)
    yield f"seen: {format_cell(data.seen)}"
    yield from summary_lines(report)
    if data.cure:
        in_config = all(name.startswith("admin.override.") for name in data.cure)
        where = "the connector's config" if in_config else "the workers' files, whose policy refuses overrides"
        yield f"so that it does not come back, put into {where}:"
        yield from (f"  {name}={value}" for name, value in data.cure.items())


_TEXT = Text(
    columns=("step", "action", "detail", "outcome"), lines=_lines, empty="There is nothing to rescue: all tasks run."
)
RESCUE_PLAN, RESCUE_RESULT = plan_and_result(
    "rescue",
    "What would heal the connector.",
    "What was done to heal the connector.",
    row=RescueRow,
    summary=RescueSummary,
    data=RescueData,
    text=_TEXT,
    result={"data": RescueResultData},
)
