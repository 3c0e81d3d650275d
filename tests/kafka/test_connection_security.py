"""TLS and SASL: each way in, and each way to fail with the message it gives."""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.clients.settings import Secret
from eosctl.core.ids import TransactionalId
from eosctl.errors import (
    EosctlError,
    InputFileError,
    ProtocolError,
    UnauthorizedError,
    UnreachableError,
    UnsupportedError,
    UsageError,
)
from eosctl.kafka.native.scram import Scram
from eosctl.kafka.tls import tls_failure
from eosctl.wire.api import Api, encode_response
from eosctl.wire.error_codes import NONE, SASL_AUTHENTICATION_FAILED
from eosctl.wire.frames import FrameBuffer
from eosctl.wire.sasl_messages import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)
from tests.fakes.broker import FakeCluster
from tests.fakes.http_server import serving
from tests.kafka.connecting import (
    CERTIFICATES,
    admin_of,
    connect,
    server_that_says,
    tls_server_that_breaks_off,
)

CA = str(CERTIFICATES / "ca.pem")

# -- TLS


def server_context(name: str, *, client_ca: str | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / f"{name}.pem")
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def test_tls_with_a_known_authority() -> None:
    with FakeCluster(tls=server_context("server")) as cluster:
        assert connect(cluster.bootstrap_servers, security_protocol="SSL", ssl_ca_location=CA) == "fake-cluster-id"
        pem = Path(CA).read_text()
        assert connect(cluster.bootstrap_servers, security_protocol="SSL", ssl_ca_pem=pem) == "fake-cluster-id"


def test_fencing_over_tls() -> None:
    with (
        FakeCluster(brokers=2, tls=server_context("server")) as cluster,
        admin_of(cluster, security_protocol="SSL", ssl_ca_location=CA) as admin,
    ):
        answers = list(
            admin.fence([TransactionalId(f"id-{number}") for number in range(300)], transaction_timeout_ms=30_000)
        )
        assert [answer.producer_epoch for answer in answers] == [0] * 300


@pytest.mark.parametrize(
    ("server", "settings", "error", "words"),
    [
        ("server", {}, UnauthorizedError, "not trusted"),
        ("server", {"ssl_ca_location": str(CERTIFICATES / "other-ca.pem")}, UnauthorizedError, "not trusted"),
        ("wrong-host", {"ssl_ca_location": CA}, UnauthorizedError, "is for another host"),
        ("server", {"ssl_ca_location": "missing.pem"}, InputFileError, "missing.pem"),
        ("server", {"ssl_ca_location": str(Path(__file__))}, InputFileError, "ssl.truststore.location"),
        ("server", {"ssl_ca_location": CA, "ssl_certificate_location": CA}, InputFileError, "client certificate"),
    ],
)
def test_tls_failures_say_which(server: str, settings: dict[str, Any], error: type[EosctlError], words: str) -> None:
    with FakeCluster(tls=server_context(server)) as cluster, pytest.raises(error) as caught:
        connect(cluster.bootstrap_servers, security_protocol="SSL", **settings)
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_the_host_check_can_be_switched_off() -> None:
    with FakeCluster(tls=server_context("wrong-host")) as cluster:
        settings: dict[str, Any] = {"security_protocol": "SSL", "ssl_ca_location": CA, "ssl_check_hostname": False}
        assert connect(cluster.bootstrap_servers, **settings) == "fake-cluster-id"


def test_a_client_certificate_is_shown_from_a_file_or_inline() -> None:
    client = CERTIFICATES / "client.pem"
    key, _, certificate = client.read_text().partition("-----BEGIN CERTIFICATE-----")
    with FakeCluster(tls=server_context("server", client_ca=CA)) as cluster:
        base: dict[str, Any] = {"security_protocol": "SSL", "ssl_ca_location": CA}
        ways: tuple[dict[str, Any], ...] = (
            {"ssl_certificate_location": str(client), "ssl_key_location": str(client)},
            {"ssl_certificate_location": str(client)},
            {"ssl_certificate_pem": f"-----BEGIN CERTIFICATE-----{certificate}", "ssl_key_pem": Secret(key)},
        )
        for shown in ways:
            assert connect(cluster.bootstrap_servers, **base, **shown) == "fake-cluster-id"
        with pytest.raises(
            (UnauthorizedError, UnreachableError)
        ) as caught:  # the alert may be lost with the connection
            connect(cluster.bootstrap_servers, **base)
        assert "client certificate" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "hung_up",
    [
        ssl.SSLEOFError(8, "EOF occurred in violation of protocol (_ssl.c:1006)"),
        ssl.SSLZeroReturnError(6, "TLS/SSL connection has been closed (EOF) (_ssl.c:992)"),
        ConnectionResetError(104, "Connection reset by peer"),
    ],
    ids=lambda exc: type(exc).__name__,
)
def test_a_handshake_that_ends_at_once_looks_like_plaintext(hung_up: OSError) -> None:
    """Python 3.11.2 with Debian's OpenSSL says SSLZeroReturnError, for which there was no hint."""
    assert "plaintext" in (tls_failure(hung_up, "kafka:9092").hint or "")


def test_tls_spoken_to_a_plaintext_port() -> None:
    """A broker takes the ClientHello for an absurd size and hangs up."""
    with server_that_says(b"") as address, pytest.raises(UnreachableError) as caught:
        connect(address, security_protocol="SSL", ssl_ca_location=CA)
    assert "plaintext" in (caught.value.hint or "")


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("answer", [b"", b"\0\0", b"\0\0\1\0\0\0\0\1"])
def test_a_connection_that_is_cut_after_the_handshake(answer: bytes, reset: bool) -> None:
    """It used to say `eof occurred in violation of protocol (_ssl.c:2427)`."""
    with tls_server_that_breaks_off(answer, reset=reset) as address, pytest.raises(UnreachableError) as caught:
        connect(address, security_protocol="SSL", ssl_ca_location=CA)
    assert address in caught.value.message
    assert re.search("closed the connection|connection reset by peer", caught.value.message)
    assert "_ssl.c" not in caught.value.message


def test_plaintext_spoken_to_a_tls_port() -> None:
    with (
        FakeCluster(tls=server_context("server")) as cluster,
        pytest.raises((UnreachableError, ProtocolError)) as caught,
    ):
        connect(cluster.bootstrap_servers)
    assert "TLS" in (caught.value.hint or "")


# -- SASL


def test_scram_follows_the_example_of_rfc_7677() -> None:
    scram = Scram("sha256", "user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")
    assert scram.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    final = scram.answer(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert scram.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


@pytest.mark.parametrize(
    ("challenges", "error", "words"),
    [
        ([b"r=other,s=AAAA,i=4096"], UnauthorizedError, "nonce"),
        ([b"r=mine,s=AAAA,i=4096"], UnauthorizedError, "nonce"),
        ([b"r=mine2,s=AAAA,i=1"], UnauthorizedError, "iterations"),
        ([b"r=mine2,s=AAAA,i=99999999999"], UnauthorizedError, "iterations"),
        ([b"nonsense"], ProtocolError, "malformed"),
        ([b"r=mine2\xff,s=AAAA,i=4096"], ProtocolError, "UTF-8"),
        ([b"r=mine2,s=AAAA,i=" + b"9" * 5000], ProtocolError, "malformed"),
        ([b"r=mine2,s=AAAA,i=4096", b"v=\xff"], ProtocolError, "UTF-8"),
        ([b"r=mine2,s=AAAA,i=4096", b"v=AAAA"], UnauthorizedError, "could not prove"),
        ([b"r=mine2,s=AAAA,i=4096", b"e=other-error"], UnauthorizedError, "other-error"),
    ],
)
def test_scram_trusts_no_broker_blindly(challenges: list[bytes], error: type[EosctlError], words: str) -> None:
    scram = Scram("sha512", "user", "pencil", nonce="mine")
    for challenge in challenges[:-1]:
        scram.answer(challenge)
    with pytest.raises(error, match=words):
        scram.answer(challenges[-1])


def test_scram_quotes_names() -> None:
    assert Scram("sha256", "a=b,c", "x", nonce="n").first() == b"n,,n=a=3Db=2Cc,r=n"


def sasl(mechanism: str, **settings: Any) -> dict[str, Any]:
    return {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism, **settings}


def test_plain() -> None:
    with FakeCluster(users={"alice": "secret"}) as cluster:
        login = sasl("PLAIN", sasl_username="alice", sasl_password=Secret("secret"))
        assert connect(cluster.bootstrap_servers, **login) == "fake-cluster-id"


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        (
            sasl("PLAIN", sasl_username="alice", sasl_password=Secret("wrong")),
            UnauthorizedError,
            "Invalid username or password",
        ),
        (sasl("PLAIN", sasl_username="alice"), UsageError, "needs a user name and a password"),
        (sasl("GSSAPI"), UnsupportedError, "--via producer"),
        (sasl(""), UsageError, "sasl.mechanism is not set"),
        (sasl("OAUTHBEARER"), UsageError, "needs a token"),
        (sasl("OAUTHBEARER", oauth_token_file="missing.token"), InputFileError, "missing.token"),
        (
            sasl("SCRAM-SHA-256", sasl_username="a", sasl_password=Secret("b")),
            UnauthorizedError,  # not UnsupportedError, which sends to librdkafka: that is not offered more
            "It offers PLAIN, OAUTHBEARER",
        ),
        ({}, UnreachableError, "may want SASL"),
    ],
)
def test_sasl_failures_say_which(settings: dict[str, Any], error: type[EosctlError], words: str) -> None:
    with FakeCluster(users={"alice": "secret"}) as cluster, pytest.raises(error) as caught:
        connect(cluster.bootstrap_servers, **settings)
    assert words in f"{caught.value.message} {caught.value.hint}"
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"


def test_sasl_to_a_listener_without_it() -> None:
    with FakeCluster() as cluster, pytest.raises(UnauthorizedError, match="does not authenticate with SASL"):
        connect(cluster.bootstrap_servers, **sasl("PLAIN", sasl_username="a", sasl_password=Secret("b")))


def test_a_wrong_password_ends_the_search_at_the_first_broker() -> None:
    with FakeCluster(brokers=3, users={"alice": "secret"}) as cluster, pytest.raises(UnauthorizedError):
        connect(cluster.bootstrap_servers, **sasl("PLAIN", sasl_username="alice", sasl_password=Secret("wrong")))
    assert cluster.count("SaslAuthenticate") == 1


def test_oauth_token_from_a_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    with FakeCluster(users={"": "the-token"}) as cluster:
        token.write_text("the-token\n")
        login = sasl("OAUTHBEARER", oauth_token_file=str(token), oauth_extensions={"tenant": "a"})
        assert connect(cluster.bootstrap_servers, **login) == "fake-cluster-id"
        token.write_text("stale")
        with pytest.raises(UnauthorizedError, match="invalid_token"):
            connect(cluster.bootstrap_servers, **login)


@contextlib.contextmanager
def token_endpoint(
    answer: Callable[[str, str], tuple[int, bytes]], *, context: ssl.SSLContext | None = None
) -> Iterator[str]:
    """An HTTP server that answers a token request by its Authorization header and body; with `context` over TLS."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, content = answer(self.headers["Authorization"], body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the standard library
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with serving(server):
        yield f"{'https' if context else 'http'}://127.0.0.1:{server.server_address[1]}/token"


def client_credentials(url: str) -> dict[str, Any]:
    return sasl(
        "OAUTHBEARER",
        oauth_token_endpoint_url=url,
        oauth_client_id="app",
        oauth_client_secret=Secret("hush"),
        oauth_scope="kafka admin",
    )


def test_oauth_token_from_an_endpoint_is_asked_once_for_all_connections() -> None:
    asked: list[tuple[str, str]] = []

    def answer(authorization: str, body: str) -> tuple[int, bytes]:
        asked.append((authorization, body))
        return 200, json.dumps({"access_token": "the-token", "expires_in": 60}).encode()

    with (
        token_endpoint(answer) as url,
        FakeCluster(brokers=2, users={"": "the-token"}) as cluster,
        admin_of(cluster, **client_credentials(url)) as admin,
    ):
        answers = list(
            admin.fence([TransactionalId(f"id-{number}") for number in range(100)], transaction_timeout_ms=30_000)
        )
        assert all(answer.fault is None for answer in answers)
    assert asked == [("Basic YXBwOmh1c2g=", "grant_type=client_credentials&scope=kafka+admin")]


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ((401, b'{"error":"invalid_client"}'), UnauthorizedError, "HTTP 401.*invalid_client"),
        ((200, b"not json"), ProtocolError, "without an access_token"),
        ((200, b'{"token_type":"bearer"}'), ProtocolError, "without an access_token"),
    ],
)
def test_oauth_endpoint_failures(answer: tuple[int, bytes], error: type[EosctlError], words: str) -> None:
    with token_endpoint(lambda *_: answer) as url, FakeCluster(users={"": "t"}) as cluster:
        with pytest.raises(error, match=words) as caught:
            connect(cluster.bootstrap_servers, **client_credentials(url))
        assert "hush" not in str(caught.value)


def test_oauth_endpoint_that_is_down(closed_port: int) -> None:
    with FakeCluster(users={"": "t"}) as cluster, pytest.raises(UnreachableError, match="can't get a token"):
        connect(cluster.bootstrap_servers, **client_credentials(f"http://127.0.0.1:{closed_port}/token"))


def test_scram_sends_a_message_at_a_time() -> None:
    """Its first message went with the handshake: over TLS each login took 280 ms more, as Kafka 4.3 let it lie."""
    came_with_the_handshake = list[bytes | None]()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(cluster: FakeCluster) -> None:
        connection, frames = listener.accept()[0], FrameBuffer(1 << 20)

        def next_frame() -> bytes:
            while (frame := frames.next_frame()) is None:
                frames.feed(connection.recv(1 << 16))
            return frame

        def send(api: Api[Any, Any], frame: bytes, answer: object) -> None:
            version, number = int.from_bytes(frame[2:4], "big"), int.from_bytes(frame[4:8], "big")
            connection.sendall(encode_response(api, answer, version=version, correlation_id=number))

        with connection:
            connection.sendall(cluster.answer(1, next_frame()) or b"")
            handshake = next_frame()
            came_with_the_handshake.append(frames.next_frame())
            send(SASL_HANDSHAKE, handshake, SaslHandshakeResponse(NONE, ("SCRAM-SHA-256",)))
            refused = SaslAuthenticateResponse(SASL_AUTHENTICATION_FAILED, "go away")
            send(SASL_AUTHENTICATE, next_frame(), refused)
            connection.recv(1)

    with FakeCluster() as cluster:
        thread = threading.Thread(target=serve, args=(cluster,), daemon=True)
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        login: dict[str, Any] = {
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_username": "user",
            "sasl_password": Secret("pencil"),
        }
        with pytest.raises(UnauthorizedError, match="refused SASL SCRAM-SHA-256: go away"):
            connect(address, security_protocol="SASL_PLAINTEXT", **login)
        listener.close()
        thread.join(5)
    assert came_with_the_handshake == [None]
