"""Reports of migrations: plan, result and verification, with keys and values made readable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, field
from msgspec.structs import asdict

from eosctl.core.offsets.migration import (
    Comparison,
    DecidedKey,
    MigrationPlan,
    Mismatch,
    PlannedTopic,
    SentCounts,
    topic_of,
)
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.offsets.views import KeyAction
from eosctl.core.wording import counted, json_bytes
from eosctl.errors import EosctlError, ExitCode, RefusedError
from eosctl.foreign import shell_word
from eosctl.migrate import codes
from eosctl.migrate.journal import Stage, resume_command, stages_of
from eosctl.migrate.rows import (
    MIGRATED_IN_PART,
    MIGRATED_OTHERWISE,
    OFFSETS_MIGRATE_PLAN,
    OFFSETS_MIGRATE_RESULT,
    OFFSETS_VERIFY,
    CodeAndMessage,
    MigratedRow,
    MigratedSummary,
    MigratePlanData,
    MigrateResultData,
    MigrationFacts,
    MigrationSummary,
    MigrationTopic,
    MismatchRow,
    NotCreatedPart,
    SourcePart,
    StageOutcome,
    StageRow,
    StoredPlace,
    VerifyData,
    WrittenPart,
)
from eosctl.offsets.listing import comparison_exit_code, hidden_problem
from eosctl.offsets.rows import MOST_ROWS, partition_json, value_json
from eosctl.offsets.stores.columns import TopicsMade
from eosctl.offsets.write_rows import ActionCounts
from eosctl.output.rows import Counts, Kind, Place, Printed
from eosctl.report import Json, Problem, Report, Row
from eosctl.state.backups import undo_command
from eosctl.state.journal import Progress

_MOST_REASONS = 5
"""Hundreds of topics are mostly refused for the same reason."""


class Applied(Struct, frozen=True):
    """The result of an apply: `sent` by this run, `already` there from an earlier one, and the target `compared`.

    Nothing was sent if one of the target `topics` was refused. `skipped` are the stages that were done before; `backup`
    is None if nothing can be overwritten. `progress` says how far it came.
    """

    sent: SentCounts
    compared: Comparison
    topics: TopicsMade
    backup: Path | None
    overrides: tuple[str, ...]
    already: int = 0
    skipped: tuple[Stage, ...] = ()
    progress: Progress[str] = field(default_factory=lambda: Progress({}))

    @property
    def error(self) -> EosctlError | None:
        """The error that ended it early."""
        return self.progress.error

    @property
    def sent_is_known(self) -> bool:
        """Whether the number of sent records is known: a write that was cut off may have committed a part."""
        return self.progress.failed != Stage.WRITE or isinstance(self.error, RefusedError)


def plan_row(decided: DecidedKey) -> MigratedRow:
    """Return one sample row: the key as it will be in the target, BEFORE and AFTER there."""
    sent = decided.action in ("write", "delete")
    partition = partition_for(decided.key, decided.partitions) if decided.partition is None else decided.partition
    topic, source_partition, offset = decided.source
    return MigratedRow(
        key=json_bytes(decided.key),
        connector=decided.route.target_connector,
        renamed_from=decided.route.connector if decided.route.connector != decided.route.target_connector else None,
        source_partition=source_partition_of(decided.key),
        action=KeyAction(decided.action),
        reason=decided.reason,
        before=value_json(decided.before),
        after=value_json(decided.source_value if sent else decided.before),
        source=SourcePart(topic=topic, partition=source_partition, offset=offset),
        target=Place(topic=topic_of(decided.route.target_topic), partition=partition),
    )


def _sample(plan: MigrationPlan) -> list[MigratedRow]:
    """Return the rows that the plan keeps."""
    return [convert(each, MigratedRow) for each in plan.sample]


def plan_report(
    plan: MigrationPlan, *, plan_file: Path, problems: tuple[Problem, ...] = (), exit_code: ExitCode = ExitCode.OK
) -> Report:
    """Report the plan."""
    return Report(
        kind=OFFSETS_MIGRATE_PLAN,
        rows=_sample(plan),
        summary=MigrationSummary(**_counts(plan)),
        data=MigratePlanData(**asdict(_facts(plan)), plan_file=str(plan_file)),
        target=_target(plan),
        problems=problems,
        exit_code=exit_code,
        touches=_touches(plan),
    )


def result_report(plan: MigrationPlan, applied: Applied) -> Report:
    """Report what was sent, and whether the target is now as planned."""
    compared = applied.compared
    kind, rows = _result_rows(plan, applied)
    return Report(
        kind=kind,
        rows=rows,
        summary=MigratedSummary(
            **_counts(plan),
            sent=applied.sent.records() if applied.sent_is_known else None,
            already_written=applied.already,
            transactions=applied.sent.transactions if applied.sent_is_known else None,
            verified=compared.compared - compared.differing,
            differing=compared.differing,
            hidden=len(compared.hidden),
        ),
        data=_result_data(plan, applied),
        target=_target(plan),
        problems=(
            *([] if applied.error is None else [Problem.of(applied.error)]),
            *_differ(compared, "target"),
            *_not_created(plan, applied.topics),
            *applied.progress.problems,
        ),
        exit_code=_exit_code(applied),
        touches=_touches(plan),
    )


def _result_rows(plan: MigrationPlan, applied: Applied) -> tuple[Kind, Sequence[Printed]]:
    """Return the keys as rows; those that differ, if some do; the stages, after an error."""
    if applied.topics.refused:
        return OFFSETS_MIGRATE_RESULT, []
    if applied.error is not None:
        return MIGRATED_IN_PART, _stage_rows(plan, applied)
    if not applied.compared.is_as_planned():
        return MIGRATED_OTHERWISE, _mismatch_rows(applied.compared)
    return OFFSETS_MIGRATE_RESULT, _sample(plan)


def _result_data(plan: MigrationPlan, applied: Applied) -> MigrateResultData:
    return MigrateResultData(
        **asdict(_facts(plan)),
        topics={
            topic: WrittenPart(written=written, tombstones=tombstones)
            for topic, (written, tombstones) in applied.sent.topics.items()
        },
        created=list(applied.topics.created),
        not_created=[
            NotCreatedPart(topic=topic, error=CodeAndMessage(code=str(refusal.code), message=refusal.message))
            for topic, refusal in applied.topics.refused.items()
        ],
        skipped=list(applied.skipped),
        backup=None if applied.backup is None else str(applied.backup),
        undo=_undo(plan, applied.backup),
        overrides=list(applied.overrides),
    )


def _stage_rows(plan: MigrationPlan, applied: Applied) -> list[StageRow]:
    """Return each stage with its outcome, for a run that was cut off."""
    progress = applied.progress
    rows: list[StageRow] = []
    of_topics = (Stage.BACKUP, Stage.CREATE) if plan.target_file() else ()
    for stage in stages_of(plan):
        if stage in of_topics:
            continue
        detail: str | None = progress.done.get(stage)
        outcome: StageOutcome
        if stage in applied.skipped:
            outcome = "done_before"
        elif detail is not None:
            outcome = "done"
        elif progress.failed == stage:
            outcome, detail = "failed", progress.error.message if progress.error else None
        else:
            outcome = "not_reached"
        rows.append(StageRow(stage=stage, outcome=outcome, detail=detail))
    return rows


def _exit_code(applied: Applied) -> ExitCode:
    """Return the exit code of the error that ended it, or of the first refusal if no topic could be created at all."""
    if applied.error is not None:
        return applied.error.exit_code
    for refusal in applied.topics.refused.values():
        return ExitCode.PARTIAL if applied.topics.created else refusal.exit_code
    return ExitCode.OK if applied.compared.is_as_planned() else ExitCode.PARTIAL


def _not_created(plan: MigrationPlan, made: TopicsMade) -> list[Problem]:
    """Report why the first topics could not be created, and how to go on."""
    if not made.refused:
        return []
    message = (
        f"{counted(len(made.refused), 'new topic was', 'new topics were')} not created, {len(made.created)} were; "
        "no offset was written"
    )
    again = f"When that is fixed: {resume_command(Path(_snapshot(plan)))}"
    reasons = [Problem.of(refusal) for refusal in made.refused.values()]
    return [*reasons[:_MOST_REASONS], Problem(codes.TOPICS_NOT_CREATED, message, hint=again)]


def _snapshot(plan: MigrationPlan) -> str:
    return f"{plan.snapshot_base}/{plan.name()}"


def _undo(plan: MigrationPlan, backup: Path | None) -> str | None:
    """Return the command line that undoes a migration; None for a file, where nothing was before."""
    if backup is None:
        return None
    profile = plan.target_profile()
    return undo_command(backup) + (f" --profile {shell_word(profile)}" if profile else "")


def verify_report(plan: MigrationPlan, comparisons: dict[str, Comparison], *, strict: bool) -> Report:
    """Report both sides against the plan.

    Exit code 3 if a key differs; 7, or 3 with `strict`, if one is hidden.
    """
    rows = [row for compared in comparisons.values() for row in _mismatch_rows(compared)]
    summary: Counts = {}
    for side, compared in comparisons.items():
        summary[f"{side}_compared"], summary[f"{side}_differing"] = compared.compared, compared.differing
        summary[f"{side}_hidden"] = len(compared.hidden)
    differing = any(compared.differing for compared in comparisons.values())
    return Report(
        kind=OFFSETS_VERIFY,
        rows=rows,
        summary=summary,
        data=VerifyData(plan=plan.digest()),
        target=_target(plan),
        problems=tuple(problem for side, compared in comparisons.items() for problem in _differ(compared, side)),
        exit_code=comparison_exit_code(
            differing=differing, hidden=any(compared.hidden for compared in comparisons.values()), strict=strict
        ),
    )


def _mismatch_rows(compared: Comparison) -> list[MismatchRow]:
    return [mismatch_row(one) for one in (*compared.mismatches, *compared.hidden[:MOST_ROWS])]


def mismatch_row(mismatch: Mismatch) -> MismatchRow:
    """Return a row for a key that is not as planned."""
    return MismatchRow(
        key=json_bytes(mismatch.key),
        connector=mismatch.connector,
        source_partition=source_partition_of(mismatch.key),
        side=mismatch.side,
        status=mismatch.status,
        expected=value_json(mismatch.expected),
        actual=value_json(mismatch.actual),
        target=StoredPlace(topic=mismatch.topic, partition=mismatch.partition),
    )


def source_partition_of(key: bytes) -> Json:
    """Return the source partition in a key, as JSON; None if there is none."""
    decoded = decode_key(key)
    return partition_json(decoded) if isinstance(decoded, OffsetKey) else None


def _differ(compared: Comparison, side: str) -> Iterator[Problem]:
    if compared.differing:
        wrong = "is not what the plan says" if compared.differing == 1 else "are not what the plan says"
        message = f"{compared.differing:,} of {counted(compared.compared, 'key')} in the {side} {wrong}"
        shown = len(compared.mismatches)
        more = f"The first {shown} are shown. " if compared.differing > shown else ""
        yield Problem(codes.PLAN_MISMATCH, message, hint=f"{more}Was the plan applied, and has nobody written since?")
    if compared.hidden:
        yield hidden_problem(len(compared.hidden), compared.compared, where=f" in the {side}")


def _counts(plan: MigrationPlan) -> dict[str, Any]:
    """Return the members of a MigrationSummary."""
    tally = plan.tally
    return {
        "connectors": len(plan.routes),
        "records": tally.records,
        "older": tally.older,
        "unowned": tally.unowned,
        "not_selected": tally.not_selected,
        "superseded": tally.superseded,
        "keys": tally.keys,
        "conflicts": tally.conflicts,
        "scattered": tally.scattered,
        "counts": convert(tally.counts, ActionCounts),
    }


def _facts(plan: MigrationPlan) -> MigrationFacts:
    return MigrationFacts(
        plan=plan.digest(),
        planned_at=plan.planned_at,
        snapshot=_snapshot(plan),
        policy=plan.policy.value,
        parts=len(plan.parts),
        connector_counts={name: dict(counts) for name, counts in plan.tally.connector_counts.items()},
        sources=[_topic(topic) for topic in plan.sources],
        targets=[_topic(topic) for topic in plan.targets],
    )


def _topic(topic: PlannedTopic) -> MigrationTopic:
    return MigrationTopic(
        topic=topic.topic,
        kafka_cluster_id=topic.cluster_id,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        exists=topic.topic_id is not None,
    )


def _touches(plan: MigrationPlan) -> Mapping[str, Sequence[str]] | None:
    """Return the names of everything that a plan writes to, if it has more keys than are shown."""
    if plan.tally.keys <= len(plan.sample):
        return None
    counts = plan.tally.connector_counts
    written = [
        route
        for route in plan.routes
        if any(
            counts.get(route.connector, {}).get(action) for action in (KeyAction.WRITE.value, KeyAction.DELETE.value)
        )
    ]
    topics = {topic_of(route.target_topic) for route in written if plan.target_file() is None}
    return {"connectors": sorted({route.target_connector for route in written}), "topics": sorted(topics)}


def _target(plan: MigrationPlan) -> Row:
    return {"kafka_cluster_id": plan.cluster_id, "group_id": plan.group_id}
