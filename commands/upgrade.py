"""`eosctl upgrade`: parses, calls one operation, returns its report."""

from __future__ import annotations

import click

from eosctl.ops.app import App
from eosctl.report import Report

from .options import EosctlGroup, pass_app


@click.group("upgrade", cls=EosctlGroup)
def upgrade() -> None:
    """The two-step upgrade to exactly-once, and the way back.

    A group reaches exactly-once in two rolling restarts: first every worker gets exactly.once.source.support=preparing
    (the leader then writes with transactions, so that an old leader can be fenced out), and only when all of them have
    it, every worker gets enabled. Connect does not enforce this: one worker that is left behind, or enabled too early,
    and nothing is exactly-once, whatever REST says.
    """


@upgrade.command("plan")
@click.option(
    "--to",
    "target",
    required=True,
    type=click.Choice(["preparing", "enabled", "disabled"]),
    help="The mode that every worker shall have.",
)
@pass_app
def plan_command(app: App, target: str) -> Report:
    """Which workers to restart, in which order, and what has to be true before.

    Changes nothing. Each gate is pass, fail or unknown, with its evidence. Exit code 3 when a gate fails; unknown
    gates alone are exit code 0. Give the workers' files (-w) so that preparing and disabled can be told apart. Needs
    Kafka Connect 3.3 or newer.

    Example: eosctl upgrade plan --to enabled -b kafka:9092 -g connect-cluster
    """
    from eosctl.core.upgrade import Mode
    from eosctl.ops.upgrade import plan_upgrade

    return plan_upgrade(app, Mode(target))
