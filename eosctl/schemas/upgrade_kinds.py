"""The documents about workers and the way to exactly-once."""

from __future__ import annotations

from typing import Any

from eosctl.schemas.notation import Kind
from eosctl.schemas.shapes import COUNTS, MANIFEST

_GATE = {
    "id": "str",
    "status": {"pass", "fail", "unknown"},
    "evidence": "any",
    "fix": "str",
    "stops_apply": "bool",
    "accepted": "bool",
}
_HARD: dict[str, Any] = {
    "offsets": [
        {"connector": "str", "offsets_topic": "str", "cluster": "str|null", "commands": ["str"], "note": "str"}
    ],
    "aborted_offsets": {
        "records": [{"topic": "str", "partition": "int", "key": "text", "value": "text|null"}],
        "commands": ["str"],
    },
    "aborted_configs": [{"connector": "str", "exists": "bool", "steps": ["str"]}],
    "variants": [{"name": {"two_step", "one_step"}, "recommended": "bool", "steps": ["str"], "risks": ["str"]}],
    "unknown": ["str"],
}
_MODE = {"enabled", "not_enabled", "preparing", "disabled", "unknown"}
UPGRADE_KINDS: dict[str, Kind] = {
    "upgrade-plan": Kind(
        "The passes to another mode, and the gates before them.",
        {
            "worker": "str",
            "leader": "bool",
            "version": "str|null",
            "health": "str|null",
            "mode": _MODE | {"absent", "old_version", "unreachable"},
            "evidence": ["str"],
        },
        {"target_mode": "str", "passes": "int", "steps": "int", "gates": COUNTS},
        {
            "passes": [
                {
                    "mode": "str",
                    "barrier": "str",
                    "steps": [{"worker": "str", "actions": ["str"], "gates": ["str"]}],
                }
            ],
            "gates": [_GATE],
            "losses": ["str"],
            "plan": "str",
            "plan_file": "str|null",
            "hard?": _HARD,
            "place?": "str",
            "manifests?": [MANIFEST],
        },
    ),
}
