"""`eosctl offsets`: parses, calls one operation, returns its report. Some leaves have their own module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import click

from eosctl.core.allowances import Allowances, Waiver

from ..frame.confirm import run_plan
from ..frame.options import LazyGroup, pass_app, pass_request, waivers, write_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report

_DEDICATED_TOPIC = click.option(
    "--dedicated-topic",
    metavar="PATTERN",
    help="Offsets topic of connectors that have none of their own: 'offsets-{connector}'.",
)


class OffsetsGroup(LazyGroup):
    """Load the longer commands from their modules."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "export": "export:export_command",
        "import": "files:import_",
        "lint": "files",
        "log": "log",
        "migrate": "migrate",
        "reset": "edit",
        "set": "edit:set_",
        "snapshot": "snapshot",
        "switch": "switch",
        "verify": "migrate",
    }


def one_connector(function: Callable[..., object]) -> Callable[..., object]:
    """Add `--connector`, required and repeatable."""
    return click.option(
        "--connector", "connectors", multiple=True, required=True, metavar="NAME", help="A connector (repeatable)."
    )(function)


@click.group("offsets", cls=OffsetsGroup)
def offsets() -> None:
    """Show, compare, merge and migrate source offsets.

    A source offset says how far a connector has read one part of its source (a file, a table). Connect keeps it in the
    worker's offsets topic, the global store, and, where the connector has offsets.storage.topic, in the connector's
    own, the dedicated store. KIP-618 promises that what the dedicated store lacks is taken from the global one (shown
    as documented). No Kafka version does that so far (3.3 to 4.3): the task gets what the dedicated store has, and
    reads the rest of its source from the start (shown as runtime). `merge` and `migrate` make the two views equal.

    Connect finds offsets by the bytes of their key, so one source partition in two spellings has two offsets.
    """


@offsets.command("list")
@click.option("--connector", "connectors", multiple=True, metavar="NAME", help="A connector (repeatable).")
@click.option(
    "--store",
    "stores",
    multiple=True,
    metavar="STORE",
    help="Only this store: global, dedicated, TOPIC or TOPIC@PROFILE (repeatable).",
)
@_DEDICATED_TOPIC
@pass_app
def list_command(app: App, connectors: tuple[str, ...], stores: tuple[str, ...], dedicated_topic: str | None) -> Report:
    """List every source partition: its value in each store, and the value that a task would get.

    AGE is the time since the value was committed: a task may be RUNNING and commit nothing. Works with the workers
    down. The exit code is 0 whatever is found. Needs Kafka 0.11 or newer.

    Example: eosctl offsets list -b kafka:9092 --connector orders-source
    """
    from eosctl.offsets.listing import OffsetQuery, list_offsets

    return list_offsets(app, OffsetQuery(connectors, stores, dedicated_topic))


@offsets.command("get")
@one_connector
@click.option("--partition", metavar="JSON", help="One source partition, in any spelling.")
@click.option("--rest", is_flag=True, help="Also ask a worker, and compare.")
@_DEDICATED_TOPIC
@pass_app
def get_command(
    app: App, connectors: tuple[str, ...], *, partition: str | None, rest: bool, dedicated_topic: str | None
) -> Report:
    """Show a connector's offsets, or one of them.

    With --rest, each row also shows what a worker answers (KIP-875): the same; null, if it looks under another spelling
    of the key; or something else. A difference is not a failure. The exit code is 1 if the source partition does not
    exist. Needs Kafka 0.11 or newer; --rest a worker of 3.5 or newer.

    Example: eosctl offsets get -b kafka:9092 --connector orders-source --partition '{"filename":"/data/orders"}'
    """
    from eosctl.offsets.listing import OffsetQuery, get_offsets

    return get_offsets(app, OffsetQuery(connectors, (), dedicated_topic), partition=partition, rest=rest)


@offsets.command("diff")
@one_connector
@click.argument("left", default="global", metavar="[LEFT]")
@click.argument("right", default="dedicated", metavar="[RIGHT]")
@_DEDICATED_TOPIC
@click.option("--strict", is_flag=True, help="Exit 3, not 7, on keys that an open transaction hides.")
@pass_app
def diff_command(
    app: App, connectors: tuple[str, ...], *, left: str, right: str, dedicated_topic: str | None, strict: bool
) -> Report:
    """Compare two stores of a connector: global and dedicated, topics by name, TOPIC@PROFILE on another cluster.

    Either may be a file that `offsets import` takes: a path with a slash, file:PATH, or a name that ends in .ndjson,
    .jsonl or .parquet. Keys and values are compared as JSON where one is a file, else as bytes. The exit code is 3 if
    a source partition differs; 7 if an open transaction hides newer records of one, so that its difference is
    unknown (with --strict, 3). Needs Kafka 0.11 or newer.

    Example: eosctl offsets diff -b kafka:9092 --connector orders-source
    """
    from eosctl.core.offsets.names import is_file
    from eosctl.offsets.listing import OffsetQuery, diff_offsets

    query, files = OffsetQuery(connectors, (), dedicated_topic), {}
    if is_file(left) or is_file(right):
        from eosctl.offsets.files.importing import file_stores

        files = file_stores(app, (left, right), connectors)
    return diff_offsets(app, query, left=left, right=right, strict=strict, files=files)


@offsets.command("merge")
@click.option("--connector", "connectors", multiple=True, metavar="NAME", help="A connector (repeatable).")
@click.option("--all", "everything", is_flag=True, help="Every connector that has a topic of its own.")
@click.option("--into", type=click.Choice(["dedicated", "global"]), required=True, help="The store to complete.")
@click.option(
    "--prefer",
    type=click.Choice(["dedicated", "global", "newest"]),
    help="Store to prefer if both have a value [default: dedicated; with --from, the --into store].",
)
@click.option(
    "--from",
    "source",
    metavar="STORE",
    help="Copy from this store, TOPIC or TOPIC@PROFILE [default: the store that --into does not name].",
)
@_DEDICATED_TOPIC
@waivers(Waiver.WORKERS_DOWN, Waiver.FORCE_RUNNING)
@write_options
@pass_app
@pass_request(Allowances)
def merge_command(
    app: App,
    allowances: Allowances,
    *,
    connectors: tuple[str, ...],
    everything: bool,
    into: str,
    prefer: str | None,
    source: str | None,
    dedicated_topic: str | None,
    yes: bool,
    dry_run: bool,
) -> Report:
    """Copy the offsets that one store lacks from the other, so that a task finds all its offsets.

    Merge before the connector's config gets offsets.storage.topic; --dedicated-topic names the topic that it will get.
    --from copies from any store; TOPIC@PROFILE is one on another cluster, where the connectors must no longer run.
    The connector must be STOPPED, without tasks. Keys keep their bytes. What is overwritten is backed
    up; the undo command is printed. Needs Kafka 3.3 or newer.

    Example: eosctl offsets merge -b kafka:9092 -u http://connect:8083 --connector orders-source --into dedicated
    """
    from eosctl.core.offsets.views import Prefer
    from eosctl.offsets.apply import prepare_writes
    from eosctl.offsets.writes import MergeRequest, plan_offsets_merge, require_choice

    require_choice(connectors, everything=everything)
    preferred = Prefer(prefer) if prefer else None
    request = MergeRequest(connectors, into, preferred, dedicated_topic, source, allowances)
    return run_plan(prepare_writes(app, partial(plan_offsets_merge, request=request)), yes=yes, dry_run=dry_run)


@offsets.command("restore")
@click.argument("backup")
@waivers(Waiver.OVERWRITE_NEWER, Waiver.WORKERS_DOWN, Waiver.FORCE_RUNNING)
@write_options
@pass_app
@pass_request(Allowances)
def restore_command(
    app: App, allowances: Allowances, *, backup: str, overwrite_newer: bool, yes: bool, dry_run: bool
) -> Report:
    """Restore what a write replaced, byte for byte, from its backup: NDJSON, or Parquet, as eosctl keeps many keys.

    A key that had no record before gets a tombstone, which Connect reads as no offset. The command is refused if
    someone wrote a key since, on whichever partition. Restoring keeps a backup, too. Needs Kafka 0.11 or newer.

    Example: eosctl offsets restore ~/.local/state/eosctl/backups/offsets-merge-20260102T030405000Z-0a1b2c3d.ndjson
    """
    from eosctl.offsets.apply import prepare_writes
    from eosctl.offsets.files.restore import RestoreRequest, plan_restore

    request = RestoreRequest(backup, overwrite_newer=overwrite_newer, allowances=allowances)
    return run_plan(prepare_writes(app, partial(plan_restore, request=request)), yes=yes, dry_run=dry_run)
