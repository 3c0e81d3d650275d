"""One TCP or TLS connection that carries frames: every wait is bounded, and every OSError becomes one of ours here.

It knows nothing of requests; `connection` does.
"""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from msgspec import Struct

from eosctl.core.java.properties import MOST_PORT, whole_number
from eosctl.deadline import Deadline
from eosctl.errors import UnreachableError, UsageError
from eosctl.machine.resolving import resolve
from eosctl.wire.frames import HANDSHAKE_LIMIT_BYTES, FrameBuffer, FrameMemory

if TYPE_CHECKING:
    import ssl

CONNECT_TIMEOUT_S = 10.0  # Java's socket.connection.setup.timeout.ms
_CHUNK_BYTES = 1 << 16


class Address(NamedTuple):
    """The address of a broker's listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Leader(Struct, frozen=True):
    """The leader of a partition, its epoch (-1 before Kafka 2.1), and its topic's id (none before 2.8)."""

    address: Address
    epoch: int
    topic_id: UUID


def parse_address(text: str) -> Address:
    """Parse `host:port` or `[v6]:port`; raises UsageError."""
    host, colon, port = text.strip().rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if bracketed:
        host = host[1:-1]
    number = whole_number(port, most=MOST_PORT)
    if not colon or not host or not number:
        raise UsageError(f"{text!r} is not host:port", hint="Write host:9092, or [2001:db8::1]:9092 for IPv6.")
    if ":" in host and not bracketed:
        raise UsageError(f"{text!r} is ambiguous", hint=f"Write an IPv6 address in brackets: [{host}]:{port}.")
    return Address(host, number)


_CHECK_ADDRESS = "Check --bootstrap-server, and that this host and port can be reached from here."


class ConnectionLostError(UnreachableError):
    """The connection ended, or was silent for the request timeout, before the response was complete."""


class Stream:
    """A socket that is not connected yet; any thread may call `abort`, only one may use the rest.

    `deadline` ends every wait; each borrower of the connection sets its own.
    """

    def __init__(self, address: Address, *, deadline: Deadline, idle_timeout_s: float) -> None:
        self.address = address
        self.frames = FrameBuffer(HANDSHAKE_LIMIT_BYTES)
        self.deadline = deadline
        self._idle_timeout_s = idle_timeout_s
        self._socket: socket.socket | None = None
        self.aborted = False

    def connect(self, tls: ssl.SSLContext | None) -> None:
        """Connect to the first of the host's addresses that answers, then start TLS if a context is given."""
        candidates = resolve(*self.address, self.deadline, hint=_CHECK_ADDRESS)
        failure: Exception | None = None
        for family, kind, protocol, _, where in candidates:
            try:
                self._connect_one(socket.socket(family, kind, protocol), where)
                break
            except OSError as exc:
                failure = exc
                self.close()
        else:
            self.deadline.check(f"connecting to {self.address}")
            message = f"can't connect to {self.address}: {_reason(failure)}"
            raise UnreachableError(message, hint=_CHECK_ADDRESS) from failure
        if tls is not None:
            self._wrap(tls)

    def _connect_one(self, connecting: socket.socket, where: tuple[object, ...]) -> None:
        self._socket = connecting
        connecting.settimeout(self._wait_s(f"connecting to {self.address}", CONNECT_TIMEOUT_S))
        connecting.connect(where)
        connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _wrap(self, tls: ssl.SSLContext) -> None:
        from eosctl.kafka.tls import tls_failure

        plain = self._require_socket()
        plain.settimeout(self._wait_s(f"the TLS handshake with {self.address}", self._idle_timeout_s))
        try:
            self._socket = tls.wrap_socket(plain, server_hostname=self.address.host)
        except OSError as exc:
            self.close()
            self.deadline.check(f"the TLS handshake with {self.address}")
            raise tls_failure(exc, str(self.address)) from exc

    def send(self, data: bytes) -> None:
        """Send all of `data`; raises ConnectionLostError or DeadlineError."""
        connected = self._require_socket()
        connected.settimeout(self._wait_s(f"sending to {self.address}", self._idle_timeout_s))
        try:
            connected.sendall(data)
        except OSError as exc:
            raise self._lost(_alert_behind(connected, exc), "sending to") from exc

    def receive_frame(self) -> bytes:
        """Receive the next frame; raises ConnectionLostError, DeadlineError or ProtocolError."""
        while (frame := self.frames.next_frame()) is None:
            self.frames.feed(self._receive())
        return frame

    def receive_frames(self) -> list[bytes]:
        """Receive the next frame, and those that have arrived behind it."""
        frames = [self.receive_frame()]
        while (frame := self.frames.next_frame()) is not None:
            frames.append(frame)
        return frames

    def receive_frame_in(self, room: FrameMemory) -> memoryview:
        """Receive the next frame into `room` without a copy; no other received bytes may be pending."""
        head = bytearray(4)
        self._fill(memoryview(head))
        frame = room.of(self.frames.size_of(head))
        self._fill(frame)
        return frame

    def _fill(self, view: memoryview) -> None:
        """Fill the view from the socket.

        Each wait may take as long as the first, because setting a timeout costs as much as receiving; the deadline is
        kept.
        """
        doing = f"waiting for {self.address}"
        connected, filled, size = self._require_socket(), 0, len(view)
        connected.settimeout(self._wait_s(doing, self._idle_timeout_s))
        while filled < size:
            self.deadline.check(doing)
            try:
                received = connected.recv_into(view[filled:])
            except OSError as exc:
                raise self._lost(exc, "waiting for") from exc
            if not received:
                raise ConnectionLostError(f"{self.address} closed the connection")
            filled += received

    def _receive(self) -> bytes:
        connected = self._require_socket()
        connected.settimeout(self._wait_s(f"waiting for {self.address}", self._idle_timeout_s))
        try:
            data = connected.recv(_CHUNK_BYTES)
        except OSError as exc:
            raise self._lost(exc, "waiting for") from exc
        if not data:
            raise ConnectionLostError(f"{self.address} closed the connection")
        return data

    def _lost(self, exc: OSError, doing: str) -> Exception:
        if isinstance(exc, TimeoutError):
            self.deadline.check(f"{doing} {self.address}")
            return ConnectionLostError(f"{self.address} did not answer within {self._idle_timeout_s:g} s")
        if _is_tls_error(exc):
            from eosctl.kafka.tls import is_alert, tls_failure

            if is_alert(exc):
                return tls_failure(exc, str(self.address))
            if "EOF" in str(exc):  # the other side went without a farewell
                return ConnectionLostError(f"{self.address} closed the connection")
        return ConnectionLostError(f"lost the connection to {self.address}: {_reason(exc)}")

    def _wait_s(self, doing: str, at_most_s: float) -> float:
        self.deadline.check(doing)
        return min(at_most_s, max(self.deadline.remaining_s(), 0.001))

    def _require_socket(self) -> socket.socket:
        if self._socket is None or self.aborted:
            raise ConnectionLostError(f"the connection to {self.address} is closed")
        return self._socket

    def has_ended(self) -> bool:
        """Return whether a stream with no pending response has received something: usually its end."""
        if self._socket is None or self.aborted:
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def abort(self) -> None:
        """Wake the thread that waits on this stream: its wait ends in ConnectionLostError."""
        self.aborted = True
        if self._socket is not None:
            try:
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # not SSLSocket's: it would drop its state
            except OSError:
                return  # it was no longer connected, so no thread waits on it

    def close(self) -> None:
        """Close the socket; a second call does nothing."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _is_tls_error(exc: OSError) -> bool:
    return type(exc).__module__ == "ssl"  # asked without importing it, for plaintext


def _alert_behind(connected: socket.socket, exc: OSError) -> OSError:
    """Return the TLS alert that explains why sending failed, if one has arrived, else `exc`.

    In TLS 1.3 a client learns only after its handshake that its certificate was refused, when the connection closes.
    """
    if type(connected) is socket.socket or isinstance(exc, TimeoutError):
        return exc
    try:
        connected.settimeout(0.5)
        connected.recv(1)
    except OSError as alert:
        return alert if _is_tls_error(alert) else exc
    return exc


def _reason(exc: BaseException | None) -> str:
    return (getattr(exc, "strerror", None) or str(exc) or type(exc).__name__).lower()
