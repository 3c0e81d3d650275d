"""`eosctl offsets import` and `offsets lint`: options in, one operation, its Report out."""

from __future__ import annotations

import sys
from typing import Any

import click

from eosctl.core.allowances import Waiver
from eosctl.ops.app import App
from eosctl.report import Report

from .confirm import settle
from .options import EosctlCommand, pass_app, waivers, write_options


@click.command("import", cls=EosctlCommand)
@click.argument("file", metavar="FILE")
@click.option(
    "--store", required=True, metavar="STORE", help="global, dedicated (with --connector), TOPIC or TOPIC@PROFILE."
)
@click.option("--connector", "connectors", multiple=True, metavar="NAME", help="Only this connector's (repeatable).")
@click.option("--keep-partitions", is_flag=True, help="Each record onto the partition that the file says.")
@click.option("--rewrite", is_flag=True, help="Also what the store has already: aborted records then count no more.")
@waivers(Waiver.WORKERS_DOWN, Waiver.FORCE_RUNNING)
@write_options
@pass_app
def import_(app: App, file: str, *, yes: bool, dry_run: bool, **given: Any) -> Report:
    """Write the offsets of a file into a store.

    FILE is a record file, as `offsets export` writes it, or a KIP-875 body, as GET /connectors/NAME/offsets answers it
    (then --connector says whose); - is stdin, which needs --yes. Each record goes where Connect's own producer puts
    its key; of two that fall on one key the newer is written and the other reported. Deletions are written too. Keys
    keep their bytes, also those that Connect ignores, which are reported, and records their headers. The connectors
    must be STOPPED, without tasks. A topic that is no offsets topic, or not compacted, is refused. What is overwritten
    is backed up; the undo command is printed. Needs Kafka 0.11 or newer.

    Example: eosctl offsets import offsets.ndjson -b kafka:9092 -u http://connect:8083 --store connect-offsets
    """
    from eosctl.core.allowances import Allowances
    from eosctl.ops.offset_import import ImportRequest, prepare_import, read_offsets_file
    from eosctl.ops.offset_stores import locate

    connectors: tuple[str, ...] = given["connectors"]
    app, store = locate(app, given["store"])
    request = ImportRequest(
        read_offsets_file(file, stdin=sys.stdin.buffer, connectors=connectors),
        store=store,
        connectors=connectors,
        keep_partitions=given["keep_partitions"],
        rewrite=given["rewrite"],
        allowances=Allowances(given["workers_down"], given["force_running"]),
    )
    return settle(prepare_import(app, request), yes=yes, dry_run=dry_run)


@click.command("lint", cls=EosctlCommand)
@click.option(
    "--store", "stores", multiple=True, metavar="STORE", help="global, dedicated, TOPIC or TOPIC@PROFILE (repeatable)."
)
@click.option("--strict", is_flag=True, help="Warnings are findings too.")
@pass_app
def lint(app: App, stores: tuple[str, ...], *, strict: bool) -> Report:
    """Find what is wrong with offsets topics.

    Looks at the global topic and at every dedicated one (also on brokers that a connector's config names), unless
    --store says which: keys that Connect ignores, one
    source partition in two spellings, keys on the wrong partition or on several (with the repair), values that are no
    offsets, cleanup policy, replication, and transactions that hold back the last stable offset (LSO), behind which
    workers wait when they start. Exit code 3 when a finding is an error; with --strict, also for a warning. Needs
    Kafka 2.8 or newer to tell who holds a transaction open.

    Example: eosctl offsets lint -b kafka:9092 -u http://connect:8083 -o json
    """
    from eosctl.ops.offset_lint import lint_offsets

    return lint_offsets(app, stores, strict=strict)
