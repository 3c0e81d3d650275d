"""`eosctl offsets migrate` and `offsets verify`: options in, one operation, its Report out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from eosctl.core.allowances import Allowances, Waiver
from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import MigrationPlan, read_plan
from eosctl.core.offsets.views import Policy
from eosctl.errors import UsageError

from ..frame.confirm import run_plan
from ..frame.options import EosctlCommand, pass_app, pass_request, report_option, waivers, write_options
from ..frame.session import read_text_file

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.migrate.plan import MigrationRequest
    from eosctl.migrate.run import Engine
    from eosctl.report import Report

_ENGINE_OPTIONS = [
    click.option(
        "--master",
        default="local[*,4]",
        show_default=True,
        metavar="URL",
        help="Spark master; [*,4]: all cores, and up to four attempts per task, as on a cluster.",
    ),
    click.option("--conf", multiple=True, metavar="K=V", help="Spark setting (repeatable)."),
    click.option("--snapshot-dir", type=click.Path(path_type=Path), help="Directory for snapshots and backups."),
]


def engine_options(function: Any) -> Any:
    """Add the options of where the Spark job runs and keeps its snapshot."""
    for option in reversed(_ENGINE_OPTIONS):
        function = option(function)
    return function


class EngineOptions(Struct, frozen=True):
    """The options of where the Spark job runs and keeps its snapshot."""

    master: str
    conf: tuple[str, ...]
    snapshot_dir: Path | None

    def engine(self, app: App) -> Engine:
        """Return the engine of these options."""
        from eosctl.migrate.run import Engine

        return Engine(self.snapshot_dir or app.state_dir / "migrations", self.master, _pairs(self.conf, "--conf"))


class MigrateOptions(Struct, frozen=True):
    """The other options of `offsets migrate`."""

    sources: tuple[str, ...]
    target: str | None
    connectors: tuple[str, ...]
    all_connectors: bool
    pattern: str | None
    renames: tuple[str, ...]
    conflict: str | None
    dedicated_topic: str | None
    partitions: int | None
    replication_factor: int | None
    plan_out: Path | None
    plan_file: Path | None
    resume: bool
    prune: bool

    def refuse_planning(self) -> None:
        """Raise UsageError for an option that belongs to planning."""
        source, topics = (self.sources, self.pattern, self.connectors), (self.partitions, self.replication_factor)
        planning = (*source, *topics, self.all_connectors, self.target, self.renames, self.conflict)
        if self.plan_out is not None or any(planning) or self.dedicated_topic:
            hint = "Leave out --plan-out and the options that choose offsets."
            raise UsageError("--plan can't be combined with planning options", hint=hint)

    def request(self, *, allow_open_transactions: bool) -> MigrationRequest:
        """Return the migration to plan."""
        from eosctl.migrate.plan import MigrationRequest
        from eosctl.migrate.stores import TopicSize

        return MigrationRequest(
            sources=self.sources or ("global",),
            target=self.target or "dedicated",
            selection=Selection(self.connectors, self.all_connectors, self.pattern),
            renames=_pairs(self.renames, "--rename"),
            policy=Policy(self.conflict or Policy.KEEP_TARGET),
            dedicated_topic=self.dedicated_topic,
            new_topics=TopicSize(self.partitions, self.replication_factor),
            allow_open_transactions=allow_open_transactions,
        )


@click.command("migrate", cls=EosctlCommand)
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="STORE",
    help="Source: global (default), dedicated, TOPIC[@PROFILE], .ndjson or .parquet file (repeatable; first wins).",
)
@click.option(
    "--to", "target", metavar="STORE", help="Target: dedicated (default), global, TOPIC[@PROFILE], or a new file."
)
@click.option(
    "--connector",
    "connectors",
    multiple=True,
    metavar="NAME",
    help="Only the connector of exactly this name (repeatable).",
)
@click.option("--all", "all_connectors", is_flag=True, help="Every connector with offsets in the source.")
@click.option("--match", "pattern", metavar="GLOB|re:REGEX", help="Connectors with a name that matches as a whole.")
@click.option(
    "--rename",
    "renames",
    multiple=True,
    metavar="OLD=NEW",
    help="Change the connector's name in the keys (repeatable).",
)
@click.option(
    "--conflict",
    type=click.Choice([str(policy) for policy in Policy]),
    help="Which value wins if both sides have one [default: keep-target].",
)
@click.option(
    "--dedicated-topic", metavar="PATTERN", help="Offsets topic of connectors that have none: 'offsets-{connector}'."
)
@click.option(
    "--partitions", type=click.IntRange(min=1), metavar="N",
    help="Number of partitions of created target topics [default: the source's].",
)  # fmt: skip
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1),
    metavar="N",
    help="Replication factor of created target topics [default: the source's].",
)
@click.option("--plan-out", type=click.Path(path_type=Path, dir_okay=False), help="Only write the plan to this file.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path, dir_okay=False), help="Apply this plan.")
@click.option("--resume", is_flag=True, help="With --plan: continue an interrupted run of it.")
@waivers(Waiver.ALLOW_OPEN_TRANSACTIONS)
@waivers(Waiver.ACCEPT_DRIFT, multiple=True, type=click.Choice(["source", "target"]))
@waivers(Waiver.WORKERS_DOWN, Waiver.FORCE_RUNNING)
@click.option("--prune", is_flag=True, help="Afterwards remove the snapshots of finished plans; backups stay.")
@engine_options
@report_option
@write_options
@pass_app
@pass_request(EngineOptions)
@pass_request(MigrateOptions)
@pass_request(Allowances)
def migrate(
    app: App, where: EngineOptions, options: MigrateOptions, allowances: Allowances, *, yes: bool, dry_run: bool
) -> Report:
    """Move source offsets of many connectors between topics, with Spark.

    A connector that gets an offsets topic of its own starts from scratch, whatever the global topic has: its offsets
    must be in the new topic first. This command reads both sides up to fixed offsets, decides per key, shows the plan,
    writes what differs, and reads it back. Keys keep their bytes and get the partition that Connect's own producer
    would choose. The old records stay where they are.

    Missing target topics are created, compacted, with as many partitions as the source. Connect works with any number
    of partitions in a connector's own topic: if hundreds of topics are created, a few --partitions each are enough.

    From `dedicated` each connector takes its own offsets from its own topic; those that other connectors left in that
    topic are reported, and stay. A plan that would read offsets from a topic and write others over them, as when two
    connectors swap their names, is refused: the error shows the way in two steps.

    Use --plan and --resume to continue a run that was killed; it ends in the same state. `offsets restore` undoes what
    was written, also by an unfinished run. Snapshots are kept to resume and to verify; the space used by earlier plans
    is reported, and --prune removes snapshots that are no longer needed.

    \b
    Example:
      eosctl offsets migrate --to dedicated --dedicated-topic 'offsets-{connector}' --all --plan-out plan.json
      eosctl offsets migrate --plan plan.json --yes
      eosctl offsets verify plan.json
      eosctl offsets migrate --from global@old --to 'offsets-{connector}' --match 'jdbc-*' --conflict newest

    Needs Java 17+, eosctl[spark]; any Kafka with transactions (0.11+).
    """
    from eosctl.migrate.run import migration_from_file, prepared_migration

    engine = where.engine(app)
    if options.plan_file is not None:
        options.refuse_planning()
        ready = migration_from_file(
            app,
            _plan(options.plan_file),
            engine,
            allowances=allowances,
            plan_file=options.plan_file,
            resume=options.resume,
            prune=options.prune,
        )
        return run_plan(ready, yes=yes, dry_run=dry_run)
    if options.resume:
        raise UsageError("--resume needs --plan FILE", hint="The interrupted run printed the path of its plan.")
    request = options.request(allow_open_transactions=allowances.allow_open_transactions)
    plan_out, prune = options.plan_out, options.prune
    with prepared_migration(app, request, engine, allowances=allowances, plan_out=plan_out, prune=prune) as ready:
        return run_plan(ready, yes=yes, dry_run=dry_run)


@click.command("verify", cls=EosctlCommand)
@click.argument("plan_file", metavar="PLAN|BACKUP", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--before", is_flag=True, help="With a backup: compare with the values before the write, as after a restore."
)
@click.option("--strict", is_flag=True, help="Exit 3, not 7, on keys that an open transaction hides.")
@engine_options
@report_option
@pass_app
@pass_request(EngineOptions)
def verify(app: App, where: EngineOptions, *, plan_file: Path, before: bool, strict: bool) -> Report:
    """Read both sides of a migration again and compare them with its plan; or compare a write with its backup.

    The exit code is 3, with the rows that differ, if a key of the target is not as planned, or a key of the source has
    changed since the migration. Verify before a migrated connector runs again, as it then commits new offsets. With the
    backup of a merge, set, reset, import or restore, every key of the backup is read again, on all partitions: the exit
    code is 3 if a key does not hold the value that was written, or was not written once more as planned. The exit code
    is 7 if an open transaction hides newer records of a key, so that its value is unknown; with --strict, 3.

    \b
    Example:
      eosctl offsets verify plan.json
      eosctl offsets verify ~/.local/state/eosctl/backups/offsets-merge-20260102T030405000Z-0a1b2c3d.ndjson

    Needs Java 17+, eosctl[spark] for a plan; any Kafka with transactions (0.11+).
    """
    from eosctl.migrate.run import is_backup, verify_backup, verify_plan

    if is_backup(plan_file):
        return verify_backup(app, plan_file, before=before, strict=strict)
    if before:
        raise UsageError("--before needs a backup, not a plan", hint="A plan has the former values itself.")
    return verify_plan(app, _plan(plan_file), where.engine(app), strict=strict)


def _plan(path: Path) -> MigrationPlan:
    return read_plan(read_text_file(path), path=str(path))


def _pairs(words: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for left, equals, right in pairs:
        if not (left and equals and right):
            raise UsageError(f"{option} {left}{equals}{right} is not of the form LEFT=RIGHT")
    if len({left for left, _, _ in pairs}) != len(pairs):
        raise UsageError(f"{option} names one thing twice")
    return {left: right for left, _, right in pairs}
