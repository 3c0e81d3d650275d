"""TLS and SASL on a real broker: every way in, and every wrong turn at the door, for both kinds of client."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined]  # not listed as re-exported

from eosctl.sandbox.login import SecureListener
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack
from tests.sandbox_fixtures import GROUP
from tests.secure_user import USER, Scene, error, token

pytestmark = pytest.mark.live

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


# -- the ways in


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_lets_both_kinds_of_client_in(scene: Scene, mechanism: str) -> None:
    (one,) = scene.known_ids(scene.unique)
    topic = scene.topic(f"{scene.unique}-offsets")
    group, configs = f"{scene.unique}-group", scene.topic(f"{scene.unique}-configs")
    scene.grant(ResourceType.TRANSACTIONAL_ID, one, "DESCRIBE", "WRITE")
    for each in (group, GROUP):
        scene.grant(ResourceType.GROUP, each, "DESCRIBE")
    for name in (topic, configs, "__transaction_state"):
        scene.grant(ResourceType.TOPIC, name, "READ")
    config = scene.config(mechanism=mechanism)
    internal = ["-g", GROUP, "--offset-topic", topic, "--config-topic", configs]
    for words in (
        ["fence", one, "--yes"],
        ["fence", one, "--yes", "--via", "producer"],
        ["txn", "list"],
        ["txn", "describe", one],
        ["txn", "coordinator", one],
        ["txn", "producers", "--topic", topic],
        ["txn", "hanging", "--topic", topic],
        ["txn", "log", one],
        ["offsets", "list", *internal],
        ["task-counts", "list", *internal],
    ):
        outcome = scene.run(*words, "-o", "json", config=config)
        assert outcome.exit_code == 0, (words, outcome.stdout, outcome.stderr)
        if "__transaction_state" not in words and words[0] in ("fence", "txn") and "--topic" not in words:
            assert {row["transactional_id"] for row in outcome.json()["data"]["rows"]} == {one}
    empty = scene.run("workers", "list", "-g", group, "-o", "json", config=config)
    assert empty.exit_code == 1, empty.stderr  # the group may be described, and does not exist
    assert group in error(empty)


# -- the wrong door, or the wrong key

NATIVE, LIBRDKAFKA = ["fence", "some-id", "--yes"], ["offsets", "list", "-g", "g"]
CLIENTS = pytest.mark.parametrize("command", [NATIVE, LIBRDKAFKA], ids=["native", "librdkafka"])


@CLIENTS
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"password": "canary-1"}, "SCRAM-SHA-512"),
        ({"password": "canary-2", "mechanism": "SCRAM-SHA-256"}, "SCRAM-SHA-256"),
        ({"password": "canary-3", "mechanism": "PLAIN"}, "Invalid username or password"),
        ({"password": "canary-4", "user": "ghost"}, "SCRAM-SHA-512"),
        ({"password": "canary-5", "user": "ghost", "mechanism": "PLAIN"}, "Invalid username or password"),
    ],
    ids=["scram-512", "scram-256", "plain", "unknown-user", "unknown-plain-user"],
)
def test_wrong_credentials(scene: Scene, command: list[str], settings: dict[str, str], words: str) -> None:
    outcome = scene.run(*command, "-o", "json", config=scene.config(**settings))
    assert outcome.exit_code == 5, outcome.stderr
    assert words in error(outcome)
    assert scene.secure.stack.secure_bootstrap_servers in error(outcome)


@CLIENTS
def test_a_token_that_is_no_good(scene: Scene, command: list[str]) -> None:
    config = scene.config(mechanism="OAUTHBEARER")
    file = scene.directory / "token"
    for text in (token(USER, lifetime_s=-3600), "canary-token"):
        file.write_text(text)
        scene.canaries.add(text)
        outcome = scene.run(*command, "-o", "json", config=config)
        assert outcome.exit_code == 5, outcome.stderr
        assert "token" in error(outcome)
    file.unlink()
    missing = scene.run(*command, "-o", "json", config=config)
    assert missing.exit_code == 2, missing.stderr
    assert str(file) in error(missing)


@CLIENTS
@pytest.mark.parametrize("known", [False, True], ids=["system's authorities", "another authority"])
def test_an_authority_that_is_not_trusted(scene: Scene, command: list[str], known: bool) -> None:
    import trustme

    config = scene.config()
    text = config.read_text().replace(f"ssl.truststore.location={scene.secure.ca}\n", "")
    if known:
        other = scene.directory / "other-ca.pem"
        trustme.CA().cert_pem.write_to_path(other)
        text += f"ssl.truststore.location={other}\n"
    config.write_text(text)
    outcome = scene.run(*command, "-o", "json", config=config)
    assert outcome.exit_code == 5, outcome.stderr
    assert "certificate" in error(outcome)
    assert "ssl.ca.location" in error(outcome)


@CLIENTS
@pytest.mark.parametrize(
    ("protocol", "listener", "words"),
    [
        ("PLAINTEXT", "secure", "TLS"),
        ("SASL_PLAINTEXT", "secure", "TLS"),
        ("SSL", "secure", "SASL"),
        ("SSL", "plain", "security.protocol"),
        ("SASL_SSL", "plain", "security.protocol"),
    ],
)
def test_a_protocol_that_the_listener_does_not_speak(
    scene: Scene, command: list[str], protocol: str, listener: str, words: str
) -> None:
    """The native client used to exit with 1 and speak of a frame of 352518912 bytes."""
    stack = scene.secure.stack
    servers = stack.secure_bootstrap_servers if listener == "secure" else stack.bootstrap_servers
    outcome = scene.run(*command, "-o", "json", servers=servers, config=scene.config(security_protocol=protocol))
    assert outcome.exit_code == 4, outcome.stderr
    assert words in error(outcome)
    assert servers in error(outcome)


@CLIENTS
def test_sasl_where_there_is_none(scene: Scene, command: list[str]) -> None:
    plain = scene.secure.stack.bootstrap_servers
    config = scene.config(security_protocol="SASL_PLAINTEXT")
    outcome = scene.run(*command, "-o", "json", servers=plain, config=config)
    assert outcome.exit_code == 5, outcome.stderr
    assert "SASL" in error(outcome)


@pytest.fixture(scope="module")
def narrow_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, Path]]:
    """A broker whose certificate is for another host, and which offers PLAIN only; with it, the CA."""
    directory = tmp_path_factory.mktemp("narrow")
    spec = StackSpec(
        groups=(),
        secure=SecureListener({USER: "narrow-pass"}, hosts=("elsewhere.example",)),
        broker_config={"listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN"},
    )
    stack = Stack.up(spec, directory / "stack", name="narrow", environ=os.environ)
    try:
        yield stack, stack.ca
    finally:
        stack.down()


@CLIENTS
def test_a_certificate_for_another_host_and_a_mechanism_that_is_not_offered(
    scene: Scene, narrow_stack: tuple[Stack, Path], command: list[str]
) -> None:
    stack, ca = narrow_stack
    servers = stack.secure_bootstrap_servers
    login: dict[str, Any] = {"password": "narrow-pass", "ssl_truststore_location": str(ca)}

    elsewhere = scene.run(*command, "-o", "json", servers=servers, config=scene.config(**login))
    assert elsewhere.exit_code == 5, elsewhere.stderr
    assert "host" in error(elsewhere)
    assert "ssl.endpoint.identification.algorithm" in error(elsewhere)

    unchecked = login | {"ssl_endpoint_identification_algorithm": ""}
    not_offered = scene.run(*command, "-o", "json", servers=servers, config=scene.config(**unchecked))
    assert not_offered.exit_code == 5, not_offered.stderr
    assert "SCRAM-SHA-512" in error(not_offered)
    assert "PLAIN" in error(not_offered)

    inside = scene.run(*command, "-o", "json", servers=servers, config=scene.config(mechanism="PLAIN", **unchecked))
    assert "AUTHORIZATION" in inside.stdout or "not authorized" in inside.stdout, inside.stdout
