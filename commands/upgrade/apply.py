"""`eosctl upgrade apply`: parses, picks the driver, calls one operation, returns its report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eosctl.core.allowances import Waiver
from eosctl.errors import UsageError

from ..frame.confirm import run_plan
from ..frame.options import Duration, EosctlCommand, pass_app, pass_request, waivers, write_options
from ..frame.session import read_text_file
from .kubernetes_options import PodOptions, place_options, pod_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report
    from eosctl.upgrade.drivers import Driver

# option -> the drivers that take it
_DRIVER_OPTIONS = {
    "set_config_command": ("command",),
    "restart_command": ("command",),
    "properties_file": ("command", "systemd"),
    "unit": ("systemd",),
    "ssh": ("systemd",),
    "sudo": ("systemd",),
    "workload": ("kubernetes",),
    "namespace": ("kubernetes",),
    "context": ("kubernetes",),
    "kubeconfig": ("kubernetes",),
    "env_name": ("kubernetes",),
    "container": ("kubernetes",),
    "configmap": ("kubernetes",),
    "key": ("kubernetes",),
    "no_write": ("kubernetes",),
    "sandbox": ("sandbox",),
}
_NEEDED = {"command": ("restart_command",), "systemd": ("unit", "properties_file"), "kubernetes": ("workload",)}


class DriverOptions(PodOptions, frozen=True):
    """The options of the driver, which changes and restarts the workers."""

    driver_name: str = "print"
    set_config_command: str | None = None
    restart_command: str | None = None
    properties_file: str | None = None
    unit: str | None = None
    ssh: str | None = None
    sudo: bool | None = None
    no_write: bool | None = None
    print_patch: bool = False
    with_secrets: bool = False
    sandbox: str | None = None

    def words(self) -> Iterator[str]:
        """Yield the driver's options as they were given, for commands that resume or undo."""
        for option in _DRIVER_OPTIONS:
            given = getattr(self, option)
            for value in given if isinstance(given, tuple) else (given,):
                if value is not None:
                    yield _flag(option)
                if isinstance(value, str):
                    yield value

    def driver(self, app: App) -> Driver:
        """Return the driver with its own options; raise UsageError for a missing option, and for another driver's."""
        name = self.driver_name
        for option, drivers in _DRIVER_OPTIONS.items():
            if self._has(option) and name not in drivers:
                raise UsageError(f"{_flag(option)} is for --driver {' or '.join(drivers)}, not for {name}")
        if self.print_patch and name != "kubernetes":
            raise UsageError(f"--print-patch is for --driver kubernetes, not for {name}")
        if self.with_secrets and not self.print_patch:
            raise UsageError("--with-secrets is for --print-patch")
        missing = [_flag(option) for option in _NEEDED.get(name, ()) if not self._has(option)]
        if missing:
            raise UsageError(f"--driver {name} needs {' and '.join(missing)}")
        made: Driver | None = _MAKERS[name](self, app)
        if made is None:  # no workload, which was refused above
            raise UsageError(f"--driver {name} needs --workload")
        return made

    def _has(self, option: str) -> bool:
        return getattr(self, option) not in (None, ())


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _print_driver(_options: DriverOptions, _app: App) -> Driver:
    from eosctl.upgrade.drivers.commands import PrintDriver

    return PrintDriver()


def _command_driver(options: DriverOptions, _app: App) -> Driver:
    from eosctl.upgrade.drivers.commands import CommandDriver

    return CommandDriver(str(options.restart_command), options.set_config_command, options.properties_file)


def _systemd_driver(options: DriverOptions, _app: App) -> Driver:
    from eosctl.upgrade.drivers.systemd import SystemdDriver

    return SystemdDriver(str(options.unit), str(options.properties_file), options.ssh, bool(options.sudo))


def _kubernetes_driver(options: DriverOptions, app: App) -> Driver | None:
    return options.kubernetes_driver(app, watches=bool(options.no_write or options.print_patch))


def _sandbox_driver(options: DriverOptions, app: App) -> Driver:
    from eosctl.upgrade.drivers.sandboxes import SandboxDriver

    return SandboxDriver(app.state_dir / "sandbox" / (options.sandbox or "default"))


_MAKERS: dict[str, Callable[[DriverOptions, App], Driver | None]] = {
    "print": _print_driver,
    "command": _command_driver,
    "systemd": _systemd_driver,
    "kubernetes": _kubernetes_driver,
    "sandbox": _sandbox_driver,
}


@click.command("apply", cls=EosctlCommand)
@click.argument("plan_file", metavar="[PLAN]", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--to",
    "target",
    type=click.Choice(["preparing", "enabled", "disabled"]),
    help="Target mode for every worker, without a PLAN.",
)
@click.option(
    "--driver",
    "driver_name",
    default="print",
    show_default=True,
    type=click.Choice(["print", "command", "systemd", "kubernetes", "sandbox"]),
    help="How to change and restart the workers: see above.",
)
@click.option("--resume", is_flag=True, help="Continue an upgrade that was interrupted or stopped.")
@waivers(Waiver.START_OVER)
@waivers(Waiver.ACCEPT_GATE, multiple=True, metavar="GATE")
@click.option(
    "--settle-timeout", type=Duration(), default="10m", metavar="DURATION", show_default=True,
    help="How long to wait after a restart until everything is as before.",
)  # fmt: skip
@click.option("--set-config-command", metavar="WORDS", help="command: command that sets the mode of one worker.")
@click.option("--restart-command", metavar="WORDS", help="command: command that restarts one worker.")
@click.option(
    "--properties-file", metavar="PATH", help="command, systemd: a worker's properties file, which eosctl edits."
)
@click.option("--unit", metavar="NAME", help="systemd: the worker's unit.")
@click.option("--ssh", metavar="DEST", help="systemd: the worker's host (default: this machine).")
@click.option("--sudo", is_flag=True, default=None, help="systemd: edit and restart with sudo -n, as root.")
@place_options("name all of the group (repeatable).", prefix="kubernetes: ")
@pod_options(prefix="kubernetes: ")
@click.option(
    "--no-write", is_flag=True, default=None,
    help="kubernetes: write nothing; wait until you or your GitOps tool have made each change, and check it.",
)  # fmt: skip
@click.option(
    "--print-patch", is_flag=True,
    help="kubernetes: print the patch of each pass as a kubectl command, and exit; nothing is written.",
)  # fmt: skip
@click.option("--with-secrets", is_flag=True, help="With --print-patch: also print patches that contain passwords.")
@click.option("--sandbox", metavar="NAME", help="sandbox: name of the sandbox (default: default).")
@waivers(Waiver.ACCEPT_GONE, multiple=True, metavar="URL")
@write_options
@pass_app
@pass_request(DriverOptions)
def apply_command(
    app: App,
    by: DriverOptions,
    *,
    plan_file: Path | None,
    target: str | None,
    resume: bool,
    start_over: bool,
    accept_gate: tuple[str, ...],
    accept_gone: tuple[str, ...],
    settle_timeout: float,
    yes: bool,
    dry_run: bool,
) -> Report:
    """Restart the workers one by one, in the order of the plan, and check the group after each restart.

    After each restart the worker must be a healthy member again, with its mode proven (or read from its own file, which
    is then reported), and every connector and task as before, with its transactional id once the worker is enabled.
    Tasks that failed only in fencing are restarted once. No worker is restarted while another does not answer, or after
    somebody else restarted one. The first gate that fails ends the run and leaves the cluster running; --resume
    continues. A kill or Ctrl-C is safe at any time.

    An unknown gate that guards data ends the run, too (`upgrade plan` shows which do); --accept-gate continues despite
    the gate. --timeout is the time for one check of the whole group.

    On the way back, what failed since the upgrade began does not stop the run. The file of a worker that died is
    changed before the others become disabled, and the worker is started when they are. A worker that was lost during an
    upgrade is expected until it is seen again; --accept-gone stops that.

    WORDS, PATH, NAME and DEST may contain {url} {host} {port}, WORDS also {mode} and {config}; no shell is used.

    eosctl writes one thing to Kafka: it initializes the TransactionalId eosctl-config-GROUP, and stops before the next
    restart if another eosctl has done so since. Without WRITE on it, two upgrades on two machines notice each other
    only at the first restart.

    The nodes of a dedicated MirrorMaker have no REST interface; use --driver print or command for them. Each restart is
    checked by the member that left and the one that joined, by the node's file, and by what only that mode does (the
    leader's id, the tasks' ids); the result shows which. WORDS and PATH may contain {host} and {number} there.

    If the chart or Git has another mode than --driver kubernetes sets, the next deploy reverts it: the plan and the
    result show which field to change there. Use --print-patch or --no-write if a GitOps tool makes the changes. If
    somebody reverts a field during a pass, the run ends and shows who did it.

    \b
    Drivers:
      print       prints what to do, and waits until it is done
      command     runs your --set-config-command (or edits --properties-file)
                  and --restart-command
      systemd     edits --properties-file and restarts --unit, here or by --ssh
      kubernetes  changes --workload; its controller restarts the pods, so a
                  whole pass is one step; with updateStrategy OnDelete
                  eosctl deletes them, one by one
      sandbox     restarts the workers of a sandbox

    \b
    Example:
      eosctl upgrade apply --to enabled --driver systemd --ssh ops@{host} \\
        --unit kafka-connect --properties-file /etc/kafka/connect-distributed.properties

    Needs Kafka Connect 3.3 or newer.
    """
    from eosctl.core.workers.modes import Mode
    from eosctl.upgrade.plan import read_plan
    from eosctl.upgrade.roll.prepare import RollRequest, prepare_roll
    from eosctl.upgrade.roll.roll import prepare_upgrade

    if resume and start_over:
        raise UsageError("--resume and --start-over contradict each other")
    request = RollRequest(
        target=Mode(target) if target else None,
        plan=read_plan(read_text_file(plan_file), path=str(plan_file)) if plan_file else None,
        resume=resume,
        start_over=start_over,
        settle_timeout_s=settle_timeout,
        driver_options=tuple(by.words()),
        accepted=frozenset(accept_gate),
        gone=frozenset(accept_gone),
    )
    roll = prepare_roll(app, request, by.driver(app))
    if by.print_patch:
        from eosctl.upgrade.roll.undo import patch_report

        return patch_report(app, roll, with_secrets=by.with_secrets)
    return run_plan(prepare_upgrade(app, roll, watching=bool(by.no_write)), yes=yes, dry_run=dry_run)
