"""`eosctl rehearse`: parses, plans, asks, applies, returns the report."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from eosctl.errors import InputFileError
from eosctl.target import Target

from ..frame.confirm import run_plan
from ..frame.options import EosctlCommand, pass_request, write_options
from ..frame.session import Session, read_text_file

if TYPE_CHECKING:
    from eosctl.rehearse.plan import RehearsalRequest
    from eosctl.report import Report

_RECOVERY_TIMEOUT_S = 180.0
_NOT_REPEATED = {"seed", "yes", "dry_run", "report", "keep"}


class RehearseOptions(Struct, frozen=True):
    """The options of the rehearsal."""

    config_file: Path | None
    plugin_path: Path | None
    worker_file: Path | None
    start_mode: str
    faults: str | None
    minutes: int | None
    unique: str | None
    sequence: str | None
    seed: int | None
    kafka_version: str | None
    brokers: str
    workers: int
    keep: bool
    strict: bool

    def request(self, words: tuple[str, ...]) -> RehearsalRequest:
        """Return the rehearsal to plan; raise InputFileError for files that can't be read."""
        from eosctl.core.java.properties import parse_properties
        from eosctl.core.workers.modes import Mode
        from eosctl.rehearse.plan import RehearsalRequest
        from eosctl.rehearse.rules import FitWorker, fit_worker, read_connector

        given, worker = self.config_file, self.worker_file
        return RehearsalRequest(
            seed=secrets.randbelow(10_000) if self.seed is None else self.seed,
            connector=read_connector(read_text_file(given), source=str(given)) if given else None,
            worker=fit_worker(parse_properties(read_text_file(worker), source=str(worker))) if worker else FitWorker(),
            plugin_path=str(_found(self.plugin_path)) if self.plugin_path else None,
            start_mode=Mode(self.start_mode),
            faults=tuple(name.strip() for name in (self.faults or "").split(",") if name.strip()),
            minutes=self.minutes,
            unique=self.unique,
            sequence=self.sequence,
            version=self.kafka_version,
            brokers=int(self.brokers),
            workers=self.workers,
            keep=self.keep,
            strict=self.strict,
            words=words,
        )


def _found(path: Path) -> Path:
    """Return the absolute path, as workers run in folders of their own. Raise InputFileError."""
    whole = path.expanduser().resolve()
    if not whole.exists():
        raise InputFileError(f"there is no {path} for --plugin-path", hint="Name the folder that has the plugin.")
    return whole


@click.command("rehearse", cls=EosctlCommand)
@click.option(
    "--config", "config_file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="The connector's JSON, as for PUT /connectors/NAME/config (default: a built-in source over a growing file).",
)  # fmt: skip
@click.option(
    "--plugin-path", metavar="DIR", type=click.Path(path_type=Path),
    help="Folder with the connector's plugin, as in plugin.path.",
)  # fmt: skip
@click.option(
    "-w", "--worker-config", "worker_file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="A worker's .properties file: converters, config providers and plugin settings are taken over.",
)  # fmt: skip
@click.option(
    "--from", "start_mode", type=click.Choice(["disabled", "enabled"]), default="disabled", show_default=True,
    help="Mode in which the workers start; disabled: the rehearsal begins with the upgrade.",
)  # fmt: skip
@click.option("--faults", metavar="NAME,...", help="Only these faults (default: all).")
@click.option(
    "--minutes", metavar="N", type=click.IntRange(min=1), help="Repeat the faults for N minutes (default: each once)."
)
@click.option(
    "--unique", metavar="FIELD", help="Find duplicates: a field that no two records share, as `eosctl audit` takes it."
)
@click.option("--sequence", metavar="FIELD", help="Find gaps: a field that counts by one, as `eosctl audit` takes it.")
@click.option("--seed", metavar="N", type=click.IntRange(min=0), help="Repeat a rehearsal: order, moments and victims.")
@click.option(
    "--kafka-version", metavar="V", help="Kafka and Connect version (default: the newest with its own connectors)."
)
@click.option("--brokers", type=click.Choice(["1", "3"]), default="1", show_default=True, help="Number of brokers.")
@click.option(
    "--workers", type=click.IntRange(1, 3), metavar="N", default=2, show_default=True, help="Number of Connect workers."
)
@click.option("--keep", is_flag=True, help="Leave the sandbox up at the end.")
@click.option("--strict", is_flag=True, help="Also exit 7 if no field shows lost records or duplicates.")
@click.option(
    "--report", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write the result as HTML, too."
)
@write_options
@click.pass_context
@pass_request(RehearseOptions)
def rehearse(ctx: click.Context, options: RehearseOptions, *, report: Path | None, yes: bool, dry_run: bool) -> Report:
    """Try a connector in a sandbox: the upgrade, then faults.

    Starts real brokers and workers on this machine, runs the connector there, upgrades the workers from disabled to
    enabled, and goes through the faults in an order that --seed repeats. After each fault all tasks must run again
    within --timeout (default 3m), and the records on the brokers are audited as by `eosctl audit`. The exit code is 3
    if a fault fails, and 7 if something is unproven. Lost records show only with --sequence, duplicates with --unique
    or --sequence: without them, the verdict is at best exactly_once_by_transactions, which --strict does not accept.

    Kafka is the sandbox's, but the connector really reads the system that its config names. The plan shows that system
    before anything starts. Brokers that the config names are replaced by those of the sandbox, and their logins are
    left out. The connector must be able to read its source again from there: use test data.

    Workers and brokers of the sandbox require passwords that are made for it, so that other users of this machine can't
    read the values in your files.

    Of the worker's file the sandbox takes converters, config providers, plugin settings and the tuning of clients;
    never brokers, logins, group or topics.

    \b
    Faults:
      kill-worker     kill -9 a worker in the middle of a transaction
      freeze-worker   stop a worker (SIGSTOP) and continue it later, as a zombie
      restart-tasks   restart the connector and its tasks
      reconfigure     more tasks, then fewer
      stop-resume     stop the connector and resume it (Kafka 3.5)
      broker-restart  restart a broker (--brokers 3)
      broker-kill     kill -9 a broker (--brokers 3)
      roll            roll the workers to preparing and back to enabled
      switch-offsets  move the offsets to another topic, and back (Kafka 3.5)
      slow-network    delay and cut connections between workers and brokers
      rebalance       let a worker leave and join again

    Everything that was started is stopped at the end. After a crash, `eosctl sandbox down --name` stops it; the name is
    printed at the start. Ctrl-C ends the rehearsal with the rows so far. Needs Java 17.

    Example: eosctl rehearse --config orders.json --plugin-path plugins --sequence id --report rehearsal.html
    """
    from eosctl.rehearse.plan import plan_rehearsal
    from eosctl.rehearse.proof import audit_connector
    from eosctl.rehearse.report import write_page
    from eosctl.rehearse.run import prepare_rehearsal
    from eosctl.state.pages import require_writable_page

    session = ctx.ensure_object(Session)
    session.flags.setdefault("timeout", _RECOVERY_TIMEOUT_S)
    if report is not None:
        require_writable_page(report)
    request = options.request(tuple(_given(ctx)))
    plan = plan_rehearsal(request)
    app, show_row = session.app(Target()), session.row_printer()
    result = run_plan(
        prepare_rehearsal(app, plan, environ=session.environ, audit=audit_connector, on_row=show_row),
        yes=yes,
        dry_run=dry_run,
    )
    if report is not None and not dry_run:
        write_page(result, report)
    return session.without_printed_rows(result)


def _given(ctx: click.Context) -> Iterator[str]:
    """Yield the options given on the command line that matter for another run."""
    for parameter in ctx.command.params:
        name = str(parameter.name)
        is_own = name in ctx.params and name not in _NOT_REPEATED
        if is_own and ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            yield max(parameter.opts, key=len)
            if not getattr(parameter, "is_flag", False):
                yield str(ctx.params[name])
