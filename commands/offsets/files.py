"""`eosctl offsets import` and `offsets lint`: options in, one operation, its Report out."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from eosctl.core.allowances import Allowances, Waiver

from ..frame.confirm import run_plan
from ..frame.options import EosctlCommand, pass_app, pass_request, waivers, write_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report


@click.command("import", cls=EosctlCommand)
@click.argument("file", metavar="FILE")
@click.option(
    "--store", required=True, metavar="STORE", help="global, dedicated (with --connector), TOPIC or TOPIC@PROFILE."
)
@click.option(
    "--connector", "connectors", multiple=True, metavar="NAME", help="Only offsets of this connector (repeatable)."
)
@click.option("--keep-partitions", is_flag=True, help="Write each record to its partition in the file.")
@click.option("--rewrite", is_flag=True, help="Rewrite existing values too, superseding aborted records.")
@waivers(Waiver.WORKERS_DOWN, Waiver.FORCE_RUNNING)
@write_options
@pass_app
@pass_request(Allowances)
def import_(
    app: App,
    allowances: Allowances,
    *,
    file: str,
    store: str,
    connectors: tuple[str, ...],
    keep_partitions: bool,
    rewrite: bool,
    yes: bool,
    dry_run: bool,
) -> Report:
    """Write the offsets of a file into a store.

    FILE is a record file, as `offsets export` writes it, a .parquet backup, or a KIP-875 body, the answer of GET
    /connectors/NAME/offsets or Strimzi's ConfigMap of it (then --connector names the connector); - is stdin, which
    needs --yes. What kcat -J, rpk topic consume, kafka-dump-log.sh --print-data-log and kafka-console-consumer.sh
    with print.key=true print is read, too; what such a file can't tell apart is refused with its line. Each record goes
    to the partition that Connect's own producer chooses for its key; of two records for one key the newer is
    written and the other reported. Deletions are written, too. Keys keep their bytes, and records their headers;
    keys that Connect ignores are written and reported. The connectors must be STOPPED, without tasks. A topic that
    is not an offsets topic, or not compacted, is refused. What is overwritten is backed up; the undo command is
    printed. Needs Kafka 0.11 or newer.

    Example: eosctl offsets import offsets.ndjson -b kafka:9092 -u http://connect:8083 --store connect-offsets
    """
    from eosctl.offsets.apply import prepare_writes
    from eosctl.offsets.files.importing import ImportRequest, plan_offsets_import, read_offsets_file
    from eosctl.offsets.stores.gather import locate

    app, store = locate(app, store)
    records = read_offsets_file(app, file, stdin=sys.stdin.buffer, connectors=connectors)
    request = ImportRequest(records, store, connectors, keep_partitions, rewrite, allowances)
    return run_plan(prepare_writes(app, partial(plan_offsets_import, request=request)), yes=yes, dry_run=dry_run)


@click.command("lint", cls=EosctlCommand)
@click.option(
    "--store", "stores", multiple=True, metavar="STORE", help="global, dedicated, TOPIC or TOPIC@PROFILE (repeatable)."
)
@click.option(
    "--connector", "connectors", multiple=True, metavar="NAME", help="Only the offsets of this connector (repeatable)."
)
@click.option("--strict", is_flag=True, help="Exit 3 on warnings, too.")
@pass_app
def lint(app: App, stores: tuple[str, ...], connectors: tuple[str, ...], *, strict: bool) -> Report:
    """Find problems in offsets topics.

    Checks the global topic and every dedicated one (also on brokers that a connector's config names), or only those of
    --store: keys that Connect ignores, one source partition in two spellings, keys on the wrong partition or on
    several (with the repair), values that are not offsets, cleanup policy, replication, and transactions that hold
    back the last stable offset (LSO), for which workers wait when they start. --connector leaves out what is wrong
    with the offsets of others, and keys that are of no connector. The exit code is 3 if a finding is an error (with
    --strict, also a warning), else 7 if something could not be seen. Needs Kafka 2.8 or newer to name the producer of
    an open transaction.

    Example: eosctl offsets lint -b kafka:9092 -u http://connect:8083 -o json
    """
    from eosctl.offsets.lint.lint import lint_offsets

    return lint_offsets(app, stores, connectors, strict=strict)
