"""Applying a plan of `offsets migrate`, stage by stage: killed anywhere, a run with `resume` ends in the same state.

Each stage is in the journal before it begins and after it ended, and each may be done twice: the backup is of the
snapshot, a topic that is there is not created, a record that is there is not sent. Write tasks have transactional ids
of their own, fixed by the plan: resuming ends what a killed task left open.
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
from eosctl.core.offsets.migration import MigrationPlan
from eosctl.core.offsets.migration_results import Comparison, SentCounts
from eosctl.core.wording import counted
from eosctl.errors import EosctlError, RefusedError
from eosctl.events import Event
from eosctl.foreign import arguments
from eosctl.migrate.clean import delete_copies
from eosctl.migrate.journal import BACKUP_NAME, Past, Stage, migration_journal, read_past, resume_command, stages_of
from eosctl.migrate.plan import Migration, existing_snapshot
from eosctl.migrate.report import Applied
from eosctl.migrate.stale import drift_error
from eosctl.migrate.targets import create_missing
from eosctl.migrate.topics import app_of, moved_topics, present_topics, some
from eosctl.offsets.guard import refuse_running, refuse_running_source
from eosctl.offsets.journal import offsets_journal
from eosctl.offsets.stores.new_topics import TopicsMade
from eosctl.report import Json, Problem
from eosctl.state.backups import write_columns
from eosctl.state.journal import Journal
from eosctl.state.steps import Note, Progress, Step, Work, carry_out
from eosctl.state.work_folders import work_folder

if TYPE_CHECKING:
    from eosctl.engine.columns import Table

_FENCE_TIMEOUT_MS = 30_000


def refuse(app: App, plan: MigrationPlan, allowances: Allowances) -> None:
    """Raises RefusedError while a connector of the plan runs, or may; a file takes offsets whoever runs."""
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
    """The profiles of the clusters that are only read."""
    return sorted({source.profile for source in plan.sources if source.profile} - {plan.target_profile()})


def past_of(folder: Path, journal: Journal, *, resume: bool) -> Past:
    """What was done of a plan before; raises RefusedError where something was, unless it was asked to `resume`."""
    past = read_past(journal)
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
    """Writes what the plan says after checking that it still holds and keeping a backup, and reads it back.

    An error, and Ctrl-C, end it with what was done until then. Raises RefusedError or StalePlanError before anything
    was written. Of a plan that an earlier run has applied to the end, what it left is read again, and never written:
    the journal shows what was true then; the target may be gone by now, and a connector that runs again has gone on.
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
    """What keeps the other offset writes of this machine away from the cluster that is written to."""
    if plan.cluster_id is None:
        return []
    return [(offsets_journal(app, plan.cluster_id), f"the offsets of cluster {plan.cluster_id}")]


@dataclass(slots=True)
class _Run:
    """One run of a plan, fresh or resumed; `skipped` collects what it need not do, `newer` counts what it writes over.

    What its own tasks find lies in the folder `here`: a task of a killed run that still goes on has another one. What
    the stages find out is kept here: the `backup`, the target `topics`, what was `sent` and how many records were there
    `already`, and how the target `compared`.
    """

    migration: Migration
    plan: MigrationPlan
    allowances: Allowances
    folder: Path
    journal: Journal
    here: Path
    past: Past = field(default_factory=Past)
    newer: int = 0
    skipped: list[Stage] = field(default_factory=list)
    backup: Path | None = None
    topics: TopicsMade = field(default_factory=TopicsMade)
    sent: SentCounts = field(default_factory=SentCounts)
    already: int = 0
    compared: Comparison | None = None
    cleaned_ms: int = 0

    def recheck(self, *, resume: bool) -> None:
        """Reads what earlier runs did, ends what they left open, and raises where the plan does not hold any more."""
        self.past = past_of(self.folder, self.journal, resume=resume)
        if self.past.ended:
            return
        if not self.past.started.isdisjoint({Stage.CLEAN, Stage.WRITE}):
            self._end_open_transactions(self.past.write_tasks)
        self.newer = self._refuse_drift()

    def begin(self) -> Note | None:
        """The first entry of a plan, which a run that resumes has."""
        return None if self.past.begun else Note("begin", {"plan": self.plan.digest()})

    def steps(self) -> Iterator[Step[str]]:
        """The stages that are not over; the ones after `create` only where no topic was refused."""
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
        """The plan is over once the target is as planned."""
        is_over = progress.error is None and self.compared is not None and self.compared.is_as_planned()
        return self.journal.close() if is_over and not self.past.ended else []

    def applied(self, progress: Progress[str]) -> Applied:
        """What was done, and how to go on after an error; a refusal tells itself what to do first."""
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
        """The stage as a step; `run` puts into its dict what the journal gets when it is over."""
        outcome: dict[str, Json] = {}

        def start() -> Note:
            before()
            return Note("started", {"stage": stage.value, **facts})

        def end(_detail: str) -> Note | None:
            refused = stage is Stage.CREATE and self.topics.refused
            return None if refused else Note("done", {"stage": stage.value, **outcome})

        return Step(stage.value, lambda: run(outcome), start, end)

    def _end_open_transactions(self, tasks: int) -> None:
        """Fences the ids that so many tasks wrote with, and that of `_clean`: what they left open ends now.

        Raises EosctlError when one can't be fenced: then it is not known what will still be written.
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
        """How much the target has by now that the plan does not know, where that is allowed to be written over.

        Raises StalePlanError when topics were recreated, have other partitions, or new offsets that nobody allowed.
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
        """What `offsets restore` takes, synced; streamed, so that its size does not matter.

        It is as in an earlier run of the plan, unless there is something `newer` now.
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
        """The missing topics; the stage is over when none was refused."""
        if self.plan.target_file() is not None or self._is_over(Stage.CREATE):
            return

        def create(outcome: dict[str, Json]) -> str:
            self.topics = create_missing(self.migration.app.with_whole_timeout(), self.plan)
            outcome["topics"] = list(self.topics.created)
            return f"{counted(len(self.topics.created), 'topic')} created"

        yield self._stage(Stage.CREATE, create)

    def _clean(self) -> Iterator[Step[str]]:
        """Tombstones over older copies of what is to be written: a worker may read any copy last."""
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
        """What values are stamped with where tombstones went over copies, by this machine's clock: those of the
        machines that send them may be behind it. Else None."""
        cleaned_ms = max(self.cleaned_ms, self.past.cleaned_ms)
        return max(self.migration.app.clock.now_ms(), cleaned_ms + 1) if cleaned_ms else None

    def _write(self) -> Iterator[Step[str]]:
        """Sends what no earlier run has sent, and what is to be written over something `newer`."""
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
        """Ends the transactions of a write that fails or is interrupted: they would hide the target from everyone."""
        try:
            yield
        except (EosctlError, KeyboardInterrupt):
            with suppress(EosctlError):  # a run that resumes tries again, and says what stands in its way
                self._end_open_transactions(tasks)
            raise

    def _verify(self, outcome: dict[str, Json]) -> str:
        said = self._compare(since=True)
        compared = self.compared
        if compared is None or compared.compared != self.plan.tally.keys:
            raise EosctlError(
                f"{self.plan.tally.keys} keys were decided, {compared.compared if compared else 0} were read back and "
                "compared",
                hint="This is a defect of eosctl; please report it with the plan's snapshot folder.",
            )
        outcome |= {"compared": compared.compared, "differing": compared.differing}
        return said

    def _compare(self, *, since: bool = False) -> str:
        self.compared = self.migration.compare(self.plan, "target", since=since, after=self.sent.last_offsets)
        return f"{counted(self.compared.compared, 'key')} compared"
