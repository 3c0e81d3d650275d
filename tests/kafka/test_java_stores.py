"""JKS and PKCS12 stores of other people's settings, made by keytool and openssl (certificates/stores.sh)."""

from __future__ import annotations

import ssl
import tempfile
from importlib import import_module
from pathlib import Path

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.java.keystores import decrypt_key, read_jks
from eosctl.errors import InputFileError, UnauthorizedError, UnreachableError
from tests.conftest import Invoke
from tests.fakes.broker import FakeCluster
from tests.kafka.connecting import CERTIFICATES, connect_with, librdkafka_connects
from tests.kafka.test_connection_security import CA, server_context

SECRET = "store-secret"


def _settings(tmp_path: Path, servers: tuple[str, ...], **stores: str) -> ClientSettings:
    """What `--command-config` comes to, with `stores` as its further lines."""
    lines = [f"bootstrap.servers={','.join(servers)}", "security.protocol=SSL"]
    lines += [f"ssl.{name.replace('_', '.')}={value}" for name, value in stores.items()]
    file = tmp_path / "client.properties"
    file.write_text("\n".join(lines))
    file.chmod(0o600)
    session = import_module("eosctl.commands.frame.session").Session(
        environ={"XDG_CONFIG_HOME": str(tmp_path / "none")}
    )
    session.flags["command_config"] = str(file)
    settings: ClientSettings = session.target().require_client()
    return settings


def _trust(name: str, secret: str = SECRET) -> dict[str, str]:
    return {"truststore_location": str(CERTIFICATES / name), "truststore_password": secret}


def _key(name: str, secret: str = SECRET, **more: str) -> dict[str, str]:
    return {"keystore_location": str(CERTIFICATES / name), "keystore_password": secret, **more}


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12", "legacy-trust.p12"])
@pytest.mark.parametrize("kind", [{}, {"truststore_type": "JKS"}])
def test_a_truststore_is_taken_by_both_clients(tmp_path: Path, name: str, kind: dict[str, str]) -> None:
    """Java opens PKCS12 under the type JKS, too."""
    with FakeCluster(tls=server_context("server")) as cluster:
        settings = _settings(tmp_path, cluster.bootstrap_servers, **_trust(name), **kind)
        assert connect_with(settings) == "fake-cluster-id"
        assert librdkafka_connects(settings)


def test_a_truststore_without_the_authority_is_not_enough(tmp_path: Path) -> None:
    with FakeCluster(tls=server_context("server")) as cluster:
        settings = _settings(tmp_path, cluster.bootstrap_servers, **_trust("openssl-key.p12"))
        with pytest.raises(UnauthorizedError, match="not trusted"):
            connect_with(settings)


@pytest.mark.parametrize(
    "keystore",
    [
        _key("key.jks", key_password="key-secret"),
        *(_key(name) for name in ("key.p12", "legacy-key.p12", "openssl-key.p12")),
    ],
    ids=lambda keystore: Path(keystore["keystore_location"]).name,
)
def test_a_keystore_is_shown_by_both_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keystore: dict[str, str]
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with FakeCluster(tls=server_context("server", client_ca=CA)) as cluster:
        settings = _settings(tmp_path, cluster.bootstrap_servers, **_trust("trust.jks"), **keystore)
        assert "PRIVATE" not in repr(settings)
        assert connect_with(settings) == "fake-cluster-id"
        assert librdkafka_connects(settings)
        without = _settings(tmp_path, cluster.bootstrap_servers, **_trust("trust.jks"))
        with pytest.raises((UnauthorizedError, UnreachableError)):
            connect_with(without)
    assert list(temporary.iterdir()) == [], "no key may stay in a file"


@pytest.mark.parametrize(
    ("stores", "words"),
    [
        (_trust("trust.jks", "wrong-secret"), "the password is wrong"),
        (_trust("trust.p12", "wrong-secret"), "the password is wrong"),
        (_trust("trust.p12", ""), "a PKCS12 store needs its password"),
        (_trust("make.sh"), "neither a JKS nor a PKCS12 store"),
        (_key("trust.jks"), "it holds no private key"),
        (_key("trust.p12"), "it holds no private key"),
        (_key("key.jks"), "the password of its private key is wrong"),
        (_key("key.jks", ""), "its private key needs ssl.keystore.password"),
        (_trust("missing.jks"), "missing.jks"),
    ],
)
def test_what_can_not_be_opened_says_why_and_how_to_convert(
    invoke: Invoke, tmp_path: Path, stores: dict[str, str], words: str
) -> None:
    lines = [f"ssl.{name.replace('_', '.')}={value}" for name, value in stores.items()]
    file = tmp_path / "client.properties"
    file.write_text("\n".join(["bootstrap.servers=a:1", "security.protocol=SSL", *lines]))
    file.chmod(0o600)
    outcome = invoke("fence", "x", "--command-config", str(file))
    assert outcome.exit_code == 2
    assert words in outcome.stderr
    assert "-secret" not in outcome.stderr
    if "missing" not in words:
        assert f"{file}:3: ssl." in outcome.stderr
        assert "keytool -importkeystore -srckeystore" in outcome.stderr


def test_a_quote_in_a_path_survives_the_conversion_command(tmp_path: Path) -> None:
    store = tmp_path / "a b$(x).jks"
    store.write_bytes(b"nothing")
    with pytest.raises(InputFileError) as caught:
        _settings(tmp_path, ("a:1",), truststore_location=str(store))
    assert f"-srckeystore '{store}' -dest" in (caught.value.hint or "")


def test_a_profile_is_shown_without_opening_its_stores(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=a:1\nsecurity.protocol=SSL\nssl.truststore.location=/none.jks\n")
    shown = invoke("profile", "show", "--command-config", str(file))
    assert (shown.exit_code, "/none.jks" in shown.stdout) == (0, True)


@pytest.mark.parametrize("name", ["trust.jks", "key.jks"])
def test_every_cut_of_a_jks_file_is_refused(name: str) -> None:
    data = (CERTIFICATES / name).read_bytes()
    for length in range(len(data)):
        with pytest.raises(ValueError, match=r"cut off|no JKS store|left over|kind"):
            read_jks(data[:length], None)
    with pytest.raises(ValueError, match="left over"):
        read_jks(data + b"x", None)
    with pytest.raises(ValueError, match="password is wrong"):
        read_jks(data[:30] + bytes([data[30] ^ 1]) + data[31:], "store-secret")


def test_every_cut_of_a_protected_key_is_refused() -> None:
    [entry] = read_jks((CERTIFICATES / "key.jks").read_bytes(), "store-secret").keys
    assert decrypt_key(entry, "key-secret").startswith(b"\x30")
    for length in range(len(entry.protected)):
        with pytest.raises(ValueError, match=r"malformed|wrong|does not know"):
            decrypt_key(type(entry)(entry.protected[:length], entry.chain), "key-secret")


def test_a_jks_store_has_the_certificates_that_openssl_reads() -> None:
    found = read_jks((CERTIFICATES / "trust.jks").read_bytes(), "store-secret").trusted
    pem = [(CERTIFICATES / name).read_text() for name in ("ca.pem", "other-ca.pem")]
    assert sorted(found) == sorted(ssl.PEM_cert_to_DER_cert(text) for text in pem)
