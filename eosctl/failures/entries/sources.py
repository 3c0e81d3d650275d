"""Failures of what tasks read and convert: databases behind Debezium (2.x and 3.x), converters, the schema registry."""

from __future__ import annotations

from eosctl.failures import codes
from eosctl.failures.failure import RESTART, Failure, Family, VersionNote, sign

_DEBEZIUM = "debezium-connector-common: BaseSourceTask (before 3.5: debezium-core)"

POSITION_GONE = Failure(
    code=codes.SOURCE_POSITION_GONE, family=Family.CONNECT,
    name="… but this is no longer available on the server",
    signs=(
        sign("connector is trying to read", "no longer available on the server"),
        sign("Last recorded offset is no longer available on the server"),
        sign("do not contain the offset scn"),
        sign("purged required binary logs"), sign("has purged binary logs containing GTIDs"),
        sign("Could not find first log file name in binary log index file"),
        sign("requested WAL segment", "has already been removed"),
        sign("can no longer get changes from replication slot"),
        sign("resume point may no longer be in the oplog"), sign("Resume of change stream was not possible"),
        sign(
            "not present among LSNs seen in the location phase",
            means="the replication slot does not give what the connector's offset says was seen",
        ),
        sign("Saved offset is before", "eplication slot's confirmed"),
        sign(
            "Cannot seek to the last known offset",
            means="the replication slot is already past the connector's offset: it was recreated, or another one used "
            "it",
        ),
    ),
    means="the database has no longer what comes after the connector's source offset: its log was deleted, or its slot "
    "was recreated",
    causes=(
        "The connector was stopped for longer than the database keeps its log (binlog_expire_logs_seconds, WAL without "
        "a slot, oplog size, archive logs).",
        "The database is another one now: a failover, a restored copy, another binlog or slot of the same name.",
        "The offset was set to a position that was never there.",
    ),
    is_not=(
        "Not a lost offset in Kafka: the offset is there, what it points to is not.",
        "Not mended by exactly-once: the changes in between are lost to the connector.",
    ),
    fix="Changes between the offset and the oldest log can't be read any more. Have them read as a snapshot: "
    "snapshot.mode=when_needed (MySQL, MariaDB, Oracle and others), or `offsets reset` and an initial "
    "snapshot; then " + RESTART + ". An offset set forward to a position that is there skips them in silence",
    commands=("eosctl offsets get --connector {c}", "eosctl offsets log --connector {c}"),
    versions=(VersionNote("Debezium 2.5 and newer", "\"change stream\" where older ones say \"binlog\""),),
    said_by=(_DEBEZIUM + ".validateSchemaHistory, 1.9 to 3.7",
        "the server's own words, from MySQL, PostgreSQL, MongoDB"),
    aliases=("binlog no longer available", "wal removed", "lost position"),
    of_transactions=False,
)  # fmt: skip
SLOT_TAKEN = Failure(
    code=codes.REPLICATION_SLOT_TAKEN, family=Family.CONNECT,
    name="replication slot … is active for PID",
    signs=(
        sign("replication slot", "is active for PID"),
        sign("replication slot", "already exists", pattern=r"replication slot \"\w{1,64}\" already exists"),
        sign("use a distinct replication slot name for each"),
    ),
    means="another connection of PostgreSQL uses the connector's replication slot",
    causes=(
        "A former run of the task is still connected: the server sees it end after wal_sender_timeout.",
        "Two connectors have the same slot.name.",
        "A zombie: the task runs on another worker, too.",
    ),
    is_not=("Not a transactional fencing: Kafka's epochs know nothing of the slot.",),
    fix="Give each connector a slot.name of its own. Where it is a former run, wait for wal_sender_timeout; then "
    + RESTART,
    commands=("eosctl connectors check --connector {c}", "eosctl workers list"),
    said_by=("debezium-connector-postgres: PostgresReplicationConnection, 1.9 to 3.7", "PostgreSQL"),
    aliases=("slot.name",),
    of_transactions=False,
)  # fmt: skip
HISTORY = Failure(
    code=codes.SCHEMA_HISTORY_MISSING, family=Family.CONNECT,
    name="The db history topic is missing",
    signs=(
        sign("The db history topic"), sign("Database schema history was not found but was expected"),
        sign("whose schema isn't known to this connector"),
    ),
    means="Debezium's schema history does not have the tables' structure at the connector's source offset",
    causes=(
        "Retention or compaction deleted records of the schema history topic: it needs cleanup.policy=delete with "
        "retention.ms=-1 and one partition.",
        "The topic was deleted, or schema.history.internal.kafka.topic names another one.",
        "The offset was moved, or brought from another connector, without its history.",
    ),
    is_not=("Not a lost source offset, and not a matter of transactions: the history is written without them.",),
    fix="Let it be recreated: snapshot.mode=recovery (up to 2.5 schema_only_recovery), only where no table's structure "
    "was changed since the offset; else a new snapshot. Set retention.ms=-1 on the topic before",
    commands=("eosctl offsets get --connector {c}",),
    said_by=(_DEBEZIUM + ".validateSchemaHistory, BinlogStreamingChangeEventSource, 1.9 to 3.7",),
    aliases=("schema.history.internal.kafka.topic", "database.history.kafka.topic"),
    of_transactions=False,
)  # fmt: skip
SOURCE_NOT_REACHED = Failure(
    code=codes.SOURCE_NOT_REACHED, family=Family.CONNECT,
    name="Communications link failure",
    signs=(
        sign("Communications link failure"),
        sign("Check that the hostname and port are correct and that the postmaster"),
        sign("The TCP/IP connection to the host", "has failed"), sign("No operations allowed after connection closed"),
        sign("MongoTimeoutException", "while waiting for a server"), sign("MongoSocketOpenException",
             "Exception opening"),
        sign("IO Error: The Network Adapter could not establish the connection"),
    ),
    means="its connector does not reach the database, or lost its connection",
    causes=("The database restarts or failed over.", "A firewall, or a wrong address.", "It has too many connections."),
    is_not=("Not a failure of Kafka.",),
    fix="See from the worker's machine whether it reaches the database; then " + RESTART,
    said_by=("the drivers of MySQL, PostgreSQL, SQL Server, Oracle and MongoDB; seen with Debezium 2.7 and 3.5",),
    of_transactions=False,
)  # fmt: skip

SOURCES = (POSITION_GONE, SLOT_TAKEN, HISTORY, SOURCE_NOT_REACHED)

_RETRY = "connect-runtime: RetryWithToleranceOperator, 3.3 to 4.4"
_STAGE = ("Error encountered in task", "Executing stage '")

REGISTRY = Failure(
    code=codes.SCHEMA_REGISTRY_REFUSED, family=Family.CONNECT,
    name="RestClientException of the schema registry",
    signs=(
        sign(
            "RestClientException", "incompatible with an earlier schema",
            means="the schema registry refuses a schema that does not fit the subject's compatibility",
            fix="Make the change of the schema compatible (new fields with defaults), or change the subject's "
            "compatibility; then " + RESTART,
        ),
        sign(
            "RestClientException", "Unauthorized",
            means="the schema registry refuses the converter's login",
            fix="Correct basic.auth.user.info of the converter's settings; then " + RESTART,
        ),
        sign("schemaregistry.client.rest.exceptions.RestClientException"), sign("RestClientException", "error code:"),
    ),
    means="the schema registry refused a request of a converter",
    causes=(
        "The schema of a record changed in a way that the subject's compatibility does not allow (409).",
        "The subject or the schema's id is not there (40401, 40403): another registry, a deleted subject, "
        "auto.register.schemas=false.",
        "The login of the converter is not the registry's (401, 403).",
    ),
    is_not=("Not a failure of Kafka's brokers, and none of the transaction: the task aborts it because of this.",),
    fix="See the error code in the message; then " + RESTART,
    said_by=("kafka-schema-registry-client: RestService, 5.0 to 8.1",),
    aliases=("RestClientException", "Schema being registered is incompatible"),
    explains=(codes.CONVERTER_FAILED, codes.RECORD_FAILED),
    of_transactions=False,
)  # fmt: skip
DROPPED = Failure(
    code=codes.RECORD_DROPPED, family=Family.CONNECT,
    name="KAFKA-18073: a record dropped after a RetriableException",
    signs=(sign(*_STAGE, "RetriableException", without=("Tolerance exceeded in error handler",)),),
    means="a converter or transformation could not do its work for the moment, and workers before 4.0 drop the record: "
    "its offset is committed, and the task goes on",
    causes=(
        "The schema registry, or what else the converter asks, was away for longer than errors.retry.timeout, which is "
        "0 by default (KAFKA-18073).",
    ),
    is_not=(
        "Not a matter of errors.tolerance: workers before 4.0 drop it with errors.tolerance=none, too.",
        "Not prevented by exactly-once: the transaction is committed without the record.",
    ),
    fix="Set errors.retry.timeout=-1 in the connector, or upgrade the workers to 4.0 or newer. Read the records of "
    "that time again: `offsets set --as-of` with a time before this line; they come "
    "twice where they were written",
    commands=("eosctl audit --connector {c}", "eosctl connectors check --connector {c}"),
    versions=(
        VersionNote("before 4.0", "RetryWithToleranceOperator.execAndRetry returns null when its retries are over"),
        VersionNote("4.0 and newer", "the task fails, unless errors.tolerance=all"),
    ),
    said_by=("connect-runtime: LogReporter (only with errors.log.enable=true), 3.3 to 4.4", _RETRY),
    aliases=("KAFKA-18073", "errors.retry.timeout"),
    explains=(codes.RECORD_FAILED,),
)  # fmt: skip
RECORD_FAILED = Failure(
    code=codes.RECORD_FAILED, family=Family.CONNECT,
    name="Error encountered in task …. Executing stage",
    signs=(sign(*_STAGE),),
    means="a converter or transformation failed at a record: with errors.tolerance=all the record was passed over",
    causes=(
        "The cause below it: the record's data, or the settings of the converter or transformation.",
        "With errors.tolerance=none the task is FAILED after this line, and nothing was passed over.",
    ),
    is_not=("Not a failure of a transaction: a record that is passed over is missing in a committed one.",),
    fix="See the cause below it. Where errors.tolerance=all, the record is missing in the output",
    commands=("eosctl connectors check --connector {c}",),
    said_by=("connect-runtime: LogReporter (only with errors.log.enable=true), 3.3 to 4.4",),
    aliases=("errors.tolerance",),
    is_wrapper=True,
    of_transactions=False,
)  # fmt: skip
NOT_COMMITTED = Failure(
    code=codes.OFFSETS_NOT_COMMITTED, family=Family.CONNECT,
    name="Failed to commit offsets",
    signs=(
        sign("SourceTask{id=", "Failed to commit offsets"), sign("SourceTask{id=",
             "Failed to flush offsets to storage"),
        sign("timed out while waiting for producer to flush outstanding"),
        sign("Timed out waiting to flush offsets to"),
        sign("SourceTask{id=", "Flush of offsets threw an unexpected exception"),
        sign(
            "Couldn't commit processed log positions with the source database",
            means="Debezium did not confirm its position to the database, as its task was being stopped or restarted",
            fix="None where it comes once, at a stop. Where it comes back, see why the task restarts",
        ),
    ),
    means="a source task without exactly-once could not commit its offsets, and goes on",
    causes=(
        "The producer did not get its records out within offset.flush.timeout.ms: slow brokers, many or large records.",
        "The task was being stopped.",
    ),
    is_not=(
        "Not lost records: after a restart they are read again, and written twice.",
        "Not a failed transaction: exactly-once tasks commit offsets in their transactions, and not this way.",
    ),
    fix="See to the brokers; raise offset.flush.timeout.ms, or lower producer.override.buffer.memory",
    commands=("eosctl connectors check --connector {c}",),
    said_by=("connect-runtime: SourceTaskOffsetCommitter, WorkerSourceTask, 3.3 to 4.4", _DEBEZIUM + ".commit"),
    aliases=("offset.flush.timeout.ms",),
    of_transactions=False,
)  # fmt: skip
KEY_IGNORED = Failure(
    code=codes.OFFSET_KEY_IGNORED, family=Family.CONNECT,
    name="Ignoring offset partition key with an unexpected format",
    signs=(sign("Ignoring offset partition key with"),),
    means="the offsets topic has a record whose key is not [connector, partition], which a worker passes over",
    causes=(
        "Somebody wrote into the topic by hand: the two parts of the key the wrong way round, or a partition that is "
        "no object.",
        "Another application writes into the topic.",
        "A connector with a null source partition.",
    ),
    is_not=("Not a failure of the worker: only GET /connectors/NAME/offsets and resets don't see that offset.",),
    fix="See what is there: `eosctl offsets lint`; delete what is wrong with `offsets reset`",
    commands=("eosctl offsets lint", "eosctl offsets list"),
    said_by=("connect-runtime: OffsetUtils.processPartitionKey, 3.5 to 4.4",),
    of_transactions=False,
)  # fmt: skip

RECORDS = (DROPPED, REGISTRY, NOT_COMMITTED, KEY_IGNORED, RECORD_FAILED)
