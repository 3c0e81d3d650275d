"""Answers and logs of Kafka Connect workers about their group, its config topic and its offsets (3.3 to 4.3)."""

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
