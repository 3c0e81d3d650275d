"""Words with placeholders for what differs between workers; a value never becomes part of a shell's syntax."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Mapping
from urllib.parse import urlsplit

from eosctl.errors import RefusedError, UsageError
from eosctl.group.mirror_makers import NodeName, is_node

_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?", re.ASCII)
_URL = re.compile(r"[A-Za-z0-9._:/\[\]~-]+", re.ASCII)


def worker_values(url: str) -> dict[str, str]:
    """Return `url`, `host` and `port` of a worker; `host` and `number` of a node that has no URL.

    Whoever may join the group says what a member's URL is; a command may give it to a shell, or to ssh as an option.
    Raises RefusedError for a host that is neither a name nor an address.
    """
    if is_node(url):
        node = NodeName.read(url)
        return {"host": _checked_host(node.host, url), "number": str(node.number)}
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].removesuffix(f":{parts.port}").strip("[]")  # as written: not in lower case
    if not _URL.fullmatch(url):
        raise _unfit(url, url)
    return {"url": url, "host": _checked_host(host, url), "port": str(parts.port or "")}


def _checked_host(host: str, worker: str) -> str:
    if _HOST.fullmatch(host) or _is_ipv6(host):
        return host
    raise _unfit(host, worker)


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.IPv6Address(host).scope_id is None  # a zone may be any text
    except ValueError:
        return False


def _unfit(value: str, worker: str) -> RefusedError:
    return RefusedError(
        f"{value!r} of worker {worker} is neither a host name nor an address, so that no command may get it; nothing "
        "was written",
        hint="See who joined the group: eosctl workers list. Workers name themselves by rest.advertised.host.name.",
    )


def fill(template: str, values: Mapping[str, str], *, option: str) -> str:
    """Return `template` with each {name} replaced; raise UsageError for an unknown name."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            known = ", ".join(f"{{{name}}}" for name in values)
            raise UsageError(f"{option} has {match[0]}, which is none of {known}")
        return values[match[1]]

    return _PLACEHOLDER.sub(value, template)


def fill_command(template: str, values: Mapping[str, str], *, option: str) -> list[str]:
    """Split a command line into words as a shell would, then fill in the values; raise UsageError."""
    try:
        words = shlex.split(template)
    except ValueError as exc:
        raise UsageError(f"{option} can't be split into words: {exc}") from exc
    if not words:
        raise UsageError(f"{option} is empty")
    return [fill(word, values, option=option) for word in words]
