"""The codes of the dictionary of failures; the entries have the rest."""

from __future__ import annotations

from eosctl.codes import error, finding

FAILURE_NOT_KNOWN = error(
    "failure_not_known",
    "A stack trace or a log has no failure that the dictionary knows.",
    "See the last cause, which the error names; where there is none, give a stack trace.",
)
FENCING_NOT_AUTHORIZED = finding(
    "fencing_not_authorized",
    "A task is FAILED: its principal may not use its transactional id, or fence it.",
    "`eosctl acls apply` grants what is missing; then restart the task.",
)
FENCING_SUPERSEDED = finding(
    "fencing_superseded",
    "A task is FAILED: its connector was changed while it was being fenced.",
    "Restart the failed tasks; after a change wait for the new task-count record before the next.",
)
LEADER_NOT_REACHED = finding(
    "leader_not_reached",
    "A follower's task is FAILED: its worker can't reach the leader, which fences the old tasks.",
    "Make the advertised host names resolve, and the ports reachable, between all workers; then restart the task.",
)
FENCING_FORWARD_TIMEOUT = finding(
    "fencing_forward_timeout",
    "A follower's task is FAILED: the leader's fencing took longer than 30 s.",
    "`eosctl rescue`, and the two retry.backoff overrides.",
)
FENCING_TIMED_OUT = finding("fencing_timed_out", "Tasks are FAILED: fencing took longer than 90 s.", "`eosctl rescue`.")
FENCING_FAILED = finding(
    "fencing_failed", "A task is FAILED: the old tasks could not be fenced.", "Restart it; then `eosctl rescue`."
)
INTERNAL_REST_OFF = finding(
    "internal_rest_off",
    "MirrorMaker's workers can't reach their leader.",
    "Set dedicated.mode.enable.internal.rest=true on every node.",
)
TIMEOUT_REFUSED = finding(
    "timeout_refused",
    "Brokers refuse the transaction timeout of a producer; a task is FAILED of it.",
    "Lower transaction.timeout.ms (in Connect with producer.override.), or raise the brokers' maximum.",
)
TASK_FENCED = finding("task_fenced", "A task is FAILED: another producer took its transactional id.", "Restart it.")
TASK_FENCED_OR_EXPIRED = finding(
    "task_fenced_or_expired",
    "A task is FAILED: its transaction took too long, or another producer took its id.",
    "Restart it; raise the transaction timeout, or use transaction.boundary=poll.",
)
PRODUCER_REFUSES = finding(
    "producer_refuses",
    "A setting that an idempotent producer refuses: exactly-once tasks fail at their start.",
    "Remove it; acks=all, retries above 0, at most 5 requests in flight.",
)
BROKERS_NOT_RESOLVED = finding(
    "brokers_not_resolved",
    "A task or connector is FAILED: its worker can't resolve the brokers' names in its config.",
    "Correct bootstrap.servers of its overrides, or the worker's DNS; then restart the task.",
)
RECORD_TOO_LARGE = finding(
    "record_too_large",
    "A record is larger than its producer, or the topic, takes; a task is FAILED of it.",
    "Raise producer.override.max.request.size, and the topic's max.message.bytes; then restart the task.",
)
OWN_OFFSETS_TOPIC = finding(
    "own_offsets_topic",
    "A task is FAILED: it writes into the topic of its own offsets.",
    "Give it another topic for one of the two.",
)
OFFSETS_NOT_WRITTEN = finding(
    "offsets_not_written",
    "A task is FAILED: its offsets could not be written.",
    "Read the cause below it in the trace: that is what is to be mended.",
)
CONNECTOR_TYPE_UNKNOWN = finding(
    "connector_type_unknown",
    "A task is FAILED: its worker can't tell whether its connector is a source or a sink. Most often the worker lacks "
    "the connector's plugin.",
    "See whether the plugin is in the plugin.path of that worker, before anything else.",
)
PLUGIN_MISSING = finding(
    "plugin_missing",
    "A worker does not have the class of a connector: what it gets of the connector fails there.",
    "Put the plugin into plugin.path of that worker, restart it, then `eosctl connectors restart --failed C`; or "
    "correct connector.class.",
)
PLUGIN_DOES_NOT_FIT = finding(
    "plugin_does_not_fit",
    "A connector or task is FAILED: a class that its plugin needs is not on its worker.",
    "Install the plugin's release for the Kafka version of the worker, whole.",
)
CONFIG_FILE_MISSING = finding(
    "config_file_missing",
    "A value of a config refers to a file that its worker can't read.",
    "Put the file on every worker of the group; then restart what is FAILED.",
)
BROKERS_TOO_OLD = finding(
    "brokers_too_old", "A task is FAILED: the brokers are too old for exactly-once.", "Upgrade them."
)
TASK_NOT_AUTHORIZED = finding(
    "task_not_authorized", "A task is FAILED for want of a right.", "`eosctl acls apply` grants what is missing."
)
CONFIG_TOPIC_NOT_CLAIMED = finding(
    "config_topic_not_claimed",
    "The leader of a Connect group lost its transactional id, or could not take it, and can't write to the config "
    "topic.",
    "Send a PUT of a configuration again; where it fails for longer, any rebalance of the group heals it.",
)
CONFIG_TOPIC_PARTITIONED = finding(
    "config_topic_partitioned",
    "A worker does not start: the config topic has more than one partition.",
    "`eosctl doctor` has the commands that copy it into a topic of one partition.",
)
INTERNAL_TOPIC_MISSING = finding(
    "internal_topic_missing",
    "A worker does not start, or a task is FAILED: a topic of Connect's is missing, and workers may not create it.",
    "Create the topic, compacted; of a connector's own offsets topic see topic_missing first.",
)
SIGNATURE_REFUSED = finding(
    "signature_refused",
    "A worker refuses a request of another one of its group: it was signed with another session key.",
    "Restart the failed tasks once the group has one leader; see the workers' inter.worker settings if it comes back.",
)
CONFIG_TOPIC_NOT_WRITTEN = finding(
    "config_topic_not_written",
    "A write to Connect's config topic failed; it may have happened all the same.",
    "Read the configuration back, and send the request again.",
)
REBALANCE_EXPECTED = finding(
    "rebalance_expected",
    "A Connect worker answers 409: its group is about to rebalance, or has no leader yet.",
    "Wait a few seconds, and send the request again; where it stays so, `eosctl workers list`.",
)
OFFSETS_READ_TIMED_OUT = finding(
    "offsets_read_timed_out",
    "Connect did not get to the end of an offsets topic in time: often an open transaction stands before it.",
    "`eosctl txn hanging --all`, and `eosctl doctor`, which names who holds it open.",
)
CONVERTER_FAILED = finding(
    "converter_failed",
    "A converter or a transformation could not take a record: its data or its settings, and no transaction.",
    "Correct the converter's settings, or the record; errors.tolerance and a dead letter queue pass over it.",
)
TASK_CONFIGS_FORGOTTEN = finding(
    "task_configs_forgotten",
    "Compaction of the config topic left task configurations without those of their connector, or without their "
    "commit (KAFKA-17719): the connector has no tasks.",
    "`eosctl doctor` names the connectors; PUT the connector's configuration again with any change.",
)
PRODUCER_FENCED = finding(
    "producer_fenced",
    "A producer is refused: its transactional id has a newer epoch, or its transaction was ended for it.",
    "Make a new producer; find out who else has the id: `eosctl txn describe ID`.",
)
INVALID_PRODUCER_EPOCH = finding(
    "invalid_producer_epoch",
    "A partition refuses a record: the epoch of its producer is older than the newest that it knows.",
    "Abort the transaction, which shows whether the producer may go on; else make a new one.",
)
TRANSACTION_TIMED_OUT = finding(
    "transaction_timed_out",
    "The coordinator ended a transaction that was open for longer than its timeout.",
    "Raise transaction.timeout.ms, or commit more often; then start the application again.",
)
INVALID_PID_MAPPING = finding(
    "invalid_pid_mapping",
    "The coordinator has forgotten the transactional id: nothing used it for transactional.id.expiration.ms.",
    "Make a new producer; raise transactional.id.expiration.ms, or commit something before it is over.",
)
INVALID_TXN_STATE = finding(
    "invalid_txn_state",
    "A transaction was to be ended, or added to, in a state that does not allow it.",
    "Make a new producer; see the state: `eosctl txn describe ID`.",
)
TRANSACTION_ABORTABLE = finding(
    "transaction_abortable",
    "The broker refuses what was to be added to a transaction, which can be aborted; the producer may go on (KIP-890).",
    "Abort the transaction, and do it again with the same producer.",
)
CONCURRENT_TRANSACTIONS = finding(
    "concurrent_transactions",
    "The former transaction of the id is still being ended; whoever asks has to ask again.",
    "Wait; where it lasts for longer than a minute, `eosctl txn describe ID` and the brokers of its partitions.",
)
COORDINATOR_NOT_AVAILABLE = finding(
    "coordinator_not_available",
    "There is no transaction coordinator for the id: its partition of __transaction_state has no leader, or can't be "
    "created or written.",
    "`eosctl txn coordinator ID`; see to the brokers and to the replication of __transaction_state.",
)
COORDINATOR_LOADING = finding(
    "coordinator_loading",
    "The transaction coordinator is reading its part of __transaction_state, after it moved or started.",
    "Wait; where it lasts for minutes, __transaction_state is large or is not compacted.",
)
NOT_COORDINATOR = finding(
    "not_coordinator",
    "The broker that was asked is not the coordinator of the id any more; clients look for the new one themselves.",
    "None, unless it lasts: `eosctl txn coordinator ID`.",
)
OUT_OF_ORDER_SEQUENCE = finding(
    "out_of_order_sequence",
    "A partition misses a batch of the producer: an earlier one was lost or given up, or the leader lost data.",
    "Abort the transaction, or make a new producer; then look for what was lost.",
)
UNKNOWN_PRODUCER_ID = finding(
    "unknown_producer_id",
    "A partition has forgotten the producer: its records were deleted by retention (brokers before 2.4).",
    "Upgrade brokers and clients to 2.5 or newer; until then raise the retention of the topic.",
)
DUPLICATE_SEQUENCE = finding(
    "duplicate_sequence",
    "A batch arrived a second time, after others: the first one was written, and clients take it for success.",
    "None, where only the log of a broker has it.",
)
COORDINATOR_FENCED = finding(
    "coordinator_fenced",
    "A marker came from a former transaction coordinator, and the partition refused it: a newer one took over.",
    "None: the new coordinator writes the marker. For `eosctl txn abort`, plan again.",
)
INIT_TIMED_OUT = finding(
    "init_timed_out",
    "A producer got no producer id in time: initTransactions reached no coordinator, or it could not answer.",
    "`eosctl txn coordinator ID`, then `eosctl txn describe ID`.",
)
END_TIMED_OUT = finding(
    "end_timed_out",
    "The commit or abort of a transaction had no answer in time: it may have happened or not.",
    "Call the same method again with the same producer; else make a new one, and read back what was committed.",
)
ADD_OFFSETS_TIMED_OUT = finding(
    "add_offsets_timed_out",
    "Consumer offsets could not be added to a transaction in time.",
    "Abort the transaction, and process the records again.",
)
ID_NOT_AUTHORIZED = finding(
    "id_not_authorized",
    "The principal may not use the transactional id.",
    "Grant WRITE and DESCRIBE on the id, or on its prefix.",
)
CLUSTER_NOT_AUTHORIZED = finding(
    "cluster_not_authorized",
    "The principal has no right on the cluster that it needs: for idempotent producers IDEMPOTENT_WRITE, on brokers "
    "before 2.8.",
    "Grant it: kafka-acls.sh --add --cluster --operation IdempotentWrite; on newer brokers WRITE on any topic will do.",
)
TOPIC_NOT_AUTHORIZED = finding(
    "topic_not_authorized", "The principal lacks a right on a topic or a group.", "Grant it: `eosctl acls check`."
)
UNSTABLE_OFFSETS = finding(
    "unstable_offsets",
    "Committed offsets of a group are in an open transaction: whoever starts waits until it ends.",
    "Find the transaction: `eosctl txn list --state Ongoing`.",
)
TRANSACTION_LOG_NOT_REPLICATED = finding(
    "transaction_log_not_replicated",
    "__transaction_state has fewer replicas in sync than its min.insync.replicas: no transaction can begin or end.",
    "Bring the brokers back; on clusters of fewer than three, set the two transaction.state.log settings.",
)
RECORDS_EXPIRED = finding(
    "records_expired",
    "A producer gave up records that no broker confirmed within delivery.timeout.ms.",
    "See to the partition's leader and its replicas; abort the transaction, and send again.",
)
PRODUCER_IN_ERROR = finding(
    "producer_in_error",
    "A producer refuses every call because an earlier one failed: that one says why.",
    "Read the cause below it, or the first error before it.",
)
STREAMS_TASK_MIGRATED = finding(
    "streams_task_migrated",
    "A Kafka Streams thread was fenced: its tasks belong to another one now, or its transaction was ended.",
    "None, where it happens at a rebalance; else raise transaction.timeout.ms, or poll more often.",
)
STREAMS_INIT_TIMED_OUT = finding(
    "streams_init_timed_out",
    "Kafka Streams got no producer id in time, and tries again.",
    "`eosctl txn coordinator ID`; see to the brokers.",
)
FLINK_COMMIT_FENCED = finding(
    "flink_commit_fenced",
    "Flink could not commit a transaction: its id is fenced. The records of that checkpoint may be lost.",
    "Find out who fenced it, before records are sent again: `eosctl txn describe ID`.",
)
FLINK_COMMIT_INVALID = finding(
    "flink_commit_invalid",
    "Flink could not commit a transaction: it was aborted, often by its timeout. The records of that checkpoint are "
    "lost.",
    "Raise transaction.timeout.ms above the longest pause between checkpoint and recovery.",
)
FLINK_PREFIX_SHARED = finding(
    "flink_prefix_shared",
    "Two Flink sinks have one transactionalIdPrefix, and fence each other.",
    "Give each sink a prefix of its own: `eosctl txn applications` shows who shares one.",
)
LOGIN_FAILED = finding(
    "login_failed", "Brokers refuse the login of a client.", "Correct its sasl.jaas.config, or its certificates."
)
INVALID_TIMESTAMP = finding(
    "invalid_timestamp",
    "Brokers refuse the time of a record: a clock is wrong, or the record has such a time.",
    "Compare the clocks of the client's machine and of the brokers.",
)
PRODUCER_CLOSED = finding(
    "producer_closed",
    "A producer was closed while it had something to send: the task or application was told to end.",
    "None, where a task was stopped or has moved.",
)
DISK_FAILED = finding(
    "disk_failed",
    "A disk can't be written, most often because it is full: a broker's, or that of the machine of a task.",
    "See whose it is and give it room: of a broker the file systems of log.dirs, and start it then.",
)
BROKERS_NOT_REACHED = finding(
    "brokers_not_reached",
    "A client does not reach brokers, or loses its connections to them.",
    "See whether its machine reaches each broker's advertised address.",
)
INTERNAL_TOPIC_NOT_COMPACTED = finding(
    "internal_topic_not_compacted",
    "A worker does not start: a topic of Connect's is not compacted.",
    "Set cleanup.policy=compact on the topic; see what retention has left of it: `eosctl offsets log`.",
)
TOPIC_NOT_CREATED = finding(
    "topic_not_created",
    "A worker or a task could not create a topic, or see whether it is there.",
    "See the cause: the replication factor, a policy of the brokers, a right, or brokers that do not answer.",
)
WORKER_ENDED = finding(
    "worker_ended", "A worker ended, or did not start.", "Read the cause below it in the log, and start it again."
)
GROUP_PROTOCOL_REFUSED = finding(
    "group_protocol_refused",
    "A group refuses a member that speaks another protocol: two applications share one group.id.",
    "Give each a group.id of its own; workers of one group need one connect.protocol.",
)
PLUGIN_PATH_UNREADABLE = finding(
    "plugin_path_unreadable",
    "A worker can't read an element of its plugin.path, and starts without it.",
    "Correct plugin.path, or the folder, and restart the worker.",
)
REST_NOT_STARTED = finding(
    "rest_not_started", "A worker can't open its REST interface.", "Free the port, or correct listeners."
)
WORKER_LEFT_GROUP = finding(
    "worker_left_group",
    "A worker left its group: its main thread was busy for longer than rebalance.timeout.ms.",
    "See the last action that its log names.",
)
CONFIG_LOG_BEHIND = finding(
    "config_log_behind",
    "A worker has not read the config topic to where the group's assignment was made.",
    "None where it comes once; else compare config.storage.topic of the workers.",
)
CONNECTOR_NOT_STOPPED = finding(
    "connector_not_stopped",
    "Offsets were to be changed of a connector that is not STOPPED (400).",
    "`eosctl connectors stop NAME`, then send the request again.",
)
OFFSETS_REQUEST_REFUSED = finding(
    "offsets_request_refused",
    "A request for a change of offsets does not have the shape that Connect takes (400).",
    "Take the shape from GET /connectors/NAME/offsets.",
)
REST_NOT_FOUND = finding(
    "rest_not_found",
    "Connect's REST interface knows no such connector, task or path (404).",
    "Compare the name with GET /connectors, and the path with the worker's version.",
)
CONNECTOR_EXISTS = finding(
    "connector_exists", "There is a connector of that name (409).", "Send PUT /connectors/NAME/config instead of POST."
)
EXACTLY_ONCE_NOT_OFFERED = finding(
    "exactly_once_not_offered",
    "exactly.once.support=required is refused: the workers are not enabled, or the connector does not offer it (400).",
    "`eosctl upgrade plan --to enabled`, or set exactly.once.support=requested.",
)
CONFIG_REFUSED = finding(
    "config_refused",
    "A configuration is refused: a setting is missing, or has a value that is not taken (400).",
    "Correct the settings that the message names.",
)
SOURCE_POSITION_GONE = finding(
    "source_position_gone",
    "The database has no longer what comes after a connector's source offset.",
    "A new snapshot reads what is missing; an offset set forward skips it.",
)
REPLICATION_SLOT_TAKEN = finding(
    "replication_slot_taken",
    "The replication slot of a connector is in use.",
    "Give each connector a slot.name of its own; a former run ends after wal_sender_timeout.",
)
SCHEMA_HISTORY_MISSING = finding(
    "schema_history_missing",
    "Debezium's schema history is missing or not whole.",
    "Have it recreated (snapshot.mode=recovery), where no table's structure was changed since the offset.",
)
SOURCE_NOT_REACHED = finding(
    "source_not_reached",
    "A connector does not reach its database.",
    "See to the database, and restart what is FAILED.",
)
SCHEMA_REGISTRY_REFUSED = finding(
    "schema_registry_refused",
    "The schema registry refused a request of a converter.",
    "See its error code: 409 compatibility, 404 no such schema, 401 login.",
)
RECORD_DROPPED = finding(
    "record_dropped",
    "A converter or transformation could not do its work for the moment: workers before 4.0 drop the record, and "
    "commit its offset (KAFKA-18073).",
    "Set errors.retry.timeout=-1, or upgrade the workers to 4.0; then read the records of that time again.",
)
RECORD_FAILED = finding(
    "record_failed",
    "A converter or transformation failed at a record: with errors.tolerance=all it was passed over.",
    "See the cause below it, and errors.tolerance of the connector.",
)
OFFSETS_NOT_COMMITTED = finding(
    "offsets_not_committed",
    "A source task without exactly-once could not commit its offsets, and goes on.",
    "See to the brokers; after a restart the records are written again.",
)
OFFSET_KEY_IGNORED = finding(
    "offset_key_ignored",
    "The offsets topic has a record whose key is not [connector, partition], which workers pass over.",
    "`eosctl offsets lint` shows it.",
)
TASK_STOPPED_LATE = finding(
    "task_stopped_late",
    "A task did not end within task.shutdown.graceful.timeout.ms of its worker's request.",
    "None where the next run of the task is well; else see what the connector waits for.",
)
REQUEST_NOT_SUPPORTED = finding(
    "request_not_supported",
    "Brokers do not know a request, or its version: they are older, or not Apache's.",
    "See which request; without the transactional ones, exactly-once can't run on these brokers.",
)
REBOOTSTRAP_REQUIRED = finding(
    "rebootstrap_required",
    "A client came to another broker or cluster than it believes.",
    "See where each broker's advertised address leads: forwarded ports, load balancers.",
)
BROKER_FAILED = finding(
    "broker_failed", "A broker failed while it carried out a request.", "Read the broker's log at that time."
)
MARKERS_SKIPPED = finding(
    "markers_skipped",
    "A coordinator ended a transaction without its markers on some partitions: unless those were deleted, it hangs.",
    "`eosctl txn hanging --all`, then `eosctl txn complete --as-decided`.",
)
OUT_OF_MEMORY = finding(
    "out_of_memory", "A Java machine has no memory left.", "Restart the process, and give it more heap."
)
NOT_ENOUGH_REPLICAS = finding(
    "not_enough_replicas",
    "A partition has fewer replicas in sync than min.insync.replicas, and takes no records.",
    "Bring the brokers back.",
)
TOPIC_NOT_IN_METADATA = finding(
    "topic_not_in_metadata",
    "Brokers do not have a topic or partition, or did not say so in time.",
    "Create the topic, or grant DESCRIBE on it.",
)
CONSUMER_LEFT_GROUP = finding(
    "consumer_left_group",
    "A consumer is no member of its group any more, and may not commit.",
    "Lower max.poll.records, or raise max.poll.interval.ms.",
)
GROUP_COORDINATOR_AWAY = finding(
    "group_coordinator_away",
    "The coordinator of a consumer group is loading its offsets, has moved, or is away.",
    "None where it passes; else see to the brokers that have the partition of __consumer_offsets.",
)
INSTANCE_ID_FENCED = finding(
    "instance_id_fenced",
    "Two members of a group have one group.instance.id; no producer was fenced.",
    "Give each instance one of its own.",
)
OFFSET_OUT_OF_RANGE = finding(
    "offset_out_of_range",
    "A topic does not have the offset that a consumer wants to read.",
    "Retention deleted it, or the topic was recreated.",
)
STRIMZI_ANNOTATION_UNKNOWN = finding(
    "strimzi_annotation_unknown",
    "Strimzi's operator does not know the value of an annotation.",
    "Correct or remove the annotation.",
)
