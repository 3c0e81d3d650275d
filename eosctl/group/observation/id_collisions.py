"""Finds the Connect groups that may construct our transactional ids: ids are plain joins with `-`. Pure.

Group `a-b` with connector `c` has the ids of group `a` with connector `b-c`, and the leader id of group `x-0` is the id
of task 0 of connector `cluster-x` in a group `connect`. Two users of one id fence each other for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from eosctl.core.ids import TransactionalId, leader_transactional_id, task_transactional_id
from eosctl.core.java.numbers import whole_number
from eosctl.group.protocol import Work

GroupWork = Mapping[str, tuple[Work, ...] | None]
"""Group id -> the work of its members, (connector, task); None if the group exists and its work is unknown now."""


class Reading(Struct, frozen=True):
    """One way to read an id: task `task` of `connector` of group `group_id`, or (None) that group's leader."""

    group_id: str
    connector: str | None = None
    task: int | None = None

    def __str__(self) -> str:
        if self.connector is None:
            return f"the leader of group {self.group_id}"
        return f"task {self.task} of connector {self.connector} of group {self.group_id}"


def readings(transactional_id: TransactionalId) -> Iterator[Reading]:
    """Yield every way in which Connect could have constructed this id."""
    prefix = leader_transactional_id("")
    if transactional_id.startswith(prefix) and transactional_id != prefix:
        yield Reading(transactional_id.removeprefix(prefix))
    head, _dash, tail = transactional_id.rpartition("-")
    number = whole_number(tail)
    if number is None or tail != str(number):
        return
    at = head.find("-")
    while at >= 0:
        if head[:at] and head[at + 1 :]:
            yield Reading(head[:at], head[at + 1 :], number)
        at = head.find("-", at + 1)


def our_ids(group_id: str, tasks: Iterable[Work]) -> list[TransactionalId]:
    """Return the ids of our leader and of our tasks."""
    return [leader_transactional_id(group_id), *(task_transactional_id(group_id, c, t) for c, t in tasks)]


def rival_groups(group_id: str, ids: Iterable[TransactionalId]) -> list[str]:
    """Return the groups that would use one of `ids` if they existed and ran the right connector."""
    return sorted({reading.group_id for each in ids for reading in readings(each)} - {group_id})


def rivals(transactional_id: TransactionalId, group_id: str, others: GroupWork) -> Iterator[tuple[Reading, bool]]:
    """Yield the users of one of our ids among the existing groups, each with whether it is certain."""
    for reading in readings(transactional_id):
        if reading.group_id == group_id or reading.group_id not in others:
            continue
        work = others[reading.group_id]
        if work is None:
            yield reading, False
        elif reading.connector is None or (reading.connector, reading.task) in work:
            yield reading, True
