"""Brokers that a connector's config names, and which of its settings eosctl follows there."""

from __future__ import annotations

import pytest

from eosctl.core.clients.own_brokers import own_brokers

HERE = ("here:9092", "here:9093")
JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";'
SCRAM = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": JAAS}


def config(prefix: str = "producer.override.", **values: str) -> dict[str, str]:
    return {prefix + name.replace("_", "."): value for name, value in values.items()}


def producer(values: dict[str, str]) -> dict[str, str]:
    return {f"producer.override.{name}": value for name, value in ({"bootstrap.servers": "own:1"} | values).items()}


@pytest.mark.parametrize(
    "given", [{}, config(bootstrap_servers=""), config(bootstrap_servers="here:9093, here:9092"), config(acks="all")]
)
def test_no_brokers_of_its_own(given: dict[str, str]) -> None:
    """Kafka compares sets of spellings."""
    assert own_brokers(given, here=HERE) is None


def test_the_settings_that_lead_there() -> None:
    found = own_brokers(producer(SCRAM | {"acks": "all", "request.timeout.ms": "7000"}), here=HERE)
    assert found is not None
    assert found.settings is not None
    assert (found.servers, found.settings.bootstrap_servers) == ("own:1", ("own:1",))
    assert (found.settings.security_protocol, found.settings.sasl_username) == ("SASL_PLAINTEXT", "u")
    assert found.settings.request_timeout_ms == 7000
    assert "p" not in repr(found).split("'"), "passwords are not shown"


def test_offsets_are_read_by_the_consumers_settings() -> None:
    both = producer({}) | config("consumer.override.", bootstrap_servers="own:2")
    found = own_brokers(both, here=HERE)
    assert found is not None
    assert found.settings is not None
    assert found.settings.bootstrap_servers == ("own:2",)


@pytest.mark.parametrize(
    ("values", "why_not"),
    [
        (
            {"bootstrap.servers": "${file:/x:servers}"},
            "only its worker can resolve producer.override.bootstrap.servers",
        ),
        (
            SCRAM | {"sasl.jaas.config": JAAS.replace('"p"', "${file:/x:password}")},
            "only its worker can resolve producer.override.sasl.jaas.config",
        ),
        ({"security.protocol": "SSL", "ssl.keystore.location": "/etc/k.jks"}, "ssl.keystore.location is not taken"),
        ({"sasl.oauthbearer.token.command": "touch /tmp/x"}, "sasl.oauthbearer.token.command is not taken"),
        ({"sasl.kerberos.kinit.cmd": "touch /tmp/x"}, "sasl.kerberos.kinit.cmd is not taken"),
        (SCRAM | {"sasl.mechanism": "OAUTHBEARER"}, "sasl.mechanism is not taken"),
        ({"security.protocol": "NONSENSE"}, "its settings can't be used here: the config: security.protocol"),
    ],
)
def test_what_is_not_followed(values: dict[str, str], why_not: str) -> None:
    """A config is written by anybody who may make connectors: it must not run commands or open files here."""
    found = own_brokers(producer(values), here=HERE)
    assert found is not None
    assert found.settings is None
    assert why_not in found.why_not
