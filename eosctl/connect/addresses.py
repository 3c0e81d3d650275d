"""The addresses of a worker's host."""

from __future__ import annotations

from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.machine.resolving import resolve


def addresses_of(host: str, deadline: Deadline) -> frozenset[str]:
    """Resolve the host name to all of its addresses; empty where it can't be resolved in time."""
    try:
        return frozenset(str(info[4][0]) for info in resolve(host, 0, deadline))
    except EosctlError:
        return frozenset()
