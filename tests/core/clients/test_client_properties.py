"""Java's client.properties and librdkafka's names become one ClientSettings; what can't be used says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.clients.properties import client_from_properties
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.java.properties import parse_properties
from eosctl.core.workers.config import parse_worker_config
from eosctl.errors import InputFileError

PLAIN_JAAS = (
    "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="alice" password="a \\\\"b\\\\"; c=d";'
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1\nb:2\nc 3\nd", {"a": "1", "b": "2", "c": "3", "d": ""}),
        ("  a \t=\t 1 ", {"a": "1 "}),
        ("# no\n! no\n\n   # no\na=#yes", {"a": "#yes"}),
        ("a=x\\\n    y\\\n  z\nb=1", {"a": "xyz", "b": "1"}),
        ("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
        ("a=x\\\n# part of it\nb=1", {"a": "x# part of it", "b": "1"}),
        (r"a\ b\=c\:d=\u00e9\t\n\q", {"a b=c:d": "é\t\nq"}),
        (r"\uD83D\uDE00=x\uD83D\uDE00y", {"😀": "x😀y"}),
        ("a==b", {"a": "=b"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=x\\\r\n\t y\r\nb=1", {"a": "xy", "b": "1"}),
        ("a=x\\\n\nb=1", {"a": "x", "b": "1"}),
        ("# no\\\na=1", {"a": "1"}),
        ("\fa\f:\fb\f", {"a": "b\f"}),
        (r"\u0061\u003d=\u0031", {"a=": "1"}),
        (r"a=\\u0031", {"a": r"\u0031"}),
        ("=v", {"": "v"}),
        ("a :  = b", {"a": "= b"}),
        ("a=\\ b\\", {"a": " b"}),
        ("a\u00a0b=\u00a0", {"a\u00a0b": "\u00a0"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=x\\", {"a": "x"}),
    ],
)
def test_properties_syntax(text: str, values: dict[str, str]) -> None:
    assert parse_properties(text, source="f").values == values


def test_a_malformed_escape_names_file_and_line() -> None:
    with pytest.raises(InputFileError, match=r"^client\.properties:2: malformed"):
        parse_properties("a=1\nb=\\u12", source="client.properties")


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_properties(text, source="f")
    except InputFileError:
        assert "\\u" in text


def _settings(text: str) -> ClientSettings:
    return client_from_properties(parse_properties(text, source="f")).settings


def test_sasl_plain_from_jaas() -> None:
    settings = _settings(f"security.protocol=sasl_ssl\nsasl.mechanism=PLAIN\n{PLAIN_JAAS}\n")
    assert (settings.security_protocol, settings.sasl_mechanism) == ("SASL_SSL", "PLAIN")
    assert settings.sasl_username == "alice"
    assert settings.sasl_password is not None
    assert settings.sasl_password.reveal() == 'a "b"; c=d'


def test_java_and_librdkafka_names_say_the_same() -> None:
    java = _settings(
        "bootstrap.servers=a:1, b:2\nsecurity.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username=u password=p;\n"
        "ssl.truststore.type=PEM\nssl.truststore.location=/etc/ca.pem\nssl.keystore.type=PEM\n"
        "ssl.keystore.location=/etc/me.pem\nssl.key.password=k\nrequest.timeout.ms=5000\nsend.buffer.bytes=9\n"
    )
    librdkafka = _settings(
        "bootstrap.servers=a:1,b:2\nsecurity.protocol=sasl_ssl\nsasl.mechanisms=SCRAM-SHA-512\nsasl.username=u\n"
        "sasl.password=p\nssl.ca.location=/etc/ca.pem\nssl.certificate.location=/etc/me.pem\n"
        "ssl.key.location=/etc/me.pem\nssl.key.password=k\nsocket.timeout.ms=5000\nsocket.send.buffer.bytes=9\n"
    )
    assert java == librdkafka
    assert java.bootstrap_servers == ("a:1", "b:2")
    assert java.extra == {"socket.send.buffer.bytes": "9"}


def test_oauth_client_credentials() -> None:
    settings = _settings(
        "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=https://idp/token\n"
        "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'clientId="c" clientSecret="s" scope="kafka" extension_logicalCluster="lkc-1";'
    )
    assert settings.oauth_token_endpoint_url == "https://idp/token"
    assert (settings.oauth_client_id, settings.oauth_scope) == ("c", "kafka")
    assert settings.oauth_client_secret is not None
    assert settings.oauth_client_secret.reveal() == "s"
    assert settings.oauth_extensions == {"logicalCluster": "lkc-1"}


def test_oauth_token_from_a_file() -> None:
    settings = _settings(
        "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
        "sasl.oauthbearer.token.endpoint.url=file:///run/secrets/token\n"
    )
    assert settings.oauth_token_file == "/run/secrets/token"
    assert settings.oauth_token_endpoint_url is None


def test_kerberos_is_kept_for_a_librdkafka_that_can() -> None:
    settings = _settings(
        "security.protocol=SASL_PLAINTEXT\nsasl.kerberos.service.name=kafka\nsasl.jaas.config="
        'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k.keytab" principal="me@X";'
    )
    assert settings.sasl_mechanism == "GSSAPI"
    assert settings.extra == {
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal": "me@X",
        "sasl.kerberos.keytab": "/k.keytab",
    }


@pytest.mark.parametrize(("algorithm", "checked"), [("", False), ("none", False), ("HTTPS", True)])
def test_hostname_check(algorithm: str, checked: bool) -> None:
    text = f"security.protocol=SSL\nssl.endpoint.identification.algorithm={algorithm}"
    assert _settings(text).ssl_check_hostname is checked


def test_hostnames_are_checked_unless_told_otherwise() -> None:
    assert _settings("security.protocol=SSL").ssl_check_hostname is True


@pytest.mark.parametrize(
    ("store", "kind", "location"),
    [
        ("truststore", "", "/t.jks"),
        ("truststore", "PKCS12", "/t.store"),
        ("truststore", "", "/no-suffix"),
        ("keystore", "", "/k.p12"),
        ("keystore", "JKS", "/k.pem"),
    ],
)
def test_java_stores_are_named_for_others_to_open(store: str, kind: str, location: str) -> None:
    """They used to be refused, and most files that exist have them."""
    text = f"security.protocol=SSL\nssl.{store}.location={location}\n" + (f"ssl.{store}.type={kind}\n" if kind else "")
    text += f"ssl.{store}.password=s3cret\nssl.key.password=k3y\n"
    [found] = client_from_properties(parse_properties(text, source="f")).stores
    assert (found.where, found.store, found.location) == (f"f:2: ssl.{store}.location", store, location)
    assert found.password is not None
    assert found.password.reveal() == "s3cret"
    assert (found.key_password is not None) == (store == "keystore")
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    "lines", ["ssl.truststore.location=/a.pem", "ssl.keystore.type=pem\nssl.keystore.location=/a.jks"]
)
def test_pem_is_no_store(lines: str) -> None:
    assert client_from_properties(parse_properties(f"security.protocol=SSL\n{lines}", source="f")).stores == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("security.protocol=TLS", "f:1: security.protocol: TLS is none of"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=NTLM", "f:2: sasl.mechanism: NTLM is none of"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "PLAIN needs sasl.jaas.config"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=x.PlainLoginModule required;", "username"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=x.Mine required;", "Mine is not supp"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.password=${file:/etc/pw:x}", "config provider"),
        ("request.timeout.ms=soon", "f:1: request.timeout.ms: soon is not a number"),
    ],
)
def test_what_can_not_work_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputFileError) as caught:
        _settings(text)
    assert message in caught.value.message


def test_unknown_names_warn_and_java_only_names_do_not() -> None:
    text = "acks=all\nkey.serializer=x\nfoo.bar=1\nenable.ssl.certificate.verification=false\n"
    assert client_from_properties(parse_properties(text, source="f")).warnings == (
        "f:3: foo.bar has no effect here",
        "f:4: enable.ssl.certificate.verification has no effect here",
    )


WORKER = """
bootstrap.servers=k1:9092,k2:9092
group.id=connect-a
config.storage.topic=a-configs
offset.storage.topic=a-offsets
exactly.once.source.support=ENABLED
listeners=http://127.0.0.1:8083
key.converter=org.apache.kafka.connect.json.JsonConverter
security.protocol=PLAINTEXT
producer.security.protocol=SSL
producer.client.id=p
"""


def test_worker_config() -> None:
    worker = parse_worker_config(WORKER, source="w")
    assert worker.bootstrap_servers == ("k1:9092", "k2:9092")
    assert (worker.group_id, worker.exactly_once) == ("connect-a", "enabled")
    assert (worker.config_topic, worker.offset_topic, worker.status_topic) == ("a-configs", "a-offsets", None)
    assert worker.rest_url == "http://127.0.0.1:8083"


def test_worker_clients_lie_over_the_worker() -> None:
    worker = parse_worker_config(WORKER, source="w")
    assert worker.client().settings.security_protocol == "PLAINTEXT"
    producer = worker.client("producer.").settings
    assert (producer.security_protocol, producer.client_id) == ("SSL", "p")
    assert producer.bootstrap_servers == ("k1:9092", "k2:9092")
    assert worker.client().warnings == ()


def test_values_end_where_kafka_ends_them() -> None:
    """`enabled ` was no mode to a gate, and `g ` another group; Java trims controls, but no no-break space."""
    text = "group.id=g \t\nexactly.once.source.support=Enabled \nconfig.storage.topic=\\u0001c\\u00a0\n"
    worker = parse_worker_config(text, source="w")
    assert (worker.group_id, worker.exactly_once, worker.config_topic) == ("g", "enabled", "c\u00a0")
    assert worker.properties.values["group.id"] == "g"


def test_what_only_a_worker_can_resolve_is_not_taken_for_a_value() -> None:
    """`${env:GROUP}` was the name of the group, and `${env:EOS}` an error."""
    names = {
        "bootstrap.servers": "${env:KAFKA}:9092", "group.id": "${env:GROUP}", "offset.storage.topic": "${file:/x:o}",
        "exactly.once.source.support": "${env:EOS}", "rest.advertised.host.name": "${env:POD_IP}",
    }  # fmt: skip
    worker = parse_worker_config("".join(f"{name}={value}\n" for name, value in names.items()), source="w")
    assert (worker.bootstrap_servers, worker.group_id, worker.offset_topic, worker.rest_url) == ((), None, None, None)
    assert (worker.exactly_once, worker.client().settings.bootstrap_servers) == (None, ())
    assert set(worker.unresolved) == set(names)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(InputFileError, match=r"^w:1: exactly\.once\.source\.support: on is none of"):
        parse_worker_config("exactly.once.source.support=on", source="w")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("", None),
        ("listeners=http://:8083", None),
        ("listeners=http://0.0.0.0:8083\nrest.advertised.host.name=w1", "http://w1:8083"),
        ("listeners=http://a:1,https://a:2\nrest.advertised.listener=https", "https://a:2"),
        ("listeners=https://a:2,http://a:1", "http://a:1"),
        ("listeners=http://a:1\nrest.advertised.port=80", "http://a:80"),
    ],
)
def test_rest_url(text: str, url: str | None) -> None:
    assert parse_worker_config(text, source="w").rest_url == url


CERTIFICATE = (Path(__file__).parents[2] / "kafka" / "certificates" / "ca.pem").read_text()


@pytest.mark.parametrize(
    "value",
    [
        CERTIFICATE.replace("\n", "\\n"),
        CERTIFICATE.replace("\n", " "),
        CERTIFICATE.replace("\n", "\\n\\\n   "),
        CERTIFICATE.replace("\n", " \\\n"),
        CERTIFICATE.replace("\n", "\\\n"),
    ],
    ids=["escaped", "one line", "escaped and continued", "blank and continued", "continued"],
)
def test_pem_in_a_property_gets_its_lines_back(value: str) -> None:
    """OpenSSL took none of these but the first; Java takes them all."""
    settings = _settings(f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.certificates={value}")
    assert settings.ssl_ca_pem == CERTIFICATE.rstrip("\n")


def test_a_chain_and_a_key_on_one_line() -> None:
    chain = CERTIFICATE + CERTIFICATE
    settings = _settings(
        f"security.protocol=SSL\nssl.keystore.certificate.chain={chain.replace(chr(10), ' ')}\n"
        "ssl.keystore.key=-----BEGIN PRIVATE KEY----- QUJD REVG -----END PRIVATE KEY-----"
    )
    assert settings.ssl_certificate_pem == chain.rstrip("\n")
    assert settings.ssl_key_pem is not None
    assert settings.ssl_key_pem.reveal() == "-----BEGIN PRIVATE KEY-----\nQUJDREVG\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("request.timeout.ms=600000", "300000"),
        ("request.timeout.ms=5", "10"),
        ("socket.timeout.ms=600000", "300000"),
        ("send.buffer.bytes=-1", "its default"),
        ("receive.buffer.bytes=-1", "its default"),
        ("retry.backoff.ms=0", "1"),
        ("reconnect.backoff.max.ms=7200000", "3600000"),
        ("reconnect.backoff.max.ms=50", None),
        ("connections.max.idle.ms=-1", "its default"),
        ("connections.max.idle.ms=9223372036854775807", "2147483647"),
        ("metadata.max.age.ms=604800000", "86400000"),
        ("metadata.max.age.ms=0", "its default"),
        ("socket.connection.setup.timeout.ms=500", "1000"),
        ("client.dns.lookup=default", "its default"),
        ("client.dns.lookup=use_all_dns_ips", None),
        ("retry.backoff.ms=100", None),
    ],
)
def test_what_librdkafka_gets_in_place_of_a_value_is_noted(line: str, taken: str | None) -> None:
    notes = client_from_properties(parse_properties(f"\n{line}", source="f")).notes
    assert notes == ((f"f:2: {line}: librdkafka does not take it, and uses {taken}",) if taken else ())


def test_the_native_clients_keep_a_long_request_timeout() -> None:
    assert _settings("request.timeout.ms=600000").request_timeout_ms == 600_000
