"""The gates before a change of the workers' mode, in the order of their repair, and what an upgrade warns of."""

from __future__ import annotations

from eosctl.codes import error, finding, gate, warning
from eosctl.core.allowances import Waiver

MEMBERS_KNOWN = gate(
    "members_known",
    "Every worker of the group is known and answers.",
    "Start it, unless it runs: then its log says why it is not in the group, say that it does not reach the brokers. "
    f"--connect-map says where it is reached; `upgrade apply {Waiver.ACCEPT_GONE}` gives up one that an upgrade lost. "
    "Each needs an address of its own.",
)
GROUP_STABLE = gate(
    "group_stable", "The group does not rebalance.", "Start its workers, or wait for the end of the rebalance."
)
SAME_KAFKA_CLUSTER = gate(
    "same_kafka_cluster",
    "All workers use the Kafka cluster that -b names.",
    "Check -b and -u: they lead to different clusters.",
)
BROKERS_TRANSACTIONAL = gate(
    "brokers_transactional",
    "Every broker offers what exactly-once source tasks and their leader need: InitProducerId, AddPartitionsToTxn and "
    "EndTxn.",
    "Look again when every broker answers.",
)
WORKER_VERSIONS = gate(
    "worker_versions", "Every worker is Kafka 3.3 or newer.", "Upgrade it to Kafka 3.3 or newer first."
)
WORKER_HEALTH = gate(
    "worker_health",
    "Every worker reports that it is healthy; below Kafka 3.9, where none can, that it answers.",
    "Look at the worker's log; GET /health needs Kafka 3.9.",
)
INTERNAL_REST = gate(
    "internal_rest",
    "The nodes of a dedicated MirrorMaker reach their leader, which fences for the tasks of the others.",
    "Set dedicated.mode.enable.internal.rest=true and listeners in the file of every node, and "
    "restart them one by one; a single node needs neither.",
)
MODES_PROVEN = gate(
    "modes_proven",
    "The mode of every worker is proven.",
    "Give each worker's properties file with -w, or see `eosctl workers probe`.",
)
NO_MIXED_MODES = gate(
    "no_mixed_modes",
    "No worker is enabled while another is disabled.",
    "Go through with the first pass of `eosctl upgrade plan` without delay.",
)
WORKER_FILES = gate(
    "worker_files",
    "The workers' files agree where they must.",
    "Make the files equal in these properties, and restart the workers whose files change.",
)
IDLE_CONNECTIONS = gate(
    "idle_connections",
    "No worker closes its connection to the coordinator as idle during a rebalance.",
    "Raise connections.max.idle.ms to rebalance.timeout.ms at least, or remove it, and restart the worker.",
)
CONFIG_TOPIC = gate(
    "config_topic",
    "The config topic has one partition and is compacted.",
    "Name it with --config-topic; DESCRIBE_CONFIGS shows its settings.",
)
OFFSET_TOPIC = gate(
    "offset_topic",
    "The offsets topic is compacted.",
    "Name it with --offset-topic; DESCRIBE_CONFIGS shows its settings.",
)
CONFIG_TOPIC_READABLE = gate(
    "config_topic_readable",
    "No record of the config topic makes a worker that starts lose the records behind it.",
    "Restart no worker until it is compacted away: `eosctl task-counts clean`.",
)
NO_OPEN_TRANSACTIONS = gate(
    "no_open_transactions",
    "Config and offsets topics can be read to their ends.",
    "Workers would hang behind it: fence its transactional id (eosctl fence), or, where no coordinator has it open, "
    "commit it if its coordinator did (eosctl txn complete --as-decided), else abort it (eosctl txn abort).",
)
NO_ABORTED_RECORDS = gate(
    "no_aborted_records",
    "Aborted config records change nothing for workers that read them.",
    "See `eosctl task-counts replay --topic`; overwrite them first.",
)
NO_ABORTED_OFFSETS = gate(
    "no_aborted_offsets",
    "Aborted offsets change nothing for workers that read them.",
    "Write the committed ones again: `eosctl upgrade plan --to disabled --hard` has how.",
)
OWN_OFFSETS_CURRENT = gate(
    "own_offsets_current",
    "No connector's own offsets topic is older than the global one, as after a hard downgrade: its own counts.",
    "Its tasks read again what they read since; stop it, and `eosctl offsets merge "
    "--connector NAME --into dedicated --prefer global`.",
)
TASK_SETS_COMPLETE = gate(
    "task_sets_complete",
    "Every committed task set is complete.",
    "Change the connector's config, so that it writes them again.",
)
CONNECTORS_HEALTHY = gate(
    "connectors_healthy", "Connectors and their tasks are as they should be.", "Restart or repair what failed first."
)
CONNECTOR_SUPPORT = gate(
    "connector_support",
    "No source connector requires exactly-once support (exactly.once.support) and lacks it.",
    "Do not require it, or ask the documentation for a config that supports it (MirrorMaker 2: "
    "consumer.isolation.level=read_committed).",
)
TRANSACTION_BOUNDARIES = gate(
    "transaction_boundaries",
    "Every connector takes the boundary that its config asks for.",
    "Set transaction.boundary=poll or interval.",
)
TRANSACTION_TIMEOUTS = gate(
    "transaction_timeouts",
    "Transactions that are committed by the clock end before they time out.",
    "Raise producer.override.transaction.timeout.ms above it.",
)
BROKER_TRANSACTION_TIMEOUT = gate(
    "broker_transaction_timeout",
    "Brokers accept the connectors' transaction timeouts.",
    "Lower producer.override.transaction.timeout.ms, or raise the maximum.",
)
CLIENT_OVERRIDES = gate(
    "client_overrides",
    "No setting of a connector's producer is one that exactly-once tasks die of (acks, retries …).",
    "Remove them, or set what the evidence names.",
)
OWN_CLUSTERS = gate(
    "own_clusters",
    "Connectors that write to another Kafka cluster find their offsets there as exactly-once tasks.",
    "Name the same brokers for all three clients; copy the offsets with `eosctl offsets switch`.",
)
NO_WRITES_TO_OWN_OFFSETS = gate(
    "no_writes_to_own_offsets",
    "No connector writes to the topic of its own offsets, which exactly-once tasks may not.",
    "Give it another topic, or another offsets.storage.topic.",
)
FENCING_PACE = gate(
    "fencing_pace",
    "Connect can fence each connector's ids in its 90 seconds.",
    "Set the two admin.override.retry.backoff properties that the evidence names.",
)
ID_COLLISIONS = gate(
    "id_collisions", "No other group has the same transactional ids.", "Rename the connector, or the group."
)
TASKS_EXACTLY_ONCE = gate("tasks_exactly_once", "Running tasks write transactions.", "See `eosctl connectors check`.")
PROPERTY_NAMES = gate("property_names", "No property has a name that Kafka does not know.", "Rename the property.")
RIGHTS_GRANTED = gate(
    "rights_granted",
    "ACLs give workers and source connectors the rights that the mode takes; unknown where ACLs or principals are "
    "(a warning, not an obstacle).",
    "`eosctl acls check --all` with the workers' files (-w) lists them, `acls apply` adds them.",
)
WORKLOAD_MATCHES = gate(
    "workload_matches",
    "With --driver kubernetes: each member of the group is in a pod of --workload, and each pod has a member.",
    "Compare -g with --workload and --namespace. --workload is repeatable: name all workloads of the group (in one "
    "namespace).",
)
WORKLOAD_ROLLS = gate(
    "workload_rolls",
    "With --driver kubernetes: one pod after the other is restarted, each when the one before is Ready.",
    "Give the container a readinessProbe (GET /health, or the REST port), strategy RollingUpdate and maxUnavailable 1.",
)
KUBECTL_RIGHTS = gate(
    "kubectl_rights",
    "With --driver kubernetes: kubectl may change the workloads, and delete pods where eosctl has to.",
    "docs/how-to/upgrade-on-kubernetes.md has the Role that eosctl needs.",
)
PLUGINS_FIT = gate(
    "plugins_fit",
    "With --plugins: no plugin names a class or method that the Kafka of --kafka lacks. It is about another version of "
    "Kafka, so `upgrade apply` does not have it.",
    "Install releases of the plugins for that Kafka; `eosctl rehearse --plugin-path DIR --kafka-version VERSION` shows "
    "whether one runs.",
)
NO_WORKERS = finding("no_workers", "The group has no workers.", "Start them.")
MODE_UNPROVEN = finding("mode_unproven", "The mode of a worker can't be proven.", "Give its properties file with -w.")
WRONG_MODE = finding("wrong_mode", "A worker is in another mode than wanted.", "`eosctl upgrade plan` has the steps.")
UPGRADE_UNFINISHED = error(
    "upgrade_unfinished",
    "An upgrade is not finished: some workers are in the new mode, some are not.",
    "Continue with --resume, or go back as the hint says.",
)
POD_NOT_READY = warning(
    "pod_not_ready",
    "A pod of a StatefulSet is not Ready; its controller does not replace such a pod, so eosctl deletes it.",
    "Read its reason and its last log lines; it stays if it gets Ready, or if you do not say y.",
)
PODS_DELETED_BY_HAND = warning(
    "pods_deleted_by_hand",
    "A StatefulSet has updateStrategy OnDelete: a patch of it restarts no pod.",
    "After the patch of each pass delete its pods, one by one.",
)
MODE_BY_FILE_AND_MEMBERSHIP = warning(
    "mode_by_file_and_membership",
    "No request reaches a dedicated MirrorMaker: its steps go by file and membership.",
    "Nothing; the leader's claim of its id, and the ids of tasks, show more if there are any.",
)
GROUPS_MOVED_TOGETHER = warning(
    "groups_moved_together",
    "A MirrorMaker's file has one mode for all flows to a target, each of which is a group of its own.",
    "See `eosctl workers list` with -g of each: only the nodes that are restarted may be its members.",
)
