"""The URL that a worker advertises to its group, as far as its file shows. Pure.

Source: `RestServer.advertisedUrl`, Kafka 4.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from eosctl.core.java.lists import split_list
from eosctl.core.java.numbers import MOST_PORT, whole_number
from eosctl.core.java.properties import is_reference

_LISTENER = re.compile(r"(https?)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?\d+)", re.IGNORECASE)
_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104 - compared, not bound to


class Advertised(Struct, frozen=True):
    """The parts of an advertised URL.

    `host` None: only the worker's machine knows it; `port` None: only the worker does. `unresolved` are the properties
    that determine it and whose values only the worker can resolve.
    """

    scheme: str
    host: str | None
    port: int | None
    unresolved: tuple[str, ...] = ()

    @property
    def url(self) -> str | None:
        """The URL, if the file determines all of it."""
        if self.host is None or self.port is None:
            return None
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def advertised(properties: Mapping[str, str]) -> Advertised:
    """Return the URL that a worker with this file advertises.

    Of several listeners it is the http one, unless the file names another.
    """
    values = {name: properties.get(name, "").strip() for name in _NAMES}
    unresolved = tuple(name for name, value in values.items() if is_reference(value))
    values |= dict.fromkeys(unresolved, "")
    scheme, host, port = _listener(values["listeners"], values["rest.advertised.listener"])
    if "listeners" in unresolved:
        host, port = "", 0
    host = values["rest.advertised.host.name"] or host
    if "rest.advertised.host.name" in unresolved:
        host = ""
    wanted = values["rest.advertised.port"]
    port = (whole_number(wanted, most=MOST_PORT) or 0) if wanted or "rest.advertised.port" in unresolved else port
    return Advertised(scheme, None if host in _EVERYWHERE else host.lower(), port if port > 0 else None, unresolved)


_NAMES = ("listeners", "rest.advertised.listener", "rest.advertised.host.name", "rest.advertised.port")


def _listener(listeners: str, wanted: str) -> tuple[str, str, int]:
    """Return scheme, host and port of the listener that is advertised."""
    found = [match for each in split_list(listeners or "http://:8083") if (match := _LISTENER.fullmatch(each))]
    schemes = {match[1].lower() for match in found}
    scheme = wanted.lower() or ("http" if "http" in schemes or not schemes else "https")
    match = next((match for match in found if match[1].lower() == scheme), None)
    return (scheme, "", 0) if match is None else (scheme, match[2], whole_number(match[3], most=MOST_PORT) or 0)
