"""Rows of `connectors diff`: one per source partition; the properties that differ are in its data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from eosctl.core.offsets.records import json_text
from eosctl.foreign import printable
from eosctl.offsets.history.config_changes import PartitionStatus
from eosctl.output.cells import summary_lines
from eosctl.output.rows import Kind, Printed, Text
from eosctl.report import Report


class PartitionRow(Printed):
    """A source partition, and what becomes of it under the new config."""

    connector: Annotated[str, "The connector."]
    source_partition: Annotated[object, "The source partition, as its key has it, or as the new config names it."]
    status: Annotated[
        PartitionStatus,
        "`stays`; `new`: the connector starts over there; `goes`: its offset is left behind; `unused`: neither config "
        "names it; `unknown`.",
    ]
    offset: Annotated[object, "The offset that the connector goes on from with its present config; null without one."]
    committed: Annotated[str | None, "When that offset was written."]
    why: Annotated[str | None, "The reason why the status is unknown, or why a present offset does not count."]


class PropertyPart(Printed):
    """A property that differs; secrets are hidden, and references of config providers are shown as they are."""

    name: Annotated[str, "The property."]
    change: Annotated[Literal["added", "changed", "removed"], "How it differs."]
    before: Annotated[object, "Its present value; null where it is added."]
    after: Annotated[object, "Its new value; null where it is removed."]
    meaning: Annotated[str | None, "What the change means besides, for offsets of a known connector."]
    may_skip: Annotated[
        bool, "Whether records may be skipped or read again with it, though the source partitions stay."
    ]


class ConfigDiffSummary(Printed):
    """How much differs."""

    properties: Annotated[int, "How many properties differ."]
    counts: Annotated[dict[str, int], "How many source partitions have each status."]
    starts_over: Annotated[
        bool | None, "Whether the connector starts over somewhere, as far as its config names it; null if not known."
    ]
    known_source: Annotated[str | None, "The known connector whose rule was used; null for any other class."]


class ConfigDiffData(Printed):
    """The properties that differ, and the answer of a worker to the new config."""

    properties: Annotated[list[PropertyPart], "The properties that differ."]
    errors: Annotated[list[str] | None, "The errors of the new config; null where no worker validated it."]


def _lines(report: Report) -> Iterable[str]:
    """Yield each property that differs, as a diff does, with what the change means."""
    yield from property_lines(report.data_of(ConfigDiffData).properties)
    yield from summary_lines(report)


def property_lines(properties: Iterable[PropertyPart]) -> Iterable[str]:
    """Yield each property that differs, as a diff does, with what the change means."""
    for each in properties:
        yield from (f"{sign} {printable(each.name)}={_shown(value)}" for sign, value in _signed(each))
        if each.meaning is not None:
            yield f"    {each.meaning}"


def _signed(part: PropertyPart) -> Iterable[tuple[str, object]]:
    if part.change != "added":
        yield "-", part.before
    if part.change != "removed":
        yield "+", part.after


def _shown(value: object) -> str:
    return printable(value) if isinstance(value, str) else json_text(value)


CONNECTORS_DIFF = Kind(
    "connectors-diff",
    "What a new config of a connector changes, and what becomes of its source partitions.",
    row=PartitionRow,
    summary=ConfigDiffSummary,
    data=ConfigDiffData,
    text=Text(
        columns=("source_partition", "status", "offset", "why?"),
        wide=("committed",),
        lines=_lines,
        empty="The connector has no offset, and its config names no source partition.",
        prose=False,
    ),
)
