"""`eosctl exporter`: collects and serves until SIGTERM, or once, into a file; and its HTTP server.

The server answers /metrics, /healthz and /readyz, from the overview and without waiting. It has a thread per
connection, no more than MOST_CONNECTIONS, and some more for clients that have identified themselves. TLS handshake,
request line and headers share one deadline: a client that sends single bytes is cut off, too.
"""

from __future__ import annotations

import gc
import gzip
import io
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.ignored import IgnoredFinding
from eosctl.collect.collector import Collector
from eosctl.collect.looks import KAFKA, sources
from eosctl.collect.overview import Collected, Overview
from eosctl.core.java.properties import MOST_PORT, whole_number
from eosctl.deadline import Deadline, Event, ignore_events
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError, UsageError
from eosctl.exporter.metrics import DEFAULT_TOP, expose
from eosctl.exporter.rows import EXPORTER, EXPORTER_METRICS, CollectionRow, ExporterSummary, MetricsText
from eosctl.exporter.web.access import WebAccess
from eosctl.machine.answers import timed_reads
from eosctl.machine.files import write_whole
from eosctl.machine.memory import share_one_heap
from eosctl.report import Problem, Report

MOST_CONNECTIONS = 32
MOST_KNOWN = 8
"""The number of further connections for addresses that sent an admitted request with a password or certificate: other
clients can't shut out a Prometheus that scrapes."""
_MOST_ADDRESSES = 100
PATIENCE_S = 10.0
"""The time in which a request must be whole, from the begin of its connection or the end of the request before."""
ANSWER_S = 60.0
"""The time in which a client must take its answer."""
_PIECE_BYTES = 1 << 16

_INDEX = b"""<!doctype html><title>eosctl exporter</title><h1>eosctl exporter</h1>
<p><a href="/metrics">/metrics</a> <a href="/healthz">/healthz</a> <a href="/readyz">/readyz</a></p>
"""


class MetricsServer(ThreadingHTTPServer):
    """Serves the overviews of one collector, to clients that `access` admits; without it, to all."""

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
        self._kept = threading.BoundedSemaphore(MOST_KNOWN)
        self._known: dict[str, None] = {}
        self._lock = threading.Lock()
        self._is_everywhere = not host and socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if ":" in host or self._is_everywhere else socket.AF_INET
        super().__init__((host, port), BaseHTTPRequestHandler)  # `_serve` makes its own

    def server_bind(self) -> None:
        """Bind without looking up the name of the address, as http.server does, which may take long."""
        if self._is_everywhere:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve the connection in a thread of its own; close one too many at once."""
        place = self._place_for(str(client_address[0]))
        if place is None:
            self.shutdown_request(request)
            return
        thread = threading.Thread(target=self._serve, args=(request, client_address, place), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there is no room for another thread
            place.release()
            self.shutdown_request(request)

    def _place_for(self, address: str) -> threading.BoundedSemaphore | None:
        if self._free.acquire(blocking=False):
            return self._free
        with self._lock:
            is_known = address in self._known
        return self._kept if is_known and self._kept.acquire(blocking=False) else None

    def remember(self, address: str) -> None:
        """Keep places for the address of a client that was admitted; of too many, for the latest."""
        with self._lock:
            self._known.pop(address, None)
            self._known[address] = None
            while len(self._known) > _MOST_ADDRESSES:
                self._known.pop(next(iter(self._known)))

    def _serve(self, request: Any, client_address: Any, place: threading.BoundedSemaphore) -> None:
        """Begin TLS here, where a slow client holds up no other; release the place when the connection ends."""
        deadline = Deadline.after(PATIENCE_S)
        try:
            if self.access is not None:
                request.settimeout(PATIENCE_S)  # of the whole handshake
                request = self.access.secure(request)
            _Handler(request, client_address, self, deadline)
        except Exception:
            self.handle_error(request, client_address)
        finally:
            self.shutdown_request(request)
            place.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that goes away: it is no fault, and stderr is for what users should know."""

    def url(self) -> str:
        """Return the server's URL, with the port that was taken where 0 was requested."""
        host, port = self.server_address[:2]
        text = f"[{host!s}]" if ":" in str(host) else str(host)
        scheme = "https" if self.access is not None and self.access.has_tls else "http"
        return f"{scheme}://{text}:{port}"


def open_server(
    listen: str, overview: Callable[[], Overview], *, top: int = DEFAULT_TOP, access: WebAccess | None = None
) -> MetricsServer:
    """Listen on the address; raises UsageError for an invalid one, EosctlError where it can't be taken."""
    host, port = parse_listen(listen)
    try:
        return MetricsServer(host, port, overview, top=top, access=access)
    except OSError as exc:
        raise EosctlError(
            f"cannot listen on {listen}: {exc.strerror or exc}",
            hint="Another process has the port, or the address is not of this machine: name another with --listen.",
        ) from exc


def parse_listen(listen: str) -> tuple[str, int]:
    """Parse HOST:PORT, [IPv6]:PORT or :PORT, which is every address of the machine."""
    host, colon, port = listen.rpartition(":")
    number = whole_number(port, most=MOST_PORT)
    if not colon or number is None or (":" in host and not host.startswith("[")):
        raise UsageError(f"{listen} is no address to listen on", hint="Say HOST:PORT, [::1]:PORT, or :PORT for all.")
    return host.removeprefix("[").removesuffix("]"), number


def _takes_gzip(accepted: str) -> bool:
    """Check whether the header Accept-Encoding names gzip, other than to refuse it."""
    for each in accepted.lower().split(","):
        name, _semicolon, weight = (part.strip() for part in each.partition(";"))
        if name == "gzip":
            return weight.replace(" ", "").rstrip("0") not in ("q=", "q=0.", "q=.")
    return False


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "eosctl", ""
    more_headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, request: Any, client_address: object, server: MetricsServer, deadline: Deadline) -> None:
        self._deadline = deadline
        super().__init__(request, client_address, server)

    def setup(self) -> None:
        """Give all reads of a request one deadline."""
        super().setup()
        self._reads = timed_reads(self.rfile, self.connection, self._deadline)
        self.rfile = io.BufferedReader(self._reads)

    def handle_one_request(self) -> None:
        """Answer the request, then begin the deadline of the next one."""
        super().handle_one_request()
        self._reads.deadline = Deadline.after(PATIENCE_S)

    def do_GET(self) -> None:
        """Answer the one method beside HEAD. A body is not read, so that the bytes after it are no request."""
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self.close_connection = True
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
        """Answer with the metrics, or with an error where they can't be made: a closed connection explains nothing."""
        try:
            body, content_type = expose(self.server.overview, self.headers.get("Accept", ""), top=self.server.top)
        except Exception as exc:
            message = f"the metrics can't be made: unexpected {type(exc).__name__}\n"
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, message.encode())
            return
        self._answer(HTTPStatus.OK, body, content_type)

    def _is_admitted(self) -> bool:
        """Check whether the web-config file admits the request; else answer it."""
        if self.server.access is None:
            return True
        admission = self.server.access.admit(self.headers.get("Authorization"))
        self.more_headers = admission.headers
        if admission.status is HTTPStatus.OK:
            if admission.is_known:
                self.server.remember(str(self.client_address[0]))
            return True
        self.close_connection = True
        self._answer(admission.status, f"{admission.status.phrase}\n".encode())
        return False

    def do_HEAD(self) -> None:
        """Answer with the headers alone."""
        self.do_GET()

    def _ready(self) -> None:
        """Report ready once each source but doctor was looked at, with any result, and after an interval at the latest:
        a cluster that is down or slow is a metric.
        """
        overview = self.server.overview()
        is_ready, awaited = overview.is_ready(), overview.awaited()
        text = "ready\n" if is_ready else ""
        text += f"not looked at yet: {', '.join(awaited)}\n" if awaited else ""
        self._answer(HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE, text.encode())

    def _answer(self, status: HTTPStatus, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        for name, value in self.more_headers.items():
            self.send_header(name, value)
        if _takes_gzip(self.headers.get("Accept-Encoding", "")):
            body = gzip.compress(body, compresslevel=1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        if self.close_connection:
            self.send_header("Connection", "close")
        deadline = Deadline.after(ANSWER_S)
        self.connection.settimeout(ANSWER_S)
        self.end_headers()
        for at in range(0, 0 if self.command == "HEAD" else len(body), _PIECE_BYTES):
            self.connection.settimeout(max(deadline.remaining_s(), 0.001))
            self.wfile.write(body[at : at + _PIECE_BYTES])

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse another method with 405; its body, if any, is not read."""
        if code != HTTPStatus.NOT_IMPLEMENTED:
            super().send_error(code, message, explain)
            return
        self.close_connection = True
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD\n")

    def log_message(self, format: str, *_args: object) -> None:  # noqa: A002 - the name that http.server gives it
        """Log nothing: a line per scrape is of no use."""


DEFAULT_LISTEN = "127.0.0.1:9618"
DEFAULT_INTERVAL_S = 30.0
_SHUTDOWN_POLL_S = 0.2


class ExporterRequest(Struct, frozen=True):
    """The exporter's options. `once`: look once, print the metrics or write them to `textfile`, and end.

    `top` is how many series a metric may have, without `other`. `web_config_file` names the file for authentication and
    TLS.
    """

    listen: str = DEFAULT_LISTEN
    interval: float = DEFAULT_INTERVAL_S
    once: bool = False
    textfile: str | None = None
    top: int = DEFAULT_TOP
    web_config_file: str | None = None


def run_exporter(app: App, request: ExporterRequest, *, ignore: Sequence[IgnoredFinding] = ()) -> Report:
    """Serve until SIGTERM, then exit 0; with `once` write the file, and exit 4 or the like where nothing was seen.

    Raises UsageError, InputFileError of the web-config file, EosctlError where the address is taken,
    InterruptedByUserError after Ctrl-C.
    """
    app.target.require_client()
    app.target.require_group_id()
    if request.textfile is not None and not request.once:
        raise UsageError("--textfile needs --once", hint="Say --once --textfile FILE.")
    quiet = replace(app, on_event=ignore_events) if request.once else app  # the report says it, once
    collector = Collector(quiet, sources(ignore=ignore), interval_s=request.interval)
    if request.once:
        return _once(app, collector, request)
    return _serve(app, collector, request)


def _serve(app: App, collector: Collector, request: ExporterRequest) -> Report:
    share_one_heap()
    ended = threading.Event()
    path = request.web_config_file
    access = None if path is None else WebAccess(Path(path), app.clock, app.on_event)
    with open_server(request.listen, collector.overview, top=request.top, access=access) as server, _ends(ended):
        threading.Thread(target=server.serve_forever, args=(_SHUTDOWN_POLL_S,), daemon=True).start()
        app.on_event(Event(f"listening on {server.url()}/metrics"))
        gc.freeze()  # what is loaded by now stays: the collector looks for cycles every few seconds
        with collector:
            try:
                while not ended.wait(1.0):
                    pass
            except KeyboardInterrupt:
                raise InterruptedByUserError("interrupted; the exporter has ended") from None
            finally:
                server.shutdown()
    return _report(collector.overview(), ExitCode.OK)


@contextmanager
def _ends(ended: threading.Event) -> Iterator[None]:
    """Set `ended` on SIGTERM, where this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: ended.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _once(app: App, collector: Collector, request: ExporterRequest) -> Report:
    overview = collector.look_once(app.deadline)
    body, _content_type = expose(lambda: overview, "", top=request.top, once=True)
    if request.textfile is not None:
        write_textfile(Path(request.textfile), body)
    failed = [each for each in overview.collected.values() if each.error is not None or not each.looks]
    kafka = overview.collected[KAFKA]
    code = ExitCode.UNREACHABLE if kafka in failed else ExitCode.PARTIAL if failed else ExitCode.OK
    report = _report(overview, code)
    if request.textfile is not None:
        return report
    return replace(report, kind=EXPORTER_METRICS, data=MetricsText(metrics=body.decode()))


def write_textfile(path: Path, body: bytes) -> None:
    """Write the file that node_exporter, another user, reads; raises EosctlError where it can't be written."""
    try:
        write_whole(path, lambda file: file.write(body), mode=0o644)
    except OSError as exc:
        hint = getattr(exc, "hint", "Check the folder, its rights, and the space on it.")
        raise EosctlError(f"cannot write {path}: {exc.strerror or exc}", hint=hint) from exc


def _report(overview: Overview, exit_code: ExitCode) -> Report:
    rows = [_row(each, overview.taken_ms) for each in overview.collected.values()]
    failed = [row for row in rows if row.error is not None]
    problems = (
        [Problem(EosctlError.code, f"{row.source}: {row.error}: {row.message}").as_warning() for row in failed]
        if exit_code is not ExitCode.OK
        else []
    )
    summary = ExporterSummary(sources=len(rows), failed=len(failed))
    return Report(kind=EXPORTER, rows=rows, summary=summary, data=MetricsText(), problems=problems, exit_code=exit_code)


def _row(each: Collected, now_ms: int) -> CollectionRow:
    error = each.error_at(now_ms) or (None if each.looks else "timed_out")
    return CollectionRow(
        source=each.source,
        age_s=each.age_s(now_ms),
        duration_s=None if each.duration_s is None else round(each.duration_s, 3),
        error=error,
        message=each.message_at(now_ms) if each.looks else each.message or "the look has not ended in time",
    )
