"""`python -m benchmarks.audit.replay SERVER FILE`: sends recorded requests, and receives the answers to nowhere."""

from __future__ import annotations

import socket
import sys
from pathlib import Path


def main(server: str, recorded: str) -> None:
    """One request after the other; nothing of an answer is looked at but its size."""
    data, offset = Path(recorded).read_bytes(), 0
    host, _, port = server.rpartition(":")
    room, size = memoryview(bytearray(64 << 20)), memoryview(bytearray(4))
    with socket.create_connection((host, int(port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while offset < len(data):
            end = offset + 4 + int.from_bytes(data[offset : offset + 4], "big")
            connection.sendall(data[offset:end])
            offset = end
            receive(connection, size)
            receive(connection, room[: int.from_bytes(size, "big")])


def receive(connection: socket.socket, view: memoryview) -> None:
    """Fills `view`."""
    while view:
        view = view[connection.recv_into(view) :]


if __name__ == "__main__":
    main(*sys.argv[1:])
