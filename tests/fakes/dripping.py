"""A server whose answer comes in pieces, as slowly as a test wants it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def answering(pieces: Callable[[], Iterable[bytes]], *, pause_s: float = 0.0) -> Iterator[str]:
    """A server that sends these pieces to each client, with pauses; its URL."""
    over = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            for piece in pieces():
                if over.is_set():
                    return
                connection.sendall(piece)
                over.wait(pause_s)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)
