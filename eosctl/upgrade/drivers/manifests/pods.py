"""The pods of a Connect group's members, by the address or name that a worker advertises. Pure.

A group and a workload are named separately by hand, and two groups often have the same number of workers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from eosctl.upgrade import codes
from eosctl.upgrade.gate import Gate

_POD_DNS = 3  # POD.SERVICE.NAMESPACE and more


class Pod(Struct, frozen=True):
    """A pod that is not being deleted; `reason` is why it is not Ready, `container` the one that is not ready.

    `created` is a time in RFC 3339.
    """

    name: str
    namespace: str
    workload: str
    addresses: tuple[str, ...]
    hostname: str
    ready: bool
    reason: str = ""
    revision: str = ""
    uid: str = ""
    container: str = ""
    created: str = ""


class Member(Struct, frozen=True):
    """A member of the group: the address that it advertises, and the host from which it is connected."""

    url: str | None
    client_host: str | None


class PodMatch(Struct, frozen=True):
    """The match of pods and members: `pods` without a member, `members` (URLs or addresses) without a pod."""

    count: int
    pods: tuple[Pod, ...]
    members: tuple[str, ...]


def match_pods(pods: Collection[Pod], members: Iterable[Member]) -> PodMatch:
    """Find a pod for each member; a pod matches one member only."""
    left, strangers, count = list(pods), [], 0
    for member in members:
        mine = next((pod for pod in left if _is_in(member, pod)), None)
        if mine is None:
            strangers.append(member.url or (member.client_host or "?").removeprefix("/"))
        else:
            left.remove(mine)
            count += 1
    return PodMatch(count, tuple(left), tuple(sorted(strangers)))


def _is_in(member: Member, pod: Pod) -> bool:
    """Decide whether the member is in the pod; a name in another namespace is no match: StatefulSets share names."""
    host = (urlsplit(member.url).hostname or "") if member.url else ""
    if {host, (member.client_host or "").removeprefix("/")} & {*pod.addresses}:
        return True
    labels = host.split(".")
    if len(labels) >= _POD_DNS and labels[2] != pod.namespace and "svc" in labels[3:4]:
        return False
    return labels[0] in (pod.name, pod.hostname)


def judge_workload(
    workloads: Sequence[str], pods: Sequence[Pod], members: Sequence[Member], *, accepted: bool, complete: bool
) -> Gate:
    """Judge the gate workload_matches; `complete` also requires a member in each pod."""
    named = ", ".join(workloads)
    found = match_pods(pods, members)
    failures = []
    if found.members:
        there = ", ".join(_told(pod) for pod in pods) or "none"
        failures.append(f"{', '.join(found.members)} is in no pod of {named} (pods: {there})")
    missing = [f"{pod.name} ({pod.reason})" if pod.reason else pod.name for pod in found.pods]
    if missing and complete:
        failures.append(f"no member of the group is in {', '.join(missing)}")
    if failures:
        return Gate(
            codes.WORKLOAD_MATCHES,
            "fail",
            "; ".join(failures),
            codes.WORKLOAD_MATCHES.next,
            guards_data=True,
            accepted=accepted,
        )
    return Gate(codes.WORKLOAD_MATCHES, "pass", f"{found.count} of {len(members)} members are in the pods of {named}")


def _told(pod: Pod) -> str:
    return " ".join([pod.name, *pod.addresses[:1]])
