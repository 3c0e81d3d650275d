"""Tasks that REST shows no more although they still run: their workers have not let go of them. Read-only.

The leader deletes the status of a stopped connector's tasks at once, while a follower still waits for their last commit
(`AbstractHerder`, `DistributedHerder.RebalanceListener`, Kafka 4.3; seen on 4.3.1: up to a second, and up to
`task.shutdown.graceful.timeout.ms` by the code).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from eosctl.core.connect_group import STABLE
from eosctl.errors import NotFoundError, UnauthorizedError
from eosctl.ops.app import App
from eosctl.ops.workers import read_group

ENDING_PATIENCE_S = 15.0  # 5 s by default for a task to end, and the rebalance after it


@dataclass(frozen=True, slots=True)
class EndingTask:
    """A task that the worker at `url` may still run; None for both where a rebalance hides who runs what."""

    connector: str
    task: int | None
    url: str | None

    def __str__(self) -> str:
        return self.connector if self.task is None else f"task {self.task} of {self.connector} at {self.url}"


def ending_tasks(app: App, connectors: Collection[str]) -> tuple[EndingTask, ...]:
    """What may still run of connectors that are shown without tasks.

    Empty also where no group was named, or it may not be described: then REST is all there is.
    """
    if app.target.client is None or app.target.group_id is None:
        return ()
    try:
        group, _cluster_id = read_group(app)
    except (NotFoundError, UnauthorizedError):
        return ()
    if group.members and group.state != STABLE:
        return tuple(EndingTask(connector, None, None) for connector in connectors)
    return tuple(
        EndingTask(connector, task, (member.url or "").rstrip("/"))
        for member in group.members
        for connector, task in sorted(member.held)
        if connector in connectors and task >= 0
    )
