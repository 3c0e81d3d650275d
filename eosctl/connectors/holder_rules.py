"""Decides whether a worker holds a task: what the group's members report, compared with REST. Pure.

REST's list of tasks proves nothing of a connector that is STOPPED. The leader deletes the status of its tasks at once,
while a follower still waits for their last commit (`AbstractHerder`, `DistributedHerder.RebalanceListener`, Kafka 4.3;
seen on 4.3.1: up to a second, and up to `task.shutdown.graceful.timeout.ms` by the code); and what the follower then
says of them comes back to REST, where it stays until the next rebalance (seen for more than a minute).
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum, unique

from eosctl.core.ids import WorkerId
from eosctl.core.workers.connector_entry import TaskStatus

# what REST shows until a task has started, which takes a Debezium minutes: it has its producer by then
BEFORE_ITS_START = "UNASSIGNED"
# states of a task that has no producer; a PAUSED task keeps its own, and so its id
_NOT_HOLDING = frozenset({"FAILED", BEFORE_ITS_START, "DESTROYED", "STOPPED"})


@unique
class Holding(StrEnum):
    """The state of one task; only FREE and FAILED mean that it does not run."""

    RUNS = "runs"
    """REST shows that it runs, at a member."""
    HELD = "held"
    """A member may still run it, and REST does not show that it does."""
    FAILED = "failed"
    """A member has it, and REST shows that it ended there."""
    UNKNOWN = "unknown"
    """REST shows it at a worker that is no member, or the members are not known."""
    FREE = "free"
    """No member has it."""


def judge_task(
    status: TaskStatus | None,
    *,
    stopped: bool,
    holders: Collection[WorkerId],
    members: Collection[WorkerId] | None,
) -> Holding:
    """Judge one task: REST shows `status` of it, and its connector as STOPPED if `stopped`; `holders` may run it.

    `status` is None where REST does not know the task, and `members` where the group does not report who is in it.
    """
    runs = is_live(status) and not stopped
    if holders:
        if status is not None and status.worker_id in holders and _has_ended(status):
            return Holding.FAILED
        at_member = members is None or (status is not None and status.worker_id in members)
        return Holding.RUNS if runs and at_member else Holding.HELD
    if members is None:
        return Holding.RUNS if is_live(status) else Holding.UNKNOWN
    if status is None:
        return Holding.FREE
    if status.worker_id not in members:
        return Holding.UNKNOWN
    return Holding.RUNS if runs else Holding.FREE


def is_live(status: TaskStatus | None) -> bool:
    """Check whether REST shows a task that has a producer."""
    return status is not None and status.state not in _NOT_HOLDING


def _has_ended(status: TaskStatus) -> bool:
    return status.state in _NOT_HOLDING and status.state != BEFORE_ITS_START
