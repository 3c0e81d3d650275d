"""`eosctl connectors`: parses, calls one operation, returns its report."""

from __future__ import annotations

import click

from eosctl.ops.app import App
from eosctl.report import Report

from .options import EosctlGroup, pass_app, validation_option


@click.group("connectors", cls=EosctlGroup)
def connectors() -> None:
    """Whether source connectors can be, and really are, exactly-once.

    Connect can run a source connector exactly-once only if the connector itself can (exactlyOnceSupport), if its
    transactions fit their timeouts, and if the worker that runs a task is enabled. Of the last REST says nothing: a
    task on a worker that was left behind is RUNNING and writes without transactions.
    """


@connectors.command("check")
@click.option("--connector", "names", multiple=True, metavar="NAME", help="Only this one (repeatable).")
@click.option("--strict", is_flag=True, help="Warnings are findings too.")
@validation_option
@pass_app
def check_command(app: App, names: tuple[str, ...], *, strict: bool, validate: bool) -> Report:
    """Find what keeps source connectors and their tasks from being exactly-once.

    Per connector: whether it declares support with its present config, its transaction boundary, the transaction
    timeout against the boundary's interval and the brokers' maximum, its own offsets topic, property names that do
    nothing, ids that another group uses too, and how long Connect needs to fence its tasks. Per task: a RUNNING task
    whose transactional id no coordinator knows is not exactly-once, and one that has committed nothing for five
    minutes may not get at its source. A connector that writes to another Kafka cluster is looked at there, and so is
    what its offsets need to be found there. What could not be looked at is a warning. Exit code 3 when a finding is an
    error; with --strict, also for a warning. Changes nothing; but to learn of its support each connector validates its
    config, for which some log in to their databases (--no-validate leaves it out). Needs Kafka Connect 3.3 and brokers
    of 3.0 or newer.

    Example: eosctl connectors check --connector orders -b kafka:9092 -g connect-cluster
    """
    from eosctl.ops.connectors import check_connectors

    return check_connectors(app, names, strict=strict, validate=validate)
