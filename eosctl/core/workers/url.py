"""The URL of a worker's REST interface: one spelling for comparing and showing, credentials kept apart from it."""

from __future__ import annotations

import base64
import ipaddress
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from eosctl.core.clients.settings import Secret
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
