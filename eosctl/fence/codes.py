"""The codes of the problems that fencing reports."""

from __future__ import annotations

from eosctl.codes import finding, warning
from eosctl.core.allowances import Waiver

_NOT_SEEN = "Grant the right that the message names, or give -b, -g and -u, and run again."
TASK_COUNT_OVERRIDDEN = warning("task_count_overridden", "--tasks says how many ids, not the task-count record.")
PREPARED_TRANSACTIONS = warning(
    "prepared_transactions",
    f"Transactions under ids like Flink's are fenced ({Waiver.DISCARD_PREPARED}): what a checkpoint prepared is lost.",
    "Rather let the Flink job restore from its last checkpoint, which commits them.",
)
LEADER_ID = warning(
    "leader_id",
    "A leader whose id is fenced notices at its next write, which fails once with HTTP 500.",
    "PUT the unchanged config of any connector right after.",
)
LIVE_TASKS = warning(
    "live_tasks",
    "Running tasks are fenced: they go FAILED at their next commit.",
    "Restart them afterwards; the hint has the calls.",
)
FENCING_SLOW = finding(
    "fencing_slow",
    "Each reconfiguration stands still for many seconds while ids are fenced one by one.",
    "Set admin.override.retry.backoff.ms and .max.ms to 10.",
)
FENCING_LOSSY = finding(
    "fencing_lossy",
    "Fencing takes over 30 s: tasks of followers give up and stay FAILED.",
    "Set admin.override.retry.backoff.ms and .max.ms to 10; `eosctl rescue` heals.",
)
FENCING_IMPOSSIBLE = finding(
    "fencing_impossible",
    "Fencing takes over 90 s: it never ends, and every task fails.",
    "Set admin.override.retry.backoff.ms and .max.ms to 10; `eosctl rescue` heals.",
)
FENCING_PACE_UNKNOWN = finding("fencing_pace_unknown", "How long the connector is fenced is not known.", _NOT_SEEN)
LIVENESS_UNKNOWN = warning(
    "liveness_unknown",
    "Whether running tasks hold these ids is not known.",
    "Give -u with the URL of a worker of their group.",
)
