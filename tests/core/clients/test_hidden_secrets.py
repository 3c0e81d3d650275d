"""Configs fit to be shown: what is known to be harmless, and nothing else."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.clients.hidden_secrets import (
    hide_secrets,
    holds_secrets,
    shown_line,
    shown_value,
    without_values,
)
from eosctl.core.clients.logins import without_logins
from tests.core.clients.connector_settings import SETTINGS
from tests.core.clients.debezium_settings import PEM

PARTS = ("hunter2", "PRIVATE", "MIIE", "AKIA", "wJalr", "q2lk", "dTpo", "eyJ", "3MVG9")


def leaks(shown: object) -> list[str]:
    return [part for part in PARTS if part in str(shown)]


@pytest.mark.parametrize("connector", SETTINGS)
def test_no_secret_of_a_connector_is_shown(connector: str) -> None:
    """What was not on a list of bad names was printed: passwords in URLs, keys of Schema Registry, whole PEM keys."""
    secret = SETTINGS[connector].secret
    assert all(leaks(value) for value in secret.values()), "a value in which no secret would be seen"
    assert {name: value for name, value in hide_secrets(secret).items() if leaks(value)} == {}


@pytest.mark.parametrize("connector", SETTINGS)
def test_what_an_operator_needs_is_shown_as_it_is(connector: str) -> None:
    harmless = SETTINGS[connector].harmless
    shown = hide_secrets(harmless)
    assert {name: shown[name] for name in harmless if shown[name] != harmless[name]} == {}


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("no.one.knows.it", "hunter2", "***"),
        ("no.one.knows.it", "true", "true"),
        ("no.one.knows.it", "-15", "-15"),
        ("no.one.knows.it", "30s", "30s"),
        ("no.one.knows.it", "org.example.Some$Inner", "org.example.Some$Inner"),
        ("no.one.knows.it", "eyJhbGciOi.eyJzdWIi.Sig", "***"),
        ("no.one.knows.it", "", ""),
        ("no.one.knows.it", "${vault:secret/db:pw}", "${vault:secret/db:pw}"),
        ("x.password", "${file:/run/x:user}:${file:/run/x:pw}", "${file:/run/x:user}:${file:/run/x:pw}"),
        ("x.password", "${hunter2}", "***"),
        ("x.password", "a${file:/x:y}", "***"),
        ("x.password", "1234", "***"),
        ("x.password", 1234, "***"),
        ("x.password.file", "/run/secrets/pw", "/run/secrets/pw"),
        ("x.password.file", "hunter2", "***"),
        ("ssl.keystore.file", "data:text/plain;base64,aHVudGVyMg==", "***"),
        ("tasks.max", 4, 4),
        ("tasks.max", None, None),
        ("topic", "\ud800", "?"),
        ("connection.url", "jdbc:pg://me:pw@db/x", "jdbc:pg://***@db…"),
        ("nested.topics", {"password": "hunter2"}, "***"),
        ("topics", ["hunter2"], "***"),
        ("topic.prefix", PEM, "***"),
        ("topic.prefix", '{"private_key": "hunter2"}', "***"),
        ("topic.prefix", "Bearer hunter2", "***"),
        ("topic.prefix", "user:hunter2", "***"),
        ("topic.prefix", "user:hun,ter2", "***"),
        ("topic.prefix", "user: hunter2", "***"),
        ("topic.prefix", "user:hunter2@host", "***"),
        ("headers.list", "X-Custom:hunter2", "***"),
        ("http.api.path", "/services/hunter2", "***"),
        ("webhook.path", "/services/hunter2", "***"),
        ("http.sink.path", "/services/hunter2", "***"),
        ("input.path", "/var/spool/in", "/var/spool/in"),
        ("sftp.ssh.key.path", "/etc/ssh/id", "/etc/ssh/id"),
        ("iceberg.catalog.header.x-session-name", "hunter2", "***"),
        ("http.header.x-app-id", "hunter2", "***"),
        ("http.request.body.template", "login ann hunter2", "***"),
        ("topic.prefix", "db1;uid=sa;code=hunter2", "***"),
        ("topic.prefix", "pswd=hunter2", "***"),
        ("servers", "k1:9092, [::1]:9092", "k1:9092, [::1]:9092"),
        ("topic.prefix", "AKIAIOSFODNN7EXAMPLE", "***"),
        ("topic.prefix", "a=1;password=hunter2", "***"),
        ("connection.url", "jdbc:oracle:thin:@db:1521:ORCL", "jdbc:oracle:thin:@db:1521…"),
        ("connection.url", "jdbc:oracle:thin:scott/hunter2@db:1521:ORCL", "***"),
        ("endpoint", "hooks.example.com/services/hunter2", "hooks.example.com…"),
        ("topics.regex", "orders.*", "orders.*"),
        ("name", "\ud800", "?"),
    ],
)
def test_the_value_of_a_setting(name: str, value: object, shown: object) -> None:
    assert shown_value(name, value) == shown


def test_the_salt_in_the_name_of_a_setting_of_debezium_is_not_shown() -> None:
    assert hide_secrets({"column.mask.hash.SHA-256.with.salt.hunter2": "t.card"}) == {
        "column.mask.hash.SHA-256.with.salt.***": "***"
    }


VALUES = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [value for each in SETTINGS.values() for some in (each.secret, each.harmless) for value in some.values()]
    ),
)
NAMES = st.sampled_from([name for each in SETTINGS.values() for some in (each.secret, each.harmless) for name in some])


@given(NAMES, VALUES)
def test_what_was_hidden_stays_as_it_is(name: str, value: str) -> None:
    """A replay of an exported file shows what a replay of the topic shows."""
    shown = hide_secrets({name: value})
    assert hide_secrets(shown) == shown


@pytest.mark.parametrize(
    "piece", ["a", "a:", " ", "://", "eyJ-", "a@", "-", "${a:", "${a:b}", '["', ",a://", "a=", ".", "A"]
)
@pytest.mark.parametrize("name", ["topics", "connection.url", "listeners", "spec"])
def test_a_long_value_takes_no_long_time(name: str, piece: str) -> None:
    """Whoever may write to the config topic chooses it."""
    text, begin = piece * 60_000, time.process_time()
    shown_value(name, text)
    shown_line(text)
    hide_secrets({text: "x"})
    assert time.process_time() - begin < 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:hunter2@w:8083/x?sig=hunter2", "https://***@w:8083/x?…"),
        ("https://u:hun?ter2@w:8083/x", "https://***@w:8083/x"),
        ("https://u:hun/ter2@w:8083/x", "https://***@w:8083/x"),
        ("u:hunter2@w:8083", "***@w:8083"),
        ('{"ns":"mongodb://db:27017/shop.orders"}', '{"ns":"mongodb://db:27017/shop.orders"}'),
        ("jdbc:pg://u:p@db/x", "jdbc:pg://***@db/x"),
        ("at 10:15:02 by ann@host", "at 10:15:02 by ann@host"),
    ],
)
def test_a_text_without_logins(text: str, shown: str) -> None:
    assert without_logins(text) == shown


def test_a_text_about_a_config_has_no_secret_of_it() -> None:
    config = {
        "a.password": "pw",
        "no.one.knows": "hunter2",
        "x": "to",
        "topics": "orders",
        "of.plugin": "Word",
        "prefix": "hunter2",
    }
    text = without_values("orders: hunter2 and pw to Word", config, secret={"of.plugin"})
    assert text == "orders: *** and *** to ***"


@pytest.mark.parametrize(
    ("body", "holds"),
    [
        ({"data": {"worker.properties": "group.id=g\nvalue.converter.basic.auth.user.info=KEY:hunter2\n"}}, True),
        (
            {
                "data": {
                    "worker.properties": "group.id=g\nlisteners=HTTP://:8083\nexactly.once.source.support=enabled\n"
                }
            },
            False,
        ),
        ([{"op": "replace", "path": "/spec/template/metadata/annotations/at", "value": "2026-11-28T05:00:00Z"}], False),
        ([{"op": "add", "value": "Bearer hunter2"}], True),
        ({"env": "sasl.jaas.config=x required password=hunter2;"}, True),
    ],
)
def test_whether_a_patch_holds_secrets(body: object, holds: bool) -> None:
    assert holds_secrets(body) is holds
