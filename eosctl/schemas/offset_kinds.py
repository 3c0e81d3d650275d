"""The documents of `eosctl offsets`."""

from __future__ import annotations

from eosctl.schemas.notation import Kind, Shape
from eosctl.schemas.shapes import COUNTS, PLACE

_KEY: dict[str, Shape] = {"connector": "str", "source_partition": "any", "key": "text|null"}
_LSNS = ({"*": "str"}, None)  # members of the value, as PostgreSQL prints them
_ACTION = {"write", "delete", "keep", "conflict"}
_WRITE: dict[str, Shape] = {
    **_KEY,
    "connector": "str|null",
    "action": _ACTION,
    "reason": "str",
    "before": "any",
    "after": "any",
    "target": PLACE,
    "lsn?": ({"before": _LSNS, "after": _LSNS}, None),
}
_COUNTS = {"counts": {"write": "int", "delete": "int", "keep": "int", "conflict": "int"}, "conflicts": "int"}
_TOPIC = {"topic": "str", "partitions": "int", "replication_factor": "int"}
_MISMATCH: dict[str, Shape] = {
    **_KEY,
    "connector": "str|null",
    "side": "str",
    "status": "str",
    "expected": "any",
    "actual": "any",
    "target": PLACE,
}
_MIGRATED: dict[str, Shape] = {
    **_WRITE,
    "renamed_from?": "str|null",
    "source?": {"topic": "str|null", "partition": "int|null", "offset": "int|null"},
}
_MIGRATION_SUMMARY: dict[str, Shape] = {"connectors": "int", "keys": "int", **_COUNTS, "*": "any"}
_MIGRATION_DATA: dict[str, Shape] = {
    "plan": "str",
    "planned_at": "str",
    "snapshot": "str",
    "policy": "str",
    "parts": "int",
    "connector_counts": "any",
    "sources": [{**_TOPIC, "exists": "bool"}],
    "targets": [{**_TOPIC, "exists": "bool"}],
}
_STAGE: dict[str, Shape] = {
    "stage": {"backup", "create", "clean", "write", "verify"},
    "outcome": {"done_before", "done", "failed", "not_reached"},
    "detail": "str|null",
}
OFFSET_KINDS: dict[str, Kind] = {
    "offsets-migrate-plan": Kind(
        "A sample of the keys that a migration would write.",
        _MIGRATED,
        _MIGRATION_SUMMARY,
        {**_MIGRATION_DATA, "plan_file": "str|null"},
    ),
    "offsets-migrate-result": Kind(
        "What a migration wrote; where keys differ afterwards, those; after an error or Ctrl-C, how far it came.",
        (_MIGRATED, _MISMATCH, _STAGE),
        {**_MIGRATION_SUMMARY, "sent": "int|null", "verified": "int", "differing": "int", "hidden": "int"},
        {
            **_MIGRATION_DATA,
            "topics": "any",
            "created": ["str"],
            "not_created": [{"topic": "str", "error": {"code": "str", "message": "str"}}],
            "backup": "str",
            "undo": "str",
            "overrides": ["str"],
        },
    ),
    "offsets-verify": Kind(
        "The keys that are not as planned, or not as a backup says.",
        _MISMATCH,
        COUNTS,
        {"plan?": "str", "backup?": "str", "compared_with?": {"written", "before"}},
    ),
}
