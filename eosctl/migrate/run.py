"""One invocation of `offsets migrate` or `offsets verify`: the report to show, and the function that applies it.

`offsets verify BACKUP` compares the topics with what a write put there or, after a restore, with what was before. It
writes nothing. `verify_plan` does the same for a bulk plan.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.allowances import Allowances
from eosctl.core.offsets.migration import MigrationPlan, plan_file_text
from eosctl.core.offsets.records import OffsetKey, as_plain_json, decode_key
from eosctl.core.offsets.views import KeyMismatch, mismatch
from eosctl.core.wording import counted, json_bytes
from eosctl.deadline import Deadline
from eosctl.engine.backups.entries import Mismatched, PresentRecords, mismatches
from eosctl.engine.backups.file import is_columnar
from eosctl.engine.columns import Table
from eosctl.errors import EosctlError, ExitCode, InputFileError, RefusedError, UsageError
from eosctl.machine.files import write_whole
from eosctl.migrate import codes
from eosctl.migrate.apply import apply_plan, past_of, refuse, source_profiles
from eosctl.migrate.journal import OldSnapshots, migration_journal, old_snapshots, read_earlier_runs
from eosctl.migrate.plan import Migration, MigrationRequest, MigrationStages, OpenStages, snapshot_folder, spark_stages
from eosctl.migrate.report import plan_report, result_report, verify_report
from eosctl.migrate.rows import OFFSETS_VERIFY, MismatchRow, StoredPlace, VerifyData
from eosctl.migrate.stores import profile_of, source_stores
from eosctl.migrate.topics import app_of, gather_sources, refuse_stale, some
from eosctl.offsets import codes as offset_codes
from eosctl.offsets.files.backup import away_problems, look_at_parts, read_entries
from eosctl.offsets.guard import running_connectors, source_problem
from eosctl.offsets.listing import HIDDEN, comparison_exit_code, hidden_problem
from eosctl.offsets.rows import MOST_ROWS, partition_json, value_json
from eosctl.offsets.writes import stale_problem
from eosctl.plan import Plan
from eosctl.report import Problem, Report
from eosctl.target import Target


def is_backup(path: Path) -> bool:
    """Tell whether the file holds records, as columns or one per line, and no plan.

    False for a file that can't be read. Raises UsageError for a pipe: it can't be read twice.
    """
    if path.is_fifo():
        raise UsageError(f"{path} is a pipe, and would be read twice", hint="Write it to a file first.")
    if is_columnar(path):
        return True
    try:
        with path.open("rb") as file:
            first = json.loads(next((line for line in file if line.strip()), b""))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "partition" in first


def verify_backup(app: App, path: Path, *, before: bool = False, strict: bool = False) -> Report:
    """Read every key of a backup again, and compare it with what was written or, with `before`, with what was there.

    Exit code 3, with the first keys that differ; 7, or 3 with `strict`, if an open transaction hides one. Raises
    InputFileError, NotFoundError for a topic that is gone, RefusedError for the backup of another cluster, UsageError
    for a file that does not have what was written.
    """
    entries = read_entries(app, str(path))
    if not before and entries.unchecked:
        raise UsageError(
            f"{path} does not have what was written over its records",
            hint="--before compares with the records themselves.",
        )

    found = look_at_parts(app, entries, partial(_look, before=before))
    counts, rows = Counter[bool](), list[MismatchRow]()
    for of_part, shown in found.parts:
        rows += [row for is_hidden, number, row in shown if counts[is_hidden] + number <= MOST_ROWS]
        counts += of_part
    differing, hidden = counts[False], counts[True]
    return Report(
        kind=OFFSETS_VERIFY,
        rows=rows,
        summary={"target_compared": entries.count, "target_differing": differing, "target_hidden": hidden},
        data=VerifyData(backup=str(path), compared_with="before" if before else "written"),
        target={"kafka_cluster_id": found.stores.cluster_id, "group_id": app.target.group_id},
        problems=[*_problems(differing, hidden, entries.count, before=before), *away_problems(found)],
        exit_code=comparison_exit_code(differing=bool(differing), hidden=bool(hidden), strict=strict),
    )


def _look(
    entries: Table, now: PresentRecords, *, before: bool
) -> tuple[Counter[bool], Sequence[tuple[bool, int, MismatchRow]]]:
    """Count the keys that differ, and those that are hidden (True); also return the first of both, numbered."""
    counts, shown = Counter[bool](), list[tuple[bool, int, MismatchRow]]()
    for each in mismatches(entries, now, before=before):
        counts[each.hidden] += 1
        if counts[each.hidden] <= MOST_ROWS:
            shown.append((each.hidden, counts[each.hidden], _row(each)))
    return counts, shown


def _row(wrong: Mismatched) -> MismatchRow:
    key = decode_key(wrong.key)
    status = HIDDEN if wrong.hidden else _how(wrong).value
    return MismatchRow(
        key=json_bytes(wrong.key),
        connector=str(as_plain_json(key.connector)) if isinstance(key, OffsetKey) else None,
        source_partition=partition_json(key) if isinstance(key, OffsetKey) else None,
        side="target",
        status=status,
        expected=value_json(wrong.expected),
        actual=value_json(wrong.actual),
        target=StoredPlace(topic=wrong.topic, partition=wrong.partition),
    )


def _how(wrong: Mismatched) -> KeyMismatch:
    return KeyMismatch.NOT_REWRITTEN if wrong.older else mismatch(wrong.expected, wrong.actual, found=wrong.found)


def _problems(differing: int, hidden: int, compared: int, *, before: bool) -> list[Problem]:
    what, problems = "what was there before" if before else "what was written", list[Problem]()
    if differing:
        wrong = "does not hold" if differing == 1 else "do not hold"
        message = f"{differing:,} of {counted(compared, 'key')} {wrong} {what}"
        more = f"The first {MOST_ROWS} are shown. " if differing > MOST_ROWS else ""
        hint = f"{more}Has someone written since, or was the write cut off?"
        problems.append(Problem(codes.BACKUP_MISMATCH, message, hint=hint))
    return problems + ([hidden_problem(hidden, compared)] if hidden else [])


_LOOK_S = 10.0
"""Time for checking whether a plan still holds; before it writes, Spark checks again, however long it takes."""


class Engine(Struct, frozen=True):
    """The place where the job runs: a Spark master with its conf; `open_stages` replaces Spark altogether."""

    snapshots: Path
    master: str = "local[*,4]"
    conf: Mapping[str, str] = {}
    open_stages: OpenStages | None = None

    def opener(self, app: App, profiles: Sequence[str]) -> OpenStages:
        """Return the function that opens the stages, with access to the clusters of `profiles`."""
        if self.open_stages is not None:
            return self.open_stages
        return spark_stages(app, snapshots=self.snapshots, master=self.master, conf=self.conf, profiles=profiles)


class _CutOffError(Exception):
    """Raised to leave the stages as errors do: Spark is ended at once, and no further call is made to it."""


@dataclass(slots=True)
class _Opened:
    """Stages that are open; `cut_off`: an error or Ctrl-C ended the work that they were opened for."""

    stages: MigrationStages
    cut_off: bool = False

    def apply(self, migration: Migration, plan: MigrationPlan, allowances: Allowances, *, resume: bool) -> Report:
        """Apply the plan; the report says what was done, even if it was cut off."""
        applied = apply_plan(migration, plan, allowances, resume=resume)
        self.cut_off = applied.error is not None
        return result_report(plan, applied)


@contextmanager
def _opened(opener: OpenStages) -> Iterator[_Opened]:
    with suppress(_CutOffError), opener() as stages:
        opened = _Opened(stages)
        yield opened
        if opened.cut_off:
            raise _CutOffError


@contextmanager
def prepared_migration(
    app: App,
    request: MigrationRequest,
    engine: Engine,
    *,
    allowances: Allowances,
    plan_out: Path | None = None,
    prune: bool = False,
) -> Iterator[Plan]:
    """Plan now; inside the block the plan can be applied with the same Spark session. `plan_out` only plans."""
    request.selection.check()
    request.new_topics.check(request.target)
    stores = source_stores(app, request.sources, request.selection)
    found = gather_sources(app, list(stores), allow_open_transactions=request.allow_open_transactions)
    sources = [replace(topic, connectors=stores[topic.name]) for topic in found]
    profiles = {source.profile for source in sources} | {profile_of(request.target)}
    with _opened(engine.opener(app, sorted(filter(None, profiles)))) as opened:
        migration = Migration(app, opened.stages, engine.snapshots)
        plan = migration.plan(request, sources)
        if plan_out is not None:
            _save(plan, plan_out)
        plan_file = plan_out or snapshot_folder(plan) / "plan.json"

        def apply() -> Report:
            refuse(app, plan, allowances)
            return opened.apply(migration, plan, allowances, resume=False)

        prepared = _prepared(app, plan, plan_file, apply, prune=prune)
        yield replace(prepared, apply=None) if plan_out else prepared


def migration_from_file(
    app: App,
    plan: MigrationPlan,
    engine: Engine,
    *,
    allowances: Allowances,
    plan_file: Path,
    resume: bool = False,
    prune: bool = False,
) -> Plan:
    """Prepare a plan that was made before; Spark starts when it is applied. `resume` goes on with what was begun.

    The plan is refused if it no longer holds.
    """
    stale = _stale(app, plan, allowances, resume=resume)

    def apply() -> Report:
        folder = snapshot_folder(plan)
        past = past_of(folder, migration_journal(folder, app.clock), resume=resume)
        if not past.ended:
            refuse(app, plan, allowances)  # before Spark takes its seconds to start
        with _opened(engine.opener(app, plan.profiles())) as opened:
            migration = Migration(app, opened.stages, engine.snapshots)
            return opened.apply(migration, plan, allowances, resume=resume)

    if isinstance(stale, RefusedError):
        return replace(_prepared(app, plan, plan_file, apply, prune=prune), refusal=stale)
    return _prepared(app, plan, plan_file, apply, prune=prune, untold=stale)


def _stale(app: App, plan: MigrationPlan, allowances: Allowances, *, resume: bool) -> EosctlError | None:
    """Return the RefusedError of a plan that no longer holds, or the error why that can't be checked in a moment.

    None for a plan that was begun or is over: there the journal decides.
    """
    past = read_earlier_runs(migration_journal(snapshot_folder(plan), app.clock))
    if past.ended or (past.begun and not resume):
        return None
    quick = replace(app, deadline=Deadline.after(min(_LOOK_S, app.deadline.remaining_s()), app.clock))
    try:
        refuse_stale(
            quick,
            plan,
            accepted=allowances.accept_drift,
            past=past,
            allow_open_transactions=allowances.allow_open_transactions,
        )
    except EosctlError as exc:
        return exc
    return None


def verify_plan(app: App, plan: MigrationPlan, engine: Engine, *, strict: bool = False) -> Report:
    """Read both sides again and compare them with the plan."""
    with engine.opener(app, plan.profiles())() as stages:
        migration = Migration(app, stages, engine.snapshots)
        sides = {side: migration.compare(plan, side) for side in ("source", "target")}
        return verify_report(plan, sides, strict=strict)


def _prepared(
    app: App,
    plan: MigrationPlan,
    plan_file: Path,
    apply: Callable[[], Report],
    *,
    prune: bool,
    untold: EosctlError | None = None,
) -> Plan:
    """Return the plan to show and to apply; `untold` is why it is unknown whether the plan still holds."""
    to_apply: Callable[[], Report] | None = partial(_pruned, app, plan, apply) if prune else apply
    if plan.tally.counts.get("conflict") or not plan.tally.to_write():
        to_apply = None
    show = partial(_show, app, plan, plan_file, untold)
    return Plan(show, "Apply this plan?", to_apply, _written_to(app, plan))


def _show(app: App, plan: MigrationPlan, plan_file: Path, untold: EosctlError | None) -> Report:
    undecided = plan.tally.counts.get("conflict", 0)
    if undecided:
        problem = Problem(
            offset_codes.CONFLICTS,
            f"{counted(undecided, 'key is', 'keys are')} in conflict and --conflict fail decides none; nothing will be "
            "written",
            hint=offset_codes.CONFLICTS.next,
        )
        report = plan_report(plan, plan_file=plan_file, problems=(problem,), exit_code=ExitCode.REFUSED)
    else:
        report = plan_report(plan, plan_file=plan_file, problems=tuple(_warnings(app, plan)))
    if untold is None:
        return report
    message = f"whether the plan still holds is not known yet: {untold.message}"
    warning = Problem(untold.code, message, hint=untold.hint).as_warning()
    return replace(report, problems=[*report.problems, warning])


def _warnings(app: App, plan: MigrationPlan) -> Iterator[Problem]:
    yield from _running(app, plan)
    yield from _unchecked(app, plan)
    if plan.stale_copies:
        yield stale_problem(plan.stale_copies)
    if plan.tally.others:
        yield _others_problem(plan)
    left = _old_snapshots(app, plan).problem(Path(plan.snapshot_base))
    if left is not None:
        yield left


def _others_problem(plan: MigrationPlan) -> Problem:
    """Return the warning that topics have offsets of connectors that have other topics of their own."""
    count = sum(number for there in plan.tally.others.values() for number in there.values())
    topic, there = min(plan.tally.others.items())
    keys = counted(count, "key is", "keys are")
    return Problem(
        codes.OTHERS_OFFSETS,
        f"{keys} not taken from {some(sorted(plan.tally.others))}, as their connectors have another topic of their "
        f"own, or none; topic {topic} has some of {some(sorted(there))}",
        hint=codes.OTHERS_OFFSETS.next,
    )


def _old_snapshots(app: App, plan: MigrationPlan) -> OldSnapshots:
    return old_snapshots(Path(plan.snapshot_base), app.clock, besides=snapshot_folder(plan))


def _pruned(app: App, plan: MigrationPlan, apply: Callable[[], Report]) -> Report:
    """Apply the plan, and if that went well remove the snapshots of earlier ones; its own stays, to verify."""
    result = apply()
    if result.exit_code == ExitCode.OK:
        _old_snapshots(app, plan).remove()
    return result


def _written_to(app: App, plan: MigrationPlan) -> Target:
    """Return the target with what is expected of the cluster that is written to.

    Of a file nothing is expected, of another profile's cluster only its id, for the plan's group is the command's own.
    """
    if plan.target_file() is not None:
        return replace(app.target, expect={})
    there = app_of(app, plan.targets[0]).target if plan.targets else app.target
    if there is app.target:
        return there
    return replace(there, expect={name: each for name, each in there.expect.items() if name == "kafka_cluster_id"})


def _running(app: App, plan: MigrationPlan) -> tuple[Problem, ...]:
    """Warn while connectors run: the plan can be looked at, and will be refused."""
    if plan.target_file() is not None or not app.target.connect_urls:
        return ()
    running = running_connectors(app.with_whole_timeout(), plan.connectors())
    if not running:
        return ()
    message = f"not stopped: {', '.join(running)}"
    return (Problem(codes.RUNNING, message, hint="The plan can't be applied while they run."),)


def _unchecked(app: App, plan: MigrationPlan) -> Iterator[Problem]:
    """Warn for each cluster that is only read if it is unknown whether the connectors run there."""
    if plan.target_file() is not None:
        return
    for profile in source_profiles(plan):
        if (problem := source_problem(app.elsewhere(profile), profile)) is not None:
            yield problem


def _save(plan: MigrationPlan, path: Path) -> None:
    try:
        write_whole(path, lambda file: file.write(plan_file_text(plan).encode()))
    except OSError as exc:
        hint = getattr(exc, "hint", "Check --plan-out.")
        raise InputFileError(f"cannot write {path}: {exc.strerror or exc}", hint=hint) from exc
