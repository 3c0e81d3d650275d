"""The connections that one command keeps to its clusters between requests.

The connections to the brokers of one cluster are lent to one user at a time.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.errors import UsageError
from eosctl.kafka.native.connection import Connection
from eosctl.kafka.native.sasl import is_spoken_natively, no_native_login
from eosctl.kafka.topics.stream import Address, Leader, Stream

if TYPE_CHECKING:
    import ssl

    from eosctl.kafka.oauth import TokenSource
    from eosctl.wire.api import BrokerVersions


_ENCRYPTED = {"SSL", "SASL_SSL"}
_PROTOCOLS = _ENCRYPTED | {"PLAINTEXT", "SASL_PLAINTEXT"}


class Connections:
    """Connections to one cluster, safe for several threads; `open_stream` opens the stream of a new one.

    `group_coordinators` have answered for their groups. One that no longer is a group's coordinator says so when it is
    asked; one that metadata no longer names is forgotten, as it may be cut off and not know.
    `leaders` are those of each topic's partitions that were named last: others may lead since, which metadata says.
    Raises UsageError for an unknown security.protocol.
    """

    def __init__(self, settings: ClientSettings, *, open_stream: Callable[..., Stream] = Stream) -> None:
        if settings.security_protocol.upper() not in _PROTOCOLS:
            raise UsageError(f"security.protocol {settings.security_protocol!r} is none of {sorted(_PROTOCOLS)}")
        self.settings = settings
        self._open_stream = open_stream
        self._lock = threading.Lock()
        self._idle: defaultdict[Address, list[Connection]] = defaultdict(list)
        self._versions: dict[Address, BrokerVersions] = {}
        self.group_coordinators: dict[str, Address] = {}
        self.leaders: dict[str, dict[int, Leader]] = {}

    def has_idle(self, address: Address) -> bool:
        """Return whether there is an idle connection to `address`."""
        return bool(self._idle.get(address))

    def idle_addresses(self) -> list[Address]:
        """Return where connections wait for their next user."""
        with self._lock:
            return [address for address, connections in self._idle.items() if connections]

    def take_idle(self, address: Address) -> Connection | None:
        """Return a connection whose login lasts and that the broker has not ended; close the others.

        Logging in again on an old connection takes as long as opening a new one.
        """
        while True:
            with self._lock:
                connections = self._idle.get(address)
                connection = connections.pop() if connections else None
            if connection is None or not (connection.is_ending() or connection.stream.has_ended()):
                return connection
            self.discard(connection)

    def new(self, address: Address, deadline: Deadline, *, while_opening: Callable[[Connection], None]) -> Connection:
        """Connect to `address` and log in by `deadline`; `while_opening` is called with the connection meanwhile."""
        settings = self.settings
        if not is_spoken_natively(settings):
            raise no_native_login(settings)
        stream = self._open_stream(
            address, deadline=deadline, idle_timeout_s=max(settings.request_timeout_ms, 1) / 1000
        )
        connection = Connection(stream, client_id=settings.client_id)
        while_opening(connection)
        connection.open(
            settings,
            tls=self._tls,
            oauth_token=lambda: self._tokens.token(deadline),
            versions=self._versions.get(address),
        )
        self._versions[address] = connection.versions
        return connection

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for its next user."""
        with self._lock:
            self._idle[connection.stream.address].append(connection)

    def discard(self, connection: Connection) -> None:
        """Close a connection; the broker may come back as another version."""
        connection.close()
        with self._lock:
            self._versions.pop(connection.stream.address, None)

    def close(self) -> None:
        """Close the idle connections; new connections can be made."""
        with self._lock:
            idle = [connection for group in self._idle.values() for connection in group]
            self._idle.clear()
        for connection in idle:
            self.discard(connection)

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        if self.settings.security_protocol.upper() not in _ENCRYPTED:
            return None
        from eosctl.kafka.tls import make_tls_context

        return make_tls_context(self.settings)

    @cached_property
    def _tokens(self) -> TokenSource:
        from eosctl.kafka.oauth import TokenSource

        return TokenSource(self.settings)


class KafkaSession:
    """The connections of one command: one Connections for each cluster's settings, until the command ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: list[Connections] = []

    def to(self, settings: ClientSettings) -> Connections:
        """Return the connections that are made with `settings`."""

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
