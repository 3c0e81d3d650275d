"""The rows of `connectors create` and `apply`: the steps, and what the connector is to be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from eosctl.core.offsets.records import json_text
from eosctl.foreign import printable
from eosctl.offsets.configs.rows import PartitionRow, PropertyPart, property_lines
from eosctl.offsets.rows import MOST_ROWS
from eosctl.offsets.switch.rows import StepRow
from eosctl.offsets.write_rows import CopiedRow, TopicPart, new_topic_lines
from eosctl.output.cells import TOTAL, format_cell, summary_lines
from eosctl.output.rows import Printed, Text, plan_and_result
from eosctl.report import Report

_MOST_WRITES = 5
Start = Literal["beginning", "given", "left", "unknown"]


class PlacedSummary(Printed):
    """The numbers of steps and of offsets."""

    connector: Annotated[str, "The connector."]
    steps: Annotated[int, "Steps in all."]
    to_do: Annotated[int, "Steps that are not done."]
    offsets: Annotated[int, "Offsets that it has before it starts.", TOTAL]


class PlacedData(Printed):
    """A connector that is created, and what it needs."""

    connector: Annotated[str, "The connector."]
    state: Annotated[str, "The state of the connector in the end."]
    config: Annotated[dict[str, object], "Its config, without secrets."]
    starts: Annotated[
        Start, "Where it starts: at the beginning, from given offsets, from those of its name, or unknown."
    ]
    origin: Annotated[str | None, "Where the given offsets come from; null for none."]
    store: Annotated[str, "The store of its offsets: `global`, or its own topic."]
    writes: Annotated[list[CopiedRow], "The first offsets that are written."]
    creates: Annotated[list[TopicPart], "Topics to create."]
    backup: Annotated[str | None, "The file with the offsets that were replaced."]
    journal: Annotated[str, "The journal of the steps."]
    overrides: Annotated[list[str], "The checks that were waived, by their flags."]


def _lines(report: Report) -> Iterator[str]:
    """Yield where the connector starts, the topics to create, the summary, then the journal."""
    data = report.data_of(PlacedData)
    store = "the global offsets topic" if data.store == "global" else f"topic {data.store}"
    if data.starts == "given":
        yield printable(f"offsets: those of {data.origin}, in {store}")
    elif data.starts == "left":
        yield printable(f"offsets: those of its name that are in {store} already")
    elif data.starts == "unknown":
        yield "offsets: on Kafka brokers that its config names, and not looked at"
    else:
        yield "offsets: none; it starts at the beginning, or where its own settings say"
    for row in data.writes[:_MOST_WRITES]:
        after = "deleted" if row.after is None else json_text(row.after)
        now = "" if row.before is None else f" (now {json_text(row.before)})"
        yield printable(f"  {json_text(row.source_partition)}: {after}{now}")
    more = len(data.writes) - _MOST_WRITES
    if more > 0:
        is_all = len(data.writes) < MOST_ROWS
        yield f"  and {more} more (-o json)" if is_all else f"  and more: -o json shows the first {MOST_ROWS}"
    yield from new_topic_lines(data.creates)
    yield from summary_lines(report)
    yield f"journal: {format_cell(data.journal)}"


_TEXT = Text(columns=("step", "outcome", "action", "detail?"), lines=_lines)
CONNECTORS_CREATE_PLAN, CONNECTORS_CREATE_RESULT = plan_and_result(
    "connectors-create",
    "The steps that create a connector.",
    "The progress of creating a connector.",
    row=StepRow,
    summary=PlacedSummary,
    data=PlacedData,
    text=_TEXT,
)


class AppliedSummary(Printed):
    """The numbers of steps and of settings that change."""

    connector: Annotated[str, "The connector."]
    state: Annotated[str, "The state of the connector before."]
    steps: Annotated[int, "Steps in all; none if the connector has this config already."]
    to_do: Annotated[int, "Steps that are not done."]
    properties: Annotated[int, "Settings that differ.", TOTAL]


class AppliedData(Printed):
    """A change of a connector's config."""

    connector: Annotated[str, "The connector."]
    properties: Annotated[list[PropertyPart], "The settings that differ, without secrets."]
    partitions: Annotated[list[PartitionRow], "The source partitions, and what becomes of them."]
    overrides: Annotated[list[str], "The checks that were waived, by their flags."]


def _applied_lines(report: Report) -> Iterator[str]:
    """Yield the settings that differ, the source partitions that do not stay, then the summary."""
    data = report.data_of(AppliedData)
    if not report.rows:
        yield printable(f"Connector {data.connector} has this config already.")
        return
    yield from property_lines(data.properties)
    for row in data.partitions:
        if row.status != "stays":
            yield printable(f"{json_text(row.source_partition)}: {row.status}{f' ({row.why})' if row.why else ''}")
    yield from summary_lines(report)


CONNECTORS_APPLY_PLAN, CONNECTORS_APPLY_RESULT = plan_and_result(
    "connectors-apply",
    "The change of a connector's config.",
    "The progress of changing a connector's config.",
    row=StepRow,
    summary=AppliedSummary,
    data=AppliedData,
    text=Text(columns=("step", "outcome", "action", "detail?"), lines=_applied_lines),
)
