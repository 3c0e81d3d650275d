"""Bearer tokens: how the token endpoint is known, tokens that end while eosctl works, and commands that print them."""

from __future__ import annotations

import itertools
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from eosctl.core.clients.properties import client_from_properties
from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.java.properties import parse_properties
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, InputFileError, ProtocolError, UnauthorizedError, UnreachableError, UsageError
from eosctl.kafka.oauth import TokenSource, fetch_token
from eosctl.kafka.topics.librdkafka import client_properties
from tests.conftest import Invoke
from tests.fakes.broker import FakeCluster
from tests.fakes.clock import PLENTY_S, FakeTime
from tests.fakes.dripping import answering
from tests.kafka.connecting import CERTIFICATES, connect, librdkafka_connects
from tests.kafka.test_connection_security import client_credentials, sasl, token_endpoint


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def endpoint_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def _answer(*_asked: str) -> tuple[int, bytes]:
    return 200, json.dumps({"access_token": "the-token", "expires_in": 60}).encode()


def test_an_audience_is_part_of_the_request() -> None:
    asked: list[str] = []

    def answer(_authorization: str, body: str) -> tuple[int, bytes]:
        asked.append(body)
        return 200, json.dumps({"access_token": "the-token", "expires_in": 60}).encode()

    with token_endpoint(answer) as url:
        settings = ClientSettings(("h:1",), **client_credentials(url), oauth_audience="brokers")
        assert fetch_token(settings, Deadline.after(PLENTY_S)).text == "the-token"
        assert "oauth_cb" in client_properties(settings)  # librdkafka's own way sends none
    assert asked[0] == "grant_type=client_credentials&scope=kafka+admin&audience=brokers"


def test_the_endpoint_is_known_by_its_own_authority(
    authority: trustme.CA, endpoint_context: ssl.SSLContext, tmp_path: Path
) -> None:
    """It was held against the brokers' CA, which seldom signs for the identity provider."""
    pem, brokers = authority.cert_pem.bytes().decode(), str(CERTIFICATES / "ca.pem")
    file = tmp_path / "ca.pem"
    file.write_text(pem)
    with token_endpoint(_answer, context=endpoint_context) as url, FakeCluster(users={"": "the-token"}) as cluster:
        login = client_credentials(url)
        enough: list[dict[str, Any]] = [
            {"oauth_ca_pem": pem},
            {"oauth_ca_location": str(file), "ssl_ca_location": brokers},
        ]
        for given in enough:
            assert connect(cluster.bootstrap_servers, **login, **given) == "fake-cluster-id"
        useless: list[dict[str, Any]] = [{}, {"ssl_ca_pem": pem}, {"ssl_ca_location": str(file)}]
        for given in useless:
            with pytest.raises(UnreachableError, match="can't get a token") as caught:
                connect(cluster.bootstrap_servers, **login, **given)
            assert "sasl.jaas.config" in (caught.value.hint or "")


def test_an_endpoint_behind_a_proxy_need_not_be_known_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name was looked up on this machine, though only the proxy of the environment knows it."""
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with token_endpoint(_answer) as proxy:
        monkeypatch.setenv("http_proxy", proxy.removesuffix("/token"))
        settings = ClientSettings(
            ("kafka.invalid:9092",),
            oauth_token_endpoint_url="http://idp.invalid/token",
            oauth_client_id="app",
            oauth_client_secret=Secret("hush"),
        )
        assert fetch_token(settings, Deadline.after(PLENTY_S)).text == "the-token"


def test_a_folder_of_the_brokers_authorities_is_no_hindrance(tmp_path: Path) -> None:
    """It was opened as a file: `Is a directory`, also where the endpoint spoke no TLS at all."""
    with token_endpoint(_answer) as url, FakeCluster(users={"": "the-token"}) as cluster:
        login = client_credentials(url) | {"ssl_ca_location": str(tmp_path)}
        assert connect(cluster.bootstrap_servers, **login) == "fake-cluster-id"


def _settings(*lines: str) -> ClientSettings:
    text = "\n".join(("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=OAUTHBEARER", *lines))
    return client_from_properties(parse_properties(text, source="f")).settings


JAAS = "sasl.jaas.config=x.OAuthBearerLoginModule required clientId=c clientSecret=s"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url=https://idp/token"


def test_the_options_of_the_jaas_line_tell_the_authority() -> None:
    settings = _settings(ENDPOINT, f'{JAAS} ssl.truststore.type=PEM ssl.truststore.location="/idp.pem";')
    assert (settings.oauth_ca_location, settings.ssl_ca_location) == ("/idp.pem", None)
    assert client_properties(settings)["https.ca.location"] == "/idp.pem"
    assert _settings(ENDPOINT, "https.ca.location=/idp.pem").oauth_ca_location == "/idp.pem"


def test_a_java_truststore_of_the_endpoint_is_opened(invoke: Invoke, tmp_path: Path) -> None:
    store = CERTIFICATES / "trust.jks"
    options = f'ssl.truststore.location="{store}" ssl.truststore.password="wrong-secret"'
    file = tmp_path / "client.properties"
    lines = ("bootstrap.servers=a:1", "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=OAUTHBEARER", ENDPOINT)
    file.write_text("\n".join([*lines, f"{JAAS} {options};"]))
    file.chmod(0o600)
    outcome = invoke("fence", "x", "--command-config", str(file))
    assert outcome.exit_code == 2
    assert f"{file}:5: sasl.jaas.config: ssl.truststore.location: can't open {store}" in outcome.stderr
    file.write_text(file.read_text().replace("wrong-secret", "store-secret"))
    shown = invoke("fence", "x", "--command-config", str(file), "--timeout", "300s")
    assert "can't open" not in shown.stderr


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((ENDPOINT, f"{JAAS} ssl.keystore.location=x;"), "client certificate for the token endpoint"),
        (("sasl.mechanism=AWS_MSK_IAM",), "does not sign for AWS_MSK_IAM"),
        (
            (
                "sasl.mechanism=SCRAM-SHA-512",
                'sasl.jaas.config=x.ScramLoginModule required username=i password="s3cret" tokenauth="true";',
            ),
            "delegation tokens (tokenauth=true)",
        ),
        ((), "or sasl.oauthbearer.token_command"),
    ],
)
def test_what_is_not_supported_is_named(lines: tuple[str, ...], words: str) -> None:
    with pytest.raises(InputFileError) as caught:
        _settings(*lines)
    assert words in caught.value.message
    assert "s3cret" not in f"{caught.value.message} {caught.value.hint}"


def test_aws_with_a_command_is_oauthbearer() -> None:
    """The brokers that take the one take the other; the line for the Java login module may stay."""
    settings = _settings(
        "sasl.mechanism=AWS_MSK_IAM",
        "sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required;",
        "sasl.oauthbearer.token_command=sign",
    )
    assert (settings.sasl_mechanism, settings.oauth_token_command) == ("OAUTHBEARER", "sign")


# -- tokens that end


class _Endpoint:
    """Answers with a new token each time, good for 100 s; `down`: it has none."""

    def __init__(self) -> None:
        self.asked, self.down = 0, False

    def __call__(self, *_asked: str) -> tuple[int, bytes]:
        self.asked += 1
        if self.down:
            return 503, b"down"
        return 200, json.dumps({"access_token": f"token-{self.asked}", "expires_in": 100}).encode()


def test_a_token_is_fetched_again_before_it_ends() -> None:
    """One token was used as long as eosctl ran: a long run ended in `invalid_token`."""
    time, endpoint = FakeTime(), _Endpoint()
    with token_endpoint(endpoint) as url:
        settings = ClientSettings(("a:1",), **client_credentials(url))
        source, deadline = TokenSource(settings), Deadline.after(10_000, time.clock())
        assert [source.token(deadline), source.token(deadline)] == ["token-1", "token-1"]
        time.pass_until(79)
        assert source.token(deadline) == "token-1"
        time.pass_until(81)
        assert source.token(deadline) == "token-2"
        endpoint.down = True
        time.pass_until(171)
        assert source.token(deadline) == "token-2", "it is good for ten seconds more"
        time.pass_until(182)
        with pytest.raises(EosctlError, match="503"):
            source.token(deadline)
        endpoint.down = False
        assert source.token(deadline).startswith("token-")


def dripping() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    yield from itertools.repeat(b" ")


@pytest.mark.timeout(PLENTY_S)
def test_an_endpoint_that_drips_keeps_nobody_past_the_deadline() -> None:
    """Each byte began the wait anew."""
    with answering(dripping, pause_s=0.1) as url, pytest.raises(UnreachableError):
        fetch_token(ClientSettings(("a:1",), **client_credentials(url)), Deadline.after(0.5))


def test_an_endpoint_that_redirects_gets_no_password_for_another() -> None:
    """The client's id and secret were sent to wherever the endpoint said."""
    asked: list[str] = []

    def other(authorization: str, _body: str) -> tuple[int, bytes]:
        asked.append(authorization)
        return 200, b'{"access_token": "x"}'

    with token_endpoint(other) as elsewhere:
        for status in (b"302 Found", b"303 See Other", b"307 Temporary Redirect"):
            answer = b"HTTP/1.1 %s\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % (status, elsewhere.encode())
            with answering(lambda answer=answer: [answer]) as url, pytest.raises(UnauthorizedError):  # type: ignore[misc]
                fetch_token(ClientSettings(("a:1",), **client_credentials(url)), Deadline.after(PLENTY_S))
    assert asked == []


@pytest.mark.parametrize(
    "answer",
    [
        {"access_token": {"a": 1}},
        {"access_token": "a\nb"},
        {"access_token": ""},
        {"token": "x"},
        ["access_token"],
    ],
)
def test_an_answer_without_a_token(answer: object) -> None:
    with token_endpoint(lambda *_asked: (200, json.dumps(answer).encode())) as url, pytest.raises(ProtocolError):
        fetch_token(ClientSettings(("a:1",), **client_credentials(url)), Deadline.after(PLENTY_S))


@pytest.mark.parametrize(
    ("expires_in", "lifetime_s"),
    [("60", 60), ("1" * 400, 300), ("1e999", 300), ("NaN", 300), ("true", 300), ("-5", 300), ('"60"', 300)],
)
def test_how_long_a_token_lives(expires_in: str, lifetime_s: float) -> None:
    """A number of 400 digits was a raw OverflowError."""
    answer = b'{"access_token": "x", "expires_in": %s}' % expires_in.encode()
    time = FakeTime()
    with token_endpoint(lambda *_asked: (200, answer)) as url:
        deadline = Deadline.after(PLENTY_S, time.clock())
        found = fetch_token(ClientSettings(("a:1",), **client_credentials(url)), deadline)
    assert found.expires_s == pytest.approx(time.clock().now_s() + lifetime_s, abs=1)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://client:hunter2@idp/token", "https://***@idp/token"),
        ("ftp://client:hunter2@idp/token", "ftp://***@idp/token"),
        ("https://idp:hunter/token", "https://idp:hunter/token"),
        ("https://idp/to ken?key=hunter2", "https://idp/token?…"),
        ("https:///token", "https:///token"),
    ],
)
def test_an_endpoint_that_can_t_be_one(url: str, shown: str) -> None:
    """The password in a URL was printed, and a port that is no number was a raw ValueError."""
    with pytest.raises(UsageError) as caught:
        fetch_token(ClientSettings(("a:1",), **client_credentials(url)), Deadline.after(PLENTY_S))
    assert shown in caught.value.message
    assert "hunter2" not in f"{caught.value.message} {caught.value.hint}"


# -- commands


def _command(tmp_path: Path, token: str) -> dict[str, Any]:
    (tmp_path / "token").write_text(token)
    return sasl("OAUTHBEARER", oauth_token_command=f"cat '{tmp_path / 'token'}'", oauth_extensions={"tenant": "a"})


def test_a_command_prints_the_token_for_both_clients(tmp_path: Path) -> None:
    with FakeCluster(users={"": "the-token"}) as cluster:
        login = _command(tmp_path, "the-token\n")
        assert connect(cluster.bootstrap_servers, **login) == "fake-cluster-id"
        settings = ClientSettings(cluster.bootstrap_servers, **login)
        assert librdkafka_connects(settings)
        text, _expires_s, _principal, extensions = client_properties(settings)["oauth_cb"]("")
        assert (text, extensions) == ("the-token", {"tenant": "a"})


@pytest.mark.parametrize("printed", ["", "s3cret and more", "s3cret\n# rotated", "s3cret\x01", "s3cret-\u20ac"])
def test_what_is_no_token_is_not_shown(tmp_path: Path, printed: str) -> None:
    settings = ClientSettings(("a:1",), **_command(tmp_path, printed))
    with pytest.raises(InputFileError, match="token_command") as caught:
        fetch_token(settings, Deadline.after(PLENTY_S))
    assert "s3cret" not in f"{caught.value.message} {caught.value.hint}"


def test_a_command_that_fails_or_takes_too_long() -> None:
    for command in ("echo s3cret; exit 3", "exec sleep 60"):
        settings = ClientSettings(("a:1",), **sasl("OAUTHBEARER", oauth_token_command=command))
        with pytest.raises(InputFileError, match=r"token_command: the command failed") as caught:
            fetch_token(settings, Deadline.after(0.5))
        assert caught.value.hint == f"Run it by hand: {command}"


def test_a_token_may_be_given_as_it_is() -> None:
    with FakeCluster(users={"": "the-token"}) as cluster:
        login = sasl("OAUTHBEARER", oauth_token=Secret("the-token"))
        assert connect(cluster.bootstrap_servers, **login) == "fake-cluster-id"


@pytest.mark.parametrize("where", ["file", "profile"])
def test_a_command_is_kept_and_run_when_it_is_needed(invoke: Invoke, tmp_path: Path, where: str) -> None:
    """In a profile it would else be run once, as those of secrets are, and its token end with a long run."""
    ran = tmp_path / "ran"
    command = f"echo x >> '{ran}'; echo the-token"
    with FakeCluster(users={"": "the-token"}) as cluster:
        servers = ",".join(cluster.bootstrap_servers)
        lines = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
        lines["sasl.oauthbearer.token_command"] = command
        if where == "file":
            file, option = tmp_path / "client.properties", "--command-config"
            file.write_text("\n".join([f"bootstrap.servers={servers}", *(f"{k}={v}" for k, v in lines.items())]))
        else:
            file, option = tmp_path / "config.yaml", "--config"
            profile = {"bootstrap_server": servers, "client": lines}
            file.write_text(json.dumps({"current": "p", "profiles": {"p": profile}}))
        file.chmod(0o644)
        shown = invoke("profile", "show", option, str(file))
        assert command in shown.stdout
        assert not ran.exists()
        assert invoke("fence", "x", "--create-unknown", "-y", option, str(file)).exit_code == 0
        assert ran.exists()
        file.chmod(0o666)
        refused = invoke("fence", "x", "--create-unknown", "-y", option, str(file))
        assert (refused.exit_code, "others on this machine can change it" in refused.stderr) == (6, True)
