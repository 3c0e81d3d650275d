"""Codes of findings about a whole group: its workers and topics, what died, sizes, modes, rights."""

from __future__ import annotations

from eosctl.reference.entry import Entry

GROUP_FINDINGS = (
    # doctor
    Entry(
        "not_checked", "A check could not run; nothing is known of what it looks at.", "Mend what the message names."
    ),
    Entry(
        "kafka_unreachable",
        "No broker answers, or the address is that of a controller: nothing could be checked.",
        "Check -b and the client's settings, and that the brokers run.",
    ),
    Entry(
        "broker_unreachable",
        "A broker that the cluster lists does not answer; what could not be looked at stands below the first of them.",
        "Start it, or make the address that it advertises reachable from here.",
    ),
    Entry(
        "dedicated_mirror_maker",
        "The group's workers are those of a dedicated MirrorMaker, which have no REST interface.",
        "Nothing; their files and logs have what only a worker can tell.",
    ),
    Entry(
        "aborted_configs_unread",
        "Aborted config records would change connectors for a worker that is not enabled; all workers are enabled.",
        "Nothing, until a worker becomes anything else: `eosctl upgrade plan --to disabled --hard`.",
    ),
    Entry(
        "aborted_offsets_unread",
        "Aborted offsets are the newest for a worker that is not enabled; all workers are enabled.",
        "Nothing, until a worker becomes anything else: `eosctl upgrade plan --to disabled --hard`.",
    ),
    Entry("acls_not_checked", "Who the principals are is not known, so rights were not checked.", "Give -w."),
    Entry(
        "switch_begun_elsewhere",
        "A connector was stopped and not started since; meanwhile it got another offsets topic, or its offsets were "
        "copied to one that its config does not name; and no journal here tells why.",
        "See whether the new topic has all offsets (the fix has the command), then resume it, or go back.",
    ),
    Entry(
        "status_not_compact",
        "The status topic is not compacted, or also deletes: no worker starts on it.",
        "Run the command of the fix, then start the workers again.",
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
        "data_topic_held",
        "Another application's transaction has been open for more than half of its timeout (30 s at least), or for two "
        "minutes, on a topic to which connectors of this group write: consumers with read_committed get nothing that "
        "came after it. A warning where only configs say that they may write there.",
        "`eosctl txn describe` shows who owns it; `eosctl fence` ends it, and its application fails. One of Flink's "
        "is for its job to end.",
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
    Entry(
        "unassigned",
        "A connector or task has no worker; an error when it has had none for longer than a rebalance takes.",
        "Look again after the rebalance; see the leader's log.",
    ),
    Entry(
        "at_rest",
        "Connectors are PAUSED or STOPPED: none of their tasks runs.",
        "Nothing, if that is meant; `eosctl connectors resume C`.",
    ),
    Entry(
        "worker_commits_nothing",
        "None of the tasks that are RUNNING on a worker has committed anything for five minutes or more, and tasks of "
        "other workers have.",
        "See the worker's log; if it hangs, end its process.",
    ),
    Entry(
        "task_failed",
        "A connector or task is FAILED for a reason that eosctl does not know.",
        "`eosctl connectors trace NAME`.",
    ),
    Entry(
        "task_not_authorized", "A task is FAILED for want of a right.", "`eosctl acls apply` grants what is missing."
    ),
    Entry(
        "fencing_not_authorized",
        "A task is FAILED: its principal may not use its transactional id, or fence it.",
        "`eosctl acls apply` grants what is missing; then restart the task.",
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
        "brokers_not_resolved",
        "A task or connector is FAILED: its worker can't resolve the brokers' names in its config.",
        "Correct bootstrap.servers of its overrides, or the worker's DNS; then restart the task.",
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
