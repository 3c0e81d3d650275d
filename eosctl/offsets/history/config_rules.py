"""How the known sources make source partitions of a connector's config: a rule for each. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from eosctl.core.java.properties import split_list, without_references
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


def _same_name(left: str, right: str) -> bool:
    """Decide whether two names of a SQL Server database can be one: the task has the server's spelling of it."""
    return left.strip().casefold() == right.strip().casefold()


def _sql_server(config: Reader) -> NamedPartitions:
    server = config.first(*_TOPIC_PREFIX)
    names = [name for name in config.get("database.names").split(",") if name]
    if not names:  # before 2.0, with database.dbname
        config.get("database.dbname")
        return NamedPartitions((ExpectedPartition({"server": server}),))
    older = ({"server": server},) if len(names) == 1 else ()
    return NamedPartitions(
        tuple(
            ExpectedPartition({"server": server, "database": name}, older, alike=("database", _same_name))
            for name in names
        )
    )


SQL_SERVER = ConfigRule(
    _sql_server,
    "`server` is `topic.prefix`, before Debezium 2.0 `database.server.name`; `database` each of `database.names`. The "
    "offset of `server` alone counts, too, where there is one database",
    f"read: SqlServerPartition and SqlServerConnector of {_DEBEZIUM_AT}",
    _DEBEZIUM_MEANINGS,
)


def _debezium_mongodb(config: Reader) -> NamedPartitions:
    name = config.first("topic.prefix", "mongodb.name")
    return NamedPartitions((ExpectedPartition({"server_id": name}, further=frozenset({"rs"})),))


DEBEZIUM_MONGODB = ConfigRule(
    _debezium_mongodb,
    "`server_id` is `topic.prefix`, before Debezium 2.0 `mongodb.name`; older versions add `rs`, the replica set",
    f"read: MongoDbPartition and MongoDbConnectorTask of {_DEBEZIUM_AT}",
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


def _is_table(named: str, table: str) -> bool:
    """Decide whether a name of a table, with or without its schema and catalog, can be the other one."""
    left, right = named.translate(_NO_QUOTES), table.translate(_NO_QUOTES)
    return left == right or left.endswith(f".{right}") or right.endswith(f".{left}")


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
    if config.get("table.include.list") or config.get("table.exclude.list"):
        return NamedPartitions(judge=lambda partition: Belongs.UNKNOWN if "table" in partition else Belongs.NO)
    if tables := split_list(config.get("table.whitelist")):
        return NamedPartitions(tuple(_table(name) for name in tables))
    left_out = split_list(config.get("table.blacklist"))
    patterns = config.raw("catalog.pattern") or config.raw("schema.pattern")

    def judge(partition: Partition) -> Belongs:
        table = partition.get("table")
        if not isinstance(table, str) or table in left_out:
            return Belongs.NO
        return Belongs.UNKNOWN if patterns or any(_is_table(name, table) for name in left_out) else Belongs.YES

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


def _file(config: Reader) -> NamedPartitions:
    if not (file := config.get("file")):
        raise NotKnownError("the config has no file: it reads its standard input")
    return NamedPartitions((ExpectedPartition({"filename": file}),))


FILE = ConfigRule(
    _file, "`filename` is `file`, as it is written", "read: FileStreamSourceTask of Kafka 3.3.2 and 4.3.1"
)


def _mirror(config: Reader) -> NamedPartitions:
    cluster = config.get("source.cluster.alias", "source")
    included = split_list(config.get("topics", ".*"))
    excluded = split_list(config.get("topics.exclude") or config.get("topics.blacklist"))
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
        chosen, left_out = _matches(topic, included), _matches(topic, excluded)
        if Belongs.NO is chosen or Belongs.YES is left_out:
            return Belongs.UNKNOWN if topic.endswith("heartbeats") else Belongs.NO
        return Belongs.UNKNOWN if Belongs.UNKNOWN in (chosen, left_out) else Belongs.YES

    return NamedPartitions(judge=judge)


_TOPIC_FILTER = "org.apache.kafka.connect.mirror.DefaultTopicFilter"
_PLAIN_PATTERN = re.compile(r"(?:[\w.-]|\.\*|\\\.)*")
_MOST_STARS = 2  # a pattern with more can take long


def _matches(topic: str, patterns: Iterable[str]) -> Belongs:
    """Decide whether a topic matches one of Java's patterns; unknown if one is more than names with `.*` in them."""
    answer = Belongs.NO
    for pattern in patterns:
        if _PLAIN_PATTERN.fullmatch(pattern) is None or pattern.count("*") > _MOST_STARS:
            answer = Belongs.UNKNOWN
        elif re.fullmatch(pattern, topic):
            return Belongs.YES
    return answer


MIRROR = ConfigRule(
    _mirror,
    "`cluster` is `source.cluster.alias`, `topic` one that `topics` has and `topics.exclude` has not, `partition` each "
    "of its partitions",
    "read: MirrorUtils, MirrorSourceConfig and DefaultTopicFilter of Kafka 3.3.2 and 4.3.1 (javap)",
    (
        Meaning(
            ("topics", "topics.exclude"),
            "Topics that come in are read from consumer.auto.offset.reset on.",
            may_skip=False,
        ),
        Meaning(
            ("source.cluster.bootstrap.servers",),
            "The source partition has the cluster's alias alone: the present offsets are applied to the other cluster.",
        ),
    ),
)  # fmt: skip


def _objects(
    container: str, place: tuple[str, ...], member: str, prefix: tuple[str, ...]
) -> Callable[[Reader], NamedPartitions]:
    """Return the rule of a source with a partition for each object in a bucket, under a prefix."""

    def read(config: Reader) -> NamedPartitions:
        bucket = next(filter(None, map(config.get, place)), "")
        start = next(filter(None, map(config.get, prefix)), "")
        if not bucket:
            raise NotKnownError(f"the config has no {place[0]}")

        def judge(partition: Partition) -> Belongs:
            name = partition.get(member)
            if partition.get(container) != bucket or not isinstance(name, str):
                return Belongs.NO
            if "{{" in start or "YYYY" in start:  # written for sinks; a source takes it as it is, or not
                return Belongs.UNKNOWN
            return Belongs.YES if name.startswith(start) else Belongs.NO

        return NamedPartitions(judge=judge)

    return read


_AIVEN = "Aiven-Open/cloud-storage-connectors-for-apache-kafka 3.4.2"
S3 = ConfigRule(
    _objects("bucket", ("aws.s3.bucket.name", "aws_s3_bucket"), "objectKey", ("aws.s3.prefix", "aws_s3_prefix")),
    "`bucket` is `aws.s3.bucket.name`, `objectKey` each object under `aws.s3.prefix`",
    f"read: S3SourceRecordIterator, AWSV2SourceClient and S3ConfigFragment of {_AIVEN}",
)
AZURE = ConfigRule(
    _objects("container", ("azure.storage.container.name",), "blobName", ("azure.blob.prefix",)),
    "`container` is `azure.storage.container.name`, `blobName` each blob under `azure.blob.prefix`",
    f"read: AzureBlobSourceRecordIterator, AzureBlobClient and AzureBlobConfigFragment of {_AIVEN}",
)
_FROM = re.compile(r"\bselect\b[^;]*?\bfrom\s+([^\s;]+)", re.I)
_LONGEST_KCQL = 10_000  # searching a longer one can take long


def _lenses(config: Reader) -> NamedPartitions:
    kcql = config.first("connect.s3.kcql", "connect.gcpstorage.kcql")
    if len(kcql) > _LONGEST_KCQL:
        raise NotKnownError("the KCQL is too long to be taken apart")
    roots = [found[1].replace("`", "").partition(":") for found in _FROM.finditer(kcql)]
    if not roots or len(roots) != len(list(filter(str.strip, kcql.split(";")))):
        raise NotKnownError("the KCQL names its buckets in another way than `SELECT … FROM bucket:prefix`")

    def judge(partition: Partition) -> Belongs:
        prefix = partition.get("prefix")
        below = [root for bucket, _colon, root in roots if bucket == partition.get("container")]
        if not isinstance(prefix, str) or not below:
            return Belongs.NO
        if any(not root or prefix == root or prefix.startswith(f"{root.rstrip('/')}/") for root in below):
            return Belongs.YES
        return Belongs.UNKNOWN if any(prefix.startswith(root) for root in below) else Belongs.NO

    return NamedPartitions(judge=judge)


LENSES = ConfigRule(
    _lenses,
    "`container` and `prefix` are those in `SELECT … FROM container:prefix` of `connect.s3.kcql` or "
    "`connect.gcpstorage.kcql`, and the folders below them",
    "read: CloudSourceBucketOptions, CloudLocation and CloudPartitionSearcher of lensesio/stream-reactor 11.7.2",
)  # fmt: skip


def _spooldir(config: Reader) -> NamedPartitions:
    config.get("input.file.pattern")
    return NamedPartitions(judge=lambda partition: Belongs.UNKNOWN if "fileName" in partition else Belongs.NO)


SPOOLDIR = ConfigRule(
    _spooldir,
    "`fileName` is the name, without its folder, of each file that `input.file.pattern` matches",
    "read: AbstractSourceTask of jcustenborder/kafka-connect-spooldir 2.0.65",
    (
        Meaning(
            ("input.path",),
            "The source partition does not name the folder: a file of a known name in the other folder is read behind "
            "the present offset.",
        ),
    ),
)


def _ibm_mq(config: Reader) -> NamedPartitions:
    queue = {"source": f"{config.get('mq.queue.manager')}/{config.get('mq.queue')}"}
    # none is expected: without an offset it takes what the queue holds, and no message twice
    return NamedPartitions(judge=lambda partition: Belongs.YES if dict(partition) == queue else Belongs.NO)


IBM_MQ = ConfigRule(
    _ibm_mq,
    "`source` is `mq.queue.manager`/`mq.queue`",
    "read: MQSourceTask of ibm-messaging/kafka-connect-mq-source at 81407a4a",
)
