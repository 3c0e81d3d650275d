"""Connecting: addresses, dead and silent servers, and what is no Kafka at all."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from eosctl.connect.rest import RestConnectWorker
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, ProtocolError, UnreachableError, UnsupportedError, UsageError
from eosctl.kafka.topics.stream import Address, parse_address
from tests.fakes.broker import FakeCluster
from tests.fakes.clock import PLENTY_S, given_time
from tests.kafka.connecting import admin_of, connect, server_that_says


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
    """It was skipped on a machine without IPv6, which says another reason than `connection refused`."""
    with pytest.raises(UnreachableError, match=r"^can't connect to \[::1\]:1: \w"):
        connect("[::1]:1")


def test_a_closed_port_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match=r"can't connect to 127\.0\.0\.1:1: connection refused"):
        connect("127.0.0.1:1")


def test_a_slow_lookup_of_a_name_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's lookup knows no deadline: with a name server that was silent, --timeout was not kept."""
    done = threading.Event()

    def look_up(*_args: Any, flags: int = 0, **_more: Any) -> list[Any]:
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "not a number")
        done.wait(PLENTY_S)
        return []

    def ask(timeout_s: float) -> None:
        with pytest.raises(DeadlineError, match=r"while looking up silent\.example"):
            connect("silent.example:9092", timeout_s=timeout_s)
        with pytest.raises(DeadlineError, match=r"while looking up silent\.example"):
            RestConnectWorker("http://silent.example:8083", deadline=Deadline.after(timeout_s)).root()

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    try:
        given_time(ask, first_s=0.1)  # a lookup itself has ten seconds
    finally:
        done.set()


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


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (b"", UnreachableError, "closed the connection"),
        (b"\x15\x03\x03\x00\x02\x02\x50", UnreachableError, "a TLS alert The port expects TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", UnreachableError, "not a Kafka listener"),
        (b"\x7f\xff\xff\xff", UnreachableError, "2147483647 bytes refused"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x01", ProtocolError, "truncated"),
        (b"\x00\x00\x00\x06\x00\x00\x00\x09\x00\x00", ProtocolError, "answers request 9"),
    ],
)
def test_what_is_no_kafka_broker(answer: bytes, error: type[EosctlError], words: str) -> None:
    """A TLS listener used to be exit code 1 and "response frame of 352518912 bytes refused", without its address."""
    with server_that_says(answer) as address, pytest.raises(error) as caught:
        connect(address)
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_a_silent_server_costs_the_deadline_and_no_more() -> None:
    """What its own timeout would be is an hour; a slow machine may be in time for nothing but the connection."""
    with (
        server_that_says(b"", close=False) as address,
        pytest.raises(DeadlineError, match=f"after 0.3 s while (connecting to|sending to|waiting for) {address}"),
    ):
        connect(address, timeout_s=0.3, request_timeout_ms=3_600_000)


def test_a_silent_server_costs_the_request_timeout_if_that_is_shorter() -> None:
    with server_that_says(b"", close=False) as address, pytest.raises(UnreachableError, match=r"within 0\.2 s"):
        connect(address, request_timeout_ms=200)


def test_a_connection_that_died_while_idle_is_replaced() -> None:
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        admin.cluster_id()
        cluster.lose_answers("Metadata")
        assert admin.topic_partitions() == {}
        assert cluster.count("ApiVersions") == 2
