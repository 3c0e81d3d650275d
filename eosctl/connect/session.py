"""The connections that one command keeps to its workers between questions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import urllib3

    from eosctl.core.workers.access import ConnectAccess


class ConnectSession:
    """A pool of kept connections for each worker, until the command ends.

    `cluster_ids` are the ids of the Kafka clusters that workers have reported last, by the workers' URLs.
    """

    def __init__(self) -> None:
        self.cluster_ids: dict[str, str] = {}
        self._lock = threading.Lock()
        self._known: list[tuple[str, ConnectAccess, urllib3.PoolManager]] = []

    def pool(self, url: str, access: ConnectAccess, make: Callable[[], urllib3.PoolManager]) -> urllib3.PoolManager:
        """Return the pool of the worker at `url`, with these credentials and authorities; `make` makes a new one."""
        with self._lock:
            for known_url, known_access, pool in self._known:
                if known_url == url and known_access == access:
                    return pool
            pool = make()
            self._known.append((url, access, pool))
            return pool

    def close(self) -> None:
        """Close the connections; new ones can be made."""
        for _url, _access, pool in self._known:
            pool.clear()
