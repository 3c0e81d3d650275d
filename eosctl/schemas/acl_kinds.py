"""The documents of `eosctl acls`."""

from __future__ import annotations

from eosctl.schemas.notation import Kind, Shape
from eosctl.schemas.shapes import COUNTS, FINDING

_ROLES = {
    *("worker", "producer", "consumer", "admin"),
    *("observer", "fencer", "offset-writer", "config-writer", "aborter", "acl-writer"),
}
_VERDICTS = {"allowed", "missing", "denied", "allowed_to_hosts", "denied_to_hosts"}
_RIGHT: dict[str, Shape] = {
    "role": _ROLES,
    "principal": "str|null",
    "operation": "str",
    "resource_type": {"Cluster", "Group", "Topic", "TransactionalId"},
    "resource_name": "str",
    "pattern_type": {"LITERAL", "PREFIXED"},
    "permission": {"ALLOW"},
    "when": {"preparing", "enabled"},
    "since": "str|null",
    "optional": "bool",
    "only_to_create": "bool",
    "note": "str",
}
_JUDGED: dict[str, Shape] = {**_RIGHT, "acls": ["str"]}

ACL_KINDS = {
    "acls-generate": Kind(
        "The rights that Connect, or eosctl, needs; `script` is them as text for another tool.",
        _RIGHT,
        {"rights": "int"},
        {"script?": "str"},
    ),
    "acls-check": Kind(
        "What is wrong with the ACLs; `rights` are all that are needed, with the ACLs that decide on them.",
        FINDING,
        {"rights": "int", **dict.fromkeys(sorted(_VERDICTS), "int")},
        {"rights": [{**_JUDGED, "verdict": _VERDICTS}]},
    ),
    "acls-apply-plan": Kind(
        "The ACLs that would be added; `undo` would take them away again.",
        {**_JUDGED, "action": {"create", "keep"}},
        {"counts": COUNTS},
        {"undo?": "str"},
    ),
    "acls-apply-result": Kind(
        "The ACLs that were added, and those that were refused; `undo` takes away again what was added.",
        {
            **_JUDGED,
            "action": {"created", "failed", "kept", "unconfirmed"},
            "error": ({"code": "str", "message": "str"}, None),
        },
        {"counts": COUNTS},
        {"undo?": "str"},
    ),
}
