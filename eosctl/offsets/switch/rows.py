"""The rows of `offsets switch`: the steps of a move, and its progress."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from eosctl.foreign import printable
from eosctl.offsets.write_rows import CopiedRow, TopicPart, new_topic_lines
from eosctl.output.cells import format_cell, summary_lines
from eosctl.output.rows import Printed, Text, plan_and_result
from eosctl.report import Report

Outcome = Literal["planned", "done", "done_before", "failed", "not_reached"]


class StepRow(Printed):
    """A step of a move."""

    step: Annotated[str, "Its name."]
    action: Annotated[str, "What it does."]
    before: Annotated[str | None, "What is there before it."]
    after: Annotated[str | None, "What is there after it."]
    outcome: Annotated[Outcome, "What became of it."]
    detail: Annotated[str | None, "What it found, or why it failed."]


class SwitchSummary(Printed):
    """The numbers of steps."""

    steps: Annotated[int, "Steps in all."]
    to_do: Annotated[int, "Steps that are not done."]


class ConfigChange(Printed):
    """The change of the connector's config."""

    property: Annotated[str, "The property that is changed."]
    before: Annotated[str | None, "Its value before; null where the config does not have it."]
    after: Annotated[str | None, "Its value after; null where it is removed."]


class SwitchData(Printed, rename={"origin": "from"}):
    """The offsets that are moved, and what the move needs."""

    connector: Annotated[str, "The connector."]
    origin: Annotated[str, "The store that it has its offsets in: `global`, or its own topic."]
    to: Annotated[str, "The store that it is to have them in."]
    state: Annotated[str, "The state that the connector has in the end."]
    config: Annotated[ConfigChange, "How its config changes."]
    kept_elsewhere: Annotated[str | None, "What has to be changed by hand where its config is kept elsewhere too."]
    writes: Annotated[list[CopiedRow], "The offsets that are copied."]
    creates: Annotated[list[TopicPart], "Topics that are made."]
    backup: Annotated[str | None, "The file that holds what was there before the first merge."]
    backups: Annotated[
        list[str],
        "One file for each merge, in their order: a task may commit while the first one writes. To take all of them "
        "back, restore the last one first.",
    ]
    journal: Annotated[str, "The file that the steps are written down in."]
    undo: Annotated[str | None, "The command that goes back."]


def _lines(report: Report) -> Iterator[str]:
    """Yield the topics that the merge creates, the summary, then the journal of the steps."""
    data = report.data_of(SwitchData)
    if not report.rows:
        store = "the global offsets topic" if data.to == "global" else f"topic {data.to}"
        yield printable(f"Connector {data.connector} keeps its offsets in {store} already.")
        return
    yield from new_topic_lines(data.creates)
    yield from summary_lines(report)
    yield f"journal: {format_cell(data.journal)}"
    if data.kept_elsewhere:
        yield f"note: {format_cell(data.kept_elsewhere)}"


_TEXT = Text(columns=("step", "outcome", "action", "before", "after", "detail"), lines=_lines, empty="Nothing to do.")
OFFSETS_SWITCH_PLAN, OFFSETS_SWITCH_RESULT = plan_and_result(
    "offsets-switch",
    "The steps of a move between offsets topics.",
    "How far a move between offsets topics has come.",
    row=StepRow,
    summary=SwitchSummary,
    data=SwitchData,
    text=_TEXT,
)
