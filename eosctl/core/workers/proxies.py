"""Proxies between eosctl and workers, from the usual environment variables. Pure: the environment is an argument.

`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in lower case first. As with kubectl and curl's NO_PROXY: an
entry is a host with its subdomains, `HOST:PORT`, an address, a network, or `*`. This machine itself is never behind
one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from eosctl.core.clients.settings import Secret
from eosctl.core.java.properties import split_list
from eosctl.errors import UsageError

SOCKS = ("socks4", "socks4a", "socks5", "socks5h")
_SCHEMES = ("http", "https", *SOCKS)
_AFTER_HOST, _NAME = re.compile("[/?#]"), re.compile(r"[\w.:-]+")


class Proxy(Struct, frozen=True):
    """A proxy; `url` may contain a password, `variable` is the environment variable that names it."""

    url: Secret
    variable: str

    @property
    def shown(self) -> str:
        """The URL without credentials: scheme, host and port."""
        scheme, _colon, rest = self.url.reveal().partition("://")
        return f"{scheme}://{_AFTER_HOST.split(rest.rpartition('@')[2])[0]}"

    @property
    def login(self) -> tuple[str, str] | None:
        """User and password, decoded; a password may have any character, also one that a URL should not have."""
        user, colon, password = self.url.reveal().partition("://")[2].rpartition("@")[0].partition(":")
        return (unquote(user), unquote(password)) if user or colon else None

    @property
    def is_socks(self) -> bool:
        """Whether it speaks SOCKS, not HTTP."""
        return self.shown.partition(":")[0] in SOCKS


class Proxies(Struct, frozen=True):
    """The proxy of each scheme, `all` for the others; `exempt` are the entries of NO_PROXY."""

    by_scheme: Mapping[str, Proxy] = {}
    exempt: tuple[str, ...] = ()

    def of(self, url: str) -> Proxy | None:
        """Return the proxy for `url`, None for a direct connection; raises UsageError if the proxy's URL is invalid."""
        from eosctl.core.workers.url import is_this_machine

        parts = urlsplit(url)
        proxy = self.by_scheme.get(parts.scheme) or self.by_scheme.get("all")
        if proxy is None or is_this_machine(parts.hostname or ""):
            return None
        if any(_covers(entry, parts.hostname or "", parts.port) for entry in self.exempt):
            return None
        check_proxy(proxy)
        return proxy


def proxies_of(environ: Mapping[str, str]) -> Proxies:
    """Return the proxies in the environment; an invalid one is an error only where it is used."""
    found: dict[str, Proxy] = {}
    for scheme in ("http", "https", "all"):
        name = next((name for name in _names(scheme) if environ.get(name, "").strip()), None)
        if name is not None:
            found[scheme] = _parsed(environ[name].strip(), name)
    exempt = next((environ[name] for name in _names("no") if environ.get(name)), "")
    return Proxies(found, split_list(exempt))


def _names(scheme: str) -> tuple[str, str]:
    return f"{scheme}_proxy", f"{scheme.upper()}_PROXY"


def _parsed(text: str, variable: str) -> Proxy:
    url = text if "://" in text else f"http://{text}"
    scheme, _colon, rest = url.partition("://")
    scheme = {"socks": "socks5h"}.get(scheme.lower(), scheme.lower())
    return Proxy(Secret(f"{scheme}://{rest}"), variable)


def check_proxy(proxy: Proxy) -> None:
    """Raise UsageError unless this is the URL of a proxy; the message does not contain the password."""
    try:
        parts = urlsplit(proxy.shown)
        usable = parts.scheme in _SCHEMES and bool(_NAME.fullmatch(parts.hostname or "")) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(
            f"${proxy.variable}: {proxy.shown} is not the URL of a proxy",
            hint=f"Write http://HOST:PORT or socks5h://HOST:PORT; these are known: {', '.join(_SCHEMES)}.",
        )


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _covers(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    address = _address(host)
    try:
        if address is not None and "/" in entry:
            return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
    name, _colon, its_port = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
    if its_port and its_port != str(port):
        return False
    name = name.strip("[]").removeprefix("*").removeprefix(".").lower()
    return host == name or host.endswith(f".{name}")
