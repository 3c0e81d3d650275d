"""The exporter's HTTP server: what it answers, where it listens, and that no client holds up another."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from eosctl.collect.facts import KafkaFacts
from eosctl.collect.overview import Collected, Overview
from eosctl.errors import EosctlError, UsageError
from eosctl.exporter import server as server_module
from eosctl.exporter.server import MetricsServer, open_server, parse_listen
from tests.exporter.slow_clients import is_cut_off
from tests.fakes.clock import PLENTY_S, given_time
from tests.sandbox_fixtures import wait_until

KAFKA = Collected("kafka", 30.0, 20.0, facts=KafkaFacts("c"), facts_ms=1000, duration_s=0.5, looks=1)


def overview(*collected: Collected) -> Overview:
    return Overview(2000, 0, 1, {each.source: each for each in collected or (KAFKA,)})


@contextmanager
def serving(listen: str = "127.0.0.1:0", *collected: Collected) -> Iterator[MetricsServer]:
    with open_server(listen, lambda: overview(*collected)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server: MetricsServer, method: str, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    host, port = server.server_address[:2]
    connection = http.client.HTTPConnection(str(host), int(port), timeout=PLENTY_S)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/metrics", 200, b"eosctl_up 1.0"),
        ("GET", "/metrics?name=x", 200, b"eosctl_up 1.0"),
        ("GET", "/healthz", 200, b"ok"),
        ("GET", "/readyz", 200, b"ready"),
        ("GET", "/", 200, b"/metrics"),
        ("GET", "/nosuch", 404, b"not found"),
        ("POST", "/metrics", 405, b"only GET and HEAD"),
        ("DELETE", "/metrics", 405, b"only GET and HEAD"),
        ("HEAD", "/metrics", 200, b""),
    ],
)
def test_what_is_answered(method: str, path: str, status: int, body: bytes) -> None:
    with serving() as server:
        answer, found = ask(server, method, path)
    assert (answer.status, body in found) == (status, True)
    assert answer.getheader("Allow") == ("GET, HEAD" if status == 405 else None)
    if method == "HEAD":
        assert (found, int(answer.getheader("Content-Length") or 0) > 0) == (b"", True)


def test_formats_are_negotiated() -> None:
    with serving() as server:
        plain, _body = ask(server, "GET", "/metrics")
        openmetrics, body = ask(server, "GET", "/metrics", Accept="application/openmetrics-text; version=1.0.0")
        packed, small = ask(server, "GET", "/metrics", **{"Accept-Encoding": "gzip"})
    assert (plain.getheader("Content-Type") or "").startswith("text/plain; version=0.0.4")
    assert (openmetrics.getheader("Content-Type") or "").startswith("application/openmetrics-text; version=1.0.0")
    assert body.endswith(b"# EOF\n")
    assert packed.getheader("Content-Encoding") == "gzip"
    assert b"eosctl_up 1.0" in gzip.decompress(small)


def test_it_is_ready_once_each_source_but_the_last_was_looked_at() -> None:
    """Whatever came of it: a cluster that is down is a metric."""
    waiting = Collected("group", 30.0, 20.0)
    failed = Collected("group", 30.0, 20.0, error="unreachable", looks=1)
    last = Collected("group", 30.0, 20.0, last=True)
    for other, status, told in ((waiting, 503, True), (failed, 200, False), (last, 200, True)):
        with serving("127.0.0.1:0", KAFKA, other) as server:
            answer, body = ask(server, "GET", "/readyz")
        assert (answer.status, b"group" in body) == (status, told)


def test_a_client_that_does_not_read_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that sends nothing, one that sends half, one that takes nothing of a long answer."""
    monkeypatch.setattr(server_module, "expose", lambda *_args, **_more: (b"x" * 20_000_000, "text/plain"))
    with serving() as server:
        address = server.server_address[:2]
        slow = [socket.create_connection((str(address[0]), int(address[1])), PLENTY_S) for _ in range(6)]
        slow[0].sendall(b"GET /metr")
        for each in slow[1:]:
            each.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        answer, _body = ask(server, "GET", "/healthz")
        assert answer.status == 200
        for each in slow:
            each.close()


def test_too_many_connections_are_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a thread for each: their number is bounded."""
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 2)
    with serving() as server:
        address = (str(server.server_address[0]), int(server.server_address[1]))
        held = [socket.create_connection(address, PLENTY_S) for _ in range(2)]
        for each in held:
            each.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert each.recv(100).startswith(b"HTTP/1.1 200")
        with socket.create_connection(address, PLENTY_S) as third:
            assert third.recv(1) == b""
        for each in held:
            each.close()


def test_a_port_in_use_is_an_error_that_says_so() -> None:
    with serving() as server:
        port = server.server_address[1]
        with pytest.raises(EosctlError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            open_server(f"127.0.0.1:{port}", overview)


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_ipv6() -> None:
    with serving("[::1]:0") as server:
        assert server.url().startswith("http://[::1]:")
        assert ask(server, "GET", "/healthz")[0].status == 200


def test_every_address() -> None:
    with serving(":0") as server:
        port = int(server.server_address[1])
        with socket.create_connection(("127.0.0.1", port), PLENTY_S) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("listen", "parsed"),
    [("h:1", ("h", 1)), (":9", ("", 9)), ("[::1]:9", ("::1", 9)), ("127.0.0.1:0", ("127.0.0.1", 0))],
)
def test_addresses(listen: str, parsed: tuple[str, int]) -> None:
    assert parse_listen(listen) == parsed


@pytest.mark.parametrize("listen", ["", "9618", "host", "h:", "h:x", "h:65536", "::1:9", "h:-1"])
def test_what_is_no_address(listen: str) -> None:
    with pytest.raises(UsageError, match="no address to listen on"):
        parse_listen(listen)


def test_metrics_that_cannot_be_made_are_an_answer() -> None:
    """And no connection that just ends."""

    def broken() -> Overview:
        raise LookupError("no overview")

    with open_server("127.0.0.1:0", broken) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            answer, body = ask(server, "GET", "/metrics")
        finally:
            server.shutdown()
            thread.join()
    assert (answer.status, body) == (500, b"the metrics can't be made: unexpected LookupError\n")


def connected(server: MetricsServer) -> socket.socket:
    return socket.create_connection((str(server.server_address[0]), int(server.server_address[1])), PLENTY_S)


@pytest.mark.parametrize("before", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_a_request_has_one_time(monkeypatch: pytest.MonkeyPatch, before: bytes) -> None:
    """A byte now and then kept a place for ever: 32 such clients shut everybody out."""

    def cut_off_within(patience_s: float) -> None:
        monkeypatch.setattr(server_module, "PATIENCE_S", patience_s)
        with serving() as server, connected(server) as slow:
            if before:
                slow.sendall(before)
                assert slow.recv(1000).startswith(b"HTTP/1.1 200")
            assert is_cut_off(slow, b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 5000)

    given_time(cut_off_within, first_s=0.5)


def test_an_answer_has_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "expose", lambda *_args, **_more: (b"x" * 50_000_000, "text/plain"))
    monkeypatch.setattr(server_module, "ANSWER_S", 0.5)
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 1)
    with serving() as server, connected(server) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: ends_with_200(server), what="the place of a client that takes nothing")


def ends_with_200(server: MetricsServer) -> bool:
    try:
        return ask(server, "GET", "/healthz")[0].status == 200
    except (OSError, http.client.HTTPException):
        return False


@pytest.mark.parametrize("header", ["Content-Length: 44", "Transfer-Encoding: chunked"])
def test_what_follows_a_body_is_no_request(header: str) -> None:
    """A body behind GET was read as the next request: behind a proxy, of another client."""
    inner = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".ljust(44)
    with serving() as server, connected(server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + header.encode() + b"\r\n\r\n" + inner)
        answer = b""
        with suppress(ConnectionResetError):
            while piece := connection.recv(65536):
                answer += piece
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in answer


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True), ("GZIP;q=0.5, br", True), ("br, gzip; q=1", True), ("gzip;q=0", False),
        ("gzip; q=0.000", False), ("br", False), ("", False), ("x-gzippy", False),
    ],
)  # fmt: skip
def test_gzip_is_for_those_who_take_it(accepted: str, packed: bool) -> None:
    with serving() as server:
        answer, _body = ask(server, "GET", "/metrics", **{"Accept-Encoding": accepted})
    assert answer.getheader("Content-Encoding") == ("gzip" if packed else None)
