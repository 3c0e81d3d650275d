"""The rows of `task-counts write` and `clean`, and the effects of a record that is not yet written.

The rows are the record to write, and the records to compact away. The effects are later decisions, and the ids that the
record would leave out; they are judged from values that were read elsewhere, without reading or writing anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from eosctl.core.configs.fold import ConnectorState
from eosctl.fence.rows import FencePart
from eosctl.output.cells import format_cell, summary_lines
from eosctl.output.rows import Header, Printed, Text, plan_and_result
from eosctl.report import Report
from eosctl.task_counts.rules import AliveTask, decision_after_commit, fencing_decision


class RecordBefore(Printed):
    """The task-count record that is there before."""

    task_count: Annotated[int, "The count of the record before.", Header("BEFORE")]
    offset: Annotated[int | None, "The offset of the record before.", Header("BEFORE-OFFSET")]


class RecordAfter(Printed):
    """The task-count record that is there after."""

    task_count: Annotated[int, "The count of the record after.", Header("AFTER")]
    offset: Annotated[int | None, "The offset of the record after.", Header("AFTER-OFFSET")]


class DecisionNow(Printed):
    """The leader's decision now."""

    would_fence_count: Annotated[int, "How many ids it would fence."]
    would_write: Annotated[int | None, "The count that it would record; null where it records nothing."]
    reason: Annotated[str, "Why."]


class DecisionAfterCommit(Printed):
    """The leader's decision after the next task commit."""

    would_fence_count: Annotated[int, "How many ids it would fence."]
    reason: Annotated[str, "Why."]


_Decision = DecisionNow | DecisionAfterCommit


class Decisions(Printed):
    """The leader's decisions with a record."""

    now: Annotated[DecisionNow, "What it decides now."]
    after_next_commit: Annotated[DecisionAfterCommit, "What it decides after the next task commit."]


class CountWriteRow(Printed):
    """The record of a connector."""

    connector: Annotated[str, "The connector."]
    key: Annotated[str, "The key of its record."]
    before: Annotated[RecordBefore | None, "The record before; null where there was none."]
    after: Annotated[RecordAfter | None, "The record after; null where there is none, or it could not be read."]
    decision_before: Annotated[Decisions, "What the leader decides with the record before."]
    decision_after: Annotated[Decisions | None, "What the leader decides with the record after."]
    outcome: Annotated[str, "What will become of the record, or what became of it."]


class WriteSummary(Printed):
    """The ids to fence and the outcome of the record."""

    fences: Annotated[int, "How many ids are fenced."]
    outcome: Annotated[str, "What will become of the record, or what became of it."]


class WriteData(Printed):
    """The fencing that comes before the write."""

    fenced_before: Annotated[bool, "Whether the ids of the old record are fenced before."]
    overrides: Annotated[list[str], "The dangers that were waived."]
    fence: Annotated[FencePart | None, "The ids of the old record; null where none is fenced."]


class CountPlanData(WriteData, kw_only=True):
    """The fencing that comes before the write, and the way back."""

    undo: Annotated[str | None, "The command that writes the old count again."] | UnsetType = UNSET


class WriteResultData(WriteData, kw_only=True):
    """The fencing that came before the write, the backup, and the way back."""

    backup: Annotated[str | None, "The file that holds the former record."] | UnsetType = UNSET
    undo: Annotated[str | None, "The command that writes the old count again."] | UnsetType = UNSET


def _write_lines(report: Report) -> Iterator[str]:
    """Render the leader's decisions without and with the new record, now and after the next task commit."""
    for row in report.rows_of(CountWriteRow):
        before, after = row.decision_before, row.decision_after
        yield from _decision_lines("now", before.now, after.now if after else None)
        yield from _decision_lines(
            "after next commit", before.after_next_commit, after.after_next_commit if after else None
        )
    data = report.data_of(WriteData)
    if data.fence is not None:
        counts = data.fence.summary.counts
        yield f"ids of the old record: {', '.join(f'{count} {name}' for name, count in counts.items()) or 'none'}"
    if not data.fenced_before:
        yield "fenced before: no"
    yield from summary_lines(report)


def _decision_lines(when: str, before: _Decision, after: _Decision | None) -> Iterator[str]:
    yield f"leader {when}:"
    yield f"  before: {format_cell(before.reason)}"
    yield f"  after:  {format_cell(after.reason if after else None)}"


_WRITE = Text(
    columns=("connector", "before.task_count", "before.offset", "after.task_count", "after.offset", "outcome"),
    lines=_write_lines,
)
TASK_COUNTS_WRITE_PLAN, TASK_COUNTS_WRITE_RESULT = plan_and_result(
    "task-counts-write",
    "The task-count record that would be written.",
    "The task-count record that was written.",
    row=CountWriteRow,
    summary=WriteSummary,
    data=CountPlanData,
    text=_WRITE,
    result={"data": WriteResultData},
)


class CleanRow(Printed):
    """A record that workers can't read."""

    offset: Annotated[int, "Its offset."]
    key: Annotated[str | None, "Its key."]
    connector: Annotated[str | None, "The connector that it was meant for."]
    code: Annotated[str, "What is wrong with it."]
    reason: Annotated[str, "What is wrong with it, in words."]
    overwrite: Annotated[int | None, "The count that is recorded first, so that compaction may take the record."]
    outcome: Annotated[str, "What will become of it, or what became of it."]


class CleanSummary(Printed):
    """The number of records."""

    records: Annotated[int, "How many records workers can't read."]
    overwritten: Annotated[int, "How many of them are overwritten first."]
    removed: Annotated[int, "How many of them were compacted away."]


class SettingPart(Printed):
    """A setting of the topic that is changed meanwhile; null is the brokers' default."""

    name: Annotated[str, "Its name."]
    before: Annotated[str | None, "What it is set back to."]
    now: Annotated[str | None, "What it is now."]
    meanwhile: Annotated[str, "What it is until the records are gone."]


class CleanData(Printed):
    """The topic, and what changes in it meanwhile."""

    topic: Annotated[str, "The config topic."]
    settings: Annotated[list[SettingPart], "The settings that change meanwhile."]
    undo: Annotated[None, "There is no command that goes back."] = None
    backup: Annotated[str, "The file that holds the records that are gone."] | UnsetType = UNSET


def _clean_lines(report: Report) -> Iterator[str]:
    """Render the settings that change meanwhile, and the values they are set back to."""
    data = report.data_of(CleanData)
    yield f"topic: {format_cell(data.topic)}"
    for each in data.settings if report.kind is TASK_COUNTS_CLEAN_PLAN else ():
        before = "the brokers' default" if each.before is None else each.before
        if report.rows:
            yield f"{each.name}: {each.meanwhile} until they are gone, then {format_cell(before)}"
        elif each.now != each.before:
            yield f"{each.name}: back to {format_cell(before)}"
    yield from summary_lines(report)


_CLEAN = Text(
    columns=("offset", "key", "code", "overwrite", "outcome"),
    wide=("connector", "reason"),
    lines=_clean_lines,
    empty="There is no bad task-count record in the topic.",
)
TASK_COUNTS_CLEAN_PLAN, TASK_COUNTS_CLEAN_RESULT = plan_and_result(
    "task-counts-clean",
    "The records that would be compacted away.",
    "The records that were compacted away.",
    row=CleanRow,
    summary=CleanSummary,
    data=CleanData,
    text=_CLEAN,
)


def with_record(connector: ConnectorState, count: int) -> ConnectorState:
    """Return the connector as every worker holds it after a record of `count` at the end of the topic."""
    return replace(connector, task_count_record=count, record_offset=None, pending_fencing=False)


def decisions(connector: ConnectorState) -> Decisions:
    """Return the leader's decisions now and after the next task commit."""
    now, later = fencing_decision(connector), decision_after_commit(connector)
    return Decisions(
        now=DecisionNow(would_fence_count=now.fence_count, would_write=now.writes, reason=now.reason),
        after_next_commit=DecisionAfterCommit(would_fence_count=later.fence_count, reason=later.reason),
    )


def left_out(alive: Sequence[AliveTask], count: int, *, fenced: Collection[str]) -> list[AliveTask]:
    """Return known ids that no fencing round would reach under a record of `count`, without those `fenced` anyway."""
    return [task for task in alive if task.task >= count and task.transactional_id not in fenced]
