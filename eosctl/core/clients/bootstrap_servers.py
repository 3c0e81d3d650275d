"""Bootstrap servers as Java takes them, once for both kinds of client: `host:port`, or `LISTENER://host:port`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eosctl.errors import UsageError

_SERVER = re.compile(r"(?:[A-Za-z0-9%._-]*://)?(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):(\d{1,5})", re.ASCII)


def checked_servers(servers: Sequence[str], origin: str) -> tuple[str, ...]:
    """Return `servers` without listener names, which Java drops as well (`Utils.HOST_PORT_PATTERN`, Kafka 4.3).

    Raises UsageError if there are none, or if one is not a host and port.
    """
    if not servers:
        raise UsageError(f"no bootstrap server is named ({origin})", hint="Write HOST:PORT, several with commas.")
    return tuple(_checked(server, origin) for server in servers)


def _checked(server: str, origin: str) -> str:
    match = _SERVER.fullmatch(server)
    if match is None or not 0 < int(match[2]) < 65536:
        raise UsageError(f"{server!r} is not a bootstrap server ({origin})", hint="Write HOST:PORT, or [IPV6]:PORT.")
    return f"{match[1]}:{match[2]}"
