"""The documents of `upgrade apply`, `upgrade status` and `upgrade verify`."""

from __future__ import annotations

from typing import Any

from eosctl.schemas.notation import Kind
from eosctl.schemas.shapes import COUNTS, FINDING_ROW, MANIFEST

_MODE = {"disabled", "preparing", "enabled"}
_ANY_MODE = _MODE | {"absent", "old_version", "not_enabled", "unknown", "unreachable"}
_GATE = {
    "id": "str",
    "status": {"fail", "unknown"},
    "evidence": "any",
    "fix": "str",
    "stops_apply": "bool",
    "accepted": "bool",
}
_APPLY: dict[str, Any] = {
    "row": {
        "mode": _MODE,
        "worker": "str",
        "leader": "bool",
        "actions": ["str"],
        "outcome": {"planned", "done_before", "done", "failed", "not_reached"},
        "detail": "str|null",
        "backup": "str|null",
    },
    "summary": {"target_mode": _MODE, "driver": "str", "steps": "int", "to_do": "int"},
    "data": {
        "plan": "str",
        "place": "str|null",
        "gates": [_GATE],
        "losses": ["str"],
        "manifests": [MANIFEST],
        "journal": "str",
        "undo": "str|null",
    },
}
_ROLL: dict[str, Any] = {
    "target_mode": _MODE,
    "driver": "str",
    "plan": "str",
    "finished": "bool",
    "began": "time",
    "began_ms": "int",
    "ended": ("time", None),
    "ended_ms": "int|null",
    "done": [{"mode": _MODE, "worker": "str"}],
    "under_way": ({"mode": _MODE, "workers": ["str"]}, None),
    "stopped": "str|null",
}
ROLL_KINDS: dict[str, Kind] = {
    "upgrade-apply-plan": Kind("What an upgrade will do, worker by worker.", **_APPLY),
    "upgrade-apply-result": Kind("What an upgrade did, worker by worker.", **_APPLY),
    "upgrade-patches": Kind(
        "What changes the workloads, pass by pass, for whoever makes the changes.",
        {
            "mode": _MODE,
            "object": "str",
            "type": {"strategic", "merge", "json"},
            "change": "str|null",
            "patch": "any",
            "command": "str|null",
        },
        {"target_mode": _MODE, "passes": "int"},
        {"manifests": [MANIFEST], "watch": "str"},
    ),
    "upgrade-status": Kind(
        "The workers' modes, and where the newest upgrade stands.",
        {
            "worker": "str",
            "leader": "bool",
            "version": "str|null",
            "health": "str|null",
            "mode": _ANY_MODE,
            "roll": "str|null",
            "evidence": ["str"],
        },
        {"workers": "int", "modes": COUNTS},
        {"roll": (_ROLL, None)},
    ),
    "upgrade-verify": Kind(
        "What keeps the workers from being provably in a mode.",
        FINDING_ROW,
        {"target_mode": _MODE, "workers": "int", "proven": "int", "gates": "int", "findings": "int"},
    ),
}
