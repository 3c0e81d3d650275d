"""The problems that a migration of offsets reports."""

from __future__ import annotations

from eosctl.codes import error, warning

TOPICS_NOT_CREATED = error(
    "topics_not_created",
    "Brokers refused target topics of a migration; no offset was written.",
    "The message above it has the reason. When that is fixed, continue with --plan FILE --yes --resume.",
)
PLAN_MISMATCH = error("plan_mismatch", "Keys are not what the plan says.", "Has someone written since? Plan again.")
BACKUP_MISMATCH = error(
    "backup_mismatch", "Keys do not hold what a backup says.", "Has someone written since? Plan again."
)
RUNNING = warning(
    "running", "Connectors are not stopped; the plan can be looked at, and would be refused.", "Stop them first."
)
OTHERS_OFFSETS = warning(
    "others_offsets",
    "A connector's own offsets topic has offsets of connectors that have another topic of their own, or none.",
    "They are not moved. If they are wanted, name the topic: --from TOPIC.",
)
OLD_SNAPSHOTS = warning(
    "old_snapshots",
    "Snapshots of earlier migrations take space; they are of plans that are over.",
    "`eosctl offsets migrate --prune` removes them; backups stay.",
)
