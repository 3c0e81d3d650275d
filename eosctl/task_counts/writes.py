"""The effects of a task-count record that is not yet written: later decisions, and the ids it would leave out.

Judges values that were read elsewhere; reads and writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from eosctl.core.configs.fold import ConnectorState
from eosctl.task_counts.findings import AliveTask
from eosctl.task_counts.rules import decision_after_commit, fencing_decision
from eosctl.task_counts.write_rows import DecisionAfterCommit, DecisionNow, Decisions


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
