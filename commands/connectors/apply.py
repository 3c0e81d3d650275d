"""`eosctl connectors apply`: parses, calls one operation, returns its report."""

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


@click.command("apply", cls=EosctlCommand)
@click.argument("file", metavar="FILE")
@click.option(
    "--offsets", metavar="FILE|CONNECTOR[@PROFILE]", help="Offsets to start from, if the connector is not there yet."
)
@click.option("--name", metavar="NAME", help="Name of the connector [default: that in FILE].")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting to change (repeatable).")
@waivers(Waiver.READ_AGAIN, Waiver.UNKNOWN_PARTITIONS, Waiver.MAY_SKIP, Waiver.OVERWRITE_OFFSETS, Waiver.READ_TWICE)
@write_options
@pass_app
@pass_request(Allowances)
def apply_command(
    app: App,
    allowances: Allowances,
    *,
    file: str,
    offsets: str | None,
    name: str | None,
    settings: tuple[str, ...],
    yes: bool,
    dry_run: bool,
) -> Report:
    """Create a source connector, or change its config; refused where a live one would start over.

    FILE is what `eosctl connectors create` takes. A connector that is not there is created, as by that command. If it
    has this config already, nothing is done and the exit code is 0. Else the plan shows the settings that differ and
    what becomes of the source partitions, as `eosctl connectors diff` does; the config is replaced as a whole, with
    PUT.

    Refused are a change with which the connector reads source partitions from the beginning (--read-again), one whose
    effect on them is not known (--unknown-partitions), and settings of a known connector with which it may skip records
    (--may-skip). After the change it waits until the tasks run, and sees what they commit: the exit code is 3 if all of
    that is of new source partitions, which is a start over, and 7 if nothing was seen where the effect was unknown. The
    state of the connector stays as it is; one that is STOPPED or PAUSED is not watched. --timeout is per step.

    There is no undo command: no copy of the former config is kept, as it may hold secrets. What GET /connectors/NAME
    answered before is a FILE that brings it back.

    The config goes to workers that you named (-u, a profile, --connect-map), or to all with --connect-trust-discovered.
    Secrets are in no plan, audit log or journal; --set takes none, but a reference to one. Needs workers of Kafka 3.0
    or newer, and 3.7 to create.

    Example: eosctl connectors apply orders.json -b kafka:9092 -g connect -u http://w1:8083 --dry-run
    """
    from eosctl.connectors.definition import read_definition
    from eosctl.create.change import prepare_apply
    from eosctl.create.create import CreateRequest
    from eosctl.create.given import gather_given

    definition = read_definition(file, stdin=sys.stdin.buffer, name=name).changed(name=name, settings=settings)
    given = gather_given(app, offsets, connector=definition.name, stdin=sys.stdin.buffer)
    request = CreateRequest(definition, given, allowances=allowances)
    return run_plan(prepare_apply(app, request), yes=yes, dry_run=dry_run)
