"""Failures of Kafka Connect's tasks (3.3 to 4.4), except those of fencing rounds and of the systems they read."""

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
    of_transactions=False,
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
        sign(
            "OffsetStorageWriter is already flushing",
            means="its offsets could not be written, because a former write of them had failed without an end",
            fix="See the first failure of the task before it in the log; with an offsets topic of its own, Kafka 3.8 "
            "to 4.3 fail so at each null offset: `eosctl connectors check --connector {c}`. Then " + RESTART,
        ),
        sign("Failed to flush offsets and/or records"), sign("Failed to flush offsets", without=("SourceTask{id=",)),
        sign("Failed to flush offsets", "ExactlyOnceWorkerSourceTask"),
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
    of_transactions=False,
)  # fmt: skip
_OTHER_ERRORS = ("NoClassDefFoundError", "org.apache.kafka.common.utils.")
PLUGIN_MISSING = Failure(
    code=codes.PLUGIN_MISSING, family=Family.CONNECT,
    name="Failed to find any class that implements Connector",
    signs=(
        sign("Failed to find any class that implements"),
        sign(
            "ConfigException", "could not be found", pattern=r"Class [\w$.]{1,256} could not be found",
            means="its worker does not have a class that a setting names: a converter, transformation or predicate",
            fix="Install what has the class in the plugin.path of every worker, in a folder with its connector, and "
            "restart them; or correct the setting; then " + RESTART,
        ),
        sign(
            "ClassNotFoundException", without=_OTHER_ERRORS,
            means="its worker does not have a class that the config or the plugin names",
        ),
    ),
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
    said_by=("connect-runtime: Plugins.connectorClass, 3.3 to 4.4",),
    aliases=("plugin.path", "Failed to find any class"),
    explains=(codes.CONNECTOR_TYPE_UNKNOWN,),
    of_worker=True,
    of_transactions=False,
)  # fmt: skip
_OF_KAFKA = r"org[./]apache[./]kafka[./]"
_MOVED = "its plugin was built for Kafka before 4.4, which has moved classes that it needs"
_SINCE_4_4 = (
    "Kafka 4.4 has moved AppInfoParser, Sanitizer, Exit, ThreadUtils and others from org.apache.kafka.common.utils to "
    "org.apache.kafka.common.utils.internals (KAFKA-20297), and the plugin still names the former.",
)
_NEWER = (
    "Install a release of the plugin that was built for Kafka 4.4 or newer, or run it on workers before 4.4; then "
    + RESTART
)
PLUGIN_DOES_NOT_FIT = Failure(
    code=codes.PLUGIN_DOES_NOT_FIT, family=Family.CONNECT,
    name="NoClassDefFoundError",
    signs=(
        sign(
            "ClassNotFoundException: org.apache.kafka.common.utils.", without=("utils.internals.",), means=_MOVED,
            fix=_NEWER, causes=_SINCE_4_4,
        ),
        sign("org/apache/kafka/common/utils/", without=("utils/internals/",), means=_MOVED, fix=_NEWER,
             causes=_SINCE_4_4),
        sign(
            "utils/internals/", "NoClassDefFoundError",
            means="its plugin was built for Kafka 4.4 or newer, and its worker is older",
            fix="Install a release of the plugin for the worker's Kafka, or upgrade the worker; then " + RESTART,
        ),
        sign("NoClassDefFoundError"), sign("NoSuchMethodError"), sign("NoSuchFieldError"),
        sign("AbstractMethodError"), sign("IncompatibleClassChangeError"), sign("IllegalAccessError"),
        sign("UnsupportedClassVersionError", "has been compiled by a more recent version of the Java Runtime",
             means="its plugin was built for a newer Java than its worker has",
             fix="Run the worker with the Java that the plugin wants; Kafka 4.0 and newer want Java 17; "
             "then " + RESTART),
        sign("NoSuchMethodError: ", pattern=_OF_KAFKA), sign("NoSuchFieldError: ", pattern=_OF_KAFKA),
        sign("NoClassDefFoundError: org/apache/kafka/"), sign("AbstractMethodError: ", pattern=_OF_KAFKA),
        sign("Failed to load plugin class or one of its dependencies"),
        sign(
            "Plugin class has a dependency which is missing or invalid",
            means="its worker left a plugin out when it looked for plugins, as a class that the plugin needs is not "
            "there",
        ),
    ),
    means="a class or method that its plugin needs is not on its worker",
    causes=(
        "The plugin was built for another release of Kafka.",
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
    of_transactions=False,
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
    of_transactions=False,
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
        sign(
            "TopicAuthorizationException", "__debezium-heartbeat",
            means="the connector's principal lacks a right on Debezium's heartbeat topic, into which the task writes "
            "in the same transactions",
            causes=(
                "heartbeat.interval.ms is set, and nobody granted WRITE on __debezium-heartbeat.PREFIX (topic.prefix "
                "of the connector), and CREATE where it is to be created.",
            ),
        ),
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
    of_transactions=False,
)  # fmt: skip
CONVERTER = Failure(
    code=codes.CONVERTER_FAILED, family=Family.CONNECT,
    name="Tolerance exceeded in error handler",
    signs=(
        sign("Tolerance exceeded in error handler"),
        sign("Kafka Connect data failed due to serialization error"),
        sign("failed due to serialization error of topic"), sign("Failed to serialize Avro data"),
        sign("data for topic", "to Avro:"), sign("Failed to deserialize data to Avro"), sign("Unknown magic byte"),
        sign("Converting", "failed due to serialization error"), sign("Error converting message", "in topic '"),
        sign("Failed to access Avro data from topic"),
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
    of_transactions=False,
)  # fmt: skip
STOPPED_LATE = Failure(
    code=codes.TASK_STOPPED_LATE, family=Family.CONNECT,
    name="Graceful stop of task … failed",
    signs=(
        sign("Graceful stop of task", "failed."), sign("Graceful stop of connector", "failed."),
    ),
    means="it did not end in the time that its worker gave it, and goes on beside its next run until it is fenced",
    causes=(
        "The connector waits for its source, or the producer for brokers, for longer than "
        "task.shutdown.graceful.timeout.ms (5 s).",
    ),
    is_not=("Not a failure of the next run: that one fences it, and its open transaction is aborted.",),
    fix="None where the next run is well. Else see what the connector waits for, or raise "
    "task.shutdown.graceful.timeout.ms of the workers",
    commands=("eosctl workers list",),
    said_by=("connect-runtime: Worker.awaitStopTask, 3.3 to 4.4",),
    aliases=("task.shutdown.graceful.timeout.ms",),
    explains=(codes.PRODUCER_CLOSED, codes.TASK_FENCED, codes.TASK_FENCED_OR_EXPIRED),
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
        "older than it, and a worker that starts drops the tasks (3.7.1 and newer).",
        "The connector was deleted: then the line is harmless.",
    ),
    is_not=("Not a failure of tasks: none is started, and REST shows a connector without tasks.",),
    fix="See whether {name} is still there (`GET /connectors`), without tasks: then PUT its configuration again with "
    "any change. A connector that was deleted needs nothing: a PUT would make it anew",
    commands=("eosctl doctor", "eosctl task-counts replay --topic"),
    versions=(
        VersionNote("before 3.7.1", "only an incomplete set of task configurations is passed over (KAFKA-16838)"),
        VersionNote("4.3.1", "both lines are logged at DEBUG, and so in few logs (seen)"),
    ),
    said_by=(
        "connect-runtime: KafkaConfigBackingStore.processTasksCommitRecord, 3.3 to 4.3; the second words from 3.7.1",),
    aliases=("KAFKA-17719", "tasks_forgotten"),
)  # fmt: skip

TASKS = (
    FENCED, FENCED_OR_EXPIRED, PRODUCER_REFUSES, BROKERS_NOT_RESOLVED, OWN_OFFSETS_TOPIC, OFFSETS_NOT_WRITTEN,
    PLUGIN_MISSING, PLUGIN_DOES_NOT_FIT, CONFIG_FILE_MISSING, TYPE_UNKNOWN, BROKERS_TOO_OLD, CONVERTER,
    STOPPED_LATE, FORGOTTEN,
    NOT_AUTHORIZED,
)  # fmt: skip
