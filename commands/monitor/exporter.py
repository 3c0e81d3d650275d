"""`eosctl exporter`: parses, calls one operation, returns its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from eosctl.app import App
from eosctl.report import Report

from ..frame.options import Duration, EosctlGroup
from ..frame.session import Session
from .exporter_files import dashboard, rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eosctl.checks.ignored import IgnoredFinding


@click.group("exporter", cls=EosctlGroup, invoke_without_command=True)
@click.option(
    "--listen", default="127.0.0.1:9618", show_default=True, metavar="HOST:PORT",
    help="Where to serve /metrics, /healthz and /readyz; [::1]:PORT for IPv6, :PORT for every address.",
)  # fmt: skip
@click.option(
    "--interval", type=Duration(), default="30s", show_default=True, metavar="DURATION",
    help="How often the cluster is looked at; what is expensive, several times less often.",
)  # fmt: skip
@click.option(
    "--top", type=click.IntRange(min=1), default=50, show_default=True, metavar="N",
    help="Series per metric with many subjects: the N worst, and one called other for the rest.",
)  # fmt: skip
@click.option(
    "--web-config-file", metavar="FILE",
    help="TLS and basic authentication, by the web-config file of Prometheus' exporters; read again when it changes.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Look once, print the metrics, and end.")
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

    Open transactions and their owners, hanging ones, the distance from the last stable offset to the end of topics,
    the mode of each worker, tasks without a transaction, fencing that is due, the age of source offsets, and the
    findings of `eosctl doctor`. Each source is looked at by itself, with a deadline of its own: one that is slow, or
    for which a right is missing, is a metric (eosctl_collection_error) and holds up no other. A cluster that is down
    is eosctl_up 0, and no reason to end. A scrape never waits for the cluster, and nothing is ever written there.

    /readyz answers 200 once each source but doctor was looked at, and after one --interval at the latest.

    Ends with exit code 0 after SIGTERM, and 130 after Ctrl-C. With --once the exit code is 0, 4 if Kafka did not
    answer, or 7 if another source failed; --textfile replaces its file as a whole. Needs Kafka 3.0 and Connect 3.3.

    Example: eosctl exporter -b kafka:9092 -g connect-cluster --listen 127.0.0.1:9618
    """
    if ctx.invoked_subcommand is not None:
        return None
    from eosctl.exporter.serve import ExporterRequest, run_exporter

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
