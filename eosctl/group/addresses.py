"""The addresses of workers that were named by their hosts' names: what distinguishes members that share a URL.

Looked up only where members do, side by side, and in a part of the time that a command has; a name that can't be
resolved shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from eosctl.app import App
from eosctl.core.workers.url import shared_urls
from eosctl.deadline import Deadline
from eosctl.group.members import ConnectMember
from eosctl.group.ways import told_apart

_PATIENCE_S = 3.0
_PARALLEL_LOOKUPS = 8


def own_urls(app: App, members: Iterable[ConnectMember], given: Iterable[str]) -> dict[str, str]:
    """Member id -> the given URL that is its own, for members that share a URL, as `told_apart` has it."""
    there, urls = tuple(members), tuple(given)
    if not urls or not shared_urls(member.url for member in there):
        return {}
    return told_apart(there, urls, _addresses_of(app, {urlsplit(url).hostname or "" for url in urls}))


def _addresses_of(app: App, hosts: Iterable[str]) -> Mapping[str, frozenset[str]]:
    from concurrent.futures import ThreadPoolExecutor

    patience_s = min(_PATIENCE_S, app.deadline.remaining_s() / 4)
    hurried = replace(app, deadline=Deadline.after(patience_s, app.clock))
    names = sorted(hosts)
    with ThreadPoolExecutor(_PARALLEL_LOOKUPS) as pool:
        return dict(zip(names, pool.map(lambda host: app.addresses_of(hurried, host), names), strict=True))
