"""The topics that a source connector's config names."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eosctl.connectors.topics import ConfiguredTopics, configured_topics

DEBEZIUM = {"connector.class": "io.debezium.connector.postgresql.PostgresConnector", "topic.prefix": "shop"}
MYSQL = {**DEBEZIUM, "connector.class": "io.debezium.connector.mysql.MySqlConnector"}
MIRROR = {"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector", "source.cluster.alias": "eu"}


@pytest.mark.parametrize(
    ("config", "written"),
    [
        ({}, ()),
        ({"connector.class": "FileStreamSource", "topic": "lines"}, ("lines",)),
        ({"connector.class": "FileStreamSource", "topic": " "}, ()),
        ({"connector.class": "DatagenConnector", "kafka.topic": "users"}, ("users",)),
        ({"connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "topic.prefix": "db-"}, ("db-*",)),
        (DEBEZIUM, ("shop.*",)),
        ({**DEBEZIUM, "topic.delimiter": "_"}, ("shop_*",)),
        ({**DEBEZIUM, "heartbeat.interval.ms": "0"}, ("shop.*",)),
        ({**DEBEZIUM, "heartbeat.interval.ms": "5000"}, ("shop.*", "__debezium-heartbeat.shop")),
        ({**DEBEZIUM, "heartbeat.interval.ms": "5000", "topic.heartbeat.prefix": "beat"}, ("shop.*", "beat.shop")),
        ({**DEBEZIUM, "topic.prefix": "", "database.server.name": "old"}, ("old.*",)),
        ({**MYSQL, "schema.history.internal.kafka.topic": "ddl"}, ("shop.*", "shop")),
        ({**MYSQL, "schema.history.internal.kafka.topic": "ddl", "include.schema.changes": "false"}, ("shop.*",)),
        (MIRROR, ("eu.*",)),
        ({**MIRROR, "replication.policy.separator": "-"}, ("eu-*",)),
        ({**MIRROR, "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}, ()),
        ({**MIRROR, "replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"}, ("eu.*",)),
        ({**MIRROR, "connector.class": "MirrorCheckpointConnector"}, ("eu.checkpoints.internal",)),
        ({**MIRROR, "connector.class": "MirrorHeartbeatConnector"}, ("heartbeats",)),
    ],
)
def test_what_it_may_write_to(config: dict[str, str], written: tuple[str, ...]) -> None:
    found = configured_topics(config)
    assert replace(found, complete=False) == ConfiguredTopics(
        written, *(("ddl",), ("ddl",)) if "schema.history.internal.kafka.topic" in config else ()
    )
    known = ("FileStreamSource", MIRROR["connector.class"], "MirrorHeartbeatConnector")
    assert found.complete is (bool(written) and config["connector.class"] in known)


@pytest.mark.parametrize(
    ("more", "read"),
    [
        ({"signal.enabled.channels": "source, kafka", "signal.kafka.topic": "calls"}, ("calls",)),
        ({"signal.enabled.channels": "source,kafka"}, ("shop-signal",)),
        ({"signal.enabled.channels": "source"}, ()),
        ({"database.history.kafka.topic": "ddl"}, ("ddl",)),
    ],
)
def test_what_clients_of_its_own_read(more: dict[str, str], read: tuple[str, ...]) -> None:
    assert configured_topics({**DEBEZIUM, **more}).own_reads == read


def test_signals_are_debezium_s() -> None:
    config = {"connector.class": "FileStreamSource", "topic": "lines", "signal.kafka.topic": "calls"}
    assert configured_topics(config) == ConfiguredTopics(("lines",), complete=True)


def test_a_placeholder_is_no_topic() -> None:
    """`${file:…}` was taken for the name of a topic."""
    config = {"connector.class": "FileStreamSource", "topic": "${file:/run/topics:orders}"}
    assert configured_topics(config) == ConfiguredTopics(unresolved=("topic",))
    prefix = {**DEBEZIUM, "topic.prefix": "${env:SHOP}", "signal.kafka.topic": "calls"}
    assert configured_topics(prefix) == ConfiguredTopics(own_reads=("calls",), unresolved=("topic.prefix",))


def test_transforms_may_send_records_elsewhere() -> None:
    assert not configured_topics(DEBEZIUM).rerouted
    assert configured_topics({**DEBEZIUM, "transforms": "route"}).rerouted
