"""How the known sources make source partitions of a connector's config: a rule for each. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection
from functools import cache

from eosctl.core.java.properties import is_reference, split_list, without_references
from eosctl.offsets.history.config_reader import (
    Belongs,
    ConfigRule,
    ExpectedPartition,
    Meaning,
    NamedPartitions,
    NotKnownError,
    Partition,
    Reader,
    resolved,
)

_TABLES = Meaning(
    (
        "table.include.list", "table.exclude.list", "table.whitelist", "table.blacklist", "schema.include.list",
        "schema.exclude.list", "database.include.list", "database.exclude.list", "collection.include.list",
        "collection.exclude.list", "collection.whitelist", "collection.blacklist",
    ),
    "Debezium takes no snapshot of what comes in while there is an offset: only its changes from now on are read. For "
    "its rows insert execute-snapshot into the signal table (signal.data.collection).",
)  # fmt: skip
_SNAPSHOT_MODE = Meaning(
    ("snapshot.mode",),
    "Most modes count only without an offset, so this takes no snapshot now. `always`, and `when_needed` where the "
    "source no longer has the position, do.",
)
_SERVER = Meaning(
    ("database.hostname", "database.port", "database.dbname", "database.instance", "database.pdb.name", "slot.name",
     "mongodb.connection.string", "mongodb.hosts"),
    "The source partition does not name the server, database or slot: the present offset is applied to the other one, "
    "where it is another place or none.",
)  # fmt: skip
_DEBEZIUM_MEANINGS = (_TABLES, _SNAPSHOT_MODE, _SERVER)
_TOPIC_PREFIX = ("topic.prefix", "database.server.name")
_DEBEZIUM_AT = "debezium/debezium at aad55199 (3.7.0-SNAPSHOT) and v1.9.7.Final"


def _debezium(config: Reader) -> NamedPartitions:
    return NamedPartitions((ExpectedPartition({"server": config.first(*_TOPIC_PREFIX)}),))


_WITHOUT_OFFSET = "It counts only without an offset."
DEBEZIUM = ConfigRule(
    _debezium,
    "`server` is `topic.prefix`, before Debezium 2.0 `database.server.name`",
    f"read: PostgresPartition, BinlogPartition, OraclePartition and CommonConnectorConfig of {_DEBEZIUM_AT}; "
    "Db2Partition of debezium/debezium-connector-db2",
    _DEBEZIUM_MEANINGS,
)


def _same_name(left: str, right: str) -> Belongs:
    """Decide whether two names of a SQL Server database can be one: the task has the server's spelling of it."""
    return Belongs.YES if left.strip().casefold() == right.strip().casefold() else Belongs.NO


def _sql_server(config: Reader) -> NamedPartitions:
    server = config.first(*_TOPIC_PREFIX)
    names = [name for name in config.get("database.names").split(",") if name]
    if not names:  # before 2.0, with database.dbname
        config.get("database.dbname")
        return NamedPartitions((ExpectedPartition({"server": server}),))
    older = ({"server": server},) if len(names) == 1 else ()
    return NamedPartitions(
        tuple(
            ExpectedPartition(
                {"server": server, "database": name}, older, Belongs.UNKNOWN, alike=("database", _same_name)
            )
            for name in names
        )
    )


SQL_SERVER = ConfigRule(
    _sql_server,
    "`server` is `topic.prefix`, before Debezium 2.0 `database.server.name`; `database` each of `database.names`. The "
    "offset of `server` alone, from before 2.0, counts from 3.1 on, too, where there is one database; 2.0 to 3.0 do "
    "not look for it",
    f"read: SqlServerPartition and SqlServerConnector of {_DEBEZIUM_AT}, and of v2.0.1 to v3.1.0.Final",
    _DEBEZIUM_MEANINGS,
)


_CONNECTION = "mongodb.connection.string"


def _debezium_mongodb(config: Reader) -> NamedPartitions:
    name = config.first("topic.prefix", "mongodb.name")
    for each in ("mongodb.hosts", "mongodb.connection.mode"):
        config.keep(each, config.raw(each))
    text = config.raw(_CONNECTION)
    replica_set = re.search(r"(?i)[?&]replicaSet=([^&]*)", text)
    config.keep(_CONNECTION, replica_set[1] if replica_set else text if is_reference(text) else "")
    return NamedPartitions((ExpectedPartition({"server_id": name}, further=frozenset({"rs"})),))


DEBEZIUM_MONGODB = ConfigRule(
    _debezium_mongodb,
    "`server_id` is `topic.prefix`, before Debezium 2.0 `mongodb.name`; versions before 2.6 add `rs`, the replica set, "
    "by `mongodb.hosts`, `mongodb.connection.mode` and `mongodb.connection.string`",
    f"read: MongoDbPartition and MongoDbConnectorTask of {_DEBEZIUM_AT}, v2.5.4.Final and v2.6.2.Final",
    _DEBEZIUM_MEANINGS,
)


_REFERENCE = "${of:a}"  # one without `/`, `?` or `@`, which take an address apart


def _mongodb(config: Reader) -> NamedPartitions:
    if named := config.get("offset.partition.name"):
        return NamedPartitions((ExpectedPartition({"ns": named}),))
    uri = config.raw("connection.uri") or "mongodb://localhost:27017,localhost:27018,localhost:27019"
    scheme, _separator, rest = without_references(uri, _REFERENCE).partition("://")
    hosts = re.split(r"[/?]", rest, maxsplit=1)[0].rpartition("@")[2]
    config.within("connection.uri", f"{scheme}://{hosts}")
    if scheme not in ("mongodb", "mongodb+srv") or not hosts or "%" in hosts:
        raise NotKnownError("connection.uri does not name its hosts as usual")
    database, collection = config.get("database"), config.get("collection")
    names = f"{database}.{collection}" if collection else database
    expected = ExpectedPartition({"ns": f"{scheme}://{','.join(sorted(hosts.split(',')))}/{names}"})

    def judge(partition: Partition) -> Belongs:
        name = str(partition.get("ns"))  # before 1.10 the whole address, with its password
        is_older = name.startswith(f"{scheme}://") and hosts in name and name.endswith(f"/{database}.{collection}")
        return Belongs.UNKNOWN if is_older else Belongs.NO

    return NamedPartitions((expected,), judge)


MONGODB = ConfigRule(
    _mongodb,
    "`ns` is `offset.partition.name`; without, scheme and hosts of `connection.uri` with `database` and `collection`",
    "read: MongoSourceTask.createPartitionMap of mongodb/mongo-kafka 3.0.1, ConnectionString of "
    "mongodb/mongo-java-driver",
    (
        Meaning(
            ("connection.uri", "database", "collection"),
            "With offset.partition.name the present resume token is used for what they name now.",
        ),
        Meaning(("startup.mode", "copy.existing"), _WITHOUT_OFFSET, may_skip=False),
        Meaning(("pipeline",), "It counts from the present resume token on: what it left out before is not read."),
    ),
)


_NO_QUOTES = str.maketrans("", "", '"`[]')


def _is_table(named: str, table: str) -> Belongs:
    """Decide whether a name in a list chooses a table: it is the full name, or that of the table alone.

    A name of a part, as of schema and table where tables have a catalog, chooses none, unless it has dots in itself.
    """
    left, right = named.translate(_NO_QUOTES), table.translate(_NO_QUOTES)
    if left == right or left.endswith(f".{right}"):
        return Belongs.YES
    if right.endswith(f".{left}"):
        return Belongs.UNKNOWN if "." in left else Belongs.YES
    return Belongs.NO


def _own_name(partition: Partition) -> str:
    """Return the last part of the name of a source partition's table."""
    return str(partition.get("table")).translate(_NO_QUOTES).rpartition(".")[2]


_JDBC_BESIDE = (
    "connection.url", "dialect.name", "catalog.pattern", "schema.pattern", "table.types", "quote.sql.identifiers",
    "table.names.qualify",
)  # fmt: skip
_READS_OFFSETS = ("incrementing", "timestamp", "timestamp+incrementing")


def _jdbc(config: Reader) -> NamedPartitions:
    mode = resolved("mode", config.raw("mode"))
    if mode == "bulk":
        return NamedPartitions()  # no offset is written or read
    if mode not in _READS_OFFSETS:
        raise NotKnownError("mode is not one that is known")
    if config.raw("query") or config.raw("query.masked"):
        return NamedPartitions((ExpectedPartition({"query": "query"}),))
    config.beside(*_JDBC_BESIDE)
    if any([config.get("table.include.list"), config.get("table.exclude.list")]):
        return NamedPartitions(judge=lambda partition: Belongs.UNKNOWN if "table" in partition else Belongs.NO)
    if tables := dict.fromkeys(split_list(config.get("table.whitelist"))):
        return NamedPartitions(tuple(_table(name) for name in tables), group=_own_name)
    left_out = frozenset(split_list(config.get("table.blacklist")))
    left_out_by_name = defaultdict[str, list[str]](list)
    for name in left_out:
        left_out_by_name[_own_name({"table": name})].append(name)
    patterns = config.raw("catalog.pattern") or config.raw("schema.pattern")

    def judge(partition: Partition) -> Belongs:
        table = partition.get("table")
        if not isinstance(table, str) or table in left_out:
            return Belongs.NO
        alike = left_out_by_name.get(_own_name(partition), ())
        unsure = patterns or any(_is_table(name, table) is not Belongs.NO for name in alike)
        return Belongs.UNKNOWN if unsure else Belongs.YES

    return NamedPartitions(judge=judge)


def _table(name: str) -> ExpectedPartition:
    return ExpectedPartition({"protocol": "1", "table": name}, ({"table": name},), alike=("table", _is_table))


JDBC = ConfigRule(
    _jdbc,
    '`table` is the name of each table that `table.whitelist`, `table.blacklist` or, in newer versions, '
    '`table.include.list` choose, with catalog and schema where `protocol` is "1"; with `query` there is one, '
    '`{"query": "query"}`, whatever the query is. With `mode` bulk there is no offset',
    "read: OffsetProtocols, JdbcSourceTask and TableMonitorThread of confluentinc/kafka-connect-jdbc at 388d41d6 "
    "(10.10.0-SNAPSHOT) and Aiven-Open/jdbc-connector-for-apache-kafka 6.10.0",
    (
        Meaning(
            ("mode",),
            "An offset has the members of the mode that wrote it. For a member that it lacks (`incrementing`, "
            "`timestamp`) the table is read from the start.",
        ),
        Meaning(
            ("incrementing.column.name", "incrementing.column.mapping", "timestamp.column.name",
             "timestamp.columns.mapping"),
            "The offset does not name the column: its present value is compared with the other column, and rows are "
            "skipped or read again.",
        ),
        Meaning(
            ("query", "query.masked"),
            "The source partition does not name the query: the other query goes on from the present offset.",
        ),
        Meaning(
            ("connection.url",),
            "The offset does not name the server: tables of the same names there go on from the present offset.",
        ),
        Meaning(("timestamp.initial", "timestamp.initial.ms", "incrementing.initial"), _WITHOUT_OFFSET, may_skip=False),
        Meaning(
            ("db.timezone",), "The stored time is compared in the other time zone: rows are skipped or read again."
        ),
    ),
)  # fmt: skip


def _mirror(config: Reader) -> NamedPartitions:
    cluster = config.get("source.cluster.alias", "source")
    included = _patterns(config, "topics") or (".*",)
    excluded = _patterns(config, "topics.exclude", "topics.blacklist") or _EXCLUDED
    is_included, is_excluded = _matcher(included), _matcher(excluded)
    own_filter = config.get("topic.filter.class", _TOPIC_FILTER) not in (
        _TOPIC_FILTER,
        _TOPIC_FILTER.rpartition(".")[2],
    )

    def judge(partition: Partition) -> Belongs:
        topic = partition.get("topic")
        if partition.get("cluster") != cluster or not isinstance(topic, str) or "partition" not in partition:
            return Belongs.NO
        if own_filter:
            return Belongs.UNKNOWN
        chosen, left_out = is_included(topic), is_excluded(topic)
        if excluded is _EXCLUDED and left_out is Belongs.NO and topic.endswith("internal"):
            left_out = Belongs.UNKNOWN  # `.*[\-\.]internal` until 3.9, then `mm2.*\.internal`
        if Belongs.NO is chosen or Belongs.YES is left_out:
            return Belongs.UNKNOWN if topic.endswith("heartbeats") else Belongs.NO
        return Belongs.UNKNOWN if Belongs.UNKNOWN in (chosen, left_out) else Belongs.YES

    return NamedPartitions(judge=judge)


def _patterns(config: Reader, *names: str) -> tuple[str, ...]:
    """Return the patterns of the first of these properties that is set; an empty one has a pattern for nothing."""
    values = {name: config.get(name) for name in names}
    found = next((name for name in names if config.has(name)), None)
    return () if found is None else split_list(values[found]) or ("",)


_EXCLUDED = (r".*\.replica", "__.*")
"""The default of topics.exclude, but for what has changed in it (DefaultTopicFilter of Kafka 3.3.2 and 4.3.1)."""
_TOPIC_FILTER = "org.apache.kafka.connect.mirror.DefaultTopicFilter"
_PLAIN_PATTERN = re.compile(r"(?:[\w.-]|\.\*|\\\.)*")
_MOST_STARS = 2  # a pattern with more can take long


def _matcher(patterns: Collection[str]) -> Callable[[str], Belongs]:
    """Return what decides whether a topic matches one of Java's patterns.

    That is unknown where one is more than names with `.*` in them, and none of the others matches.
    """
    plain = [each for each in patterns if _PLAIN_PATTERN.fullmatch(each) and each.count("*") <= _MOST_STARS]
    names, others = set(plain), Belongs.UNKNOWN if len(plain) < len(patterns) else Belongs.NO
    one = re.compile("|".join(f"(?:{each})" for each in plain if set(each) & set(".\\")) or r"(?!)")

    @cache
    def match(topic: str) -> Belongs:
        return Belongs.YES if topic in names or one.fullmatch(topic) else others

    return match


MIRROR = ConfigRule(
    _mirror,
    "`cluster` is `source.cluster.alias`, `topic` one that `topics` has and `topics.exclude` has not, `partition` each "
    "of its partitions",
    "read: MirrorUtils, MirrorSourceConfig and DefaultTopicFilter of Kafka 3.3.2 and 4.3.1 (javap)",
    (
        Meaning(
            ("topics", "topics.exclude", "topics.blacklist"),
            "Topics that come in are read from consumer.auto.offset.reset on.",
            may_skip=False,
        ),
        Meaning(
            ("source.cluster.bootstrap.servers",),
            "The source partition has the cluster's alias alone: the present offsets are applied to the other cluster.",
        ),
    ),
)  # fmt: skip


def _ibm_mq(config: Reader) -> NamedPartitions:
    queue = {"source": f"{config.get('mq.queue.manager')}/{config.get('mq.queue')}"}
    # none is expected: without an offset it takes what the queue holds, and no message twice
    return NamedPartitions(judge=lambda partition: Belongs.YES if dict(partition) == queue else Belongs.NO)


IBM_MQ = ConfigRule(
    _ibm_mq,
    "`source` is `mq.queue.manager`/`mq.queue`",
    "read: MQSourceTask of ibm-messaging/kafka-connect-mq-source at 81407a4a",
)
