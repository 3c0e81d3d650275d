"""How `upgrade plan --hard` looks as text: what to copy, what to repair, then both variants with their risks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eosctl.output.cells import printable


def hard_lines(hard: object) -> Iterable[str]:
    """The lines of `data.hard`; none without it."""
    if not isinstance(hard, Mapping):
        return
    yield "\nto an older Connect"
    for row in hard["offsets"]:
        where = f" on {row['cluster']}" if row["cluster"] else ""
        yield f"  copy the offsets of {printable(row['connector'])} from {printable(row['offsets_topic'] + where)}"
        yield from _commands(row["commands"])
        yield f"    {printable(row['note'])}"
    if not hard["offsets"]:
        yield "  no connector has offsets outside the global topic"
    yield from _repairs(hard)
    for reason in hard["unknown"]:
        yield f"  not known: {printable(reason)}"
    for variant in hard["variants"]:
        best = " (recommended)" if variant["recommended"] else ""
        yield f"  {variant['name'].replace('_', ' ')}{best}"
        yield from (f"    {number}. {step}" for number, step in enumerate(variant["steps"], start=1))
        yield from (f"    risk: {risk}" for risk in variant["risks"])


def _repairs(hard: Mapping[str, object]) -> Iterable[str]:
    offsets, configs = hard["aborted_offsets"], hard["aborted_configs"]
    assert isinstance(offsets, Mapping)  # noqa: S101 - core.hard_downgrade makes it
    assert isinstance(configs, Sequence)  # noqa: S101
    if offsets["records"]:
        yield f"  aborted offsets: {len(offsets['records'])} (write the committed ones again)"
        yield from _commands(offsets["commands"])
    for each in configs:
        yield f"  repair the config records of {printable(each['connector'])}"
        yield from (f"    {printable(step)}" for step in each["steps"])
    if not offsets["records"] and not configs:
        yield "  no aborted record was seen that would come alive"


def _commands(commands: Iterable[str]) -> Iterable[str]:
    return (f"    {printable(command)}" for command in commands)
