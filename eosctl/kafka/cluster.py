"""A cluster: bootstrap servers, metadata, and requests that end by a deadline."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, ProtocolError, UnreachableError, UsageError
from eosctl.kafka.native.connection import Connection
from eosctl.kafka.session import Connections
from eosctl.kafka.topics.stream import CONNECT_TIMEOUT_S, Address, ConnectionLostError, parse_address
from eosctl.wire.api import Api
from eosctl.wire.cluster_messages import METADATA, Broker, MetadataRequest, MetadataResponse, TopicQuery

Q = TypeVar("Q")
S = TypeVar("S")
T = TypeVar("T")
_BROKERS = MetadataRequest((), allow_auto_topic_creation=False)


class Cluster:
    """A cluster, safe for several threads.

    Each borrows its own connection from `connections`, which others may use too. Without `connections` it has its own,
    and closes them at its end.
    """

    def __init__(self, settings: ClientSettings, *, deadline: Deadline, connections: Connections | None = None) -> None:
        self._settings = settings
        self._deadline = deadline
        self._connections = connections or Connections(settings)
        self.group_coordinators = self._connections.group_coordinators
        self._is_owner = connections is None
        self._bootstrap = [parse_address(server) for server in settings.bootstrap_servers]
        self._brokers: dict[int, Address] = {}
        self._lock = threading.Lock()
        self._lent: set[Connection] = set()
        self._limits = threading.local()
        self._cluster_id: str | None = None
        if not self._bootstrap:
            raise UsageError("no bootstrap server was given", hint="Use --bootstrap-server host:port.")

    # -- asking

    @contextmanager
    def within(self, deadline: Deadline) -> Iterator[None]:
        """Limit the requests of this thread in the block to `deadline`.

        One silent broker must not use up the whole time.
        """
        before, outer = self._limit(), self.deadline()
        self._limits.deadline = deadline if deadline.at_s < outer.at_s else outer
        try:
            yield
        finally:
            self._limits.deadline = before  # None where the thread had no limit of its own, and so goes by `renew`

    @contextmanager
    def one_of(self, brokers: int, *, at_most_s: float = math.inf) -> Iterator[None]:
        """Limit the requests to one of several brokers to half of the remaining time.

        The other half is for the other brokers, if there are any.
        """
        with self.within(self.deadline().half(at_most_s=at_most_s) if brokers > 1 else self.deadline()):
            yield

    def deadline(self) -> Deadline:
        """Return the deadline of this thread's requests."""
        return self._limit() or self._deadline

    def _limit(self) -> Deadline | None:
        limit: Deadline | None = getattr(self._limits, "deadline", None)
        return limit

    def renew(self, deadline: Deadline) -> None:
        """Set the deadline of all requests from now on: for work that may last as long as it makes progress."""
        self._deadline = deadline

    def metadata(self, topics: Iterable[str] | None = ()) -> MetadataResponse:
        """Return the brokers and the named topics, None for all topics; the request never creates topics."""
        queries = None if topics is None else tuple(TopicQuery(name=topic) for topic in topics)
        request = MetadataRequest(queries, allow_auto_topic_creation=False)
        answer = self.use_any(lambda connection: connection.call(METADATA, request))
        self.learn(answer)
        return answer

    def brokers_with(self, api: Api[Q, S], request: Q) -> tuple[Sequence[Broker], Address, S]:
        """Return the brokers, the address of the one that was asked, and its response to the request."""

        def look(connection: Connection) -> tuple[Address, MetadataResponse, S]:
            metadata, answer = connection.call_together([(METADATA, _BROKERS), (api, request)])
            return connection.stream.address, metadata, answer

        address, metadata, answer = self.use_any(look)
        self.learn(metadata)
        return metadata.brokers, address, answer

    def learn(self, metadata: MetadataResponse) -> None:
        """Remember the brokers and the cluster id of an answer."""
        with self._lock:
            self._brokers = {broker.node_id: Address(broker.host, broker.port) for broker in metadata.brokers}
            self._cluster_id = metadata.cluster_id
            there = {*self._brokers.values()}
        for group_id, address in [*self.group_coordinators.items()]:
            if address not in there:
                self.group_coordinators.pop(group_id, None)

    def brokers(self) -> Mapping[int, Address]:
        """Return the brokers of the last metadata by node id; it is requested if there was none."""
        if not self._brokers:
            self.metadata()
        return self._brokers

    def cluster_id(self) -> str:
        """Return the cluster id of the last metadata, which is requested if there was none.

        It is empty if the broker does not report one.
        """
        return self._cluster_id or self.metadata().cluster_id or ""

    def ask(self, address: Address, api: Api[Q, S], request: Q) -> S:
        """Send one request that may be repeated to one broker."""
        return self.use(address, lambda connection: connection.call(api, request))

    def ask_with_cluster_id(self, address: Address, api: Api[Q, S], request: Q) -> S:
        """Send one request that may be repeated to one broker; its cluster id, if not known, comes along."""
        return self.use(address, lambda connection: self.call_with_cluster_id(connection, api, request))

    def call_with_cluster_id(self, connection: Connection, api: Api[Q, S], request: Q) -> S:
        """Send one request on a connection; the cluster id, if not known, comes along."""
        if self._cluster_id is not None:
            return connection.call(api, request)
        metadata, answer = connection.call_together([(METADATA, _BROKERS), (api, request)])
        self.learn(metadata)
        found: S = answer
        return found

    def use(self, address: Address, exchange: Callable[[Connection], T]) -> T:
        """Run `exchange` on a connection to `address`, and again on a new one if the first died while idle."""
        reused = self._connections.has_idle(address)
        try:
            with self.connection(address) as connection:
                return exchange(connection)
        except ConnectionLostError as exc:
            if not reused:
                raise self._explain_loss(exc) from exc
        with self.connection(address, fresh=True) as connection:
            return exchange(connection)

    def use_any(self, exchange: Callable[[Connection], T]) -> T:
        """Run `exchange` on the first broker that can be reached: connected ones, known brokers, bootstrap servers."""
        failures: list[EosctlError] = []
        *others, last = self._candidates()
        for address in others:
            try:
                with self.within(self.deadline().half(at_most_s=CONNECT_TIMEOUT_S)):
                    return self.use(address, exchange)
            except (UnreachableError, ProtocolError, DeadlineError) as exc:
                failures.append(exc)
        try:
            return self.use(last, exchange)
        except (UnreachableError, ProtocolError) as exc:
            raise _all_unreachable([*failures, exc]) from exc

    def _explain_loss(self, exc: ConnectionLostError) -> ConnectionLostError:
        if self._settings.security_protocol.upper().startswith("SASL"):
            return exc
        hint = "If this happens at the first request, the listener may want SASL: check security.protocol."
        return ConnectionLostError(exc.message, hint=hint)

    # -- connections

    @contextmanager
    def connection(self, address: Address, *, fresh: bool = False) -> Iterator[Connection]:
        """Lend a connection; it returns to the idle ones, or is closed if the block raises."""
        connection = (None if fresh else self._connections.take_idle(address)) or self._connect(address)
        connection.stream.deadline = self.deadline()
        with self._lock:
            self._lent.add(connection)
        try:
            yield connection
        except BaseException:
            self._discard(connection)
            raise
        if connection.stream.aborted:
            self._discard(connection)
            return
        with self._lock:
            self._lent.discard(connection)
        self._connections.give_back(connection)

    def _candidates(self) -> list[Address]:
        idle = self._connections.idle_addresses()
        with self._lock:
            return list(dict.fromkeys([*idle, *self._brokers.values(), *self._bootstrap]))

    def _connect(self, address: Address) -> Connection:
        connecting: list[Connection] = []

        def note(connection: Connection) -> None:
            connecting.append(connection)
            with self._lock:
                self._lent.add(connection)  # so that `abort` wakes a thread that waits for a handshake

        try:
            return self._connections.new(address, self.deadline(), while_opening=note)
        except BaseException:
            for connection in connecting:
                self._discard(connection)
            raise

    def _discard(self, connection: Connection) -> None:
        self._connections.discard(connection)
        with self._lock:
            self._lent.discard(connection)

    # -- the end

    def abort(self) -> None:
        """Wake every thread that waits for an answer to this; new connections can be made."""
        with self._lock:
            lent = list(self._lent)
        for connection in lent:
            connection.stream.abort()
        self._connections.close()

    def close(self) -> None:
        """Close the connections that are lent, and the idle ones unless others use them, too."""
        with self._lock:
            lent = list(self._lent)
        for connection in lent:
            connection.stream.abort()
            self._discard(connection)
        if self._is_owner:
            self._connections.close()


def _all_unreachable(failures: list[EosctlError]) -> EosctlError:
    if len(failures) == 1:
        return failures[0]
    listed = "; ".join(failure.message for failure in failures)
    hint = next((failure.hint for failure in failures if failure.hint), None)
    return UnreachableError(f"no broker can be reached: {listed}", hint=hint or "Check --bootstrap-server.")
