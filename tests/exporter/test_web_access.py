"""TLS and basic authentication of the exporter over real sockets, by the web-config file of Prometheus' exporters."""

from __future__ import annotations

import base64
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import bcrypt
import pytest
import trustme
import urllib3
import yaml

from eosctl.collect.overview import Overview
from eosctl.deadline import Clock, Event
from eosctl.errors import InputFileError, RefusedError
from eosctl.exporter import server as server_module
from eosctl.exporter.server import open_server
from eosctl.exporter.web.access import Passwords, WebAccess
from eosctl.exporter.web.config import openssl_name
from tests.conftest import Invoke
from tests.exporter.slow_clients import is_cut_off
from tests.fakes.clock import PLENTY_S
from tests.prometheus.promtool import Promtool
from tests.prometheus.server import Prometheus
from tests.sandbox_fixtures import wait_until

PASSWORD = "open sesame"
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()


def put(folder: Path, config: object) -> Path:
    path = folder / "web.yml"
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    path.chmod(0o600)
    return path


@contextmanager
def serving(path: Path, told: list[Event] | None = None) -> Iterator[str]:
    """The exporter's server with this web-config file; its URL."""
    access = WebAccess(path, Clock(), (told if told is not None else []).append)
    with open_server("127.0.0.1:0", lambda: Overview(0, 0), access=access) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.url()
        finally:
            server.shutdown()
            thread.join()


def get(url: str, *, user: str | None = None, path: str = "/healthz", **tls: Any) -> urllib3.BaseHTTPResponse:
    headers = urllib3.make_headers(basic_auth=user) if user is not None else {}
    with urllib3.PoolManager(retries=False, timeout=PLENTY_S, **tls) as pool:
        return pool.request("GET", url + path, headers=headers)


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def write_pair(folder: Path, authority: trustme.CA, *names: str) -> None:
    """server.crt and server.key, each replaced as a whole."""
    pair = authority.issue_cert(*(names or ("127.0.0.1",)))
    for name, blob in (("server.key", pair.private_key_pem), ("server.crt", pair.cert_chain_pems[0])):
        blob.write_to_path(str(folder / f"{name}.new"))
        (folder / f"{name}.new").chmod(0o600)
        (folder / f"{name}.new").replace(folder / name)


def client(authority: trustme.CA, *, certificate: trustme.LeafCert | None = None) -> Mapping[str, Any]:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if certificate is not None:
        certificate.configure_cert(context)
    return {"ssl_context": context}


TLS = {"cert_file": "server.crt", "key_file": "server.key"}


def test_users_have_a_password(tmp_path: Path) -> None:
    with serving(put(tmp_path, {"basic_auth_users": {"prom": HASH}})) as url:
        refused = get(url)
        assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, "Basic")
        assert [get(url, user=user).status for user in (f"prom:{PASSWORD}", "prom:x", f"x:{PASSWORD}", ":")] == [
            200, 401, 401, 401,
        ]  # fmt: skip
        assert get(url, path="/metrics").status == 401
        assert get(url, user=f"prom:{PASSWORD}", path="/metrics").status == 200


def test_users_are_read_again_and_a_broken_file_lets_nobody_in(tmp_path: Path) -> None:
    told: list[Event] = []
    path = put(tmp_path, {"basic_auth_users": {"prom": HASH}})
    with serving(path, told) as url:
        put(tmp_path, "basic_auth_users: {prom: plain}")
        assert [get(url, user=f"prom:{PASSWORD}").status for _ in range(2)] == [500, 500]
        assert len(told) == 1
        assert "no bcrypt hash" in told[0].message
        put(tmp_path, {"basic_auth_users": {"other": HASH}})
        assert [get(url, user=f"{user}:{PASSWORD}").status for user in ("prom", "other")] == [401, 200]
        path.unlink()
        assert get(url, user=f"other:{PASSWORD}").status == 500
        assert len(told) == 2
        put(tmp_path, {"basic_auth_users": {"prom": HASH}})
        assert get(url, user=f"prom:{PASSWORD}").status == 200
        path.unlink()
        assert get(url, user=f"prom:{PASSWORD}").status == 500
        assert len(told) == 3


LESS = ["", "# basic_auth_users:\n", "~\n", "{}\n", "[]\n", "false\n", "0\n", "http_server_config: {http2: false}\n",
        "basic_auth_users: {}\n"]  # fmt: skip


@pytest.mark.parametrize("text", LESS)
def test_a_file_that_loses_its_users_lets_nobody_in(tmp_path: Path, text: str) -> None:
    """One that was emptied, or of which only the beginning was written, let everybody in."""
    told: list[Event] = []
    path = put(tmp_path, {"basic_auth_users": {"prom": HASH}})
    with serving(path, told) as url:
        assert get(url, user=f"prom:{PASSWORD}").status == 200
        put(tmp_path, text)
        assert [get(url).status, get(url, user=f"prom:{PASSWORD}").status] == [500, 500]
        assert [event.warning for event in told] == [True]
        put(tmp_path, {"basic_auth_users": {"prom": HASH}})
        assert [get(url).status, get(url, user=f"prom:{PASSWORD}").status] == [401, 200]


def test_a_file_that_asks_for_no_certificates_any_more_lets_nobody_in(tmp_path: Path, authority: trustme.CA) -> None:
    write_pair(tmp_path, authority)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    asked = {**TLS, "client_auth_type": "RequireAndVerifyClientCert", "client_ca_file": "ca.crt"}
    good = client(authority, certificate=authority.issue_cert("prometheus.example"))
    with serving(put(tmp_path, {"tls_server_config": asked})) as url:
        assert get(url, **good).status == 200
        put(tmp_path, {"tls_server_config": TLS})
        for tls in (good, client(authority)):
            with pytest.raises(urllib3.exceptions.HTTPError):
                get(url, **tls)


def test_a_log_that_can_not_be_written_changes_no_answer(tmp_path: Path) -> None:
    def full(_event: Event) -> None:
        raise OSError(28, "No space left on device")

    path = put(tmp_path, {"basic_auth_users": {"prom": HASH}})
    access = WebAccess(path, Clock(), full)
    path.unlink()
    assert access.admit(None).status == 500


def test_a_tls_handshake_has_one_time(tmp_path: Path, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then kept a place for ever, before any password."""
    import socket

    monkeypatch.setattr(server_module, "PATIENCE_S", 0.5)
    write_pair(tmp_path, authority)
    with serving(put(tmp_path, {"tls_server_config": TLS})) as url:
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 20) as slow:
            assert is_cut_off(slow, hello)


def test_known_clients_have_places_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections without a password took all places."""
    import socket

    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 2)
    with serving(put(tmp_path, {"basic_auth_users": {"prom": HASH}})) as url:
        held = [socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 20) for _ in range(2)]
        with pytest.raises(urllib3.exceptions.HTTPError):
            get(url, user=f"prom:{PASSWORD}")
        for each in held:
            each.close()
        wait_until(lambda: _status(url, f"prom:{PASSWORD}") == 200, what="a free place")
        held = [socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 20) for _ in range(2)]
        assert get(url, user=f"prom:{PASSWORD}").status == 200
        for each in held:
            each.close()


def _status(url: str, user: str) -> int:
    try:
        return get(url, user=user).status
    except urllib3.exceptions.HTTPError:
        return 0


def test_a_refused_request_keeps_no_place(tmp_path: Path) -> None:
    with serving(put(tmp_path, {"basic_auth_users": {"prom": HASH}})) as url:
        assert get(url).headers["Connection"] == "close"
        assert "Connection" not in get(url, user=f"prom:{PASSWORD}").headers


def test_tls_and_a_renewed_certificate_without_a_restart(tmp_path: Path, authority: trustme.CA) -> None:
    write_pair(tmp_path, authority)
    other = trustme.CA()
    with serving(put(tmp_path, {"tls_server_config": TLS})) as url:
        assert url.startswith("https://")
        assert get(url, **client(authority)).status == 200
        write_pair(tmp_path, other)
        assert get(url, **client(other)).status == 200
        with pytest.raises(urllib3.exceptions.SSLError):
            get(url, **client(authority))


def test_a_pair_that_does_not_fit_lets_nobody_in_until_it_does(tmp_path: Path, authority: trustme.CA) -> None:
    told: list[Event] = []
    write_pair(tmp_path, authority)
    with serving(put(tmp_path, {"tls_server_config": TLS}), told) as url:
        key = (tmp_path / "server.key").read_bytes()
        authority.issue_cert("127.0.0.1").private_key_pem.write_to_path(str(tmp_path / "server.key"))
        with pytest.raises(urllib3.exceptions.HTTPError):
            get(url, **client(authority))
        assert ["server.key" in each.message for each in told] == [True]
        (tmp_path / "server.key").write_bytes(key)
        assert get(url, **client(authority)).status == 200


def test_a_client_that_does_not_speak_holds_up_nobody(tmp_path: Path, authority: trustme.CA) -> None:
    import socket

    write_pair(tmp_path, authority)
    with serving(put(tmp_path, {"tls_server_config": TLS})) as url:
        port = int(url.rpartition(":")[2])
        with (
            socket.create_connection(("127.0.0.1", port)) as silent,
            socket.create_connection(("127.0.0.1", port)) as loud,
        ):
            loud.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert get(url, **client(authority)).status == 200
            with suppress(ConnectionResetError):
                assert loud.recv(100)[:4] != b"HTTP"
            silent.close()


def test_clients_have_a_certificate_and_an_allowed_name(tmp_path: Path, authority: trustme.CA) -> None:
    write_pair(tmp_path, authority)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    tls = {**TLS, "client_auth_type": "RequireAndVerifyClientCert", "client_ca_file": "ca.crt"}
    good, bad = authority.issue_cert("prometheus.example"), authority.issue_cert("somebody.example")
    stranger = trustme.CA().issue_cert("prometheus.example")
    with serving(put(tmp_path, {"tls_server_config": {**tls, "client_allowed_sans": ["prometheus.example"]}})) as url:
        assert get(url, **client(authority, certificate=good)).status == 200
        for certificate in (bad, stranger, None):
            with pytest.raises(urllib3.exceptions.HTTPError):
                get(url, **client(authority, certificate=certificate))


def test_the_minimum_version_counts(tmp_path: Path, authority: trustme.CA) -> None:
    write_pair(tmp_path, authority)
    old = client(authority)
    old["ssl_context"].maximum_version = ssl.TLSVersion.TLSv1_2
    with serving(put(tmp_path, {"tls_server_config": {**TLS, "min_version": "TLS13"}})) as url:
        assert get(url, **client(authority)).status == 200
        with pytest.raises(urllib3.exceptions.SSLError):
            get(url, **old)


def test_certificates_may_stand_in_the_file(tmp_path: Path, authority: trustme.CA) -> None:
    pair = authority.issue_cert("127.0.0.1")
    inline = {"cert": pair.cert_chain_pems[0].bytes().decode(), "key": pair.private_key_pem.bytes().decode()}
    suites = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]
    more = {"cipher_suites": suites, "curve_preferences": ["CurveP256"], "max_version": "TLS12"}
    with serving(put(tmp_path, {"tls_server_config": {**inline, **more}})) as url:
        assert get(url, **client(authority)).status == 200


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "RSA-AES256-GCM-SHA384"),
    ],
)
def test_suites_have_the_names_of_openssl(suite: str, name: str) -> None:
    assert openssl_name(suite) == name


def test_a_real_prometheus_scrapes_with_a_certificate_and_a_password(
    tmp_path: Path, authority: trustme.CA, prometheus: Prometheus
) -> None:
    write_pair(tmp_path, authority)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    scrape: dict[str, Any] = {"scheme": "https", "tls_config": {"ca_file": str(tmp_path / "ca.crt")}}
    with serving(put(tmp_path, {"tls_server_config": TLS, "basic_auth_users": {"prom": HASH}})) as url:
        target = url.removeprefix("https://")
        for password, error in (("wrong", "server returned HTTP status 401 Unauthorized"), (PASSWORD, "")):
            login = {"username": "prom", "password": password}
            prometheus.load([target], job=f"eosctl-{bool(error)}", **scrape, basic_auth=login)
            wait_until(lambda: target in prometheus.target_errors(), what="a scrape")
            assert prometheus.target_errors()[target] == error
        assert len(prometheus.query('eosctl_build_info{job="eosctl-False"}')) == 1
    prometheus.load([])


def test_headers_and_a_rate_limit(tmp_path: Path) -> None:
    config = {
        "http_server_config": {"headers": {"X-Frame-Options": "deny"}},
        "rate_limit": {"interval": "1h", "burst": 2},
    }
    with serving(put(tmp_path, config)) as url:
        answers = [get(url) for _ in range(3)]
    assert [each.status for each in answers] == [200, 200, 429]
    assert answers[0].headers["X-Frame-Options"] == "deny"


def _basic(text: bytes) -> str:
    return f"Basic {base64.b64encode(text).decode()}"


def test_a_hash_is_computed_once_and_a_wrong_password_costs_no_more() -> None:
    passwords = Passwords()
    users = {"prom": HASH}
    for _ in range(3):
        assert passwords.allow(_basic(f"prom:{PASSWORD}".encode()), users)
        assert not passwords.allow(_basic(b"prom:wrong"), users)
        assert not passwords.allow(_basic(f"nobody:{PASSWORD}".encode()), users)
    assert passwords.computed == 3
    for number in range(200):
        passwords.allow(_basic(f"prom:{number}".encode()), users)
    assert len(passwords._wrong) == 100
    computed = passwords.computed
    assert passwords.allow(_basic(f"prom:{PASSWORD}".encode()), users)
    assert passwords.computed == computed, "wrong ones pushed the right one out: a scrape waited for its hash"


@pytest.mark.parametrize(
    "header", [None, "", "Basic", "Bearer x", "Basic !!!", _basic(b"no-colon"), _basic(b"\xff:x"), _basic(b"prom:a\0b")]
)
def test_a_header_that_is_none_lets_nobody_in(header: str | None) -> None:
    assert not Passwords().allow(header, {"prom": HASH})


def test_a_password_is_cut_where_bcrypt_cuts_it() -> None:
    """As htpasswd and Go do; bcrypt 5 refuses longer ones."""
    hashed = bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4)).decode()
    assert Passwords().allow(_basic(b"prom:" + b"x" * 80), {"prom": hashed})


FAULTS: Mapping[str, tuple[object, str]] = {
    "a key that nobody knows": ({"tls_server_config": {"cert_fil": "x"}}, "unknown field `cert_fil`"),
    "a section that nobody knows": ({"tls": {}}, "unknown field `tls`"),
    "no mapping": ("- 1", "Expected `object`"),
    "no YAML": ("a: [", "web.yml:1: not valid YAML"),
    "a key twice": ("basic_auth_users: {}\nbasic_auth_users: {}\n", "stands there twice"),
    "no key file": ({"tls_server_config": {"cert_file": "server.crt"}}, "key_file is missing"),
    "a file that is not there": ({"tls_server_config": {**TLS, "cert_file": "none.crt"}}, "none.crt"),
    "an authority without a policy": ({"tls_server_config": {**TLS, "client_ca_file": "ca.crt"}}, "needs a client_"),
    "a policy that nobody knows": ({"tls_server_config": {**TLS, "client_auth_type": "Maybe"}}, "Maybe is unknown"),
    "a version that nobody knows": ({"tls_server_config": {**TLS, "min_version": "TLS14"}}, "TLS14"),
    "a suite that nobody knows": ({"tls_server_config": {**TLS, "cipher_suites": ["TLS_X"]}}, "cipher_suites"),
    "a password as it is": ({"basic_auth_users": {"prom": "secret"}}, "no bcrypt hash"),
    "a header that can't be set": ({"http_server_config": {"headers": {"Host": "x"}}}, "Host can't be set"),
    "a wrong value of a header": ({"http_server_config": {"headers": {"X-Frame-Options": "x"}}}, "is one of"),
}  # fmt: skip
OURS: Mapping[str, tuple[object, str]] = {
    "an unverified certificate": (
        {"tls_server_config": {**TLS, "client_auth_type": "RequestClientCert"}}, "nobody verifies"
    ),
    "two curves": ({"tls_server_config": {**TLS, "curve_preferences": ["X25519", "CurveP256"]}}, "one curve"),
    "a duration that is none": ({"rate_limit": {"interval": "1x", "burst": 1}}, "no duration"),
    "versions the wrong way round": (
        {"tls_server_config": {**TLS, "min_version": "TLS13", "max_version": "TLS12"}}, "above max_version"
    ),
}  # fmt: skip
GOOD: Mapping[str, object] = {
    "nothing": "",
    "users": {"basic_auth_users": {"prom": HASH}},
    "TLS": {"tls_server_config": TLS},
    "a certificate of any authority": {"tls_server_config": {**TLS, "client_auth_type": "RequireAndVerifyClientCert"}},
    "all of TLS": {
        "tls_server_config": {
            **TLS, "client_auth_type": "VerifyClientCertIfGiven", "client_ca_file": "ca.crt", "min_version": "TLS12",
            "max_version": "TLS13",
            "cipher_suites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"],
            "prefer_server_cipher_suites": False, "curve_preferences": ["X25519"],
        },
        "http_server_config": {"http2": False, "headers": {"X-Content-Type-Options": "nosniff"}},
    },
}  # fmt: skip


@pytest.fixture
def judged(tmp_path: Path, authority: trustme.CA) -> Callable[[object], str]:
    """What is wrong with a file beside a certificate; empty where nothing is."""
    write_pair(tmp_path, authority)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))

    def judge(config: object) -> str:
        try:
            WebAccess(put(tmp_path, config), Clock(), print)
        except InputFileError as exc:
            return f"{exc.message} {exc.hint or 1 / 0}"
        return ""

    return judge


@pytest.mark.parametrize("fault", [*FAULTS, *OURS])
def test_what_is_wrong_is_named(judged: Callable[[object], str], fault: str) -> None:
    config, words = {**FAULTS, **OURS}[fault]
    assert words in judged(config)


def test_prometheus_own_toolkit_judges_the_same(judged: Callable[[object], str], promtool: Promtool) -> None:
    """promtool reads the file with exporter-toolkit."""
    for name, config in {**GOOD, **{name: config for name, (config, _words) in FAULTS.items()}}.items():
        ours = judged(config) == ""
        theirs = promtool("check", "web-config", "web.yml").returncode == 0
        assert ours is theirs is (name in GOOD), name


def test_a_file_that_is_wrong_ends_the_exporter_with_a_usage_error(invoke: Invoke, tmp_path: Path) -> None:
    path = put(tmp_path, {"basic_auth_users": {"prom": "plain"}})
    flags = ["-b", "127.0.0.1:9", "-g", "g", "--listen", "127.0.0.1:0"]
    done = invoke("exporter", *flags, "--web-config-file", str(path))
    assert done.exit_code == 2
    assert f"{path}: basic_auth_users: the password of prom is no bcrypt hash" in done.stderr
    gone = invoke("exporter", *flags, "--web-config-file", str(tmp_path / "none"))
    assert (gone.exit_code, f"cannot read {tmp_path / 'none'}" in gone.stderr) == (2, True)


@pytest.mark.root
@pytest.mark.parametrize(
    ("spoilt", "mode", "owner", "words"),
    [
        ("web.yml", 0o666, 0, "others on this machine can change it"),
        ("web.yml", 0o644, 65534, "belongs to user 65534"),
        ("server.key", 0o644, 0, "holds a private key and has mode 0644"),
    ],
)
def test_files_that_others_can_change_or_keys_that_they_can_read_are_refused(
    invoke: Invoke, tmp_path: Path, authority: trustme.CA, spoilt: str, mode: int, owner: int, words: str
) -> None:
    """They were taken as they were: others put their own password in, or read the key."""
    write_pair(tmp_path, authority)
    path = put(tmp_path, {"tls_server_config": TLS})
    os.chown(tmp_path / spoilt, owner, -1)
    (tmp_path / spoilt).chmod(mode)
    flags = ["-b", "127.0.0.1:9", "-g", "g", "--listen", "127.0.0.1:0", "--web-config-file", str(path)]
    done = invoke("exporter", *flags)
    assert (done.exit_code, words in done.stderr) == (6, True), done.stderr


def test_a_key_that_stands_in_the_file_makes_it_private(tmp_path: Path, authority: trustme.CA) -> None:
    pair = authority.issue_cert("127.0.0.1")
    inline = {"cert": pair.cert_chain_pems[0].bytes().decode(), "key": pair.private_key_pem.bytes().decode()}
    path = put(tmp_path, {"tls_server_config": inline})
    WebAccess(path, Clock(), print)
    path.chmod(0o644)
    with pytest.raises(RefusedError, match="holds a private key and has mode 0644"):
        WebAccess(path, Clock(), print)


def test_a_file_that_others_can_change_by_now_lets_nobody_in(tmp_path: Path) -> None:
    path, told = put(tmp_path, {"basic_auth_users": {"prom": HASH}}), list[Event]()
    with serving(path, told) as url:
        assert get(url, user=f"prom:{PASSWORD}").status == 200
        path.chmod(0o666)
        path.write_text(path.read_text() + "\n")
        assert get(url, user=f"prom:{PASSWORD}").status == 500
    assert ["others on this machine" in each.message for each in told] == [True]
