"""Failures of Kafka clients and brokers in general, and of applications other than Connect.

Of any client or broker: logins, clocks, disks and lost connections (Kafka 2.0 to 4.4). Of applications: Kafka Streams
(3.x to 4.3), Flink's Kafka sink (1.14 to 2.0, connectors 3.x and 4.0) and readers.
"""

from __future__ import annotations

from eosctl.core.transactions import FENCING_FAILED
from eosctl.failures import codes
from eosctl.failures.failure import Failure, Family, VersionNote, sign

_NO_TLS = "its TLS handshake with a broker failed"
_MEND_TLS = (
    "See in the message which side refused the other's certificate: compare ssl.truststore.* of the client with the "
    "brokers' certificate and its host names, and, where brokers ask for one, ssl.keystore.* with what they trust"
)
LOGIN = Failure(
    code=codes.LOGIN_FAILED, family=Family.COORDINATOR, name="SaslAuthenticationException",
    signs=(
        sign("SaslAuthenticationException"),
        sign("SslAuthenticationException", means=_NO_TLS, fix=_MEND_TLS),
        sign("failed authentication due to", "SSL handshake failed", means=_NO_TLS, fix=_MEND_TLS),
        sign("failed authentication due to"),
        sign("Broker: SASL Authentication failed"), sign("SASL_AUTHENTICATION_FAILED"),
        sign(
            "during SASL handshake", "Unexpected Kafka request", means="it speaks no SASL to a port that wants it",
            fix="Set security.protocol (SASL_SSL, or SASL_PLAINTEXT) in the client, as the brokers' listener has it",
        ),
        sign("UnsupportedSaslMechanismException", means="brokers do not offer its sasl.mechanism"),
    ),
    means="brokers refuse its login",
    causes=(
        "The password, the user or the mechanism in its sasl.jaas.config is not the one that brokers have: it was "
        "changed there, and not for this client.",
        "One worker or instance still has the former secret, and the others have the new one.",
        "The token has expired (OAUTHBEARER, delegation tokens).",
    ),
    is_not=("Not a missing right: those are exceptions of authorization.", "Not a broker that is away."),
    fix="Correct sasl.jaas.config of the client that the text names: of a connector its producer.override, "
    "consumer.override and admin.override, else the worker's own. A worker reads its file when it starts",
    said_by=("kafka-clients: SaslClientAuthenticator, SslTransportLayer, 1.0 to 4.4", "kafka-clients: NetworkClient"),
    aliases=("SaslAuthentication", "SslAuthenticationException"),
    explains=(
        codes.BROKERS_NOT_REACHED, codes.OFFSETS_NOT_WRITTEN, codes.PRODUCER_IN_ERROR, codes.FENCING_FAILED,
        codes.INIT_TIMED_OUT, codes.WORKER_ENDED,
    ),
    of_worker=True,
    of_transactions=False,
)  # fmt: skip
TIMESTAMP = Failure(
    code=codes.INVALID_TIMESTAMP, family=Family.PRODUCER, name="InvalidTimestampException",
    signs=(
        sign("InvalidTimestampException"), sign("rejected due to invalid timestamp"),
        sign("The timestamp should be within ["), sign("Broker: Invalid timestamp"),
    ),
    means="brokers refuse the time of a record: it is too far from their own clock",
    causes=(
        "The clock of the worker or application is wrong: more than an hour ahead is refused by default.",
        "The source gives its records a time that is too far ahead, or older than the topic takes.",
        "The clock of a broker is wrong.",
    ),
    is_not=(
        "Not a matter of offsets or of transactions: whatever the client writes to such a topic is refused, a "
        "worker's statuses and offsets, too.",
    ),
    fix="Compare the clocks of the client's machine and of the brokers, and set the wrong one right. Where the records "
    "themselves have such a time, raise message.timestamp.after.max.ms or message.timestamp.before.max.ms of the topic",
    versions=(
        VersionNote("3.6 and newer", "message.timestamp.after.max.ms limits the time ahead; its default is an hour "
                    "from 4.0 on, and no limit before"),
    ),
    said_by=("storage: LogValidator, 3.5 to 4.4 (before: core)", "kafka-clients: Errors.INVALID_TIMESTAMP (32)"),
    aliases=("InvalidTimestamp", "INVALID_TIMESTAMP"),
    explains=(codes.OFFSETS_NOT_WRITTEN, codes.PRODUCER_IN_ERROR),
    of_worker=True,
    of_transactions=False,
)  # fmt: skip
CLOSED = Failure(
    code=codes.PRODUCER_CLOSED, family=Family.PRODUCER, name="The producer closed forcefully",
    signs=(
        sign("The producer closed forcefully"), sign("Producer is closed forcefully"),
        sign("Producer closed while send in progress"),
    ),
    means="its producer was closed while it had something to send",
    causes=(
        "It was told to end, and did not end in time: a worker closes the producer of a task that has moved, or that "
        "was stopped, after task.shutdown.graceful.timeout.ms.",
        "The application called close() with a timeout.",
    ),
    is_not=(
        "Not a failure of a task that is meant to run: a task that goes on elsewhere reads again from the offset that "
        "was committed last.",
    ),
    fix="None where the task was stopped or has moved. Else see what the client waited for before: brokers that don't "
    "answer, say",
    said_by=("kafka-clients: TransactionManager.close, RecordAccumulator.abortBatches, 1.0 to 4.4",),
    explains=(codes.OFFSETS_NOT_WRITTEN, codes.PRODUCER_IN_ERROR),
    of_transactions=False,
)  # fmt: skip
DISK = Failure(
    code=codes.DISK_FAILED, family=Family.BROKER, name="KafkaStorageException",
    signs=(
        sign(
            "No space left on device", means="a file system is full",
            fix="See whose it is. In a broker's log it is that of a log directory: give that room and start the broker "
            "then, but delete no file in it by hand. In the trace of a task or an application it is one of its own "
            "machine, or of the database that it reads: give that room",
        ),
        sign("KafkaStorageException"),
        sign("because all log dirs in", "have failed"), sign("Broker: Disk error when trying to access log file"),
    ),
    means="a broker can't write to its disk",
    causes=(
        "The file system of a log directory is full: the broker takes the directory out of use, and ends when it was "
        "its last one.",
        "The disk is broken, or was mounted read-only.",
    ),
    is_not=(
        "Not mended by a start of the broker: with a full disk it ends again.",
        "Not lost records, where the partition has other replicas in sync.",
    ),
    fix="Look at the file systems of log.dirs (`df`): give them room, or replace the disk; start the broker then. "
    "Delete no file in them by hand: shorten the retention of a large topic on the brokers that run",
    versions=(
        VersionNote(
            "3.3 and newer",
            "`kafka-log-dirs.sh --describe` shows total and usable bytes (KIP-827), and `eosctl doctor` names a disk "
            "that is nearly full (log_dir_nearly_full)",
        ),
    ),
    said_by=("storage: LogDirFailureChannel, LogManager, 1.0 to 4.4", "kafka-clients: Errors.KAFKA_STORAGE_ERROR (56)"),
    aliases=("KafkaStorage", "KAFKA_STORAGE_ERROR", "disk full", "No space left"),
    explains=(codes.RECORDS_EXPIRED, codes.BROKERS_NOT_REACHED),
    of_transactions=False,
)  # fmt: skip
NOT_REACHED = Failure(
    code=codes.BROKERS_NOT_REACHED, family=Family.BROKER,
    name="DisconnectException, and brokers that are not available",
    signs=(
        sign("Node may not be available"), sign("Broker may not be available"), sign("Rebootstrapping with"),
        sign("Disconnecting from node", "due to client rebootstrap"),
        sign("Failed to connect to and describe Kafka cluster"), sign("Timeout expired while fetching topic metadata"),
        sign("Timed out waiting for a node assignment", without=(FENCING_FAILED, "fenceProducer")),
        sign("kafka.common.errors.DisconnectException"),
    ),
    means="it does not reach brokers, or loses its connections to them",
    causes=(
        "A broker is down, or restarts: the lines end with that.",
        "The network between this machine and the brokers is interrupted, while others may reach them.",
        "The addresses that the brokers advertise (advertised.listeners) can't be reached from here.",
    ),
    is_not=(
        "Not a failure where it lasts for seconds: clients connect again by themselves.",
        "Not proof that a broker is down: this client does not reach it.",
    ),
    fix="See from the machine of this log whether it reaches each broker's advertised address. A worker that does not "
    "is no member of its group any more, though its REST interface answers",
    commands=("eosctl doctor",),
    versions=(
        VersionNote("4.0 and newer", "a client that reaches none of the brokers that it knows begins again with "
                    "bootstrap.servers, and says \"Rebootstrapping\" (metadata.recovery.strategy, KIP-899)"),
    ),
    said_by=("kafka-clients: NetworkClient, 0.11 to 4.4",),
    aliases=("DisconnectException", "Rebootstrapping"),
    explains=(
        codes.INIT_TIMED_OUT, codes.END_TIMED_OUT, codes.ADD_OFFSETS_TIMED_OUT, codes.STREAMS_INIT_TIMED_OUT,
        codes.RECORDS_EXPIRED, codes.WORKER_ENDED, codes.TASK_STOPPED_LATE,
    ),
    of_worker=True,
    of_transactions=False,
)  # fmt: skip

CLIENTS = (LOGIN, TIMESTAMP, CLOSED, DISK, NOT_REACHED)


_DESCRIBE = "eosctl txn describe {id}"
_COMMITTER = "flink-connector-kafka: KafkaCommitter, 3.0 to 4.0 (before: flink-connector-kafka of Flink 1.14)"

MIGRATED = Failure(
    code=codes.STREAMS_TASK_MIGRATED, family=Family.STREAMS, name="TaskMigratedException of Kafka Streams",
    signs=(
        sign("TaskMigratedException"), sign("Producer got fenced trying to"),
        sign("it means all tasks belonging to this thread should be migrated"),
        sign("since the producer is fenced, indicating the task may be migrated out"),
        sign("since it got migrated to another thread already"),
        sign("ProducerFencedException"), sign("InvalidProducerEpochException"),
    ),
    means="its Streams thread was fenced: its tasks belong to another thread, or its transaction was ended",
    causes=(
        "A rebalance gave its tasks to another thread or instance: it was away for longer than max.poll.interval.ms or "
        "session.timeout.ms.",
        "Its transaction was open for longer than transaction.timeout.ms (Streams' default is 10 s).",
        "It was idle for longer than transactional.id.expiration.ms: then the cause below is InvalidPidMapping.",
        "Two applications have one application.id.",
    ),
    is_not=(
        "Not a failure that needs a hand: the thread closes its tasks, and joins its group again.",
        "Not lost records: the transaction is aborted, and its input is read again.",
    ),
    fix="None where it happens at rebalances. Where it comes back: raise transaction.timeout.ms and "
    "max.poll.interval.ms, lower max.poll.records, and see that no other application has the application.id",
    commands=("eosctl doctor --for streams", "eosctl txn applications", _DESCRIBE),
    versions=(
        VersionNote("before 3.0",
        "with exactly_once (v1) each task has an id, APPLICATION-TASK; with exactly_once_v2 each "
                    "thread, APPLICATION-UUID-THREAD"),
    ),
    said_by=(
        "kafka-streams: StreamsProducer, RecordCollectorImpl, TaskMigratedException, 2.6 to 4.3",
    ),
    aliases=("TaskMigrated", "Streams fenced"),
)  # fmt: skip
STREAMS_INIT = Failure(
    code=codes.STREAMS_INIT_TIMED_OUT, family=Family.STREAMS, name="Kafka Streams: timeout to initialize transactions",
    signs=(
        sign("Timeout exception caught trying to initialize transactions"),
        sign("Timeout exception caught when initializing transactions for task"),
    ),
    means="its Streams task got no producer id in time, and tries again",
    causes=("The transaction coordinator is away or slow.", "__transaction_state has too few replicas in sync."),
    is_not=("Not a fenced task.",),
    fix="See to the brokers; raise max.block.ms of the producer where they are only slow",
    commands=("eosctl doctor --for streams", "eosctl txn coordinator {id}"),
    explains=(codes.INIT_TIMED_OUT,),
    said_by=("kafka-streams: StreamsProducer.initTransaction, 2.6 to 4.3",),
)  # fmt: skip
FLINK_FENCED = Failure(
    code=codes.FLINK_COMMIT_FENCED, family=Family.FLINK, name="Flink: unable to commit, its producer is already fenced",
    signs=(
        sign("Unable to commit transaction", "its producer is already fenced"),
        sign("Unable to commit recovered transaction", "fenced"), sign("ProducerFencedException"),
    ),
    means="its transactional id was taken over before the checkpoint's transaction was committed",
    causes=(
        "Recovery from a checkpoint whose transaction had been committed, or aborted, before: expected, and harmless.",
        "Another job or sink has the same transactionalIdPrefix.",
        "The transaction was open for longer than transaction.timeout.ms: recovery took too long. Its records are "
        "lost.",
        "Somebody fenced the id.",
    ),
    is_not=(
        "Not always harmless: outside a recovery the records of that checkpoint are lost, and the job goes on.",
        "Not mended by fencing more ids: that aborts what other checkpoints have prepared.",
    ),
    fix="Find out who took the id. Give each sink a prefix of its own, and set transaction.timeout.ms above the "
        "longest pause between checkpoint and recovery",
    commands=("eosctl txn applications", _DESCRIBE, "eosctl doctor --for flink"),
    said_by=(_COMMITTER, "flink-connector-kafka: KafkaWriter.WriterCallback"),
    aliases=("Flink fenced",),
)  # fmt: skip
FLINK_INVALID = Failure(
    code=codes.FLINK_COMMIT_INVALID, family=Family.FLINK, name="Flink: unable to commit, it's in an invalid state",
    signs=(
        sign("Unable to commit transaction (", "because it's in an invalid state"),
        sign("because of a bug in the Kafka broker (KAFKA-9310)"),
        sign("encountered error and data has been potentially lost"), sign("InvalidTxnStateException"),
    ),
    means="its checkpoint's transaction was aborted before it was committed",
    causes=(
        "The transaction was open for longer than transaction.timeout.ms: recovery took too long.",
        "It was fenced or aborted by hand.",
        "Brokers before 2.5 (KAFKA-9310).",
    ),
    is_not=("Not a commit that will be done later: the records of that checkpoint are lost, and the job goes on.",),
    fix="Set transaction.timeout.ms above the longest pause between checkpoint and recovery, and the brokers' "
    "transaction.max.timeout.ms with it; send the records of that checkpoint again",
    commands=(_DESCRIBE, "eosctl txn log {id}", "eosctl doctor --for flink"),
    said_by=(_COMMITTER,),
)  # fmt: skip
FLINK_PREFIX = Failure(
    code=codes.FLINK_PREFIX_SHARED, family=Family.FLINK, name="Flink: duplicate transactionalIdPrefix",
    signs=(sign("Found duplicate transactionalIdPrefix for multiple Kafka sinks"),),
    means="two of its sinks have one transactionalIdPrefix",
    causes=("A job with two exactly-once sinks, or two jobs on one cluster, and the same setTransactionalIdPrefix.",),
    is_not=(
        "Not only a leak of memory, as the message says: two sinks of one job make it fail when it starts (seen with "
        "connector 4.0.1), and of two jobs, each aborts the other's transactions.",
    ),
    fix="Give each sink a prefix of its own",
    commands=("eosctl txn applications", "eosctl doctor --for flink"),
    said_by=("flink-connector-kafka: BackchannelFactory, 4.0",),
)  # fmt: skip
UNSTABLE = Failure(
    code=codes.UNSTABLE_OFFSETS, family=Family.READER, name="UnstableOffsetCommitException",
    signs=(
        sign("UnstableOffsetCommitException"), sign("UNSTABLE_OFFSET_COMMIT"),
        sign("There are unstable offsets that need to be cleared"),
        sign("still have unstable offsets which are not cleared on the broker side"), sign(
            "expired before the last committed offset for partitions"),
        sign("The committed offsets request timed out"),
    ),
    means="committed offsets of its group are in a transaction that is still open",
    causes=(
        "A former instance was killed in a transaction, which lasts until its transaction.timeout.ms.",
        "A producer commits offsets of the group, and does not end its transaction.",
        "The group's coordinator is slow: only where no transaction of the group is open.",
    ),
    is_not=("Not lost offsets.", "Not fatal: consumers ask again until default.api.timeout.ms is over."),
    fix="Wait for the transaction's timeout, or fence its id where its owner is gone; lower transaction.timeout.ms of "
    "that application. One that `eosctl txn hanging` finds is ended by no timeout: `txn complete --as-decided` commits "
    "it on all of its partitions where its coordinator has committed it, else `txn abort` aborts it on all of them",
    commands=("eosctl txn list --state Ongoing", "eosctl txn hanging --topic __consumer_offsets"),
    versions=(VersionNote("before 2.5", "consumers read what was committed before, without waiting (KIP-447)"),),
    said_by=(
        "kafka-clients: Errors.UNSTABLE_OFFSET_COMMIT (88), 2.5 to 4.3",
        "kafka-clients: ClassicKafkaConsumer.committed (TimeoutException; before 3.7: KafkaConsumer)",
    ),
    aliases=("UnstableOffsetCommit",),
)  # fmt: skip

APPLICATIONS = (MIGRATED, STREAMS_INIT, FLINK_FENCED, FLINK_INVALID, FLINK_PREFIX, UNSTABLE)
