"""What a connector's config says of its source partitions, for each known source, and what a change of it means."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

import pytest

from eosctl.offsets.history.config_changes import (
    PartitionStatus,
    changed_names,
    compare_configs,
    is_connects_own,
    partitions_of,
    starts_over,
)
from eosctl.offsets.history.config_reader import Belongs
from eosctl.offsets.history.sources import KNOWN_SOURCES, source_of_class

POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"
SQL_SERVER = "io.debezium.connector.sqlserver.SqlServerConnector"
MONGO = "io.debezium.connector.mongodb.MongoDbConnector"
MONGO_KAFKA = "com.mongodb.kafka.connect.MongoSourceConnector"
JDBC = "io.confluent.connect.jdbc.JdbcSourceConnector"
FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
S3 = "io.aiven.kafka.connect.s3.source.S3SourceConnector"
AZURE = "io.aiven.kafka.connect.azure.source.AzureBlobSourceConnector"
LENSES = "io.lenses.streamreactor.connect.aws.s3.source.S3SourceConnector"
SPOOLDIR = "com.github.jcustenborder.kafka.connect.spooldir.SpoolDirCsvSourceConnector"
IBM_MQ = "com.ibm.eventstreams.connect.mqsource.MQSourceConnector"
YES, NO, UNKNOWN = Belongs.YES, Belongs.NO, Belongs.UNKNOWN
STAYS, NEW, GOES, UNUSED = PartitionStatus.STAYS, PartitionStatus.NEW, PartitionStatus.GOES, PartitionStatus.UNUSED


def config(kind: str, **properties: str) -> dict[str, str]:
    """Return a config of a class; `topic__prefix` is the property topic.prefix."""
    return {"connector.class": kind} | {name.replace("__", "."): value for name, value in properties.items()}


KCQL = "insert into t select * from b:p BATCH = 9"


@pytest.mark.parametrize(
    ("properties", "partition", "answer"),
    [
        (config(POSTGRES, topic__prefix="pg"), {"server": "pg"}, YES),
        (config(POSTGRES, topic__prefix="pg"), {"server": "other"}, NO),
        (config(POSTGRES, topic__prefix="pg"), {"server": "pg", "database": "d"}, NO),
        (config("PostgresConnector", topic__prefix="pg"), {"server": "pg"}, YES),
        (config("Postgres", topic__prefix="pg"), {"server": "pg"}, YES),
        (config("com.example.PostgresConnector", topic__prefix="pg"), {"server": "pg"}, UNKNOWN),
        (config(POSTGRES, database__server__name="pg"), {"server": "pg"}, YES),
        (config(POSTGRES, database__server__name="old", topic__prefix="pg"), {"server": "pg"}, UNKNOWN),
        (config(POSTGRES, database__server__name="pg", topic__prefix="pg"), {"server": "pg"}, YES),
        (config(POSTGRES, topic__prefix="${file:/etc/x:prefix}"), {"server": "pg"}, UNKNOWN),
        (config(POSTGRES, topic__prefix="a-${env:STAGE}"), {"server": "a-b"}, UNKNOWN),
        (config(POSTGRES), {"server": "pg"}, UNKNOWN),
        (config(SQL_SERVER, topic__prefix="s", database__names="a,b"), {"server": "s", "database": "a"}, YES),
        (config(SQL_SERVER, topic__prefix="s", database__names="a,b"), {"server": "s", "database": "A"}, YES),
        (config(SQL_SERVER, topic__prefix="s", database__names="a,b"), {"server": "s", "database": "c"}, NO),
        (config(SQL_SERVER, topic__prefix="s", database__names="a,b"), {"server": "s"}, NO),
        (config(SQL_SERVER, topic__prefix="s", database__names="a"), {"server": "s"}, UNKNOWN),  # not of 2.0 to 3.0
        (config(SQL_SERVER, database__server__name="s", database__dbname="a"), {"server": "s"}, YES),
        (config(MONGO, topic__prefix="m"), {"server_id": "m"}, YES),
        (config(MONGO, topic__prefix="m"), {"server_id": "m", "rs": "rs0"}, UNKNOWN),
        (config(MONGO, mongodb__name="m"), {"server_id": "m", "rs": "rs0"}, UNKNOWN),
        (config(MONGO, topic__prefix="m"), {"server_id": "n", "rs": "rs0"}, NO),
        (config(MONGO_KAFKA, offset__partition__name="mine"), {"ns": "mine"}, YES),
        (config(MONGO_KAFKA, offset__partition__name="mine", connection__uri="${file:x:y}"), {"ns": "mine"}, YES),
        (
            config(MONGO_KAFKA, connection__uri="mongodb://u:p@h2:1,h1/x?w=1", database="d", collection="c"),
            {"ns": "mongodb://h1,h2:1/d.c"},
            YES,
        ),
        (config(MONGO_KAFKA, connection__uri="mongodb+srv://h", database="d"), {"ns": "mongodb+srv://h/d"}, YES),
        (config(MONGO_KAFKA), {"ns": "mongodb://localhost:27017,localhost:27018,localhost:27019/"}, YES),
        (
            config(MONGO_KAFKA, connection__uri="mongodb://${file:/s/a:user}:${file:/s/a:pass}@h/", database="d"),
            {"ns": "mongodb://h/d"},
            YES,
        ),
        (config(MONGO_KAFKA, connection__uri="mongodb://u@${env:H}/", database="d"), {"ns": "mongodb://h/d"}, UNKNOWN),
        (config(MONGO_KAFKA, connection__uri="${file:/s/a:uri}", database="d"), {"ns": "mongodb://h/d"}, UNKNOWN),
        (config(MONGO_KAFKA, connection__uri="mongodb://h", database="d"), {"ns": "mongodb://i/d"}, NO),
        (
            config(MONGO_KAFKA, connection__uri="mongodb://u:p@h/?w=1", database="d", collection="c"),
            {"ns": "mongodb://u:p@h/?w=1/d.c"},  # of before 1.10
            UNKNOWN,
        ),
        (config(SQL_SERVER, topic__prefix="s", database__names="a, b"), {"server": "s", "database": "b"}, YES),
        (config(JDBC, mode="incrementing", query="select 1"), {"query": "query"}, YES),
        (config(JDBC, mode="incrementing", query="select 1"), {"table": "orders"}, NO),
        (config(JDBC, mode="incrementing", table__whitelist="orders"), {"protocol": "1", "table": "db.orders"}, YES),
        (config(JDBC, mode="incrementing", table__whitelist="s.orders, x"), {"table": "orders"}, YES),
        (config(JDBC, mode="timestamp", table__whitelist='"s"."orders"'), {"protocol": "1", "table": "s.orders"}, YES),
        (config(JDBC, mode="incrementing", table__whitelist="orders"), {"protocol": "1", "table": "db.items"}, NO),
        (config(JDBC, mode="incrementing", table__whitelist="orders"), {"query": "query"}, NO),
        (config(JDBC, mode="timestamp", table__whitelist="s.o"), {"protocol": "1", "table": "d.s.o"}, UNKNOWN),
        (config(JDBC, mode="timestamp", table__whitelist="a.b.orders"), {"table": "orders"}, YES),
        (config(JDBC, mode="timestamp"), {"table": "orders"}, YES),
        (config(JDBC, mode="timestamp", table__blacklist="orders"), {"table": "orders"}, NO),
        (config(JDBC, mode="timestamp", table__blacklist="s.orders"), {"table": "orders"}, UNKNOWN),
        (config(JDBC, mode="timestamp", schema__pattern="s"), {"table": "orders"}, UNKNOWN),
        (config(JDBC, mode="timestamp", table__include__list="s[.].*"), {"table": "orders"}, UNKNOWN),
        (config(JDBC, mode="bulk", table__whitelist="orders"), {"table": "orders"}, NO),
        (config(JDBC, mode="${env:MODE}"), {"table": "orders"}, UNKNOWN),
        (config(FILE, file="/data/a"), {"filename": "/data/a"}, YES),
        (config("FileStreamSource", file="/data/a"), {"filename": "/data/b"}, NO),
        (config(FILE), {"filename": None}, UNKNOWN),
        (config(MIRROR, source__cluster__alias="a", topics="t"), {"cluster": "a", "topic": "t", "partition": 0}, YES),
        (config(MIRROR, topics="t.*"), {"cluster": "source", "topic": "tt", "partition": 0}, YES),
        (config(MIRROR, topics="t"), {"cluster": "source", "topic": "u", "partition": 0}, NO),
        (config(MIRROR, topics="(t|u)"), {"cluster": "source", "topic": "u", "partition": 0}, UNKNOWN),
        (config(MIRROR, topics="(t|u)"), {"cluster": "other", "topic": "u", "partition": 0}, NO),
        (config(MIRROR), {"cluster": "source", "topic": "u.replica", "partition": 0}, NO),
        (config(MIRROR), {"cluster": "source", "topic": "__u", "partition": 0}, NO),
        (config(MIRROR), {"cluster": "source", "topic": "a-internal", "partition": 0}, UNKNOWN),  # not since 3.9
        (config(MIRROR, topics__exclude=""), {"cluster": "source", "topic": "u.replica", "partition": 0}, YES),
        (config(MIRROR, topics__blacklist="u"), {"cluster": "source", "topic": "u", "partition": 0}, NO),
        (config(MIRROR, topics__blacklist="v"), {"cluster": "source", "topic": "u.replica", "partition": 0}, YES),
        (config(MIRROR, topics=""), {"cluster": "source", "topic": "u", "partition": 0}, NO),
        (config(MIRROR, topics_exclude="x"), {"cluster": "source", "topic": "u", "partition": 0}, YES),
        (config(MIRROR, topics__exclude="u"), {"cluster": "source", "topic": "u", "partition": 0}, NO),
        (config(MIRROR, topics="t"), {"cluster": "source", "topic": "heartbeats", "partition": 0}, UNKNOWN),
        (config(MIRROR, topic__filter__class="x.Own"), {"cluster": "source", "topic": "u", "partition": 0}, UNKNOWN),
        (config(S3, aws__s3__bucket__name="b", aws__s3__prefix="p/"), {"bucket": "b", "objectKey": "p/1"}, YES),
        (config(S3, aws__s3__bucket__name="b", aws__s3__prefix="p/"), {"bucket": "b", "objectKey": "q/1"}, NO),
        (config(S3, aws_s3_bucket="b"), {"bucket": "b", "objectKey": "q/1"}, YES),
        (config(S3, aws__s3__bucket__name="c"), {"bucket": "b", "objectKey": "q/1"}, NO),
        (config(AZURE, azure__storage__container__name="c"), {"container": "c", "blobName": "x"}, YES),
        (config(LENSES, connect__s3__kcql=KCQL), {"container": "b", "prefix": "p"}, UNKNOWN),
        (config(LENSES, connect__s3__kcql=KCQL), {"container": "b", "prefix": "p/x/"}, UNKNOWN),
        (config(LENSES, connect__s3__kcql=KCQL), {"container": "b", "prefix": "q/x/"}, NO),
        (config(LENSES, connect__s3__kcql=KCQL), {"container": "b", "prefix": "pq"}, UNKNOWN),
        (config(LENSES, connect__s3__kcql="insert into t select * from `c`"), {"container": "b", "prefix": "p"}, NO),
        (config(SPOOLDIR, input__file__pattern=".*"), {"fileName": "a.csv"}, UNKNOWN),
        (config(IBM_MQ, mq__queue__manager="M", mq__queue="Q"), {"source": "M/Q"}, YES),
        (config(IBM_MQ, mq__queue__manager="M", mq__queue="Q"), {"source": "M/R"}, NO),
        (config("com.example.Source", topic__prefix="x"), {"server": "x"}, UNKNOWN),
        ({}, {"server": "x"}, UNKNOWN),
    ],
)  # fmt: skip
def test_a_config_names_its_source_partitions(
    properties: Mapping[str, str], partition: Mapping[str, object], answer: Belongs
) -> None:
    assert partitions_of(properties).belongs(partition) is answer


def test_every_known_class_has_a_rule() -> None:
    for source in KNOWN_SOURCES:
        for name in source.classes.split(", "):
            assert source_of_class({"connector.class": name}) is source
        assert source.of_config.named_by
        assert source.of_config.evidence


@pytest.mark.parametrize(
    "partition", [None, {}, {"server": None}, {"table": 1}, {"topic": 3, "cluster": "source", "partition": "x"}]
)
def test_a_rule_takes_any_source_partition(partition: Mapping[str, object] | None) -> None:
    for source in KNOWN_SOURCES:
        kind = source.classes.split(", ")[0]
        found = partitions_of({"connector.class": kind, "topic.prefix": "x", "mode": "timestamp", "file": "f"})
        assert found.belongs(partition) in Belongs


def statuses(
    before: Mapping[str, str] | None, after: Mapping[str, str], *present: Mapping[str, object], **more: object
) -> list[tuple[object, PartitionStatus]]:
    change = compare_configs(before, after, present, **more)  # type: ignore[arg-type]
    return [(each.partition, each.status) for each in change.partitions]


A, B = {"filename": "a"}, {"filename": "b"}


def test_another_file_starts_over_and_leaves_the_offset_behind() -> None:
    assert statuses(config(FILE, file="a"), config(FILE, file="b"), A) == [(A, GOES), (B, NEW)]
    assert statuses(config(FILE, file="a"), config(FILE, file="b"), A, B) == [(A, GOES), (B, STAYS)]
    assert statuses(config(FILE, file="a"), config(FILE, file="a", topic="t"), A, B) == [(A, STAYS), (B, UNUSED)]


def test_that_a_connector_starts_over_is_one_problem() -> None:
    effect = compare_configs(config(FILE, file="a"), config(FILE, file="b"), [A])
    assert (found := starts_over("c", effect)) is not None
    assert (found.code, found.severity) == ("starts_over", "error")
    assert starts_over("c", compare_configs(config(FILE, file="a"), config(FILE, file="b"), [A, B])) is None
    assert starts_over("c", compare_configs(None, config("com.example.Source"), [])) is None


def test_what_has_no_offset_yet_is_not_new() -> None:
    assert statuses(config(FILE, file="a"), config(FILE, file="a", tasks__max="2")) == []
    assert statuses(None, config(FILE, file="a")) == [(A, NEW)]
    assert statuses(None, config(FILE, file="a"), A, B) == [(A, STAYS), (B, UNUSED)]


def test_the_older_form_of_a_source_partition_is_no_other_one() -> None:
    one = config(SQL_SERVER, topic__prefix="s", database__names="a")
    two = one | {"database.names": "a,b"}
    only = {"server": "s"}
    assert statuses(one, one | {"tasks.max": "1"}, only) == [(only, STAYS)]
    assert statuses(one, one | {"connector.plugin.version": "2.3.7"}, only) == [(only, PartitionStatus.UNKNOWN)]
    before_2 = config(SQL_SERVER, database__server__name="s", database__dbname="a")
    assert statuses(before_2, one, only) == [(only, PartitionStatus.UNKNOWN)]
    assert statuses(one, two, only) == [
        (only, GOES),
        ({"server": "s", "database": "a"}, NEW),
        ({"server": "s", "database": "b"}, NEW),
    ]


def test_an_unknown_class_stays_where_only_settings_of_connect_change() -> None:
    own = config("com.example.Source", where="x", tasks__max="1")
    harmless = {"errors.tolerance": "all", "transforms": "a", "transforms.a.type": "X", "value.converter": "Y"}
    assert statuses(own, own | harmless, A) == [(A, STAYS)]
    for changes in ({"where": "y"}, {"connector.plugin.version": "2"}, {"tasks.max": "2"}):
        # Kafka's VerifiableSourceConnector has a source partition per task
        assert statuses(own, own | changes, A) == [(A, PartitionStatus.UNKNOWN)]
    assert statuses(own, own | {"connector.class": "com.example.Other"}, A) == [(A, PartitionStatus.UNKNOWN)]
    assert statuses(None, own, A) == [(A, PartitionStatus.UNKNOWN)]


def test_what_the_worker_resolves_is_unknown_and_never_stays() -> None:
    hidden = config(POSTGRES, topic__prefix="${file:/x:prefix}")
    server = {"server": "pg"}
    assert statuses(hidden, hidden | {"snapshot.mode": "never"}, server) == [(server, PartitionStatus.UNKNOWN)]
    assert statuses(hidden, hidden | {"tasks.max": "2"}, server) == [(server, STAYS)]  # the config names what it named
    assert statuses(hidden, config(POSTGRES, topic__prefix="pg"), server) == [(server, STAYS)]
    assert statuses(hidden, config(POSTGRES, topic__prefix="qg"), server) == [(server, GOES), ({"server": "qg"}, NEW)]


def test_a_part_of_a_name_that_may_follow_from_another_property() -> None:
    orders = {"protocol": "1", "table": "s.orders"}
    jdbc = config(JDBC, mode="incrementing", table__whitelist="orders", connection__url="jdbc:postgresql://h/d?user=a")
    assert statuses(jdbc, jdbc | {"connection.url": "jdbc:postgresql://h/d?user=b"}, orders) == [(orders, STAYS)]
    assert statuses(jdbc, jdbc | {"connection.url": "jdbc:postgresql://i/d"}, orders) == [
        (orders, PartitionStatus.UNKNOWN)
    ]
    assert statuses(jdbc, jdbc | {"table.whitelist": "orders,items"}, orders) == [
        (orders, STAYS),
        ({"protocol": "1", "table": "items"}, NEW),
    ]
    assert statuses(jdbc, jdbc | {"mode": "bulk"}, orders) == [(orders, GOES)]
    assert statuses(jdbc, jdbc | {"mode": "timestamp"}, orders) == [(orders, STAYS)]


def test_a_pattern_that_does_not_change_keeps_what_it_matched() -> None:
    found = {"fileName": "a.csv"}
    spool = config(SPOOLDIR, input__file__pattern=".*")
    assert statuses(spool, spool | {"input.path": "/y"}, found) == [(found, STAYS)]
    assert statuses(spool, spool | {"input.file.pattern": "b.*"}, found) == [(found, PartitionStatus.UNKNOWN)]


def test_a_filter_that_changes_keeps_no_table_for_certain() -> None:
    table = {"protocol": "1", "table": "s.orders"}
    jdbc = config(JDBC, mode="incrementing", table__include__list="s[.].*")
    assert statuses(jdbc, jdbc | {"table.exclude.list": "s[.]orders"}, table) == [(table, PartitionStatus.UNKNOWN)]
    assert statuses(jdbc, jdbc | {"poll.interval.ms": "9"}, table) == [(table, STAYS)]


def test_the_depth_of_folders_names_source_partitions() -> None:
    folder = {"container": "b", "prefix": "p/x/"}
    lenses = config(LENSES, connect__s3__kcql=KCQL)
    assert statuses(lenses, lenses | {"connect.s3.kcql": KCQL.replace("9", "8")}, folder) == [(folder, STAYS)]
    for changes in (
        {"connect.s3.source.partition.search.recurse.levels": "1"},
        {"connect.s3.kcql": "insert into t select * from b"},
    ):
        assert statuses(lenses, lenses | changes, folder) == [(folder, PartitionStatus.UNKNOWN)]


def test_objects_that_another_template_of_names_leaves_out() -> None:
    found = {"bucket": "b", "objectKey": "p/1"}
    s3 = config(S3, aws__s3__bucket__name="b")
    assert statuses(s3, s3 | {"file.name.template": "x-{{partition}}"}, found) == [(found, PartitionStatus.UNKNOWN)]


def test_the_replica_set_of_older_versions_follows_from_the_address() -> None:
    old, new = {"server_id": "m", "rs": "rs0"}, {"server_id": "m"}
    mongo = config(MONGO, topic__prefix="m", mongodb__connection__string="mongodb://u:p@h/?replicaSet=rs0")
    other = mongo | {"mongodb.connection.string": "mongodb://u:p@h/?replicaSet=rs1"}
    assert statuses(mongo, other, old) == [(old, PartitionStatus.UNKNOWN)]
    assert statuses(mongo, mongo | {"mongodb.connection.mode": "sharded"}, old) == [(old, PartitionStatus.UNKNOWN)]
    assert statuses(mongo, other, new) == [(new, STAYS)]
    login = mongo | {"mongodb.connection.string": "mongodb://u:q@h/?replicaSet=rs0"}
    assert statuses(mongo, login, old) == [(old, STAYS)]


@pytest.mark.parametrize(
    ("kind", "name", "before", "after"),
    [
        (JDBC, "connection.url", "jdbc:postgresql://h/d?user=a&password=b", "jdbc:postgresql://h/d?user=a&password=c"),
        (JDBC, "connection.url", "jdbc:sqlserver://h;password=b;x=1", "jdbc:sqlserver://h;password=c;x=1"),
        (MONGO, "mongodb.connection.string", "mongodb://u:p@h,i/?w=1", "mongodb://u:q@h,i/?w=1"),
        (MONGO_KAFKA, "connection.uri", "mongodb+srv://u:p@h/d", "mongodb+srv://v:p@h/d"),
    ],
)
def test_another_login_is_no_other_source(kind: str, name: str, before: str, after: str) -> None:
    own = config(kind, mode="incrementing", table__whitelist="o", topic__prefix="x", offset__partition__name="x")
    found = compare_configs(own | {name: before}, own | {name: after}, [{"protocol": "1", "table": "o"}])
    assert found.meanings == ()
    assert PartitionStatus.UNKNOWN not in [each.status for each in found.partitions]
    assert compare_configs(own | {name: before}, own | {name: re.sub("(//|@)h", r"\1j", before)}, []).meanings


@pytest.mark.parametrize("name", ["FileStreamSource", "FileStreamSourceConnector"])
def test_another_spelling_of_a_class_is_no_other_class(name: str) -> None:
    before = config(FILE, file="a")
    found = compare_configs(before, before | {"connector.class": name}, [A])
    assert (found.meanings, [each.status for each in found.partitions]) == ((), [STAYS])


def test_thousands_of_tables_take_no_long_time() -> None:
    names = [f"s.t{number}" for number in range(5_000)]
    jdbc = config(JDBC, mode="incrementing", table__whitelist=",".join(names[:-1]))
    present = [{"protocol": "1", "table": name} for name in names]
    begin = time.process_time()
    found = statuses(jdbc, jdbc | {"table.whitelist": ",".join(names[1:])}, *present[:-1])
    assert found[0] == (present[0], GOES)
    assert found[-1] == (present[-1], NEW)
    assert {status for _partition, status in found[1:-1]} == {STAYS}
    assert time.process_time() - begin < 20  # each with each other took minutes


def test_other_brokers_have_other_offsets() -> None:
    before = config(FILE, file="a", offsets__storage__topic="own")
    for client in ("producer", "consumer"):
        after = before | {f"{client}.override.bootstrap.servers": "other:9092"}
        assert statuses(before, after, A) == [(A, PartitionStatus.UNKNOWN)]


def test_another_offsets_topic_counts_by_what_can_be_read_there() -> None:
    before, after = config(FILE, file="a"), config(FILE, file="a", offsets__storage__topic="own")
    assert statuses(before, after, A) == [(A, PartitionStatus.UNKNOWN)]
    assert statuses(before, after, A, readable={0}) == [(A, STAYS)]
    assert statuses(before, after, A, readable=set()) == [(A, NEW)]


def test_a_queue_is_not_read_again() -> None:
    queue = config(IBM_MQ, mq__queue__manager="M", mq__queue="Q")
    assert statuses(queue, queue | {"mq.queue": "R"}, {"source": "M/Q"}) == [({"source": "M/Q"}, GOES)]


def test_another_class_takes_no_offset_for_granted() -> None:
    server = {"server": "x"}
    mysql = config("io.debezium.connector.mysql.MySqlConnector", topic__prefix="x")
    assert statuses(config(POSTGRES, topic__prefix="x"), mysql, server) == [(server, PartitionStatus.UNKNOWN)]
    mariadb = config("io.debezium.connector.mariadb.MariaDbConnector", topic__prefix="x")
    assert statuses(mysql, mariadb, server) == [(server, STAYS)]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (POSTGRES, "snapshot.mode"),
        (POSTGRES, "table.include.list"),
        (POSTGRES, "slot.name"),
        (JDBC, "mode"),
        (JDBC, "incrementing.column.name"),
        (JDBC, "query"),
        (MIRROR, "topics"),
        (FILE, "offsets.storage.topic"),
    ],
)
def test_a_change_with_a_meaning_of_its_own_is_named(kind: str, name: str) -> None:
    before = config(kind)
    found = compare_configs(before, before | {name: "other"}, [])
    assert [each.properties for each in found.meanings] == [(name,)]
    assert compare_configs(before, before | {"tasks.max": "9"}, []).meanings == ()


def test_another_class_is_named() -> None:
    for other in ("other", MIRROR):
        [found] = compare_configs(config(FILE), config(other), []).meanings
        assert (found.properties, found.may_skip) == (("connector.class",), True)


@pytest.mark.parametrize(
    ("kind", "name", "may_skip"),
    [
        (JDBC, "incrementing.column.name", True),
        (JDBC, "timestamp.initial", False),
        (POSTGRES, "slot.name", True),
        (MIRROR, "topics", False),
    ],
)
def test_which_changes_may_skip_records(kind: str, name: str, *, may_skip: bool) -> None:
    [found] = compare_configs(config(kind), config(kind) | {name: "other"}, []).meanings
    assert found.may_skip is may_skip


def test_what_connect_defines_itself() -> None:
    assert is_connects_own("transforms.x.type")
    assert is_connects_own("producer.override.acks")
    assert not is_connects_own("producer.override.bootstrap.servers")
    assert not is_connects_own("offsets.storage.topic")
    assert not is_connects_own("connector.class")
    assert not is_connects_own("topic.prefix")
    assert not is_connects_own("errors.own")
    assert changed_names({"a": "1", "b": "2"}, {"a": "1", "c": ""}) == ("b", "c")
