"""ClientSettings as librdkafka properties (taken by a real client), and its errors as ours."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from eosctl.core.clients.properties import client_from_properties
from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.ids import TransactionalId
from eosctl.core.java.properties import parse_properties
from eosctl.errors import BrokerError, EosctlError, InputFileError, NotFoundError, UnauthorizedError, UnreachableError
from eosctl.kafka.access import Access
from eosctl.kafka.native import admin_connection
from eosctl.kafka.native.admin_connection import InterruptibleAdmin, interruptible
from eosctl.kafka.topics.librdkafka import ErrorLog, client_properties, quiet_logger, translate
from eosctl.kafka.topics.writer import writer_properties
from tests.conftest import Invoke

SETTINGS = ClientSettings(("a:1",), sasl_username="alice")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ClientSettings(("a:1", "b:2")), {"bootstrap.servers": "a:1,b:2", "socket.timeout.ms": 30_000}),
        (
            ClientSettings(
                ("a:1",),
                security_protocol="SASL_SSL",
                sasl_mechanism="SCRAM-SHA-512",
                sasl_username="u",
                sasl_password=Secret("p"),
                ssl_check_hostname=False,
            ),
            {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "u",
                "sasl.password": "p",
                "ssl.endpoint.identification.algorithm": "none",
            },
        ),
        (
            ClientSettings(
                ("a:1",),
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="OAUTHBEARER",
                oauth_token_endpoint_url="https://idp/token",
                oauth_client_id="c",
                oauth_client_secret=Secret("s"),
                oauth_extensions={"x": "1", "y": "2"},
            ),
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "c",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.extensions": "x=1,y=2",
            },
        ),
    ],
)
def test_properties_that_a_real_client_takes(settings: ClientSettings, expected: dict[str, object]) -> None:
    properties = client_properties(settings)
    assert properties | expected == properties
    AdminClient(properties, logger=quiet_logger())  # raises for a property that librdkafka does not know


@pytest.mark.parametrize(
    "lines",
    [
        "request.timeout.ms=600000",
        "request.timeout.ms=5",
        "send.buffer.bytes=-1\nreceive.buffer.bytes=-1",
        "retry.backoff.ms=0",
        "connections.max.idle.ms=-1",
        "connections.max.idle.ms=9223372036854775807",
        "metadata.max.age.ms=604800000",
        "metadata.max.age.ms=0",
        "socket.connection.setup.timeout.ms=500",
        "client.dns.lookup=default",
        "reconnect.backoff.ms=20000",
        "reconnect.backoff.max.ms=10",
        "reconnect.backoff.ms=7200000\nreconnect.backoff.max.ms=7200000",
        "reconnect.backoff.ms=2000\nreconnect.backoff.max.ms=1000",
    ],
)
def test_values_that_java_takes_start_librdkafka(lines: str) -> None:
    """Each of them used to end with "the Kafka client refused its settings"."""
    settings = client_from_properties(parse_properties(f"bootstrap.servers=127.0.0.1:1\n{lines}", source="f")).settings
    AdminClient(client_properties(settings), logger=quiet_logger())
    Producer(writer_properties(settings, transactional_id=TransactionalId("t")), logger=quiet_logger())


@pytest.mark.parametrize(
    "line",
    [
        "client.dns.lookup=all",
        "client.dns.lookup=",
        "broker.address.family=ipv4",
        "socket.keepalive.enable=yes",
        "reconnect.backoff.ms=soon",
        "reconnect.backoff.max.ms=",
        "socket.send.buffer.bytes=x",
        "metadata.max.age.ms=five",
    ],
)
def test_a_value_that_librdkafka_refuses_is_refused_where_it_is_read(invoke: Invoke, tmp_path: Path, line: str) -> None:
    """Only a command that writes refused it: one that looks has no librdkafka, and took no notice."""
    name, _, value = line.partition("=")
    with pytest.raises(KafkaException):
        Producer({"bootstrap.servers": "127.0.0.1:1", name: value}, logger=quiet_logger())
    file = tmp_path / "client.properties"
    file.write_text(f"# of a client\n{line}\n")
    refused = invoke("txn", "list", "-b", "127.0.0.1:1", "--command-config", str(file))
    assert refused.exit_code == 2
    assert f"client.properties:2: {name}: " in refused.stderr


@pytest.mark.parametrize(
    "line",
    [
        "socket.keepalive.enable=TRUE",
        "socket.keepalive.enable=0",
        "client.dns.lookup=Use_All_Dns_Ips",
        "broker.address.family=V6",
        "retry.backoff.ms=100ms",
        "reconnect.backoff.ms=+100",
        "metadata.max.age.ms=0x10000",
        "connections.max.idle.ms=1e3",
    ],
)
def test_a_value_that_librdkafka_takes_in_any_spelling_is_taken(line: str) -> None:
    settings = client_from_properties(parse_properties(f"bootstrap.servers=127.0.0.1:1\n{line}", source="f")).settings
    Producer(client_properties(settings), logger=quiet_logger())


def test_security_settings_stay_out_of_plaintext() -> None:
    settings = ClientSettings(("a:1",), sasl_password=Secret("p"), ssl_ca_location="/ca.pem")
    assert not [name for name in client_properties(settings) if name.startswith(("sasl.", "ssl."))]


def test_a_token_file_is_read_at_every_call(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    properties = client_properties(
        ClientSettings(("a:1",), security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", oauth_token_file=str(file))
    )
    payload = base64.urlsafe_b64encode(json.dumps({"exp": 1_900_000_000}).encode()).rstrip(b"=").decode()
    for token in (f"h.{payload}.s", f"h.{payload}.other"):
        file.write_text(token + "\n")
        assert properties["oauth_cb"]("") == (token, 1_900_000_000.0)


@pytest.mark.parametrize(("content", "words"), [(None, "No such file"), ("\n", "is empty"), ("é", "can't read")])
def test_a_token_file_that_is_none_is_said_at_once(tmp_path: Path, content: str | None, words: str) -> None:
    """librdkafka used to wait ten seconds, and then called it a refused login: "OAuth token not set"."""
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    settings = ClientSettings(
        ("a:1",), security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", oauth_token_file=str(file)
    )
    with pytest.raises(InputFileError, match=words) as caught:
        client_properties(settings)
    assert str(file) in caught.value.message


def test_an_expired_token_is_not_handed_to_librdkafka(tmp_path: Path) -> None:
    """It would not take it, and wait ten seconds for another."""
    file = tmp_path / "token"
    payload = base64.urlsafe_b64encode(json.dumps({"exp": 1_000_000_000}).encode()).rstrip(b"=").decode()
    file.write_text(f"h.{payload}.s")
    settings = ClientSettings(
        ("a:1",), security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", oauth_token_file=str(file)
    )
    with pytest.raises(UnauthorizedError, match="has expired"):
        client_properties(settings)


@pytest.mark.parametrize(
    ("code", "words"), [(KafkaError._SSL, "host name"), (KafkaError._AUTHENTICATION, "sasl.mechanism")]
)
def test_tls_and_login_failures_have_hints_of_their_own(code: int, words: str) -> None:
    """librdkafka blames the CA where the certificate is for another host, and so did the hint."""
    assert words in (translate(KafkaError(code), "asking").hint or "")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, UnauthorizedError),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, UnauthorizedError),
        (KafkaError._AUTHENTICATION, UnauthorizedError),
        (KafkaError._SSL, UnauthorizedError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, NotFoundError),
        (KafkaError._TRANSPORT, UnreachableError),
        (KafkaError._DESTROY_BROKER, UnreachableError),  # of a connection that was cut while it was replaced
        (KafkaError._TIMED_OUT, UnreachableError),
        (KafkaError.POLICY_VIOLATION, BrokerError),
    ],
)
def test_errors_become_ours(code: int, kind: type[EosctlError]) -> None:
    error = translate(KafkaError(code), "reading topic t", access=Access("READ", "Topic", "t", SETTINGS))
    assert type(error) is kind
    assert "reading topic t" in error.message


def test_a_missing_permission_is_named_with_the_line_that_grants_it() -> None:
    denied = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    error = translate(denied, "reading topic t", access=Access("READ", "Topic", "t", SETTINGS))
    assert "READ on Topic t" in error.message
    assert "--bootstrap-server a:1 --add --allow-principal User:alice --operation Read --topic t" in (error.hint or "")


def test_brokers_that_come_back_in_time_are_no_error() -> None:
    now_s = [0.0]
    log = ErrorLog(lambda: now_s[0], patience_s=3.0)
    log(KafkaError(KafkaError._TRANSPORT, "Connection refused"))
    log(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    now_s[0] = 2.9
    log.check("asking")
    log.clear()
    now_s[0] = 9.0
    log.check("asking")


def test_brokers_that_stay_away_are_unreachable_for_the_reason_heard() -> None:
    now_s = [0.0]
    log = ErrorLog(lambda: now_s[0], patience_s=3.0)
    log(KafkaError(KafkaError._TRANSPORT, "Connection refused"))
    log(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    now_s[0] = 3.0
    with pytest.raises(UnreachableError, match="asking: no broker can be reached: Connection refused"):
        log.check("asking")


def test_brokers_that_hang_up_point_to_the_security_protocol() -> None:
    """librdkafka keeps "connection closed by peer" from `error_cb`; "all brokers are down" was all that was said."""
    now_s = [0.0]
    log = ErrorLog(lambda: now_s[0], patience_s=3.0)
    log(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    now_s[0] = 3.0
    with pytest.raises(UnreachableError, match="close the connection at once") as caught:
        log.check("asking")
    assert "security.protocol" in (caught.value.hint or "")


def test_an_interrupt_within_an_admin_request_is_an_interrupt() -> None:
    """Ctrl-C while librdkafka began a request used to end as "unexpected SystemError", exit code 1."""

    def interrupted() -> None:
        raise SystemError("describe_topics returned a result with an exception set") from KeyboardInterrupt()

    def broken() -> None:
        raise SystemError("bad argument to internal function")

    with pytest.raises(KeyboardInterrupt):
        interruptible(interrupted)()
    with pytest.raises(SystemError, match="bad argument"):
        interruptible(broken)()


def test_every_admin_request_can_be_interrupted() -> None:
    sources = Path(admin_connection.__file__).parents[1].rglob("*.py")
    called = {
        name for path in sources for name in re.findall(r"\bclient(?:\(\))?\.(\w+)\(", path.read_text(encoding="utf-8"))
    }
    asked = called & vars(AdminClient).keys()
    assert len(asked) > 5
    assert asked <= vars(InterruptibleAdmin).keys()
