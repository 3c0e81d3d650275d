"""`eosctl offsets log`: parses, calls one operation, returns its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..frame.options import EosctlCommand, pass_app

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report

SNAPSHOTS = click.option(
    "--snapshots",
    type=click.Path(exists=True, path_type=Path),
    metavar="DIR|FILE",
    help="Also read the snapshots in this folder, or this one [default: those in eosctl's state directory].",
)


@click.command("log", cls=EosctlCommand)
@click.option("--connector", required=True, metavar="NAME", help="The source connector.")
@click.option("--partition", "partitions", multiple=True, metavar="JSON", help="A source partition (repeatable).")
@click.option(
    "--store",
    metavar="STORE",
    help="Only this log: global, dedicated, TOPIC or TOPIC@PROFILE [default: the connector's own topic, and global].",
)
@SNAPSHOTS
@pass_app
def log(app: App, connector: str, *, partitions: tuple[str, ...], store: str | None, snapshots: Path | None) -> Report:
    """Show every version of a connector's offsets that the log still has, and the outcome of its transaction.

    Each offset that a task commits is a record; the older ones stay in the log until compaction removes them. Removed
    versions are reported. Those that a snapshot of this cluster and group has (`offsets snapshot`) are shown with its
    file; one of a former topic of the same name has that topic's id. Between a version that only a snapshot has and the
    next one others may be missing. An aborted version never counted; an open one belongs to a transaction that has not
    ended. For Debezium, JDBC, FileStream and MirrorMaker 2, a version that is behind the committed version before it is
    marked: from there the source was read again, unless a deletion (reset) lies in between. `offsets set --as-of`
    returns a connector to a version. Each topic is read twice, and only this connector's records are kept in memory.
    The exit code is 1 if the source partition does not exist. Needs Kafka 0.11 or newer.

    Example: eosctl offsets log -b kafka:9092 --connector orders-source --partition '{"filename":"/data/orders"}'
    """
    from eosctl.offsets.history.log import LogQuery, log_offsets
    from eosctl.offsets.snapshots.file import snapshot_folder

    return log_offsets(app, LogQuery(connector, partitions, store, snapshots or snapshot_folder(app)))
