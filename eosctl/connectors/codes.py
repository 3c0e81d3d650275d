"""What is to be known of connectors, and what FAILED tasks died of."""

from __future__ import annotations

from eosctl.codes import finding, warning

CONNECT_NOT_ASKED = warning(
    "connect_not_asked",
    "No worker could be asked; what only Connect knows is left out.",
    "Give -u with the URL of a worker of their group.",
)
DEDICATED_TOPICS_UNKNOWN = warning(
    "dedicated_topics_unknown",
    "Which connectors have offsets topics of their own, or which topic one of them has, is not known.",
    "Give -u, --config-topic, or --dedicated-topic.",
)
OTHER_CLUSTER = warning(
    "other_cluster",
    "A connector, its own offsets or a topic belong to another Kafka cluster; the message says whether it is read.",
    "Where it is not: run the same with -b of that cluster, or name the store as TOPIC@PROFILE.",
)
OUTPUT_TOPICS_UNKNOWN = warning(
    "output_topics_unknown",
    "Not all topics that connectors write to are known; rights on the others are left out.",
    "Name a worker with -u, or the topics with --output-topic.",
)
FAILED_STAYS = warning(
    "failed_stays",
    "Neither pause nor resume changes what is FAILED of a connector.",
    "`eosctl connectors restart NAME --failed`.",
)
UNASSIGNED = finding(
    "unassigned",
    "A connector or task has no worker; an error when it has had none for longer than a rebalance takes.",
    "Look again after the rebalance; see the leader's log.",
)
TASK_FAILED = finding(
    "task_failed",
    "A connector or task is FAILED for a reason that eosctl does not know.",
    "`eosctl connectors trace NAME`.",
)
FENCING_NOT_AUTHORIZED = finding(
    "fencing_not_authorized",
    "A task is FAILED: its principal may not use its transactional id, or fence it.",
    "`eosctl acls apply` grants what is missing; then restart the task.",
)
FENCING_SUPERSEDED = finding(
    "fencing_superseded",
    "A task is FAILED: its connector was changed while it was being fenced.",
    "Restart the failed tasks; after a change wait for the new task-count record before the next.",
)
LEADER_NOT_REACHED = finding(
    "leader_not_reached",
    "A follower's task is FAILED: its worker can't reach the leader, which fences the old tasks.",
    "Make the advertised host names resolve, and the ports reachable, between all workers; then restart the task.",
)
FENCING_FORWARD_TIMEOUT = finding(
    "fencing_forward_timeout",
    "A follower's task is FAILED: the leader's fencing took longer than 30 s.",
    "`eosctl rescue`, and the two retry.backoff overrides.",
)
FENCING_TIMED_OUT = finding("fencing_timed_out", "Tasks are FAILED: fencing took longer than 90 s.", "`eosctl rescue`.")
FENCING_FAILED = finding(
    "fencing_failed", "A task is FAILED: the old tasks could not be fenced.", "Restart it; then `eosctl rescue`."
)
INTERNAL_REST_OFF = finding(
    "internal_rest_off",
    "MirrorMaker's workers can't reach their leader.",
    "Set dedicated.mode.enable.internal.rest=true on every node.",
)
TIMEOUT_REFUSED = finding(
    "timeout_refused",
    "A task is FAILED: brokers refuse its transaction timeout.",
    "Lower producer.override.transaction.timeout.ms, or raise the brokers' maximum.",
)
TASK_FENCED = finding("task_fenced", "A task is FAILED: another producer took its transactional id.", "Restart it.")
TASK_FENCED_OR_EXPIRED = finding(
    "task_fenced_or_expired",
    "A task is FAILED: its transaction took too long, or another producer took its id.",
    "Restart it; raise the transaction timeout, or use transaction.boundary=poll.",
)
PRODUCER_REFUSES = finding(
    "producer_refuses",
    "A setting that an idempotent producer refuses: exactly-once tasks fail at their start.",
    "Remove it; acks=all, retries above 0, at most 5 requests in flight.",
)
BROKERS_NOT_RESOLVED = finding(
    "brokers_not_resolved",
    "A task or connector is FAILED: its worker can't resolve the brokers' names in its config.",
    "Correct bootstrap.servers of its overrides, or the worker's DNS; then restart the task.",
)
RECORD_TOO_LARGE = finding(
    "record_too_large",
    "A task is FAILED: a record is larger than its producer, or the topic, takes.",
    "Raise producer.override.max.request.size, and the topic's max.message.bytes; then restart the task.",
)
OWN_OFFSETS_TOPIC = finding(
    "own_offsets_topic",
    "A task is FAILED: it writes into the topic of its own offsets.",
    "Give it another topic for one of the two.",
)
OFFSETS_NOT_WRITTEN = finding(
    "offsets_not_written",
    "A task is FAILED: its offsets could not be written.",
    "Read the cause; with a dedicated topic and null offsets, `eosctl offsets switch --to global`.",
)
CONNECTOR_IS_A_GHOST = finding(
    "connector_is_a_ghost",
    "A task is FAILED: its connector came from an aborted config record.",
    "Create the connector STOPPED, and DELETE it.",
)
BROKERS_TOO_OLD = finding(
    "brokers_too_old", "A task is FAILED: the brokers are too old for exactly-once.", "Upgrade them."
)
TASK_NOT_AUTHORIZED = finding(
    "task_not_authorized", "A task is FAILED for want of a right.", "`eosctl acls apply` grants what is missing."
)
