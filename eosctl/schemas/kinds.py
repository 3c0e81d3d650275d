"""What the documents look like, kind by kind; `notation` says how to read it.

A new kind is a line in KINDS. Fields may be added to a kind, never renamed or removed.
"""

from __future__ import annotations

from typing import Any

from eosctl.schemas.acl_kinds import ACL_KINDS
from eosctl.schemas.notation import Kind, Shape
from eosctl.schemas.offset_kinds import OFFSET_KINDS
from eosctl.schemas.roll_kinds import ROLL_KINDS
from eosctl.schemas.shapes import COUNTS, FENCE_ROW, FENCE_SUMMARY, FINDING, FINDING_ROW
from eosctl.schemas.upgrade_kinds import UPGRADE_KINDS

_CONNECTOR_STATE: dict[str, Shape] = {
    "config": ({"*": "any"}, None),
    "target_state": "str|null",
    "task_count": "int|null",
    "task_ids": ["int"],
    "inconsistent": "bool",
    "pending_fencing": "bool|null",
    "task_count_record": "int|null",
    "task_config_generation": "int|null",
}
_TASK_COUNTS: dict[str, Any] = {
    "row": {
        "connector": "str",
        "type": {"source", "sink", "unknown"},
        "recorded": "int|null",
        "record_offset": "int|null",
        "newest_commit_offset": "int|null",
        "task_count": "int|null",
        "target_state": "str|null",
        "pending_fencing": "bool|null",
        "decision": "str",
        "would_write": "int|null",
        "would_fence_count": "int",
        "would_fence": ["str"],
        "after_next_commit": {"would_fence_count": "int", "would_fence": ["str"], "reason": "str"},
        "alive_ids": (["str"], None),
        "findings": [FINDING],
    },
    "summary": {
        "connectors": "int",
        "error": "int",
        "warning": "int",
        "info": "int",
        "checked_against_connect": "bool",
    },
}
_DECISIONS = {
    "now": {"would_fence_count": "int", "would_write": "int|null", "reason": "str"},
    "after_next_commit": {"would_fence_count": "int", "reason": "str"},
}
_RECORD = ({"task_count": "int", "offset": "int|null"}, None)
_FENCE = ({"rows": [FENCE_ROW], "summary": FENCE_SUMMARY}, None)
_TASK_COUNT_WRITE: dict[str, Any] = {
    "row": {
        "connector": "str",
        "key": "str",
        "before": _RECORD,
        "after": _RECORD,
        "decision_before": _DECISIONS,
        "decision_after": (_DECISIONS, None),
        "outcome": "str",
    },
    "summary": {"fences": "int", "outcome": "str"},
}
_TASK_COUNT_CLEAN: dict[str, Any] = {
    "row": {
        "offset": "int",
        "key": "str|null",
        "connector": "str|null",
        "code": "str",
        "reason": "str",
        "overwrite": "int|null",
        "outcome": "str",
    },
    "summary": {"records": "int", "overwritten": "int", "removed": "int"},
    "data": {
        "topic": "str",
        "settings": [{"name": "str", "before": "str|null", "now": "str|null", "meanwhile": "str"}],
        "undo": "null",
        "backup?": "str",
    },
}
_RESCUE: dict[str, Any] = {
    "row": {"step": "int", "action": "str", "detail": "str", "outcome": "str"},
    "summary": {"connector": "str", "verdict": "str", "tasks": "int"},
}
_CONNECTOR_CHANGE: dict[str, Any] = {
    "row": {
        "connector": "str",
        "part": "str",
        "worker": "str|null",
        "before": "str|null",
        "after": "str|null",
        "outcome": {"would_change", "changed", "failed"},
    },
    "summary": {
        "connector": "str",
        "action": {"stop", "pause", "resume", "restart"},
        "state": "str",
        "tasks": "int",
        "failed": "int",
    },
    "data": {"undo": "str|null"},
}
_RESCUE_DATA: dict[str, Shape] = {"seen": "str", "cure": {"*": "str"}, "journal": "str"}
_NODE = {
    "node": "str",
    "address": "str",
    "running": "bool",
    "pid": "int",
    "group_id": "str|null",
    "mode": "str|null",
    "config": "str",
    "log": "str",
    "metrics_url": "str|null",
}
_SANDBOX: dict[str, Shape] = {
    "environ": {"*": "str"},
    "directory": "str",
    "topics": "any",
    "principals": [{"principal": "str", "command_config": "str"}],
}

KINDS: dict[str, Kind] = {
    "error": Kind("A command that failed before it had rows: see `errors`."),
    "task-counts-list": Kind("Task-count records and what a leader would do.", **_TASK_COUNTS),
    "task-counts-show": Kind("One connector's task-count record.", **_TASK_COUNTS),
    "task-counts-validate": Kind("Task-count records with what is wrong with them.", **_TASK_COUNTS),
    "task-counts-replay": Kind(
        "The state of a worker that has read these config records.",
        {"connector": "str", **_CONNECTOR_STATE},
        {"connectors": "int", "ignored": "int", "offset": "int"},
        {
            "state": {
                "offset": "int",
                "connectors": {"*": _CONNECTOR_STATE},
                "ignored": [{"offset": "int", "key": "any", "code?": "str", "reason": "str"}],
            },
            "differs_when_uncommitted?": ["str"],
            "aborted_records?": [
                {
                    "offset": "int",
                    "key": ("text", None),
                    "value": "any",
                    "newest": "bool",
                    "differs": "bool",
                    "committed": ({"offset": "int", "value": "any"}, None),
                }
            ],
        },
    ),
    "task-counts-write-plan": Kind(
        "The task-count record that would be written.",
        **_TASK_COUNT_WRITE,
        data={"fenced_before": "bool", "fence": _FENCE, "overrides": ["str"], "undo?": "str|null"},
    ),
    "task-counts-write-result": Kind(
        "The task-count record that was written.",
        **_TASK_COUNT_WRITE,
        data={
            "fenced_before": "bool",
            "fence": _FENCE,
            "overrides": ["str"],
            "backup?": "str|null",
            "undo?": "str|null",
        },
    ),
    "task-counts-clean-plan": Kind("The records that would be compacted away.", **_TASK_COUNT_CLEAN),
    "task-counts-clean-result": Kind("The records that were compacted away.", **_TASK_COUNT_CLEAN),
    "connectors-change-plan": Kind("What would stop, pause, resume or restart.", **_CONNECTOR_CHANGE),
    "connectors-change-result": Kind("What was stopped, paused, resumed or restarted.", **_CONNECTOR_CHANGE),
    "connectors-trace": Kind(
        "What each FAILED part of a connector died of.",
        {
            "connector": "str",
            "part": "str",
            "worker": "str|null",
            "code": "str",
            "message": "str",
            "causes": ["str"],
            "fix": "str",
            "trace": "str|null",
        },
        {"connector": "str", "state": "str", "tasks": "int", "failed": "int"},
    ),
    "rescue-plan": Kind("What would heal the connector.", **_RESCUE, data=_RESCUE_DATA),
    "rescue-result": Kind(
        "What was done to heal the connector.",
        **_RESCUE,
        data={**_RESCUE_DATA, "fence?": _FENCE, "backup?": "str|null"},
    ),
    "history": Kind(
        "Entries of the audit log.",
        "any",
        {"writes": "int", "outcomes": COUNTS, "damaged": "int"},
        {"log": "str"},
    ),
    "profile-list": Kind(
        "The profiles of the config file.",
        {
            "profile": "str",
            "current": "bool",
            "bootstrap_server": "str|null",
            "group_id": "str|null",
            "connect_urls": ["str"],
            "expect": {"*": "any"},
        },
        {"profiles": "int"},
        {"file": "str"},
    ),
    "profile-show": Kind("What a command would be told.", {"name": "str", "value": "any"}, {"values": "int"}),
    "profile-origins": Kind(
        "What a command would be told, and by whom.",
        {"name": "str", "value": "any", "origin": "str"},
        {"values": "int"},
    ),
    "profile-file": Kind(
        "A profile as it stands in the config file now.",
        {"name": "str", "value": "any"},
        {"profile": "str", "current": "bool", "changed": "bool"},
        {"file": "str"},
    ),
    "profile-check": Kind(
        "What answers where a profile points to.",
        {
            "check": {"kafka", "group", "worker"},
            "subject": "str",
            "status": {"ok", "wrong", "failed"},
            "found": "str|null",
            "reason": "str|null",
        },
        {"counts": COUNTS},
    ),
    "metrics": Kind(
        "How large the transactions of source tasks are, per task and endpoint.",
        {
            "connector": "str",
            "task": "int",
            "url": "str",
            "transaction_size_min": "num|null",
            "transaction_size_max": "num|null",
            "transaction_size_avg": "num|null",
            "source_record_poll_rate": "num|null",
            "source_record_write_rate": "num|null",
            "longest_ms": "int|null",
            "transaction_timeout_ms": "int|null",
            "open_ms": "int|null",
            "findings": [FINDING_ROW],
        },
        {"tasks": "int", "counts": COUNTS},
    ),
    "sandbox-up": Kind(
        "The processes of a new sandbox.", _NODE, {"name": "str", "up": "bool", "kafka_version": "str"}, _SANDBOX
    ),
    "sandbox-status": Kind(
        "The processes of a sandbox.",
        _NODE,
        {"name": "str", "up": "bool", "kafka_version?": "str"},
        {f"{name}?": shape for name, shape in _SANDBOX.items()},
    ),
    "sandbox-logs": Kind("The last lines of logs.", {"node": "str", "line": "str"}, data={"files": {"*": "str"}}),
    "sandbox-down": Kind("What was stopped.", summary={"name": "str", "stopped": ["str"]}),
    "demo": Kind(
        "What the demo proved.",
        {"step": "any", "proved": "str", "expected": "any", "actual": "any", "ok": "bool"},
        {"proved": "int", "wrong": "int"},
    ),
    "completion": Kind("A completion script.", data={"shell": {"bash", "zsh", "fish"}, "script": "str"}),
    "schema-list": Kind("The kinds of documents.", {"kind": "str", "what": "str"}, {"kinds": "int"}),
    "schema": Kind("The JSON Schema of one kind.", summary={"kind": "str"}, data={"schema": {"*": "any"}}),
    "explain": Kind(
        "What codes and words mean.",
        {"code": "str", "type": "str", "meaning": "str", "next": "str|null"},
        {"entries": "int"},
    ),
    **ACL_KINDS,
    **OFFSET_KINDS,
    **ROLL_KINDS,
    **UPGRADE_KINDS,
}
