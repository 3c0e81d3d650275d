"""Failures of Kafka Streams (3.x to 4.3), Flink's Kafka sink (1.14 to 2.0, connectors 3.x and 4.0) and readers."""

from __future__ import annotations

from eosctl.failures import codes
from eosctl.failures.failure import Failure, Family, VersionNote, sign

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
        "longest "
    "pause between checkpoint and recovery",
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
