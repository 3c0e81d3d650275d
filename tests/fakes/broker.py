"""A fake Kafka cluster: real TCP on loopback, eosctl's own codecs on the other side, no produce.

    with FakeCluster(brokers=3) as cluster:
        cluster.state.open_transaction("g-c-0", ("t", 0))
        cluster.fail_next("InitProducerId", codes.NOT_COORDINATOR)
        NativeTransactionAdmin(ClientSettings(cluster.bootstrap_servers), deadline=…)

Kept honest by tests/contract, which runs on it and on a real broker.
"""

from __future__ import annotations

import collections
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Self

from eosctl.app import App
from eosctl.kafka.session import Connections
from eosctl.wire import cluster_messages as cluster_api
from eosctl.wire import error_codes as codes
from eosctl.wire import sasl_messages as sasl_api
from eosctl.wire.api import Api, RequestHeader, decode_request, decode_request_header, encode_response
from eosctl.wire.config_messages import DESCRIBE_CONFIGS
from eosctl.wire.frames import FrameBuffer
from eosctl.wire.group_listing_messages import LIST_GROUPS
from eosctl.wire.group_messages import DESCRIBE_GROUPS
from eosctl.wire.log.fetch_messages import FETCH, LIST_OFFSETS
from eosctl.wire.log_dir_messages import DESCRIBE_LOG_DIRS
from eosctl.wire.producer_messages import DESCRIBE_PRODUCERS, WRITE_TXN_MARKERS
from eosctl.wire.transaction_listing_messages import LIST_TRANSACTIONS
from eosctl.wire.transaction_messages import DESCRIBE_TRANSACTIONS, INIT_PRODUCER_ID
from tests.fakes.admin import FakeTransactionAdmin, memory_connections
from tests.fakes.broker_answers import HANDLERS, Asked
from tests.fakes.broker_state import BrokerState
from tests.fakes.faults import Faults

APIS: Mapping[int, Api[Any, Any]] = {
    api.key: api
    for api in (
        cluster_api.API_VERSIONS,
        cluster_api.METADATA,
        cluster_api.FIND_COORDINATOR,
        sasl_api.SASL_HANDSHAKE,
        sasl_api.SASL_AUTHENTICATE,
        INIT_PRODUCER_ID,
        LIST_TRANSACTIONS,
        DESCRIBE_TRANSACTIONS,
        DESCRIBE_PRODUCERS,
        WRITE_TXN_MARKERS,
        DESCRIBE_GROUPS,
        LIST_GROUPS,
        LIST_OFFSETS,
        FETCH,
        DESCRIBE_LOG_DIRS,
        DESCRIBE_CONFIGS,
    )
}
THREADS = "fake broker"
"""What its threads are called, by which they can be told from those of eosctl."""
_CORRELATION = slice(4, 8)
"""Where a response frame says which request it answers."""
_BEFORE_LOGIN = {cluster_api.API_VERSIONS.key, sasl_api.SASL_HANDSHAKE.key, sasl_api.SASL_AUTHENTICATE.key}


class Seen(NamedTuple):
    """One request that arrived."""

    node: int
    api: str
    version: int


class _Broker:
    """The listener of one node, its connections and their threads."""

    def __init__(self, cluster: FakeCluster, node: int, tls: ssl.SSLContext | None) -> None:
        self.cluster = cluster
        self.node = node
        self.tls = tls
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.sockets: set[socket.socket] = set()
        self.threads = [threading.Thread(target=self._accept, name=THREADS, daemon=True)]
        self.threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self.listener.accept()
            except OSError:
                return
            self.sockets.add(accepted)
            self.cluster.accepted[self.node] += 1
            thread = threading.Thread(target=self._serve, name=THREADS, args=(accepted,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _serve(self, accepted: socket.socket) -> None:
        connection = accepted
        with contextlib.suppress(OSError):
            if self.tls is not None:
                connection = self.tls.wrap_socket(accepted, server_side=True)
                self.sockets.add(connection)
            self._answer_all(connection)
        connection.close()

    def _answer_all(self, connection: socket.socket) -> None:
        frames, logged_in, since_s = FrameBuffer(), not self.cluster.users, self.cluster.now_s()
        while True:
            while (frame := frames.next_frame()) is None:
                data = connection.recv(1 << 16)
                if not data:
                    return
                self.cluster.rounds[self.node] += 1
                frames.feed(data)
            header = decode_request_header(frame, APIS)
            if not logged_in and header.api_key not in _BEFORE_LOGIN:
                return  # as a SASL listener does
            if header.api_key not in _BEFORE_LOGIN and self.cluster.is_over(since_s):
                self.cluster.cut_off += 1
                return
            time.sleep(self.cluster.latency_s)  # serial for a connection, as in a broker
            if self.node in self.cluster.frozen:
                continue
            answer = self.cluster.answer(self.node, frame)
            if answer is None:
                return
            if header.api_key == sasl_api.SASL_AUTHENTICATE.key:
                logged_in, since_s = True, self.cluster.now_s()
            connection.sendall(answer)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self.listener.close()
        for connection in list(self.sockets):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(5)
        for connection in self.sockets:
            connection.close()


class FakeCluster:
    """The knobs are attributes; change them before or between requests.

    `versions` narrows what is offered: {"FindCoordinator": (0, 3)}. `users` (name -> password) turns SASL PLAIN on,
    and OAUTHBEARER with the passwords as tokens. It listens within its `with` block; FakeTransactionAdmin needs none,
    and its methods are those that `calls` knows. `left_out` are keys of APIs that a node does not offer, `unaware` are
    topics that it has not heard of yet. Metadata leaves `unnamed` nodes out; `frozen` ones take connections and answer
    nothing. A login lasts `session_lifetime_ms` by `now_s`, 0 for ever; `cut_off` counts the connections that were
    closed at a request behind that. `accepted` counts connections by node, and `rounds` how often something came over
    them: requests that are sent together come at once. The next fetch is answered with nothing but
    `throttle_ms`, if that is not 0.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        versions: Mapping[str, tuple[int, int]] | None = None,
        users: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        state: BrokerState | None = None,
    ) -> None:
        self.state = state or BrokerState(brokers=brokers)
        self.versions = dict(versions or {})
        self.users = dict(users or {})
        self.latency_s = 0.0
        self.deny_describe: set[str] = set()
        self.deny_write: set[str] = set()
        self.deny_groups: set[str] = set()
        self.deny_topics: set[str] = set()
        self.deny_read: set[str] = set()
        self.unaware: dict[int, set[str]] = {}
        self.unnamed: set[int] = set()
        self.left_out: dict[int, Collection[int]] = {}
        self.frozen: set[int] = set()
        self.session_lifetime_ms = 0
        self.now_s: Callable[[], float] = time.monotonic
        self.cut_off = 0
        self.accepted: collections.Counter[int] = collections.Counter()
        self.rounds: collections.Counter[int] = collections.Counter()
        self.throttle_ms = 0
        self._gone: set[int] = set()
        self.seen: list[Seen] = []
        self.tamper: Callable[[Seen, bytes], bytes] = lambda _seen, frame: frame
        self._failures: dict[str, collections.deque[int]] = collections.defaultdict(collections.deque)
        self._lose: collections.Counter[str] = collections.Counter()
        self.calls = Faults()
        self._lock = threading.RLock()
        self._tls = tls
        self._brokers: dict[int, _Broker] = {}

    def __enter__(self) -> Self:
        self._brokers = {node: _Broker(self, node, self._tls) for node in self.state.nodes}
        return self

    def __exit__(self, *_exc: object) -> None:
        for broker in self._brokers.values():
            broker.close()

    @property
    def bootstrap_servers(self) -> tuple[str, ...]:
        """All brokers that were ever started."""
        nodes = self._brokers or self.state.nodes
        return tuple("{}:{}".format(*self.address(node)) for node in nodes)

    def fail_next(self, api: str, *error_codes: int) -> None:
        """The next requests of this API get these error codes, one each (for every item of a batch)."""
        with self._lock:
            self._failures[api].extend(error_codes)

    def lose_answers(self, api: str, count: int = 1) -> None:
        """The next requests of this API take effect, but the connection ends before the answer."""
        with self._lock:
            self._lose[api] += count

    def stop_broker(self, node: int, *, noticed: bool = True) -> None:
        """A broker dies; its coordinators and leaders move to the others once that is noticed."""
        with self._lock:
            self._gone.add(node)
            if noticed:
                self.state.nodes.remove(node)
        if node in self._brokers:
            self._brokers[node].close()

    def drop_connections(self) -> None:
        """End every connection, as brokers do with those that were idle for connections.max.idle.ms."""
        for broker in self._brokers.values():
            for connection in list(broker.sockets):
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def is_over(self, since_s: float) -> bool:
        """Whether a login of that time has ended."""
        return 0 < self.session_lifetime_ms <= (self.now_s() - since_s) * 1000

    def count(self, api: str) -> int:
        """How many requests of an API have arrived."""
        return sum(seen.api == api for seen in self.seen)

    def address(self, node: int) -> tuple[str, int]:
        """Where a node listens; before the `with` block a name that only FakeTransactionAdmin knows."""
        return ("127.0.0.1", self._brokers[node].port) if self._brokers else (f"broker-{node}", 9092)

    @cached_property
    def connections(self) -> Connections:
        """Those of every FakeTransactionAdmin."""
        return memory_connections(self)

    def open_transactions(self, app: App) -> FakeTransactionAdmin:
        """App's door, in memory."""
        return FakeTransactionAdmin(self, deadline=app.deadline)

    def node_at(self, host: str, port: int) -> int | None:
        """The node with this address; None where it is down."""
        there = (node for node in self.state.nodes if node not in self._gone)
        return next((node for node in there if self.address(node) == (host, port)), None)

    def answer(self, node: int, frame: bytes) -> bytes | None:
        """The response frame to a request frame; None ends the connection."""
        header = decode_request_header(frame, APIS)
        api = APIS[header.api_key]
        with self._lock:
            self.seen.append(Seen(node, api.name, header.version))
            oldest, newest = offered(api, self.versions)
            refused = not oldest <= header.version <= newest
            if refused and api is not cluster_api.API_VERSIONS:
                return None
            version = 0 if refused else header.version
            request = cluster_api.ApiVersionsRequest() if refused else _read(api.key, version, frame[header.body :])
            error = codes.UNSUPPORTED_VERSION if refused else codes.NONE
            if self._failures[api.name]:
                error = self._failures[api.name].popleft()
            response = HANDLERS[api.name](Asked(self, node, version, error), request)
            if self._lose[api.name] > 0:
                self._lose[api.name] -= 1
                return None
        written = _written(api.key, version, response)
        answer = written[: _CORRELATION.start] + header.correlation_id.to_bytes(4) + written[_CORRELATION.stop :]
        return self.tamper(self.seen[-1], answer)


def offered(api: Api[Any, Any], versions: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """The versions of an API that a cluster offers which has narrowed its `versions`."""
    return versions.get(api.name, (api.oldest, api.newest))


@lru_cache(maxsize=2048)
def _read(api_key: int, version: int, body: bytes) -> Any:
    """The request; tests that kill a run at each of its calls ask for the same over and over."""
    return decode_request(APIS[api_key], body, RequestHeader(api_key, version, 0, None, body=0))


@lru_cache(maxsize=2048)
def _written(api_key: int, version: int, response: Hashable) -> bytes:
    """The response frame, with any correlation id."""
    return encode_response(APIS[api_key], response, version=version, correlation_id=0)
