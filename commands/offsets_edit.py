"""`eosctl offsets set` and `reset`: parse, call one operation, return its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from eosctl.core.allowances import Waiver
from eosctl.errors import UsageError
from eosctl.ops.app import App
from eosctl.report import Report

from .confirm import settle
from .options import EosctlCommand, pass_app, waivers, write_options

_VIA = click.option(
    "--via",
    type=click.Choice(["auto", "topic", "rest"]),
    default="auto",
    show_default=True,
    help="Write to the topics, or ask a worker (KIP-875); auto asks where that is known to work.",
)
_CONNECTOR = click.option("--connector", required=True, metavar="NAME", help="The source connector.")


@click.command("set", cls=EosctlCommand)
@_CONNECTOR
@click.option("--partition", "partitions", multiple=True, metavar="JSON", help="A source partition (repeatable).")
@click.option("--offset", "offsets", multiple=True, metavar="JSON", help="Its new offset.")
@click.option(
    "--as-of",
    metavar="TIME|OFFSET",
    help="The offset that it had then, or that stands at this place in the log, as `offsets log` shows it.",
)
@click.option(
    "--from",
    "store",
    metavar="STORE",
    help="Of --as-of: the log to take it from [default: the connector's own topic, else global].",
)
@_VIA
@waivers(Waiver.WORKERS_DOWN, Waiver.FORCE_RUNNING, Waiver.FORCE_SHAPE)
@write_options
@pass_app
def set_(app: App, connector: str, *, yes: bool, dry_run: bool, **given: Any) -> Report:
    """Put a connector's offset where it should go on reading, say further back, to read the tail again.

    --partition and --offset may be repeated, in pairs. The key that the connector itself wrote is found in any
    spelling and keeps its bytes. The global and the dedicated topic get the same value. The plan says member by member
    what changes: what is new or missing, and which way it goes. Of Debezium, JDBC, FileStream and MirrorMaker 2 it says
    what the source can still deliver.

    --as-of takes a former offset from the log, as `offsets log` shows it: with a time (RFC 3339, a date, an age like
    90m) of every source partition, or of those of --partition; with an offset of the log of the one that stands there.
    What the log does not have any more is refused, with what it has.

    The connector must be STOPPED, without tasks. What is overwritten is backed up; the undo command is printed. Needs
    Kafka 3.3 or newer.

    \b
    Example:
      eosctl offsets set -b kafka:9092 --connector c --partition '{"filename":"/f"}' --offset '{"position":0}'
      eosctl offsets set -b kafka:9092 --connector c --as-of 2026-11-21T08:00:00Z
    """
    from eosctl.core.allowances import Allowances
    from eosctl.ops.offset_as_of import as_of
    from eosctl.ops.offset_edit import SetRequest, prepare_set

    allowances = Allowances(given["workers_down"], given["force_running"], given["force_shape"])
    request = SetRequest(
        connector,
        offsets=_pairs(given),
        as_of=as_of(given["as_of"], app.clock, given["partitions"], store=given["store"]) if given["as_of"] else None,
        via=given["via"],
        allowances=allowances,
    )
    return settle(prepare_set(app, request), yes=yes, dry_run=dry_run)


def _pairs(given: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The source partitions with their new offsets; raises UsageError where it is not said which, or what."""
    if given["as_of"] and given["offsets"]:
        raise UsageError("--as-of and --offset both say the new offset", hint="Give one of them.")
    if given["as_of"]:
        return ()
    if given["store"]:
        raise UsageError("--from says where --as-of looks", hint="Give --as-of TIME or --as-of OFFSET.")
    if not given["offsets"]:
        raise UsageError("which offset?", hint="Give --partition and --offset (in pairs), or --as-of TIME|OFFSET.")
    if len(given["partitions"]) != len(given["offsets"]):
        raise UsageError("--partition and --offset come in pairs", hint="Give each --partition one --offset.")
    return tuple(zip(given["partitions"], given["offsets"], strict=True))


@click.command("reset", cls=EosctlCommand)
@_CONNECTOR
@click.option("--partition", "partitions", multiple=True, metavar="JSON", help="A source partition (repeatable).")
@click.option("--all-partitions", "everything", is_flag=True, help="Everything that the connector has.")
@_VIA
@waivers(Waiver.WORKERS_DOWN, Waiver.FORCE_RUNNING)
@write_options
@pass_app
def reset(app: App, connector: str, *, yes: bool, dry_run: bool, **given: Any) -> Report:
    """Delete a connector's offsets, so that it reads these source partitions from their beginning.

    With exactly-once support and a dedicated topic the workers' own way to do it is broken from Kafka 3.8 on; this one
    puts tombstones on the keys as they are, in the global topic first, then in the dedicated one. The connector must
    be STOPPED, without tasks. What is deleted is backed up; the undo command is printed. Needs Kafka 3.3 or newer.

    Example: eosctl offsets reset -b kafka:9092 --connector orders-source --partition '{"filename":"/data/orders"}'
    """
    from eosctl.core.allowances import Allowances
    from eosctl.ops.offset_edit import ResetRequest, prepare_reset

    allowances = Allowances(given["workers_down"], given["force_running"])
    request = ResetRequest(connector, given["partitions"], given["everything"], given["via"], allowances)
    return settle(prepare_reset(app, request), yes=yes, dry_run=dry_run)
