"""Codes of problems with connectors; those of FAILED tasks are in `failures/codes.py`."""

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
    "`eosctl connectors restart --failed NAME`.",
)
UNASSIGNED = finding(
    "unassigned",
    "A connector or task has no worker; an error when it has had none for longer than a rebalance takes.",
    "Look again after the rebalance; see the leader's log.",
)
STUCK_RESTARTING = finding(
    "stuck_restarting",
    "A connector or task was restarted more than a minute ago and does not run yet, an error after two minutes: its "
    "start failed without a word, or hangs.",
    "See the log of the worker that the message names, then `eosctl connectors restart NAME`.",
)
STATUS_STALE = finding(
    "status_stale",
    "The status of a connector or task says that it has no worker, that it restarts, or that another worker has it, "
    "while the group has it assigned to a worker, for longer than a rebalance.",
    "`eosctl connectors restart NAME` has its worker write its status anew.",
)
STATUS_NOT_WRITTEN = finding(
    "status_not_written",
    "No status of what the group has assigned to a worker is that worker's own, for longer than a rebalance: it does "
    "not write its status, or starts nothing.",
    "See its log: its clock, and its right to write the status topic.",
)
STATUS_AGE_UNKNOWN = finding(
    "status_age_unknown",
    "A status contradicts the group's assignment, and since when is not known, as the status topic can't be read.",
    "Name the topic (status_topic of a profile, or -w), grant READ on it, and run again.",
)
TASK_FAILED = finding(
    "task_failed",
    "A connector or task is FAILED for a reason that eosctl does not know.",
    "`eosctl connectors trace NAME`.",
)
CONNECTOR_IS_A_GHOST = finding(
    "connector_is_a_ghost",
    "A task is FAILED: the config topic has no committed config of its connector, only an aborted one.",
    "Create the connector STOPPED, and DELETE it, which leaves tombstones.",
)
