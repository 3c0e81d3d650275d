"""The forwarder between workers and brokers, and the file that grows."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosctl.rehearse.ground import Forwarder
from eosctl.rehearse.plan import GrowingFile
from tests.fakes.clock import PLENTY_S
from tests.sandbox_fixtures import wait_until


@pytest.fixture
def echo() -> Iterator[str]:
    """A server that sends back what it gets."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket) -> None:
        with client:
            try:
                while data := client.recv(1024):
                    client.sendall(data)
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.getsockname()[1]}"
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(10)


@pytest.fixture
def forwarder() -> Iterator[Forwarder]:
    made = Forwarder()
    yield made
    made.close()


def said_back(client: socket.socket, text: bytes) -> bytes:
    client.sendall(text)
    return client.recv(1024)


def ended(client: socket.socket) -> bool:
    """Whether the other side is gone, by a reset or an end, whichever comes first."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def is_turned_away(forwarder: Forwarder) -> bool:
    """Whether a new connection is over at once: as it is made, or right after."""
    try:
        with socket.create_connection(("127.0.0.1", forwarder.port), timeout=PLENTY_S) as client:
            return ended(client)
    except ConnectionResetError:
        return True


def test_bytes_pass_both_ways(echo: str, forwarder: Forwarder) -> None:
    forwarder.lead_to(echo)
    with socket.create_connection(("127.0.0.1", forwarder.port), timeout=PLENTY_S) as client:
        assert said_back(client, b"hello") == b"hello"


def test_a_delay_holds_back_what_passes(echo: str, forwarder: Forwarder) -> None:
    forwarder.lead_to(echo)
    forwarder.delay_s = 0.1
    with socket.create_connection(("127.0.0.1", forwarder.port), timeout=PLENTY_S) as client:
        began_s = time.monotonic()
        assert said_back(client, b"hello") == b"hello"
        assert time.monotonic() - began_s >= 0.2, "once on the way there, once on the way back"


def test_a_cut_ends_every_connection_and_new_ones_pass(echo: str, forwarder: Forwarder) -> None:
    forwarder.lead_to(echo)
    with socket.create_connection(("127.0.0.1", forwarder.port), timeout=PLENTY_S) as client:
        assert said_back(client, b"hello") == b"hello"
        assert forwarder.cut() == 1
        assert ended(client)
    wait_until(lambda: forwarder.cut() == 0, what="the connection to be forgotten")
    with socket.create_connection(("127.0.0.1", forwarder.port), timeout=PLENTY_S) as client:
        assert said_back(client, b"hello") == b"hello"


def test_without_anybody_behind_it_a_connection_is_closed(forwarder: Forwarder, closed_port: int) -> None:
    for lead in ("", f"127.0.0.1:{closed_port}"):
        if lead:
            forwarder.lead_to(lead)
        assert is_turned_away(forwarder)


def test_every_line_of_the_growing_file_says_its_number(tmp_path: Path) -> None:
    source = GrowingFile(tmp_path / "lines.txt", seed=1)
    source.start()
    try:
        wait_until(lambda: source.lines > 20, what="some lines")
    finally:
        source.stop()
    numbers = [json.loads(line)["n"] for line in source.path.read_text().splitlines()]
    assert numbers == list(range(source.lines))
