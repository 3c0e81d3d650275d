"""The JSON Schema (2020-12) of every kind of document that eosctl prints.

Data with one function; reads nothing, and knows nothing of the code that makes the documents: the tests validate every
document that they see.
"""

from __future__ import annotations

from eosctl.schemas.kinds import KINDS
from eosctl.schemas.notation import Schema, schema

_CODES = {0, 1, 2, 3, 4, 5, 6, 7, 130}


def schema_of(kind: str) -> Schema:
    """The schema of the whole document. Fields may be added to a kind: a member that is not named here is no fault."""
    described = KINDS[kind]
    document = {
        "kind": {kind},
        "version": {1},
        "status": {"ok", "findings", "partial", "refused", "error"},
        "exit_code": _CODES,
        "target": {"kafka_cluster_id?": "str|null", "group_id?": "str|null"},
        "data": {"rows": [described.row], "summary": described.summary, **described.data},
        "errors": [{"code": "str", "message": "str", "hint": "str|null", "severity": {"error", "warning"}}],
    }
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": kind, "description": described.what}
    return {**about, **schema(document)}


__all__ = ["KINDS", "schema_of"]
