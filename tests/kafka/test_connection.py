"""Connecting: addresses, TLS, SASL, and what a person is told when it fails."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.client_settings import ClientSettings, Secret
from eosctl.deadline import Deadline
from eosctl.errors import (
    DeadlineError,
    EosctlError,
    InputFileError,
    ProtocolError,
    UnauthorizedError,
    UnreachableError,
    UnsupportedError,
    UsageError,
)
from eosctl.kafka.sasl import Scram
from eosctl.kafka.stream import Address, parse_address
from eosctl.kafka.transaction_admin import NativeTransactionAdmin
from eosctl.wire import error_codes as codes
from tests.fakes.broker import FakeCluster

CERTIFICATES = Path(__file__).parent / "certificates"
CA = str(CERTIFICATES / "ca.pem")


def connect(bootstrap: str | tuple[str, ...], *, timeout_s: float = 10, **settings: Any) -> str:
    """The cluster id, which takes one connection and one request."""
    servers = (bootstrap,) if isinstance(bootstrap, str) else bootstrap
    with NativeTransactionAdmin(ClientSettings(servers, **settings), deadline=Deadline.after(timeout_s)) as admin:
        return admin.cluster_id()


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("broker:9092", Address("broker", 9092), "broker:9092"),
        (" 10.0.0.1:1 ", Address("10.0.0.1", 1), "10.0.0.1:1"),
        ("[::1]:9092", Address("::1", 9092), "[::1]:9092"),
        ("[2001:db8::1]:65535", Address("2001:db8::1", 65535), "[2001:db8::1]:65535"),
    ],
)
def test_addresses(text: str, address: Address, shown: str) -> None:
    assert parse_address(text) == address
    assert str(address) == shown


@pytest.mark.parametrize(
    "text", ["broker", "broker:", ":9092", "broker:0", "broker:65536", "broker:x", "::1:9092", "[]:1", ""]
)
def test_what_is_no_address_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_address(text)


def test_an_unknown_security_protocol_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="QUIC"):
        connect("b:1", security_protocol="QUIC")


def test_ipv6_bootstrap() -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 loopback on this machine")
    listener.close()
    with pytest.raises(UnreachableError, match=r"\[::1\]:\d+: connection refused"):
        connect(f"[::1]:{listener_port()}")


def listener_port() -> int:
    """A port where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_a_closed_port_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match=r"can't connect to 127\.0\.0\.1:1: connection refused"):
        connect("127.0.0.1:1")


def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match=r"can't resolve no-such-host\.invalid"):
        connect("no-such-host.invalid:9092")


def test_an_old_broker_that_answers_api_versions_with_v0() -> None:
    """KIP-511: the answer to an unknown ApiVersions version is v0 with error 35, then v0 is asked."""
    with FakeCluster(versions={"ApiVersions": (0, 2)}) as cluster:
        assert connect(cluster.bootstrap_servers) == "fake-cluster-id"
        assert [seen.version for seen in cluster.seen if seen.api == "ApiVersions"] == [3, 0]


def test_a_broker_without_common_versions_is_unsupported() -> None:
    with FakeCluster(versions={"Metadata": (14, 15)}) as cluster, pytest.raises(UnsupportedError, match="Metadata"):
        connect(cluster.bootstrap_servers)


@contextlib.contextmanager
def server_that_says(answer: bytes, *, close: bool = True) -> Iterator[str]:
    """A server that reads a little, says `answer`, and hangs up (or stays silent)."""
    listener = socket.create_server(("127.0.0.1", 0))
    accepted: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                accepted.append(connection)
                connection.recv(1000)
                connection.sendall(answer)
                if close:
                    connection.shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    with contextlib.suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for connection in accepted:
        connection.close()
    thread.join(5)


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (b"", UnreachableError, "closed the connection"),
        (b"\x15\x03\x03\x00\x02\x02\x50", ProtocolError, "TLS alert"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ProtocolError, "not a Kafka listener"),
        (b"\x7f\xff\xff\xff", ProtocolError, "2147483647 bytes refused"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x01", ProtocolError, "truncated"),
        (b"\x00\x00\x00\x06\x00\x00\x00\x09\x00\x00", ProtocolError, "answers request 9"),
    ],
)
def test_what_is_no_kafka_broker(answer: bytes, error: type[EosctlError], words: str) -> None:
    with server_that_says(answer) as address, pytest.raises(error) as caught:
        connect(address)
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_a_silent_server_costs_the_deadline_and_no_more() -> None:
    with server_that_says(b"", close=False) as address:
        started_s = time.monotonic()
        with pytest.raises(DeadlineError, match=f"waiting for {address}"):
            connect(address, timeout_s=0.3)
        assert time.monotonic() - started_s < 2


def test_a_silent_server_costs_the_request_timeout_if_that_is_shorter() -> None:
    with server_that_says(b"", close=False) as address, pytest.raises(UnreachableError, match=r"within 0\.2 s"):
        connect(address, request_timeout_ms=200)


def test_a_connection_that_died_while_idle_is_replaced() -> None:
    with FakeCluster() as cluster:
        settings = ClientSettings(cluster.bootstrap_servers)
        with NativeTransactionAdmin(settings, deadline=Deadline.after(10)) as admin:
            admin.cluster_id()
            cluster.lose_answers("Metadata")
            assert admin.cluster_id() == "fake-cluster-id"
            assert cluster.count("ApiVersions") == 2


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
    with FakeCluster(brokers=2, tls=server_context("server")) as cluster:
        settings = ClientSettings(cluster.bootstrap_servers, security_protocol="SSL", ssl_ca_location=CA)
        with NativeTransactionAdmin(settings, deadline=Deadline.after(20)) as admin:
            ids = [f"id-{number}" for number in range(300)]
            answers = list(admin.fence(ids, transaction_timeout_ms=30_000))
            assert [answer.producer_epoch for answer in answers] == [0] * 300


@pytest.mark.parametrize(
    ("server", "settings", "error", "words"),
    [
        ("server", {}, UnauthorizedError, "not trusted"),
        ("server", {"ssl_ca_location": str(CERTIFICATES / "other-ca.pem")}, UnauthorizedError, "not trusted"),
        ("wrong-host", {"ssl_ca_location": CA}, UnauthorizedError, "is for another host"),
        ("server", {"ssl_ca_location": "missing.pem"}, InputFileError, "missing.pem"),
        ("server", {"ssl_ca_location": str(Path(__file__))}, InputFileError, "keytool"),
        ("server", {"ssl_ca_location": CA, "ssl_certificate_location": CA}, InputFileError, "client certificate"),
    ],
)
def test_tls_failures_say_which(server: str, settings: dict[str, Any], error: type[EosctlError], words: str) -> None:
    with FakeCluster(tls=server_context(server)) as cluster, pytest.raises(error) as caught:
        connect(cluster.bootstrap_servers, security_protocol="SSL", **settings)
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_the_host_check_can_be_switched_off() -> None:
    with FakeCluster(tls=server_context("wrong-host")) as cluster:
        settings = {"security_protocol": "SSL", "ssl_ca_location": CA, "ssl_check_hostname": False}
        assert connect(cluster.bootstrap_servers, **settings) == "fake-cluster-id"


def test_a_client_certificate_is_shown_from_a_file_or_inline() -> None:
    client = CERTIFICATES / "client.pem"
    key, _, certificate = client.read_text().partition("-----BEGIN CERTIFICATE-----")
    with FakeCluster(tls=server_context("server", client_ca=CA)) as cluster:
        base: dict[str, Any] = {"security_protocol": "SSL", "ssl_ca_location": CA}
        for shown in (
            {"ssl_certificate_location": str(client), "ssl_key_location": str(client)},
            {"ssl_certificate_location": str(client)},
            {"ssl_certificate_pem": f"-----BEGIN CERTIFICATE-----{certificate}", "ssl_key_pem": Secret(key)},
        ):
            assert connect(cluster.bootstrap_servers, **base, **shown) == "fake-cluster-id"
        with pytest.raises(
            (UnauthorizedError, UnreachableError)
        ) as caught:  # the alert may be lost with the connection
            connect(cluster.bootstrap_servers, **base)
        assert "client certificate" in (caught.value.hint or "")


def test_tls_spoken_to_a_plaintext_port() -> None:
    """A broker takes the ClientHello for an absurd size and hangs up."""
    with server_that_says(b"") as address, pytest.raises(UnreachableError) as caught:
        connect(address, security_protocol="SSL", ssl_ca_location=CA)
    assert "plaintext" in (caught.value.hint or "")


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
            UnsupportedError,
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
def token_endpoint(answer: Callable[[str, str], tuple[int, bytes]]) -> Iterator[str]:
    """An HTTP server that answers a token request by its Authorization header and body."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, content = answer(self.headers["Authorization"], body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the standard library
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/token"
        server.shutdown()
        thread.join(5)


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

    with token_endpoint(answer) as url, FakeCluster(brokers=2, users={"": "the-token"}) as cluster:
        settings = ClientSettings(cluster.bootstrap_servers, **client_credentials(url))
        with NativeTransactionAdmin(settings, deadline=Deadline.after(10)) as admin:
            answers = list(admin.fence([f"id-{number}" for number in range(100)], transaction_timeout_ms=30_000))
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


def test_oauth_endpoint_that_is_down() -> None:
    with FakeCluster(users={"": "t"}) as cluster, pytest.raises(UnreachableError, match="can't get a token"):
        connect(cluster.bootstrap_servers, **client_credentials(f"http://127.0.0.1:{listener_port()}/token"))


# -- the other requests, where the fake can do what a healthy broker can't


def test_describing_survives_a_busy_and_a_moved_coordinator() -> None:
    with FakeCluster(brokers=2) as cluster:
        cluster.state.open_transaction("one", ("t", 0))
        cluster.fail_next("DescribeTransactions", codes.COORDINATOR_LOAD_IN_PROGRESS, codes.NOT_COORDINATOR)
        settings = ClientSettings(cluster.bootstrap_servers)
        with NativeTransactionAdmin(settings, deadline=Deadline.after(10)) as admin:
            answer = admin.describe_transactions(["one"])["one"]
            assert getattr(answer, "state", None) == "Ongoing"


def test_listing_waits_for_a_loading_coordinator_and_is_never_half() -> None:
    with FakeCluster(brokers=3) as cluster:
        for number in range(30):
            cluster.state.open_transaction(f"id-{number}", ("t", 0))
        settings = ClientSettings(cluster.bootstrap_servers)
        with NativeTransactionAdmin(settings, deadline=Deadline.after(10)) as admin:
            cluster.fail_next("ListTransactions", codes.NONE, codes.COORDINATOR_LOAD_IN_PROGRESS)
            assert len(admin.list_transactions()) == 30
            cluster.stop_broker(3)
            assert len({item.transactional_id for item in admin.list_transactions()}) == 30


def test_a_bad_pattern_is_a_usage_error() -> None:
    with FakeCluster() as cluster:
        cluster.fail_next("ListTransactions", codes.INVALID_REGULAR_EXPRESSION)
        settings = ClientSettings(cluster.bootstrap_servers)
        with NativeTransactionAdmin(settings, deadline=Deadline.after(10)) as admin, pytest.raises(UsageError):
            admin.list_transactions(pattern=".*")


def test_a_filter_the_broker_is_too_old_for_is_refused() -> None:
    with FakeCluster(versions={"ListTransactions": (0, 1)}) as cluster:
        settings = ClientSettings(cluster.bootstrap_servers)
        with NativeTransactionAdmin(settings, deadline=Deadline.after(10)) as admin:
            assert admin.list_transactions(duration_ms=5) == []
            with pytest.raises(UnsupportedError, match=r"needs Kafka 4\.1 \(ListTransactions v2\)"):
                admin.list_transactions(pattern="x.*")


def test_a_leader_that_moved_is_found_again() -> None:
    with FakeCluster(brokers=2) as cluster:
        cluster.state.open_transaction("one", ("t", 0), ("t", 1))
        cluster.fail_next("DescribeProducers", codes.NOT_LEADER_OR_FOLLOWER)
        cluster.fail_next("WriteTxnMarkers", codes.NOT_LEADER_OR_FOLLOWER)
        settings = ClientSettings(cluster.bootstrap_servers)
        with NativeTransactionAdmin(settings, deadline=Deadline.after(10)) as admin:
            answers = admin.describe_producers([("t", 0), ("t", 1)])
            producer = answers[("t", 1)][0]  # type: ignore[index]
            assert producer.txn_start_offset == 0
            assert admin.abort_transaction(producer) is None


def test_an_abort_that_is_refused_is_a_fault() -> None:
    with FakeCluster() as cluster:
        producer_id = cluster.state.open_transaction("one", ("t", 0), epoch=5)
        cluster.state.producers[("t", 0)][producer_id].coordinator_epoch = 3
        settings = ClientSettings(cluster.bootstrap_servers)
        with NativeTransactionAdmin(settings, deadline=Deadline.after(10)) as admin:
            producer = admin.describe_producers([("t", 0)])[("t", 0)][0]  # type: ignore[index]
            cluster.state.producers[("t", 0)][producer_id].coordinator_epoch = 4
            fault = admin.abort_transaction(producer)
            assert fault is not None
            assert fault.name == "TRANSACTION_COORDINATOR_FENCED"


@pytest.mark.parametrize("version", [4, 5, 6])
def test_groups_are_described_in_old_and_new_versions(version: int) -> None:
    from tests.fakes.broker_state import FakeGroup

    with FakeCluster(brokers=2, versions={"DescribeGroups": (0, version)}) as cluster:
        cluster.state.groups["g"] = FakeGroup(members=(("m", "c", "/h", b"\0\1", b"\0\2"),))
        settings = ClientSettings(cluster.bootstrap_servers)
        with NativeTransactionAdmin(settings, deadline=Deadline.after(10)) as admin:
            (member,) = admin.describe_group("g").members
            assert (member.member_id, member.metadata, member.assignment) == ("m", b"\0\1", b"\0\2")
            assert admin.describe_group("unknown").state == "Dead"
            cluster.fail_next("DescribeGroups", codes.GROUP_AUTHORIZATION_FAILED)
            with pytest.raises(UnauthorizedError, match="GROUP_AUTHORIZATION_FAILED"):
                admin.describe_group("g")
