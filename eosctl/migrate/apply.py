"""Applying a plan of `offsets migrate`, stage by stage: killed anywhere, a run with `resume` ends in the same state.

Each stage is in the journal before it begins and after it ended, and each may be done twice: the backup is of the
snapshot, a topic that is there is not created, a record that is there is not sent. Write tasks have transactional ids
of their own, fixed by the plan: resuming ends what a killed task left open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from eosctl.app import App
from eosctl.core.allowances import Allowances
from eosctl.core.offsets.migration import MigrationPlan
from eosctl.core.offsets.migration_results import Comparison, SentCounts
from eosctl.core.records import Record
from eosctl.core.wording import counted
from eosctl.errors import EosctlError, RefusedError
from eosctl.events import Event
from eosctl.migrate.clean import backup_lines, delete_copies
from eosctl.migrate.journal import Past, Stage, migration_journal, read_past, resume_command, stages_of
from eosctl.migrate.plan import Migration, existing_snapshot
from eosctl.migrate.rows import Applied
from eosctl.migrate.stale import drift_error
from eosctl.migrate.targets import create_missing, wait_until_visible
from eosctl.migrate.topics import app_of, moved_topics, present_topics, some
from eosctl.offsets.guard import refuse_running, refuse_running_source
from eosctl.offsets.journal import offsets_journal
from eosctl.offsets.stores.new_topics import TopicsMade
from eosctl.report import Json
from eosctl.state.backups import with_newer, write_blocks
from eosctl.state.journal import Journal

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
            hint=f"Look: eosctl offsets verify {quote(str(plan_file))}"
            if past.ended
            else f"Go on with: {resume_command(folder)}",
        )
    return past


def _verified_again(migration: Migration, plan: MigrationPlan, folder: Path, allowances: Allowances) -> Applied:
    """The outcome of a plan that an earlier run has applied to the end: what it left is read again, and never written.

    The journal tells what was true then; the target may be gone by now, and a connector that runs again has gone on.
    """
    return Applied(
        SentCounts(),
        migration.compare(plan, "target"),
        TopicsMade(),
        None if plan.target_file() else folder / "backup.ndjson",
        tuple(allowances.names()),
        already=plan.tally.to_write(),
        skipped=tuple(stage for stage in stages_of(plan) if stage is not Stage.VERIFY),
    )


def apply_plan(migration: Migration, plan: MigrationPlan, allowances: Allowances, *, resume: bool) -> Applied:
    """Writes what the plan says after checking that it still holds and keeping a backup, and reads it back.

    Raises RefusedError or StalePlanError before anything was written.
    """
    folder = existing_snapshot(plan)
    if plan.tally.counts.get("conflict"):
        raise RefusedError(
            f"{counted(plan.tally.counts['conflict'], 'key is', 'keys are')} in conflict; nothing was written",
            hint="Decide with --conflict keep-target, take-source or newest, and plan again.",
        )
    journal = migration_journal(folder, migration.app.clock)
    with journal.hold(f"plan {plan.name()}"), _only_writer(migration, plan):
        past = past_of(folder, journal, resume=resume)
        if past.ended:
            return _verified_again(migration, plan, folder, allowances)
        return _Run(migration, plan, allowances, folder, journal, past).run()


@contextmanager
def _only_writer(migration: Migration, plan: MigrationPlan) -> Iterator[None]:
    """Keeps the other offset writes of this machine away from the cluster that is written to."""
    if plan.cluster_id is None:
        yield
        return
    with offsets_journal(migration.app, plan.cluster_id).hold(f"the offsets of cluster {plan.cluster_id}"):
        yield


@contextmanager
def _told_how_to_go_on(again: str) -> Iterator[None]:
    """Adds the command line that resumes to the hint of an error; a refusal tells itself what to do first."""
    try:
        yield
    except EosctlError as exc:
        if not isinstance(exc, RefusedError):
            exc.hint = f"{exc.hint or ''} Go on with: {again}".strip()
        raise


@dataclass(slots=True)
class _Run:
    """One run of a plan, fresh or resumed; `skipped` collects what it need not do."""

    migration: Migration
    plan: MigrationPlan
    allowances: Allowances
    folder: Path
    journal: Journal
    past: Past
    skipped: list[Stage] = field(default_factory=list)

    def run(self) -> Applied:
        """All stages that are not over."""
        if not self.past.started.isdisjoint({Stage.CLEAN, Stage.WRITE}):
            self._end_open_transactions(self.past.write_tasks)
        newer = self._refuse_drift()
        if not self.past.begun:
            self.journal.write("begin", plan=self.plan.digest())
        again = resume_command(self.folder)
        self.migration.app.on_event(Event(f"if this run is cut off, go on with: {again}"))
        with _told_how_to_go_on(again):
            return self._stages(newer)

    def _stages(self, newer: Sequence[Record]) -> Applied:
        backup = self._backup(newer)
        overrides = tuple(self.allowances.names())
        topics = self._create()
        if topics.refused:
            return Applied(SentCounts(), Comparison(0, 0, ()), topics, backup, overrides, skipped=tuple(self.skipped))
        self._clean()
        sent, already = self._write()
        compared = self._verify()
        if compared.is_as_planned():
            self.journal.write("end")
        return Applied(sent, compared, topics, backup, overrides, already, tuple(self.skipped))

    def _is_over(self, stage: Stage) -> bool:
        if stage not in self.past.done:
            return False
        self.skipped.append(stage)
        return True

    @contextmanager
    def _noted(self, stage: Stage, **facts: Json) -> Iterator[dict[str, Json]]:
        """Notes that the stage begins and, with what the block puts into the dict, that it ended."""
        self.journal.write("started", stage=stage.value, **facts)
        outcome: dict[str, Json] = {}
        yield outcome
        self.journal.write("done", stage=stage.value, **outcome)

    def _end_open_transactions(self, tasks: int) -> None:
        """Fences the ids that so many tasks wrote with, and that of `_clean`: what they left open ends now.

        Raises EosctlError when one can't be fenced: then it is not known what will still be written.
        """
        if self.plan.target_file() is not None:
            return
        ids = [f"{self.plan.transactional_id()}-{task}" for task in range(tasks)]
        ids += [self.plan.cleaning_id()] if self.plan.stale_copies else []
        app = app_of(self.migration.app.with_whole_timeout(), self.plan.targets[0])
        with app.transactions() as admin:
            answers = list(admin.fence(ids, transaction_timeout_ms=_FENCE_TIMEOUT_MS))
        failed = [answer.transactional_id for answer in answers if answer.fault or not answer.confirmed]
        if failed:
            raise EosctlError(
                f"{some(failed)} can't be fenced, so a killed task may still write; nothing was written",
                hint="Run again in a moment; `eosctl txn describe` tells what the coordinator knows.",
            )

    def _refuse_drift(self) -> Sequence[Record]:
        """What the target has by now that the plan does not know, where that is allowed to be written over.

        Raises StalePlanError when topics were recreated, have other partitions, or new offsets that nobody allowed.
        """
        plan = self.plan
        created = not self.past.started.isdisjoint({Stage.CREATE, Stage.WRITE})
        newer: Sequence[Record] = ()
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
            drift = self.folder / f"drift-{side}"
            self.migration.stages.snapshot(moved, drift)
            if accepted:
                newer = self.migration.stages.newer(drift, self.folder)
            else:
                self._refuse_new_offsets(drift, side)
        return newer

    def _refuse_new_offsets(self, drift: Path, side: str) -> None:
        there = set(self.migration.stages.new_offsets(drift, self.folder, side=side))
        drifted = sorted(self.plan.connectors_of(side) & there)
        if drifted:
            raise drift_error(side, drifted)

    def _backup(self, newer: Sequence[Record]) -> Path | None:
        """What `offsets restore` takes, synced; streamed, so that its size does not matter.

        What an earlier run of the plan has replaced stays in it, unless there is something `newer` now.
        """
        if self.plan.target_file() is not None:
            return None
        path = self.folder / "backup.ndjson"
        is_there = path.exists() and Stage.BACKUP in self.past.done
        if is_there and not newer:
            self.skipped.append(Stage.BACKUP)
            return path
        with self._noted(Stage.BACKUP):
            if not is_there:
                write_blocks(path, self._backup_blocks())
            if newer:
                with path.open("rb") as file:
                    write_blocks(path, with_newer(file, newer, name=str(path)))
        return path

    def _backup_blocks(self) -> Iterator[bytes]:
        stages, plan = self.migration.stages, self.plan
        yield from stages.backup(self.folder, plan)
        if plan.stale_copies:
            yield from backup_lines(stages.stale(self.folder), cluster_id=plan.cluster_id)

    def _create(self) -> TopicsMade:
        """The missing topics; the stage is over when none was refused."""
        if self.plan.target_file() is not None or self._is_over(Stage.CREATE):
            return TopicsMade()
        self.journal.write("started", stage=Stage.CREATE.value)
        made = create_missing(self.migration.app.with_whole_timeout(), self.plan)
        if not made.refused:
            self.journal.write("done", stage=Stage.CREATE.value, topics=list(made.created))
        return made

    def _clean(self) -> None:
        """Tombstones over older copies of what is to be written: a worker may read any copy last."""
        if not self.plan.stale_copies or self._is_over(Stage.CLEAN):
            return
        refuse(self.migration.app, self.plan, self.allowances)
        with self._noted(Stage.CLEAN) as outcome, self._nothing_left_open(0):
            copies = self.migration.stages.stale(self.folder)
            outcome["deleted"] = delete_copies(self.migration.app, self.plan, copies)

    def _write(self) -> tuple[SentCounts, int]:
        """What was sent, and how many records were there from an earlier run."""
        stages, plan = self.migration.stages, self.plan
        if Stage.VERIFY not in self.past.done and self._is_over(Stage.WRITE):
            return SentCounts(), plan.tally.to_write()
        to_send, part = plan.tally.to_write(), "decisions"
        resumed = Stage.WRITE in self.past.started and plan.target_file() is None
        if resumed:
            now = present_topics(self.migration.app.with_whole_timeout(), plan.targets)
            to_send, part = stages.unwritten(self.folder, now), "unwritten"
        tasks = self.past.write_tasks or stages.write_tasks(plan)
        with self._noted(Stage.WRITE, tasks=tasks) as outcome:
            sent = SentCounts()
            if to_send:
                refuse(self.migration.app, plan, self.allowances)  # snapshot and backup took their time
                with self._nothing_left_open(tasks):
                    sent = stages.write(self.folder, plan, tasks=tasks, records=to_send, part=part)
            if sent.records() != to_send:
                raise EosctlError(
                    f"{counted(to_send, 'record was', 'records were')} to be sent, and {sent.records():,} confirmed",
                    hint=f"Compare with: eosctl offsets verify {quote(str(self.folder / 'plan.json'))}",
                )
            outcome["sent"] = to_send
        if plan.target_file() is None:
            wait_until_visible(app_of(self.migration.app.with_whole_timeout(), plan.targets[0]), sent.last_offsets)
        return sent, plan.tally.to_write() - to_send

    @contextmanager
    def _nothing_left_open(self, tasks: int) -> Iterator[None]:
        """Ends the transactions of a write that fails or is interrupted: they would hide the target from everyone."""
        try:
            yield
        except (EosctlError, KeyboardInterrupt):
            with suppress(EosctlError):  # a run that resumes tries again, and says what stands in its way
                self._end_open_transactions(tasks)
            raise

    def _verify(self) -> Comparison:
        with self._noted(Stage.VERIFY) as outcome:
            compared = self.migration.compare(self.plan, "target")
            if compared.compared != self.plan.tally.keys:
                raise EosctlError(
                    f"{self.plan.tally.keys} keys were decided, {compared.compared} were read back and compared",
                    hint="This is a defect of eosctl; please report it with the plan's snapshot folder.",
                )
            outcome |= {"compared": compared.compared, "differing": compared.differing}
        return compared
