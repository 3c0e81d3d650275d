"""The rows of `task-counts list`, `show` and `validate`, and the report of `replay`, from what was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from msgspec import UNSET, UnsetType, convert
from msgspec.structs import asdict

from eosctl.core.configs.fold import ConfigState
from eosctl.core.configs.view import state_document
from eosctl.core.findings import Finding
from eosctl.core.ids import TransactionalId, task_transactional_ids
from eosctl.output.parts import FindingPart, Severity
from eosctl.report import Problem, Report
from eosctl.task_counts.findings import Case, find_problems
from eosctl.task_counts.rows import (
    TASK_COUNTS_REPLAY,
    AbortedRecord,
    AfterCommit,
    PluginType,
    ReplayData,
    ReplayRow,
    ReplayState,
    ReplaySummary,
    TaskCountRow,
)
from eosctl.task_counts.rules import MAX_LISTED_IDS, FencingDecision, decision_after_commit, fencing_decision

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
