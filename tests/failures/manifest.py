"""Where each trace of the test data is from, and what it must be recognised as.

`made` is how: `sandbox` by a real client or worker against a sandbox of that version; `class` is the message of the
release's own class, taken from its jar; `public` is the trace alone, out of a public issue thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "traces"


@dataclass(frozen=True, slots=True)
class Trace:
    """A file of `traces`; `codes` are the failures in it, the cause first."""

    file: str
    codes: tuple[str, ...]
    made: str
    how: str

    def __str__(self) -> str:
        return self.file

    def text(self) -> str:
        return (FOLDER / self.file).read_text(encoding="utf-8")


def _sandbox(file: str, *codes: str, how: str) -> Trace:
    return Trace(file, codes, "sandbox", how)


def _class(file: str, *codes: str, how: str) -> Trace:
    return Trace(file, codes, "class", how)


def _public(file: str, *codes: str, how: str) -> Trace:
    return Trace(file, codes, "public", how)


_TWO = "a second KafkaProducer of the id was initialised, then the first one "
_TIMED_OUT = "transaction.timeout.ms=1000, 2.5 s of sleep, then "
_FROZEN = "the broker was stopped by SIGSTOP, max.block.ms=3000, then "
_WORKER = "a FileStreamSource task of a worker with exactly.once.source.support=enabled, as REST shows it: "
_SECURED = "a secured sandbox of three brokers, SCRAM user without ACLs: "
_SHORT = "three brokers, min.insync.replicas=3 of __transaction_state, one broker stopped: "
_LATE = "its open transaction was aborted by an EndTxn with its own epoch, as if a request had been late, then it "
_ROUND = "two workers, a connector of two tasks was changed, and tasks-fencing-CONNECTOR said "
_FLINK = "log of a job of Flink 2.0.1 with connector 4.0.1, broker 4.3.1: "
_NAMELESS = "two workers with rest.advertised.host.name=worker-2, the task of the follower"
_NO_PLUGIN = "two workers, and the plugin was taken from one: "
TRACES = (
    _sandbox("producer-fenced-commit-3.9.2.txt", "producer_fenced", how=_TWO + "committed"),
    _sandbox("producer-fenced-commit-4.3.1.txt", "producer_fenced", how=_TWO + "committed"),
    _sandbox("invalid-producer-epoch-send-4.3.1.txt", "invalid_producer_epoch", how=_TWO + "sent"),
    _sandbox("invalid-producer-epoch-commit-after-4.3.1.txt", "invalid_producer_epoch", how=_TWO + "sent, committed"),
    _sandbox("timed-out-commit-3.9.2.txt", "producer_fenced", how=_TIMED_OUT + "commitTransaction"),
    _sandbox("timed-out-commit-4.3.1.txt", "invalid_txn_state", how=_TIMED_OUT + "commitTransaction"),
    _sandbox(
        "invalid-pid-mapping-commit-4.3.1.txt", "invalid_pid_mapping", "producer_in_error",
        how="transactional.id.expiration.ms=4000, 8 s of sleep, then send and commitTransaction",
    ),
    _sandbox(
        "timeout-above-maximum-4.3.1.txt", "timeout_refused", how="transaction.timeout.ms=10000000, initTransactions"
    ),
    _sandbox(
        "record-too-large-commit-after-4.3.1.txt", "record_too_large", "producer_in_error",
        how="max.message.bytes=1000 of the topic, send of 3000 bytes, then commitTransaction",
    ),
    _sandbox("record-too-large-client-4.3.1.txt", "record_too_large", how="max.request.size=1000, send of 3000 bytes"),
    _sandbox("begin-without-init-4.3.1.txt", "producer_in_error", how="beginTransaction without initTransactions"),
    _sandbox(
        "unstable-offset-commit-timeout-4.3.1.txt", "unstable_offsets",
        how="sendOffsetsToTransaction, then committed() of a consumer of the group, default.api.timeout.ms=2500",
    ),
    _sandbox("timeout-commit-3.9.2.txt", "end_timed_out", how=_FROZEN + "commitTransaction"),
    _sandbox("timeout-commit-4.3.1.txt", "end_timed_out", how=_FROZEN + "commitTransaction"),
    _sandbox("timeout-abort-4.3.1.txt", "end_timed_out", how=_FROZEN + "abortTransaction"),
    _sandbox("timeout-send-offsets-3.9.2.txt", "add_offsets_timed_out", how=_FROZEN + "sendOffsetsToTransaction"),
    _sandbox("timeout-send-offsets-4.3.1.txt", "add_offsets_timed_out", how=_FROZEN + "sendOffsetsToTransaction"),
    _sandbox("timeout-init-3.9.2.txt", "init_timed_out", how=_FROZEN + "initTransactions"),
    _sandbox("timeout-init-4.3.1.txt", "init_timed_out", how=_FROZEN + "initTransactions"),
    _sandbox("records-expired-4.3.1.txt", "records_expired", how="the batch's sequence was moved on by 100, then send"),
    _sandbox("connect-task-fenced-4.3.1.txt", "task_fenced_or_expired", how=_WORKER + "fenced, then given a line"),
    _sandbox("connect-task-fenced-rest-4.3.1.json", "task_fenced_or_expired", how="the same, REST's whole answer"),
    _sandbox(
        "connect-timeout-refused-4.3.1.txt", "timeout_refused",
        how=_WORKER + "producer.override.transaction.timeout.ms=10000000",
    ),
    _sandbox("connect-own-offsets-4.3.1.txt", "own_offsets_topic", how=_WORKER + "topic is its offsets.storage.topic"),
    _sandbox(
        "connect-transformation-4.3.1.txt", "converter_failed", how=_WORKER + "ValueToKey over lines without fields"
    ),
    _sandbox(
        "connect-leader-fenced-1-4.3.1.txt", "config_topic_not_claimed",
        how="connect-cluster-GROUP was fenced, then POST restart?includeTasks=true",
    ),
    _sandbox(
        "connect-leader-fenced-2-4.3.1.txt", "config_topic_not_claimed", how="the same POST a second time"
    ),
    _sandbox("streams-task-migrated-4.3.1.txt", "streams_task_migrated", how="a fenced application"),
    _sandbox(
        "cluster-authorization-send-4.3.1.txt", "cluster_not_authorized",
        how=_SECURED + "idempotent producer (the default), DESCRIBE on the topic alone, send",
    ),
    _sandbox(
        "topic-authorization-commit-4.3.1.txt", "topic_not_authorized", "producer_in_error",
        how=_SECURED + "WRITE on the id and DESCRIBE on the topic alone, send, then commitTransaction",
    ),
    _sandbox(
        "group-authorization-4.3.1.txt", "topic_not_authorized",
        how=_SECURED + "WRITE on the id alone, sendOffsetsToTransaction",
    ),
    _sandbox("id-authorization-init-4.3.1.txt", "id_not_authorized", how=_SECURED + "initTransactions"),
    _sandbox("id-authorization-fence-4.3.1.txt", "id_not_authorized", how=_SECURED + "Admin.fenceProducers"),
    _sandbox(
        "coordinator-load-librdkafka-2.16.0.txt", "coordinator_loading",
        how="librdkafka's log on stderr: init_transactions with three brokers, minutes old; why it loaded was not seen",
    ),
    _sandbox(
        "concurrent-transactions-librdkafka-2.16.0.txt", "concurrent_transactions",
        how="librdkafka's log: the broker that leads a partition of the open transaction was stopped by SIGSTOP, then "
        "init_transactions of another producer of the id; the line is repeated",
    ),
    _sandbox(
        "concurrent-transactions-init-4.3.1.txt", "init_timed_out",
        how="the same with a KafkaProducer, max.block.ms=5000: initTransactions says of the cause nothing",
    ),
    _sandbox(
        "connect-task-topic-not-authorized-4.3.1.txt", "task_not_authorized", "offsets_not_written",
        how=_WORKER + "secured, user producer has WRITE on its ids and not on its topic",
    ),
    _sandbox(
        "fencing-not-authorized-4.3.1.txt", "fencing_not_authorized", "fencing_failed",
        how="a MirrorSourceConnector of a secured worker was given a third task: user producer has WRITE on its ids, "
        "user admin has no right on them",
    ),
    _sandbox(
        "coordinator-not-available-librdkafka-2.16.0.txt", "coordinator_not_available",
        how=_SHORT + "str() of what librdkafka's init_transactions(5) raised",
    ),
    _sandbox(
        "not-enough-replicas-broker-4.3.1.txt", "transaction_log_not_replicated",
        how=_SHORT + "lines of the coordinator's log while a KafkaProducer committed",
    ),
    _sandbox(
        "not-enough-replicas-commit-4.3.1.txt", "end_timed_out",
        how=_SHORT + "commitTransaction of that KafkaProducer, max.block.ms=5000: it says of the cause nothing",
    ),
    _sandbox(
        "rolled-back-broker-4.3.1.txt", "transaction_timed_out",
        how="a line of the coordinator's log: the commit above was given up, then transaction.timeout.ms passed",
    ),
    _sandbox("idempotent-4.3.1.txt", "producer_refuses", how="a KafkaProducer with enable.idempotence=true and acks=1"),
    _sandbox(
        "not-resolved-4.3.1.txt", "brokers_not_resolved",
        how="a KafkaProducer with bootstrap.servers=no-such-host.invalid:9092",
    ),
    _sandbox("transaction-abortable-send-3.9.2.txt", "transaction_abortable", how=_LATE + "sent again"),
    _sandbox(
        "transaction-abortable-commit-3.9.2.txt", "transaction_abortable", "producer_in_error",
        how=_LATE + "sent again, committed",
    ),
    _sandbox("invalid-txn-state-commit-3.9.2.txt", "invalid_txn_state", how=_LATE + "committed"),
    _sandbox(
        "coordinator-fenced-admin-4.3.1.txt", "coordinator_fenced",
        how="Admin.abortTransaction with coordinatorEpoch 3, and then with 2",
    ),
    _sandbox(
        "coordinator-fenced-broker-4.3.1.txt", "coordinator_fenced",
        how="the broker's log after that: the coordinator's own epoch was 0",
    ),
    _sandbox(
        "unstable-offsets-consumer-4.3.1.txt", "unstable_offsets",
        how="log of a KafkaConsumer, while sendOffsetsToTransaction of its group was not committed; repeated",
    ),
    _sandbox(
        "streams-init-timeout-4.3.1.txt", "streams_init_timed_out", "init_timed_out",
        how="log of an application with max.block.ms=5000; a broker alone with the default of three replicas of "
        "__transaction_state",
    ),
    _sandbox(
        "connect-producer-fenced-3.9.2.txt", "task_fenced", "offsets_not_written",
        how=_WORKER + "fenced while it had no transaction, then given a line; 4.3.1 says InvalidProducerEpoch",
    ),
    _sandbox(
        "zombie-fencing-4.3.1.txt", "fencing_failed",
        how=_ROUND + "8; connect-cluster-GROUP was fenced meanwhile; the task of the follower",
    ),
    _sandbox(
        "zombie-fencing-leader-fenced-4.3.1.txt", "config_topic_not_claimed", "config_topic_not_written",
        "fencing_failed", how="the same, the leader's own task",
    ),
    _sandbox("zombie-fencing-timed-out-4.3.1.txt", "fencing_timed_out", how=_ROUND + "120; the leader's own task"),
    _sandbox("forward-timeout-4.3.1.txt", "fencing_forward_timeout", how=_ROUND + "45; the task of the follower"),
    _sandbox(
        "fencing-superseded-4.3.1.txt", "fencing_superseded",
        how=_ROUND + "20, and a third task by a PUT after 4 s; the follower's log, for REST shows the newer task",
    ),
    _sandbox(
        "config-topic-transient-4.3.1.txt", "config_topic_not_written",
        how="PUT of a configuration at the leader, the broker stopped by SIGSTOP: REST's answer",
    ),
    _sandbox(
        "forwarded-request-timeout-4.3.1.json", "fencing_forward_timeout", how="the same PUT at the follower"
    ),
    _sandbox(
        "offsets-read-4.3.1.txt", "offsets_read_timed_out",
        how="PATCH of the offsets of a stopped connector behind an open transaction: REST's answer after 90 s",
    ),
    _sandbox(
        "offsets-not-written-4.3.1.txt", "offsets_not_written",
        how="records without source offset, from a connector with an offsets.storage.topic of its own",
    ),
    _sandbox(
        "task-configs-incomplete-4.3.1.txt", "task_configs_forgotten",
        how="a worker's log at DEBUG; into the config topic were written what compaction may leave: a commit of two "
        "tasks with one task's record, and one without its connector's",
    ),
    _sandbox(
        "flink-commit-fenced-4.0.1.txt", "flink_commit_fenced",
        how=_FLINK + "initTransactions of another producer of its id, then the end of its input",
    ),
    _sandbox(
        "flink-commit-timed-out-4.0.1.txt", "flink_commit_fenced",
        how=_FLINK + "transaction.timeout.ms=2000, 16 s without a checkpoint, then the end of its input",
    ),
    _sandbox("flink-prefix-4.0.1.txt", "flink_prefix_shared", how=_FLINK + "two sinks of one prefix: the job fails"),
    _sandbox(
        "internal-rest-4.3.1.txt", "internal_rest_off", how="log of one of two nodes of a MirrorMaker, a task of it"
    ),
    _sandbox("internal-rest-reconfigure-4.3.1.txt", "internal_rest_off", how="the same log, a connector of it"),
    _sandbox("leader-not-reached-3.9.2.txt", "leader_not_reached", how=_NAMELESS),
    _sandbox("leader-not-reached-4.3.1.txt", "leader_not_reached", how=_NAMELESS),
    _sandbox(
        "flink-commit-invalid-4.0.1.txt", "flink_commit_invalid",
        how=_FLINK + "its transaction was aborted by an EndTxn with its own epoch, then the end of its input",
    ),
    _sandbox(
        "ghost-4.3.1.txt", "connector_type_unknown",
        how="an aborted config record of a connector, two preparing workers, and the log of one that became enabled",
    ),
    _sandbox(
        "not-coordinator-producer-4.3.1.txt", "not_coordinator",
        how="a KafkaProducer's log at DEBUG: the partitions of __transaction_state were given another leader, then it "
        "committed, which succeeds; above DEBUG it says nothing",
    ),
    _sandbox(
        "missing-plugin-worker-4.3.1.txt", "plugin_missing", "connector_type_unknown",
        how=_NO_PLUGIN + "the log of that worker",
    ),
    _sandbox("missing-plugin-task-4.3.1.txt", "connector_type_unknown", how=_NO_PLUGIN + "its task, as REST shows it"),
    _sandbox("missing-plugin-put-4.3.1.json", "plugin_missing", how=_NO_PLUGIN + "its answer to a PUT of a config"),
    _sandbox("signature-refused-4.3.1.json", "signature_refused", how="PUT …/fence with a signature of another key"),
    _class(
        "plugin-does-not-fit-4.4.0.txt", "plugin_does_not_fit",
        how="FileStreamSourceConnector.version() of connect-file 4.3.1 with the classes of 4.4.0",
    ),
    _sandbox(
        "config-topic-partitions-4.3.1.txt", "config_topic_partitioned", "worker_ended",
        how="log of a worker whose config topic had been made with three partitions",
    ),
    _sandbox("invalid-timestamp-send-4.3.1.txt", "invalid_timestamp", how="a record of two hours ahead, send"),
    _sandbox(
        "invalid-timestamp-commit-4.3.1.txt", "invalid_timestamp", "producer_in_error", how="the same, committed"
    ),
    _sandbox(
        "connect-task-invalid-timestamp-4.3.1.txt", "invalid_timestamp", "offsets_not_written",
        how=_WORKER + "its output topic had message.timestamp.before.max.ms=1",
    ),
    _sandbox("login-failed-4.3.1.txt", "login_failed", how="an admin client with a wrong password: describeCluster"),
    _sandbox(
        "login-failed-log-4.3.1.txt", "login_failed", "brokers_not_reached",
        how="its whole log, with the settings that it has",
    ),
    _sandbox(
        "full-disk-broker-4.3.1.txt", "disk_failed", how="log of a broker whose log directory's file system ran full"
    ),
    _sandbox(
        "missing-secret-4.3.1.txt", "config_file_missing",
        how="log of a worker: the file of a connector's ${file:…} was deleted, then the connector was restarted",
    ),
    _sandbox("brokers-lost-4.3.1.txt", "brokers_not_reached", how="log of a worker whose broker was killed"),
    _sandbox(
        "closed-forcefully-4.3.1.txt", "producer_closed", how=_FROZEN + "commitTransaction, and close(0) meanwhile"
    ),
    _class(
        "internal-topic-missing-4.4.0.txt", "internal_topic_missing",
        how="KafkaTopicBasedBackingStore of connect-runtime 4.4.0",
    ),
    _class(
        "duplicate-sequence-errors-4.3.1.txt", "duplicate_sequence",
        how="Errors.exception() of kafka-clients 4.3.1; no class of the brokers 3.5.1, 3.9.2, 4.3.1 and 4.4.0 "
        "throws it, and no public trace of it was found",
    ),
    _class(
        "rebalance-expected-4.3.1.txt", "rebalance_expected",
        how="DistributedHerder of connect-runtime 4.3.1, as REST answers it; 160 requests at the same moment to two "
        "workers did not meet it",
    ),
    _class(
        "brokers-too-old-4.3.1.txt", "brokers_too_old",
        how="KafkaConfigBackingStore of connect-runtime 4.3.1; the sandbox has no broker before 2.5, "
        "which needs ZooKeeper",
    ),
    _class(
        "internal-topic-not-compacted-4.3.1.txt", "internal_topic_not_compacted", "worker_ended",
        how="message of TopicAdmin.verifyTopicCleanupPolicyOnlyCompact"
    ),
    _class(
        "topic-not-created-timeout-4.3.1.txt", "topic_not_created", "worker_ended",
        how="message of TopicAdmin.createOrFindTopics"
    ),
    _class(
        "topic-not-created-replicas-4.3.1.txt", "topic_not_created", "worker_ended",
        how="messages of TopicAdmin and ReplicationControlManager"
    ),
    _class("topic-not-created-policy-4.3.1.txt", "topic_not_created", how="messages of TopicAdmin, and of a policy"),
    _class("worker-ended-4.3.1.txt", "worker_ended", how="DistributedHerder.run, and an exception that no entry has"),
    _class(
        "group-protocol-4.3.1.txt", "group_protocol_refused", "worker_ended",
        how="message of Errors.INCONSISTENT_GROUP_PROTOCOL"
    ),
    _class(
        "plugin-path-4.3.1.txt", "plugin_path_unreadable", "plugin_missing", how="messages of PluginUtils and Plugins"
    ),
    _class(
        "rest-not-started-4.3.1.txt", "rest_not_started", "worker_ended",
        how="messages of RestServer and AbstractConnectCli"
    ),
    _class("worker-left-group-4.3.1.txt", "worker_left_group", how="message of DistributedHerder.RebalanceListener"),
    _class("config-log-behind-4.3.1.txt", "config_log_behind", how="message of DistributedHerder.readConfigToEnd"),
    _class(
        "connector-not-stopped-4.3.1.json", "connector_not_stopped",
        how="message of DistributedHerder.modifyConnectorOffsets"
    ),
    _class("offsets-request-refused-4.3.1.json", "offsets_request_refused", how="message of SinkUtils"),
    _class("rest-not-found-4.3.1.json", "rest_not_found", how="message of DistributedHerder"),
    _class("connector-exists-4.3.1.json", "connector_exists", how="message of DistributedHerder.putConnectorConfig"),
    _class(
        "exactly-once-not-offered-4.3.1.json", "exactly_once_not_offered",
        how="messages of DistributedHerder.validateExactlyOnceConfigs and AbstractHerder"
    ),
    _class("config-refused-4.3.1.json", "config_refused", how="messages of AbstractHerder and ConfigDef"),
    _class("redirected-request-4.3.1.txt", "leader_not_reached", how="message of RestClient.httpRequest"),
    _class(
        "web-page-for-request-4.3.1.txt", "leader_not_reached", "fencing_failed",
        how="message of RestClient.httpRequest, and of Jackson"
    ),
    _class(
        "unsigned-request-4.3.1.json", "signature_refused", how="message of DistributedHerder.requestNotSignedProperly"
    ),
    _class(
        "source-position-gone-debezium-3.5.txt", "source_position_gone",
        how="message of BaseSourceTask.validateSchemaHistory"
    ),
    _class(
        "replication-slot-taken-debezium-3.5.txt", "replication_slot_taken",
        how="message of PostgresReplicationConnection, and of PostgreSQL"
    ),
    _class(
        "schema-history-missing-debezium-3.5.txt", "schema_history_missing",
        how="message of BaseSourceTask.validateSchemaHistory"
    ),
    _class("source-not-reached-mysql.txt", "source_not_reached", how="message of MySQL's driver"),
    _class(
        "schema-registry-refused-8.0.txt", "schema_registry_refused", "converter_failed",
        how="messages of AvroConverter and RestService"
    ),
    _class("record-dropped-3.9.2.txt", "record_dropped", how="message of LogReporter"),
    _class(
        "record-failed-4.3.1.txt", "record_failed", how="message of LogReporter, and of a transformation of its own"
    ),
    _class("offsets-not-committed-4.3.1.txt", "offsets_not_committed", how="message of SourceTaskOffsetCommitter"),
    _class("offset-key-ignored-4.3.1.txt", "offset_key_ignored", how="message of OffsetUtils.processPartitionKey"),
    _class(
        "task-stopped-late-4.3.1.txt", "task_stopped_late", "producer_closed",
        how="messages of Worker, AbstractWorkerSourceTask and KafkaProducer"
    ),
    _class(
        "request-not-supported-4.3.1.txt", "request_not_supported", "worker_ended", how="message of NodeApiVersions"
    ),
    _class(
        "rebootstrap-required-4.4.0.txt", "rebootstrap_required",
        how="messages of NetworkClient and Errors.REBOOTSTRAP_REQUIRED"
    ),
    _class(
        "broker-failed-4.3.1.txt", "broker_failed", how="message of TransactionManager.EndTxnHandler, and of Errors"
    ),
    _class(
        "markers-skipped-4.3.1.txt", "markers_skipped",
        how="message of TransactionMarkerChannelManager, seen at a restart of a single broker"
    ),
    _class("out-of-memory.txt", "out_of_memory", how="the virtual machine"),
    _class("not-enough-replicas-topic-4.3.1.txt", "not_enough_replicas", how="message of Errors.NOT_ENOUGH_REPLICAS"),
    _class("topic-not-in-metadata-4.3.1.txt", "topic_not_in_metadata", how="message of KafkaProducer.waitOnMetadata"),
    _class("consumer-left-group-4.3.1.txt", "consumer_left_group", how="message of CommitFailedException"),
    _class(
        "group-coordinator-4.3.1.txt", "group_coordinator_away",
        how="message of Errors.COORDINATOR_LOAD_IN_PROGRESS, in a sink of its own",
    ),
    _class("instance-id-fenced-4.3.1.txt", "instance_id_fenced", how="message of Errors.FENCED_INSTANCE_ID"),
    _class("offset-out-of-range-4.3.1.txt", "offset_out_of_range", how="message of FetchCollector"),
    _class("strimzi-annotation.txt", "strimzi_annotation_unknown", how="Strimzi's operator, with an empty annotation"),
    _class(
        "debezium-heartbeat-denied-4.3.1.txt", "task_not_authorized", "producer_in_error",
        how="messages of Errors.TOPIC_AUTHORIZATION_FAILED and TransactionManager"
    ),
    _class("init-first-failed-4.3.1.txt", "producer_in_error", how="message of TransactionManager.transitionTo"),
    _class(
        "fenced-by-itself-librdkafka-2.16.0.txt", "producer_fenced",
        how="messages of rd_kafka_txn_set_fatal_error and its retry"
    ),
    _class(
        "wrong-state-dotnet-2.6.txt", "init_timed_out", "producer_in_error",
        how="librdkafka's words in .NET's exceptions"
    ),
    _class("coordinator-not-available-redpanda.txt", "coordinator_not_available", how="words of Redpanda's brokers"),
    _class("epoch-franz-go.txt", "invalid_producer_epoch", how="franz-go's name of an error"),
    _public("rebalance-conflict-docker.txt", "rebalance_expected", how="vdesabou/kafka-docker-playground#22"),
    _public("streams-unknown-producer-id-2.4.txt", "unknown_producer_id", how="apache/kafka#7748"),
    _public("flink-fenced-1.18.txt", "flink_commit_fenced", how="redpanda-data/redpanda#16250"),
    _public("flink-old-epoch-2.6.txt", "flink_commit_fenced", how="apache/flink-cdc#230"),
    _public("out-of-order-broker-docker.txt", "out_of_order_sequence", how="IBM/sarama#2915"),
)  # fmt: skip
