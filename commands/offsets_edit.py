"""`eosctl offsets set` and `reset`: parse, call one operation, return its report."""

from __future__ import annotations

from typing import Any

import click

from eosctl.core.wording import counted
from eosctl.errors import UsageError
from eosctl.ops.app import App
from eosctl.report import Report

from .confirm import settle
from .offsets import running_options
from .options import EosctlCommand, pass_app, write_options

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
@click.option("--partition", "partitions", multiple=True, required=True, metavar="JSON", help="A source partition.")
@click.option("--offset", "offsets", multiple=True, required=True, metavar="JSON", help="Its new offset.")
@_VIA
@running_options
@click.option("--force-shape", is_flag=True, help="Write although a member's type changes; a task may fail on it.")
@write_options
@pass_app
def set_(app: App, connector: str, *, yes: bool, dry_run: bool, **given: Any) -> Report:
    """Put a connector's offset where it should go on reading, say further back, to read the tail again.

    --partition and --offset may be repeated, in pairs. The key that the connector itself wrote is found in any
    spelling and keeps its bytes. The global and the dedicated topic get the same value. The plan says member by member
    what changes: what is new or missing, and which way it goes. Of Debezium, JDBC, FileStream and MirrorMaker 2 it says
    what the source can still deliver. The connector must be STOPPED, without tasks. What is overwritten is backed up;
    the undo command is printed. Needs Kafka 3.3 or newer.

    Example: eosctl offsets set -b kafka:9092 --connector c --partition '{"filename":"/f"}' --offset '{"position":0}'
    """
    from eosctl.ops.offset_edit import SetRequest, apply_set, plan_offsets_set, show_edit
    from eosctl.ops.offset_writes import Allowances

    if len(given["partitions"]) != len(given["offsets"]):
        raise UsageError("--partition and --offset come in pairs", hint="Give each --partition one --offset.")
    pairs = tuple(zip(given["partitions"], given["offsets"], strict=True))
    allowances = Allowances(given["workers_down"], given["force_running"], given["force_shape"])
    request = SetRequest(connector, pairs, given["via"], allowances)
    plan = plan_offsets_set(app, request)
    shown = show_edit(app, plan, dry_run=dry_run)
    apply = (lambda: apply_set(app, plan, request)) if plan.writes.sends() else None
    return settle(
        shown, apply, question=f"Write {counted(len(plan.writes.sends()), 'offset')}?", yes=yes, dry_run=dry_run
    )


@click.command("reset", cls=EosctlCommand)
@_CONNECTOR
@click.option("--partition", "partitions", multiple=True, metavar="JSON", help="A source partition (repeatable).")
@click.option("--all-partitions", "everything", is_flag=True, help="Everything that the connector has.")
@_VIA
@running_options
@write_options
@pass_app
def reset(app: App, connector: str, *, yes: bool, dry_run: bool, **given: Any) -> Report:
    """Delete a connector's offsets, so that it reads these source partitions from their beginning.

    With exactly-once support and a dedicated topic the workers' own way to do it is broken from Kafka 3.8 on; this one
    puts tombstones on the keys as they are, in the global topic first, then in the dedicated one. The connector must
    be STOPPED, without tasks. What is deleted is backed up; the undo command is printed. Needs Kafka 3.3 or newer.

    Example: eosctl offsets reset -b kafka:9092 --connector orders-source --partition '{"filename":"/data/orders"}'
    """
    from eosctl.ops.offset_edit import ResetRequest, apply_reset, plan_offsets_reset, show_edit
    from eosctl.ops.offset_writes import Allowances

    allowances = Allowances(given["workers_down"], given["force_running"])
    request = ResetRequest(connector, given["partitions"], given["everything"], given["via"], allowances)
    plan = plan_offsets_reset(app, request)
    shown = show_edit(app, plan, dry_run=dry_run)
    apply = (lambda: apply_reset(app, plan, request)) if plan.writes.sends() else None
    return settle(
        shown, apply, question=f"Delete {counted(len(plan.writes.sends()), 'offset')}?", yes=yes, dry_run=dry_run
    )
