"""Codes of findings: what checks say about topics, records, connectors and rights."""

from __future__ import annotations

from eosctl.reference.entry import Entry

_NOT_SEEN = "Grant the right that the message names, or give -b, -g and -u, and run again."

FINDINGS = (
    # offsets lint
    Entry(
        "topic_missing", "An offsets topic does not exist.", "A worker makes it at its start; or name the right one."
    ),
    Entry("single_replica", "An offsets topic has one replica: one lost disk loses all offsets.", "Add replicas."),
    Entry(
        "partition_count",
        "An offsets topic has other than 25 partitions.",
        "Fine if it was so from the start; never add partitions: keys then have two homes.",
    ),
    Entry("settings_unreadable", "The settings of a topic can't be read.", "Grant DescribeConfigs on it."),
    Entry(
        "not_compacted",
        "An offsets topic is not compacted: offsets vanish, and no worker starts on it.",
        "Set cleanup.policy=compact.",
    ),
    Entry("deletes_old_offsets", "An offsets topic is compacted and also deletes.", "Set cleanup.policy=compact."),
    Entry(
        "key_null",
        "A record without a key; Connect ignores it.",
        "It can't be deleted; a compacted topic takes no new ones.",
    ),
    Entry("key_not_json", "A key that is not JSON; Connect ignores it.", "A tombstone under the same key."),
    Entry("key_not_a_list", "A key that is not a JSON array; Connect ignores it.", "A tombstone under the same key."),
    Entry(
        "key_wrong_size",
        "A key whose array has not two elements; Connect ignores it.",
        "A tombstone under the same key.",
    ),
    Entry(
        "key_connector_not_text",
        "A key whose connector is not text; Connect ignores it.",
        "A tombstone under the same key.",
    ),
    Entry(
        "key_partition_not_a_map",
        "A key whose source partition is not an object; Connect ignores it.",
        "A tombstone under the same key.",
    ),
    Entry(
        "double_spelling",
        "One source partition has offsets under several spellings of its key; a task reads only the one that it "
        "writes.",
        "See which one moves while the connector runs, and delete the others.",
    ),
    Entry(
        "wrong_partition",
        "A key lies on another partition than Connect's producer chooses: the next offset will be a second record.",
        "`eosctl offsets import --keep-partitions` with the repair in the evidence.",
    ),
    Entry(
        "several_partitions",
        "A key lies on several partitions: which record counts is chance.",
        "`eosctl offsets import --keep-partitions` with the repair in the evidence.",
    ),
    Entry(
        "value_not_json",
        "An offset's value is not JSON: the task gets no offset.",
        "Set or delete it: `eosctl offsets set`, `reset`.",
    ),
    Entry(
        "value_not_a_map",
        "An offset's value is not an object: the task gets no offset.",
        "Set or delete it: `eosctl offsets set`, `reset`.",
    ),
    Entry(
        "value_not_primitive",
        "An offset's value has nested members: the task gets no offset.",
        "Set or delete it: `eosctl offsets set`, `reset`.",
    ),
    Entry(
        "partition_null",
        "A connector has an offset for a null source partition, which REST neither shows nor resets.",
        "Nothing, if it means it.",
    ),
    Entry(
        "partition_not_primitive",
        "A source partition has nested members: no connector can write or ask for it.",
        "A tombstone under the same key.",
    ),
    # task-counts validate
    Entry(
        "missing",
        "There is no task-count record: the next start fences nobody.",
        "Nothing, if the group does not run exactly-once; else restart the tasks.",
    ),
    Entry(
        "too_low",
        "Ids beyond the recorded count are alive: a fencing round would miss them.",
        "Stop the connector, `eosctl fence --connector NAME --tasks N`, resume it.",
    ),
    Entry(
        "mis_ordered",
        "The record is older than the newest task commit: fencing is due, under way, or failing.",
        "Look again in a minute; then see the tasks' traces, and `eosctl rescue`.",
    ),
    Entry(
        "incomplete_task_set",
        "The newest commit names tasks whose configs are not in the topic: no task runs.",
        "Change the connector's config, so that it writes them again.",
    ),
    Entry(
        "tasks_forgotten",
        "The connector's config is younger than the commit of its tasks: new workers (3.8+) hold no task of it.",
        "Stop and resume the connector, so that it writes its tasks again.",
    ),
    Entry(
        "implausible",
        "The record names a number of tasks that no connector has.",
        "Write the true count: `eosctl task-counts write`.",
    ),
    Entry("orphan", "The record of a deleted connector; Connect keeps it, to fence old tasks if it comes back."),
    Entry(
        "wrong_type",
        "A task-count record or a task commit that is no integer. A worker that reads it when it starts loses the rest "
        "of the batch, and stays behind the config topic.",
        "Restart no worker until compaction has removed it; the finding has the commands. Overwriting is not enough.",
    ),
    Entry(
        "kip_text_field",
        "A task-count record spelled as in KIP-618's text. A worker that reads it when it starts loses the rest of the "
        "batch, and stays behind the config topic.",
        "Restart no worker until compaction has removed it; the finding has the commands. Overwriting is not enough.",
    ),
    Entry(
        "kip_text_key",
        "A key spelled as in KIP-618's text, which workers do not read.",
        "Delete it; workers read tasks-fencing-CONNECTOR.",
    ),
    Entry("unparsable", "A task-count record that is not JSON.", "Overwrite it with the true count."),
    Entry(
        "tombstoned",
        "A deleted task-count record: running workers keep the old one, restarted ones forget it.",
        "Write the true count.",
    ),
    Entry(
        "id_collision",
        "A transactional id of this connector is also another group's: the two fence each other.",
        "Rename the connector, or the group.",
    ),
    Entry(
        "id_collision_possible",
        "A transactional id of this connector may also be another group's.",
        "Rename the connector or the group, if both run.",
    ),
    # connectors check
    Entry(
        "support_unknown",
        "The connector was not validated, so its exactly-once support is not known.",
        "See whether a worker can be reached and has its plugin.",
    ),
    Entry(
        "support_undeclared",
        "The connector does not declare whether it supports exactly-once.",
        "Read its documentation; required is refused, requested taken on trust.",
    ),
    Entry(
        "not_supported",
        "The connector does not support exactly-once with this config.",
        "Change the config as its documentation says (MirrorMaker 2: consumer.isolation.level=read_committed).",
    ),
    Entry("not_a_source", "The connector is a sink: KIP-618 is about sources."),
    Entry(
        "boundary_refused",
        "The connector does not take the transaction boundary that its config asks for.",
        "Set transaction.boundary=poll or interval.",
    ),
    Entry(
        "interval_exceeds_timeout",
        "Transactions time out before they are committed by the clock.",
        "Raise producer.override.transaction.timeout.ms above transaction.boundary.interval.ms.",
    ),
    Entry(
        "timeout_above_broker",
        "The transaction timeout is above what brokers allow: tasks fail at their start.",
        "Lower producer.override.transaction.timeout.ms, or raise transaction.max.timeout.ms.",
    ),
    Entry(
        "producer_refuses",
        "A setting that an idempotent producer refuses: exactly-once tasks fail at their start.",
        "Remove it; acks=all, retries above 0, at most 5 requests in flight.",
    ),
    Entry("override_ignored", "A setting that has no effect on exactly-once tasks.", "Remove it."),
    Entry(
        "override_refused",
        "The workers' connector.client.config.override.policy refuses overrides that a connector's config has: it does "
        "not start with them.",
        "Set them in the workers' files, or allow them there.",
    ),
    Entry(
        "clients_disagree",
        "The connector's producer goes to other Kafka brokers than its consumer or admin client: exactly-once tasks "
        "then commit offsets on one cluster and look for them, or are fenced, on another.",
        "Give producer.override, consumer.override and admin.override the same bootstrap.servers.",
    ),
    Entry(
        "offsets_move",
        "With exactly-once the connector's offsets are on the Kafka cluster that it writes to, in a topic that lacks "
        "them: its source would be read again.",
        "Copy them first: `eosctl offsets switch --connector C --to TOPIC`.",
    ),
    Entry(
        "offsets_move_unknown",
        "With exactly-once the connector's offsets are on the Kafka cluster that it writes to; whether they are there "
        "is not known.",
        _NOT_SEEN,
    ),
    Entry("broker_maximum_unknown", "Whether brokers accept the transaction timeout is not known.", _NOT_SEEN),
    Entry("offsets_topic_unknown", "The connector's own offsets topic could not be looked at.", _NOT_SEEN),
    Entry(
        "fencing_slow",
        "Each reconfiguration stands still for many seconds while ids are fenced one by one.",
        "Set admin.override.retry.backoff.ms and .max.ms to 10.",
    ),
    Entry(
        "fencing_lossy",
        "Fencing takes over 30 s: tasks of followers give up and stay FAILED.",
        "Set admin.override.retry.backoff.ms and .max.ms to 10; `eosctl rescue` heals.",
    ),
    Entry(
        "fencing_impossible",
        "Fencing takes over 90 s: it never ends, and every task fails.",
        "Set admin.override.retry.backoff.ms and .max.ms to 10; `eosctl rescue` heals.",
    ),
    Entry("fencing_pace_unknown", "How long the connector is fenced is not known.", _NOT_SEEN),
    Entry(
        "idle_property",
        "A property that does nothing: the name of a KIP draft, or mistyped.",
        "Rename it as the message says.",
    ),
    Entry("id_collision_unknown", "Whether another group has the same ids is not known.", _NOT_SEEN),
    Entry(
        "nothing_committed",
        "A RUNNING task has committed nothing for five minutes or more: its source is idle, or it can't get at it.",
        "If the source is not idle, see the worker's log.",
    ),
    Entry(
        "task_not_exactly_once",
        "A RUNNING task whose transactional id no coordinator knows: it writes without transactions, or wrote nothing "
        "for seven days (a warning).",
        "Find its worker with `eosctl workers probe`, enable exactly-once there, restart the task.",
    ),
    Entry(
        "offsets_topic_redefined",
        "A connector has an offsets.storage.topic of its own, which Connect takes for the topic of its offsets.",
        "See what the connector means by it.",
    ),
    Entry(
        "writes_own_offsets",
        "A connector writes to the topic of its own offsets, which exactly-once tasks may not.",
        "Give it another topic for one of the two.",
    ),
    Entry(
        "exactly_once_not_used",
        "No worker is enabled, so no task of the group is exactly-once.",
        "Nothing, if that is meant; `eosctl upgrade plan --to enabled`.",
    ),
    Entry("task_audit_unknown", "Whether the tasks write transactions is not known.", _NOT_SEEN),
    # doctor
    Entry(
        "not_checked", "A check could not run; nothing is known of what it looks at.", "Mend what the message names."
    ),
    Entry(
        "dedicated_mirror_maker",
        "The group's workers are those of a dedicated MirrorMaker, which have no REST interface.",
        "Nothing; their files and logs have what only a worker can tell.",
    ),
    Entry("acls_not_checked", "Who the principals are is not known, so rights were not checked.", "Give -w."),
    Entry(
        "status_not_compact",
        "The status topic is not compacted, or also deletes: no worker starts on it.",
        "Set cleanup.policy=compact.",
    ),
    Entry(
        "too_few_replicas",
        "A topic has fewer replicas than its min.insync.replicas: nothing can be written to it.",
        "Add replicas, or lower min.insync.replicas.",
    ),
    Entry(
        "no_spare_replica",
        "All replicas of a topic have to be in sync: one lost broker stops transactions.",
        "Add a replica, or lower min.insync.replicas by one.",
    ),
    Entry(
        "one_insync_replica",
        "One replica may take a write alone: a lost broker may lose what transactions there were.",
        "Set min.insync.replicas=2.",
    ),
    Entry(
        "partition_without_leader",
        "Partitions of a topic have no leader that answers: nothing can be read from or written to them, and ids whose "
        "coordinator they are can't be used.",
        "Start the brokers that have their replicas.",
    ),
    Entry(
        "broker_down",
        "Replicas of an internal topic are on a broker that the cluster does not have now.",
        "Start it; if it is gone for good, move its replicas.",
    ),
    Entry(
        "transaction_open_long",
        "A RUNNING task has had a transaction open for more than half of its timeout; when that is over, brokers abort "
        "it and the task fails.",
        "See the task's worker's log; mend brokers that can't be written, or let the task commit more often.",
    ),
    Entry(
        "below_min_isr",
        "Partitions of an internal topic have fewer replicas in sync than its min.insync.replicas: tasks are RUNNING "
        "and commit nothing.",
        "Start the brokers that have their replicas.",
    ),
    Entry(
        "transaction_topic_unseen",
        "The topic __transaction_state can't be seen.",
        "Grant DESCRIBE on it; brokers make it with the first transaction.",
    ),
    Entry(
        "worker_behind",
        "A worker does not read as far in the config topic as the group has told it, and what it lacks is older than a "
        "minute. It starts nothing, and makes the group rebalance again and again.",
        "Have the record compacted away at which its reader fails (`eosctl task-counts validate`), then restart it.",
    ),
    Entry("few_replicas", "An internal topic has fewer than three replicas.", "Add replicas."),
    Entry(
        "hanging_transaction",
        "A transaction that no coordinator will end: readers of committed records wait behind it.",
        "`eosctl txn abort` with the place that the fix names.",
    ),
    Entry(
        "enabled_before",
        "No worker is enabled, and the group's task-count records say that some were.",
        "`eosctl upgrade plan --to enabled`; or say what is meant, with --expect or expect.mode of the profile.",
    ),
    Entry(
        "mode_not_expected",
        "A worker is not in the mode that --expect, or the profile, expects.",
        "`eosctl upgrade plan --to MODE`.",
    ),
    Entry(
        "mode_not_proven",
        "Whether a worker is in the mode that is expected can't be told from outside.",
        "Give its file with -w.",
    ),
    Entry("unassigned", "A connector or task has no worker.", "Look again after the rebalance."),
    Entry(
        "task_failed",
        "A connector or task is FAILED for a reason that eosctl does not know.",
        "`eosctl connectors trace NAME`.",
    ),
    Entry("task_not_authorized", "A task is FAILED for want of a right.", "`eosctl acls check` names what is missing."),
    Entry(
        "fencing_not_authorized",
        "A task is FAILED: its principal may not use its transactional id, or fence it.",
        "`eosctl acls check` names what is missing; then restart the task.",
    ),
    Entry(
        "fencing_superseded",
        "A task is FAILED: its connector was changed while it was being fenced.",
        "Restart the failed tasks; after a change wait for the new task-count record before the next.",
    ),
    Entry(
        "fencing_forward_timeout",
        "A follower's task is FAILED: the leader's fencing took longer than 30 s.",
        "`eosctl rescue`, and the two retry.backoff overrides.",
    ),
    Entry(
        "leader_not_reached",
        "A follower's task is FAILED: its worker can't reach the leader, which fences the old tasks.",
        "Make the advertised host names resolve, and the ports reachable, between all workers; then restart the task.",
    ),
    Entry(
        "record_too_large",
        "A task is FAILED: a record is larger than its producer, or the topic, takes.",
        "Raise producer.override.max.request.size, and the topic's max.message.bytes; then restart the task.",
    ),
    Entry("fencing_timed_out", "Tasks are FAILED: fencing took longer than 90 s.", "`eosctl rescue`."),
    Entry(
        "fencing_failed", "A task is FAILED: the old tasks could not be fenced.", "Restart it; then `eosctl rescue`."
    ),
    Entry(
        "internal_rest_off",
        "MirrorMaker's workers can't reach their leader.",
        "Set dedicated.mode.enable.internal.rest=true on every node.",
    ),
    Entry(
        "timeout_refused",
        "A task is FAILED: brokers refuse its transaction timeout.",
        "Lower producer.override.transaction.timeout.ms, or raise the brokers' maximum.",
    ),
    Entry("task_fenced", "A task is FAILED: another producer took its transactional id.", "Restart it."),
    Entry(
        "task_fenced_or_expired",
        "A task is FAILED: its transaction took too long, or another producer took its id.",
        "Restart it; raise the transaction timeout, or use transaction.boundary=poll.",
    ),
    Entry(
        "own_offsets_topic",
        "A task is FAILED: it writes into the topic of its own offsets.",
        "Give it another topic for one of the two.",
    ),
    Entry(
        "offsets_not_written",
        "A task is FAILED: its offsets could not be written.",
        "Read the cause; with a dedicated topic and null offsets, `eosctl offsets switch --to global`.",
    ),
    Entry(
        "connector_is_a_ghost",
        "A task is FAILED: its connector came from an aborted config record.",
        "Create the connector STOPPED, and DELETE it.",
    ),
    Entry("brokers_too_old", "A task is FAILED: the brokers are too old for exactly-once.", "Upgrade them."),
    # metrics
    Entry(
        "no_transaction_sizes",
        "A source task has metrics, but no transaction sizes: it is not exactly-once, or the exporter leaves them out.",
        "`eosctl workers probe`; then look at the exporter's rules.",
    ),
    Entry(
        "transaction_near_timeout",
        "A task's open transaction is close to its timeout, at which brokers abort it and the task fails.",
        "Commit more often (transaction.boundary), or raise producer.override.transaction.timeout.ms.",
    ),
    Entry(
        "transaction_may_near_timeout",
        "By size and rate, a task's largest transaction may have come close to its timeout; pauses count in.",
        "Look again under load; -b and -g add what the coordinators know.",
    ),
    Entry(
        "boundary_too_wide",
        "A task puts very many records into one transaction (--wide): read_committed consumers wait for all of it.",
        "transaction.boundary=poll, or a shorter transaction.boundary.interval.ms.",
    ),
    # upgrade verify
    Entry("no_workers", "The group has no workers.", "Start them."),
    Entry("mode_unproven", "The mode of a worker can't be proven.", "Give its properties file with -w."),
    Entry("wrong_mode", "A worker is in another mode than wanted.", "`eosctl upgrade plan` has the steps."),
    # acls check
    Entry(
        "acl_missing",
        "No ACL allows what the role needs.",
        "The fix is the kafka-acls line; `eosctl acls apply` adds it.",
    ),
    Entry("acl_denied", "An ACL denies what the role needs.", "Remove it, as the fix says."),
    Entry(
        "acl_for_some_hosts",
        "What the role needs is allowed from some hosts only.",
        "Be sure that all clients are among them.",
    ),
    Entry(
        "acl_denied_to_hosts", "What the role needs is denied from some hosts.", "Be sure that no client is among them."
    ),
    Entry("no_authorizer", "The brokers have no authorizer: every client may do everything."),
    Entry(
        "super_users_unknown",
        "A super user needs no ACL, and who is one can't be read from the brokers.",
        "Look at server.properties.",
    ),
)
