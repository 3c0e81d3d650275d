"""`eosctl offsets import` and `offsets lint`: options in, one operation, its Report out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from eosctl.app import App
from eosctl.core.allowances import Allowances, Waiver
from eosctl.core.frozen import frozen
from eosctl.report import Report

from ..frame.confirm import settle
from ..frame.options import EosctlCommand, pass_app, pass_request, waivers, write_options

if TYPE_CHECKING:
    from eosctl.offsets.files.importing import ImportRequest


@frozen
class ImportOptions:
    """The argument and the options of `offsets import`."""

    file: str
    store: str
    connectors: tuple[str, ...]
    keep_partitions: bool
    rewrite: bool
    workers_down: bool
    force_running: bool

    def request(self, store: str) -> ImportRequest:
        """What they ask for, with what the file holds; `store` is without the profile that leads there."""
        from eosctl.offsets.files.importing import ImportRequest, read_offsets_file

        return ImportRequest(
            read_offsets_file(self.file, stdin=sys.stdin.buffer, connectors=self.connectors),
            store=store,
            connectors=self.connectors,
            keep_partitions=self.keep_partitions,
            rewrite=self.rewrite,
            allowances=Allowances(self.workers_down, self.force_running),
        )


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
@pass_request(ImportOptions)
def import_(app: App, options: ImportOptions, *, yes: bool, dry_run: bool) -> Report:
    """Write the offsets of a file into a store.

    FILE is a record file, as `offsets export` writes it, or a KIP-875 body, as GET /connectors/NAME/offsets answers it
    (then --connector says whose); - is stdin, which needs --yes. Each record goes where Connect's own producer puts
    its key; of two that fall on one key the newer is written and the other reported. Deletions are written too. Keys
    keep their bytes, also those that Connect ignores, which are reported, and records their headers. The connectors
    must be STOPPED, without tasks. A topic that is no offsets topic, or not compacted, is refused. What is overwritten
    is backed up; the undo command is printed. Needs Kafka 0.11 or newer.

    Example: eosctl offsets import offsets.ndjson -b kafka:9092 -u http://connect:8083 --store connect-offsets
    """
    from eosctl.offsets.files.importing import prepare_import
    from eosctl.offsets.stores.gather import locate

    app, store = locate(app, options.store)
    return settle(prepare_import(app, options.request(store)), yes=yes, dry_run=dry_run)


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
    from eosctl.offsets.lint.lint import lint_offsets

    return lint_offsets(app, stores, strict=strict)
