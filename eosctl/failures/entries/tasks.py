"""Failures of Kafka Connect's tasks and workers (3.3 to 4.3), except those of fencing rounds.

Workers' failures are answers and logs about their group, its config topic and its offsets.
"""

from __future__ import annotations

from eosctl.failures import codes
from eosctl.failures.failure import RESTART, Failure, Family, VersionNote, sign

_TASK = "connect-runtime: ExactlyOnceWorkerSourceTask, 3.3 to 4.3"

FENCED = Failure(
    code=codes.TASK_FENCED, family=Family.CONNECT,
    name="ProducerFencedException of a Connect task",
    signs=(sign("ProducerFencedException"),),
    means="another producer took its transactional id: a newer run of the task, a group with the same ids, or eosctl",
    causes=(
        "The task was started somewhere else after a rebalance, and this one is the zombie: nothing is lost.",
        "Two Connect groups, or two connectors, whose names give the same GROUP-CONNECTOR-TASK.",
        "Somebody fenced it: `eosctl fence`, Admin.fenceProducers, or a round of Connect's leader.",
        "Its transaction was open for longer than its timeout (brokers without transaction version 2).",
    ),
    is_not=(
        "Not always a second producer: up to 3.9 a commit after the timeout has the same words, \"There is a newer "
        "producer\"; the broker's log then says \"Completed rollback of ongoing transaction\".",
        "Not a failure that Connect mends: no worker restarts the task.",
    ),
    fix=RESTART + "; if it comes back, see `eosctl connectors check` for id_collision",
    commands=("eosctl txn describe {id}", "eosctl history"),
    said_by=("kafka-clients: Errors.PRODUCER_FENCED (90), 2.7 to 4.3; thrown through " + _TASK,),
)  # fmt: skip
FENCED_OR_EXPIRED = Failure(
    code=codes.TASK_FENCED_OR_EXPIRED, family=Family.CONNECT,
    name="The task was unable to finish writing records before its producer transaction expired",
    signs=(sign("InvalidProducerEpochException"), sign("before its producer transaction expired")),
    means="its transaction took longer than the timeout, or another producer took its id (Connect says the same of "
    "both)",
    causes=(
        "Another producer took its id: a newer run of the task, a group with the same ids, or eosctl. Certain where a "
        "task has it again sooner than its transaction timeout (60 s) lasts.",
        "The transaction was open for longer than its timeout: many records between two commits, or slow brokers.",
    ),
    is_not=("Not proof that the transaction expired, whatever the message says: a fenced task has the same one.",),
    fix=RESTART + "; for the first raise producer.override.transaction.timeout.ms or use transaction.boundary=poll",
    commands=("eosctl metrics", "eosctl txn describe {id}"),
    said_by=(_TASK + " (wrapTransactionTimeoutError in 4.3.1)",),
    aliases=("before its producer transaction expired",),
)  # fmt: skip
PRODUCER_REFUSES = Failure(
    code=codes.PRODUCER_REFUSES, family=Family.CONNECT,
    name="Must set acks to all in order to use the idempotent producer",
    signs=(
        sign("to use the idempotent producer"), sign("To use the idempotent producer"),
        sign("when using the idempotent producer"), sign("without also enabling idempotence"),
    ),
    means="its config overrides a setting that an idempotent producer needs otherwise",
    causes=("producer.override.acks, retries or max.in.flight.requests.per.connection, or the worker's producer.*.",),
    fix="`eosctl connectors check --connector {c}` names the override; without it the task starts",
    said_by=("kafka-clients: ProducerConfig.postProcessParsedConfig, 3.0 to 4.3",),
)  # fmt: skip
BROKERS_NOT_RESOLVED = Failure(
    code=codes.BROKERS_NOT_RESOLVED, family=Family.CONNECT,
    name="No resolvable bootstrap urls",
    signs=(sign("No resolvable bootstrap urls"),),
    means="its worker can't resolve the host names of the brokers that its config, or its worker's, gives its clients",
    causes=("A wrong name in bootstrap.servers, or a DNS that does not have it (yet).",),
    fix="Correct the bootstrap.servers of producer.override, consumer.override and admin.override, or the worker's "
    "DNS; then " + RESTART,
    said_by=("kafka-clients: ClientUtils.parseAndValidateAddresses, 0.11 to 4.3",),
    of_worker=True,
)  # fmt: skip
OWN_OFFSETS_TOPIC = Failure(
    code=codes.OWN_OFFSETS_TOPIC, family=Family.CONNECT,
    name="Source tasks may not produce to their own offsets topics",
    signs=(sign("may not produce to their own offsets topics"),),
    means="the task writes records into the topic of its own offsets",
    causes=("The connector's output topic is its offsets.storage.topic, or the worker's offset.storage.topic.",),
    fix="Give it another topic, or another offsets.storage.topic",
    said_by=(_TASK,),
)  # fmt: skip
OFFSETS_NOT_WRITTEN = Failure(
    code=codes.OFFSETS_NOT_WRITTEN, family=Family.CONNECT,
    name="Failed to flush offsets and/or records for task",
    signs=(
        sign(
            "Failed to flush offsets", "OffsetStorageWriter is already flushing",
            means="its offsets could not be written; with an offsets topic of its own, Kafka 3.8 to 4.3 fail at each "
            "null offset",
            fix="See whether the connector has an offsets.storage.topic of its own, and gives records without an "
            "offset, or deletes offsets: `eosctl connectors check --connector {c}`. If so, it needs the global topic: "
            "`eosctl offsets switch --connector {c} --to global` copies its offsets there first",
        ),
        sign("Failed to flush offsets"),
    ),
    means="its offsets, or the records before them, could not be written",
    causes=(
        "What the cause below it says: a record that is too large, a lacking right, a wrong clock, a fenced producer.",
        "A null offset, and an offsets topic of the connector's own (Kafka 3.8 to 4.3): 4.3.1 says below it that the "
        "OffsetStorageWriter is already flushing.",
    ),
    is_not=("Not a matter of the offsets topic, unless the cause below it says so.",),
    fix="See the cause below it in the trace, which is what is to be mended; then " + RESTART,
    said_by=(_TASK + " (commitTransaction)",),
    is_wrapper=True,
)  # fmt: skip
TYPE_UNKNOWN = Failure(
    code=codes.CONNECTOR_TYPE_UNKNOWN, family=Family.CONNECT,
    name="Failed to start task since it is not a recognizable type (source or sink)",
    signs=(sign("not a recognizable type"),),
    means="its worker can't tell whether the connector is a source or a sink: most often it lacks the plugin",
    causes=(
        "The class of connector.class is not in the plugin.path of this worker: the worker's log says \"Failed to find "
        "any class that implements Connector\" just before. Workers that have it run the connector's other tasks.",
        "The plugin is there, and its class can't be loaded: see the worker's log.",
        "The worker has no config of the connector: it came from an aborted config record, which workers that are not "
        "enabled read, and enabled ones don't. Only the config topic shows that.",
    ),
    is_not=("Not a reason to delete the connector: its config is in use on the other workers.",),
    fix="Look at `GET /connector-plugins` of the task's worker first. Where the class is not listed, install the "
    "plugin there and restart that worker; then " + RESTART,
    commands=("eosctl workers list", "eosctl doctor", "eosctl task-counts replay --topic"),
    said_by=("connect-runtime: DistributedHerder.startTask, 3.4 to 4.3",),
    aliases=("not a recognizable type",),
    of_worker=True,
)  # fmt: skip
PLUGIN_MISSING = Failure(
    code=codes.PLUGIN_MISSING, family=Family.CONNECT,
    name="Failed to find any class that implements Connector",
    signs=(sign("Failed to find any class that implements"),),
    means="its worker does not have the class that the config names",
    causes=(
        "The plugin is not in the plugin.path of this worker: it was rolled out on some workers only.",
        "connector.class is mistyped; the message lists the classes that there are.",
        "The worker finds plugins by their manifests alone (plugin.discovery=service_load), and this one has none.",
    ),
    is_not=("Not a lost config: connector and offsets are where they were.",),
    fix="Install the plugin in the plugin.path of every worker and restart those that lacked it, or correct "
    "connector.class; then " + RESTART,
    commands=("eosctl workers list",),
    said_by=("connect-runtime: Plugins.connectorClass, 0.11 to 4.4",),
    aliases=("plugin.path", "Failed to find any class"),
    explains=(codes.CONNECTOR_TYPE_UNKNOWN,),
    of_worker=True,
)  # fmt: skip
PLUGIN_DOES_NOT_FIT = Failure(
    code=codes.PLUGIN_DOES_NOT_FIT, family=Family.CONNECT,
    name="NoClassDefFoundError",
    signs=(
        sign(
            "NoClassDefFoundError", "org/apache/kafka/common/utils/",
            means="its plugin was built for Kafka before 4.4, which has moved classes that it needs",
            fix="Install a release of the plugin that was built for Kafka 4.4 or newer, or run it on workers before "
            "4.4; then " + RESTART,
        ),
        sign("NoClassDefFoundError"), sign("NoSuchMethodError"), sign("NoSuchFieldError"),
        sign("AbstractMethodError"), sign("IncompatibleClassChangeError"),
    ),
    means="a class or method that its plugin needs is not on its worker",
    causes=(
        "The plugin was built for another release of Kafka: 4.4 has moved AppInfoParser, Sanitizer, Exit, ThreadUtils "
        "and others from org.apache.kafka.common.utils to org.apache.kafka.common.utils.internals (KAFKA-20297).",
        "The plugin's folder lacks one of its jars, a JDBC driver for example, or has one of another release.",
        "Its jars are in the class path of the worker, and not in a folder of their own in plugin.path.",
    ),
    is_not=("Not a failure that a restart mends.",),
    fix="Install the plugin's release for the Kafka version of the worker, with all of its jars, on every worker; then "
    + RESTART,
    commands=("eosctl workers list",),
    said_by=("java: the virtual machine, for a plugin that was built before Kafka 4.4",),
    aliases=("NoClassDefFound", "AppInfoParser", "NoSuchMethodError", "KAFKA-20297"),
    of_worker=True,
)  # fmt: skip
CONFIG_FILE_MISSING = Failure(
    code=codes.CONFIG_FILE_MISSING, family=Family.CONNECT,
    name="Could not read properties from file",
    signs=(sign("Could not read properties from file"), sign("Could not read file", "config.provider")),
    means="a value of its config refers to a file that its worker can't read",
    causes=(
        "The file of ${file:…} is not on this worker, while others have it.",
        "The user of the worker's process may not read it, or it is outside allowed.paths.",
    ),
    is_not=("Not a fault of the connector's config, where its other tasks run.",),
    fix="Put the file on every worker of the group, readable for the worker's user; then " + RESTART,
    commands=("eosctl workers list",),
    said_by=("kafka-clients: FileConfigProvider.get, 2.0 to 4.4",),
    aliases=("FileConfigProvider",),
    of_worker=True,
)  # fmt: skip
BROKERS_TOO_OLD = Failure(
    code=codes.BROKERS_TOO_OLD, family=Family.CONNECT,
    name="Brokers that are too old for exactly-once sources",
    signs=(sign("allows admin clients to read consumer offsets"),),
    means="brokers are too old for exactly-once sources",
    causes=("Brokers before 2.5 don't report the end of a topic to admin clients.",),
    fix="Upgrade the brokers to 2.5 or newer",
    said_by=("connect-runtime: KafkaOffsetBackingStore and KafkaConfigBackingStore, 3.3 to 4.3",),
)  # fmt: skip
NOT_AUTHORIZED = Failure(
    code=codes.TASK_NOT_AUTHORIZED, family=Family.CONNECT,
    name="AuthorizationException of a Connect task",
    signs=(
        sign("TopicAuthorizationException"), sign("GroupAuthorizationException"), sign("ClusterAuthorizationException"),
        sign("DelegationTokenAuthorizationException"), sign("kafka.common.errors.AuthorizationException"),
    ),
    means="the connector's principal lacks a right",
    causes=(
        "WRITE on an output topic or on its offsets topic; CREATE where topics are created; DESCRIBE or READ on it.",),
    is_not=("Not a failed login: that is a SaslAuthenticationException or an SslAuthenticationException.",),
    fix="`eosctl acls apply --connector {c}` shows what is missing, and grants it; then " + RESTART,
    commands=("eosctl acls check --connector {c}",),
    said_by=("kafka-clients: the subclasses of AuthorizationException, 0.11 to 4.3",),
    aliases=("TopicAuthorizationException", "GroupAuthorizationException"),
)  # fmt: skip
CONVERTER = Failure(
    code=codes.CONVERTER_FAILED, family=Family.CONNECT,
    name="Tolerance exceeded in error handler",
    signs=(
        sign("Tolerance exceeded in error handler"),
        sign("Kafka Connect data failed due to serialization error"),
        sign("failed due to serialization error of topic"),
        sign("Error serializing Avro message"), sign("Error deserializing Avro message"),
        sign("JsonConverter with schemas.enable requires"),
    ),
    means="a converter or a transformation could not take a record, and errors.tolerance does not pass over it",
    causes=(
        "The data has another format than the converter: JSON without a schema, a text where JSON is expected.",
        "The schema registry refused the schema, or was away.",
        "A transformation met a record without the field that it wants.",
    ),
    is_not=(
        "Not a transaction that failed: the task aborted its open one because of this, and the abort is the "
        "consequence.",
        "Not a matter of fencing, epochs or brokers.",
    ),
    fix="Correct the key.converter, value.converter or transforms settings, or the record; then " + RESTART,
    said_by=(
        "connect-runtime: RetryWithToleranceOperator.execAndHandleError, 2.0 to 4.3",
        "connect-json: JsonConverter.toConnectData, 0.11 to 4.3",
    ),
    aliases=("DataException", "converter failure", "SerializationException"),
    explains=(codes.OFFSETS_NOT_WRITTEN, codes.PRODUCER_IN_ERROR),
)  # fmt: skip
FORGOTTEN = Failure(
    code=codes.TASK_CONFIGS_FORGOTTEN, family=Family.CONNECT,
    name="KAFKA-17719: task configurations that compaction orphaned",
    signs=(
        sign("We have an incomplete set of task configs for connector"),
        sign("it appears that the connector was deleted previously and that log compaction has since removed"),
    ),
    means="compaction of the config topic left its task configurations without its configuration or commit",
    causes=(
        "A PUT of an unchanged configuration rewrites only the connector's record: after compaction the commit is "
        "older "
        "than it, and a worker that starts drops the tasks (3.8 and newer).",
        "The connector was deleted: then the line is harmless.",
    ),
    is_not=("Not a failure of tasks: none is started, and REST shows a connector without tasks.",),
    fix="See whether {name} is still there (`GET /connectors`), without tasks: then PUT its configuration again with "
    "any change. A connector that was deleted needs nothing: a PUT would make it anew",
    commands=("eosctl doctor", "eosctl task-counts replay --topic"),
    versions=(
        VersionNote("before 3.8", "only an incomplete set of task configurations is passed over (KAFKA-16838)"),
        VersionNote("4.3.1", "both lines are logged at DEBUG, and so in few logs (seen)"),
    ),
    said_by=(
        "connect-runtime: KafkaConfigBackingStore.processTasksCommitRecord, 3.3 to 4.3; the second words from 3.8",),
    aliases=("KAFKA-17719", "tasks_forgotten"),
)  # fmt: skip

TASKS = (
    FENCED, FENCED_OR_EXPIRED, PRODUCER_REFUSES, BROKERS_NOT_RESOLVED, OWN_OFFSETS_TOPIC, OFFSETS_NOT_WRITTEN,
    PLUGIN_MISSING, PLUGIN_DOES_NOT_FIT, CONFIG_FILE_MISSING, TYPE_UNKNOWN, BROKERS_TOO_OLD, CONVERTER, FORGOTTEN,
    NOT_AUTHORIZED,
)  # fmt: skip


_STORE = "connect-runtime: KafkaConfigBackingStore, 3.3 to 4.3"

NOT_CLAIMED = Failure(
    code=codes.CONFIG_TOPIC_NOT_CLAIMED, family=Family.CONNECT,
    name="Cannot produce to config topic without claiming write privileges first",
    signs=(
        sign("Cannot produce to config topic without claiming write privileges first"),
        # what is below it is of the leader's producer, not of a task's
        sign("Failed to perform fencable send to config topic", "InvalidProducerEpochException"),
        sign("Failed to perform fencable send to config topic", "ProducerFencedException"),
        sign("Failed to perform fencable send to config topic"),
        sign("Failed to write to config topic as leader"),
        sign("Unable to claim write privileges for config topic"),
        sign("Failed to create and initialize fencable producer for config topic"),
        sign("This worker is not able to write to the config topic"),
    ),
    means="the leader lost its transactional id connect-cluster-GROUP, or could not take it, and can't write",
    causes=(
        "Somebody fenced the leader's id: another group of the same name, Admin.fenceProducers, or a tool.",
        "A restart was the first write after that (POST …/restart?includeTasks=true): then the leader stays stuck.",
        "The worker's principal lacks WRITE or DESCRIBE on the id, or no coordinator answers.",
    ),
    is_not=(
        "Not a task that was fenced: tasks go on, and only changes of configuration fail.",
        "Not a lost configuration: what failed was not written.",
    ),
    fix="Send a PUT of a configuration again: the leader takes its id back. Where it answers the same, restart one "
    "follower: the rebalance heals it",
    commands=("eosctl workers list", "eosctl txn describe {id}", "eosctl doctor"),
    versions=(
        VersionNote("3.5.1, 3.9.2 and 4.3.1", "\"This worker is not able to write to the config topic\" is a literal "
                    "of no class of Kafka's own jars; who says it is not known, and it means the same"),
    ),
    said_by=(_STORE + " (sendPrivileged: IllegalStateException; claimWritePrivileges)",
    "DistributedHerder, same versions"),
    aliases=("IllegalStateException after fencing", "This worker is not able to write to the config topic"),
)  # fmt: skip
NOT_WRITTEN = Failure(
    code=codes.CONFIG_TOPIC_NOT_WRITTEN, family=Family.CONNECT,
    name="Failed to write to config topic",
    signs=(
        sign("Failed to write to config topic; this may be due to a transient error"),
        sign("Error writing connector configuration to Kafka"), sign("Error writing target state to Kafka"),
        sign("Failed to write task configurations to Kafka"),
    ),
    means="a write to the config topic failed, or had no answer in time",
    causes=("The partition of the config topic has no leader, or too few replicas in sync.", "A right is missing."),
    is_not=("Not proof that nothing was written: the answer may be what was lost.",),
    fix="Read the configuration back with GET, and send the request again",
    commands=("eosctl doctor",),
    said_by=(_STORE, "DistributedHerder.writeToConfigTopicAsLeader, 3.3 to 4.3"),
)  # fmt: skip
REBALANCE = Failure(
    code=codes.REBALANCE_EXPECTED, family=Family.CONNECT,
    name="Request cannot be completed because a rebalance is expected (409)",
    signs=(
        sign("Request cannot be completed because a rebalance is expected"),
        sign("Cannot complete request because of a conflicting operation (e.g. worker rebalance)"),
        sign("Cannot complete request momentarily due to no known leader URL"),
    ),
    means="the group is about to rebalance, or has no leader yet",
    causes=("A worker came or went, or a configuration has just changed.", "Workers can't reach each other or Kafka."),
    is_not=("Not a failure of the connector, and nothing was written.",),
    fix="Send the request again after some seconds",
    commands=("eosctl workers list",),
    said_by=(
        "connect-runtime: DistributedHerder.checkRebalanceNeeded, 0.11 to 4.3",
        "connect-runtime: HerderRequestHandler.completeOrForwardRequest (before 3.4: ConnectorsResource)",
    ),
    aliases=("409 conflict", "RebalanceNeededException"),
)  # fmt: skip
READ_TIMED_OUT = Failure(
    code=codes.OFFSETS_READ_TIMED_OUT, family=Family.CONNECT,
    name="Timed out while trying to read to the end of the offsets topic",
    signs=(
        sign("Timed out while trying to read to the end of the offsets topic"),
        sign("Timed out while waiting to get end offsets for topic"),
        sign(
            "Request timed out. The last operation the worker completed was",
            means="a worker did not carry out a request within the 90 s of REST, and does not say what it waited for",
        ),
        sign(
            "Request timed out. The worker is currently",
            means="a worker did not carry out a request within the 90 s of REST: it waited for what the message names",
        ),
        sign("Failed to fetch offsets."), sign("Failed to read from the offsets topic"),
    ),
    means="Connect did not get to the end of an offsets topic in time",
    causes=(
        "A transaction is open on the offsets topic: readers of committed records wait before it. A killed task's "
        "lasts "
        "for its transaction.timeout.ms.",
        "A hanging transaction, which nothing ends by itself (KIP-664).",
        "The topic is large, or its brokers are slow.",
    ),
    is_not=("Not lost offsets: they are behind the open transaction.",),
    versions=(
        VersionNote("4.3.1", "a GET or PATCH of offsets behind an open transaction is answered after 90 s with "
                    "\"Request timed out. The last operation the worker completed was …\"; the words of the offsets "
                    "topic, which come later, are in no answer and no log (seen)"),
    ),
    fix="Find who holds the transaction open: one that its coordinator has open ends with its timeout, or by a fence "
    "of its id. One that hangs is ended on all of its partitions, with `txn complete --as-decided` where its "
    "coordinator has committed it, else with `txn abort`. Then send the request again",
    commands=("eosctl doctor", "eosctl txn list --state Ongoing", "eosctl txn hanging --all"),
    said_by=(
        "connect-runtime: Worker.modifySourceConnectorOffsets, 3.6 to 4.3",
        "connect-runtime: TopicAdmin.endOffsets, OffsetStorageReaderImpl.offsets, 3.3 to 4.3",
    ),
)  # fmt: skip

PARTITIONED = Failure(
    code=codes.CONFIG_TOPIC_PARTITIONED, family=Family.CONNECT,
    name="The config topic is required to have a single partition",
    signs=(sign("is required to have a single partition"),),
    means="its worker does not start, because the config topic has more than one partition",
    causes=(
        "Somebody made the topic, or brokers did with auto.create.topics.enable and their num.partitions.",
        "Somebody added partitions to it.",
        "config.storage.topic names another topic than that of the group.",
    ),
    is_not=("Not a reason to delete the topic: partition 0 has the configuration of every connector.",),
    fix="See whether config.storage.topic names the right topic. If so, stop the workers, copy partition 0 into a "
    "compacted topic of one partition, and name that one in every worker's config.storage.topic: doctor has the "
    "commands where -w FILE names a worker's file",
    commands=("eosctl doctor",),
    said_by=("connect-runtime: KafkaConfigBackingStore.start, 2.0 to 4.3",),
    aliases=("single partition",),
)  # fmt: skip
TOPIC_MISSING = Failure(
    code=codes.INTERNAL_TOPIC_MISSING, family=Family.CONNECT,
    name="Automatic creation of internal topics is disabled",
    signs=(sign("so automatic creation of internal topics is disabled"),),
    means="a topic of Connect's is missing, and its workers may not create it",
    causes=(
        "The workers have internal.topics.automatic.creation.enable=false, and nobody has made the topic: that of a "
        "new connector's offsets.storage.topic, most often.",
        "The name of the topic is mistyped.",
    ),
    is_not=("Not a missing right.",),
    fix="Create the topic that the message names, with cleanup.policy=compact, and a config topic with one partition. "
    "Of a connector's own offsets topic see first whether it has offsets in the global topic, which go with it: doctor "
    "and `eosctl connectors check --connector {c}` have the commands (topic_missing). Then " + RESTART,
    commands=("eosctl doctor",),
    said_by=("connect-runtime: KafkaTopicBasedBackingStore.topicInitializer, 4.4",),
    aliases=("internal.topics.automatic.creation.enable",),
)  # fmt: skip
SIGNATURE = Failure(
    code=codes.SIGNATURE_REFUSED, family=Family.CONNECT,
    name="Internal request contained invalid signature",
    signs=(sign("Internal request contained invalid signature"), sign("Internal request missing required signature")),
    means="the leader refused a request of this worker, which was signed with another session key than its own",
    causes=(
        "The group has a new leader, whose session key this worker had not read yet: workers that start at the same "
        "time.",
        "The leader's advertised URL leads to a worker of another group.",
        "inter.worker.signature.algorithm or inter.worker.verification.algorithms differ between workers.",
    ),
    is_not=("Not a stolen key, and not a matter of the brokers.",),
    fix="See that the group is stable and has one leader (`eosctl workers list`); then " + RESTART,
    commands=("eosctl workers list",),
    said_by=("connect-runtime: InternalClusterResource, DistributedHerder.verifyInternalRequestSignature, 2.4 to 4.3",),
    aliases=("invalid signature", "session key"),
)  # fmt: skip

WORKERS = (NOT_CLAIMED, NOT_WRITTEN, REBALANCE, READ_TIMED_OUT, PARTITIONED, TOPIC_MISSING, SIGNATURE)
