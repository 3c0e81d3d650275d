"""Failures that brokers, other vendors' brokers and their environment cause, of whatever client (Kafka 0.11 to 4.4)."""

from __future__ import annotations

from eosctl.failures import codes
from eosctl.failures.failure import Failure, Family, VersionNote, sign

_OLD_BROKERS = "allows admin clients to read consumer offsets"
_TXN_APIS = "INIT_PRODUCER_ID|ADD_PARTITIONS_TO_TXN|ADD_OFFSETS_TO_TXN|END_TXN|TXN_OFFSET_COMMIT|DESCRIBE_TRANSACTIONS"
NOT_SUPPORTED = Failure(
    code=codes.REQUEST_NOT_SUPPORTED, family=Family.BROKER, name="UnsupportedVersionException",
    signs=(
        sign(
            "UnsupportedVersionException", pattern=rf"does not support (?:{_TXN_APIS})",
            without=(_OLD_BROKERS,),
            means="the brokers do not offer a request that transactions need",
            causes=(
                "They are not Apache Kafka, and have no transactions: Event Hubs below Premium, for example.",
                "They are older than 0.11, or a proxy between them and the client lets only some requests through.",
            ),
            fix="Use brokers that have transactions: exactly-once sources and transactional producers can't run here. "
            "A newer client does not help",
        ),
        sign(
            "UnsupportedVersionException", "Attempted to write a non-default",
            means="the client wants something that the brokers' version of the request does not have",
            fix="Leave the setting out that the message names (enable2Pc: transaction.two.phase.commit.enable), or "
            "upgrade the brokers",
        ),
        sign("UnsupportedVersionException", without=(_OLD_BROKERS,)), sign("UNSUPPORTED_VERSION"),
    ),
    means="the brokers do not know a request, or its version",
    causes=(
        "The brokers are older than the client's feature: the message names the request.",
        "They are not Apache Kafka, and lack the request: Event Hubs and others offer a part.",
    ),
    is_not=("Not a missing right.",),
    fix="Upgrade the brokers, or do without the feature",
    commands=("eosctl upgrade plan --to enabled",),
    said_by=("kafka-clients: NodeApiVersions, Errors.UNSUPPORTED_VERSION (35), 0.11 to 4.4",),
    aliases=("UNSUPPORTED_VERSION", "Event Hubs"),
    explains=(codes.INIT_TIMED_OUT,),
)  # fmt: skip
REBOOTSTRAP = Failure(
    code=codes.REBOOTSTRAP_REQUIRED, family=Family.BROKER, name="RebootstrapRequiredException",
    signs=(
        sign("RebootstrapRequiredException"), sign("REBOOTSTRAP_REQUIRED"),
        sign("The client should rebootstrap to obtain"),
        sign("Rebootstrap requested by server"),
    ),
    means="a broker says that the client has come to another broker or cluster than it believes, and has to begin "
    "again with bootstrap.servers",
    causes=(
        "A forwarded port, a load balancer or a proxy leads to another broker than the address says.",
        "An address now belongs to another cluster: pods that were recreated, a cluster that moved.",
    ),
    is_not=("Not a transaction that failed, and not a login.",),
    fix="See where each broker's advertised address leads; give every broker an address of its own. Clients with "
    "metadata.recovery.strategy=rebootstrap (the default from 4.0 on) begin again by themselves",
    versions=(
        VersionNote("4.0 and newer", "clients know the error (KIP-1102)"),
        VersionNote("4.4 and newer", "clients send cluster id and node id, and brokers compare them "
                    "(metadata.cluster.check.enable)"),
    ),
    said_by=("kafka-clients: Errors.REBOOTSTRAP_REQUIRED (129), 4.0 to 4.4; NetworkClient, 4.4",),
    aliases=("REBOOTSTRAP_REQUIRED", "metadata.cluster.check.enable"),
    explains=(codes.BROKERS_NOT_REACHED,),
    of_transactions=False,
)  # fmt: skip
BROKER_FAILED = Failure(
    code=codes.BROKER_FAILED, family=Family.BROKER, name="UnknownServerException",
    signs=(
        sign("UnknownServerException"), sign("UNKNOWN_SERVER_ERROR"), sign("tx_errc::unknown_server_error"),
        sign("The server experienced an unexpected error when processing the request"),
        sign("Broker: Unknown broker error"),
    ),
    means="a broker failed while it carried out a request: only its own log says why",
    causes=(
        "A fault of the broker, or of a plugin in it: an authorizer, a policy.",
        "A broker that is not Apache's answers so where it has no better word.",
    ),
    is_not=("Not proof that nothing was done: in a transaction, look before you repeat.",),
    fix="Read the broker's log at that time. A transactional producer is in a fatal state then: make a new one",
    commands=("eosctl txn describe {id}",),
    said_by=("kafka-clients: Errors.UNKNOWN_SERVER_ERROR (-1), 0.11 to 4.4",),
    aliases=("UNKNOWN_SERVER_ERROR",),
    explains=(codes.PRODUCER_IN_ERROR,),
    of_transactions=False,
)  # fmt: skip
MARKERS = Failure(
    code=codes.MARKERS_SKIPPED, family=Family.BROKER, name="Couldn't find leader endpoint … hence can be skipped",
    signs=(sign("Couldn't find leader endpoint for partitions", "while trying to send transaction markers"),),
    means="a coordinator ended a transaction without its markers on partitions that it found no leader for: unless "
    "those partitions were deleted, the transaction hangs there, though the coordinator has it as ended",
    causes=(
        "A broker that has the only replica of a partition was shut down in that moment (seen at plain restarts of "
        "4.3.1 and 4.4.0).",
        "The topic was deleted: then there is nothing to end.",
    ),
    is_not=(
        "Not harmless where the topic is there: readers of committed records wait, and nothing ends it by timeout.",
        "Not a reason to abort: the coordinator may have committed it, and an abort of one partition splits it.",
    ),
    fix="See whether it hangs: `eosctl txn hanging --all`. If so, end it on all of its partitions as the coordinator "
    "decided: `txn complete --as-decided`",
    commands=("eosctl txn hanging --all", "eosctl txn log {id}"),
    said_by=("core: TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue (WARN), 0.11 to 4.4",),
    aliases=("likely deleted already and hence can be skipped",),
    explains=(codes.UNSTABLE_OFFSETS, codes.OFFSETS_READ_TIMED_OUT),
)  # fmt: skip
MEMORY = Failure(
    code=codes.OUT_OF_MEMORY, family=Family.BROKER, name="OutOfMemoryError",
    signs=(sign("java.lang.OutOfMemoryError"), sign("OutOfMemoryError: ")),
    means="its Java machine has no memory left: what else fails in it then is a consequence",
    causes=(
        "The heap is too small for the tasks on it: many producers (32 MB each), large records, a snapshot.",
        "A client without TLS at a port with TLS: it takes the answer for the size of a message.",
        "\"unable to create native thread\": a limit of processes or of the container.",
    ),
    is_not=("Not a failure of the task that reports it: it was only the next one to ask for memory.",),
    fix="Restart the process, which may be in any state. Raise KAFKA_HEAP_OPTS, or lower the tasks' buffers",
    commands=("eosctl workers list",),
    said_by=("java: the virtual machine; seen with Kafka 2.x to 4.x, and any 4.0 and newer",),
    of_worker=True,
    of_transactions=False,
)  # fmt: skip
FEW_REPLICAS = Failure(
    code=codes.NOT_ENOUGH_REPLICAS, family=Family.BROKER, name="NotEnoughReplicasException",
    signs=(
        sign("NotEnoughReplicas", without=("__transaction_state",)),
        sign("NOT_ENOUGH_REPLICAS", without=("__transaction_state",)), sign("Broker: Not enough in-sync replicas"),
        sign("fewer in-sync replicas than required", without=("__transaction_state",)),
    ),
    means="a partition has fewer replicas in sync than the topic's min.insync.replicas, and takes no records",
    causes=("Brokers are down or behind.", "min.insync.replicas is as large as the number of replicas."),
    is_not=("Not lost records: they were not taken, and producers send them again until delivery.timeout.ms.",),
    fix="Bring the brokers back; a topic needs one replica more than min.insync.replicas to survive a restart",
    commands=("eosctl doctor",),
    said_by=("kafka-clients: Errors.NOT_ENOUGH_REPLICAS (19), 0.11 to 4.4",),
    aliases=("NOT_ENOUGH_REPLICAS", "min.insync.replicas"),
    explains=(codes.RECORDS_EXPIRED, codes.OFFSETS_NOT_COMMITTED),
    of_transactions=False,
)  # fmt: skip
_NO_NAME = "the name of a topic is none that Kafka takes: it is empty, too long, or has other characters"
_NAME = "Correct what makes the topic's name: topic.prefix, topics, or a transformation that routes records"
NO_METADATA = Failure(
    code=codes.TOPIC_NOT_IN_METADATA, family=Family.BROKER, name="Topic … not present in metadata after … ms",
    signs=(
        sign("not present in metadata after"), sign("Could not look up partition metadata for topic"),
        sign("UnknownTopicOrPartitionException"),
        sign("Broker: Unknown topic or partition"), sign("Local: Unknown topic"), sign("Local: Unknown partition"),
        sign("Failed to update metadata after"),
        sign("InvalidTopicException", means=_NO_NAME, fix=_NAME), sign("INVALID_TOPIC_EXCEPTION", means=_NO_NAME,
             fix=_NAME),
        sign("Metadata response reported invalid topics", means=_NO_NAME, fix=_NAME),
    ),
    means="brokers do not have the topic or partition, or did not say so in time",
    causes=(
        "The topic is not there, and brokers do not create it (auto.create.topics.enable=false).",
        "The principal may not DESCRIBE it: brokers then answer as if it were not there.",
        "The client does not reach a broker, or reaches another cluster.",
    ),
    is_not=("Not a failure where it comes once, right after the topic was made.",),
    fix="Create the topic, or grant DESCRIBE on it",
    commands=("eosctl acls check",),
    said_by=("kafka-clients: KafkaProducer.waitOnMetadata; Errors.UNKNOWN_TOPIC_OR_PARTITION (3), 0.11 to 4.4",),
    aliases=("UNKNOWN_TOPIC_OR_PARTITION", "UnknownTopicOrPartition"),
    explains=(codes.OFFSETS_NOT_COMMITTED,),
    of_transactions=False,
)  # fmt: skip
LEFT_GROUP = Failure(
    code=codes.CONSUMER_LEFT_GROUP, family=Family.READER, name="CommitFailedException",
    signs=(
        sign("CommitFailedException"), sign("consumer poll timeout has expired"),
        sign("Commit cannot be completed since"),
        sign("failed due to consumer group metadata mismatch"), sign("Application maximum poll interval", "exceeded"),
    ),
    means="a consumer is no member of its group any more: its partitions belong to another one",
    causes=(
        "It did not poll for longer than max.poll.interval.ms: slow processing, a sink that waits for its target.",
        "It sent no heartbeat for longer than session.timeout.ms: a pause of the machine.",
    ),
    is_not=("Not lost offsets, and no fenced producer: the records are read again by another member.",),
    fix="Lower max.poll.records, or raise max.poll.interval.ms (of a connector: consumer.override.). In a transaction, "
    "abort it: sendOffsetsToTransaction may not go on with a former generation",
    said_by=("kafka-clients: CommitFailedException, AbstractCoordinator, TransactionManager, 0.11 to 4.4",),
    aliases=("max.poll.interval.ms", "CommitFailed"),
    of_transactions=False,
)  # fmt: skip
_OF_A_GROUP = r"SinkTask|\[Consumer |[Gg]roup coordinator|__consumer_offsets|(?:Join|Sync)Group|ffset "
"(?:commit|fetch) failed"
GROUP_AWAY = Failure(
    code=codes.GROUP_COORDINATOR_AWAY, family=Family.READER,
        name="A consumer group's coordinator is loading or has moved",
    signs=(
        sign("CoordinatorLoadInProgressException", pattern=_OF_A_GROUP), sign("NotCoordinatorException",
             pattern=_OF_A_GROUP),
        sign("CoordinatorNotAvailableException", pattern=_OF_A_GROUP),
    ),
    means="the coordinator of a consumer group is loading its offsets, has moved, or is away",
    causes=("A broker restarted, or leads another partition of __consumer_offsets now.",
        "That partition has no leader."),
    is_not=("Not the coordinator of a transaction: groups have one of their own.",),
    fix="None where it passes: clients ask again. Else see to the brokers that have the partition of "
    "__consumer_offsets",
    commands=("eosctl doctor",),
    said_by=("kafka-clients: Errors.COORDINATOR_LOAD_IN_PROGRESS (14) to NOT_COORDINATOR (16), 0.11 to 4.4",),
    of_transactions=False,
)  # fmt: skip
INSTANCE_FENCED = Failure(
    code=codes.INSTANCE_ID_FENCED, family=Family.READER, name="FencedInstanceIdException",
    signs=(
        sign("FencedInstanceIdException"), sign("FENCED_INSTANCE_ID"),
        sign("Static consumer fenced by other consumer"), sign("due to fenced instance id"),
    ),
    means="another member of the group has its group.instance.id",
    causes=("Two instances with one configuration.", "A former instance that was not away yet when it was replaced."),
    is_not=("Not a fenced producer: no transactional id and no epoch is in it.",),
    fix="Give each instance a group.instance.id of its own",
    said_by=("kafka-clients: Errors.FENCED_INSTANCE_ID (82), 2.3 to 4.4",),
    aliases=("FENCED_INSTANCE_ID", "group.instance.id"),
    of_transactions=False,
)  # fmt: skip
OUT_OF_RANGE = Failure(
    code=codes.OFFSET_OUT_OF_RANGE, family=Family.READER, name="OffsetOutOfRangeException",
    signs=(
        sign("OffsetOutOfRangeException"), sign("OFFSET_OUT_OF_RANGE"), sign("is out of range for partition"),
        sign("Broker: Offset out of range"),
    ),
    means="the topic does not have the offset that a consumer wants to read",
    causes=(
        "Retention deleted the records before they were read: the consumer was away for longer.",
        "The topic was recreated, and its offsets begin at 0.",
    ),
    is_not=("Not a source offset of Connect's: it is a consumer's offset in a topic.",),
    fix="With auto.offset.reset the consumer goes on at the begin or the end; what was deleted is lost. Raise "
    "retention",
    said_by=("kafka-clients: Errors.OFFSET_OUT_OF_RANGE (1), 0.11 to 4.4",),
    aliases=("OFFSET_OUT_OF_RANGE",),
    of_transactions=False,
)  # fmt: skip
STRIMZI_OFFSETS = Failure(
    code=codes.STRIMZI_ANNOTATION_UNKNOWN, family=Family.BROKER,
    name="No enum constant io.strimzi…KafkaConnectorOffsetsAnnotation",
    signs=(sign("No enum constant io.strimzi.", "Annotation."),),
    means="Strimzi's operator does not know the value of an annotation, and stops at this resource",
    causes=(
        "The annotation has an empty or mistyped value: strimzi.io/connector-offsets takes list, alter and reset.",
        "The operator is older than the value.",
    ),
    is_not=("Not a failure of Connect or of Kafka: nothing was changed.",),
    fix="Correct or remove the annotation: `kubectl annotate kafkaconnector NAME strimzi.io/connector-offsets-`",
    said_by=("Strimzi's operator: KafkaConnectorOffsetsAnnotation, 0.44 to 1.1",),
    aliases=("strimzi.io/connector-offsets",),
    of_transactions=False,
)  # fmt: skip

BROKERS = (
    NOT_SUPPORTED, REBOOTSTRAP, BROKER_FAILED, MARKERS, MEMORY, FEW_REPLICAS, NO_METADATA, LEFT_GROUP, GROUP_AWAY,
    INSTANCE_FENCED,
    OUT_OF_RANGE, STRIMZI_OFFSETS,
)  # fmt: skip
