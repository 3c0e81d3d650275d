"""The rows of `upgrade plan --hard`: what to copy, what to repair, then both variants with their risks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from eosctl.foreign import printable
from eosctl.output.rows import BytesText, Printed


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
