"""Completion of names that lie elsewhere: connectors, transactional ids, topics, profiles, kinds, codes.

Completion must never hang, print an error, or surprise: it asks a cluster only if options, environment or profile name
one, for a second at most, and caches the answer for some seconds. It offers nothing if anything fails.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from eosctl.foreign import is_plain_word

from .session import Session

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from eosctl.app import App

_PATIENCE_S = 1.0
_FRESH_S = 10.0
# name of an option or an argument -> what it takes; those of them that take text are completed
PARAMETERS = {
    "accept_gate": "gates",
    "config_topic": "topics",
    "connector": "connectors",
    "connectors": "connectors",
    "ignored": "findings",
    "kind": "kinds",
    "offset_topic": "topics",
    "profile": "profiles",
    "profiles": "profiles",
    "topic": "topics",
    "transactional_ids": "ids",
    "words": "codes",
}


class Names(click.types.StringParamType):
    """A text parameter with completion of existing names."""

    def __init__(self, what: str) -> None:
        self._what = what

    def shell_complete(self, ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete the names that begin with `incomplete`."""
        from click.shell_completion import CompletionItem

        found = names(self._what, ctx.ensure_object(Session))
        return [CompletionItem(name) for name in found if name.startswith(incomplete)]


def offer_names(parameters: Sequence[click.Parameter]) -> None:
    """Give these options and arguments a completion for the names that they take."""
    for parameter in parameters:
        if type(parameter.type) is click.types.StringParamType and parameter.name in PARAMETERS:
            parameter.type = Names(PARAMETERS[parameter.name])


def names(what: str, session: Session) -> list[str]:
    """Return all names of one kind that need no quoting in a shell, sorted; none if they can't be read in time.

    click's script for bash inserts a candidate as it is: anybody's name would be code, further words or an option.
    """
    found: list[str] = []

    def ask() -> None:
        with contextlib.suppress(Exception):
            found.extend(sorted(filter(is_plain_word, _SOURCES[what](session))))

    with contextlib.redirect_stderr(io.StringIO()):
        asking = threading.Thread(target=ask, daemon=True)  # a name server that is silent can't be interrupted
        asking.start()
        asking.join(_PATIENCE_S * 1.5)
    if asking.is_alive():
        return []
    session.close()
    return found


def _codes(_session: Session) -> Sequence[str]:
    from eosctl.explain.entries import known_entries

    return [entry for entry in known_entries() if " " not in entry]


def _findings(_session: Session) -> Sequence[str]:
    from eosctl.explain.entries import finding_codes

    return finding_codes()


def _gates(_session: Session) -> Sequence[str]:
    from eosctl.upgrade.gates import DRIVER_GATE_IDS, GATE_IDS

    return (*GATE_IDS, *DRIVER_GATE_IDS)


def _kinds(_session: Session) -> Sequence[str]:
    from eosctl.explain.kinds import all_kinds

    return list(all_kinds())


def _profiles(session: Session) -> Sequence[str]:
    return list(session.config_file().profiles)


def _connectors(app: App) -> Sequence[str]:
    from eosctl.group.gather import discover_urls

    for url in discover_urls(app):
        with contextlib.suppress(Exception):
            return list(app.worker(url).connectors())
    return []


def _ids(app: App) -> Sequence[str]:
    with app.transactions() as admin:
        return [listing.transactional_id for listing in admin.list_transactions().found]


def _topics(app: App) -> Sequence[str]:
    with app.transactions() as admin:
        return list(admin.topic_partitions())


def _of_the_cluster(what: str, look: Callable[[App], Sequence[str]]) -> Callable[[Session], Sequence[str]]:
    """Make a source of names from `look`, with a second to answer, behind the cache; empty without a cluster."""

    def asked(session: Session) -> Sequence[str]:
        path = _cache_path(what, session)
        kept = _kept(path)
        if kept is not None:
            return kept
        session.flags["timeout"] = _PATIENCE_S
        target = session.target()  # may run what a profile names to print a password: not at each Tab
        if target.client is None and not target.connect_urls:
            return []
        found: list[str] = []
        with contextlib.suppress(Exception):  # what does not answer is not asked again at each Tab
            found = list(look(session.app()))
        _keep(path, found)
        return found

    return asked


_SOURCES: dict[str, Callable[[Session], Sequence[str]]] = {
    "codes": _codes,
    "connectors": _of_the_cluster("connectors", _connectors),
    "findings": _findings,
    "gates": _gates,
    "ids": _of_the_cluster("ids", _ids),
    "kinds": _kinds,
    "profiles": _profiles,
    "topics": _of_the_cluster("topics", _topics),
}


def _cache_path(what: str, session: Session) -> Path:
    """Return the cache file of names of this kind for this target, as options and environment describe it."""
    import hashlib

    said = {name: str(value) for name, value in session.flags.items()}
    said |= {name: value for name, value in session.environ.items() if name.startswith("EOSCTL_")}
    digest = hashlib.sha256(json.dumps([what, sorted(said.items())]).encode()).hexdigest()
    base = session.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "eosctl" / "names" / f"{digest[:32]}.json"


def _kept(path: Path) -> list[str] | None:
    from eosctl.machine.files import open_own

    with contextlib.suppress(OSError, ValueError), open(open_own(path), encoding="utf-8") as file:
        if 0 <= time.time() - os.fstat(file.fileno()).st_mtime < _FRESH_S:
            return [str(name) for name in json.load(file)]
    return None


def _keep(path: Path, found: Sequence[str]) -> None:
    """Keep names in the cache, so that no other Tab reads half a file; do without a cache that can't be written."""
    from eosctl.machine.files import own_folder, write_whole

    with contextlib.suppress(OSError):
        own_folder(path.parent)
        write_whole(path, partial(_write_names, found))


def _write_names(found: Sequence[str], file: IO[bytes]) -> None:
    file.write(json.dumps(found).encode())
