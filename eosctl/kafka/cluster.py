"""A cluster: bootstrap servers, metadata, and connections that are lent to one user at a time."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, ProtocolError, UnreachableError, UsageError
from eosctl.kafka.native.connection import Connection
from eosctl.kafka.native.sasl import is_spoken_natively, no_native_login
from eosctl.kafka.topics.stream import CONNECT_TIMEOUT_S, Address, ConnectionLostError, Stream, parse_address
from eosctl.wire.api import Api, BrokerVersions
from eosctl.wire.cluster_messages import METADATA, MetadataRequest, MetadataResponse, TopicQuery

if TYPE_CHECKING:
    import ssl

    from eosctl.kafka.oauth import TokenSource

Q = TypeVar("Q")
S = TypeVar("S")
T = TypeVar("T")
_ENCRYPTED = {"SSL", "SASL_SSL"}
_PROTOCOLS = _ENCRYPTED | {"PLAINTEXT", "SASL_PLAINTEXT"}


class Cluster:
    """Safe for several threads: each borrows its own connection, which `open_stream` begins."""

    def __init__(
        self, settings: ClientSettings, *, deadline: Deadline, open_stream: Callable[..., Stream] = Stream
    ) -> None:
        self._settings = settings
        self._deadline = deadline
        self._open_stream = open_stream
        self._bootstrap = [parse_address(server) for server in settings.bootstrap_servers]
        self._brokers: dict[int, Address] = {}
        self._lock = threading.Lock()
        self._idle: defaultdict[Address, list[Connection]] = defaultdict(list)
        self._open: set[Connection] = set()
        self._versions: dict[Address, BrokerVersions] = {}
        self._limits = threading.local()
        self._cluster_id: str | None = None
        if settings.security_protocol.upper() not in _PROTOCOLS:
            raise UsageError(f"security.protocol {settings.security_protocol!r} is none of {sorted(_PROTOCOLS)}")
        if not self._bootstrap:
            raise UsageError("no bootstrap server was given", hint="Use --bootstrap-server host:port.")

    # -- asking

    @contextmanager
    def within(self, deadline: Deadline) -> Iterator[None]:
        """What this thread asks in the block ends by `deadline`: one silent broker must not have everybody's time."""
        before, outer = self._limit(), self.deadline()
        self._limits.deadline = deadline if deadline.at_s < outer.at_s else outer
        try:
            yield
        finally:
            self._limits.deadline = before  # None where the thread had no limit of its own, and so goes by `renew`

    @contextmanager
    def one_of(self, brokers: int, *, at_most_s: float = math.inf) -> Iterator[None]:
        """Around the questions to one of so many brokers: half of the time is for the others, if there are any."""
        with self.within(self.deadline().half(at_most_s=at_most_s) if brokers > 1 else self.deadline()):
            yield

    def deadline(self) -> Deadline:
        """What ends the questions of this thread."""
        return self._limit() or self._deadline

    def _limit(self) -> Deadline | None:
        limit: Deadline | None = getattr(self._limits, "deadline", None)
        return limit

    def renew(self, deadline: Deadline) -> None:
        """What is asked from now on ends by `deadline`: for work that may last as long as it gets on."""
        self._deadline = deadline

    def metadata(self, topics: Iterable[str] | None = ()) -> MetadataResponse:
        """The brokers, and the named topics, None for all topics; topics are never created by asking."""
        queries = None if topics is None else tuple(TopicQuery(name=topic) for topic in topics)
        request = MetadataRequest(queries, allow_auto_topic_creation=False)
        answer = self.use_any(lambda connection: connection.call(METADATA, request))
        with self._lock:
            self._brokers = {broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers}
            self._cluster_id = answer.cluster_id
        return answer

    def cluster_id(self) -> str:
        """As the last metadata had it, which is asked for if there was none; empty if the broker does not report."""
        return self._cluster_id or self.metadata().cluster_id or ""

    def ask(self, address: Address, api: Api[Q, S], request: Q) -> S:
        """One request that may be repeated, to one broker."""
        return self.use(address, lambda connection: connection.call(api, request))

    def use(self, address: Address, exchange: Callable[[Connection], T]) -> T:
        """Runs `exchange` on a connection to `address`, and again on a new one if the first died while idle."""
        reused = bool(self._idle.get(address))
        try:
            with self.connection(address) as connection:
                return exchange(connection)
        except ConnectionLostError as exc:
            if not reused:
                raise self._explain_loss(exc) from exc
        with self.connection(address, fresh=True) as connection:
            return exchange(connection)

    def use_any(self, exchange: Callable[[Connection], T]) -> T:
        """Runs `exchange` on the first broker that can be reached: connected ones, known brokers, bootstrap servers."""
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
            raise _nobody_answers([*failures, exc]) from exc

    def _explain_loss(self, exc: ConnectionLostError) -> ConnectionLostError:
        if self._settings.security_protocol.upper().startswith("SASL"):
            return exc
        hint = "If this happens at the first request, the listener may want SASL: check security.protocol."
        return ConnectionLostError(exc.message, hint=hint)

    # -- connections

    @contextmanager
    def connection(self, address: Address, *, fresh: bool = False) -> Iterator[Connection]:
        """Lends a connection; it goes back to the idle ones, or is closed when the borrower raises."""
        connection = (None if fresh else self._take_idle(address)) or self._connect(address)
        connection.stream.deadline = self.deadline()
        try:
            yield connection
        except BaseException:
            self._discard(connection)
            raise
        if connection.stream.aborted:
            self._discard(connection)
            return
        with self._lock:
            self._idle[address].append(connection)

    def _candidates(self) -> list[Address]:
        with self._lock:
            idle = [address for address, connections in self._idle.items() if connections]
            return list(dict.fromkeys([*idle, *self._brokers.values(), *self._bootstrap]))

    def _take_idle(self, address: Address) -> Connection | None:
        """One whose login lasts; the others are closed, as it takes as long to log in again on them as on a new one."""
        while True:
            with self._lock:
                connections = self._idle.get(address)
                connection = connections.pop() if connections else None
            if connection is None or not connection.is_ending():
                return connection
            self._discard(connection)

    def _connect(self, address: Address) -> Connection:
        if not is_spoken_natively(self._settings):
            raise no_native_login(self._settings)
        stream = self._open_stream(
            address, deadline=self.deadline(), idle_timeout_s=max(self._settings.request_timeout_ms, 1) / 1000
        )
        connection = Connection(stream, client_id=self._settings.client_id)
        with self._lock:
            self._open.add(connection)
        try:
            connection.open(
                self._settings,
                tls=self._tls,
                oauth_token=self._oauth_token,
                versions=self._versions.get(address),
            )
        except BaseException:
            self._discard(connection)
            raise
        self._versions[address] = connection.versions
        return connection

    def _discard(self, connection: Connection) -> None:
        connection.close()
        with self._lock:
            self._open.discard(connection)
            self._versions.pop(connection.stream.address, None)  # it may come back as another version

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        if self._settings.security_protocol.upper() not in _ENCRYPTED:
            return None
        from eosctl.kafka.tls import make_tls_context

        return make_tls_context(self._settings)

    @cached_property
    def _tokens(self) -> TokenSource:
        from eosctl.kafka.oauth import TokenSource

        return TokenSource(self._settings, self._deadline)

    def _oauth_token(self) -> str:
        return self._tokens.token()

    # -- the end

    def abort(self) -> None:
        """Wakes every thread that waits on a connection, and forgets the idle ones; new connections can be made."""
        with self._lock:
            connections = list(self._open)
            idle = [connection for group in self._idle.values() for connection in group]
            self._idle.clear()
        for connection in connections:
            connection.stream.abort()
        for connection in idle:
            self._discard(connection)

    def close(self) -> None:
        """Closes all connections."""
        self.abort()
        with self._lock:
            rest = list(self._open)
        for connection in rest:
            self._discard(connection)


def _nobody_answers(failures: list[EosctlError]) -> EosctlError:
    if len(failures) == 1:
        return failures[0]
    listed = "; ".join(failure.message for failure in failures)
    hint = next((failure.hint for failure in failures if failure.hint), None)
    return UnreachableError(f"no broker can be reached: {listed}", hint=hint or "Check --bootstrap-server.")
