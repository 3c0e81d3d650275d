"""The rows of `task-counts list`, `show` and `validate`, and the report of `replay`, from what was read.

There is one row per connector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, cast

from msgspec import UNSET, UnsetType, convert
from msgspec.structs import asdict

from eosctl.core.configs.fold import ConfigState
from eosctl.core.configs.view import state_document
from eosctl.core.findings import Finding
from eosctl.core.ids import TransactionalId, task_transactional_ids
from eosctl.core.wording import counted
from eosctl.foreign import printable
from eosctl.output.cells import TOTAL, format_cell, summary_lines
from eosctl.output.rows import BytesText, FindingPart, Header, Kind, Printed, Severity, ShownAs, Text, UnseenParts
from eosctl.report import Problem, Report
from eosctl.task_counts.rules import (
    MAX_LISTED_IDS,
    Case,
    FencingDecision,
    decision_after_commit,
    fencing_decision,
    find_problems,
)

PluginType = Literal["source", "sink", "unknown"]


def _codes(findings: Iterable[FindingPart]) -> list[str]:
    return [finding.code for finding in findings]


class AfterCommit(Printed):
    """The leader's decision after the next task commit."""

    would_fence_count: Annotated[int, "How many ids it would fence."]
    would_fence: Annotated[list[TransactionalId], "The ids that it would fence, at most 10000 of them."]
    reason: Annotated[str, "Why."]


class TaskCountRow(Printed):
    """A connector's task-count record, and what the leader would do."""

    connector: Annotated[str, "The connector."]
    type: Annotated[PluginType, "What the connector is."]
    recorded: Annotated[int | None, "The count of its record; null without a record."]
    record_offset: Annotated[int | None, "The offset of its record."]
    newest_commit_offset: Annotated[int | None, "The offset of its newest task commit.", Header("COMMIT-OFFSET")]
    task_count: Annotated[int | None, "How many tasks its newest task commit names.", Header("TASKS")]
    target_state: Annotated[str | None, "The state that it is to have.", Header("STATE")]
    pending_fencing: Annotated[bool | None, "Whether the leader fences before its tasks start again."]
    decision: Annotated[str, "What the leader would do now, and why."]
    would_write: Annotated[int | None, "The count that the leader would record; null where it records nothing."]
    would_fence_count: Annotated[int, "How many ids the leader would fence now."]
    would_fence: Annotated[list[TransactionalId], "The ids that the leader would fence now, at most 10000 of them."]
    after_next_commit: Annotated[AfterCommit, "What the leader would do after the next task commit."]
    alive_ids: Annotated[
        list[TransactionalId] | None,
        "The ids of its tasks that the coordinators know; text shows how many.",
        ShownAs(len),
    ]
    findings: Annotated[list[FindingPart], "What is wrong with its record; text shows the codes.", ShownAs(_codes)]

    @Header("RECORDED")
    def shown_record(self) -> int | str | None:
        """Return the count of the connector's record; a sink lacks nothing without one."""
        return "none (sink)" if self.recorded is None and self.type == "sink" else self.recorded

    def fencing(self) -> str | bool | None:
        """Return whether the leader will fence before the tasks start again, and how many ids."""
        count = self.would_fence_count
        return f"due, {count} {'id' if count == 1 else 'ids'}" if self.pending_fencing is True else self.pending_fencing


class TaskCountsSummary(Printed):
    """The number of connectors and findings."""

    connectors: Annotated[int, "How many connectors there are.", TOTAL]
    error: Annotated[int, "Findings that are errors."]
    warning: Annotated[int, "Findings that are warnings."]
    info: Annotated[int, "Findings that are only informative."]
    checked_against_connect: Annotated[bool, "Whether a worker said which connectors there are."]


class ValidateData(Printed):
    """The parts that could not be read."""

    unseen: UnseenParts


def _finding_lines(report: Report) -> Iterator[str]:
    """Render every finding as `severity code subject: message`, its fix below; then the summary."""
    for row in report.rows_of(TaskCountRow):
        for finding in row.findings:
            subject = f"{finding.severity} {finding.code} {format_cell(row.connector)}"
            yield f"{subject}: {printable(finding.message)}"
            yield f"  fix: {printable(finding.fix)}"
    yield from summary_lines(report)


def _detail_lines(report: Report) -> Iterator[str]:
    """Render the leader's decision and the names of the ids."""
    for row in report.rows_of(TaskCountRow):
        yield f"decision: {format_cell(row.decision)}"
        if row.would_fence:
            yield f"would fence: {format_cell(row.would_fence)}"
        yield f"after the next task commit: {format_cell(row.after_next_commit.reason)}"
        if row.alive_ids != []:
            yield f"alive ids: {format_cell(row.alive_ids)}"
    yield from _finding_lines(report)


_COLUMNS = ("target_state", "task_count", "shown_record", "fencing", "alive_ids", "findings")
_OFFSETS = ("record_offset", "newest_commit_offset")
_WIDE = ("type", *_OFFSETS, "decision")
_EMPTY = "The config topic names no connector."
TASK_COUNTS_LIST = Kind(
    "task-counts-list",
    "Task-count records and what a leader would do.",
    row=TaskCountRow,
    summary=TaskCountsSummary,
    text=Text(columns=("connector", *_COLUMNS), wide=_WIDE, empty=_EMPTY),
)
TASK_COUNTS_SHOW = Kind(
    "task-counts-show",
    "One connector's task-count record.",
    row=TaskCountRow,
    summary=TaskCountsSummary,
    text=Text(columns=("connector", "type", *_COLUMNS, *_OFFSETS), lines=_detail_lines),
)
TASK_COUNTS_VALIDATE = Kind(
    "task-counts-validate",
    "Task-count records with what is wrong with them.",
    row=TaskCountRow,
    summary=TaskCountsSummary,
    data=ValidateData,
    text=Text(columns=("connector", *_COLUMNS), wide=_WIDE, lines=_finding_lines, empty=_EMPTY),
)


_Config = Annotated[dict[str, object] | None, "Its config, without secrets; null where it has none."]
_TargetState = Annotated[str | None, "The state that it is to have.", Header("STATE")]
_TaskCount = Annotated[int | None, "How many tasks its newest task commit names.", Header("TASKS")]
_TaskIds = Annotated[list[int], "The tasks that workers would run."]
_Inconsistent = Annotated[bool, "Whether configs of its newest task commit are missing.", Header("INCOMPLETE")]
_PendingFencing = Annotated[
    bool | None, "Whether the leader fences before its tasks start again.", Header("FENCING-DUE")
]
_Recorded = Annotated[int | None, "The count of its task-count record.", Header("RECORDED")]
_Generation = Annotated[int | None, "How many task commits the worker has seen.", Header("GENERATION")]


class HeldConnector(Printed):
    """A connector as a worker holds it."""

    config: _Config
    target_state: _TargetState
    task_count: _TaskCount
    task_ids: _TaskIds
    inconsistent: _Inconsistent
    pending_fencing: _PendingFencing
    task_count_record: _Recorded
    task_config_generation: _Generation


class ReplayRow(Printed):
    """A connector as a worker holds it, with its name."""

    connector: Annotated[str, "The connector."]
    config: _Config
    target_state: _TargetState
    task_count: _TaskCount
    task_ids: _TaskIds
    inconsistent: _Inconsistent
    pending_fencing: _PendingFencing
    task_count_record: _Recorded
    task_config_generation: _Generation


class ReplaySummary(Printed):
    """The number of records, and where they end."""

    connectors: Annotated[int, "How many connectors there are."]
    ignored: Annotated[int, "How many records change nothing in a worker."]
    offset: Annotated[int, "The offset after the last record."]


class IgnoredConfig(Printed, kw_only=True):
    """A record that changes nothing in a worker."""

    offset: Annotated[int, "Its offset."]
    key: Annotated[object, "Its key."]
    code: Annotated[str, "What is wrong with it."] | UnsetType = UNSET
    reason: Annotated[str, "What is wrong with it, in words."]


class ReplayState(Printed):
    """The state that a worker holds."""

    offset: Annotated[int, "The offset after the last record."]
    connectors: Annotated[dict[str, HeldConnector], "Each connector."]
    ignored: Annotated[list[IgnoredConfig], "Records that change nothing in a worker."]
    commits_without_connector: Annotated[list[int], "Offsets of task commits of connectors that had no config."]


class CommittedPart(Printed):
    """A record that was committed."""

    offset: Annotated[int, "Its offset."]
    value: Annotated[object, "Its value, without secrets; null is a tombstone."]


class AbortedRecord(Printed):
    """A record of an aborted transaction, which only preparing and disabled workers take."""

    offset: Annotated[int, "Its offset."]
    key: Annotated[BytesText | None, "Its key."]
    value: Annotated[object, "Its value, without secrets; null is a tombstone."]
    newest: Annotated[bool, "Whether no record under its key comes after it."]
    differs: Annotated[bool, "Whether what is committed says something else."]
    committed: Annotated[CommittedPart | None, "What is committed in its place."]


class ReplayData(Printed):
    """The state that a worker holds, and that of a worker that also reads aborted records."""

    state: Annotated[ReplayState, "What a worker holds."]
    differs_when_uncommitted: (
        Annotated[list[str], "Connectors that preparing and disabled workers hold differently."] | UnsetType
    ) = UNSET
    aborted_records: Annotated[list[AbortedRecord], "The records of aborted transactions."] | UnsetType = UNSET


_MOST_OFFSETS = 10


def _replay_lines(report: Report) -> Iterator[str]:
    """Render the records that change nothing in a worker, with reasons; then aborted ones; then the summary."""
    data = report.data_of(ReplayData)
    for record in data.state.ignored:
        yield f"ignored {format_cell(record.key)} at offset {record.offset}: {printable(record.reason)}"
    if forgotten := data.state.commits_without_connector:
        offsets = ", ".join(map(str, forgotten[:_MOST_OFFSETS])) + (", ..." if forgotten[_MOST_OFFSETS:] else "")
        yield (
            f"{counted(len(forgotten), 'commit')} of tasks without a config of the connector before, at offset "
            f"{offsets}: workers of 3.7.1 or newer forget the tasks (KAFKA-17719)"
        )
    yield from _aborted_lines(data.aborted_records or [])
    yield from summary_lines(report)


def _aborted_lines(aborted: Iterable[AbortedRecord]) -> Iterator[str]:
    """Render the aborted records that preparing and disabled workers end with, and what the others have instead."""
    for record in aborted:
        committed = record.committed
        real = f"committed at {committed.offset}: {_json(committed.value)}" if committed else "nothing committed"
        if record.newest and record.differs:
            yield f"aborted {format_cell(record.key)} at offset {record.offset}: {_json(record.value)}; {real}"


def _json(value: object) -> str:
    """Render a record's value in one line; null is a tombstone."""
    return "tombstone" if value is None else format_cell(value)


TASK_COUNTS_REPLAY = Kind(
    "task-counts-replay",
    "The state of a worker that has read these config records.",
    row=ReplayRow,
    summary=ReplaySummary,
    data=ReplayData,
    text=Text(
        columns=(
            *("connector", "target_state", "task_count", "task_ids", "task_config_generation", "inconsistent"),
            *("task_count_record", "pending_fencing"),
        ),
        lines=_replay_lines,
        empty="The records name no connector.",
    ),
)


_SINK = "a sink connector has no task-count record, and is never fenced"


def case_row(case: Case) -> TaskCountRow:
    """Return the leader's decisions now and after the next task commit; name at most MAX_LISTED_IDS ids."""
    connector, is_sink = case.connector, case.plugin_type == "sink"
    decision = FencingDecision(0, None, _SINK) if is_sink else fencing_decision(connector)
    later = decision if is_sink else decision_after_commit(connector)
    return TaskCountRow(
        connector=connector.name,
        type=cast("PluginType", case.plugin_type),
        recorded=connector.task_count_record,
        record_offset=connector.record_offset,
        newest_commit_offset=connector.commit_offset,
        task_count=connector.task_count,
        target_state=connector.target_state,
        pending_fencing=connector.pending_fencing and not is_sink,  # workers note the commit, and never ask
        decision=decision.reason,
        would_write=decision.writes,
        would_fence_count=decision.fence_count,
        would_fence=_fenced_ids(case, decision),
        after_next_commit=AfterCommit(
            would_fence_count=later.fence_count, would_fence=_fenced_ids(case, later), reason=later.reason
        ),
        alive_ids=None if case.alive is None else [task.transactional_id for task in case.alive],
        findings=[_finding_part(finding) for finding in find_problems(case)],
    )


def _finding_part(finding: Finding) -> FindingPart:
    """Return the finding without its subject, which is the connector of the row."""
    return FindingPart(
        code=str(finding.code),
        severity=cast("Severity", finding.severity),
        message=finding.message,
        fix=finding.fix,
    )


def _fenced_ids(case: Case, decision: FencingDecision) -> list[TransactionalId]:
    return task_transactional_ids(case.group_id, case.connector.name, min(decision.fence_count, MAX_LISTED_IDS))


def replay_report(
    state: ConfigState,
    *,
    target: Mapping[str, object],
    problems: Sequence[Problem] = (),
    differing: list[str] | UnsetType = UNSET,
    aborted: Sequence[Mapping[str, object]] | UnsetType = UNSET,
) -> Report:
    """Report the state of a worker; `differing` and `aborted` if both views of the topic were read."""
    held = convert(state_document(state), ReplayState)
    return Report(
        kind=TASK_COUNTS_REPLAY,
        rows=[ReplayRow(connector=name, **asdict(each)) for name, each in held.connectors.items()],
        summary=ReplaySummary(connectors=len(held.connectors), ignored=len(state.ignored), offset=state.offset),
        data=ReplayData(
            state=held,
            differs_when_uncommitted=differing,
            aborted_records=UNSET if aborted is UNSET else convert(aborted, list[AbortedRecord]),
        ),
        target=target,
        problems=problems,
    )
