"""Whether a URL that no member of a group advertises leads to the group all the same: judged by what answers. Pure.

A load balancer, an ingress or a forwarded port is another way to a member. REST says no group; but the workers of one
group know the same connectors, and report on which members those run. Members that share a URL are distinguished by the
addresses from which they are connected to Kafka.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import Enum, auto, unique
from urllib.parse import urlsplit

from eosctl.core.workers.url import shared_urls
from eosctl.group.members import ConnectMember

Connectors = Mapping[str, Collection[str]]
"""Connector -> the workers, `host:port`, that it and its tasks are on."""


@unique
class Way(Enum):
    """What is at the other end: a member of the group, a worker of another one, or nobody can know."""

    IN = auto()
    ELSEWHERE = auto()
    UNKNOWN = auto()


def told_apart(
    members: Iterable[ConnectMember], given: Iterable[str], addresses: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """Member id -> the given URL that is its own, for members that share a URL: by the address it is connected from.

    `addresses` are those of the given URLs' hosts. One of two members on one address, and one with two given URLs, stay
    as they are; a name with the addresses of several members is none of theirs.
    """
    there = list(members)
    shared = {url for url, _count in shared_urls(member.url for member in there)}
    at = Counter(_address(member.host.removeprefix("/")) for member in there)
    urls: dict[str, list[str]] = {}
    for url in given:
        of_members = {_address(each) for each in addresses.get(urlsplit(url).hostname or "", ())} & at.keys()
        if len(of_members) == 1:
            urls.setdefault(of_members.pop(), []).append(url)
    found = {}
    for member in there:
        address = _address(member.host.removeprefix("/"))
        if member.url in shared and at[address] == 1 and len(urls.get(address, ())) == 1:
            found[member.member_id] = urls[address][0]
    return found


def _address(host: str) -> str:
    """One spelling of an address; a name stays as it is."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host


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
        return Way.UNKNOWN, "there is no connector that would show whether it is another way to a member"
    only_there, only_here = sorted(set(theirs) - set(ours)), sorted(set(ours) - set(theirs))
    return Way.ELSEWHERE, (
        f"knows other connectors (only there: {', '.join(only_there) or 'none'}; only in the group: "
        f"{', '.join(only_here) or 'none'})"
    )
