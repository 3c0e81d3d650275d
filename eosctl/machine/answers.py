"""Reads data from a connection within one deadline and one size.

A timeout of a socket begins anew with each byte: without a deadline, a sender of one byte a second would be waited for
forever.
"""

from __future__ import annotations

import http.client
import io
import socket
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, cast

from eosctl.deadline import Deadline

LARGEST_ANSWER_BYTES = 256 * 2**20
"""The limit for a worker or an agent: a worker of a thousand tasks sends some 20 MB, ten thousand connectors 100 MB."""
_PIECE_BYTES = 1 << 16


class AnswerTooLargeError(Exception):
    """An answer, as sent or decompressed, has more bytes than allowed."""


class EncodedAnswerError(Exception):
    """An answer has an encoding that was not requested and can't be undone; the text names it."""


class TimedReads(io.RawIOBase):
    """Limits each read of a connection to the remaining time; `deadline` may be set anew."""

    def __init__(self, raw: io.RawIOBase, connection: socket.socket, deadline: Deadline) -> None:
        self._raw, self._connection, self.deadline = raw, connection, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read with the remaining time as timeout; raises TimeoutError when none is left."""
        left_s = self.deadline.remaining_s()
        if not left_s:
            raise TimeoutError("timed out")
        self._connection.settimeout(left_s)
        return cast("int | None", self._raw.readinto(buffer))

    def close(self) -> None:
        self._raw.close()
        super().close()


def timed_reads(file: Any, connection: socket.socket, deadline: Deadline) -> TimedReads:
    """Return what `file`, as `connection.makefile("rb")` gave it, reads from, with reads that end at the deadline."""
    return TimedReads(file.detach(), connection, deadline)


class _TimedResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline: Deadline, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = io.BufferedReader(timed_reads(self.fp, sock, deadline))


def response_within(deadline: Deadline) -> Callable[..., http.client.HTTPResponse]:
    """Return a `response_class` for http.client and what is built on it: status, headers and body end in time."""
    return partial(_TimedResponse, deadline=deadline)


class _Response(Protocol):
    @property
    def headers(self) -> Mapping[str, str]: ...

    def read(self, amt: int | None = None, decode_content: bool | None = None) -> bytes: ...

    def close(self) -> None: ...


def read_answer(response: _Response, *, most_bytes: int = LARGEST_ANSWER_BYTES) -> bytes:
    """Return the body of a response of urllib3 that is not loaded yet, decompressed.

    Its connection is of use again only where the body has ended.

    Raises AnswerTooLargeError, EncodedAnswerError, and what reading raises.
    """
    pieces, size = [], 0
    try:
        while piece := response.read(_PIECE_BYTES, decode_content=False):
            size += len(piece)
            if size > most_bytes:
                raise AnswerTooLargeError
            pieces.append(piece)
    finally:
        response.close()
    body, encoding = b"".join(pieces), response.headers.get("Content-Encoding", "identity").lower()
    if encoding in ("identity", "") or not body:
        return body
    if encoding not in ("gzip", "x-gzip"):  # none was requested; some proxies compress all the same
        raise EncodedAnswerError(encoding)
    return _unpacked(body, most_bytes)


def _unpacked(body: bytes, most_bytes: int) -> bytes:
    """Decompress gzip within `most_bytes`.

    Raises AnswerTooLargeError before more than that is in memory, EncodedAnswerError for data that is not gzip.
    """
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        found = unpacker.decompress(body, most_bytes + 1)
    except zlib.error as exc:
        raise EncodedAnswerError("gzip, damaged") from exc
    if len(found) > most_bytes:
        raise AnswerTooLargeError
    if not unpacker.eof:
        raise EncodedAnswerError("gzip, cut short")
    return found
