"""The connections that one command keeps to its workers between questions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import urllib3

    from eosctl.core.workers.access import ConnectAccess
    from eosctl.deadline import Clock

KEPT_S = 10.0


class _Kept(Struct, frozen=True):
    url: str
    access: ConnectAccess
    made_s: float
    pool: urllib3.PoolManager


class ConnectSession:
    """A pool of connections for each worker, used for `KEPT_S` seconds and closed at the first question after that.

    A firewall drops idle connections without a word, a name may lead to another worker later, and a certificate may be
    renewed. The age is wall time, as a deadline's clock stops during a question to the user.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[_Kept] = []

    def pool(
        self, url: str, access: ConnectAccess, clock: Clock, make: Callable[[], urllib3.PoolManager]
    ) -> urllib3.PoolManager:
        """Return the pool of the worker at `url`, with these credentials and authorities; `make` makes a new one."""
        with self._lock:
            now_s = clock.now_s()
            old = [each for each in self._kept if not 0 <= now_s - each.made_s < KEPT_S]
            self._kept = [each for each in self._kept if each not in old]
            for each in old:
                each.pool.clear()
            for each in self._kept:
                if each.url == url and each.access == access:
                    return each.pool
            self._kept.append(_Kept(url, access, now_s, make()))
            return self._kept[-1].pool

    def close(self) -> None:
        """Close the connections; new ones can be made."""
        for each in self._kept:
            each.pool.clear()
