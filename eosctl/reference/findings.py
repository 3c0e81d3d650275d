"""Codes of findings: what checks say about topics, records, connectors and rights."""

from __future__ import annotations

from eosctl.reference.entry import Entry
from eosctl.reference.group_findings import GROUP_FINDINGS

_NOT_SEEN = "Grant the right that the message names, or give -b, -g and -u, and run again."

FINDINGS = (
    # offsets that a restart would cost
    Entry(
        "offsets_hidden",
        "A connector has an offsets topic of its own, and some of its offsets are in the global topic only; or its "
        "config names none any more, and they are in the one that it named before. Tasks that start do not see these, "
        "and read that part of their source from the beginning.",
        "Before any restart: `eosctl connectors stop`, `eosctl offsets merge --into dedicated` (or global), "
        "`eosctl connectors resume`.",
    ),
    Entry(
        "offsets_topic_empty",
        "A connector's own offsets topic never had a record, though the global topic has offsets of it: it was deleted "
        "and made anew by a worker, or never filled.",
        "Before any restart: `eosctl connectors stop`, `eosctl offsets merge --into dedicated`, `eosctl connectors "
        "resume`.",
    ),
    Entry(
        "offsets_went_back",
        "An offset lies before a former one that the log still has, with no deletion (reset) in between: the source is "
        "read again from there. Said of FileStream, JDBC, MirrorMaker 2 and Debezium where their order is certain (not "
        "of MySQL with GTIDs), and not of what an `eosctl offsets` command of this machine wrote. A PATCH of "
        "/connectors/NAME/offsets can't be told from an accident.",
        "Before any restart: `eosctl connectors stop`, `eosctl offsets set --as-of`, `eosctl connectors resume`; "
        "`eosctl offsets log` shows every version. If it was meant: `eosctl doctor --ignore offsets_went_back:NAME`.",
    ),
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
        "Nothing, if the group does not run exactly-once; else stop and resume the connector: the leader writes it.",
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
        "Stop the connector, fence its ids, write the true count (`eosctl task-counts write --no-fence`), resume it.",
    ),
    Entry("orphan", "The record of a deleted connector; Connect keeps it, to fence old tasks if it comes back."),
    Entry(
        "wrong_type",
        "A task-count record or a task commit that is no integer. A worker that reads it when it starts loses the rest "
        "of the batch, and stays behind the config topic.",
        "Restart no worker until compaction has removed it: `eosctl task-counts clean`. Overwriting is not enough.",
    ),
    Entry(
        "kip_text_field",
        "A task-count record spelled as in KIP-618's text. A worker that reads it when it starts loses the rest of the "
        "batch, and stays behind the config topic.",
        "Restart no worker until compaction has removed it: `eosctl task-counts clean`. Overwriting is not enough.",
    ),
    Entry(
        "kip_text_key",
        "A key spelled as in KIP-618's text, which workers do not read.",
        "Delete it; workers read tasks-fencing-CONNECTOR.",
    ),
    Entry(
        "unparsable", "A task-count record that is not JSON.", "Stop and resume the connector: the leader writes it."
    ),
    Entry(
        "tombstoned",
        "A deleted task-count record: running workers keep the old one, restarted ones forget it.",
        "Stop and resume the connector: the leader writes it anew.",
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
        "A RUNNING task, or a connector, has committed nothing for five minutes or more: its source is idle, or it "
        "can't get at it.",
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
    *GROUP_FINDINGS,
)
