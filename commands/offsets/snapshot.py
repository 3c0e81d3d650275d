"""`eosctl offsets snapshot`: parses, calls one operation, returns its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..frame.options import Duration, EosctlCommand, pass_app
from ..frame.session import Session

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report


@click.command("snapshot", cls=EosctlCommand)
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@click.option("--connector", "connectors", multiple=True, metavar="NAME", help="Only this connector (repeatable).")
@click.option(
    "--store", "stores", multiple=True, metavar="STORE",
    help="Only this store: global, dedicated or TOPIC (repeatable) [default: the global topic, and every own one].",
)  # fmt: skip
@click.option(
    "--every", type=Duration(), metavar="DURATION", help="Stay, and make one each period: 1h. Without it: one, now."
)
@click.option(
    "--keep", type=click.IntRange(min=1), metavar="N",
    help="Then remove the oldest snapshots of the same cluster, group, offsets topic and options beyond N.",
)  # fmt: skip
@pass_app
def snapshot(
    app: App,
    folder: Path | None,
    *,
    connectors: tuple[str, ...],
    stores: tuple[str, ...],
    every: float | None,
    keep: int | None,
) -> Report:
    """Keep the group's committed offsets in a file, beyond compaction.

    A snapshot is one record file: the newest committed record of each key and partition of the global offsets topic and
    of every connector's own, deletions included, byte for byte; its first line names the cluster, the group, the
    topics and the time. It is written to DIR (default: snapshots in eosctl's state directory), readable by its owner
    only, and gets its name when it is whole. Without a new record since the last snapshot nothing is written, if that
    file is still whole: the outcome is unchanged.

    `offsets log` shows the versions in snapshots beside those of the topics, and `offsets set --as-of` returns a
    connector to them. `offsets import`, `restore` and `diff` read one like any record file.

    With --every it goes on until it is ended: exit code 0 after SIGTERM, 130 after Ctrl-C. A round that fails is
    reported, and the next one is tried. --keep counts only files that eosctl made of the same cluster, group, offsets
    topic, connectors and stores; the newest complete one that is whole is never removed. The exit code is 7 if
    something could not be seen: a topic without the right to read it, an own topic that is not known or on other
    brokers, or records behind an open transaction; the file's first line names it. Needs Kafka 0.11 or newer.

    \b
    Example:
      eosctl offsets snapshot -b kafka:9092 -g connect-cluster
      eosctl offsets snapshot -p prod /var/lib/offsets --every 1h --keep 48
    """
    from eosctl.offsets.snapshots.take import SnapshotRequest, take_snapshots

    session = click.get_current_context().ensure_object(Session)
    request = SnapshotRequest(folder, connectors, stores, every, keep)
    return session.without_printed_rows(take_snapshots(app, request, session.row_printer()))
