"""What members of the group may still run of a connector that REST calls STOPPED. Read-only.

REST's list of tasks proves nothing either way. The leader deletes the status of a stopped connector's tasks at once,
while a follower still waits for their last commit (`AbstractHerder`, `DistributedHerder.RebalanceListener`, Kafka 4.3;
seen on 4.3.1: up to a second, and up to `task.shutdown.graceful.timeout.ms` by the code); and what the follower then
says of them comes back to REST, where it stays until the next rebalance (seen for more than a minute).
"""

from __future__ import annotations

from collections.abc import Collection

from eosctl.app import App
from eosctl.core.frozen import frozen
from eosctl.core.ids import WorkerId
from eosctl.errors import NotFoundError, UnauthorizedError
from eosctl.group.gather import read_group, worker_id_of
from eosctl.group.members import STABLE

ENDING_PATIENCE_S = 15.0  # 5 s by default for a task to end, and the rebalance after it


@frozen
class EndingTask:
    """A task that the worker at `url` may still run; None for both where a rebalance hides who runs what."""

    connector: str
    task: int | None
    url: str | None

    def __str__(self) -> str:
        return self.connector if self.task is None else f"task {self.task} of {self.connector} at {self.url}"


@frozen
class TasksLeft:
    """`ending` is what may still run; `members` are the group's workers, as REST names them, where it is stable."""

    ending: tuple[EndingTask, ...] = ()
    members: frozenset[WorkerId] = frozenset()

    def disproves(self, worker_ids: Collection[WorkerId]) -> bool:
        """Whether tasks that REST shows at these workers are known to have ended: they are members, and hold none."""
        return not self.ending and self.members.issuperset(worker_ids)


def tasks_left(app: App, connectors: Collection[str]) -> TasksLeft:
    """What may still run of connectors that are STOPPED.

    Knows nothing where no group was named, or it may not be described: then REST is all there is.
    """
    if app.target.client is None or app.target.group_id is None:
        return TasksLeft()
    try:
        group, _cluster_id = read_group(app)
    except (NotFoundError, UnauthorizedError):
        return TasksLeft()
    if group.members and group.state != STABLE:
        return TasksLeft(tuple(EndingTask(connector, None, None) for connector in connectors))
    ending = tuple(
        EndingTask(connector, task, (member.url or "").rstrip("/"))
        for member in group.members
        for connector, task in sorted(member.held)
        if connector in connectors and task >= 0
    )
    return TasksLeft(ending, frozenset(map(worker_id_of, group.members)))
