"""Codes of `errors` that a command which succeeds warns of."""

from __future__ import annotations

from eosctl.reference.entry import Entry

WARNINGS = (
    Entry(
        "aborted_but_visible",
        "Aborted records are in the topic, which workers that are not enabled still read.",
        "Run the same command again before such a worker starts.",
    ),
    Entry(
        "aborted_records_matter",
        "The config topic holds aborted records that preparing and disabled workers would take.",
        "Overwrite them before any worker's mode changes.",
    ),
    Entry("absent_before", "Keys that had no record before get a tombstone, which Connect reads as no offset."),
    Entry(
        "alive_ids_unknown",
        "The coordinators could not be asked which transactional ids they know.",
        "Grant DESCRIBE on the group's TransactionalIds.",
    ),
    Entry("answer_lost", "The write was reported as failed, and all of it is there."),
    Entry(
        "config_topic_unread",
        "How far workers are behind the config topic is not known.",
        "Grant READ on it, or name it with --config-topic.",
    ),
    Entry(
        "connect_can",
        "Connect's own leader would do the same.",
        "Let it: `eosctl fence --connector NAME --via connect`.",
    ),
    Entry(
        "connect_not_asked",
        "No worker could be asked; what only Connect knows is left out.",
        "Give -u with the URL of a worker of their group.",
    ),
    Entry(
        "connector_gone",
        "Offsets of a connector that no longer exists: one that is created with its name goes on from them.",
        "For a new beginning `eosctl offsets reset --connector NAME --all-partitions` before it is created.",
    ),
    Entry(
        "connectors_unknown",
        "What the connectors' configurations say is not known.",
        "Grant READ on the config topic, or name tasks and topics by hand.",
    ),
    Entry("damaged_history", "Lines of the audit log were cut off by a crash or a full disk, and are left out."),
    Entry(
        "dedicated_topics_unknown",
        "Which connectors have offsets topics of their own, or which topic one of them has, is not known.",
        "Give -u, --config-topic, or --dedicated-topic.",
    ),
    Entry("deletes", "The file holds deletions, and they will be written."),
    Entry(
        "connectors_as_written",
        "No worker can be asked, so connectors are judged by the group's config and status topics.",
        "See the workers' logs for what runs.",
    ),
    Entry(
        "pod_not_ready",
        "A pod of a StatefulSet is not Ready; its controller does not replace such a pod, so eosctl deletes it.",
        "Read its reason and its last log lines; it stays if it gets Ready, or if you do not say y.",
    ),
    Entry(
        "pods_deleted_by_hand",
        "A StatefulSet has updateStrategy OnDelete: a patch of it restarts no pod.",
        "After the patch of each pass delete its pods, one by one.",
    ),
    Entry(
        "mode_by_file_and_membership",
        "No request reaches a dedicated MirrorMaker: its steps go by file and membership.",
        "Nothing; the leader's claim of its id, and the ids of tasks, tell more where there are any.",
    ),
    Entry(
        "groups_moved_together",
        "A MirrorMaker's file has one mode for all flows to a target, each of which is a group of its own.",
        "See `eosctl workers list` with -g of each: only the nodes that are restarted may be its members.",
    ),
    Entry(
        "standalone_worker",
        "The worker is of no group: a standalone one, which does not know exactly-once.",
        "Give the URL of a distributed worker.",
    ),
    Entry(
        "file_contradicts_probe",
        "A worker behaves otherwise than its properties file says.",
        "Restart it with that file, or give the file that it reads.",
    ),
    Entry(
        "group_not_stable",
        "The Connect group rebalances: who runs what is not known now.",
        "Run again when it is over.",
    ),
    Entry(
        "goes_forward",
        "An offset is set further on: what the source has in between is not read.",
        "Leave it, unless those records are not wanted.",
    ),
    Entry("group_unknown", "Whether the Connect group exists could not be told.", "Grant DESCRIBE on the group."),
    Entry(
        "group_without_members",
        "The group that was named has no members: it may be another one's name.",
        "Compare -g with the workers' group.id.",
    ),
    Entry(
        "ids_may_be_hidden",
        "Brokers list only ids that one may DESCRIBE, and do not say that there are others.",
        "Grant DESCRIBE on every TransactionalId before relying on an absence.",
    ),
    Entry(
        "ignored_keys",
        "Keys that no connector ever finds are written as they are.",
        "`eosctl offsets lint` says what is wrong with them.",
    ),
    Entry(
        "leader_id",
        "A leader whose id is fenced notices at its next write, which fails once with HTTP 500.",
        "PUT the unchanged config of any connector right after.",
    ),
    Entry(
        "prepared_transactions",
        "Transactions under ids like Flink's are fenced (--discard-prepared): what a checkpoint prepared is lost.",
        "Rather let the Flink job restore from its last checkpoint, which commits them.",
    ),
    Entry(
        "live_tasks",
        "Running tasks are fenced: they go FAILED at their next commit.",
        "Restart them afterwards; the hint has the calls.",
    ),
    Entry(
        "no_source_tasks",
        "No endpoint has metrics of a source task.",
        "Name the endpoint of every worker; an exporter's rules must let kafka.connect MBeans through.",
    ),
    Entry(
        "timeouts_unknown",
        "The coordinators did not tell the tasks' transaction timeouts.",
        "Grant DESCRIBE on their TransactionalIds, or see the message.",
    ),
    Entry(
        "liveness_unknown",
        "Whether running tasks hold these ids is not known.",
        "Give -u with the URL of a worker of their group.",
    ),
    Entry("no_key", "Records without a key are not imported, as a compacted topic takes none."),
    Entry(
        "new_key",
        "No record has this source partition: its key had to be made up.",
        "Be sure that the connector spells it the same.",
    ),
    Entry(
        "not_fenced", "The recorded ids stay as they are (--no-fence).", "`eosctl fence --connector NAME --tasks N`."
    ),
    Entry("not_hanging", "Forced: a coordinator still knows the transaction, and is not told."),
    Entry(
        "old_snapshots",
        "Snapshots of earlier migrations take space; they are of plans that are over.",
        "`eosctl offsets migrate --prune` removes them; backups stay.",
    ),
    Entry(
        "open_transaction",
        "A transaction is open in a topic: what lies behind it can't be read, and starting workers wait for it.",
        "`eosctl txn hanging --topic TOPIC`, then `eosctl fence` or `eosctl txn abort`.",
    ),
    Entry(
        "other_cluster",
        "A connector, its own offsets or a topic belong to another Kafka cluster; the message says whether it is read.",
        "Where it is not: run the same with -b of that cluster, or name the store as TOPIC@PROFILE.",
    ),
    Entry(
        "other_connectors",
        "Topic and worker know different connectors: the topic may be another group's.",
        "Name the group's config.storage.topic with --config-topic.",
    ),
    Entry(
        "other_group", "A worker that was named is of another group.", "Compare -u, and -g with the worker's group.id."
    ),
    Entry("other_kafka_cluster", "A worker that was named uses another Kafka cluster.", "Compare -u and -b."),
    Entry(
        "output_topics_unknown",
        "Not all topics that connectors write to are known; rights on the others are left out.",
        "Name a worker with -u, or the topics with --output-topic.",
    ),
    Entry("over_newer", "Values that are newer than the file's are overwritten."),
    Entry("producers_unknown", "Who holds a transaction open could not be found out.", "Grant READ on the topic."),
    Entry(
        "failed_stays",
        "Neither pause nor resume changes what is FAILED of a connector.",
        "`eosctl connectors restart NAME --failed`.",
    ),
    Entry(
        "restart_no_worker",
        "The config topic has a record that a worker which starts can't read, and loses others with.",
        "Restart no worker until `eosctl task-counts clean` has ended.",
    ),
    Entry(
        "clean_unfinished",
        "A run of `task-counts clean` was cut off: the config topic still has the settings that it set meanwhile.",
        "Run `eosctl task-counts clean` again: it sets them back.",
    ),
    Entry(
        "settings_not_set_back",
        "`task-counts clean` could not set the config topic's settings back.",
        "Run it again.",
    ),
    Entry("rescue_unfinished", "An earlier rescue was cut off; this one goes on from there."),
    Entry(
        "rest_differs",
        "A worker's REST answer differs from the topic, or looks under another spelling of the key.",
        "Write with --via topic.",
    ),
    Entry(
        "rest_finds_other_keys",
        "REST shows null where the task finds an offset: its keys are spelled in another order.",
    ),
    Entry(
        "running", "Connectors are not stopped; the plan can be looked at, and would be refused.", "Stop them first."
    ),
    Entry(
        "secrets_hidden",
        "What would be written or printed may hold passwords: *** stands in their place, or the patch is left out.",
        "Where it must be exact: --with-secrets, and keep it safe.",
    ),
    Entry("several_spellings", "A source partition has keys in several spellings; all that have a value are written."),
    Entry(
        "loopback_url",
        "A member advertises localhost, by which each machine means itself, and is connected from another address: "
        "other workers, and eosctl elsewhere, do not reach it there.",
        "Give the worker a name of its own (rest.advertised.host.name).",
    ),
    Entry(
        "shared_url",
        "Several members of the group advertise one URL: REST reaches whichever answers, and proves none of them.",
        "Give each worker a name of its own (rest.advertised.host.name).",
    ),
    Entry(
        "source_not_checked",
        "The source is on another cluster, and nobody can be asked whether the connectors still run there.",
        "Stop them there first; add connect_url to the profile.",
    ),
    Entry(
        "source_keeps",
        "What the source of a well-known connector can still deliver, whatever the offset says.",
        "Look there whether it still has the records; Debezium's signal table asks for rows again.",
    ),
    Entry(
        "split",
        "The offsets are too many for one transaction; they go in several.",
        "If it breaks off, run the same command again.",
    ),
    Entry(
        "stale_copies",
        "Older copies of keys that are written lie on other partitions, and get tombstones.",
        "Restart no worker until compaction has removed the tombstones, or look at its offsets afterwards.",
    ),
    Entry("superseded", "Of several records for one key the newer counts; the others are not imported."),
    Entry("task_count_overridden", "--tasks says how many ids, not the task-count record."),
    Entry(
        "topics_unknown",
        "Whether topics exist may not be known; rights to create them are left out.",
        "Grant DESCRIBE on them.",
    ),
    Entry(
        "unsigned_protocol",
        "The group's protocol is eager or compatible: workers do not sign requests, and anybody may fence by REST.",
        "Set connect.protocol=sessioned on every worker.",
    ),
    Entry("unchecked", "The file does not tell what was written over, so that a later write would go unnoticed."),
    Entry(
        "journal_not_closed",
        "The work was done, and the last line of its journal could not be written.",
        "Make room; the next run says that this one was cut off, and finds nothing to do.",
    ),
    Entry(
        "write_cut_off",
        "An earlier write was cut off.",
        "Run the same command again, or take it back with the undo command.",
    ),
    Entry(
        "rights_unknown",
        "Whether the connector may use its new offsets topic could not be checked: ACLs or principals are not known.",
        "Name the worker's file with -w, or compare with `eosctl acls generate`.",
    ),
    Entry(
        "rights_unsure",
        "An ACL on the connector's new offsets topic seems to be lacking; a super user needs none.",
        "The hint has the kafka-acls line.",
    ),
    Entry(
        "nothing_committed_yet",
        "The tasks are RUNNING and have committed nothing since they were started: the source is idle, or they can't "
        "get at it.",
        "If the source is not idle, see the worker's log.",
    ),
    Entry("only_in_target", "The target has offsets that the source lacks; they will count."),
    Entry("null_partition", "Offsets with a null source partition can't be part of a REST body.", "--format ndjson."),
    Entry("not_an_offset", "Values that are no offsets can't be part of a REST body.", "--format ndjson."),
    Entry("other_spelling", "Older spellings of a key can't be part of a REST body.", "--format ndjson."),
)
