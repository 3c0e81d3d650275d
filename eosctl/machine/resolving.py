"""Resolves host names within a command's deadline: the system's own lookup knows none."""

from __future__ import annotations

import socket
import threading
from typing import Any

from eosctl.deadline import Deadline
from eosctl.errors import UnreachableError

RESOLVE_TIMEOUT_S = 10.0
AddressInfo = tuple[Any, Any, int, str, tuple[Any, ...]]


def resolve(host: str, port: int, deadline: Deadline, *, hint: str | None = None) -> list[AddressInfo]:
    """Look up the addresses of `host`, as `socket.getaddrinfo` returns them.

    A lookup that takes longer is left behind in a thread. Raises UnreachableError, DeadlineError.
    """
    try:  # an address needs no lookup, no thread and, in ASCII, no codec for foreign names
        numeric = host.encode() if host.isascii() else host
        return socket.getaddrinfo(numeric, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        deadline.check(f"looking up {host}")
    found: list[AddressInfo] = []
    failed: list[Exception] = []

    def look_up() -> None:
        try:
            found.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as exc:
            failed.append(exc)

    thread = threading.Thread(target=look_up, name=f"lookup of {host}", daemon=True)
    thread.start()
    thread.join(min(RESOLVE_TIMEOUT_S, deadline.remaining_s()))
    if failed:
        raise UnreachableError(f"can't resolve {host}: {failed[0]}", hint=hint) from failed[0]
    if not found:
        deadline.check(f"looking up {host}")
        raise UnreachableError(f"can't resolve {host}: no answer within {RESOLVE_TIMEOUT_S:g} s", hint=hint)
    return found
