"""Which CA certificates are trusted, by a real TLS server and both kinds of client."""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.java.keystores import anchors_pem
from eosctl.errors import UnauthorizedError
from eosctl.kafka.topics.librdkafka import client_properties
from tests.fakes.broker import FakeCluster
from tests.kafka.connecting import CERTIFICATES, connect, librdkafka_connects


@pytest.fixture(scope="module")
def authorities() -> dict[str, trustme.CA]:
    root = trustme.CA()
    return {"root": root, "intermediate": root.create_child_ca(), "other": trustme.CA().create_child_ca()}


@pytest.fixture(scope="module")
def server(authorities: dict[str, trustme.CA]) -> ssl.SSLContext:
    """The certificate of a broker that sends the intermediate's along, as most do."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authorities["intermediate"].issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return context


def _pem(authority: trustme.CA) -> str:
    return authority.cert_pem.bytes().decode()


def _settings(cluster: FakeCluster, **given: Any) -> ClientSettings:
    return ClientSettings(cluster.bootstrap_servers, security_protocol="SSL", **given)


@pytest.mark.parametrize("given", ["file", "inline"])
@pytest.mark.parametrize(
    ("known", "trusted"),
    [(("root",), True), (("intermediate",), True), (("other", "intermediate"), True), (("other",), False)],
)
def test_each_certificate_of_a_truststore_is_an_anchor(
    authorities: dict[str, trustme.CA],
    server: ssl.SSLContext,
    tmp_path: Path,
    known: tuple[str, ...],
    trusted: bool,
    given: str,
) -> None:
    """An intermediate CA alone is enough for Java; OpenSSL wanted its root too, natively and in librdkafka."""
    pem = "".join(_pem(authorities[name]) for name in known)
    file = tmp_path / "ca.pem"
    file.write_text(pem)
    ca: dict[str, Any] = {"ssl_ca_location": str(file)} if given == "file" else {"ssl_ca_pem": pem}
    with FakeCluster(tls=server) as cluster:
        assert librdkafka_connects(_settings(cluster, **ca)) is trusted
        if trusted:
            assert connect(cluster.bootstrap_servers, security_protocol="SSL", **ca) == "fake-cluster-id"
        else:
            with pytest.raises(UnauthorizedError, match="not trusted"):
                connect(cluster.bootstrap_servers, security_protocol="SSL", **ca)


def test_nothing_stays_of_the_authorities_of_a_process_that_is_ended(
    authorities: dict[str, trustme.CA], tmp_path: Path
) -> None:
    """Each killed command, and each worker process of Spark's, left a file in the temporary folder."""
    ask = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from eosctl.core.clients.settings import ClientSettings\n"
        "from eosctl.kafka.topics.librdkafka import client_properties\n"
        "settings = ClientSettings(('a:1',), security_protocol='SSL', ssl_ca_pem=sys.argv[1])\n"
        "print(Path(client_properties(settings)['ssl.ca.location']).read_text(), end='', flush=True)\n"
        "os._exit(0)\n"
    )
    pem = _pem(authorities["intermediate"])
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", ask, pem], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == anchors_pem(pem)
    assert list(tmp_path.iterdir()) == []


def test_roots_are_handed_to_librdkafka_as_they_are() -> None:
    """Only an intermediate needs a form of its own, and a file for it."""
    ca = str(CERTIFICATES / "ca.pem")
    settings = ClientSettings(("a:1",), security_protocol="SSL", ssl_ca_location=ca)
    assert client_properties(settings)["ssl.ca.location"] == ca


def test_an_anchor_is_the_certificate_and_what_it_is_trusted_for() -> None:
    certificate = (CERTIFICATES / "ca.pem").read_text()
    plain = ssl.PEM_cert_to_DER_cert(certificate)
    body = anchors_pem(certificate).replace("TRUSTED ", "")
    assert base64.b64decode("".join(body.splitlines()[1:-1])).startswith(plain)
