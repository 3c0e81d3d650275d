"""One invocation of `offsets migrate` or `offsets verify`: the report to show, and what applying it means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from eosctl.core.migration import MigrationPlan, plan_file_text
from eosctl.errors import ExitCode, InputFileError
from eosctl.ops.app import App
from eosctl.ops.backups import undo_command
from eosctl.ops.migrate import (
    Allowances,
    Migration,
    MigrationRequest,
    OpenStages,
    fresh,
    snapshot_folder,
    spark_stages,
)
from eosctl.ops.migrate_guard import refuse_running, running_connectors
from eosctl.ops.migrate_report import plan_report, result_report, verify_report
from eosctl.ops.migrate_stores import source_topics
from eosctl.ops.migrate_topics import expected_records, gather_sources
from eosctl.report import Problem, Report


@dataclass(frozen=True, slots=True)
class Engine:
    """Where the job runs: a Spark master with its conf; `open_stages` replaces Spark altogether."""

    snapshots: Path
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    open_stages: OpenStages | None = None

    def opener(self, app: App) -> OpenStages:
        """What opens the stages."""
        return self.open_stages or spark_stages(app, snapshots=self.snapshots, master=self.master, conf=self.conf)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan's report, and how to apply it; None where nothing is to be done, or may be."""

    report: Report
    apply: Callable[[], Report] | None


@contextmanager
def prepared_migration(
    app: App, request: MigrationRequest, engine: Engine, *, allowances: Allowances, plan_out: Path | None = None
) -> Iterator[Prepared]:
    """Plans now; inside the block the plan can be applied with the same Spark session. `plan_out` only plans."""
    request.selection.check()
    names = source_topics(app, request.sources, request.selection)
    sources = gather_sources(app, names, allow_open_transactions=request.allow_open_transactions)
    with engine.opener(app)(expected_records(sources)) as stages:
        migration = Migration(app, stages, engine.snapshots)
        plan = migration.plan(request, sources)
        if plan_out is not None:
            _save(plan, plan_out)
        plan_file = plan_out or snapshot_folder(plan) / "plan.json"
        prepared = _prepared(app, plan, plan_file, lambda: _apply(app, migration, plan, allowances))
        yield Prepared(prepared.report, None) if plan_out else prepared


def migration_from_file(
    app: App, plan: MigrationPlan, engine: Engine, *, allowances: Allowances, plan_file: Path
) -> Prepared:
    """A plan that was made before; Spark starts when it is applied."""

    def apply() -> Report:
        refuse(app, plan, allowances)  # before Spark takes its seconds to start
        with engine.opener(app)(expected_records(plan.sources)) as stages:
            return _apply(app, Migration(app, stages, engine.snapshots), plan, allowances)

    return _prepared(app, plan, plan_file, apply)


def verify_plan(app: App, plan: MigrationPlan, engine: Engine) -> Report:
    """Reads both sides again and compares them with the plan."""
    with engine.opener(app)(expected_records(plan.sources)) as stages:
        migration = Migration(app, stages, engine.snapshots)
        return verify_report(plan, {side: migration.compare(plan, side) for side in ("source", "target")})


def refuse(app: App, plan: MigrationPlan, allowances: Allowances) -> None:
    """Raises RefusedError while a connector of the plan runs, or may."""
    refuse_running(
        fresh(app), plan.connectors(), workers_down=allowances.workers_down, force_running=allowances.force_running
    )


def _apply(app: App, migration: Migration, plan: MigrationPlan, allowances: Allowances) -> Report:
    refuse(app, plan, allowances)
    applied = migration.apply(plan, allowances)
    return result_report(plan, applied, undo=undo_command(applied.backup))


def _prepared(app: App, plan: MigrationPlan, plan_file: Path, apply: Callable[[], Report]) -> Prepared:
    undecided = plan.tally.counts.get("conflict", 0)
    if undecided:
        problem = Problem(
            "conflicts",
            f"{undecided} keys are in conflict and --conflict fail decides none; nothing will be written",
            hint="Plan again with --conflict keep-target, take-source or newest.",
        )
        return Prepared(plan_report(plan, plan_file=plan_file, problems=(problem,), exit_code=ExitCode.REFUSED), None)
    report = plan_report(plan, plan_file=plan_file, problems=_running(app, plan))
    return Prepared(report, apply if plan.tally.to_write() else None)


def _running(app: App, plan: MigrationPlan) -> tuple[Problem, ...]:
    """A warning while connectors run: the plan is good to look at, and will be refused."""
    running = running_connectors(fresh(app), plan.connectors()) if app.target.connect_urls else []
    if not running:
        return ()
    message = f"not stopped: {', '.join(running)}"
    return (Problem("running", message, hint="The plan can't be applied while they run.", severity="warning"),)


def _save(plan: MigrationPlan, path: Path) -> None:
    try:
        path.write_text(plan_file_text(plan), encoding="utf-8")
    except OSError as exc:
        raise InputFileError(f"cannot write {path}: {exc.strerror or exc}", hint="Check --plan-out.") from exc
