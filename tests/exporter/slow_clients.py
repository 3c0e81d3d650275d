"""A client that sends a byte now and then."""

from __future__ import annotations

import socket
import time

_PATIENCE_S = 100.0


def is_cut_off(connection: socket.socket, text: bytes, *, pause_s: float = 0.05) -> bool:
    """Whether the server hangs up, or says that it waits no more, before all of `text` is sent, a byte at a time."""
    connection.settimeout(pause_s)
    end_s = time.monotonic() + _PATIENCE_S
    for byte in text:
        if time.monotonic() > end_s:
            break
        try:
            connection.sendall(bytes([byte]))
            connection.recv(1000)
        except TimeoutError:
            continue
        except OSError:
            return True
        return True
    return False
