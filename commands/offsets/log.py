"""`eosctl offsets log`: parses, calls one operation, returns its report."""

from __future__ import annotations

import click

from eosctl.app import App
from eosctl.report import Report

from ..frame.options import EosctlCommand, pass_app


@click.command("log", cls=EosctlCommand)
@click.option("--connector", required=True, metavar="NAME", help="The source connector.")
@click.option("--partition", "partitions", multiple=True, metavar="JSON", help="A source partition (repeatable).")
@click.option(
    "--store",
    metavar="STORE",
    help="Only the log of global, dedicated, TOPIC or TOPIC@PROFILE [default: the connector's own topic, and global].",
)
@pass_app
def log(app: App, connector: str, *, partitions: tuple[str, ...], store: str | None) -> Report:
    """Every version of a connector's offsets that the log still has, with what became of its transaction.

    Each offset that a task commits is a record; the older ones stay in the log until compaction removes them, and
    where some are gone, that is said. An aborted version never counted; an open one lies behind a transaction that has
    not ended. Of Debezium, JDBC, FileStream and MirrorMaker 2 a version that lies before the committed one before it
    is marked: from there the source was read again, unless a deletion (reset) lies in between. `offsets set --as-of`
    puts a connector back to a version. Reads each topic twice, and holds only this connector's records. Exit code 1
    when there is no such source partition. Needs Kafka 0.11 or newer.

    Example: eosctl offsets log -b kafka:9092 --connector orders-source --partition '{"filename":"/data/orders"}'
    """
    from eosctl.offsets.history.log import LogQuery, log_offsets

    return log_offsets(app, LogQuery(connector, partitions, store))
