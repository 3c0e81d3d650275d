"""Cuts a byte stream into frames (four bytes of size, then the frame), and refuses implausible sizes."""

from __future__ import annotations

from eosctl.errors import ProtocolError

LISTING_LIMIT_BYTES = 512 * 1024 * 1024
HANDSHAKE_LIMIT_BYTES = 1024 * 1024
_TLS_ALERT = b"\x15\x03"
_HTTP = b"HTTP"


class FrameBuffer:
    """Received bytes that are not read yet; `limit_bytes` may grow once a broker is recognised."""

    def __init__(self, limit_bytes: int = LISTING_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self._data = bytearray()
        self._start = 0

    def feed(self, data: bytes) -> None:
        """Append received bytes."""
        if self._start == len(self._data):
            self._data.clear()
            self._start = 0
        self._data += data

    def next_frame(self) -> bytes | None:
        """Return the next complete frame without its size bytes, or None.

        Raises ProtocolError on a size out of bounds.
        """
        body = self._start + 4
        if len(self._data) < body:
            return None
        size = self.size_of(self._data[self._start : body])
        if len(self._data) < body + size:
            return None
        with memoryview(self._data) as view:
            frame = bytes(view[body : body + size])
        self._start = body + size
        if self._start > 1 << 20:  # forget what was read, rarely: moving the rest costs
            del self._data[: self._start]
            self._start = 0
        return frame

    def size_of(self, head: bytes | bytearray) -> int:
        """Return the size of a frame that begins with these four bytes; raises ProtocolError on one out of bounds."""
        size = int.from_bytes(head, "big", signed=True)
        if 0 <= size <= self.limit_bytes:
            return size
        if head.startswith(_TLS_ALERT):
            raise ProtocolError("a TLS alert", hint="The port expects TLS: security.protocol SSL or SASL_SSL.")
        if head == _HTTP:
            raise ProtocolError("an HTTP answer", hint="It is an HTTP server, not a Kafka listener.")
        raise ProtocolError(
            f"response frame of {size} bytes refused (the limit is {self.limit_bytes})",
            hint="The port may not be a Kafka listener, or not of this security.protocol.",
        )


class FrameMemory:
    """Memory that receives one frame after the other: each overwrites the previous one."""

    def __init__(self, size_bytes: int) -> None:
        self._room = memoryview(bytearray(size_bytes))

    def of(self, size_bytes: int) -> memoryview:
        """Return a view of that many bytes, growing the room if it is too small."""
        if size_bytes > len(self._room):
            self._room = memoryview(bytearray(size_bytes))
        return self._room[:size_bytes]
