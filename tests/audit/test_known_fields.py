"""`--unique auto`: what is unique in the records of a known connector, and what is said of others."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from eosctl.audit.fields import auto_fields, topics_without_rows
from eosctl.audit.log.fields import ChangeEvents, Database, ReadValue, encoded
from eosctl.core.records import Record
from eosctl.errors import UsageError

JDBC = "io.confluent.connect.jdbc.JdbcSourceConnector"
MYSQL = "io.debezium.connector.mysql.MySqlConnector"
MARIADB = "io.debezium.connector.mariadb.MariaDbConnector"
POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ({"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector"}, "value"),
        ({"connector.class": JDBC, "mode": "incrementing", "incrementing.column.name": "id"}, "value.id"),
        (
            {
                "connector.class": "JdbcSource", "mode": "timestamp+incrementing", "incrementing.column.name": "id",
                "timestamp.column.name": "changed, made",
            },
            "value.id, value.changed, value.made",
        ),
        ({"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector"}, "None"),
    ],
)  # fmt: skip
def test_fields_by_the_config(config: Mapping[str, str], fields: str) -> None:
    assert str(auto_fields(config)) == fields


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({}, "this connector is not known"),
        ({"connector.class": "my.OwnSourceConnector"}, "my.OwnSourceConnector is not known"),
        ({"connector.class": "io.debezium.connector.oracle.OracleConnector"}, "OracleConnector is not known"),
        ({"connector.class": "com.example.MySqlConnector"}, "MySqlConnector is not known"),
        ({"connector.class": JDBC, "mode": "bulk", "incrementing.column.name": "id"}, "mode=bulk"),
        ({"connector.class": JDBC, "mode": "timestamp", "timestamp.column.name": "at"}, "mode=timestamp"),
        ({"connector.class": JDBC, "incrementing.column.name": "id"}, "mode is not set"),
        ({"connector.class": JDBC, "mode": "incrementing"}, "incrementing.column.name is not set"),
        (
            {"connector.class": JDBC, "mode": "timestamp+incrementing", "incrementing.column.name": "id"},
            "timestamp.column.name is not set",
        ),
        (
            {"connector.class": JDBC, "mode": "incrementing", "incrementing.column.name": "id", "transforms": "route"},
            "transforms",
        ),
        ({"connector.class": "FileStreamSource", "transforms": "stamp"}, "transforms"),
        ({"connector.class": "MirrorSourceConnector", "transforms": "filter"}, "transforms"),
        (
            {
                "connector.class": MYSQL, "transforms": "unwrap",
                "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
            },
            "ExtractNewRecordState",
        ),
        ({"connector.class": POSTGRES, "value.converter": "io.confluent.connect.avro.AvroConverter"}, "AvroConverter"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_said_with_a_way_out(config: Mapping[str, str], why: str) -> None:
    """A row that JDBC reads again as it was updated was a duplicate; mode=bulk reads all rows again each time."""
    with pytest.raises(UsageError, match=why) as caught:
        auto_fields(config)
    assert caught.value.hint
    assert "--unique" in caught.value.hint


def test_topics_of_debezium_that_have_no_rows() -> None:
    config = {"connector.class": MYSQL, "topic.prefix": "shop"}
    assert set(topics_without_rows(config)) == {"shop", "shop.transaction", "__debezium-heartbeat.shop"}
    config |= {"topic.delimiter": "_", "topic.transaction": "tx", "topic.heartbeat.prefix": "beat"}
    assert set(topics_without_rows(config)) == {"shop", "shop_tx", "beat_shop"}
    assert topics_without_rows({"connector.class": JDBC, "topic.prefix": "shop"}) == {}


def event(
    source: Mapping[str, object], *, op: str = "c", key: object = None, after: object = None, order: int | None = None
) -> Record:
    value = {"before": None, "after": after, "source": {"db": "d", "table": "t", **source}, "op": op, "ts_ms": 1}
    value |= {} if order is None else {"transaction": {"id": "5:1", "total_order": order, "data_collection_order": 1}}
    raw = None if key is None else json.dumps({"schema": {}, "payload": key}).encode()
    return Record("shop.d.t", 0, 0, 0, raw, json.dumps({"schema": {}, "payload": value}).encode())


def same(events: ChangeEvents, one: Record, other: Record) -> bool:
    values = [events.read(each) for each in (one, other)]
    assert None not in values
    first, second = (encoded(each.value) for each in values if each is not None)
    return first == second


BINLOG = {"file": "b.1", "pos": 4, "row": 0, "gtid": "0-1-2", "snapshot": "false"}


@pytest.mark.parametrize("given", [{"connector.class": MYSQL}, {"connector.class": MARIADB}])
@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (event(BINLOG, key={"id": 1}, after={"id": 1}), True),
        (event({**BINLOG, "row": 1}), False),
        (event({**BINLOG, "pos": 5}), False),
        (event({**BINLOG, "file": "b.2"}), False),
        (event({**BINLOG, "gtid": "0-1-3"}), False),
        (event(BINLOG, op="d"), False),
    ],
)
def test_changes_of_a_binlog(given: Mapping[str, str], other: Record, is_same: bool) -> None:
    """An update of a primary key is a delete and a create at one position."""
    events = auto_fields(given)
    assert isinstance(events, ChangeEvents)
    assert same(events, event(BINLOG), other) is is_same


def test_events_of_a_compressed_transaction_have_one_position() -> None:
    """With binlog_transaction_compression they may: then the rows show that they are not the same."""
    events = ChangeEvents(Database.MYSQL, has_keys=True, snapshots_once=True)
    one, other = (events.read(event(BINLOG, key={"id": number}, after={"id": number})) for number in (1, 2))
    assert one is not None
    assert other is not None
    assert (one.value, one.content != other.content) == (other.value, True)


LSN = {"lsn": 24023128, "txId": 5, "sequence": '["1","24023128"]', "snapshot": "false"}


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (event(LSN, key={"id": 1}), event({**LSN, "sequence": '[null,"24023128"]'}, key={"id": 1}), True),
        (event(LSN, key={"id": 1}), event(LSN, key={"id": 2}), False),
        (event(LSN, key={"id": 1}), event(LSN, key={"id": 1}, op="d"), False),
        (event(LSN, order=3), event(LSN, order=3), True),
        (event(LSN, order=3), event(LSN, order=4), False),
    ],
)
def test_changes_of_postgresql(one: Record, other: Record, is_same: bool) -> None:
    """All rows of one COPY may have one LSN; `sequence` depends on when the connector started."""
    events = auto_fields({"connector.class": POSTGRES})
    assert isinstance(events, ChangeEvents)
    assert same(events, one, other) is is_same


ROW = event({"snapshot": "true"}, op="r", key={"id": 1})


@pytest.mark.parametrize(
    ("more", "record", "may_repeat"),
    [
        ({}, ROW, False),
        ({}, event({"snapshot": "last"}, op="r", key={"id": 1}), False),
        ({"snapshot.mode": "initial_only"}, ROW, False),
        ({"snapshot.mode": "when_needed"}, ROW, True),
        ({"signal.data.collection": "d.signals"}, ROW, True),
        ({}, event({"snapshot": "incremental"}, op="r", key={"id": 1}), True),
    ],
)
def test_rows_of_a_snapshot_by_their_keys(more: Mapping[str, str], record: Record, may_repeat: bool) -> None:
    """Whoever can ask for a second snapshot gets the rows again: that is no fault."""
    events = auto_fields({"connector.class": POSTGRES, **more})
    assert isinstance(events, ChangeEvents)
    read = events.read(record)
    assert isinstance(read, ReadValue)
    assert read.may_repeat is may_repeat
    assert same(events, record, record)


@pytest.mark.parametrize(
    "record",
    [
        ROW._replace(value=b"\0\0\0\0\1avro"),
        ROW._replace(value=b'{"id":1}'),
        ROW._replace(key=None),
        event(LSN),
        event({"snapshot": "false"}, key={"id": 1}),
    ],
)
def test_what_has_no_position_of_its_own_has_none(record: Record) -> None:
    for database in Database:
        assert ChangeEvents(database, has_keys=True, snapshots_once=True).read(record) is None


@pytest.mark.parametrize("more", [{"transforms": "route"}, {"message.key.columns": "d.t:name"}])
def test_a_key_that_may_not_be_the_rows_is_not_trusted(more: Mapping[str, str]) -> None:
    events = auto_fields({"connector.class": POSTGRES, **more})
    assert isinstance(events, ChangeEvents)
    assert events.read(ROW) is None
    assert events.read(event(LSN, key={"id": 1})) is None
    assert events.read(event(LSN, key={"id": 1}, order=3)) is not None
