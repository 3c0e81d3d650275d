"""`eosctl upgrade`: parses, calls one operation, returns its report."""

from __future__ import annotations

from pathlib import Path

import click

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.report import Report

from ..frame.options import EosctlGroup, pass_app, pass_request, validation_option, waivers
from .apply import apply_command
from .kubernetes_options import PodOptions, place_options, pod_options


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
@click.option("--hard", is_flag=True, help="Also what an older Connect needs: offsets, repairs (with --to disabled).")
@click.option(
    "--plan-out", type=click.Path(path_type=Path, dir_okay=False), help="Write the plan to a file for `apply`."
)
@validation_option
@place_options("also judge the gates of `apply --driver kubernetes` (repeatable).")
@pod_options()
@pass_app
@pass_request(PodOptions)
def plan_command(
    app: App, pods: PodOptions, *, target: str, hard: bool, plan_out: Path | None, validate: bool
) -> Report:
    """Which workers to restart, in which order, and what has to be true before.

    Changes nothing; but each source connector validates its config, for which some log in to their databases
    (--no-validate leaves it out). Each gate is pass, fail or unknown, with its evidence. Exit code 3 when a gate fails;
    unknown gates alone are exit code 0, though those that guard data stop `apply`, and the plan says so. Give the
    workers' files (-w) so that preparing and disabled can be told apart, and the rights of the users that they name be
    held against the cluster's ACLs. --hard adds what going back to an older Connect takes: offsets to copy, aborted
    records to repair, one roll or two. With --workload, kubectl is asked
    whether `apply --driver kubernetes` may begin: three gates more. Needs Kafka Connect 3.3 or newer.

    Example: eosctl upgrade plan --to enabled -b kafka:9092 -g connect-cluster
    """
    from eosctl.core.workers.modes import Mode
    from eosctl.upgrade.plan import plan_upgrade

    driver = pods.kubernetes_driver(app)
    return plan_upgrade(app, Mode(target), hard=hard, plan_out=plan_out, validate=validate, driver=driver)


@upgrade.command("status")
@pass_app
def status_command(app: App) -> Report:
    """Each worker's mode, what that rests on, and where an upgrade under way stands.

    Changes nothing. Needs Kafka Connect 3.3 or newer.

    Example: eosctl upgrade status -b kafka:9092 -g connect-cluster
    """
    from eosctl.upgrade.status import upgrade_status

    return upgrade_status(app)


@upgrade.command("verify")
@click.option(
    "--to",
    "target",
    required=True,
    type=click.Choice(["preparing", "enabled", "disabled"]),
    help="The mode that every worker shall have.",
)
@waivers(Waiver.ACCEPT_GATE, multiple=True, metavar="GATE")
@place_options("also hold its pods against the members (repeatable).")
@pass_app
@pass_request(PodOptions)
def verify_command(app: App, pods: PodOptions, *, target: str, accept_gate: tuple[str, ...]) -> Report:
    """Exit code 0 only if every worker provably runs in that mode and every gate passes; else 3, with findings.

    Changes nothing; but each source connector validates its config, for which some log in to their databases. A gate
    that can't be told counts as one that fails; but rights_granted is a warning then, for ACLs are not everybody's to
    see, and so is each gate that --accept-gate names; modes_proven among them takes modes that nothing proves, or that
    only a file tells. preparing and disabled can be proven by the workers' files only (-w), or while an upgrade of
    eosctl's own is the last that happened to the worker. With --workload each member must be in one of its pods, and
    each pod must have a member. Needs Kafka Connect 3.3 or newer.

    Example: eosctl upgrade verify --to enabled -b kafka:9092 -g connect-cluster
    """
    from eosctl.core.workers.modes import Mode
    from eosctl.upgrade.status import verify_upgrade

    driver = pods.named_workloads(app)
    return verify_upgrade(app, Mode(target), accepted=frozenset(accept_gate), driver=driver)


upgrade.add_command(apply_command)
