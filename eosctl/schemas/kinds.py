"""What the documents look like, kind by kind; `notation` says how to read it.

A new kind is a line in KINDS. Fields may be added to a kind, never renamed or removed.
"""

from __future__ import annotations

from typing import Any

from eosctl.schemas.notation import Kind, Shape
from eosctl.schemas.offset_kinds import OFFSET_KINDS
from eosctl.schemas.shapes import FENCE_ROW, FENCE_SUMMARY, FINDING

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
KINDS: dict[str, Kind] = {
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
    **OFFSET_KINDS,
}
