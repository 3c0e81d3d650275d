"""REST by way of real proxies: of HTTP, with a tunnel for https, and of SOCKS; the worker's name is looked up there."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import socketserver
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest
import trustme

from eosctl.connect.metrics import MetricsClient
from eosctl.connect.rest import RestConnectWorker
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.proxies import proxies_of
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError, UnreachableError, UnsupportedError, UsageError
from eosctl.sandbox.downloads.jars import proxy_options
from tests.fakes.clock import PLENTY_S, FakeTime
from tests.fakes.http_server import serving

ROOT = {"version": "4.3.1", "commit": "abc", "kafka_cluster_id": "cluster-1"}
NAME = "worker.test"
"""A host that only the proxies know."""


class Answers(BaseHTTPRequestHandler):
    """A worker's `GET /`, or what a proxy says in its place; CONNECT opens a tunnel to `behind`."""

    asked: list[tuple[str, str, str | None]]
    behind: int = 0

    def do_GET(self) -> None:
        self.asked.append((self.command, self.path, self.headers["Proxy-Authorization"]))
        body = json.dumps(ROOT).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self) -> None:
        self.asked.append((self.command, self.path, self.headers["Proxy-Authorization"]))
        if not self.behind:
            self.send_error(502)
            return
        with socket.create_connection(("127.0.0.1", self.behind)) as there:
            self.send_response(200)
            self.end_headers()
            pipe(self.connection, there)
        self.close_connection = True

    def log_message(self, *_args: object) -> None: ...


def pipe(one: socket.socket, other: socket.socket) -> None:
    """Both directions, until one side has ended."""

    def copy(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            return
        finally:
            for end in (source, sink):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    back = threading.Thread(target=copy, args=(other, one))
    back.start()
    copy(one, other)
    back.join()


@dataclass
class Server:
    """A port, and what was asked there: method, path and the authorization for the proxy."""

    port: int
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)


@contextmanager
def server(*, behind: int = 0, context: ssl.SSLContext | None = None) -> Iterator[Server]:
    asked: list[tuple[str, str, str | None]] = []
    handler = type("Handler", (Answers,), {"asked": asked, "behind": behind})
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if context is not None:
        httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
    with serving(httpd):
        yield Server(httpd.server_address[1], asked)


def worker(url: str, environ: dict[str, str], *, ca: str | None = None) -> RestConnectWorker:
    access = ConnectAccess(ca=ca, proxies=proxies_of(environ))
    return RestConnectWorker(url, deadline=Deadline.after(PLENTY_S), access=access)


def test_http_goes_through_the_proxy() -> None:
    """No variable was looked at: behind a bastion no worker could be reached."""
    with server() as proxy:
        environ = {"HTTP_PROXY": f"http://me:p%40ss@127.0.0.1:{proxy.port}"}
        assert worker(f"http://{NAME}:8083", environ).root() == ROOT
    basic = "Basic " + base64.b64encode(b"me:p@ss").decode()
    assert proxy.asked == [("GET", f"http://{NAME}:8083/", basic)]


def test_https_goes_through_a_tunnel(tmp_path: Path) -> None:
    """The proxy sees where it leads to, and nothing of what is said."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME).configure_cert(context)
    ca = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(ca)
    with server(context=context) as behind, server(behind=behind.port) as proxy:
        environ = {"https_proxy": f"127.0.0.1:{proxy.port}"}
        assert worker(f"https://{NAME}:8443", environ, ca=str(ca)).root() == ROOT
    assert (proxy.asked, behind.asked) == ([("CONNECT", f"{NAME}:8443", None)], [("GET", "/", None)])


def test_metrics_go_the_same_way() -> None:
    url = f"http://{NAME}:9404/metrics"
    with server() as proxy:
        access = ConnectAccess(proxies=proxies_of({"HTTP_PROXY": f"127.0.0.1:{proxy.port}"}))
        with pytest.raises(ConnectError, match="does not answer with Prometheus text"):  # but a worker's root
            MetricsClient(access=access, deadline=Deadline.after(PLENTY_S)).read_prometheus(url)
    assert proxy.asked == [("GET", url, None)]


def test_a_proxy_that_refuses_or_is_not_there_is_named() -> None:
    with server() as proxy:
        shown = f"http://127.0.0.1:{proxy.port}"
        environ = {"ALL_PROXY": f"http://me:secret@127.0.0.1:{proxy.port}"}
        with pytest.raises(UnreachableError) as caught:
            worker(f"https://{NAME}:8443", environ).root()
    assert f"{NAME}:8443 can't be reached through the proxy {shown}: " in caught.value.message
    assert "502" in caught.value.message
    assert "$ALL_PROXY names the proxy" in str(caught.value.hint)
    with pytest.raises(UnreachableError, match=f"through the proxy {shown}: ") as caught:
        worker(f"http://{NAME}:8083", environ).root()
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"


def test_a_proxy_that_opens_no_tunnel_is_named() -> None:
    """The worker was said to have taken the request, which never reached it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environ = {"https_proxy": f"127.0.0.1:{silent.getsockname()[1]}"}
        access = ConnectAccess(proxies=proxies_of(environ))
        deadline = Deadline.after(0.3, FakeTime().clock())  # the time is up for the answer, not for the question
        with pytest.raises(UnreachableError, match="no answer in time") as caught:
            RestConnectWorker(f"https://{NAME}:8443", deadline=deadline, access=access).root()
    assert "$https_proxy names the proxy" in str(caught.value.hint)


@pytest.mark.parametrize("password", ["pa/ss", "pa?ss", "pa ss", "pa@ss", "p\u20ac", "pa:ss", "p%2Fss"])
def test_a_password_of_a_proxy_may_have_any_character(password: str) -> None:
    """One with a slash was left out, or printed: `LocationParseError: 'user:pa'`."""
    with server() as proxy:
        environ = {"HTTP_PROXY": f"http://me:{password}@127.0.0.1:{proxy.port}"}
        assert worker(f"http://{NAME}:8083", environ).root() == ROOT
    sent = base64.b64decode(str(proxy.asked[0][2]).removeprefix("Basic ")).decode("utf-8")
    assert sent == f"me:{unquote(password)}"


@pytest.mark.parametrize(
    "proxy", ["http://me:secret@:3128", "http://me:secret@proxy:x", "socks5h://me:secret@pro xy:1"]
)
def test_what_can_t_be_a_proxy_is_refused_without_its_password(proxy: str) -> None:
    for use in (
        lambda: worker(f"http://{NAME}:8083", {"HTTP_PROXY": proxy}),
        lambda: proxy_options({"http_proxy": proxy}),
    ):
        with pytest.raises(UsageError) as caught:
            use()
        assert "secret" not in f"{caught.value.message} {caught.value.hint}"


class Socks(socketserver.BaseRequestHandler):
    """SOCKS 5: any name leads to `behind`; `logins` are user and password, of those that sent them."""

    asked: list[tuple[str, int]]
    logins: list[bytes]
    behind: int

    def handle(self) -> None:
        connection: socket.socket = self.request
        method = max(connection.recv(connection.recv(2)[1]))
        connection.sendall(bytes((5, method)))
        if method == 2:
            self.logins += [connection.recv(connection.recv(2)[1]), connection.recv(connection.recv(1)[0])]
            connection.sendall(b"\x01\x00")
        kind, length = connection.recv(5)[3:]
        assert kind == 3, "a name, not an address"
        name = connection.recv(length).decode()
        self.asked.append((name, int.from_bytes(connection.recv(2), "big")))
        connection.sendall(b"\x05\x00\x00\x01" + bytes(6))
        with socket.create_connection(("127.0.0.1", self.behind)) as there:
            pipe(connection, there)


@pytest.mark.parametrize(("login", "sent"), [("", []), ("me:pa/ss@", [b"me", b"pa/ss"]), ("me:p%40@", [b"me", b"p@"])])
def test_socks_proxies_look_the_name_up(login: str, sent: list[bytes]) -> None:
    asked, logins = list[tuple[str, int]](), list[bytes]()
    with server() as behind:
        handler = type("Handler", (Socks,), {"asked": asked, "logins": logins, "behind": behind.port})
        socks = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
        with serving(socks):
            environ = {"ALL_PROXY": f"socks5h://{login}127.0.0.1:{socks.server_address[1]}"}
            assert worker(f"http://{NAME}:8083", environ).root() == ROOT
    assert (asked, logins) == ([(NAME, 8083)], sent)


def test_without_the_package_for_socks_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("socks", "urllib3.contrib.socks"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnsupportedError, match="PySocks is not installed") as caught:
        worker(f"http://{NAME}:8083", {"all_proxy": "socks5://proxy:1080"})
    assert caught.value.hint == "pip install 'urllib3[socks]>=2.7'"
