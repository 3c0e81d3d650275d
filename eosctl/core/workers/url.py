"""The URL of a worker's REST interface, and the URL that a worker advertises to its group. Pure.

A URL has one spelling for comparing and showing; credentials are kept apart from it. The advertised URL is read from
the worker's file, as far as that shows it. Source: `RestServer.advertisedUrl`, Kafka 4.3.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from eosctl.core.clients.settings import Secret
from eosctl.core.java.properties import MOST_PORT, is_reference, split_list, whole_number
from eosctl.errors import UsageError

NOT_REACHED_HINT = (
    "See whether it runs. -u URL, or --connect-map ADVERTISED=REACHABLE, says where it is reached from here."
)
_DEFAULT_PORTS = {"http": 80, "https": 443}


def is_this_machine(host: str) -> bool:
    """Return whether a name or address means, on each machine, that machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_loopback_url(url: str) -> bool:
    """Return whether a URL leads, on each machine, to that machine itself."""
    return is_this_machine(urlsplit(url).hostname or "")


class WorkerUrl(Struct, frozen=True):
    """The URL of a worker.

    `text` is scheme, host, port and path prefix, without a slash at the end and without credentials. `authorization` is
    the value of the HTTP header of that name, if the URL contained `user:password@`.
    """

    text: str
    authorization: Secret | None = None

    @property
    def origin(self) -> str:
        """Scheme, host and port alone: credentials belong to an origin."""
        return "/".join(self.text.split("/")[:3])


def parse_worker_url(given: str, *, what: str = "a Connect worker", example: str = "http://HOST:8083") -> WorkerUrl:
    """Parse a URL; the scheme defaults to `http://`.

    Raises UsageError for a text that can't be a URL of `what`.
    """

    def unusable(reason: str) -> UsageError:
        shown = given.rpartition("@")[2]  # the part before it may be a password
        return UsageError(f"{shown!r} is not the URL of {what}: {reason}", hint=f"Write {example}.")

    with_scheme = given.strip() if "://" in given else f"http://{given.strip()}"
    try:
        parts = urlsplit(with_scheme)
        host, port = parts.hostname, parts.port
    except ValueError as exc:
        raise unusable(str(exc).partition(" as ")[0]) from None  # a password with a slash reads as a port
    if parts.scheme not in _DEFAULT_PORTS:
        raise unusable(f"the scheme {parts.scheme} is neither http nor https")
    if not host or any(char.isspace() for char in with_scheme):
        raise unusable("it has no host" if not host else "it contains a space")
    if parts.query or parts.fragment:
        raise unusable("it has a query or a fragment")
    name = f"[{host}]" if ":" in host else host
    text = f"{parts.scheme}://{name}:{port or _DEFAULT_PORTS[parts.scheme]}{parts.path.rstrip('/')}"
    if parts.username is None:
        return WorkerUrl(text)
    return WorkerUrl(text, basic_authorization(unquote(parts.username), unquote(parts.password or "")))


def normalised(url: str | None) -> str | None:
    """Normalise a URL that a member advertises.

    None when it is unknown or not a URL (MirrorMaker's own workers).
    """
    try:
        return parse_worker_url(url).text if url else None
    except UsageError:
        return None


def basic_authorization(username: str, password: str) -> Secret:
    """Return the value of the Authorization header (RFC 7617, UTF-8)."""
    pair = f"{username}:{password}"
    return Secret("Basic " + base64.b64encode(pair.encode("utf-8")).decode("ascii"))


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
