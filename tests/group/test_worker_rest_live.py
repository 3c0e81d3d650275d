"""A worker behind TLS and a password: Connect's own https listener and BasicAuthSecurityRestExtension."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.java.properties import properties_text
from eosctl.core.records import Record
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.login import SecureFiles, SecureListener, write_private
from eosctl.sandbox.settings import GroupSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke, Outcome
from tests.envelope import envelope_of
from tests.sandbox_fixtures import PATIENCE_S, FileSource, added_group, group_flags, once_there, wait_until

pytestmark = pytest.mark.live

USER, GROUP = "operator", "guarded"
EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension"


@dataclass(frozen=True, slots=True)
class Guarded:
    """A worker that wants a password over https, and a place for what a test writes."""

    stack: Stack
    url: str
    ca: Path
    password: str
    directory: Path

    def opener(self, *headers: tuple[str, str]) -> urllib.request.OpenerDirector:
        """A client of the test's own, with these headers in place of the password."""
        context = ssl.create_default_context(cafile=self.ca)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        opener.addheaders = list(headers)
        return opener

    def authorization(self) -> tuple[str, str]:
        """The header that shows the password."""
        return "Authorization", "Basic " + base64.b64encode(f"{USER}:{self.password}".encode()).decode()

    def run(
        self, invoke: Invoke, *words: str, password: str | None = None, ca: Path | None = None, named: bool = True
    ) -> Outcome:
        """One command; the password may stand in nothing that is printed, logged or kept. `named`: with -u."""
        password, file, log = password or self.password, self.directory / "password", self.directory / "log"
        write_private(file, password)
        access = ["--connect-ca", str(ca or self.ca), "--connect-username", USER, "--connect-password-file", str(file)]
        where = [*group_flags(self.stack, GROUP), *(["-u", self.url] if named else [])]
        outcome = invoke(*words, *where, *access, "-o", "json", "-vv", "--log-file", str(log))
        kept = [log, *(path for path in (self.directory / "state").rglob("*") if path.is_file())]
        said = outcome.stdout + outcome.stderr + "".join(path.read_text(errors="replace") for path in kept)
        shown = base64.b64encode(f"{USER}:{password}".encode()).decode()
        assert not [secret for secret in (password, shown) if secret in said]
        assert "Traceback" not in said
        return outcome

    def status(self, path: str, method: str = "GET", *headers: tuple[str, str]) -> int:
        """What the worker answers to a request with these headers; 409, while the group rebalances, is asked again."""
        return int(wait_until(lambda: self._status(path, method, *headers), what="an answer other than 409"))

    def _status(self, path: str, method: str, *headers: tuple[str, str]) -> int | None:
        request = urllib.request.Request(self.url + path, method=method)
        try:
            with self.opener(*headers).open(request, timeout=PATIENCE_S) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as exc:
            with exc:
                return None if exc.code == 409 else exc.code


def read(stack: Stack, topic: str) -> tuple[Record, ...]:
    """What is committed in a topic."""
    with KafkaTopicClient(
        ClientSettings(tuple(stack.bootstrap_servers.split(","))), deadline=Deadline.after(PATIENCE_S)
    ) as store:
        return tuple(store.read(topic).records)


@pytest.fixture(scope="module")
def worker(three_brokers: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, SecureFiles, str]]:
    """URL, certificate and password of the worker."""
    directory = tmp_path_factory.mktemp("guarded")
    files, password = SecureFiles(directory / "tls"), secrets.token_urlsafe(18)
    files.write(SecureListener({}), Path(three_brokers.state.java))
    users, jaas = directory / "users.properties", directory / "jaas.conf"
    write_private(users, properties_text({USER: password}))
    jaas.write_text(f'KafkaConnect {{ {EXTENSION}.PropertyFileLoginModule required file="{users}"; }};')
    store = "listeners.https.ssl.keystore"
    config = {
        "rest.extension.classes": f"{EXTENSION}.BasicAuthSecurityRestExtension",
        f"{store}.type": "PKCS12",
        f"{store}.location": str(files.keystore),
        f"{store}.password": files.keystore_password(),
        "listeners.https.ssl.key.password": files.keystore_password(),
    }
    options = (f"-Djava.security.auth.login.config={jaas}",)
    with added_group(three_brokers, GroupSpec(GROUP, worker_config=config, jvm_options=options)) as (url,):
        yield url, files, password


@pytest.fixture
def guarded(three_brokers: Stack, worker: tuple[str, SecureFiles, str], tmp_path: Path) -> Guarded:
    """The worker, and this test's own place."""
    url, files, password = worker
    return Guarded(three_brokers, url, files.ca, password, tmp_path)


@pytest.fixture
def source(guarded: Guarded, unique: str) -> Iterator[FileSource]:
    """A connector that runs and has committed its one line; deleted after the test."""
    path = guarded.directory / f"{unique}.txt"
    path.write_text("line\n")
    opener = guarded.opener(guarded.authorization())
    made = FileSource(guarded.url, unique, path, topic=f"topic-{unique}", opener=opener)
    made.put()
    made.wait_running()
    made.wait_position(5)
    yield made
    made.rest(method="DELETE")


def test_a_named_worker_is_shown_the_password_and_tells_what_it_is(
    guarded: Guarded, source: FileSource, invoke: Invoke
) -> None:
    for command in ("list", "probe"):
        (row,) = envelope_of(guarded.run(invoke, "workers", command), f"workers-{command}")["data"]["rows"]
        assert (row["url"], row["mode"], row["health"]) == (guarded.url, "enabled", "healthy")
        assert {"connector": source.name, "task": 0} in row["assigned"]["tasks"], "one of an earlier test may end yet"
    listed = envelope_of(guarded.run(invoke, "offsets", "list", "--connector", source.name), "offsets-list")
    assert [row["effective"]["runtime"] for row in listed["data"]["rows"]] == [{"position": 5}]
    assert listed["errors"] == []

    found = guarded.run(invoke, "workers", "list", named=False)
    assert (found.exit_code, "--connect-trust-discovered" in found.stderr) == (5, True), found.stderr
    assert guarded.run(invoke, "workers", "list", "--connect-trust-discovered", named=False).exit_code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("workers", "list"),
        ("workers", "probe"),
        ("connectors", "check"),
        ("offsets", "switch", "--connector", "c", "--to", "own", "--yes"),
        ("fence", "--connector", "c", "--via", "connect", "--yes"),
    ],
    ids=" ".join,
)
def test_a_wrong_password_and_an_authority_that_is_not_trusted(
    guarded: Guarded, invoke: Invoke, command: tuple[str, ...]
) -> None:
    """A wrong password was exit code 4, with the advice to name a worker, or one that can be reached."""
    refused = guarded.run(invoke, *command, password="wrong-canary")
    assert refused.exit_code == 5, refused.stderr
    assert f"{guarded.url} answered 401" in refused.stderr
    assert "--connect-password-file" in refused.stderr

    other = guarded.directory / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    unknown = guarded.run(invoke, *command, ca=other)
    assert unknown.exit_code == 4, unknown.stderr
    assert "certificate verify failed" in unknown.stderr
    assert "--connect-ca names a file" in unknown.stderr


def test_a_switch_goes_through_and_no_line_comes_twice(
    guarded: Guarded, source: FileSource, invoke: Invoke, three_brokers: Stack
) -> None:
    words = ("offsets", "switch", "--connector", source.name, "--to", f"own-{source.name}", "--yes")
    assert guarded.run(invoke, *words, password="wrong-canary").exit_code == 5
    assert (source.task_states(), "offsets.storage.topic" in source.rest("/config")) == (["RUNNING"], False)
    done = envelope_of(guarded.run(invoke, *words), "offsets-switch-result")
    assert {row["outcome"] for row in done["data"]["rows"]} == {"done"}
    assert source.rest("/config")["offsets.storage.topic"] == f"own-{source.name}"
    source.append("more")
    source.wait_position(10)
    found = once_there(2, lambda: read(three_brokers, source.topic))
    assert [record.value for record in found] == [b"line", b"more"]


def test_a_fencing_round_is_asked_for_with_a_signature_and_needs_no_password(
    guarded: Guarded, source: FileSource, invoke: Invoke, three_brokers: Stack
) -> None:
    source.stop_and_wait()
    words = ("fence", "--connector", source.name, "--via", "connect", "--yes")
    (row,) = envelope_of(guarded.run(invoke, *words), "fence-result")["data"]["rows"]
    assert row["outcome"] == "fenced"
    assert row["after"]["producer_epoch"] >= row["before"]["producer_epoch"] + 1
    task_id = f"{GROUP}-{source.name}-0"
    (state,) = guarded.run(invoke, "txn", "describe", task_id).json()["data"]["rows"]
    assert state["transaction_timeout_ms"] == 90_000, "the mark of Connect's own round"

    keys = [record.value for record in read(three_brokers, f"{GROUP}-configs") if record.key == b"session-key"]
    key = base64.b64decode(json.loads(keys[-1] or b"")["key"])
    mac = base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()
    signature = (("X-Connect-Authorization", mac), ("X-Connect-Request-Signature-Algorithm", "HmacSHA256"))
    fence = f"/connectors/{source.name}/fence"
    assert guarded.status("/connectors", "GET") == 401
    assert guarded.status("/connectors", "GET", *signature) == 401
    assert guarded.status(fence, "PUT", *signature) == 204
    assert guarded.status(fence, "PUT", guarded.authorization()) == 400, "a password is no signature"
