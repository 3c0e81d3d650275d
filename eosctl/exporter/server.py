"""The HTTP server of the exporter: /metrics, /healthz, /readyz. Answers are made from the overview, and never wait.

A thread per connection, no more than MOST_CONNECTIONS; a client that does not read, or sends nothing, is cut off.
"""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import MappingProxyType
from typing import Any

from eosctl.collect.overview import Overview
from eosctl.errors import EosctlError, UsageError
from eosctl.exporter.exposition import DEFAULT_TOP, expose
from eosctl.exporter.web.access import WebAccess

MOST_CONNECTIONS = 32
PATIENCE_S = 10.0
"""For how long a connection may send nothing, or take nothing of its answer."""

_INDEX = b"""<!doctype html><title>eosctl exporter</title><h1>eosctl exporter</h1>
<p><a href="/metrics">/metrics</a> <a href="/healthz">/healthz</a> <a href="/readyz">/readyz</a></p>
"""


class MetricsServer(ThreadingHTTPServer):
    """Serves the overviews of one collector, to those that `access` lets in; without it, to everybody."""

    daemon_threads, allow_reuse_address, request_queue_size = True, True, 64
    block_on_close = False

    def __init__(
        self,
        host: str,
        port: int,
        overview: Callable[[], Overview],
        *,
        top: int = DEFAULT_TOP,
        access: WebAccess | None = None,
    ) -> None:
        self.overview, self.top, self.access = overview, top, access
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._is_everywhere = not host and socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if ":" in host or self._is_everywhere else socket.AF_INET
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Without a look for the name of the address, which http.server makes, and which may take long."""
        if self._is_everywhere:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own; one connection too many is closed at once."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """TLS begins here, where a slow client holds up nobody. Gives its place back when the connection ends."""
        try:
            if self.access is not None:
                request.settimeout(PATIENCE_S)
                try:
                    request = self.access.secure(request)
                except OSError:  # ssl.SSLError is one; a client that does not speak TLS, or is refused
                    self.shutdown_request(request)
                    return
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nobody's fault, and stderr is for what people should know."""

    def url(self) -> str:
        """Where it is reached; the port is the one that was taken, where 0 was asked for."""
        host, port = self.server_address[:2]
        text = f"[{host!s}]" if ":" in str(host) else str(host)
        scheme = "https" if self.access is not None and self.access.has_tls else "http"
        return f"{scheme}://{text}:{port}"


def open_server(
    listen: str, overview: Callable[[], Overview], *, top: int = DEFAULT_TOP, access: WebAccess | None = None
) -> MetricsServer:
    """Takes the address; raises UsageError for one that is none, EosctlError where it can't be taken."""
    host, port = parse_listen(listen)
    try:
        return MetricsServer(host, port, overview, top=top, access=access)
    except OSError as exc:
        raise EosctlError(
            f"cannot listen on {listen}: {exc.strerror or exc}",
            hint="Another process has the port, or the address is not of this machine: name another with --listen.",
        ) from exc


def parse_listen(listen: str) -> tuple[str, int]:
    """HOST:PORT, [IPv6]:PORT or :PORT, which is every address of the machine."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not host.startswith("[")):
        raise UsageError(f"{listen} is no address to listen on", hint="Say HOST:PORT, [::1]:PORT, or :PORT for all.")
    return host.removeprefix("[").removesuffix("]"), int(port)


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    timeout = PATIENCE_S
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "eosctl", ""
    more_headers: Mapping[str, str] = MappingProxyType({})

    def do_GET(self) -> None:
        """The one method, beside HEAD."""
        if not self._is_admitted():
            return
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._metrics()
        elif path == "/healthz":
            self._answer(HTTPStatus.OK, b"ok\n")
        elif path == "/readyz":
            self._ready()
        elif path == "/":
            self._answer(HTTPStatus.OK, _INDEX, "text/html; charset=utf-8")
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"not found; see /metrics, /healthz, /readyz\n")

    def _metrics(self) -> None:
        """What can't be made into text is an answer, too: a connection that just ends explains nothing."""
        try:
            body, content_type = expose(self.server.overview, self.headers.get("Accept", ""), top=self.server.top)
        except Exception as exc:
            message = f"the metrics can't be made: unexpected {type(exc).__name__}: {exc}\n"
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, message.encode("utf-8", "backslashreplace"))
            return
        self._answer(HTTPStatus.OK, body, content_type)

    def _is_admitted(self) -> bool:
        """Whether the web-config file lets the request in; else it is answered."""
        if self.server.access is None:
            return True
        admission = self.server.access.admit(self.headers.get("Authorization"))
        self.more_headers = admission.headers
        if admission.status is HTTPStatus.OK:
            return True
        self._answer(admission.status, f"{admission.status.phrase}\n".encode())
        return False

    def do_HEAD(self) -> None:
        """The headers alone."""
        self.do_GET()

    def _ready(self) -> None:
        """Ready once each source was looked at, whatever came of it: a cluster that is down is a metric."""
        overview = self.server.overview()
        waiting = [each.source for each in overview.collected.values() if not each.looks]
        if waiting:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"not looked at yet: {', '.join(waiting)}\n".encode())
        else:
            self._answer(HTTPStatus.OK, b"ready\n")

    def _answer(self, status: HTTPStatus, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        for name, value in self.more_headers.items():
            self.send_header(name, value)
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, compresslevel=1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Another method is refused with 405; its body, if any, is not read."""
        if code != HTTPStatus.NOT_IMPLEMENTED:
            super().send_error(code, message, explain)
            return
        self.close_connection = True
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD\n")

    def log_message(self, format: str, *_args: Any) -> None:  # noqa: A002 - the name that http.server gives it
        """Nothing: a line per scrape helps nobody."""
