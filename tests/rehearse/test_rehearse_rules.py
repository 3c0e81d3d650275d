"""What a rehearsal makes of the user's files: nothing of them may write to a real cluster."""

from __future__ import annotations

import json

import pytest

from eosctl.core.java.properties import parse_properties
from eosctl.errors import EosctlError, InputFileError, RefusedError
from eosctl.rehearse.rules import FitConnector, GivenConnector, fit_connector, fit_worker, read_connector

CLASS = "com.example.JdbcSource"
NEWEST = (4, 3)
MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"


def fit(brokers: int = 1, **config: str) -> FitConnector:
    given = {"connector.class": CLASS, **{name.replace("__", "."): value for name, value in config.items()}}
    return fit_connector(GivenConnector("orders", given), brokers=brokers, kafka_version=NEWEST)


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"connector.class": CLASS}, "rehearsal"),
        ({"connector.class": CLASS, "name": "orders"}, "orders"),
        ({"name": "orders", "config": {"connector.class": CLASS}}, "orders"),
        ({"name": "orders", "config": {"connector.class": CLASS, "name": "other"}}, "orders"),
    ],
)
def test_a_config_comes_with_or_without_its_envelope(document: object, name: str) -> None:
    given = read_connector(json.dumps(document), source="c.json")
    assert (given.name, given.config["connector.class"]) == (name, CLASS)
    assert given.config.get("name", name) == name


def test_numbers_and_flags_are_what_connect_makes_of_them() -> None:
    given = read_connector('{"connector.class": "C", "tasks.max": 2, "flag": true, "no": null}', source="c.json")
    assert given.config == {"connector.class": "C", "tasks.max": "2", "flag": "true"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "c.json is no JSON"),
        ("[1]", "c.json is no JSON object"),
        ('{"name": "x"}', "c.json has no connector.class"),
        ('{"connector.class": "C", "a": {"b": 1}}', "c.json: a is not one value"),
    ],
)
def test_what_is_no_config_is_said_with_its_file(text: str, why: str) -> None:
    with pytest.raises(InputFileError, match=why) as caught:
        read_connector(text, source="c.json")
    assert "PUT /connectors/NAME/config" in str(caught.value.hint)


def test_overrides_that_lead_to_brokers_are_left_out_and_said() -> None:
    found = fit(
        producer__override__bootstrap__servers="prod:9092",
        producer__override__sasl__jaas__config="secret-of-prod",
        consumer__override__security__protocol="SASL_SSL",
        producer__override__linger__ms="5",
    )
    assert found.config_at("sandbox:1", {}) == {"connector.class": CLASS, "producer.override.linger.ms": "5"}
    assert len(found.changed) == 3
    assert not any("secret-of-prod" in each or "prod:9092" in each for each in found.changed)


@pytest.mark.parametrize(
    ("name", "login"),
    [
        ("target.cluster.bootstrap.servers", "target.cluster.sasl.jaas.config"),
        ("schema.history.internal.kafka.bootstrap.servers", "schema.history.internal.producer.security.protocol"),
        ("confluent.topic.bootstrap.servers", "confluent.topic.ssl.truststore.location"),
    ],
)
def test_brokers_that_a_connector_writes_to_are_the_sandboxs(name: str, login: str) -> None:
    found = fit_connector(
        GivenConnector("c", {"connector.class": CLASS, name: "prod:9092", login: "x"}), brokers=1, kafka_version=NEWEST
    )
    assert found.config_at("sandbox:1", {}) == {"connector.class": CLASS, name: "sandbox:1"}
    assert "prod:9092" not in str((found.changed, found.outside))


@pytest.mark.parametrize(
    ("name", "prefixes"),
    [
        ("bootstrap.servers", [""]),
        ("target.cluster.bootstrap.servers", ["target.cluster."]),
        (
            "schema.history.internal.kafka.bootstrap.servers",
            ["schema.history.internal.producer.", "schema.history.internal.consumer."],
        ),
        ("confluent.topic.bootstrap.servers", ["confluent.topic."]),
    ],
)
def test_clients_of_a_connector_log_in_to_the_sandbox(name: str, prefixes: list[str]) -> None:
    """Its brokers let everybody in, who read what the connector is configured with."""
    found = fit_connector(
        GivenConnector("c", {"connector.class": CLASS, name: "prod:9092"}), brokers=1, kafka_version=NEWEST
    )
    logins = {f"{prefix}sasl.mechanism": "PLAIN" for prefix in prefixes}
    assert found.config_at("sandbox:1", {"sasl.mechanism": "PLAIN"}) == {
        "connector.class": CLASS, name: "sandbox:1", **logins,
    }  # fmt: skip


def test_the_login_of_the_source_system_stays() -> None:
    found = fit(database__hostname="db", database__ssl__mode="require", producer__override__bootstrap__servers="p:1")
    assert found.config["database.ssl.mode"] == "require"
    assert found.outside == {"database.hostname": "db"}


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("connection.url", "jdbc:postgresql://u:secret@db/orders?password=secret", "jdbc:postgresql://***@db…"),
        ("connection.url", "jdbc:sqlserver://db:1433;password=secret", "jdbc:sqlserver://db:1433…"),
        ("file", "/data/lines.txt", "/data/lines.txt"),
        ("mongodb.connection.string", "mongodb://u:secret@h", "***"),
        ("value.converter.schema.registry.url", "http://registry:8081", "http://registry:8081"),
        ("hosts", "a:1,b:2", "a:1,b:2"),
        ("mq.connection.name.list", "mq(1414)", "mq(1414)"),
        ("kafka.bootstrap", "prod:9092", "prod:9092"),
        ("metadata.broker.list", "prod:9092", "prod:9092"),
        ("bootstrapServers", "prod", "prod"),
        ("hostName", "db", "db"),
        ("where.it.is", "db:5432", "db:5432"),
        ("anything", "jdbc:oracle:thin:scott/tiger@//db", "***"),
    ],
)
def test_the_plan_says_which_systems_are_really_used(name: str, value: str, shown: str) -> None:
    found = fit_connector(GivenConnector("c", {"connector.class": CLASS, name: value}), brokers=1, kafka_version=NEWEST)
    assert found.outside == {name: shown}


def test_names_and_ids_that_production_may_have_too_are_said() -> None:
    """Two with one replication slot or server.id disturb each other; the plan used to show none of them."""
    found = fit(slot__name="orders", database__server__id="7", producer__override__client__id="x", tasks__max="1")
    assert found.shared == {"slot.name": "orders", "database.server.id": "7"}


def test_replication_factors_fit_the_brokers() -> None:
    found = fit(brokers=1, replication__factor="3", topic__creation__default__replication__factor="-1")
    assert found.config["replication.factor"] == "1"
    assert found.config["topic.creation.default.replication.factor"] == "-1"
    assert found.changed == ("replication.factor: 1, as there are no more brokers",)
    assert fit(brokers=3, replication__factor="3").changed == ()


MIRRORS = {"connector.class": MIRROR, "target.cluster.bootstrap.servers": "prod-b:9092"}


SERVERS = "source.cluster.bootstrap.servers"


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ({SERVERS: "prod-a:9092"}, "prod-a:9092"),
        ({SERVERS: "prod-a:9092", "offset-syncs.topic.location": "source"}, "prod-a:9092"),
        ({SERVERS: "prod-a:9092", "connector.class": "MirrorSourceConnector"}, "prod-a:9092"),
        ({SERVERS: "prod-a:9092", "connector.class": "MirrorSource"}, "prod-a:9092"),
        ({SERVERS: "prod-a:9092", "connector.class": f"{MIRROR} "}, "prod-a:9092"),
        ({SERVERS: "127.0.0.1:9092"}, "127.0.0.1:9092"),
        ({SERVERS: "127.0.0.1:1", "source.producer.bootstrap.servers": "prod-a:9092"}, "127.0.0.1:1, prod-a:9092"),
        ({SERVERS: "[::1]:1", "source.admin.bootstrap.servers": "prod-a:9092"}, r"\[::1\]:1, prod-a:9092"),
        ({"source.bootstrap.servers": "prod-a:9092"}, "prod-a:9092"),
        ({}, "its source cluster"),
    ],
)
def test_a_mirror_that_would_write_to_its_source_is_refused(config: dict[str, str], where: str) -> None:
    """Aliases of the class, other clients' brokers, and a port of this machine that leads to production, too."""
    with pytest.raises(RefusedError, match=f"offset-syncs topic to {where}; nothing was started"):
        fit_connector(GivenConnector("m", {**MIRRORS, **config}), brokers=1, kafka_version=NEWEST)


def test_a_version_that_does_not_know_the_setting_writes_all_the_same() -> None:
    """3.5 has no emit.offset-syncs.enabled: it used to be trusted there."""
    config = {**MIRRORS, SERVERS: "prod-a:9092", "emit.offset-syncs.enabled": "false"}
    with pytest.raises(RefusedError, match="offset-syncs topic to prod-a:9092"):
        fit_connector(GivenConnector("m", config), brokers=1, kafka_version=(3, 5))


@pytest.mark.parametrize(
    ("source", "more"),
    [
        ("127.0.0.1:9092", {"offset-syncs.topic.location": "target "}),
        ("prod-a:9092", {"offset-syncs.topic.location": "target"}),
        ("prod-a:9092", {"emit.offset-syncs.enabled": "false"}),
    ],
)
def test_a_mirror_that_only_reads_is_rehearsed(source: str, more: dict[str, str]) -> None:
    config = {**MIRRORS, "source.cluster.bootstrap.servers": source, "source.cluster.sasl.mechanism": "PLAIN", **more}
    found = fit_connector(GivenConnector("m", config), brokers=1, kafka_version=NEWEST)
    assert found.config_at("sandbox:1", {}) == {**config, "target.cluster.bootstrap.servers": "sandbox:1"}
    assert found.outside["source.cluster.bootstrap.servers"] == source


WORKER = """\
bootstrap.servers=prod:9092
group.id=connect-prod
config.storage.topic=connect-configs
listeners=http://:8083
security.protocol=SASL_SSL
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
config.providers=file
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
plugin.path=/opt/plugins
producer.max.request.size=2000000
value.converter.schema.registry.url=https://u:secret@registry:8081/x
value.converter.log.bootstrap.servers=prod:9092
producer.sasl.jaas.config=secret
producer.bootstrap.servers=prod:9092
admin.ssl.truststore.location=/x
consumer.interceptor.classes=com.example.I
connector.client.config.override.policy=All
"""


def test_a_worker_gives_what_makes_sense_in_a_sandbox() -> None:
    found = fit_worker(parse_properties(WORKER, source="w"))
    assert sorted(found.taken) == [
        "config.providers",
        "config.providers.file.class",
        "connector.client.config.override.policy",
        "key.converter",
        "plugin.path",
        "producer.max.request.size",
        "value.converter",
        "value.converter.schema.registry.url",
        "value.converter.schemas.enable",
    ]
    assert found.outside == {"value.converter.schema.registry.url": "https://***@registry:8081…"}
    assert set(found.left_out) == set(parse_properties(WORKER, source="w").values) - set(found.taken)


def test_the_errors_are_of_the_house() -> None:
    """A bare ValueError of a bad file would be shown as a defect of eosctl."""
    assert issubclass(InputFileError, EosctlError)
