"""`eosctl exporter`: parses, calls one operation, returns its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..frame.options import Duration, EosctlGroup
from ..frame.session import Session
from .exporter_files import dashboard, rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eosctl.app import App
    from eosctl.checks.ignored import IgnoredFinding
    from eosctl.report import Report


@click.group("exporter", cls=EosctlGroup, invoke_without_command=True)
@click.option(
    "--listen", default="127.0.0.1:9618", show_default=True, metavar="HOST:PORT",
    help="Where to serve /metrics, /healthz and /readyz; [::1]:PORT for IPv6, :PORT for every address.",
)  # fmt: skip
@click.option(
    "--interval", type=Duration(), default="30s", show_default=True, metavar="DURATION",
    help="How often to collect from the cluster; expensive sources are collected several times less often.",
)  # fmt: skip
@click.option(
    "--top", type=click.IntRange(min=1), default=50, show_default=True, metavar="N",
    help="Export the N worst series of each metric, and one named `other` for the rest.",
)  # fmt: skip
@click.option(
    "--web-config-file", metavar="FILE",
    help="TLS and basic authentication, in the web-config format of Prometheus exporters; reread when it changes.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Collect once, print the metrics, and exit.")
@click.option(
    "--textfile", metavar="FILE",
    help="With --once: write them to this file instead, for node_exporter's textfile collector.",
)  # fmt: skip
@click.pass_context
def exporter(
    ctx: click.Context,
    *,
    listen: str,
    interval: float,
    top: int,
    web_config_file: str | None,
    once: bool,
    textfile: str | None,
) -> Report | None:
    """Serve metrics about exactly-once for Prometheus.

    The metrics cover open transactions and their owners, hanging ones, the distance from the last stable offset to the
    end of topics, the mode of each worker, tasks without a transaction, fencing that is due, the age of source offsets,
    and the findings of `eosctl doctor`. Each source is collected separately, with its own deadline: if it is slow or a
    right is missing, eosctl_collection_error shows it, and no other source is delayed. If the cluster is down,
    eosctl_up is 0, and the exporter keeps running. A scrape never waits for the cluster, and nothing is ever written to
    it.

    /readyz answers 200 once each source except doctor was collected, and after one --interval at the latest.

    Ends with exit code 0 after SIGTERM, and 130 after Ctrl-C. With --once the exit code is 0, 4 if Kafka did not
    answer, or 7 if another source failed; --textfile replaces its file as a whole. Needs Kafka 3.0 and Connect 3.3.

    Example: eosctl exporter -b kafka:9092 -g connect-cluster --listen 127.0.0.1:9618
    """
    if ctx.invoked_subcommand is not None:
        return None
    from eosctl.exporter.server import ExporterRequest, run_exporter

    app = ctx.ensure_object(Session).app()
    request = ExporterRequest(listen, interval, once, textfile, top, web_config_file)
    return run_exporter(app, request, ignore=_accepted(app))


exporter.add_command(rules)
exporter.add_command(dashboard)


def _accepted(app: App) -> Sequence[IgnoredFinding]:
    """Return the findings that the profile's `ignore` names."""
    if not app.target.ignore:
        return ()
    from eosctl.checks.ignored import to_ignore
    from eosctl.explain.entries import finding_codes

    return to_ignore(app.target, (), finding_codes())
