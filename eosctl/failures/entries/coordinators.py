"""Errors of transaction coordinators, and of brokers' authorization (Kafka 0.11 to 4.3)."""

from __future__ import annotations

from eosctl.failures import codes
from eosctl.failures.failure import Failure, Family, Sign, VersionNote, sign

_DESCRIBE, _COORDINATOR = "eosctl txn describe {id}", "eosctl txn coordinator {id}"
_ERRORS = "kafka-clients: Errors"
_RESULT = "kafka-clients: TransactionalRequestResult.await, 0.11 to 4.3"
_WORDS = "4.2 and newer"
_OF_A_GROUP = (
    "[Consumer ", "roup coordinator", "JoinGroup failed", "SyncGroup failed", "ffset commit failed",
    "ffset fetch failed", "__consumer_offsets", "SinkTask",
)  # fmt: skip


def _of_transactions(words: str) -> Sign:
    """Make a sign that excludes a group's coordinator, which has the same errors and no transaction."""
    return sign(words, without=_OF_A_GROUP)


LOG_NOT_REPLICATED = Failure(
    code=codes.TRANSACTION_LOG_NOT_REPLICATED, family=Family.COORDINATOR,
    name="NotEnoughReplicasException in __transaction_state",
    signs=(
        sign("NotEnoughReplicas", "__transaction_state"),
        sign("insufficient to satisfy the min.isr requirement", "__transaction_state"),
        sign("insufficient to satisfy the required min isr", "__transaction_state"),
        sign("append transaction log for", "transition failed due to"),
    ),
    means="__transaction_state can't be written: too few of its replicas are in sync",
    causes=(
        "Brokers are down: transaction.state.log.min.isr is 2 by default, and so one of three may be.",
        "A cluster of one or two brokers with the defaults, which want three replicas.",
    ),
    is_not=("Not a failure of the application's topics: those have settings of their own.",),
    fix="Bring the brokers back. On a small cluster set transaction.state.log.replication.factor and "
    "transaction.state.log.min.isr before the first transaction",
    commands=(_COORDINATOR, "eosctl doctor"),
    said_by=(
        "core: Partition.appendRecordsToLeader and TransactionStateManager.appendTransactionToLog, 0.11 to 4.3",
        _ERRORS + ".NOT_ENOUGH_REPLICAS (19)",
    ),
    aliases=("NotEnoughReplicas", "NotEnoughReplicasException", "transaction.state.log.min.isr"),
    explains=(
        codes.INIT_TIMED_OUT, codes.END_TIMED_OUT, codes.ADD_OFFSETS_TIMED_OUT, codes.COORDINATOR_NOT_AVAILABLE,
        codes.CONCURRENT_TRANSACTIONS, codes.STREAMS_INIT_TIMED_OUT,
    ),
)  # fmt: skip
LOADING = Failure(
    code=codes.COORDINATOR_LOADING, family=Family.COORDINATOR, name="CoordinatorLoadInProgressException",
    signs=(
        _of_transactions("CoordinatorLoadInProgressException"), _of_transactions("COORDINATOR_LOAD_IN_PROGRESS"),
        _of_transactions("coordinator is loading and hence can't process requests"),
        _of_transactions("Coordinator load in progress"),
    ),
    means="the transaction coordinator is still reading its part of __transaction_state",
    causes=(
        "A broker started, or leadership moved: it lasts for seconds.",
        "__transaction_state is not compacted (a dead log cleaner), or has millions of ids: it lasts for minutes.",
    ),
    is_not=("Not a failure: clients ask again by themselves.",),
    fix="Wait. Where it lasts, look for a dead log cleaner in the broker's log",
    commands=(_COORDINATOR,),
    said_by=(_ERRORS + ".COORDINATOR_LOAD_IN_PROGRESS (14), 0.11 to 4.3",),
    aliases=("LoadInProgress", "CoordinatorLoadInProgress"),
    explains=(codes.INIT_TIMED_OUT, codes.END_TIMED_OUT, codes.ADD_OFFSETS_TIMED_OUT, codes.STREAMS_INIT_TIMED_OUT),
)  # fmt: skip
_REDPANDA = "Redpanda's brokers have no transaction coordinator for it, or can't give out a producer id"
_REDPANDAS = (
    "See that kafka_internal/tx, kafka_internal/id_allocator and tx_registry have leaders (`rpk cluster health`); "
    "restarts of the client do not help"
)
NOT_AVAILABLE = Failure(
    code=codes.COORDINATOR_NOT_AVAILABLE, family=Family.COORDINATOR, name="CoordinatorNotAvailableException",
    signs=(
        _of_transactions("CoordinatorNotAvailableException"), _of_transactions("COORDINATOR_NOT_AVAILABLE"),
        _of_transactions("Coordinator not available"), _of_transactions("coordinator is not available."),
        sign("errc::coordinator_not_available", means=_REDPANDA, fix=_REDPANDAS), sign(
            "failed to allocate pid", means=_REDPANDA, fix=_REDPANDAS),
    ),
    means="there is no transaction coordinator for its id",
    causes=(
        "The partition of __transaction_state has no leader: its brokers are down.",
        "The topic can't be created: fewer brokers than transaction.state.log.replication.factor.",
        "It can't be written: too few replicas in sync.",
    ),
    is_not=("Not a wrong transactional id.", "Not fatal: clients ask again until their timeout."),
    fix="Bring the brokers back that have the partition of __transaction_state",
    commands=(_COORDINATOR, "eosctl doctor"),
    said_by=(_ERRORS + ".COORDINATOR_NOT_AVAILABLE (15), 0.11 to 4.3",),
    aliases=("CoordinatorNotAvailable", "GroupCoordinatorNotAvailableException"),
    explains=(codes.INIT_TIMED_OUT, codes.END_TIMED_OUT, codes.ADD_OFFSETS_TIMED_OUT, codes.STREAMS_INIT_TIMED_OUT),
)  # fmt: skip
NOT_COORDINATOR = Failure(
    code=codes.NOT_COORDINATOR, family=Family.COORDINATOR, name="NotCoordinatorException",
    signs=(
        _of_transactions("NotCoordinatorException"), _of_transactions("NOT_COORDINATOR"),
        _of_transactions("This is not the correct coordinator"),
        _of_transactions("Broker: Not coordinator"),
        sign("Received END_TXN response", "errorCode=16,"), sign("Received INIT_PRODUCER_ID response", "errorCode=16,"),
    ),
    means="the coordinator of its id has moved to another broker",
    causes=("A broker restarted or left, and another one leads the partition of __transaction_state now.",),
    is_not=("Not a failure by itself: clients find the new coordinator.",),
    fix="None, unless it lasts for minutes: then brokers do not agree on the leader",
    commands=(_COORDINATOR,),
    versions=(
        VersionNote("4.3.1", "a Java producer finds the other coordinator without a word: its log has an errorCode=16 "
                    "at DEBUG, and \"Discovered transaction coordinator\" again (seen)"),
    ),
    said_by=(_ERRORS + ".NOT_COORDINATOR (16), 0.11 to 4.3",),
    aliases=("NotCoordinator",),
)  # fmt: skip
CONCURRENT = Failure(
    code=codes.CONCURRENT_TRANSACTIONS, family=Family.COORDINATOR, name="ConcurrentTransactionsException",
    signs=(
        sign("ConcurrentTransactionsException"), sign("CONCURRENT_TRANSACTIONS"),
        sign("another concurrent operation on the same transaction was ongoing"),
        sign(
            "a producer id is already involved in a tx with tx_seq",
            means="a consumer group of Redpanda's still has the former transaction of its producer open",
        ),
        sign("errc::concurrent_transactions"),
    ),
    means="the former transaction of its id is still being ended",
    causes=(
        "A producer began while the former one's transaction was open: the coordinator aborts that first.",
        "Markers can't be written: a partition of the transaction has no leader.",
        "Where it lasts for longer than a minute: a coordinator that has decided the end and can't write it (it stays "
        "in PrepareCommit or PrepareAbort).",
    ),
    is_not=("Not fatal: Java's producer asks again by itself.", "Not two threads in one producer."),
    fix="Ask again. Where it lasts for longer than a minute, `eosctl txn hanging` says what keeps the former "
    "transaction from being ended: see to that, mostly to the brokers that lead its partitions",
    commands=(_DESCRIBE, "eosctl txn log {id}"),
    versions=(
        VersionNote("before 3.7.1", "Admin.fenceProducers, and with it Connect's fencing, fails of it (KAFKA-16570)"),
    ),
    said_by=(_ERRORS + ".CONCURRENT_TRANSACTIONS (51), 0.11 to 4.3",),
    aliases=("ConcurrentTransactions", "ConcurrentTransactions at init"),
    explains=(
        codes.INIT_TIMED_OUT, codes.STREAMS_INIT_TIMED_OUT, codes.FENCING_FAILED, codes.END_TIMED_OUT,
        codes.ADD_OFFSETS_TIMED_OUT,
    ),
)  # fmt: skip
FENCED = Failure(
    code=codes.COORDINATOR_FENCED, family=Family.COORDINATOR, name="TransactionCoordinatorFencedException",
    signs=(
        sign("TransactionCoordinatorFencedException"), sign("TRANSACTION_COORDINATOR_FENCED"),
        sign("has been fenced by the active coordinator"), sign("Invalid coordinator epoch for producerId"),
        sign("transaction coordinator sending a WriteTxnMarker"),
    ),
    means="a marker of a former transaction coordinator was refused",
    causes=(
        "Leadership of a partition of __transaction_state moved while markers were on their way.",
        "An abort by hand with a coordinator epoch that is older than what the partition has seen.",
        "An abort by hand with one that is newer than the coordinator's own: then the coordinator's markers are "
        "refused from then on, and its log says \"has permanently failed\" (seen on 4.3.1).",
    ),
    is_not=("Not a producer that was fenced: it is about brokers alone.",),
    fix="None where leadership moved: the new coordinator sends the marker. Where a marker has permanently failed, "
    "see whether a transaction hangs there: `txn complete` and `txn abort` take the epoch that the "
    "partition has seen last",
    commands=("eosctl txn hanging --topic {topic}",),
    said_by=(
        _ERRORS + ".TRANSACTION_COORDINATOR_FENCED (52), 0.11 to 4.3",
        "storage: ProducerAppendInfo.checkCoordinatorEpoch; kafka-clients: AbortTransactionHandler, 3.0 to 4.3",
    ),
    aliases=("TransactionCoordinatorFenced",),
)  # fmt: skip
INIT_TIMED_OUT = Failure(
    code=codes.INIT_TIMED_OUT, family=Family.COORDINATOR, name="TimeoutException awaiting InitProducerId",
    signs=(
        sign("while awaiting InitProducerId"), sign("Timeout expired while initializing transactional state"),
        sign("InitTransactions timed out"),
        sign("Failed to initialize Producer ID: Local: Timed out"),
    ),
    means="its producer got no producer id within max.block.ms",
    causes=(
        "No coordinator: its broker is down, or __transaction_state can't be created or written.",
        "The id's former transaction can't be ended: a partition of it has no leader.",
        "Brokers can't be reached: a wrong address, security.protocol or advertised.listeners.",
    ),
    is_not=("Not a fencing, and not a missing right: those have exceptions of their own.",),
    fix="See to the coordinator; then call initTransactions again, which the same producer may do",
    commands=(_COORDINATOR, _DESCRIBE, "eosctl doctor"),
    versions=(
        VersionNote("before 2.4", "\"Timeout expired while initializing transactional state in …ms.\""),
        VersionNote(_WORDS,
        "a second sentence: \"InitTransactions timed out - did not complete coordinator discovery or "
                    "receive the InitProducerId response within max.block.ms.\" (seen on 4.3.1, not on 3.9.2)"),
    ),
    said_by=(_RESULT, "kafka-clients: KafkaProducer.initTransactions"),
    aliases=("awaiting InitProducerId", "TimeoutException awaiting InitProducerId"),
    explains=(codes.PRODUCER_IN_ERROR,),
)  # fmt: skip
END_TIMED_OUT = Failure(
    code=codes.END_TIMED_OUT, family=Family.COORDINATOR, name="TimeoutException awaiting EndTxn",
    signs=(
        sign("while awaiting EndTxn"), sign("CommitTransaction timed out"), sign("AbortTransaction timed out"),
    ),
    means="the commit or abort of its transaction had no answer within max.block.ms",
    causes=("The coordinator is down, slow, or moved.", "__transaction_state has too few replicas in sync."),
    is_not=("Not an abort, and not a commit: the outcome is unknown until somebody looks.",),
    fix="Call the same method again with the same producer; with a new one, read back first what was committed",
    commands=(_DESCRIBE, "eosctl txn log {id}"),
    versions=(VersionNote(_WORDS, "a second sentence names the method (seen on 4.3.1, not on 3.9.2)"),),
    said_by=(_RESULT, "kafka-clients: KafkaProducer.commitTransaction and abortTransaction"),
    aliases=("awaiting EndTxn", "TimeoutException awaiting EndTxn"),
)  # fmt: skip
OFFSETS_TIMED_OUT = Failure(
    code=codes.ADD_OFFSETS_TIMED_OUT, family=Family.COORDINATOR, name="TimeoutException awaiting AddOffsetsToTxn",
    signs=(
        sign("while awaiting AddOffsetsToTxn"), sign("while awaiting TxnOffsetCommit"),
        sign("SendOffsetsToTransaction timed out"),
    ),
    means="consumer offsets could not be added to its transaction within max.block.ms",
    causes=("The transaction coordinator, or the group's coordinator, is down or moved.",),
    is_not=("Not a committed offset: the transaction is still open.",),
    fix="Call abortTransaction, and process the records again",
    commands=(_DESCRIBE,),
    versions=(
        VersionNote("4.0 and newer with transaction.version=2",
        "offsets are added without AddOffsetsToTxn: the words are "
                    "\"awaiting TxnOffsetCommitHandler\" (seen on 4.3.1)"),
    ),
    said_by=(_RESULT, "kafka-clients: KafkaProducer.sendOffsetsToTransaction"),
    aliases=("awaiting AddOffsetsToTxn", "TimeoutException awaiting AddOffsetsToTxn"),
)  # fmt: skip
TIMEOUT_REFUSED = Failure(
    code=codes.TIMEOUT_REFUSED, family=Family.COORDINATOR, name="InvalidTxnTimeoutException",
    signs=(
        sign("transaction timeout is larger than the maximum"),
        sign("Transaction timeout is larger than the maximum"),
        sign("InvalidTxnTimeoutException"), sign("INVALID_TRANSACTION_TIMEOUT"),
    ),
    means="brokers refuse the transaction timeout of its producer",
    causes=(
        "transaction.timeout.ms is larger than the brokers' transaction.max.timeout.ms (15 minutes by default): "
        "Flink's default is 1 hour.",
        "transaction.max.timeout.ms is below 90000: then Connect's own fencing is refused, too (3.7.1 and newer).",
    ),
    is_not=("Not a timeout that is over: nothing has begun.",),
    fix="Lower transaction.timeout.ms of the producer (of a connector: producer.override.transaction.timeout.ms), or "
    "raise the brokers' transaction.max.timeout.ms",
    versions=(VersionNote("3.x and 4.x",
    "the producer throws a KafkaException with the words, without the class's name"),),
    said_by=(
        _ERRORS + ".INVALID_TRANSACTION_TIMEOUT (50), 0.11 to 4.3",
        "kafka-clients: TransactionManager.InitProducerIdHandler",
    ),
    aliases=("transaction.max.timeout.ms", "INVALID_TRANSACTION_TIMEOUT"),
    explains=(codes.PRODUCER_IN_ERROR,),
)  # fmt: skip
ID_NOT_AUTHORIZED = Failure(
    code=codes.ID_NOT_AUTHORIZED, family=Family.COORDINATOR, name="TransactionalIdAuthorizationException",
    signs=(
        sign("TransactionalIdAuthorizationException"), sign("Transactional Id authorization failed"),
        sign("TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    ),
    means="its principal may not use the transactional id",
    causes=(
        "No ACL with WRITE (which includes DESCRIBE) on the TransactionalId.",
        "The ACL is literal, and the application makes its ids: Streams' and Flink's need a prefixed one.",
    ),
    is_not=("Not a failed login.", "Not a right on a topic."),
    fix="Grant WRITE and DESCRIBE on the id, or on its prefix",
    commands=(
        "eosctl acls check --for streams --application APPLICATION --principal User:NAME",
        "eosctl acls check --for flink --application PREFIX --principal User:NAME",
        _DESCRIBE,
    ),
    said_by=(_ERRORS + ".TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53), 0.11 to 4.3",),
    aliases=("TransactionalIdAuthorization",),
    explains=(codes.PRODUCER_IN_ERROR,),
)  # fmt: skip
CLUSTER_NOT_AUTHORIZED = Failure(
    code=codes.CLUSTER_NOT_AUTHORIZED, family=Family.COORDINATOR, name="ClusterAuthorizationException",
    signs=(
        sign("ClusterAuthorizationException"), sign("Cluster authorization failed"),
        sign("CLUSTER_AUTHORIZATION_FAILED"),
    ),
    means="its principal lacks a right on the cluster: an idempotent producer needs WRITE on a topic, and with brokers "
    "before 2.8 IDEMPOTENT_WRITE",
    causes=(
        "Clients of 3.0 and newer are idempotent by default, and the brokers are older than 2.8.",
        "Brokers of 2.8 or newer, and no WRITE on any topic: it may describe its topic, and no more (seen on 4.3.1).",
        "Another right on the cluster: CLUSTER_ACTION for aborts, ALTER for ACLs, CREATE for topics.",
    ),
    is_not=("Not a right on the topic or on the transactional id.",),
    fix="Grant IDEMPOTENT_WRITE on the cluster, or WRITE on any topic with brokers of 2.8 or newer",
    commands=("eosctl acls generate --for flink --application PREFIX --principal User:NAME --old-brokers",),
    versions=(VersionNote("2.8 and newer", "WRITE on any topic is enough for an idempotent producer (KIP-679)"),),
    said_by=(_ERRORS + ".CLUSTER_AUTHORIZATION_FAILED (31), 0.11 to 4.3",),
    aliases=("ClusterAuthorization", "IdempotentWrite", "IDEMPOTENT_WRITE"),
    explains=(codes.PRODUCER_IN_ERROR,),
    of_transactions=False,
)  # fmt: skip
NOT_AUTHORIZED = Failure(
    code=codes.TOPIC_NOT_AUTHORIZED, family=Family.PRODUCER, name="TopicAuthorizationException",
    signs=(
        sign("TopicAuthorizationException"), sign("GroupAuthorizationException"), sign(
            "Not authorized to access topics"),
        sign("Not authorized to access group"),
        sign("Broker: Topic authorization failed"), sign("TOPIC_AUTHORIZATION_FAILED"),
        sign("GROUP_AUTHORIZATION_FAILED"),
        sign("Broker: Group authorization failed"),
    ),
    means="its principal lacks a right on a topic or a group",
    causes=("WRITE or DESCRIBE on the topic, CREATE where it is to be created, READ on the group of the offsets.",),
    is_not=("Not a failed login: that is a SaslAuthenticationException or an SslAuthenticationException.",),
    fix="Grant what is missing on the topic, or on the group",
    commands=(
        "eosctl acls check --for streams --application APPLICATION --principal User:NAME --input-topic TOPIC "
        "--output-topic TOPIC",
        "eosctl acls check --for flink --application PREFIX --principal User:NAME --output-topic TOPIC",
    ),
    said_by=(_ERRORS + ".TOPIC_AUTHORIZATION_FAILED (29), GROUP_AUTHORIZATION_FAILED (30), 0.11 to 4.3",),
    aliases=("TopicAuthorization", "GroupAuthorizationException"),
    explains=(codes.PRODUCER_IN_ERROR,),
    of_transactions=False,
)  # fmt: skip
TOO_LARGE = Failure(
    code=codes.RECORD_TOO_LARGE, family=Family.PRODUCER, name="RecordTooLargeException",
    signs=(
        sign("RecordTooLargeException"), sign("larger than the max message size the server will accept"),
        sign("Broker: Message size too large"), sign("MESSAGE_TOO_LARGE"),
    ),
    means="a record is larger than its producer, or the topic, takes",
    causes=(
        "The producer's max.request.size (1 MiB): the message says so itself, and nothing was sent.",
        "The topic's max.message.bytes, or the brokers' message.max.bytes: the batch was refused by a broker.",
    ),
    is_not=(
        "Not a transaction that is too large: its size has no limit, that of each record has.",
        "Not a task that must be fenced: the transaction is aborted, and the next one may begin.",
    ),
    fix="Raise max.request.size of the producer (of a connector: producer.override.max.request.size), and "
    "max.message.bytes of the topic where that is the limit",
    said_by=(
        "kafka-clients: KafkaProducer.ensureValidRecordSize; Errors.MESSAGE_TOO_LARGE (10), 0.11 to 4.3",
    ),
    aliases=("RecordTooLarge", "MESSAGE_TOO_LARGE"),
    explains=(codes.PRODUCER_IN_ERROR, codes.OFFSETS_NOT_WRITTEN),
    of_transactions=False,
)  # fmt: skip

COORDINATORS = (
    LOG_NOT_REPLICATED, LOADING, NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT, FENCED, INIT_TIMED_OUT, END_TIMED_OUT,
    OFFSETS_TIMED_OUT, TIMEOUT_REFUSED, ID_NOT_AUTHORIZED, CLUSTER_NOT_AUTHORIZED, NOT_AUTHORIZED, TOO_LARGE,
)  # fmt: skip
