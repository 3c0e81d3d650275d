"""What tasks of Kafka Connect die of, apart from fencing rounds (3.3 to 4.3)."""

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
        "The transaction was open for longer than its timeout: many records between two commits, or slow brokers.",
        "Another producer took its id: a newer run of the task, a group with the same ids, or eosctl.",
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
    signs=(sign("Failed to flush offsets"),),
    means="its offsets could not be written; with a dedicated topic, Kafka 3.8 to 4.3 fail at each null offset",
    causes=(
        "What the cause below it says: a record that is too large, a lacking right, a fenced producer.",
        "A null offset, and an offsets topic of the connector's own (Kafka 3.8 to 4.3): 4.3.1 says below it that the "
        "OffsetStorageWriter is already flushing.",
    ),
    fix="See the cause in the trace. For null offsets: `eosctl offsets switch --connector {c} --to global`",
    said_by=(_TASK + " (commitTransaction)",),
    is_wrapper=True,
)  # fmt: skip
GHOST = Failure(
    code=codes.CONNECTOR_IS_A_GHOST, family=Family.CONNECT,
    name="Failed to start task since it is not a recognizable type (source or sink)",
    signs=(sign("not a recognizable type"),),
    means="its connector came from an aborted config record, and vanished when the workers' mode changed",
    causes=(
        "Workers that are not enabled read records of aborted transactions of the config topic; enabled ones don't.",),
    fix="`eosctl task-counts replay --topic`; then create and DELETE the connector, which leaves tombstones",
    said_by=("connect-runtime: DistributedHerder.startTask, 3.4 to 4.3",),
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
    fix="PUT the configuration of {name} again with any change",
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
    FENCED, FENCED_OR_EXPIRED, PRODUCER_REFUSES, BROKERS_NOT_RESOLVED, OWN_OFFSETS_TOPIC, OFFSETS_NOT_WRITTEN, GHOST,
    BROKERS_TOO_OLD, CONVERTER, FORGOTTEN, NOT_AUTHORIZED,
)  # fmt: skip
