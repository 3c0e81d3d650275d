"""HTTP servers on this machine: what they answer is a test's own, starting and stopping them is here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer


@contextmanager
def serving(server: BaseServer) -> Iterator[None]:
    """`server` answers until the block ends, and is closed then."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Endpoint:
    """What an HTTP server says to everyone, and what it was asked: method, path, body and Authorization."""

    body: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str, str, str]] = field(default_factory=list)
    url: str = ""


@contextmanager
def metrics_endpoint(body: str) -> Iterator[Endpoint]:
    """A server at `url` that a test may change while it runs."""
    said = Endpoint(body)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(length).decode()
            said.asked.append((self.command, self.path, sent, self.headers.get("Authorization", "")))
            data = said.body.encode()
            self.send_response(said.status)
            for name, value in {"Content-Length": str(len(data)), **said.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    said.url = f"http://127.0.0.1:{server.server_address[1]}/metrics"
    with serving(server):
        yield said
