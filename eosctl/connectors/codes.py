"""What is to be known of connectors; what FAILED tasks died of is in `failures/codes.py`."""

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
CONNECTOR_IS_A_GHOST = finding(
    "connector_is_a_ghost",
    "A task is FAILED: the config topic has no committed config of its connector, only an aborted one.",
    "Create the connector STOPPED, and DELETE it, which leaves tombstones.",
)
