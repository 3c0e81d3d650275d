"""Failures of Kafka Connect's workers (3.3 to 4.4): their start, their group, their config topic and topics of "
"theirs."""

from __future__ import annotations

from eosctl.failures import codes
from eosctl.failures.failure import RESTART, Failure, Family, VersionNote, sign

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
    of_transactions=False,
)  # fmt: skip
TOPIC_MISSING = Failure(
    code=codes.INTERNAL_TOPIC_MISSING, family=Family.CONNECT,
    name="Automatic creation of internal topics is disabled",
    signs=(
        sign("so automatic creation of internal topics is disabled"),
        sign("is missing", "internal.topics.automatic.creation.enable", "is set to"),
    ),
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
    of_transactions=False,
)  # fmt: skip
NOT_COMPACTED = Failure(
    code=codes.INTERNAL_TOPIC_NOT_COMPACTED, family=Family.CONNECT,
    name="Topic … is required to have 'cleanup.policy=compact'",
    signs=(sign("supplied via the", "to guarantee consistency and durability of"),),
    means="its worker does not start, because a topic of Connect's is not compacted",
    causes=(
        "Somebody made the topic, or brokers did with auto.create.topics.enable: their default is "
        "cleanup.policy=delete.",
        "Somebody set another policy later: \"compact,delete\" is refused, too.",
        "On Event Hubs the topic fell back to delete when its partitions were changed.",
    ),
    is_not=("Not mended by another name in the worker's file: that topic would be empty.",),
    fix="`kafka-configs.sh --bootstrap-server B --alter --entity-type topics --entity-name {topic} --add-config "
    "cleanup.policy=compact` with the topic that the message names; then start the worker. Records that retention has "
    "deleted are gone: see what is left of them",
    commands=("eosctl doctor", "eosctl offsets log --connector {c}"),
    said_by=("connect-runtime: TopicAdmin.verifyTopicCleanupPolicyOnlyCompact, 3.3 to 4.4",),
    aliases=("cleanup.policy=compact", "KAFKA-9216"),
    of_transactions=False,
)  # fmt: skip
_TOO_FEW = "a topic is to have more replicas than there are brokers"
_CREATE = "create/find topic(s)"
NOT_CREATED = Failure(
    code=codes.TOPIC_NOT_CREATED, family=Family.CONNECT,
    name="Error while attempting to create/find topic(s)",
    signs=(
        sign(
            "InvalidReplicationFactorException",
            means=_TOO_FEW,
            causes=(
                "offset.storage.replication.factor, config.storage.replication.factor and "
                "status.storage.replication.factor are 3 by default, and the cluster is smaller.",
                "Brokers are down, fenced or in shutdown.",
                "topic.creation.default.replication.factor of a connector.",
            ),
            fix="Set the replication factor of the setting that makes the topic to the number of brokers, or to -1 for "
            "the brokers' default; or bring the missing brokers back",
        ),
        sign(
            "PolicyViolationException",
            means="the brokers' policy for new topics refuses a topic",
            causes=(
                "The cluster's create.topic.policy.class.name wants another replication factor, number of partitions "
                "or setting: Confluent Cloud wants a replication factor of 3.",
                "A managed service refuses what it does not have: Event Hubs limits partitions and retention, and in "
                "its basic tiers has no compaction.",
            ),
            fix="Set the replication factor, the partitions and the settings of the topic to what the service takes, "
            "or create it by its own means (compacted, if it is one of Connect's) before the worker starts",
        ),
        sign("The target replication factor of", "cannot be reached because", means=_TOO_FEW),
        sign("larger than available brokers", means=_TOO_FEW),
        sign("Timed out while checking for or creating topic(s)"),
        sign("Error while attempting to", _CREATE), sign("Error while attempting to describe topics"),
        sign("Unable to create topic(s)"), sign("Task failed to create new topic"),
        sign("Timeout expired while trying to create topic(s)"),
    ),
    means="a topic could not be created, or brokers did not say whether it exists",
    causes=(
        "The brokers are slow or have no controller: creating a topic has to end in time.",
        "The worker reaches its bootstrap servers, and not the brokers' advertised addresses.",
        "What the cause below it says: a right, a policy, a replication factor.",
    ),
    is_not=("Not a lost topic: nothing was deleted.",),
    fix="See the cause below it; see that every advertised address is reached from the worker. Creating the topic by "
    "hand (compacted, if it is one of Connect's) spares the worker the request",
    commands=("eosctl doctor",),
    said_by=("connect-runtime: TopicAdmin.createOrFindTopics, 3.3 to 4.4",
        "metadata: ReplicationControlManager, 3.3 to 4.4"),
    aliases=("InvalidReplicationFactorException", "PolicyViolationException"),
    explains=(codes.WORKER_ENDED,),
    of_transactions=False,
)  # fmt: skip
ENDED = Failure(
    code=codes.WORKER_ENDED, family=Family.CONNECT,
    name="Uncaught exception in herder work thread, exiting",
    signs=(
        sign("Uncaught exception in herder work thread, exiting"), sign("Failed to start Connect"),
        sign("(org.apache.kafka.connect.cli.", "Stopping due to error"),
    ),
    means="its worker ended, or did not start",
    causes=("What the cause below it says: that is what is to be mended.",),
    is_not=("Not a failure of one connector: the whole worker is gone, and its tasks move after 5 minutes.",),
    fix="Read the cause below it, and start the worker again",
    commands=("eosctl workers list", "eosctl doctor"),
    said_by=("connect-runtime: DistributedHerder.run, AbstractConnectCli, 3.3 to 4.4",),
    is_wrapper=True,
    of_transactions=False,
)  # fmt: skip
GROUP_REFUSED = Failure(
    code=codes.GROUP_PROTOCOL_REFUSED, family=Family.CONNECT,
    name="InconsistentGroupProtocolException",
    signs=(
        sign("InconsistentGroupProtocolException"), sign("member's supported protocols are incompatible with those of"),
        sign("INCONSISTENT_GROUP_PROTOCOL"),
    ),
    means="a group refuses it: the members of that group speak another protocol",
    causes=(
        "group.id of the worker is that of a consumer group, or of another application (connect-NAME is the group of a "
        "sink connector NAME).",
        "Workers of one group have different values of connect.protocol.",
        "Consumers of one group have no common partition.assignment.strategy.",
    ),
    is_not=("Not a zombie, and no fencing.",),
    fix="Give the worker's group.id a name that nothing else uses: with it change the names of its transactional ids, "
    "so stop its tasks first. Where it is connect.protocol, give all workers the same one",
    commands=("eosctl workers list",),
    said_by=("kafka-clients: Errors.INCONSISTENT_GROUP_PROTOCOL (23), 0.11 to 4.4",),
    aliases=("INCONSISTENT_GROUP_PROTOCOL", "group.id"),
    explains=(codes.WORKER_ENDED,),
    of_transactions=False,
)  # fmt: skip
PLUGIN_PATH = Failure(
    code=codes.PLUGIN_PATH_UNREADABLE, family=Family.CONNECT,
    name="Could not get listing for plugin path",
    signs=(sign("Could not get listing for plugin path"), sign("Invalid path in plugin path")),
    means="its worker can't read an element of plugin.path, and goes on without it",
    causes=(
        "The folder is not there: a mistyped path, a volume that is not mounted, an image without it.",
        "The worker's user may not read it.",
    ),
    is_not=("Not a failure of the worker: it starts, and lacks those plugins.",),
    fix="Correct plugin.path, or the folder's rights, and restart the worker",
    commands=("eosctl workers list",),
    said_by=("connect-runtime: PluginUtils, 3.6 to 4.4 (before: DelegatingClassLoader)",),
    explains=(codes.PLUGIN_MISSING, codes.CONNECTOR_TYPE_UNKNOWN),
    of_worker=True,
    of_transactions=False,
)  # fmt: skip
REST_NOT_STARTED = Failure(
    code=codes.REST_NOT_STARTED, family=Family.CONNECT,
    name="Unable to initialize REST server",
    signs=(
        sign("Unable to initialize REST server"), sign("Unable to initialize REST resources"),
        sign("Unable to initialize Admin REST resources"),
    ),
    means="its worker can't open its REST interface",
    causes=(
        "Another process has the port of listeners: a former worker that still runs.",
        "The host of listeners is not one of this machine.",
        "A key store of listeners.https.ssl.* can't be read.",
    ),
    is_not=("Not a failure of the brokers.",),
    fix="End the other process, or correct listeners; see the cause below it",
    said_by=("connect-runtime: RestServer, 3.3 to 4.4",),
    aliases=("Address already in use",),
    explains=(codes.WORKER_ENDED,),
    of_worker=True,
    of_transactions=False,
)  # fmt: skip
WORKER_LEFT = Failure(
    code=codes.WORKER_LEFT_GROUP, family=Family.CONNECT,
    name="worker poll timeout has expired",
    signs=(sign("worker poll timeout has expired"),),
    means="its worker left its group: its main thread was busy for longer than rebalance.timeout.ms",
    causes=(
        "A connector's start, stop or validation that does not return: the message names the last action.",
        "A read of the config topic that waits for an open transaction, or for brokers.",
        "The machine stood still: garbage collection, a frozen container.",
    ),
    is_not=("Not a missing broker: the worker did not ask in time.",),
    fix="See what the message names as the last action; raise rebalance.timeout.ms where that has to take so long. The "
    "tasks of the worker start elsewhere, and are fenced here",
    commands=("eosctl workers list", "eosctl doctor"),
    said_by=("connect-runtime: WorkerCoordinator, 3.6 to 4.4",),
    aliases=("rebalance.timeout.ms",),
    explains=(codes.TASK_FENCED, codes.TASK_FENCED_OR_EXPIRED),
    of_worker=True,
    of_transactions=False,
)  # fmt: skip
BEHIND = Failure(
    code=codes.CONFIG_LOG_BEHIND, family=Family.CONNECT,
    name="Didn't reach end of config log quickly enough",
    signs=(sign("Didn't reach end of config log quickly enough"),),
    means="its worker has not read the config topic to where the group's assignment was made",
    causes=(
        "The worker's consumer is slow, or a transaction on the config topic is open.",
        "Brokers give offsets that no record has: on Event Hubs, after retention or with other offsets than Kafka's.",
        "The worker reads another config topic than the leader: config.storage.topic differs.",
    ),
    is_not=("Not a failure where it comes once: the worker joins again.",),
    fix="See that all workers have the same config.storage.topic, and whether its partition has an open transaction",
    commands=("eosctl doctor", "eosctl workers list"),
    said_by=("connect-runtime: DistributedHerder.readConfigToEnd, 3.3 to 4.4",),
    of_worker=True,
)  # fmt: skip

WORKERS = (
    NOT_CLAIMED, NOT_WRITTEN, PARTITIONED, NOT_COMPACTED, TOPIC_MISSING, NOT_CREATED, GROUP_REFUSED, PLUGIN_PATH,
    REST_NOT_STARTED, WORKER_LEFT, BEHIND, ENDED,
)  # fmt: skip
