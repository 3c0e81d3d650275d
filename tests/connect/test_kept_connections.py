"""Connections to a worker that a command keeps: questions share one, and no write is sent over it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from eosctl.connect.rest import RestConnectWorker
from eosctl.connect.session import ConnectSession
from eosctl.core.workers.access import ConnectAccess
from eosctl.deadline import Deadline
from eosctl.errors import UnreachableError
from tests.fakes.clock import PLENTY_S
from tests.fakes.http_server import serving

ROOT = {"version": "4.3.1", "kafka_cluster_id": "c"}


@dataclass
class Server:
    """Answers HTTP/1.1; `most` is how many requests of one connection it answers before it hangs up without a word."""

    url: str = ""
    most: int = 1_000
    asked: list[tuple[int, str]] = field(default_factory=list)
    """The port that each request came from, and its method."""

    def connections(self) -> int:
        return len({port for port, _method in self.asked})


@contextmanager
def keeping() -> Iterator[Server]:
    said = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        answered = 0

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            said.asked.append((self.client_address[1], self.command))
            self.answered += 1
            if self.answered > said.most:
                self.close_connection = True
                return
            data = json.dumps(ROOT).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(data)

        do_PUT = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_args: object) -> None: ...

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    said.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    with serving(httpd):
        yield said


@contextmanager
def session() -> Iterator[ConnectSession]:
    kept = ConnectSession()
    try:
        yield kept
    finally:
        kept.close()


def worker(server: Server, kept: ConnectSession | None, **access: Any) -> RestConnectWorker:
    given = ConnectAccess(trust_discovered=True, **access)
    return RestConnectWorker(server.url, deadline=Deadline.after(PLENTY_S), access=given, session=kept)


WRITES: list[Callable[[RestConnectWorker], object]] = [
    lambda each: each.set_state("c", "stop"),
    lambda each: each.put_connector_config("c", {}),
]


def test_questions_of_a_command_share_a_connection() -> None:
    """Each took a connection of its own: a round trip more, and four over TLS."""
    with keeping() as server, session() as kept:
        for _ in range(2):
            worker(server, kept).root()
            worker(server, kept).validate("P", {"a": "b"})
        assert (len(server.asked), server.connections()) == (4, 1)
        worker(server, kept, username="other").root()
        assert server.connections() == 2


def test_without_a_session_each_question_has_its_own_connection() -> None:
    with keeping() as server:
        alone = worker(server, None)
        assert alone.root() == alone.root() == ROOT
        assert server.connections() == 2


def test_a_question_is_asked_again_where_the_worker_has_hung_up() -> None:
    with keeping() as server, session() as kept:
        server.most = 1
        one = worker(server, kept)
        assert one.root() == one.root() == ROOT
        assert [method for _port, method in server.asked] == ["GET"] * 3
        server.most = 0
        with pytest.raises(UnreachableError):
            one.root()


@pytest.mark.parametrize("write", WRITES)
def test_a_write_has_a_connection_of_its_own_and_is_sent_once(write: Callable[[RestConnectWorker], object]) -> None:
    """One over a connection that the worker closes meanwhile could be lost, or done twice."""
    with keeping() as server, session() as kept:
        one = worker(server, kept)
        one.root()
        write(one)
        assert (len(server.asked), server.connections()) == (2, 2)
        server.most = 0
        with pytest.raises(UnreachableError):
            write(one)
        assert [method for _port, method in server.asked] == ["GET", "PUT", "PUT"]
