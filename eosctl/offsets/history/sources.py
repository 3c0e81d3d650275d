"""The table of the connectors whose offsets are known: how to recognize and compare them, and what their sources keep.

A source is recognized by the members of its source partitions and offsets, not by the connector's class: forks and
wrappers have classes of their own, and a deleted connector has none. An unknown offset stays opaque JSON, and is
incomparable. So is a known one if it differs in a member that its source is not known to have: a later version of the
connector may count by it. `docs/offset-kinds.md` is made from this table.

What a config says of source partitions holds for the classes that are named here, and for no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from msgspec import Struct

from eosctl.core.configs.records import names_one_of
from eosctl.core.offsets.records import INITIAL_SYNC, SNAPSHOT
from eosctl.offsets.history import config_rules, config_rules_files
from eosctl.offsets.history.config_reader import ConfigRule
from eosctl.offsets.history.positions import (
    Offset,
    PositionPart,
    binlog,
    counter,
    jdbc,
    lenses_storage,
    mongodb,
    mongodb_kafka,
    never,
    oracle,
    postgresql,
    sql_server,
)

_SIGNAL = "To have rows again, insert execute-snapshot into the connector's signal table (signal.data.collection)."


class KnownSource(Struct, frozen=True):
    """`of_config` says which source partitions follow from a config of one of the classes.

    `partitions` and `offsets` are alternatives: a source partition (an offset) has all members of one of them.

    `positions` are the members by which `parts` compares two offsets, `labels` those that say nothing of the position;
    one that ends in `*` is a prefix. `in_snapshot` are members with which the connector is in its snapshot, and begins
    that again when it starts. `keeps` describes what must hold for the connector to go on, `instead` how to read again
    what the source no longer has. `evidence` says where the order is known from.
    """

    name: str
    classes: str
    of_config: ConfigRule
    partitions: tuple[frozenset[str], ...]
    offsets: tuple[frozenset[str], ...]
    positions: tuple[str, ...]
    parts: Callable[[Offset, Offset], list[PositionPart]]
    keeps: str
    evidence: str
    labels: tuple[str, ...] = ()
    in_snapshot: tuple[str, ...] = ()
    instead: str | None = None

    def has_position(self, member: str) -> bool:
        """Decide whether a member is part of the position."""
        return member in self.positions

    def is_label(self, member: str) -> bool:
        """Decide whether a member is known to say nothing of the position."""
        return member in self.in_snapshot or any(
            member.startswith(label[:-1]) if label.endswith("*") else member == label for label in self.labels
        )


_SERVER = (frozenset({"server"}),)
_TRANSACTION = ("transaction_id", "transaction_data_collection_order_*")
_DEBEZIUM = "debezium/debezium at aad55199 (3.7.0-SNAPSHOT)"
KNOWN_SOURCES = (
    KnownSource(
        # PostgreSQL: pg_replication_slots; Debezium: snapshot.mode, offset.mismatch.strategy
        "Debezium PostgreSQL",
        "io.debezium.connector.postgresql.PostgresConnector",
        config_rules.DEBEZIUM,
        _SERVER,
        (frozenset({"lsn"}),),
        ("lsn_commit", "lsn_proc", "lsn", "messageType", "lsn_events_processed"),
        postgresql,
        "the replication slot must be there, and its confirmed_flush_lsn not beyond the offset (see "
        "pg_replication_slots): PostgreSQL sends nothing that was committed before it, wherever the offset points. The "
        "connector then goes on from there, fails, or takes a snapshot, by its version, snapshot.mode and "
        "offset.mismatch.strategy. Where there is lsn_proc, it counts, and lsn does not",
        "seen on the task of 3.6.1, and of 3.7.1 with Debezium's other modules of 3.7.0, on PostgreSQL 15; read: "
        "PostgresOffsetContext and WalPositionLocator of " + _DEBEZIUM,
        labels=("txId", "ts_usec", "xmin", *_TRANSACTION),
        in_snapshot=SNAPSHOT,
        instead=_SIGNAL,
    ),
    KnownSource(
        # MySQL: binlog_expire_logs_seconds, 30 days by default
        "Debezium MySQL or MariaDB",
        "io.debezium.connector.mysql.MySqlConnector, io.debezium.connector.mariadb.MariaDbConnector",
        config_rules.DEBEZIUM,
        _SERVER,
        (frozenset({"file", "pos"}),),
        ("gtids", "server_id", "file", "pos", "event", "row"),
        binlog,
        "the server's binary logs must still hold the position (SHOW BINARY LOGS), with GTIDs all that follows them "
        "(gtid_purged): when they were purged, the connector fails or takes a snapshot, by its snapshot.mode. After "
        "RESET MASTER or on another server the same file and pos are another place. Where the server uses GTIDs, gtids "
        "counts, and file and pos do not",
        "seen on the task of 3.5.0 on MariaDB 10.11; read (MySQL only so): BinlogHistoryRecordComparator of "
        + _DEBEZIUM,
        labels=("ts_sec", *_TRANSACTION),
        in_snapshot=SNAPSHOT,
        instead=_SIGNAL,
    ),
    KnownSource(
        "Debezium SQL Server",
        "io.debezium.connector.sqlserver.SqlServerConnector",
        config_rules.SQL_SERVER,
        (frozenset({"server", "database"}),),
        (frozenset({"commit_lsn"}),),
        ("commit_lsn", "change_lsn", "event_serial_no"),
        sql_server,
        "the change tables hold what the cleanup job has left, three days by default: nothing from before "
        "sys.fn_cdc_get_min_lsn can be read",
        "read: TxLogPosition of " + _DEBEZIUM,
        labels=_TRANSACTION,
        in_snapshot=SNAPSHOT,
        instead=_SIGNAL,
    ),
    KnownSource(
        "Debezium Db2, or SQL Server before 2.0",
        "io.debezium.connector.db2.Db2Connector",
        config_rules.DEBEZIUM,
        _SERVER,
        (frozenset({"commit_lsn"}),),
        ("commit_lsn", "change_lsn", "event_serial_no"),
        sql_server,
        "the change tables must still hold what follows the offset: pruning (Db2) or the cleanup job (SQL Server) "
        "removes what is older",
        "read: Db2OffsetContext of debezium/debezium-connector-db2 3.6.0",
        labels=_TRANSACTION,
        in_snapshot=SNAPSHOT,
        instead=_SIGNAL,
    ),
    KnownSource(
        "Debezium Oracle",
        "io.debezium.connector.oracle.OracleConnector",
        config_rules.DEBEZIUM,
        _SERVER,
        (frozenset({"scn"}), frozenset({"lcr_position"})),
        ("lcr_position", "scn", "scn_idx", "commit_scn", "txId", "txSeq"),
        oracle,
        "online or archived redo logs must still hold the scn (V$ARCHIVED_LOG); without, the connector fails or takes "
        "a snapshot, by its snapshot.mode. What was committed up to commit_scn is skipped: put both back",
        "read: OracleOffsetContext, CommitScn and LcrPosition of " + _DEBEZIUM,
        labels=("window_advance_enabled", *_TRANSACTION),
        in_snapshot=SNAPSHOT,
        instead=_SIGNAL,
    ),
    KnownSource(
        "Debezium MongoDB",
        "io.debezium.connector.mongodb.MongoDbConnector",
        config_rules.DEBEZIUM_MONGODB,
        (frozenset({"server_id"}),),
        (frozenset({"sec", "ord"}), frozenset({"resume_token"})),
        ("resume_token", "sec", "ord"),
        mongodb,
        "the oplog must still hold the time in the resume token (rs.printReplicationInfo): else the connector fails "
        "or takes a snapshot, by its snapshot.mode. Where there is resume_token, it counts, and sec and ord do not",
        "read: MongoDbOffsetContext and ResumeTokens of " + _DEBEZIUM,
        labels=("lsid", "txnNumber", "h", *_TRANSACTION),
        in_snapshot=INITIAL_SYNC,
        instead=_SIGNAL,
    ),
    KnownSource(
        "MongoDB's connector",
        "com.mongodb.kafka.connect.MongoSourceConnector",
        config_rules.MONGODB,
        (frozenset({"ns"}),),
        (frozenset({"_id"}),),
        ("_id",),
        mongodb_kafka,
        "the oplog must still hold the time in the resume token (rs.printReplicationInfo): without, the task fails, or "
        "goes on from now, by errors.tolerance. An offset with copy begins copy_existing again",
        "read: StartedMongoSourceTask and ResumeTokenUtils of mongodb/mongo-kafka 3.0.1",
        labels=("HEARTBEAT",),
        in_snapshot=("copy",),
    ),
    KnownSource(
        "JDBC",
        "io.confluent.connect.jdbc.JdbcSourceConnector, io.aiven.connect.jdbc.JdbcSourceConnector",
        config_rules.JDBC,
        (frozenset({"table"}), frozenset({"query"})),
        (frozenset({"incrementing"}), frozenset({"timestamp"})),
        ("timestamp", "timestamp_nanos", "incrementing"),
        jdbc,
        "it asks the table for what lies behind this id or time: a row is read as it is now, and a deleted row is not "
        "read again",
        "read: TimestampIncrementingOffset of confluentinc/kafka-connect-jdbc at 388d41d6 (10.10.0-SNAPSHOT) and "
        "Aiven-Open/jdbc-connector-for-apache-kafka 6.10.0",
    ),
    KnownSource(
        "FileStream",
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        config_rules_files.FILE,
        (frozenset({"filename"}),),
        (frozenset({"position"}),),
        ("position",),
        counter("position", grows=True),
        "it skips this many bytes of the file as it is now: in the middle of a line the rest of it becomes a record, "
        "and beyond the end nothing is read until the file is that long",
        "seen on Kafka 3.3.2 to 4.3.1",
    ),
    KnownSource(
        "MirrorMaker 2",
        "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        config_rules.MIRROR,
        (frozenset({"cluster", "partition", "topic"}),),
        (frozenset({"offset"}),),
        ("offset",),
        counter("offset", grows=True),
        "it goes on behind this record of the source topic: what retention or compaction has removed is not read "
        "again, and what is read again is in the target topic twice",
        "seen on Kafka 4.3.1",
    ),
    KnownSource(
        "Aiven's S3 source",
        "io.aiven.kafka.connect.s3.source.S3SourceConnector",
        config_rules_files.S3,
        (frozenset({"bucket", "objectKey"}),),
        (frozenset({"recordCount"}),),
        ("recordCount",),
        counter("recordCount"),
        "it skips this many records of the object as it is now; an object that is gone is not read again",
        "read: S3OffsetManagerEntry of Aiven-Open/cloud-storage-connectors-for-apache-kafka 3.4.2",
    ),
    KnownSource(
        "Aiven's Azure Blob source",
        "io.aiven.kafka.connect.azure.source.AzureBlobSourceConnector",
        config_rules_files.AZURE,
        (frozenset({"container", "blobName"}),),
        (frozenset({"recordCount"}),),
        ("recordCount",),
        counter("recordCount"),
        "it skips this many records of the blob as it is now; a blob that is gone is not read again",
        "read: AzureBlobOffsetManagerEntry of Aiven-Open/cloud-storage-connectors-for-apache-kafka 3.4.2",
    ),
    KnownSource(
        "Lenses' S3 or GCS source",
        "io.lenses.streamreactor.connect.aws.s3.source.S3SourceConnector, "
        "io.lenses.streamreactor.connect.gcp.storage.source.GCPStorageSourceConnector",
        config_rules_files.LENSES,
        (frozenset({"container", "prefix"}),),
        (frozenset({"path", "line"}),),
        ("path", "line"),
        lenses_storage,
        "it goes on behind this line of the object, then with the objects that its ordering puts behind that one",
        "read: SourceWatermark of lensesio/stream-reactor 11.7.2",
        labels=("ts", "last"),
    ),
    KnownSource(
        "SpoolDir",
        "com.github.jcustenborder.kafka.connect.spooldir.SpoolDirCsvSourceConnector",
        config_rules_files.SPOOLDIR,
        (frozenset({"fileName"}),),
        (frozenset({"offset"}),),
        ("offset",),
        counter("offset"),
        "it skips this much of the file when it finds it in input.path: a file that was read is moved or deleted, by "
        "cleanup.policy, and must be put there again",
        "read: AbstractSourceTask of jcustenborder/kafka-connect-spooldir 2.0.65",
    ),
    KnownSource(
        "IBM MQ, exactly once",
        "com.ibm.eventstreams.connect.mqsource.MQSourceConnector",
        config_rules.IBM_MQ,
        (frozenset({"source"}),),
        (frozenset({"sequence-id"}),),
        ("sequence-id",),
        never("sequence-id"),
        "the state queue in MQ holds the same number while the last batch is under way: by it the task decides whether "
        "that batch is in Kafka, and removes its messages from the source queue",
        "read: MQSourceTask of ibm-messaging/kafka-connect-mq-source at 81407a4a",
    ),
)


def known_source(partition: Mapping[str, object] | None, offset: Mapping[str, object]) -> KnownSource | None:
    """Return the known source whose offsets look like this one; None without any."""
    for source in KNOWN_SOURCES:
        if _has(partition or {}, source.partitions) and _has(offset, source.offsets):
            return source
    return None


def source_of_class(config: Mapping[str, object]) -> KnownSource | None:
    """Return the known source of a config's `connector.class`; None for another class, a fork's too."""
    return next((source for source in KNOWN_SOURCES if names_one_of(config, source.classes.split(", "))), None)


def may_be_known(partition: Mapping[str, object] | None) -> bool:
    """Decide whether a source partition looks like one of a known source."""
    return any(_has(partition or {}, source.partitions) for source in KNOWN_SOURCES)


def _has(members: Mapping[str, object], alternatives: Collection[frozenset[str]]) -> bool:
    return any(names <= members.keys() for names in alternatives)


LSN_MEMBERS = ("lsn", "lsn_proc", "lsn_commit")
"""Members of Debezium's PostgresOffsetContext; without the first, the others may be something else."""
_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def lsn_text(lsn: int) -> str:
    """Format a PostgreSQL log sequence number as PostgreSQL prints it: `0/1B63000` for 28717056."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_number(text: object) -> int | None:
    """Return the number that Debezium stores for `0/1B63000`; None for another text."""
    match = _LSN.fullmatch(text) if isinstance(text, str) else None
    return int(match[1], 16) << 32 | int(match[2], 16) if match else None


def lsn_texts(offset: object) -> dict[str, str] | None:
    """Return the log sequence numbers among an offset's members, as PostgreSQL prints them; None without any."""
    if not isinstance(offset, dict) or LSN_MEMBERS[0] not in offset:
        return None
    return {
        name: lsn_text(value)
        for name in LSN_MEMBERS
        if name in offset and type(value := offset[name]) is int and value >= 0
    } or None
