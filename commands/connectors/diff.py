"""`eosctl connectors diff`: parses, calls one operation, returns its report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ..frame.options import EosctlCommand, pass_app

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report


@click.command("diff", cls=EosctlCommand)
@click.argument("file", metavar="FILE")
@click.option("--name", metavar="NAME", help="The connector, where the file does not name it.")
@pass_app
def diff(app: App, file: str, *, name: str | None) -> Report:
    """Show what a new config of a source connector would change, for its offsets, too.

    FILE is a connector in JSON or YAML, or a KafkaConnector of Strimzi's; - is stdin. It is compared with the live
    config of that name: the properties that differ, and for each source partition whether it stays, is new (no offset:
    the connector starts over there), goes (its offset is left behind), or is unused by both. Which source partitions a
    config names is known of the connectors in docs/offset-kinds.md, and unknown of others, unless all that differs are
    settings of Connect itself. A value that a config provider resolves is not known either. A worker that is named (-u)
    validates the new config; some connectors log in to their databases to do so. Nothing is changed.

    The exit code is 0 if nothing differs, 3 if something does or the new config is not valid, and 7 if it is not known
    what becomes of a source partition, and nothing else is certain. Needs Kafka 0.11 or newer.

    Example: eosctl connectors diff orders.json -b kafka:9092 -u http://worker:8083
    """
    from eosctl.connectors.definition import read_definition
    from eosctl.offsets.configs.diff import diff_config

    return diff_config(app, read_definition(file, stdin=sys.stdin.buffer, name=name))
