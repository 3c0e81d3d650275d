"""Every JSON document that a test sees is held against the schema of its kind; `invoke` and `envelope_of` call this."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from eosctl.explain.kinds import all_kinds, schema_of

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def faults_of(document: Any) -> list[str]:
    """What is wrong with a document; a member of a row that its schema does not name counts, though it may come."""
    kind = document.get("kind")
    if kind not in all_kinds():
        return [f"kind {kind!r} has no schema: declare it in rows.py of its room (see DESIGN.md, A new kind)"]
    return [f"{kind} at {error.json_path}: {error.message}" for error in _validator(kind).iter_errors(document)]


@functools.cache
def _validator(kind: str) -> Draft202012Validator:
    """That of a kind's schema; tests/test_schemas.py holds that it is one, which costs as much as many documents."""
    from jsonschema import Draft202012Validator  # what programs that tests start need not import

    schema: Any = schema_of(kind)
    _close(schema["properties"]["data"]["properties"]["rows"])
    return Draft202012Validator(schema)


def _close(schema: Any) -> None:
    """Makes every object of `schema` refuse members that it does not name."""
    if schema.get("type") == "object":
        schema.setdefault("additionalProperties", False)
    for below in (*schema.get("properties", {}).values(), *schema.get("anyOf", ()), schema.get("items")):
        if below:
            _close(below)
