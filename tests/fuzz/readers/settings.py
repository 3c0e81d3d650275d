"""Settings that somebody brings: properties, JAAS, key stores, profiles and the exporter's web-config."""

from __future__ import annotations

import io
import json

import bcrypt
import yaml

from eosctl.connectors.definition import read_definition
from eosctl.core.clients.properties import ClientProperties, client_from_properties, secrets_in
from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.clients.stores import StoreFile
from eosctl.core.java.properties import parse_properties, set_property
from eosctl.core.workers.config import parse_worker_config
from eosctl.errors import EosctlError, InputFileError
from eosctl.exporter.web.config import read_web_config
from eosctl.machine.files import NamedFiles
from eosctl.profiles.operations import edit_yaml
from eosctl.profiles.settings_files import with_stores
from eosctl.profiles.sources import parse_config
from tests.fuzz.mutation import BETWEEN
from tests.fuzz.reader import DisagreementError, Reader
from tests.fuzz.scratch import put
from tests.kafka.connecting import CERTIFICATES

_PROPERTIES = b"""# c\nbootstrap.servers=h:9092, i\\
  :9093
group.id = g
config.storage.topic:connect-configs
offset.storage.topic connect-offsets
listeners=http://:8083,https://[::1]:8443
rest.advertised.host.name=w
exactly.once.source.support=enabled
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b\\"c";
request.timeout.ms=30000
retry.backoff.ms=100
ssl.truststore.location=/t.jks
ssl.truststore.password=${file:/x:y}
a=\\u00e4
"""
_MIRROR_MAKER = b"""clusters = a, b
a.bootstrap.servers = h:9092
b.bootstrap.servers = i:9092
a->b.enabled = true
b.exactly.once.source.support = preparing
dedicated.mode.enable.internal.rest = true
"""


def _read_properties(data: bytes) -> object:
    """As a worker's file and as a client's; a setting that is put there is there, and nothing else changes."""
    text = data.decode("iso-8859-1")
    properties = parse_properties(text, source="f")
    edited = parse_properties(set_property(text, "group.id", "new"), source="f").values
    if edited != {**properties.values, "group.id": "new"}:
        raise DisagreementError("set_property")
    found = []
    for read in (lambda: parse_worker_config(text, source="f"), lambda: client_from_properties(properties)):
        try:
            found.append(read())
        except EosctlError:
            continue
    return found, secrets_in(properties)


def _read_jaas(data: bytes) -> object:
    mechanism, _between, line = data.partition(BETWEEN)
    values = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism.decode("utf-8", "replace"),
        "sasl.jaas.config": line.decode("utf-8", "surrogateescape"),
    }
    text = "".join(f"{name}={value}\n".replace("\\", "\\\\") for name, value in values.items())
    return client_from_properties(parse_properties(text, source="f"))


def _jaas() -> list[bytes]:
    scram = b'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b\\"c";'
    oauth = b"org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule REQUIRED clientId='i' "
    oauth += b'clientSecret="s" scope="x" extension_a="1" /* c */ ; // d'
    plain = b"org.apache.kafka.common.security.plain.PlainLoginModule required username=u password='\\101';"
    kerberos = b'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="p@R";'
    given = [(b"SCRAM-SHA-256", scram), (b"OAUTHBEARER", oauth), (b"PLAIN", plain), (b"GSSAPI", kerberos)]
    return [mechanism + BETWEEN + line for mechanism, line in given]


_STORE_SECRET = Secret("store-secret")


class _OneFile(NamedFiles):
    """A file of any name."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data

    def read(self, _path: object) -> bytes:
        return self._data


def _read_store(data: bytes) -> object:
    """As a truststore or a keystore; without a password, too, as then no digest hides what is damaged."""
    found = []
    for password in (_STORE_SECRET, None):
        file = StoreFile("f", ("truststore", "keystore")[len(data) % 2], "store", password, Secret("key-secret"))
        try:
            client = ClientProperties(ClientSettings(()), stores=(file,))
            found.append(with_stores(client, _OneFile(data)))
        except InputFileError:
            continue
    return found


def _stores(suffix: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(CERTIFICATES.glob(f"*.{suffix}"))]


_PROFILES = b"""# mine
current: a
profiles:
  a:
    bootstrap_server: [h:9092, i:9092]
    connect_url: https://w:8083
    group_id: g
    client: {security.protocol: SSL, ssl.ca.location: ~/ca.pem, sasl.password_env: X}
    connect:
      username: u
      password_command: "pass x"
    expect: {mode: enabled, workers: 3}
    ignore: [code/x]
  b: &b
    command_config: /x.properties
    connect_map: [a=http://b:8083]
  c:
    <<: *b
    audit_log: 2026-11-28
"""


def _read_profiles(data: bytes) -> object:
    """A config file, each of its profiles, and an edit of it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    file = parse_config(text, "f")
    found = []
    for name in file.profiles:
        try:
            found.append(file.profile(name))
            if len(found) == 1 and len(data) % 2:
                edit_yaml(text, ["profiles", name, "group_id"], "new", source="f")
        except EosctlError:
            continue
    return found


_LAUGHS = "a: &a [x,x]\n" + "".join(
    f"{to}: &{to} [{','.join([f'*{of}'] * 9)}]\n" for of, to in zip("abcdefgh", "bcdefghi", strict=True)
)


def _profiles() -> list[bytes]:
    small = b"current: x\nprofiles: {x: {bootstrap_server: h:9092, client: {sasl.password_env: X}, ignore: [a]}}\n"
    return [_PROFILES, small, _LAUGHS.encode() + b"profiles: {a: {connect_url: *i}}\n"]


def _web_configs() -> list[bytes]:
    full = {
        "tls_server_config": {
            "cert_file": "c.pem", "key_file": "k.pem", "client_ca_file": "ca.pem", "min_version": "TLS12",
            "client_auth_type": "RequireAndVerifyClientCert", "client_allowed_sans": ["a"], "cipher_suites": ["x"],
        },
        "http_server_config": {"http2": False, "headers": {"X-Frame-Options": "deny"}},
        "basic_auth_users": {"u": bcrypt.hashpw(b"x", bcrypt.gensalt(4, b"2b")).decode()},
        "rate_limit": {"interval": "1s", "burst": 5},
    }  # fmt: skip
    return [yaml.safe_dump(full).encode(), json.dumps(full).encode(), b"", _LAUGHS.encode()]


def _read_definition(data: bytes) -> object:
    """A connector's: each setting is a text that can be sent."""
    found = read_definition("-", stdin=io.BytesIO(data))
    json.dumps([found.name, dict(found.config), found.state], ensure_ascii=False).encode()
    if not all(isinstance(value, str) for value in found.config.values()):
        raise DisagreementError("no text")
    return found.changed(name="d", settings=["a=b"])


def _definitions() -> list[bytes]:
    body = {"name": "c", "config": {"connector.class": "X", "n": 1, "f": 1.5, "b": True}, "initial_state": "STOPPED"}
    strimzi = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaConnector",
        "metadata": {"name": "c", "labels": {"strimzi.io/cluster": "m"}},
        "spec": {"class": "X", "tasksMax": 1, "state": "paused", "pause": True, "config": {"a": 1, "b": 0.1}},
    }
    return [json.dumps(body).encode(), yaml.safe_dump(body).encode(), b"---\n" + yaml.safe_dump(strimzi).encode()]


SETTINGS = [
    Reader("connector definition", _read_definition, _definitions),
    Reader("properties", _read_properties, lambda: [_PROPERTIES, _MIRROR_MAKER]),
    Reader("jaas", _read_jaas, _jaas),
    Reader("jks", _read_store, lambda: _stores("jks")),
    Reader("pkcs12", _read_store, lambda: _stores("p12"), most_s=5),
    Reader("profiles", _read_profiles, _profiles, most_bytes=2_500),
    Reader("web-config", lambda data: read_web_config(put("web.yml", data)), _web_configs, most_bytes=2_500),
]
