"""The URLs at which the members of a group are asked, and which may lead elsewhere or to the same worker.

Names are resolved only if there are several members, in parallel, and within a part of the command's time; a name that
can't be resolved proves nothing.

Whether a URL leads to a group, and whether two members' URLs may lead to one worker, is decided without I/O. No answer
of Connect's REST interface identifies the worker that gives it, or its group. But the workers of one group know the
same connectors, and report on which members those run; and whatever answers at one address is taken for one worker, so
it proves none of the members that are reached there. Those are distinguished by the addresses from which they are
connected to Kafka.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum, auto, unique
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import WorkerId, worker_id_of_url
from eosctl.core.workers.config import reachable_url
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.core.workers.url import is_loopback_url, is_this_machine, normalised
from eosctl.deadline import Deadline
from eosctl.errors import UsageError
from eosctl.group.members import ConnectMember
from eosctl.machine.side_by_side import side_by_side

Connectors = Mapping[str, Collection[str]]
"""Connector -> the workers, `host:port`, of it and its tasks."""


@unique
class Destination(Enum):
    """The worker behind a URL: a member of the group, a worker of another group, or unknown."""

    IN = auto()
    ELSEWHERE = auto()
    UNKNOWN = auto()


class Route(Struct, frozen=True):
    """The route to a member: `advertised` is its own URL, `reached` is the URL at which it is asked."""

    member_id: str
    client_host: str
    advertised: str
    reached: str

    @property
    def is_self_declared(self) -> bool:
        """Whether only the member itself names the address, and the name can be its own."""
        return self.reached == self.advertised and not self.is_foreign_loopback

    @property
    def is_foreign_loopback(self) -> bool:
        """Whether it leads to this machine, and the member is connected to Kafka from another one."""
        is_as_advertised = self.reached == self.advertised
        return is_as_advertised and is_loopback_url(self.reached) and not is_this_machine(self.client_host)

    def meets(self, other: Route, addresses: Mapping[str, Collection[str]]) -> bool:
        """Decide whether both may lead to one worker: same port, and same host or address.

        Different paths on one port count as different workers: a worker has no paths, so a gateway routes by them.
        Different names do not: a load balancer ignores them.
        """
        ours, theirs = urlsplit(self.reached), urlsplit(other.reached)
        if (ours.port, ours.path) != (theirs.port, theirs.path):
            return False
        if self.is_foreign_loopback or other.is_foreign_loopback:
            return True
        hosts = [{_address(each) for each in (host, *addresses.get(host, ()))}
                 for host in (ours.hostname or "", theirs.hostname or "")]  # fmt: skip
        return not hosts[0].isdisjoint(hosts[1])


def shared_routes(routes: Sequence[Route], addresses: Mapping[str, Collection[str]]) -> list[list[Route]]:
    """Group the routes that may lead to one worker; `addresses` are the addresses of the URLs' hosts."""
    left, found = list(routes), []
    while left:
        together = [left.pop(0)]
        for route in together:  # grows during the loop
            met = [other for other in left if route.meets(other, addresses)]
            left = [other for other in left if other not in met]
            together += met
        if len(together) > 1:
            found.append(together)
    return found


def explain_doubt(shared: Sequence[Route]) -> str:
    """Explain in a sentence why no answer proves these members."""
    advertised, reached = (sorted({getattr(each, name) for each in shared}) for name in ("advertised", "reached"))
    hosts = ", ".join(sorted({each.client_host for each in shared}))
    if advertised == reached and len(advertised) == 1:
        is_loopback = is_loopback_url(advertised[0])
        what = THEMSELVES if is_loopback else "a name that they share (a Service, a scaled container)"
        how = f"advertise {advertised[0]}, {what}"
    elif len(reached) == 1:
        how = f"({', '.join(advertised)}) are all reached at {reached[0]}"
    else:
        how = f"({', '.join(advertised)}) may be reached at one address ({', '.join(reached)})"
    return (
        f"{len(shared)} members {how}: each request reaches whichever answers, so that none is proven; they are "
        f"connected to Kafka from {hosts}"
    )


THEMSELVES = "by which each machine means itself"


def urls_by_address(
    members: Iterable[ConnectMember],
    shared: Collection[str],
    given: Iterable[str],
    addresses: Mapping[str, Collection[str]],
) -> dict[str, str]:
    """Map the ids of members that share a route to the given URL of their own, by the address they connect from.

    `shared` are the ids of these members, `addresses` those of the given URLs' hosts. A member that shares its address
    with another, or that has two given URLs, keeps its route; a name with the addresses of several members is the URL
    of none.
    """
    listed = list(members)
    members_at = Counter(_address(member.host.removeprefix("/")) for member in listed)
    urls: dict[str, list[str]] = {}
    for url in given:
        of_members = {_address(each) for each in addresses.get(urlsplit(url).hostname or "", ())} & members_at.keys()
        if len(of_members) == 1:
            urls.setdefault(of_members.pop(), []).append(url)
    found = {}
    for member in listed:
        address = _address(member.host.removeprefix("/"))
        if member.member_id in shared and members_at[address] == 1 and len(urls.get(address, ())) == 1:
            found[member.member_id] = urls[address][0]
    return found


def _address(host: str) -> str:
    """Normalise an address; return a name unchanged."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host


def classify_url(
    theirs: Connectors, *, ours: Collection[str] | None, members: Collection[str]
) -> tuple[Destination, str]:
    """Judge a URL and explain it; `ours` are the connectors of the group, None if unknown.

    `members` are the group's workers as `host:port`.
    """
    on_members = any(not set(members).isdisjoint(workers) for workers in theirs.values())
    if ours is not None and theirs and set(ours) == set(theirs):
        return Destination.IN, "it knows the same connectors as the group's members: another way to one of them"
    if on_members and (ours is None or not set(ours).isdisjoint(theirs)):
        return Destination.IN, "its connectors run on members of the group: another way to one of them"
    if ours is None or (not ours and not theirs):
        return Destination.UNKNOWN, "there is no connector that would show whether it is another way to a member"
    only_there, only_here = sorted(set(theirs) - set(ours)), sorted(set(ours) - set(theirs))
    return Destination.ELSEWHERE, (
        f"knows other connectors (only there: {', '.join(only_there) or 'none'}; only in the group: "
        f"{', '.join(only_here) or 'none'})"
    )


HEALTHY, UNHEALTHY, STARTING = "healthy", "unhealthy", "starting"
"""The answers of GET /health."""


def running_workers(connectors: Mapping[str, ConnectorEntry]) -> frozenset[WorkerId]:
    """Return the workers on which a part of these connectors is reported RUNNING."""
    parts = [part for entry in connectors.values() for part in entry.parts()]
    return frozenset(part.worker_id for part in parts if part.worker_id and part.state == "RUNNING")


def explain_separate_worker(
    url: str, health: str, *, running_on: Collection[WorkerId], members_healthy: bool
) -> str | None:
    """Explain why the worker at `url`, which knows the group's connectors, is no route to a member.

    Return None if it may be a load balancer, which has no tasks, and reports the health of a member.
    """
    if health == STARTING:
        return None  # it is about to join
    if worker_id_of_url(url) in running_on:
        return "tasks or connectors are said to be RUNNING on it"
    if health == UNHEALTHY and members_healthy:
        return "it is unhealthy, and every member is healthy"
    return None


_PATIENCE_S = 3.0
_PARALLEL_LOOKUPS = 8


class Routes(Struct, frozen=True):
    """The routes to the members: `urls` by member id, and `doubts`, why the answers there prove nothing of a member.

    `unproven` are members whose address is given by something else than the member itself.
    """

    urls: Mapping[str, str] = {}
    doubts: Mapping[str, str] = {}
    unproven: frozenset[str] = frozenset()


def routes_of(app: App, members: Iterable[ConnectMember], given: Collection[str]) -> Routes:
    """Return the routes to the members with a REST interface; `given` are the normalised URLs of -u."""
    with_rest = [member for member in members if member.has_rest]
    own = {each.member_id: url for each in with_rest if (url := normalised(each.url)) is not None}
    routes = _routes(app, with_rest, own, {})
    if len(routes) <= 1:
        return Routes(own, {}, _unproven(routes))
    addresses = _addresses_of(app, (*(each.reached for each in routes), *given))
    shared = {each.member_id for together in shared_routes(routes, addresses) for each in together}
    apart = urls_by_address(with_rest, shared, given, addresses)
    routes = _routes(app, with_rest, own, apart)
    doubts = {
        each.member_id: explain_doubt(together) for together in shared_routes(routes, addresses) for each in together
    }
    return Routes({**own, **apart}, doubts, _unproven(routes))


def _routes(
    app: App, members: Sequence[ConnectMember], own: Mapping[str, str], apart: Mapping[str, str]
) -> list[Route]:
    def route(member: ConnectMember, url: str) -> Route:
        reached = reachable_url(apart.get(member.member_id, url), app.target.connect_map)
        return Route(member.member_id, member.host.removeprefix("/"), url, reached)

    return [route(member, own[member.member_id]) for member in members if member.member_id in own]


def _unproven(routes: Iterable[Route]) -> frozenset[str]:
    return frozenset(each.member_id for each in routes if not each.is_self_declared)


def _addresses_of(app: App, urls: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Resolve the hosts of URLs to addresses; omit what goes through a proxy, which resolves for itself."""
    patience_s = min(_PATIENCE_S, app.deadline.remaining_s() / 4)
    hurried = replace(app, deadline=Deadline.after(patience_s, app.clock))
    names = sorted({urlsplit(url).hostname or "" for url in urls if _goes_directly(app, url)})
    found = side_by_side(lambda host: app.addresses_of(hurried, host), names, most=_PARALLEL_LOOKUPS)
    return dict(zip(names, found, strict=True))


def _goes_directly(app: App, url: str) -> bool:
    try:
        return app.target.connect.proxies.of(url) is None
    except UsageError:
        return False  # nothing goes there
