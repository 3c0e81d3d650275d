"""The REST client against a small HTTP server: every kind of answer, wrong servers, rebalances and silence."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from eosctl.connect.rest import RestConnectWorker
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.deadline import Deadline
from eosctl.errors import (
    AlreadyExistsError,
    ConnectError,
    DeadlineError,
    EosctlError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
    UnsupportedError,
)
from tests.fakes.clock import PLENTY_S, FakeTime
from tests.fakes.http_server import serving

JERSEY_404 = {"error_code": 404, "message": "HTTP 404 Not Found"}
HTML = "<html><body>hello</body></html>"
ROOT = {"version": "4.3.1", "commit": "abc", "kafka_cluster_id": "cluster-1"}


@dataclass
class Asked:
    """One request as the server saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """Answers each request with the next of `answers` for its path (the last one for ever), and keeps it."""

    port: int
    answers: dict[str, list[tuple[int, object]]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    answers_now: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.answers_now.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, *answers: tuple[int, object]) -> None:
        self.answers[path] = list(answers)


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            shared.asked.append(Asked(self.command, self.path, dict(self.headers), body))
            shared.answers_now.wait(PLENTY_S)
            queue = shared.answers.get(self.path.partition("?")[0], [(404, JERSEY_404)])
            status, content = queue.pop(0) if len(queue) > 1 else queue[0]
            media_type = "text/html" if isinstance(content, str) else "application/json"
            data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            if 300 <= status < 400:
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", str(0 if status == 204 else len(data)))
            self.end_headers()
            if status != 204:
                with contextlib.suppress(ConnectionError):  # a client that ran out of time has left
                    self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 - the base class looks these names up

        def log_message(self, *_args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    shared = Server(httpd.server_address[1])
    with serving(httpd):
        try:
            yield shared
        finally:
            shared.answers_now.set()


def _worker(url: str, timeout_s: float = PLENTY_S) -> RestConnectWorker:
    return RestConnectWorker(url, deadline=Deadline.after(timeout_s))


CALLS: list[tuple[Callable[[RestConnectWorker], Any], str, str, object]] = [
    (lambda w: w.connectors(), "GET", "/connectors?expand=info&expand=status", None),
    (lambda w: w.connector_config("c"), "GET", "/connectors/c/config", None),
    (lambda w: w.put_connector_config("c", {"a": "é"}), "PUT", "/connectors/c/config", {"a": "é"}),
    (lambda w: w.delete_connector("c"), "DELETE", "/connectors/c", None),
    (lambda w: w.set_state("c", "stop"), "PUT", "/connectors/c/stop", None),
    (lambda w: w.restart("c"), "POST", "/connectors/c/restart?includeTasks=true&onlyFailed=true", None),
    (
        lambda w: w.restart("c", only_failed=False),
        "POST",
        "/connectors/c/restart?includeTasks=true&onlyFailed=false",
        None,
    ),
    (lambda w: w.validate("P", {"k": "v"}), "PUT", "/connector-plugins/P/config/validate", {"k": "v"}),
    (lambda w: w.fence("c", {"X-Connect-Authorization": "sig"}), "PUT", "/connectors/c/fence", None),
]


@pytest.mark.parametrize(("call", "method", "target", "body"), CALLS)
def test_requests(
    server: Server, call: Callable[[RestConnectWorker], Any], method: str, target: str, body: object
) -> None:
    server.answer(target.partition("?")[0], (200, {}))
    call(_worker(server.url))
    (asked,) = server.asked
    assert (asked.method, asked.path) == (method, target)
    assert (json.loads(asked.body) if asked.body else None) == body
    assert "Authorization" not in asked.headers


def test_values_of_answers(server: Server) -> None:
    server.answer("/", (200, ROOT))
    server.answer("/connectors", (200, {"c": {"info": {}, "status": {}}}))
    server.answer("/connectors/c/config", (200, {"a": "1", "b": None}))
    server.answer("/connectors/c/offsets", (200, {"offsets": [{"partition": {"f": 1}, "offset": None}]}))
    server.answer("/connector-plugins", (200, [{"class": "P", "type": "source"}]))
    worker = _worker(server.url)
    assert worker.root() == ROOT
    assert worker.connectors() == {"c": ConnectorEntry()}
    assert worker.connector_config("c") == {"a": "1"}
    assert worker.offsets("c") == [{"partition": {"f": 1}, "offset": None}]
    assert worker.plugins() == [{"class": "P", "type": "source"}]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a/b", "/connectors/a%2Fb/config"),
        ("a b", "/connectors/a%20b/config"),
        ("größe", "/connectors/gr%C3%B6%C3%9Fe/config"),
        ("a-b", "/connectors/a-b/config"),
        ("50%", "/connectors/50%25/config"),
        ("a?b#c", "/connectors/a%3Fb%23c/config"),
    ],
)
def test_connector_names_are_one_path_segment(server: Server, name: str, path: str) -> None:
    server.answer(path, (200, {}))
    _worker(server.url).connector_config(name)
    assert server.asked[0].path == path


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_no_url_can_hold_send_nothing(server: Server, name: str) -> None:
    with pytest.raises(UnsupportedError, match="can't be part of a URL"):
        _worker(server.url).delete_connector(name)
    assert server.asked == []


def test_a_worker_that_refuses_an_encoded_slash_is_named_as_the_reason(server: Server) -> None:
    """Kafka 4.x (Jetty 12) answers 400 with HTML to `%2F`: that is a Connect worker all the same."""
    server.answer("/connectors/a%2Fb/config", (400, HTML))
    with pytest.raises(UnsupportedError, match="refuses such a name"):
        _worker(server.url).connector_config("a/b")


@pytest.mark.parametrize(
    ("status", "content", "error", "text"),
    [
        (401, HTML, UnauthorizedError, "not allowed.*401"),
        (403, {"error_code": 403, "message": "no"}, UnauthorizedError, "403 .no."),
        (404, {"error_code": 404, "message": "Connector c not found"}, NotFoundError, "Connector c not found"),
        (404, JERSEY_404, UnsupportedError, "does not offer GET /connectors/c/config"),
        (404, HTML, ConnectError, "answers, but not as a Kafka Connect worker does"),
        (400, {"error_code": 400, "message": "is invalid:\nx"}, ConnectError, "answered 400: is invalid"),
        (500, {"error_code": 500, "message": "Request timed out."}, ConnectError, "answered 500: Request timed out"),
        (500, {"error": "no message"}, ConnectError, "answers, but not as a Kafka Connect worker does"),
        (302, HTML, ConnectError, "redirects"),
        (200, HTML, ConnectError, "it answered with text/html"),
        (200, [1], ConnectError, "not a JSON object"),
    ],
)
def test_answers_become_errors(
    server: Server, status: int, content: object, error: type[EosctlError], text: str
) -> None:
    server.answer("/connectors/c/config", (status, content))
    with pytest.raises(error, match=text) as caught:
        _worker(server.url).connector_config("c")
    assert type(caught.value) is error
    assert server.url in caught.value.message
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("path", "call", "text"),
    [
        ("/connectors/c/stop", lambda w: w.set_state("c", "stop"), r"PUT /connectors/c/stop: it came with Kafka 3\.5"),
        ("/connectors/c/offsets", lambda w: w.offsets("c"), r"GET /connectors/c/offsets: it came with Kafka 3\.5"),
        ("/connectors/c/offsets", lambda w: w.alter_offsets("c", []), r"PATCH .*: it came with Kafka 3\.6"),
        ("/connectors/c/restart", lambda w: w.restart("c"), r"POST .*: it came with Kafka 3\.0"),
        ("/connectors/c/resume", lambda w: w.set_state("c", "resume"), "does not offer PUT /connectors/c/resume$"),
    ],
)
@pytest.mark.parametrize("message", ["HTTP 404 Not Found", "HTTP 405 Method Not Allowed"])
def test_a_request_that_an_old_worker_lacks_names_the_version_that_has_it(
    server: Server, path: str, call: Callable[[RestConnectWorker], Any], text: str, message: str
) -> None:
    """Kafka 3.5 answers 405 to PATCH of offsets, which it knows how to GET; that was an error without a reason."""
    status = int(message.split()[1])
    server.answer(path, (status, {"error_code": status, "message": message}))
    with pytest.raises(UnsupportedError, match=text):
        call(_worker(server.url))


@pytest.mark.parametrize("content", [{}, {"version": "7.0"}, {"version": 3, "kafka_cluster_id": "x"}])
def test_other_json_at_the_root_is_not_connect(server: Server, content: object) -> None:
    server.answer("/", (200, content))
    with pytest.raises(ConnectError, match="no version and no Kafka cluster id"):
        _worker(server.url).root()


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("/connectors", lambda w: w.connectors()),
        ("/connectors/c/offsets", lambda w: w.offsets("c")),
        ("/connector-plugins", lambda w: w.plugins()),
    ],
)
def test_json_of_another_shape_is_not_connect(
    server: Server, path: str, call: Callable[[RestConnectWorker], Any]
) -> None:
    server.answer(path, (200, {"offsets": 3, "c": 3}))
    with pytest.raises(ConnectError, match="answers, but not as a Kafka Connect worker does"):
        call(_worker(server.url))


def test_json_that_connect_does_not_write_is_not_connect(server: Server) -> None:
    """Half of a surrogate pair in a plugin's name used to be a UnicodeEncodeError of the request that is made of it."""
    server.answer("/connector-plugins", (200, [{"class": "a.\ud800Source"}]))
    with pytest.raises(ConnectError, match="JSON that Connect does not write"):
        _worker(server.url).plugins()


def test_a_task_without_a_number_is_not_of_connect(server: Server) -> None:
    """It used to end the command as a fault of eosctl's own."""
    server.answer("/connectors", (200, {"c": {"status": {"tasks": [{"state": "RUNNING"}]}}}))
    with pytest.raises(ConnectError, match="a task without a number"):
        _worker(server.url).connectors()


STALE = "Cannot complete request momentarily due to stale configuration"
EXPECTED = "Request cannot be completed because a rebalance is expected"
REBALANCES = [(code, {"error_code": code, "message": text}) for code, text in ((409, STALE), (500, EXPECTED))]


def test_a_connector_that_exists_is_no_rebalance(server: Server) -> None:
    """Connect answers 409 to both; waiting for the end of this one took half a minute."""
    server.answer("/connectors", (409, {"error_code": 409, "message": "Connector c already exists"}))
    with pytest.raises(AlreadyExistsError):
        _worker(server.url).create_connector("c", {"connector.class": "X"}, "STOPPED")
    assert [json.loads(each.body) for each in server.asked] == [
        {"name": "c", "config": {"connector.class": "X"}, "initial_state": "STOPPED"}
    ]


def test_what_a_worker_says_of_a_config_that_it_refuses_has_no_value_of_it(server: Server) -> None:
    """The config is a member of the body of this request, and the body itself of others."""
    server.answer("/connectors", (400, {"error_code": 400, "message": "Invalid value hunter22 for password"}))
    with pytest.raises(ConnectError) as caught:
        _worker(server.url).create_connector("c", {"password": "hunter22"}, "STOPPED")
    assert "hunter22" not in caught.value.message


@pytest.mark.parametrize("rebalance", REBALANCES)
def test_a_rebalance_is_waited_out(server: Server, rebalance: tuple[int, object]) -> None:
    """GET of a config tells it by a 500 (4.3.1 and before), which used to be the end."""
    server.answer("/connectors/c/config", rebalance, rebalance, (200, {"a": "b"}))
    time_ = FakeTime()
    worker = RestConnectWorker(server.url, deadline=Deadline.after(60, time_.clock()))
    assert worker.connector_config("c") == {"a": "b"}
    assert time_.slept == [0.25, 0.5]
    assert len(server.asked) == 3


@pytest.mark.parametrize("rebalance", REBALANCES)
@pytest.mark.parametrize(("timeout_s", "waited_s"), [(10.0, 10.0), (600.0, 30.0)])
def test_a_rebalance_without_end_is_reported_in_time(
    server: Server, rebalance: tuple[int, object], timeout_s: float, waited_s: float
) -> None:
    server.answer("/connectors/c/stop", rebalance)
    time_ = FakeTime()
    worker = RestConnectWorker(server.url, deadline=Deadline.after(timeout_s, time_.clock()))
    with pytest.raises(ConnectError, match=r"stale configuration|rebalance is expected") as caught:
        worker.set_state("c", "stop")
    assert waited_s - 2.0 <= time_.now_s < waited_s
    assert caught.value.hint == "A rebalance went on all the time; run again when it is over."


@pytest.mark.parametrize(
    ("health", "root", "expected"),
    [
        ((200, {"status": "healthy", "message": "m"}), (200, ROOT), "healthy"),
        ((503, {"status": "starting", "message": "m"}), (200, ROOT), "starting"),
        ((500, {"status": "unhealthy", "message": "m"}), (200, ROOT), "unhealthy"),
        ((404, HTML), (200, ROOT), "starting"),
        ((404, JERSEY_404), (200, {**ROOT, "version": "3.9.0"}), "starting"),
        ((404, JERSEY_404), (200, {**ROOT, "version": "3.8.1"}), "unknown"),
        ((404, JERSEY_404), (200, {**ROOT, "version": "7.7.0-ccs"}), "unknown"),  # Kafka 3.7: no health
        ((404, JERSEY_404), (200, {**ROOT, "version": "7.9.0-ccs"}), "starting"),
        ((404, JERSEY_404), (200, {**ROOT, "version": "3.9.0-acme"}), "unknown"),
        ((404, JERSEY_404), (200, {**ROOT, "version": "trunk"}), "unknown"),
    ],
)
def test_health(server: Server, health: tuple[int, object], root: tuple[int, object], expected: str) -> None:
    server.answer("/health", health)
    server.answer("/", root)
    assert _worker(server.url).health() == expected


def test_health_of_something_else_is_an_error(server: Server) -> None:
    server.answer("/health", (200, {"ok": True}))
    with pytest.raises(ConnectError, match="GET /health"):
        _worker(server.url).health()


def test_nobody_listens(closed_port: int) -> None:
    url = f"http://127.0.0.1:{closed_port}"
    with pytest.raises(UnreachableError, match=f"{url} can't be reached: Connection refused"):
        _worker(url).root()


def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(UnreachableError, match=r"http://no-such-host\.invalid:8083 can't be reached"):
        _worker("no-such-host.invalid:8083").root()


def test_a_worker_that_takes_the_request_and_is_silent(server: Server) -> None:
    server.answers_now.clear()
    clock = FakeTime().clock()  # so that the time is up for the answer, and not for the question on a slow machine
    with pytest.raises(UnreachableError, match="no answer in time") as caught:
        RestConnectWorker(server.url, deadline=Deadline.after(0.2, clock)).root()
    assert caught.value.hint is not None
    assert "did not answer" in caught.value.hint


def test_no_request_leaves_after_the_deadline(server: Server) -> None:
    time_ = FakeTime()
    worker = RestConnectWorker(server.url, deadline=Deadline.after(5, time_.clock()))
    time_.sleep(6)
    with pytest.raises(DeadlineError, match=f"waiting for the worker at {server.url}"):
        worker.root()
    assert server.asked == []


def test_https_to_a_plain_port_is_explained(server: Server) -> None:
    with pytest.raises(UnreachableError) as caught:
        _worker(f"https://127.0.0.1:{server.port}").root()
    assert caught.value.hint is not None
    assert "certificate" in caught.value.hint


def test_a_kafka_port_is_not_a_worker() -> None:
    """Something that closes the connection without an answer, as a broker does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            connection, _address = listener.accept()
            with connection:
                connection.recv(4096)

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(UnreachableError, match="closed connection without response"):
            _worker(f"http://127.0.0.1:{listener.getsockname()[1]}").root()
        thread.join()


def test_credentials_of_the_url_are_sent_and_never_shown(server: Server) -> None:
    server.answer("/x/", (401, HTML))
    worker = _worker(f"http://me:p%40ss@127.0.0.1:{server.port}/x/")
    with pytest.raises(UnauthorizedError) as caught:
        worker.root()
    assert server.asked[0].headers["Authorization"] == "Basic " + base64.b64encode(b"me:p@ss").decode()
    assert worker.url == f"{server.url}/x"
    assert "p@ss" not in caught.value.message
    assert "p%40ss" not in caught.value.message


def test_an_answer_about_a_config_has_no_secret_of_it(server: Server) -> None:
    config = {"connection.url": "jdbc:x://db/s?password=canary-1", "db.pw": "canary-2", "topics": "orders"}
    message = "Invalid value canary-2 for db.pw: jdbc:x://db/s?password=canary-1 of orders"
    server.answer("/connectors/c/config", (400, {"error_code": 400, "message": message}))
    with pytest.raises(ConnectError, match=r"Invalid value .* of orders") as caught:
        _worker(server.url).put_connector_config("c", config)
    assert "canary" not in caught.value.message
