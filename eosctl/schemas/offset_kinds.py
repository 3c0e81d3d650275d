"""The documents of `eosctl offsets`."""

from __future__ import annotations

from typing import Any

from eosctl.schemas.notation import Kind, Shape
from eosctl.schemas.shapes import COUNTS, FINDING_ROW, OWNER, PLACE

_KEY: dict[str, Shape] = {"connector": "str", "source_partition": "any", "key": "text|null"}
_LSNS = ({"*": "str"}, None)  # members of the value, as PostgreSQL prints them
_CELL_MEMBERS: dict[str, Shape] = {
    **PLACE,
    "offset": "int",
    "timestamp": "time|null",
    "timestamp_ms": "int|null",
    "value": "any",
    "lsn?": _LSNS,
}
_CELL = (_CELL_MEMBERS, None)
_VERSION: dict[str, Shape] = {
    **_KEY,
    **_CELL_MEMBERS,
    "tombstone": "bool",
    "state": ({"committed", "aborted", "open"}, None),
    "jumped_from": ({"offset": "int", "value": "any"}, None),
}
_LOGGED = {"source_partitions": "int", "versions": "int", "jumps_back": "int", "aborted": "int", "open": "int"}
_VIEW: dict[str, Shape] = {
    **_KEY,
    "stores": {"global": _CELL, "dedicated": _CELL, "*": _CELL},
    "effective": {"documented": "any", "runtime": "any"},
    "age_ms": "int|null",
    "flags": ["str"],
}
_LISTED = {
    "connectors": "int",
    "source_partitions": "int",
    "not_seen_at_runtime": "int",
    "ignored_keys": "int",
}
_IGNORED: dict[str, Shape] = {"ignored": [{**PLACE, "offset": "int", "key": "text|null", "reason": "str"}]}
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
_RESTORED: dict[str, Shape] = {
    **_WRITE,
    "backup?": "any",
    "newer?": (
        {"offset": "int", "timestamp": "time|null", "transactional_id": "str|null", "owner": (OWNER, None)},
        None,
    ),
}
_COUNTS = {"counts": {"write": "int", "delete": "int", "keep": "int", "conflict": "int"}, "conflicts": "int"}
_PLANNED = {**_COUNTS, "creates": "int"}
_TOPIC = {"topic": "str", "partitions": "int", "replication_factor": "int"}
_PLAN_DATA: dict[str, Shape] = {"creates": [_TOPIC], "overrides": ["str"], "keys": "int", "plan?": "str"}
_RESULT_DATA: dict[str, Shape] = {**_PLAN_DATA, "backup": "str|null", "undo": "str|null"}
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
_SWITCH: dict[str, Any] = {
    "row": {
        "step": "str",
        "action": "str",
        "before": "str|null",
        "after": "str|null",
        "outcome": {"planned", "done", "done_before", "failed", "not_reached"},
        "detail": "str|null",
    },
    "summary": {"steps": "int", "to_do": "int"},
    "data": {
        "connector": "str",
        "from": "str",
        "to": "str",
        "state": "str",
        "config": {"property": "str", "before": "str|null", "after": "str|null"},
        "kept_elsewhere": "str|null",
        "writes": [{**_WRITE, "outcome?": "str"}],
        "creates": [_TOPIC],
        "backup": "str|null",
        "journal": "str",
        "undo": "str|null",
    },
}


def _writes(
    verb: str, done: str, *, row: dict[str, Shape] = _WRITE, data: dict[str, Shape] | None = None
) -> dict[str, Kind]:
    """The plan and the result of one writing command."""
    more = data or {}
    result = {**_PLANNED, "written": "int", "not_as_planned": "int"}
    return {
        f"offsets-{verb}-plan": Kind(f"The offsets that would be {done}.", row, _PLANNED, {**_PLAN_DATA, **more}),
        f"offsets-{verb}-result": Kind(
            f"The offsets that were {done}.", {**row, "outcome": "str"}, result, {**_RESULT_DATA, **more}
        ),
    }


_LSN_CHANGE = ({"before": "str|null", "after": "str|null"}, None)
_MEMBER_CHANGE: dict[str, Shape] = {
    "source_partition": "any",
    "member": "str",
    "change": {"new", "missing", "type", "forward", "backward", "changed"},
    "before": "any",
    "after": "any",
    "lsn": _LSN_CHANGE,
}
_EDIT: dict[str, Shape] = {
    "via": {"rest", "topic"},
    "via_reason": "str",
    "changes": [_MEMBER_CHANGE],
    "as_of?": [_VERSION],
}
OFFSET_KINDS: dict[str, Kind] = {
    "offsets-list": Kind("Every source partition, in each store.", _VIEW, _LISTED, _IGNORED),
    "offsets-get": Kind(
        "One connector's source partitions.",
        {**_VIEW, "rest?": {"status": "str", "offset": "any"}},
        {**_LISTED, "rest_differing?": "int"},
        {**_IGNORED, "rest_url?": "str"},
    ),
    "offsets-diff": Kind(
        "Two stores of a connector, compared.",
        {
            **_VIEW,
            "left": _CELL,
            "right": _CELL,
            "status": {"same", "only_left", "only_right", "differs", "deleted_left", "deleted_right", "hidden"},
        },
        {"differing": "int", "counts": COUNTS},
        {"left": "str", "right": "str", "clusters": {"*": "str"}},
    ),
    "offsets-export": Kind(
        "The file that a store was saved to.",
        summary={"records": "int", "*": "any"},
        data={"file": "str", "topic": "str", "format": {"ndjson", "rest"}},
    ),
    "offsets-lint": Kind(
        "What is wrong with an offsets topic.",
        FINDING_ROW,
        {"topics": "int", "findings": "int", "counts": COUNTS, "codes": COUNTS},
        {"topics": ["str"], "rows_per_code": "int"},
    ),
    "offsets-log": Kind(
        "Every version of a connector's offsets that the log still has.",
        _VERSION,
        _LOGGED,
        {
            "topics": ["str"],
            "partitions": [{**PLACE, "begin": "int", "end": "int", "records": "int", "older_gone": "bool"}],
        },
    ),
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
    "offsets-switch-plan": Kind("The steps of a move between offsets topics.", **_SWITCH),
    "offsets-switch-result": Kind("How far a move between offsets topics has come.", **_SWITCH),
    **_writes("merge", "merged"),
    **_writes("import", "imported"),
    **_writes("restore", "restored", row=_RESTORED),
    **_writes("set", "set", data=_EDIT),
    **_writes("reset", "reset", data=_EDIT),
}
