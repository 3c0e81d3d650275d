"""Ids of the gates before a change of the workers' mode; `upgrade verify` and `upgrade apply` use them as codes too."""

from __future__ import annotations

from eosctl.reference.entry import Entry

GATES = (
    Entry(
        "members_known",
        "Every worker of the group is known and answers.",
        "Start it, or remove it for good: an unknown worker voids exactly-once.",
    ),
    Entry("group_stable", "The group does not rebalance.", "Wait for its end and plan again."),
    Entry("same_kafka_cluster", "All workers use the Kafka cluster that -b names.", "Check -b and -u."),
    Entry("worker_versions", "Every worker is Kafka 3.3 or newer.", "Upgrade it first."),
    Entry(
        "worker_health",
        "Every worker says that it is healthy; below Kafka 3.9, where none can, that it answers.",
        "Look at its log.",
    ),
    Entry(
        "internal_rest",
        "The nodes of a dedicated MirrorMaker reach their leader, which fences for the tasks of the others.",
        "Set dedicated.mode.enable.internal.rest=true and listeners in every node's file; one node needs neither.",
    ),
    Entry("modes_proven", "The mode of every worker is proven.", "Give each worker's file with -w."),
    Entry(
        "no_mixed_modes",
        "No worker is enabled while another is disabled.",
        "Go through with the first pass without delay.",
    ),
    Entry("worker_files", "The workers' files agree where they must.", "Make them equal in the properties named."),
    Entry(
        "config_topic",
        "The config topic has one partition and is compacted.",
        "Run the commands of the fix; --config-topic names it.",
    ),
    Entry("offset_topic", "The offsets topic is compacted.", "Run the command of the fix; --offset-topic names it."),
    Entry(
        "config_topic_readable",
        "No record of the config topic makes a worker that starts lose the records behind it.",
        "Restart no worker until compaction has removed it: `eosctl task-counts clean`.",
    ),
    Entry("no_open_transactions", "Config and offsets topics can be read to their ends.", "`eosctl txn hanging`."),
    Entry(
        "no_aborted_records",
        "Aborted config records change nothing for workers that read them.",
        "`eosctl task-counts replay --topic`; overwrite them first.",
    ),
    Entry(
        "no_aborted_offsets",
        "Aborted offsets change nothing for workers that read them.",
        "Write the committed ones again.",
    ),
    Entry(
        "own_offsets_current",
        "No connector's own offsets topic is older than the global one, as after a hard downgrade: its own counts.",
        "`eosctl offsets merge --connector NAME --into dedicated --prefer global`, with the connector stopped.",
    ),
    Entry(
        "task_sets_complete",
        "Every committed task set is complete.",
        "Change the connector's config, so that it writes it again.",
    ),
    Entry("connectors_healthy", "Connectors and their tasks are as they should be.", "Restart or repair what failed."),
    Entry(
        "connector_support",
        "No source connector requires exactly-once support (exactly.once.support) and lacks it.",
        "Do not require it, or ask the documentation for a config that supports it (MirrorMaker 2: "
        "consumer.isolation.level=read_committed).",
    ),
    Entry(
        "transaction_boundaries",
        "Every connector takes the boundary that its config asks for.",
        "Set transaction.boundary=poll or interval.",
    ),
    Entry(
        "transaction_timeouts",
        "Transactions that are committed by the clock end before they time out.",
        "Raise producer.override.transaction.timeout.ms.",
    ),
    Entry(
        "broker_transaction_timeout",
        "Brokers accept the connectors' transaction timeouts.",
        "Lower them, or raise transaction.max.timeout.ms.",
    ),
    Entry(
        "client_overrides",
        "No setting of a connector's producer is one that exactly-once tasks die of (acks, retries …).",
        "Remove it from the connector's config, or from the workers' files.",
    ),
    Entry(
        "own_clusters",
        "Connectors that write to another Kafka cluster find their offsets there as exactly-once tasks.",
        "Name the same brokers for producer, consumer and admin client; copy the offsets: `eosctl offsets switch`.",
    ),
    Entry(
        "no_writes_to_own_offsets",
        "No connector writes to the topic of its own offsets, which exactly-once tasks may not.",
        "Give it another topic for one of the two.",
    ),
    Entry(
        "fencing_pace",
        "Connect can fence each connector's ids in its 90 seconds.",
        "Set admin.override.retry.backoff.ms and .max.ms to 10.",
    ),
    Entry("id_collisions", "No other group has the same transactional ids.", "Rename the connector, or the group."),
    Entry("tasks_exactly_once", "Running tasks write transactions.", "`eosctl connectors check`."),
    Entry("property_names", "No property has a name that Kafka does not know.", "Rename it."),
    Entry(
        "rights_granted",
        "ACLs give workers and source connectors the rights that the mode takes; unknown where ACLs or principals are "
        "(a warning, not an obstacle).",
        "`eosctl acls check --all` with the workers' files (-w), then `eosctl acls apply`.",
    ),
    Entry(
        "workload_matches",
        "With --driver kubernetes: each member of the group is in a pod of --workload, and each pod has a member.",
        "Compare -g with --workload and --namespace; name all workloads of the group.",
    ),
    Entry(
        "workload_rolls",
        "With --driver kubernetes: one pod after the other is restarted, each when the one before is Ready.",
        "Give the container a readinessProbe, strategy RollingUpdate and maxUnavailable 1.",
    ),
    Entry(
        "kubectl_rights",
        "With --driver kubernetes: kubectl may change the workloads, and delete pods where eosctl has to.",
        "docs/kubernetes.md has the Role.",
    ),
)
