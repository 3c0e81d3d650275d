"""`eosctl offsets set` and `reset`: parse, call one operation, return its report."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eosctl.core.allowances import Allowances, Waiver
from eosctl.errors import UsageError

from ..frame.confirm import run_plan
from ..frame.options import EosctlCommand, pass_app, pass_request, waivers, write_options
from .log import SNAPSHOTS

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report

_VIA = click.option(
    "--via",
    type=click.Choice(["auto", "topic", "rest"]),
    default="auto",
    show_default=True,
    help="Write to the topics, or through a worker (KIP-875); auto uses a worker where that is known to work.",
)
_CONNECTOR = click.option("--connector", required=True, metavar="NAME", help="The source connector.")


def _pairs(
    partitions: tuple[str, ...], offsets: tuple[str, ...], as_of: str | None, store: str | None
) -> tuple[tuple[str, str], ...]:
    """Return the source partitions with their new offsets; raise UsageError if something is missing or ambiguous."""
    if as_of and offsets:
        raise UsageError("--as-of and --offset both set the new offset", hint="Give one of them.")
    if as_of:
        return ()
    if store:
        raise UsageError("--from needs --as-of", hint="Give --as-of TIME, OFFSET or FILE.")
    if not offsets:
        raise UsageError(
            "no offset was given", hint="Give --partition and --offset (in pairs), or --as-of TIME|OFFSET|FILE."
        )
    if len(partitions) != len(offsets):
        raise UsageError("--partition and --offset come in pairs", hint="Give each --partition one --offset.")
    return tuple(zip(partitions, offsets, strict=True))


@click.command("set", cls=EosctlCommand)
@_CONNECTOR
@click.option("--partition", "partitions", multiple=True, metavar="JSON", help="A source partition (repeatable).")
@click.option("--offset", "offsets", multiple=True, metavar="JSON", help="Its new offset.")
@click.option(
    "--as-of",
    metavar="TIME|OFFSET|FILE",
    help="Set the offset of that time, of this offset of the log, as `offsets log` shows it, or of a snapshot.",
)
@click.option(
    "--from",
    "store",
    metavar="STORE",
    help="With --as-of: read the log of this store [default: the connector's own topic, else global].",
)
@SNAPSHOTS
@_VIA
@waivers(Waiver.WORKERS_DOWN, Waiver.FORCE_RUNNING, Waiver.FORCE_SHAPE)
@write_options
@pass_app
@pass_request(Allowances)
def set_(
    app: App,
    allowances: Allowances,
    *,
    connector: str,
    partitions: tuple[str, ...],
    offsets: tuple[str, ...],
    as_of: str | None,
    store: str | None,
    snapshots: Path | None,
    via: str,
    yes: bool,
    dry_run: bool,
) -> Report:
    """Set a connector's offsets, for example further back, to read a part of its source again.

    --partition and --offset may be repeated, in pairs. The key that the connector itself wrote is found in any
    spelling and keeps its bytes. The global and the dedicated topic get the same value. The plan shows the change of
    each member: new, missing, forward or back. For Debezium, JDBC, FileStream and MirrorMaker 2 it also shows what the
    source can still deliver.

    --as-of takes a former offset from the log, as `offsets log` shows it: a time (RFC 3339, a date, an age like 90m)
    sets every source partition, or those of --partition; an offset of the log sets the source partition of that
    record; a FILE of `offsets snapshot` sets what that has. A time also takes versions that only a snapshot has, unless
    a newer one of that time may have been compacted away. What is not known is refused, with what is. A snapshot of
    another cluster or group, or of a topic that was created anew since, is refused.

    The connector must be STOPPED, without tasks. What is overwritten is backed up; the undo command is printed. Needs
    Kafka 3.3 or newer.

    \b
    Example:
      eosctl offsets set -b kafka:9092 --connector c --partition '{"filename":"/f"}' --offset '{"position":0}'
      eosctl offsets set -b kafka:9092 --connector c --as-of 2026-11-21T08:00:00Z
    """
    from eosctl.offsets.edit.edit import SetRequest, plan_offsets_set, prepare_edit
    from eosctl.offsets.history.as_of import as_of as parsed
    from eosctl.offsets.snapshots.file import snapshot_folder

    pairs = _pairs(partitions, offsets, as_of, store)
    folder = snapshots or snapshot_folder(app)
    former = parsed(as_of, app.clock, partitions, store=store, snapshots=folder) if as_of else None
    request = SetRequest(connector, pairs, former, via, allowances)
    return run_plan(prepare_edit(app, partial(plan_offsets_set, request=request)), yes=yes, dry_run=dry_run)


@click.command("reset", cls=EosctlCommand)
@_CONNECTOR
@click.option("--partition", "partitions", multiple=True, metavar="JSON", help="A source partition (repeatable).")
@click.option("--all-partitions", "everything", is_flag=True, help="All source partitions of the connector.")
@_VIA
@waivers(Waiver.WORKERS_DOWN, Waiver.FORCE_RUNNING)
@write_options
@pass_app
@pass_request(Allowances)
def reset(
    app: App,
    allowances: Allowances,
    *,
    connector: str,
    partitions: tuple[str, ...],
    everything: bool,
    via: str,
    yes: bool,
    dry_run: bool,
) -> Report:
    """Delete a connector's offsets, so that it reads these source partitions from their beginning.

    With exactly-once support and a dedicated topic, the workers' own reset is broken from Kafka 3.8 on; this command
    writes tombstones for the keys as they are, first in the global topic, then in the dedicated one. The connector must
    be STOPPED, without tasks. What is deleted is backed up; the undo command is printed. Needs Kafka 3.3 or newer.

    Example: eosctl offsets reset -b kafka:9092 --connector orders-source --partition '{"filename":"/data/orders"}'
    """
    from eosctl.offsets.edit.edit import ResetRequest, plan_offsets_reset, prepare_edit

    request = ResetRequest(connector, partitions, everything, via, allowances)
    return run_plan(prepare_edit(app, partial(plan_offsets_reset, request=request)), yes=yes, dry_run=dry_run)
