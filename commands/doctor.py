"""`eosctl doctor`: parses, calls one operation, returns its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from eosctl.app import App
from eosctl.report import Report

from .frame.options import EosctlCommand, pass_app, validation_option

if TYPE_CHECKING:
    from eosctl.checks.ignored import IgnoredFinding

if TYPE_CHECKING:
    pass


@click.command("doctor", cls=EosctlCommand)
@click.option("--strict", is_flag=True, help="Warnings, and checks that could not run, are findings too.")
@click.option(
    "--expect", "expected", type=click.Choice(["enabled", "preparing", "disabled"]),
    help="A worker in another mode is an error (default: expect.mode of the profile).",
)  # fmt: skip
@click.option(
    "--ignore", "ignored", metavar="CODE[:SUBJECT]", multiple=True,
    help="Only count these findings, everywhere or of one subject; repeatable, and added to `ignore` of the profile.",
)  # fmt: skip
@validation_option
@pass_app
def doctor(app: App, *, strict: bool, validate: bool, expected: str | None, ignored: tuple[str, ...]) -> Report:
    """Every check there is, and what to do first.

    The first line says what the group is: how many workers are enabled, how many source tasks are not exactly-once.
    No enabled worker is an error where task-count records say that there were some; --expect says what is meant.
    Looks at the workers and their modes, the gates of the upgrade, hanging transactions, what FAILED tasks died of (and
    whether eosctl fenced them from this machine), task-count records, source connectors and each of their tasks (also
    whether it, or its worker, has committed nothing for five minutes), connectors at rest, offsets topics, brokers that
    are down, replicas that are not in sync, replication and rights. The worst comes first, each with what mends it;
    offsets that tasks do not see, or that went back, come before all that restarts something. A check that can't run is
    a row too (not_checked, with the reason); rights are checked where the workers' files (-w) name the principals.
    Changes nothing; but source connectors validate their configs, for which some log in to their databases
    (--no-validate leaves it out). What is accepted for good, say few_replicas:__transaction_state where there is one
    broker, is left to --ignore: it is counted, listed by -o wide and -o json, and changes no exit code. What follows
    from a broker or a worker that does not answer stands below it, a Kafka that can't be reached is one row, and of
    many findings alike there is one. Exit code 3 when a finding is an error (with --strict, also for a warning), else 7
    when a check could not run; 1 for a group of which nothing is known. Needs Kafka Connect 3.3 and brokers of 3.0 or
    newer.

    Example: eosctl doctor -b kafka:9092 -g connect-cluster -w worker.properties -o json
    """
    from eosctl.checks.plan import examine
    from eosctl.core.workers.modes import Mode

    wanted = expected or app.target.expect.get("mode")
    mode = Mode(wanted) if wanted else None
    return examine(app, strict=strict, validate=validate, expected=mode, ignore=_to_ignore(app, ignored))


def _to_ignore(app: App, given: Sequence[str]) -> Sequence[IgnoredFinding]:
    if not given and not app.target.ignore:
        return ()
    from eosctl.checks.ignored import to_ignore
    from eosctl.explain.entries import finding_codes

    return to_ignore(app.target, given, finding_codes())
