"""Cuts a byte stream into frames (four bytes of size, then the frame), and refuses sizes nobody would send."""

from __future__ import annotations

from eosctl.errors import ProtocolError

LISTING_LIMIT_BYTES = 512 * 1024 * 1024
HANDSHAKE_LIMIT_BYTES = 1024 * 1024
_TLS_ALERT = b"\x15\x03"
_HTTP = b"HTTP"


class FrameBuffer:
    """Bytes that arrived and are not yet read; `limit_bytes` may grow once a broker is recognised."""

    def __init__(self, limit_bytes: int = LISTING_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self._data = bytearray()
        self._start = 0

    def feed(self, data: bytes) -> None:
        """Appends what arrived."""
        if self._start == len(self._data):
            self._data.clear()
            self._start = 0
        self._data += data

    def next_frame(self) -> bytes | None:
        """The next complete frame without its size bytes, or None; raises ProtocolError on a size out of bounds."""
        body = self._start + 4
        if len(self._data) < body:
            return None
        size = int.from_bytes(self._data[self._start : body], "big", signed=True)
        if not 0 <= size <= self.limit_bytes:
            raise self._bad_size(size)
        if len(self._data) < body + size:
            return None
        with memoryview(self._data) as view:
            frame = bytes(view[body : body + size])
        self._start = body + size
        if self._start > 1 << 20:  # forget what was read, rarely: moving the rest costs
            del self._data[: self._start]
            self._start = 0
        return frame

    def _bad_size(self, size: int) -> ProtocolError:
        head = bytes(self._data[self._start : self._start + 4])
        if head.startswith(_TLS_ALERT):
            return ProtocolError("a TLS alert", hint="The port expects TLS: security.protocol SSL or SASL_SSL.")
        if head == _HTTP:
            return ProtocolError("an HTTP answer", hint="It is an HTTP server, not a Kafka listener.")
        return ProtocolError(
            f"response frame of {size} bytes refused (the limit is {self.limit_bytes})",
            hint="The port may not be a Kafka listener, or not of this security.protocol.",
        )
