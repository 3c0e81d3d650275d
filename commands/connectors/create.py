"""`eosctl connectors create`: parses, calls one operation, returns its report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from eosctl.core.allowances import Allowances, Waiver

from ..frame.confirm import run_plan
from ..frame.options import EosctlCommand, pass_app, pass_request, waivers, write_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report


@click.command("create", cls=EosctlCommand)
@click.argument("file", metavar="FILE")
@click.option(
    "--offsets",
    metavar="FILE|CONNECTOR[@PROFILE]",
    help="Offsets to start from: a file, or those of another connector, here or on a profile's cluster.",
)
@click.option("--name", metavar="NAME", help="Name of the connector [default: that in FILE].")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting to change (repeatable).")
@click.option("--stopped", is_flag=True, help="Leave it STOPPED, with its offsets in place.")
@waivers(Waiver.OVERWRITE_OFFSETS, Waiver.READ_TWICE, Waiver.READ_AGAIN)
@write_options
@pass_app
@pass_request(Allowances)
def create(
    app: App,
    allowances: Allowances,
    *,
    file: str,
    offsets: str | None,
    name: str | None,
    settings: tuple[str, ...],
    stopped: bool,
    yes: bool,
    dry_run: bool,
) -> Report:
    """Create a source connector with its offsets in place: it starts exactly where you say.

    FILE is one connector, as JSON or YAML: {"name": ..., "config": {...}}, what GET /connectors/NAME answers, the
    config alone with its name, or a KafkaConnector of Strimzi's; - is stdin, which needs --yes. --offsets takes what
    `offsets import` takes (a record file, a backup, a KIP-875 body), or the offsets of another connector: those of its
    own topic, else the global ones. Keys get the new name, and keep all other bytes.

    The connector is created STOPPED (KIP-980), its offsets are written and read back, and it is resumed only if the
    worker itself finds them all. The exit code is 3 if all that its tasks commit then is of other source partitions.
    Without --offsets it goes on from offsets of its name that are there, if a deleted connector left some, else it
    starts at the beginning; the plan says which. Refused are a name that exists, other offsets of that name, offsets
    that are not those of the config, and source partitions that a running connector reads. Each step is in a journal:
    after a kill or a failed step, the same command continues. --timeout is per step.

    The config goes to workers that you named (-u, a profile, --connect-map), or to all with --connect-trust-discovered.
    Values of the config that may be secrets are in no plan, audit log or journal; --set takes none, but a reference to
    one. Needs workers of Kafka 3.7 or newer.

    Example: eosctl connectors create orders.json --offsets offsets.ndjson -b kafka:9092 -g connect -u http://w1:8083
    """
    from eosctl.connectors.definition import read_definition
    from eosctl.create.create import CreateRequest, prepare_create
    from eosctl.create.given import gather_given

    definition = read_definition(file, stdin=sys.stdin.buffer, name=name).changed(name=name, settings=settings)
    given = gather_given(app, offsets, connector=definition.name, stdin=sys.stdin.buffer)
    request = CreateRequest(definition, given, stopped, allowances)
    return run_plan(prepare_create(app, request), yes=yes, dry_run=dry_run)
