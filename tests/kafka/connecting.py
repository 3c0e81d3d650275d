"""How the connection tests reach the fake cluster, and servers that are no broker."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.librdkafka import client_properties, quiet_logger
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from tests.fakes.broker import FakeCluster
from tests.fakes.clock import PLENTY_S


@contextlib.contextmanager
def admin_of(cluster: FakeCluster, *, timeout_s: float = PLENTY_S, **settings: Any) -> Iterator[NativeTransactionAdmin]:
    """An admin of the fake cluster; `settings` are fields of ClientSettings."""
    client = ClientSettings(cluster.bootstrap_servers, **settings)
    with NativeTransactionAdmin(client, deadline=Deadline.after(timeout_s)) as admin:
        yield admin


def connect(bootstrap: str | tuple[str, ...], *, timeout_s: float = PLENTY_S, **settings: Any) -> str:
    """The cluster id, which takes one connection and one request."""
    servers = (bootstrap,) if isinstance(bootstrap, str) else bootstrap
    with NativeTransactionAdmin(ClientSettings(servers, **settings), deadline=Deadline.after(timeout_s)) as admin:
        return admin.cluster_id()


def connect_with(settings: ClientSettings, *, timeout_s: float = PLENTY_S) -> str:
    """The same with whole settings."""
    with NativeTransactionAdmin(settings, deadline=Deadline.after(timeout_s)) as admin:
        return admin.cluster_id()


def librdkafka_connects(settings: ClientSettings) -> bool:
    """Whether librdkafka gets an answer; a refusal ends the wait at once."""
    refused: list[object] = []
    client = AdminClient(client_properties(settings) | {"error_cb": refused.append}, logger=quiet_logger())
    future = client.describe_cluster(request_timeout=PLENTY_S)
    while not future.done() and not refused:
        client.poll(0.05)
    return not refused and bool(future.result().cluster_id)


CERTIFICATES = Path(__file__).parent / "certificates"
RESET_AT_CLOSE = struct.pack("ii", 1, 0)


@contextlib.contextmanager
def tls_server_that_breaks_off(answer: bytes, *, reset: bool) -> Iterator[str]:
    """A server that shakes hands, reads a little, says `answer`, and is gone: by a reset, or without TLS's farewell."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), context.wrap_socket(accepted, server_side=True) as connection:
                connection.recv(1000)
                connection.sendall(answer)
                if reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


@contextlib.contextmanager
def server_that_says(answer: bytes, *, close: bool = True) -> Iterator[str]:
    """A server that reads a little, says `answer`, and hangs up (or stays silent)."""
    listener = socket.create_server(("127.0.0.1", 0))
    accepted: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                accepted.append(connection)
                connection.recv(1000)
                connection.sendall(answer)
                if close:
                    connection.shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    with contextlib.suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for connection in accepted:
        connection.close()
    thread.join(5)
