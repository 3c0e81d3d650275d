"""`eosctl metrics`: parses, calls one operation, returns its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .frame.options import EosctlCommand, pass_app

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report


@click.command("metrics", cls=EosctlCommand)
@click.option("--prometheus", multiple=True, metavar="URL", help="An endpoint for Prometheus (repeatable).")
@click.option("--jolokia", multiple=True, metavar="URL", help="A Jolokia agent, http://HOST:8778/jolokia (repeatable).")
@click.option("--connector", "connectors", multiple=True, metavar="NAME", help="Only this connector (repeatable).")
@click.option(
    "--wide", type=click.IntRange(min=1), default=100_000, show_default=True, metavar="RECORDS",
    help="Report transactions with more records than this.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Exit 3 on warnings, too.")
@pass_app
def metrics(
    app: App,
    prometheus: tuple[str, ...],
    jolokia: tuple[str, ...],
    connectors: tuple[str, ...],
    wide: int,
    strict: bool,
) -> Report:
    """Show how large the transactions of source tasks are.

    An exactly-once task commits its records in transactions, as its transaction.boundary says. A boundary that is too
    wide makes read_committed consumers wait, and a transaction that outlasts its timeout is aborted: the task fails.
    The worker that runs a task keeps the sizes of its committed transactions of about the last minute (MBeans
    kafka.connect:type=source-task-metrics); name the endpoint of each worker. The metric names of jmx_exporter are
    recognised, with any prefix, if connector and task are labels.

    With -b and -g the coordinators add each task's own timeout, and how long its present transaction has been open; a
    transaction near its timeout is an error, exit code 3. A size of - means that nothing was committed lately, or that
    the task is not exactly-once. Needs Kafka Connect 3.3. ACLs: with -b and -g, DESCRIBE on the tasks'
    TransactionalIds.

    Example: eosctl metrics --prometheus http://w1:9404/metrics --prometheus http://w2:9404/metrics
    """
    from eosctl.checks.workers import MetricsRequest, read_metrics

    return read_metrics(app, MetricsRequest(prometheus, jolokia, connectors, wide), strict=strict)
