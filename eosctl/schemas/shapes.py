"""Shapes that several kinds share."""

from __future__ import annotations

from eosctl.schemas.notation import Shape

COUNTS = {"*": "int"}
PLACE = {"topic": "str", "partition": "int"}
FINDING: dict[str, Shape] = {
    "code": "str",
    "severity": {"error", "warning", "info"},
    "message": "str",
    "fix": "str",
    "subject?": "str",
    "evidence?": {"*": "any"},
}
FINDING_ROW: dict[str, Shape] = {
    "code": "str",
    "severity": {"error", "warning", "info"},
    "subject": "str",
    "message": "str",
    "evidence": {"*": "any"},
    "fix": "str",
}
OWNER: dict[str, Shape] = {
    "kind": {"task", "leader", "eosctl", "other", "ambiguous"},
    "connector": "str|null",
    "task": "int|null",
    "application": ({"flink-sink", "kafka-streams"}, None),
}
FENCE_ROW: dict[str, Shape] = {
    "transactional_id": "str",
    "coordinator": "int|null",
    "owner": OWNER,
    "before": (
        {
            "state": "str",
            "producer_id": "int",
            "producer_epoch": "int",
            "transaction_timeout_ms": "int",
            "age_ms": "int|null",
        },
        None,
    ),
    "after": ({"producer_id": "int", "producer_epoch": "int"}, None),
    "outcome": {"would_fence", "fenced", "skipped_unknown", "failed", "unconfirmed"},
    "confirmed_by": "str|null",
    "already_fenced": "bool",
    "live": ({"worker": "str"}, None),
    "error": ({"code": "str", "kafka_code": "int", "message": "str"}, None),
}
FENCE_SUMMARY: dict[str, Shape] = {"ids": "int", "counts": COUNTS, "already_fenced": "int", "live": "int"}
