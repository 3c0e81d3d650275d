"""The URLs at which the members of a group are asked, and the members that may share a worker's address.

Names are resolved only if there are several members, in parallel, and within a part of the command's time; a name that
can't be resolved proves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.connect_map import reachable_url
from eosctl.core.workers.url import normalised
from eosctl.deadline import Deadline
from eosctl.errors import UsageError
from eosctl.group.members import ConnectMember
from eosctl.group.ways import Route, explain_doubt, shared_routes, urls_by_address
from eosctl.machine.side_by_side import side_by_side

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
