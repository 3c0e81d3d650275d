"""The connections that one command keeps to its clusters between requests."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eosctl.core.clients.settings import ClientSettings
    from eosctl.kafka.connections import Connections


class KafkaSession:
    """The connections of one command: one Connections for each cluster's settings, until the command ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: list[Connections] = []

    def to(self, settings: ClientSettings) -> Connections:
        """Return the connections that are made with `settings`."""
        from eosctl.kafka.connections import Connections

        with self._lock:
            found = next((known for known in self._known if known.settings == settings), None)
            if found is None:
                found = Connections(settings)
                self._known.append(found)
        return found

    def close(self) -> None:
        """Close the connections that are no longer used."""
        for known in self._known:
            known.close()
