"""A forwarder between the workers and a broker, which can delay or cut connections."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress

_CHUNK = 1 << 16
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Forwarder:
    """A forwarder from a loopback port of its own to `upstream`, once that is set.

    While nothing listens there, a connection is accepted and closed. `delay_s` delays all traffic.
    """

    def __init__(self) -> None:
        self.upstream: tuple[str, int] | None = None
        self.delay_s = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open = set[socket.socket]()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._listener.getsockname()[1])

    def lead_to(self, address: str) -> None:
        """Forward connections to `host:port` from now on."""
        host, _colon, port = address.rpartition(":")
        self.upstream = (host, int(port))

    def cut(self) -> int:
        """Reset every connection; return how many there were."""
        with self._lock:
            cut = list(self._open)
        for each in cut:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        return len(cut) // 2

    def close(self) -> None:
        """Stop listening, and reset open connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
            if self.upstream is None:
                return
            with socket.create_connection(self.upstream, timeout=10) as broker:
                broker.settimeout(None)
                for each in (client, broker):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._open |= {client, broker}
                back = threading.Thread(target=self._pass_on, args=(broker, client), daemon=True)
                back.start()
                self._pass_on(client, broker)
                back.join()
        with self._lock:
            self._open -= {each for each in self._open if each.fileno() == -1}

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        """Forward one direction until either side ends, then end the other direction."""
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if self.delay_s:
                    time.sleep(self.delay_s)
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
