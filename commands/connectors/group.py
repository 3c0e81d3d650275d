"""`eosctl connectors`: parses, calls one operation, returns its report. Some leaves have their own module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import click

from ..frame.confirm import run_plan
from ..frame.options import LazyGroup, pass_app, validation_option, write_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report


class ConnectorsGroup(LazyGroup):
    """Load the longer commands from their modules."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "apply": "apply:apply_command",
        "create": "create",
        "diff": "diff",
        "move": "move",
    }


@click.group("connectors", cls=ConnectorsGroup)
def connectors() -> None:
    """Check, create, change, move and stop connectors.

    Connect can run a source connector exactly-once only if the connector itself can (exactlyOnceSupport), if its
    transactions fit their timeouts, and if the worker that runs a task is enabled. REST does not report the last: a
    task on a worker that is not enabled is RUNNING and writes without transactions.
    """


@connectors.command("check")
@click.option("--connector", "names", multiple=True, metavar="NAME", help="Only this connector (repeatable).")
@click.option("--strict", is_flag=True, help="Exit 3 on warnings, too.")
@validation_option
@pass_app
def check_command(app: App, names: tuple[str, ...], *, strict: bool, validate: bool) -> Report:
    """Find what keeps source connectors and their tasks from being exactly-once.

    Per connector: whether it declares support with its present config, its transaction boundary, the transaction
    timeout against the boundary's interval and the brokers' maximum, its own offsets topic, property names that do
    nothing, ids that another group uses too, and how long Connect needs to fence its tasks. Per task: one on a worker
    that is not enabled is not exactly-once, nor is one that was started lately and whose transactional id no
    coordinator knows; one whose transaction was aborted at its timeout can't write any more. A task that has committed
    nothing for five minutes is only reported as information: its source may be idle. A connector that writes to another
    Kafka cluster is checked there, with what its offsets need there. The exit code is 3 if a finding is an error (with
    --strict, also a warning), else 7 if something could not be seen (data.unseen names it). Nothing is changed, but
    each connector validates its config to report its support, and some log in to their databases to do so
    (--no-validate skips this). Needs Kafka Connect 3.3 and brokers of 3.0 or newer.

    Example: eosctl connectors check --connector orders -b kafka:9092 -g connect-cluster
    """
    from eosctl.checks.connectors import check_connectors

    return check_connectors(app, names, strict=strict, validate=validate)


@connectors.command("trace")
@click.argument("connector")
@pass_app
def trace_command(app: App, connector: str) -> Report:
    """Show why each FAILED part of a connector failed.

    For the connector itself and each task that is FAILED: the exceptions of its stack trace from the outermost to the
    deepest cause, what they mean if eosctl knows them, and what to do. `-o json` has the whole trace as the worker has
    it. The exit code is 0 even if something is FAILED. A worker is enough: -u without -b and -g. Works with any version
    of Kafka Connect.

    Example: eosctl connectors trace orders-source -b kafka:9092 -g connect-cluster
    """
    from eosctl.connectors.change import show_traces

    return show_traces(app, connector)


@connectors.command("stop")
@click.argument("connector")
@write_options
@pass_app
def stop_command(app: App, connector: str, yes: bool, dry_run: bool) -> Report:
    """Stop a connector and wait until no worker runs a task of it.

    The connector keeps its config and its offsets, and has no tasks until it is resumed. Connect reports STOPPED before
    the tasks have ended, so this command waits until no member of the group holds one; that needs -b and -g (with -u
    alone it relies on REST). The audit log has the command that restores the former state. For sources and sinks.
    Needs Kafka Connect 3.5 or newer (KIP-875).

    Example: eosctl connectors stop orders-source -b kafka:9092 -g connect-cluster --dry-run
    """
    return _change(app, connector, "stop", yes=yes, dry_run=dry_run)


@connectors.command("pause")
@click.argument("connector")
@write_options
@pass_app
def pause_command(app: App, connector: str, yes: bool, dry_run: bool) -> Report:
    """Pause a connector and its tasks, and wait until they are PAUSED.

    The tasks stay on their workers and keep their transactional ids; `eosctl connectors stop` ends them. What is FAILED
    stays FAILED. The audit log has the command that restores the former state. For sources and sinks. Works with any
    version of Kafka Connect.

    Example: eosctl connectors pause orders-source -b kafka:9092 -g connect-cluster --dry-run
    """
    return _change(app, connector, "pause", yes=yes, dry_run=dry_run)


@connectors.command("resume")
@click.argument("connector")
@write_options
@pass_app
def resume_command(app: App, connector: str, yes: bool, dry_run: bool) -> Report:
    """Start a connector that is stopped or paused, and wait until its tasks run.

    It waits until connector and tasks are RUNNING or FAILED. If something is FAILED, the exit code is 1 and the cause
    is shown. RUNNING means that a task was started; it may fail at its first record. What was FAILED before stays
    FAILED: see `eosctl connectors restart`. A connector that `eosctl connectors move` has taken to another group is not
    resumed here: it would run twice. Nor is one whose `eosctl connectors create` was cut off before Connect was seen to
    find its offsets: it could start over. The audit log has the command that restores the former state. For sources and
    sinks. Works with any version of Kafka Connect.

    Example: eosctl connectors resume orders-source -b kafka:9092 -g connect-cluster --dry-run
    """
    from eosctl.move.sides import prepare_resume

    return run_plan(prepare_resume(app, connector), yes=yes, dry_run=dry_run)


@connectors.command("restart")
@click.argument("connector")
@click.option("--failed", is_flag=True, help="Restart only what is FAILED: the connector itself, its tasks, or both.")
@write_options
@pass_app
def restart_command(app: App, connector: str, failed: bool, yes: bool, dry_run: bool) -> Report:
    """Restart a connector and its tasks, and wait until they run.

    It waits until what was restarted is RUNNING or FAILED again. If something is FAILED, the exit code is 1 and the
    cause is shown. RUNNING means that a task was started; it may fail at its first record. Before the tasks of an
    exactly-once source start, Connect fences the former ones: give more --timeout if there are many. A restart can't
    be undone. For sources and sinks. Needs Kafka Connect 3.0 or newer (KIP-745).

    Example: eosctl connectors restart orders-source --failed -b kafka:9092 -g connect-cluster --dry-run
    """
    return _change(app, connector, "restart", only_failed=failed, yes=yes, dry_run=dry_run)


def _change(app: App, connector: str, verb: str, *, yes: bool, dry_run: bool, only_failed: bool = False) -> Report:
    """Plan a change of a connector, ask and apply: the same for all four commands."""
    from eosctl.connectors.change import prepare_change
    from eosctl.connectors.rows import Verb

    return run_plan(prepare_change(app, connector, Verb(verb), only_failed=only_failed), yes=yes, dry_run=dry_run)
