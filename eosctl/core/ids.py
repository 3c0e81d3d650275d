"""Transactional ids, connector and task names: the one place that formats or parses them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


def task_transactional_id(group_id: str, connector: str, task: int) -> str:
    """The transactional id of a source task (Kafka 3.3+, `Worker.taskTransactionalId`)."""
    return f"{group_id}-{connector}-{task}"


def leader_transactional_id(group_id: str) -> str:
    """The transactional id of a Connect leader (`DistributedConfig.transactionalProducerId`)."""
    return f"connect-cluster-{group_id}"


def task_transactional_ids(group_id: str, connector: str, count: int) -> list[str]:
    """The ids of tasks 0 to `count` - 1, in order."""
    return [task_transactional_id(group_id, connector, task) for task in range(count)]


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a transactional id is: `kind` is task, leader, other or ambiguous; connector and task only for task."""

    kind: str
    connector: str | None = None
    task: int | None = None

    def as_row(self) -> dict[str, object]:
        """The `owner` member of transaction rows."""
        return {"kind": self.kind, "connector": self.connector, "task": self.task}


def owner_of(transactional_id: str, group_id: str | None, connectors: Iterable[str] = ()) -> Owner:
    """Whose id this is, within group `group_id`.

    Ids are ambiguous: group `a-b` with connector `c` and group `a` with connector `b-c` share theirs, and within one
    group the leader id can equal a task's. With `connectors` (all that the group has) a task is only claimed for one
    of them; without, any `<group>-<something>-<digits>` is taken for a task of connector `<something>`.
    """
    if group_id is None:
        return Owner("other")
    readings: list[Owner] = []
    if transactional_id == leader_transactional_id(group_id):
        readings.append(Owner("leader"))
    prefix, (head, dash, tail) = f"{group_id}-", transactional_id.rpartition("-")
    if dash and tail.isascii() and tail.isdigit() and str(int(tail)) == tail and head.startswith(prefix):
        connector, known = head[len(prefix) :], list(connectors)
        if connector and (not known or connector in known):
            readings.append(Owner("task", connector, int(tail)))
    if len(readings) > 1:
        return Owner("ambiguous")
    return readings[0] if readings else Owner("other")
