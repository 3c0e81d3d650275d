"""REST over real TLS: authorities, client certificates, basic authentication, tokens; and to whom none of them goes."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from eosctl.connect.rest import RestConnectWorker
from eosctl.connect.signing import signature_headers
from eosctl.core.clients.settings import Secret
from eosctl.core.workers.access import ConnectAccess
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError, InputFileError, RefusedError, UnauthorizedError, UnreachableError
from tests.conftest import Invoke
from tests.fakes.clock import PLENTY_S
from tests.fakes.http_server import serving

ROOT = {"version": "4.3.1", "commit": "abc", "kafka_cluster_id": "cluster-1"}
BASIC = "Basic " + base64.b64encode(b"ann:canary-pw").decode()


@dataclass
class Served:
    """One HTTPS server: what it was asked, as (path, Authorization, common name of the client's certificate)."""

    port: int
    answer: tuple[int, dict[str, str]] = (200, {})
    asked: list[tuple[str, str | None, bool]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


@dataclass
class Place:
    """The authority that everybody here trusts, and files of what it issued."""

    directory: Path
    authority: trustme.CA

    @property
    def ca(self) -> str:
        path = self.directory / "ca.pem"
        self.authority.cert_pem.write_to_path(path)
        return str(path)

    def certificate(self) -> str:
        """A client certificate and its key in one private file."""
        path = self.directory / "client.pem"
        self.authority.issue_cert("client").private_key_and_cert_chain_pem.write_to_path(path)
        path.chmod(0o600)
        return str(path)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, trustme.CA())


@pytest.fixture(params=[False])
def served(place: Place, request: pytest.FixtureRequest) -> Iterator[Served]:
    """An HTTPS server; with the parameter True it wants a client certificate."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            has_certificate = bool(self.connection.getpeercert())
            shared.asked.append((self.path, self.headers["Authorization"], has_certificate))
            status, headers = shared.answer
            body = json.dumps(ROOT).encode()
            self.send_response(status)
            for name, value in {
                **headers,
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            self.do_GET()

        def log_message(self, *_args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_args: object) -> None:
            """Handshakes that fail are what some tests are about."""

    httpd = Quiet(("127.0.0.1", 0), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    place.authority.issue_cert("127.0.0.1").configure_cert(context)
    place.authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED if request.param else ssl.CERT_OPTIONAL
    httpd.socket = context.wrap_socket(httpd.socket, server_side=True, do_handshake_on_connect=False)
    shared = Served(httpd.server_address[1])
    with serving(httpd):
        yield shared


def worker(served: Served, **access: Any) -> RestConnectWorker:
    return RestConnectWorker(served.url, deadline=Deadline.after(PLENTY_S), access=ConnectAccess(**access))


PASSWORD: dict[str, Any] = {"username": "ann", "password": Secret("canary-pw")}
TOKEN: dict[str, Any] = {"token": Secret("canary-token")}


@pytest.mark.parametrize(("given", "sent"), [({}, None), (PASSWORD, BASIC), (TOKEN, "Bearer canary-token")])
def test_credentials_go_to_a_named_worker(served: Served, place: Place, given: Any, sent: str | None) -> None:
    assert worker(served, ca=place.ca, named=frozenset({served.url}), **given).root() == ROOT
    assert served.asked == [("/", sent, False)]


@pytest.mark.parametrize("given", [PASSWORD, TOKEN], ids=["password", "token"])
def test_credentials_do_not_go_to_a_worker_that_only_the_group_named(served: Served, place: Place, given: Any) -> None:
    served.answer = (401, {})
    elsewhere = frozenset(
        {f"http://127.0.0.1:{served.port}", "https://127.0.0.1:1", f"https://localhost:{served.port}"}
    )
    with pytest.raises(UnauthorizedError) as caught:
        worker(served, ca=place.ca, named=elsewhere, certificate=place.certificate(), **given).root()
    assert served.asked == [("/", None, False)]
    assert "were not sent" in str(caught.value.hint)


@pytest.mark.parametrize(
    "send",
    [lambda w: w.fence("c", signature_headers(b"key")), lambda w: w.put_connector_config("c", {"password": "canary"})],
    ids=["signature", "config"],
)
def test_a_signature_and_a_config_go_to_named_workers_alone(
    served: Served, place: Place, send: Callable[[RestConnectWorker], None]
) -> None:
    """The one opens each connector's /fence, in the other are passwords: both went where a member said that it is."""
    elsewhere = frozenset({f"http://127.0.0.1:{served.port}", "https://127.0.0.1:1"})
    with pytest.raises(RefusedError) as caught:
        send(worker(served, ca=place.ca, named=elsewhere))
    assert served.asked == []
    assert f"-u {served.url}." in str(caught.value.hint)
    send(worker(served, ca=place.ca, named=frozenset({served.url})))
    send(worker(served, ca=place.ca, trust_discovered=True))
    assert len(served.asked) == 2


@pytest.mark.parametrize("given", [PASSWORD, TOKEN], ids=["password", "token"])
def test_unless_every_member_may_have_them(served: Served, place: Place, given: Any) -> None:
    worker(served, ca=place.ca, trust_discovered=True, certificate=place.certificate(), **given).root()
    [(_path, authorization, has_certificate)] = served.asked
    assert authorization
    assert has_certificate


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_credentials_do_not_follow_a_redirect(served: Served, place: Place, status: int) -> None:
    served.answer = (status, {"Location": f"{served.url}/elsewhere"})
    with pytest.raises(ConnectError, match="redirects"):
        worker(served, ca=place.ca, named=frozenset({served.url}), **TOKEN).root()
    assert [path for path, _authorization, _certificate in served.asked] == ["/"]


@pytest.mark.parametrize("served", [True], indirect=True)
def test_a_client_certificate(served: Served, place: Place) -> None:
    named = frozenset({served.url})
    worker(served, ca=place.ca, named=named, certificate=place.certificate()).root()
    assert served.asked == [("/", None, True)]
    with pytest.raises(UnreachableError) as caught:
        worker(served, ca=place.ca, named=named).root()
    assert "--connect-certificate" in str(caught.value.hint)
    with pytest.raises(UnreachableError) as caught:
        worker(served, ca=place.ca, certificate=place.certificate()).root()
    assert "were not sent" in str(caught.value.hint)


def test_an_unknown_authority_is_not_trusted(served: Served, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    for ca in (None, str(other)):
        with pytest.raises(UnreachableError) as caught:
            worker(served, ca=ca, named=frozenset({served.url}), **TOKEN).root()
        assert "--connect-ca" in str(caught.value.hint)
    assert served.asked == []


def test_a_certificate_for_another_host_is_not_taken(served: Served, place: Place) -> None:
    url = f"https://localhost:{served.port}"
    access = ConnectAccess(ca=place.ca, named=frozenset({url}), token=Secret("canary-token"))
    with pytest.raises(UnreachableError):
        RestConnectWorker(url, deadline=Deadline.after(PLENTY_S), access=access).root()
    assert served.asked == []


@pytest.mark.parametrize("which", ["ca", "certificate"])
@pytest.mark.parametrize("content", [None, "no certificate"])
def test_files_that_are_no_certificates(served: Served, tmp_path: Path, which: str, content: str | None) -> None:
    file = tmp_path / "file.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputFileError) as caught:
        worker(served, trust_discovered=True, **{which: str(file)})
    assert str(file) in caught.value.message


def test_an_encrypted_key_without_its_password_is_no_question(served: Served, place: Place, tmp_path: Path) -> None:
    """OpenSSL asks on the terminal when no password is given at all."""
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    issued = place.authority.issue_cert("client")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"canary-pw"))
    (tmp_path / "key.pem").write_bytes(encrypted)
    (tmp_path / "chain.pem").write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    files = {"ca": place.ca, "certificate": str(tmp_path / "chain.pem"), "key": str(tmp_path / "key.pem")}
    named = frozenset({served.url})
    with pytest.raises(InputFileError, match="can't load the client certificate"):
        worker(served, named=named, **files)
    worker(served, named=named, key_password=Secret("canary-pw"), **files).root()
    assert served.asked == [("/", None, True)]


def test_nothing_of_it_is_in_a_repr() -> None:
    secrets: dict[str, Any] = {"key_password": Secret("canary-1"), "of_urls": {"x": Secret("canary-2")}}
    access = ConnectAccess(**secrets, **PASSWORD, **TOKEN)
    assert "canary" not in repr(access)


# as typed -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("canary-pw\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("by", ["options", "environment", "profile"])
def test_a_command_shows_itself_to_a_worker(
    invoke: Invoke, served: Served, place: Place, secret_file: Path, tmp_path: Path, by: str
) -> None:
    args, environ = ["-u", served.url], {}
    if by == "options":
        args += ["--connect-ca", place.ca, "--connect-certificate", place.certificate()]
        args += ["--connect-username", "ann", "--connect-password-file", str(secret_file)]
    elif by == "environment":
        environ = {"EOSCTL_CONNECT_CA": place.ca, "EOSCTL_CONNECT_CERTIFICATE": place.certificate()}
        environ |= {"EOSCTL_CONNECT_USERNAME": "ann", "EOSCTL_CONNECT_PASSWORD": "canary-pw"}
    else:
        connect = {"ca": place.ca, "certificate": place.certificate(), "username": "ann"}
        connect |= {"password_command": f"cat {secret_file}"}
        config = tmp_path / "config.yaml"
        config.write_text(json.dumps({"profiles": {"p": {"connect_url": served.url, "connect": connect}}}))
        config.chmod(0o644)
        args = ["--config", str(config), "-p", "p"]
    done = invoke("workers", "list", *args, environ=environ)
    assert ("/", BASIC, True) in served.asked, done.stderr
    assert {authorization for _path, authorization, _certificate in served.asked} == {BASIC}
    assert "canary" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("args", "environ", "exit_code", "words"),
    [
        (["-u", "http://ann:canary-pw@h:1"], {}, 2, "can be read by everyone"),
        (["--connect-username", "ann"], {}, 2, "has no password"),
        (["--connect-password-file", "SECRET"], {}, 2, "has no username"),
        (["--connect-key", "SECRET"], {}, 2, "needs its certificate"),
        (["--connect-token-file", "SECRET"], {"EOSCTL_CONNECT_PASSWORD": "canary-pw"}, 2, "a token (flag) and a pass"),
        (["--connect-token-file", "SHARED"], {}, 6, "chmod 600"),
        (["--connect-token-file", "/nowhere"], {}, 2, "cannot read /nowhere"),
        (["--connect-certificate", "SHARED"], {}, 6, "holds a private key and has mode 0644"),
    ],
)
def test_what_is_refused(
    invoke: Invoke, secret_file: Path, args: list[str], environ: dict[str, str], exit_code: int, words: str
) -> None:
    shared = secret_file.with_name("shared")
    shared.write_text("canary-pw")
    shared.chmod(0o644)
    files = {"SECRET": str(secret_file), "SHARED": str(shared)}
    done = invoke("workers", "list", *(files.get(word, word) for word in args), environ=environ)
    assert done.exit_code == exit_code, done.stderr
    assert words in done.stderr
    assert "canary" not in done.stdout + done.stderr


def test_a_url_in_the_environment_may_carry_a_password(invoke: Invoke, served: Served, place: Place) -> None:
    environ = {"EOSCTL_CONNECT_URL": f"https://ann:canary-pw@127.0.0.1:{served.port}"}
    done = invoke("workers", "list", "--connect-ca", place.ca, environ=environ)
    assert served.asked[0][1] == BASIC
    assert "canary" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "text", ["canary-1\n# rotated", "canary-1\rcanary-2", "canary-\u20ac", "canary 1", "\x01canary", "\n"]
)
@pytest.mark.parametrize("way", ["file", "variable", "command"])
def test_what_no_header_can_hold_is_no_token(
    invoke: Invoke, secret_file: Path, tmp_path: Path, text: str, way: str
) -> None:
    """Python's own error has the whole header, and was printed: `Invalid header value b'Bearer …'`."""
    secret_file.write_text(text, encoding="utf-8")
    args, environ = ["-u", "http://127.0.0.1:1"], {"EOSCTL_CONNECT_TOKEN": text}
    if way == "file":
        args, environ = [*args, "--connect-token-file", str(secret_file)], {}
    if way == "command":
        config = tmp_path / "config.yaml"
        config.write_text(json.dumps({"profiles": {"p": {"connect": {"token_command": f"cat {secret_file}"}}}}))
        config.chmod(0o600)
        args, environ = [*args, "--config", str(config), "-p", "p"], {}
    done = invoke("workers", "list", *args, "-vv", environ=environ)
    assert done.exit_code == 2, done.stderr
    assert "canary" not in done.stdout + done.stderr
