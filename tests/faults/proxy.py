"""A TCP proxy in front of one broker, for tests: it cuts connections at chosen bytes and sees every request pass.

It puts its own address wherever the broker tells its own (Metadata, FindCoordinator, DescribeCluster), so that clients
of both kinds stay with it. While the broker is down a connection is taken and closed, as a load balancer does. With
`Tls` it speaks TLS to both sides; a cut is a reset of the TCP connection below.
"""

from __future__ import annotations

import random
import selectors
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from pathlib import Path
from types import TracebackType

_PATIENCE_S = 180.0
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Api(IntEnum):
    """The requests that tests wait for."""

    PRODUCE = 0
    FETCH = 1
    INIT_PRODUCER_ID = 22
    END_TXN = 26
    CREATE_ACLS = 30
    SASL_AUTHENTICATE = 36
    LIST_TRANSACTIONS = 66


class Fate(Enum):
    """What becomes of a request: it is passed on, the connection is cut before it, or before its answer."""

    PASS = auto()
    CUT = auto()
    LOSE_ANSWER = auto()


@dataclass(frozen=True, slots=True)
class Tls:
    """`certificate`: the proxy's own, with its key; `broker_ca`: who signed the broker's."""

    certificate: Path
    broker_ca: Path

    def to_client(self, client: socket.socket) -> socket.socket:
        """Shakes hands with a client."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        return context.wrap_socket(client, server_side=True)

    def to_broker(self, broker: socket.socket) -> socket.socket:
        """Shakes hands with the broker; in TLS 1.3 tickets come after that, which a wait for frames takes for some."""
        context = ssl.create_default_context(cafile=self.broker_ca)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context.wrap_socket(broker, server_hostname="127.0.0.1")


OnRequest = Callable[[int, int], Fate]


@dataclass(frozen=True, slots=True)
class Cut:
    """A connection is reset once so many bytes have gone to the broker, or have come from it."""

    after_bytes: int
    to_broker: bool = False


def random_cuts(seed: int, count: int, *, most_bytes: int) -> list[Cut | None]:
    """Cuts for the first `count` connections, small numbers as likely as large ones; one in four is let through."""
    chosen = random.Random(seed)  # noqa: S311 - no secret

    def one() -> Cut | None:
        if chosen.random() < 0.25:
            return None
        return Cut(int(most_bytes ** chosen.random()), to_broker=chosen.random() < 0.4)

    return [one() for _ in range(count)]


def at(api: Api, fate: Fate, *numbers: int) -> OnRequest:
    """`fate` for those requests of a kind, all others pass."""
    return lambda api_key, number: fate if api_key == api and number in numbers else Fate.PASS


class Proxy:
    """A context manager; `cuts` are for the connections in the order in which they are made, later ones are whole.

    A cut after 0 bytes is one after the handshakes.

    `on_request(api_key, number)` is called before request `number` (from 1, per key) of a kind is passed on, and
    decides; it may also wait, or kill something.
    """

    def __init__(
        self,
        broker: str,
        *,
        cuts: Iterable[Cut | None] = (),
        on_request: OnRequest = lambda _api_key, _number: Fate.PASS,
        tls: Tls | None = None,
    ) -> None:
        self._broker = ("127.0.0.1", int(broker.rpartition(":")[2]))
        self._cuts: Iterator[Cut | None] = iter(tuple(cuts))
        self._on_request, self._tls = on_request, tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.requests: Counter[int] = Counter()
        self.cut = 0

    @property
    def address(self) -> str:
        """`host:port` for --bootstrap-server."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Proxy:
        self._start(self._accept)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        for thread in self._threads:  # grows no more once the first, which accepts, has ended
            thread.join(_PATIENCE_S)
        self._listener.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._start(self._serve, client, next(self._cuts, None))

    def _serve(self, client: socket.socket, cut: Cut | None) -> None:
        client.settimeout(_PATIENCE_S)
        with client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
            try:
                with socket.create_connection(self._broker, timeout=_PATIENCE_S) as broker:
                    broker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    if self._tls is None:
                        self._pass_on(client, broker, cut)
                    else:
                        with self._tls.to_client(client) as near, self._tls.to_broker(broker) as far:
                            self._pass_on(near, far, cut)
            except OSError:
                return  # one of the two is gone: so is the connection

    def _pass_on(self, client: socket.socket, broker: socket.socket, cut: Cut | None) -> None:
        """Whole frames both ways, until one side ends or a cut is due."""
        mine = _wire_address(self._listener.getsockname()[1])
        theirs = _wire_address(self._broker[1])
        passed = {True: 0, False: 0}
        fate = Fate.PASS
        if cut is not None and cut.after_bytes == 0:
            self.cut += 1
            return
        with selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, True)
            selector.register(broker, selectors.EVENT_READ, False)
            while not self._closing.is_set():
                for to_broker in _readable(selector):
                    frame = _read_frame(client if to_broker else broker)
                    if to_broker and fate is Fate.PASS:
                        fate = self._fate(frame)
                    if fate is Fate.CUT or (fate is Fate.LOSE_ANSWER and not to_broker):
                        self.cut += 1
                        return
                    frame = frame if to_broker else frame.replace(theirs, mine)
                    if cut is not None and cut.to_broker is to_broker:
                        frame = frame[: cut.after_bytes - passed[to_broker]]
                    (broker if to_broker else client).sendall(frame)
                    passed[to_broker] += len(frame)
                    if cut is not None and passed[cut.to_broker] >= cut.after_bytes:
                        self.cut += 1
                        return

    def _fate(self, request: bytes) -> Fate:
        (api_key,) = struct.unpack_from(">h", request, 4)
        with self._lock:
            self.requests[api_key] += 1
            number = self.requests[api_key]
        return self._on_request(api_key, number)


class Gate:
    """Holds request `number` of a kind until it is opened."""

    def __init__(self, api: Api, number: int) -> None:
        self._held = (int(api), number)
        self._came, self._open = threading.Event(), threading.Event()
        self._fate = Fate.PASS

    def __call__(self, api_key: int, number: int) -> Fate:
        if (api_key, number) == self._held:
            self._came.set()
            self._open.wait(_PATIENCE_S)
            return self._fate
        return Fate.PASS

    def wait_closed(self) -> None:
        """Until the request stands before it; fails when none comes."""
        assert self._came.wait(_PATIENCE_S), "the request never came"

    def is_open(self) -> bool:
        """Whether it was decided."""
        return self._open.is_set()

    def open(self, fate: Fate = Fate.PASS) -> None:
        """Decides what becomes of it."""
        self._fate = fate
        self._open.set()


@contextmanager
def held(broker: str, api: Api, number: int) -> Iterator[tuple[Proxy, Gate]]:
    """A proxy with a gate, which is open at the end."""
    gate = Gate(api, number)
    with Proxy(broker, on_request=gate) as proxy:
        try:
            yield proxy, gate
        finally:
            if not gate.is_open():
                gate.open()


def _readable(selector: selectors.BaseSelector) -> list[bool]:
    """The data of the sockets that have something to read; what TLS has decrypted already no selector sees."""
    keys = selector.get_map().values()
    held = [key.data for key in keys if isinstance(key.fileobj, ssl.SSLSocket) and key.fileobj.pending()]
    return held or [key.data for key, _ in selector.select(0.2)]


def _wire_address(port: int) -> bytes:
    """How every answer that names a broker spells where it listens, after the length of the name."""
    return b"127.0.0.1" + struct.pack(">i", port)


def _read_frame(source: socket.socket) -> bytes:
    """A length and as many bytes; raises ConnectionError at the end of the stream."""
    length = _read_exactly(source, 4)
    return length + _read_exactly(source, int.from_bytes(length, "big"))


def _read_exactly(source: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        data = source.recv(min(count - len(parts), 1 << 16))
        if not data:
            raise ConnectionError("the stream ended")
        parts += data
    return bytes(parts)
