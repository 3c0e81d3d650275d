"""The rows of `offsets switch`: the steps of a move, and its progress."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from eosctl.foreign import printable
from eosctl.offsets.steps import Outcome
from eosctl.offsets.write_rows import CopiedRow, TopicPart, new_topic_lines
from eosctl.output.cells import format_cell, summary_lines
from eosctl.output.rows import Printed, Text, plan_and_result
from eosctl.report import Report


class StepRow(Printed):
    """A step of a move."""

    step: Annotated[str, "Its name."]
    action: Annotated[str, "Its action."]
    before: Annotated[str | None, "The state before it."]
    after: Annotated[str | None, "The state after it."]
    outcome: Annotated[Outcome, "Its outcome."]
    detail: Annotated[str | None, "Its result, or the reason of its failure."]


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
    origin: Annotated[str, "The store of its present offsets: `global`, or its own topic."]
    to: Annotated[str, "The store that its offsets move to."]
    state: Annotated[str, "The state of the connector in the end."]
    config: Annotated[ConfigChange, "The change of its config."]
    kept_elsewhere: Annotated[str | None, "The change to make by hand if its config is kept elsewhere too."]
    writes: Annotated[list[CopiedRow], "The offsets that are copied."]
    creates: Annotated[list[TopicPart], "Topics to create."]
    backup: Annotated[str | None, "The file with the offsets before the first merge."]
    backups: Annotated[
        list[str],
        "One file for each merge, in their order: a task may commit while the first one writes. To take all of them "
        "back, restore the last one first.",
    ]
    journal: Annotated[str, "The journal of the steps."]
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


_STEPS, _STATES = ("step", "outcome", "action"), ("before", "after")
_TEXT = Text(columns=(*_STEPS, *_STATES, "detail?"), lines=_lines, empty="Nothing to do.")
_RESULT_TEXT = Text(columns=(*_STEPS, "detail"), wide=_STATES, lines=_lines, empty="Nothing to do.")
OFFSETS_SWITCH_PLAN, OFFSETS_SWITCH_RESULT = plan_and_result(
    "offsets-switch",
    "The steps of a move between offsets topics.",
    "The progress of a move between offsets topics.",
    row=StepRow,
    summary=SwitchSummary,
    data=SwitchData,
    text=_TEXT,
    result={"text": _RESULT_TEXT},
)
