"""`eosctl upgrade`: parses, calls one operation, returns its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eosctl.core.allowances import Waiver
from eosctl.errors import UsageError

from ..frame.options import EosctlGroup, pass_app, pass_request, report_option, validation_option, waivers
from .apply import apply_command
from .kubernetes_options import PodOptions, place_options, pod_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report


@click.group("upgrade", cls=EosctlGroup)
def upgrade() -> None:
    """Upgrade a group to exactly-once in two steps, or go back.

    A group reaches exactly-once in two rolling restarts, the two-step upgrade: first every worker gets
    exactly.once.source.support=preparing (the leader then writes with transactions, so that an old leader can be fenced
    out), and only when all workers have it, every worker gets enabled. Connect does not enforce this: if one worker is
    left behind or enabled too early, nothing is exactly-once, whatever REST reports.
    """


@upgrade.command("plan")
@click.option(
    "--to",
    "target",
    type=click.Choice(["preparing", "enabled", "disabled"]),
    help="Target mode for every worker; only --plugins goes without.",
)
@click.option(
    "--plugins",
    "folders",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Check the plugins in this entry of plugin.path for --kafka (repeatable).",
)
@click.option("--kafka", metavar="VERSION", help="With --plugins: the version of Kafka that the plugins are to run on.")
@click.option(
    "--hard",
    is_flag=True,
    help="With --to disabled: also plan for an older Connect (offsets to copy, records to repair).",
)
@click.option(
    "--plan-out", type=click.Path(path_type=Path, dir_okay=False), help="Write the plan to this file, for `apply`."
)
@validation_option
@place_options("also check the gates of `apply --driver kubernetes` (repeatable).")
@pod_options()
@pass_app
@pass_request(PodOptions)
def plan_command(
    app: App,
    pods: PodOptions,
    *,
    target: str | None,
    folders: tuple[Path, ...],
    kafka: str | None,
    hard: bool,
    plan_out: Path | None,
    validate: bool,
) -> Report:
    """Plan which workers to restart in which order, and check the gates.

    Nothing is changed, but each source connector validates its config, and some log in to their databases to do so
    (--no-validate skips this). Each gate is pass, fail or unknown, with its evidence. The exit code is 3 if a gate
    fails; unknown gates alone give exit code 0, although those that guard data stop `apply`, as the plan says. Give the
    workers' files (-w) to distinguish preparing from disabled, and to compare the rights of the users that they name
    with the cluster's ACLs. --hard adds what an older Connect needs: offsets to copy, aborted records to repair, one
    rolling restart or two. With --workload, kubectl is asked whether `apply --driver kubernetes` may begin: three more
    gates. Needs Kafka Connect 3.3 or newer.

    --plugins and --kafka add a gate before an upgrade of Kafka itself: do the plugins in these folders name classes or
    methods that the new version lacks? The folders are read as Connect reads plugin.path, without Java. Kafka's own
    classes in a plugin's jars, plugins in two versions, and jars that can't be read are reported, too. Without --to
    only the plugins are checked, and no cluster is needed; the exit code is then 3 if one does not fit, else 7 if that
    is not known of one.

    \b
    Example: eosctl upgrade plan --to enabled -b kafka:9092 -g connect-cluster
    Example: eosctl upgrade plan --plugins /opt/connect/plugins --kafka 4.4.0
    """
    from eosctl.core.workers.modes import Mode
    from eosctl.plugins.look import NamedPlugins, check_plugins
    from eosctl.upgrade.plan import plan_upgrade

    if bool(folders) != bool(kafka):
        raise UsageError("--plugins and --kafka go together", hint="Give both, or neither.")
    plugins = NamedPlugins(folders, kafka) if kafka else None
    if target is not None:
        driver = pods.kubernetes_driver(app)
        return plan_upgrade(
            app, Mode(target), hard=hard, plan_out=plan_out, validate=validate, driver=driver, plugins=plugins
        )
    if plugins is None:
        raise UsageError("--to is missing", hint="Give --to MODE; only --plugins with --kafka goes without.")
    return check_plugins(app, plugins)


@upgrade.command("status")
@pass_app
def status_command(app: App) -> Report:
    """Show each worker's mode with its evidence, and the progress of an upgrade.

    Nothing is changed. Needs Kafka Connect 3.3 or newer.

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
    help="Target mode for every worker.",
)
@waivers(Waiver.ACCEPT_GATE, multiple=True, metavar="GATE")
@place_options("also compare its pods with the members (repeatable).")
@report_option
@pass_app
@pass_request(PodOptions)
def verify_command(app: App, pods: PodOptions, *, target: str, accept_gate: tuple[str, ...]) -> Report:
    """Verify that every worker runs in the target mode and every gate passes.

    The exit code is 0 only if every worker provably runs in that mode and every gate passes; else 3, with findings; 7
    if nothing is against it but a rebalance that lasts, which hides the members.
    Nothing is changed, but each source connector validates its config, and some log in to their databases to do so. An
    unknown gate counts as failed, except rights_granted, which is then a warning, as not everybody may read ACLs. Each
    gate that --accept-gate names is a warning, too; --accept-gate modes_proven accepts modes that nothing proves, or
    that only a file reports. preparing and disabled can be proven only by the workers' files (-w), or if eosctl
    restarted the worker last. With --workload each member must be in one of its pods, and each pod must have a member.
    Needs Kafka Connect 3.3 or newer.

    Example: eosctl upgrade verify --to enabled -b kafka:9092 -g connect-cluster
    """
    from eosctl.core.workers.modes import Mode
    from eosctl.upgrade.status import verify_upgrade

    driver = pods.named_workloads(app)
    return verify_upgrade(app, Mode(target), accepted=frozenset(accept_gate), driver=driver)


upgrade.add_command(apply_command)
