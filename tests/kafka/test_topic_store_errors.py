"""A cluster that does not answer: soon said, with the reason that librdkafka only tells its error callback."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError

from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, InputFileError, UnauthorizedError, UnreachableError, UsageError
from eosctl.kafka.native import admin_connection
from eosctl.kafka.topics.librdkafka import ErrorLog
from eosctl.kafka.topics.store import KafkaTopicClient
from tests.fakes.clock import PLENTY_S


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def babbling_port() -> Iterator[int]:
    """A server that answers everything with something that is not TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        stopping = threading.Event()

        def serve() -> None:
            server.settimeout(0.1)
            while not stopping.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        stopping.set()
        thread.join()


def _failure(settings: ClientSettings, timeout_s: float = PLENTY_S) -> EosctlError:
    """The error of a first question; a DeadlineError says that nothing else ended the wait."""
    with (
        KafkaTopicClient(settings, deadline=Deadline.after(timeout_s)) as store,
        pytest.raises(EosctlError) as caught,
    ):
        store.read("t")
    return caught.value


def test_a_closed_port(closed_port: int) -> None:
    error = _failure(ClientSettings((f"127.0.0.1:{closed_port}",)))
    assert isinstance(error, UnreachableError)
    assert f"127.0.0.1:{closed_port}" in error.message
    assert "Connection refused" in error.message


def test_the_deadline_comes_before_patience(silent_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_connection, "_CONNECT_TIMEOUT_S", PLENTY_S)
    started_s = time.monotonic()
    error = _failure(ClientSettings((f"127.0.0.1:{silent_port}",)), timeout_s=0.5)
    assert isinstance(error, DeadlineError | UnreachableError)
    assert time.monotonic() - started_s < PLENTY_S / 2


def test_tls_to_a_port_that_does_not_speak_it(babbling_port: int) -> None:
    error = _failure(ClientSettings((f"127.0.0.1:{babbling_port}",), security_protocol="SSL"))
    assert isinstance(error, UnauthorizedError)
    assert "SSL" in error.message


def test_no_tls_is_told_however_librdkafka_calls_it() -> None:
    """Now and then it was "no broker can be reached", after three seconds."""
    heard = ErrorLog(lambda: 0.0)
    heard(KafkaError(KafkaError._TRANSPORT, "ssl://h:1/bootstrap: error:0A00010B:SSL routines::wrong version number"))
    with pytest.raises(UnauthorizedError, match="TLS failed"):
        heard.check("connecting")


def test_settings_that_librdkafka_refuses() -> None:
    error = _failure(ClientSettings(("h:1",), extra={"no.such.property": "1"}))
    assert isinstance(error, InputFileError)
    assert "no.such.property" in error.message


def test_a_secret_is_in_no_message() -> None:
    settings = ClientSettings(
        ("127.0.0.1:1",), security_protocol="SSL", ssl_key_pem=Secret("s3cret-key"), ssl_certificate_pem="nonsense"
    )
    error = _failure(settings)
    assert "s3cret" not in f"{error.message} {error.hint}"


def test_an_unknown_isolation() -> None:
    with (
        KafkaTopicClient(ClientSettings(("127.0.0.1:1",)), deadline=Deadline.after(PLENTY_S)) as store,
        pytest.raises(UsageError, match="unknown isolation"),
    ):
        store.read("t", isolation="serializable")
