"""Whether a URL that no member of a group advertises leads to the group all the same: judged by what answers. Pure.

A load balancer, an ingress or a forwarded port is another way to a member. REST says no group; but the workers of one
group know the same connectors, and tell on which members those run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum, auto, unique

Connectors = Mapping[str, Collection[str]]
"""Connector -> the workers, `host:port`, that it and its tasks are on."""


@unique
class Way(Enum):
    """What is at the other end: a member of the group, a worker of another one, or nobody can tell."""

    IN = auto()
    ELSEWHERE = auto()
    UNKNOWN = auto()


def judge_way(theirs: Connectors, *, ours: Collection[str] | None, members: Collection[str]) -> tuple[Way, str]:
    """The verdict, and the words for it; `ours` are the connectors of the group, None where nobody tells them.

    `members` are the group's workers as `host:port`.
    """
    on_members = any(not set(members).isdisjoint(workers) for workers in theirs.values())
    if ours is not None and theirs and set(ours) == set(theirs):
        return Way.IN, "it knows the same connectors as the group's members: another way to one of them"
    if on_members and (ours is None or not set(ours).isdisjoint(theirs)):
        return Way.IN, "its connectors run on members of the group: another way to one of them"
    if ours is None or (not ours and not theirs):
        return Way.UNKNOWN, "there is no connector by which to tell whether it is another way to a member"
    only_there, only_here = sorted(set(theirs) - set(ours)), sorted(set(ours) - set(theirs))
    return Way.ELSEWHERE, (
        f"knows other connectors (only there: {', '.join(only_there) or 'none'}; only in the group: "
        f"{', '.join(only_here) or 'none'})"
    )
