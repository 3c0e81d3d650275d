"""Applying a plan of `offsets migrate`, stage by stage.

If it is killed anywhere, a run with `resume` ends in the same state. Each stage is in the journal before it begins and
after it has ended, and each may be done twice: the backup is of the snapshot, an existing topic is not created, an
existing record is not sent. Write tasks have transactional ids of their own, fixed by the plan: resuming ends the
transactions that a killed task left open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from eosctl.app import App
from eosctl.core.allowances import Allowances
from eosctl.core.ids import TransactionalId
from eosctl.core.offsets.migration import Comparison, MigrationPlan, SentCounts
from eosctl.core.wording import counted
from eosctl.deadline import Event
from eosctl.errors import EosctlError, RefusedError
from eosctl.foreign import arguments
from eosctl.migrate.journal import (
    BACKUP_NAME,
    EarlierRuns,
    Stage,
    migration_journal,
    read_earlier_runs,
    resume_command,
    stages_of,
)
from eosctl.migrate.plan import Migration, existing_snapshot
from eosctl.migrate.report import Applied
from eosctl.migrate.stores import create_missing
from eosctl.migrate.topics import app_of, delete_copies, drift_error, moved_topics, present_topics, some
from eosctl.offsets.guard import refuse_running, refuse_running_source
from eosctl.offsets.stores.columns import TopicsMade
from eosctl.offsets.writes import offsets_journal
from eosctl.report import Json, Problem
from eosctl.state.backups import write_columns
from eosctl.state.journal import Journal, Note, Progress, Step, Work, carry_out
from eosctl.state.work_folders import work_folder

if TYPE_CHECKING:
    from eosctl.engine.columns import Table

_FENCE_TIMEOUT_MS = 30_000


def refuse(app: App, plan: MigrationPlan, allowances: Allowances) -> None:
    """Raise RefusedError while a connector of the plan runs, or may run; a target that is a file is never refused."""
    if plan.target_file() is not None:
        return
    down, force = allowances.workers_down, allowances.force_running
    target = app_of(app, plan.targets[0])
    for here in [target] if target is app or app.target.client is None else [app, target]:
        refuse_running(here.with_whole_timeout(), plan.connectors(), workers_down=down, force_running=force)
    read = sorted(plan.connectors_of("source"))
    for profile in source_profiles(plan):
        refuse_running_source(
            app.elsewhere(profile).with_whole_timeout(), read, profile=profile, workers_down=down, force_running=force
        )


def source_profiles(plan: MigrationPlan) -> list[str]:
    """Return the profiles of the clusters that are only read."""
    return sorted({source.profile for source in plan.sources if source.profile} - {plan.target_profile()})


def past_of(folder: Path, journal: Journal, *, resume: bool) -> EarlierRuns:
    """Return what earlier runs did of a plan; raises RefusedError if they did anything, unless `resume` is set."""
    past = read_earlier_runs(journal)
    if past.begun and not resume:
        state, plan_file = "was applied" if past.ended else "was begun and cut off", folder / "plan.json"
        raise RefusedError(
            f"this plan {state} before; nothing was written",
            hint=f"Look: eosctl offsets verify {arguments(str(plan_file))}"
            if past.ended
            else f"Go on with: {resume_command(folder)}",
        )
    return past


def apply_plan(migration: Migration, plan: MigrationPlan, allowances: Allowances, *, resume: bool) -> Applied:
    """Write the offsets of a plan after checking that it still holds and keeping a backup, and read them back.

    An error, or Ctrl-C, ends it, and the result has what was done until then. Raises RefusedError or StalePlanError
    before anything was written. If an earlier run has applied the plan to the end, the target is read again and never
    written: the journal shows what was true then; the target may be gone by now, and a connector that runs again has
    gone on.
    """
    folder = existing_snapshot(plan)
    if plan.tally.counts.get("conflict"):
        raise RefusedError(
            f"{counted(plan.tally.counts['conflict'], 'key is', 'keys are')} in conflict; nothing was written",
            hint="Decide with --conflict keep-target, take-source or newest, and plan again.",
        )
    journal = migration_journal(folder, migration.app.clock)
    with work_folder(folder, ".apply-") as here:
        run = _Run(migration, plan, allowances, folder, journal, here)
        work = Work(
            steps=run.steps,
            recheck=lambda: run.recheck(resume=resume),
            journal=journal,
            subject=f"plan {plan.name()}",
            begin=run.begin,
            close=run.close,
            locks=_other_writers(migration.app, plan),
        )
        return run.applied(carry_out(work))


def _other_writers(app: App, plan: MigrationPlan) -> list[tuple[Journal, str]]:
    """Return the locks that keep other offset writes of this machine away from the cluster that is written to."""
    if plan.cluster_id is None:
        return []
    return [(offsets_journal(app, plan.cluster_id), f"the offsets of cluster {plan.cluster_id}")]


@dataclass(slots=True)
class _Run:
    """One run of a plan, fresh or resumed.

    `skipped` collects the stages that were done before, `newer` counts the newer records that it writes over. The files
    of its own tasks lie in the folder `here`: a task of a killed run that still goes on has another one. The stages
    leave their results here: the `backup`, the target `topics`, what was `sent`, how many records were there `already`,
    and how the target `compared`.
    """

    migration: Migration
    plan: MigrationPlan
    allowances: Allowances
    folder: Path
    journal: Journal
    here: Path
    past: EarlierRuns = field(default_factory=EarlierRuns)
    newer: int = 0
    skipped: list[Stage] = field(default_factory=list)
    backup: Path | None = None
    topics: TopicsMade = field(default_factory=TopicsMade)
    sent: SentCounts = field(default_factory=SentCounts)
    already: int = 0
    compared: Comparison | None = None
    cleaned_ms: int = 0

    def recheck(self, *, resume: bool) -> None:
        """Read what earlier runs did, end the transactions they left open, and raise if the plan no longer holds."""
        self.past = past_of(self.folder, self.journal, resume=resume)
        if self.past.ended:
            return
        if not self.past.started.isdisjoint({Stage.CLEAN, Stage.WRITE}):
            self._end_open_transactions(self.past.write_tasks)
        self.newer = self._refuse_drift()

    def begin(self) -> Note | None:
        """Return the first journal entry of a plan; None for a run that resumes, as it has one."""
        return None if self.past.begun else Note("begin", {"plan": self.plan.digest()})

    def steps(self) -> Iterator[Step[str]]:
        """Yield the stages that are not done; those after `create` only if no topic was refused."""
        if self.past.ended:
            self.skipped += [stage for stage in stages_of(self.plan) if stage is not Stage.VERIFY]
            self.backup = None if self.plan.target_file() else self.folder / BACKUP_NAME
            self.already = self.plan.tally.to_write()
            yield Step(Stage.VERIFY, self._compare)
            return
        self.migration.app.on_event(Event(f"if this run is cut off, go on with: {resume_command(self.folder)}"))
        yield from self._backup()
        yield from self._create()
        if self.topics.refused:
            return
        yield from self._clean()
        yield from self._write()
        yield self._stage(Stage.VERIFY, self._verify)

    def close(self, progress: Progress[str]) -> list[Problem]:
        """Close the journal once the target is as planned."""
        is_over = progress.error is None and self.compared is not None and self.compared.is_as_planned()
        return self.journal.close() if is_over and not self.past.ended else []

    def applied(self, progress: Progress[str]) -> Applied:
        """Return what was done, and add to an error how to go on; a refusal itself says what to do first."""
        error = progress.error
        if error is not None and not isinstance(error, RefusedError):
            error.hint = f"{error.hint or ''} Go on with: {resume_command(self.folder)}".strip()
        return Applied(
            self.sent,
            self.compared or Comparison(0, 0, ()),
            self.topics,
            self.backup,
            tuple(self.allowances.names()),
            already=self.already,
            skipped=tuple(self.skipped),
            progress=progress,
        )

    def _is_over(self, stage: Stage) -> bool:
        if stage not in self.past.done:
            return False
        self.skipped.append(stage)
        return True

    def _stage(
        self,
        stage: Stage,
        run: Callable[[dict[str, Json]], str],
        *,
        before: Callable[[], None] = lambda: None,
        **facts: Json,
    ) -> Step[str]:
        """Return the stage as a step; `run` puts into its dict the facts for the journal's `done` entry."""
        outcome: dict[str, Json] = {}

        def start() -> Note:
            before()
            return Note("started", {"stage": stage.value, **facts})

        def end(_detail: str) -> Note | None:
            refused = stage is Stage.CREATE and self.topics.refused
            return None if refused else Note("done", {"stage": stage.value, **outcome})

        return Step(stage.value, lambda: run(outcome), start, end)

    def _end_open_transactions(self, tasks: int) -> None:
        """Fence the ids that `tasks` tasks wrote with, and that of `_clean`, to end the transactions they left open.

        Raises EosctlError if one can't be fenced: then a killed task may still write.
        """
        if self.plan.target_file() is not None:
            return
        ids = [TransactionalId(f"{self.plan.transactional_id()}-{task}") for task in range(tasks)]
        ids += [self.plan.cleaning_id()] if self.plan.stale_copies else []
        app = app_of(self.migration.app.with_whole_timeout(), self.plan.targets[0])
        with app.transactions() as admin:
            answers = list(admin.fence(ids, transaction_timeout_ms=_FENCE_TIMEOUT_MS))
        failed = [answer.transactional_id for answer in answers if answer.fault or not answer.confirmed]
        if failed:
            raise EosctlError(
                f"{some(failed)} can't be fenced, so a killed task may still write; nothing was written",
                hint="Run again in a moment; `eosctl txn describe` shows what the coordinator knows.",
            )

    def _refuse_drift(self) -> int:
        """Count the target's new records of keys that are to be sent, if writing over them is allowed.

        Raises StalePlanError if topics were recreated, have other partitions, or have new offsets that were not
        accepted.
        """
        plan = self.plan
        created = not self.past.started.isdisjoint({Stage.CREATE, Stage.WRITE})
        newer = 0
        for side, wanted in (("source", plan.sources), ("target", plan.targets)):
            moved = moved_topics(
                self.migration.app.with_whole_timeout(),
                wanted,
                allow_open_transactions=self.allowances.allow_open_transactions,
                created=created and side == "target",
            )
            accepted = side in self.allowances.accept_drift
            if not moved or (accepted and side == "source"):
                continue
            drift = self.here / f"drift-{side}"
            renames = plan.renames() if side == "source" else None
            self.migration.stages.snapshot(moved, drift, parts=plan.parts, renames=renames)
            if accepted:
                newer = self.migration.stages.newer(drift, self.folder)
            else:
                self._refuse_new_offsets(drift, side)
        return newer

    def _refuse_new_offsets(self, drift: Path, side: str) -> None:
        there = set(self.migration.stages.new_offsets(drift, self.folder, self.plan, side=side))
        drifted = sorted(self.plan.connectors_of(side) & there)
        if drifted:
            raise drift_error(side, drifted)

    def _backup(self) -> Iterator[Step[str]]:
        """Yield the stage that writes the backup for `offsets restore`.

        It is synced, and streamed, so that its size does not matter. The backup of an earlier run of the plan stays,
        unless there is something `newer` now.
        """
        if self.plan.target_file() is not None:
            return
        path = self.folder / BACKUP_NAME
        is_there = path.exists() and Stage.BACKUP in self.past.done
        if is_there and not self.newer:
            self.skipped.append(Stage.BACKUP)
            self.backup = path
            return

        def keep(_outcome: dict[str, Json]) -> str:
            write_columns(path, self._replaced(), cluster_id=self.plan.cluster_id)
            self.backup = path
            return str(path)

        yield self._stage(Stage.BACKUP, keep)

    def _replaced(self) -> Iterator[Table]:
        records, replaced = 0, self.plan.tally.to_write() + self.plan.stale_copies
        for rows in self.migration.stages.backup(self.folder, self.plan):
            records += len(rows)
            yield rows
        if records != replaced:
            raise EosctlError(
                f"the backup has {counted(records, 'record')}, and the plan sends {replaced:,}: "
                "it is not kept, and nothing is sent without it",
                hint="Does another run work in this folder?",
            )

    def _create(self) -> Iterator[Step[str]]:
        """Yield the stage that creates missing topics; it is done if none was refused."""
        if self.plan.target_file() is not None or self._is_over(Stage.CREATE):
            return

        def create(outcome: dict[str, Json]) -> str:
            self.topics = create_missing(self.migration.app.with_whole_timeout(), self.plan)
            outcome["topics"] = list(self.topics.created)
            return f"{counted(len(self.topics.created), 'topic')} created"

        yield self._stage(Stage.CREATE, create)

    def _clean(self) -> Iterator[Step[str]]:
        """Yield the stage that puts tombstones over older copies of keys to write: a worker may read any copy last."""
        if not self.plan.stale_copies or self._is_over(Stage.CLEAN):
            return

        self.cleaned_ms = self.migration.app.clock.now_ms()

        def clean(outcome: dict[str, Json]) -> str:
            with self._nothing_left_open(0):
                copies = self.migration.stages.stale(self.folder)
                deleted = delete_copies(self.migration.app, self.plan, copies, timestamp_ms=self.cleaned_ms)
            outcome["deleted"] = deleted
            return f"{counted(deleted, 'older copy', 'older copies')} deleted"

        yield self._stage(
            Stage.CLEAN,
            clean,
            before=lambda: refuse(self.migration.app, self.plan, self.allowances),
            timestamp_ms=self.cleaned_ms,
        )

    def _timestamp_ms(self) -> int | None:
        """Return the timestamp of values if tombstones went over copies, else None.

        It is by this machine's clock, as the tombstones' is: the clocks of the machines that send values may be behind
        it.
        """
        cleaned_ms = max(self.cleaned_ms, self.past.cleaned_ms)
        return max(self.migration.app.clock.now_ms(), cleaned_ms + 1) if cleaned_ms else None

    def _write(self) -> Iterator[Step[str]]:
        """Yield the stage that sends what no earlier run has sent, and what replaces something `newer`."""
        stages, plan = self.migration.stages, self.plan
        if not self.newer and Stage.VERIFY not in self.past.done and self._is_over(Stage.WRITE):
            self.already = plan.tally.to_write()
            return
        to_send, decisions = plan.tally.to_write(), self.folder / "decisions"
        resumed = Stage.WRITE in self.past.started and plan.target_file() is None
        if resumed:
            now = present_topics(self.migration.app.with_whole_timeout(), plan.targets)
            decisions = self.here / "unwritten"
            to_send = stages.unwritten(self.folder, plan, now, decisions)
        self.already = plan.tally.to_write() - to_send
        tasks = self.past.write_tasks or stages.write_tasks(plan)

        def write(outcome: dict[str, Json]) -> str:
            if to_send:
                refuse(self.migration.app, plan, self.allowances)  # snapshot and backup took their time
                with self._nothing_left_open(tasks):
                    time_ms = self._timestamp_ms()
                    self.sent = stages.write(decisions, plan, tasks=tasks, records=to_send, timestamp_ms=time_ms)
            if self.sent.records() != to_send:
                raise EosctlError(
                    f"{counted(to_send, 'record was', 'records were')} to be sent, and {self.sent.records():,} "
                    "confirmed",
                    hint=f"Compare with: eosctl offsets verify {arguments(str(self.folder / 'plan.json'))}",
                )
            outcome["sent"] = to_send
            return f"{counted(to_send, 'record')} sent"

        yield self._stage(Stage.WRITE, write, tasks=tasks)

    @contextmanager
    def _nothing_left_open(self, tasks: int) -> Iterator[None]:
        """End the transactions of a write that fails or is interrupted: they would hide the target from everyone."""
        try:
            yield
        except (EosctlError, KeyboardInterrupt):
            with suppress(EosctlError):  # a run that resumes tries again, and says what stands in its way
                self._end_open_transactions(tasks)
            raise

    def _verify(self, outcome: dict[str, Json]) -> str:
        detail = self._compare(since=True)
        compared = self.compared
        if compared is None or compared.compared != self.plan.tally.keys:
            raise EosctlError(
                f"{self.plan.tally.keys} keys were decided, {compared.compared if compared else 0} were read back and "
                "compared",
                hint="This is a defect of eosctl; please report it with the plan's snapshot folder.",
            )
        outcome |= {"compared": compared.compared, "differing": compared.differing}
        return detail

    def _compare(self, *, since: bool = False) -> str:
        self.compared = self.migration.compare(self.plan, "target", since=since, after=self.sent.last_offsets)
        return f"{counted(self.compared.compared, 'key')} compared"
