"""What the JSON envelope of every command line is, checked; imported by the contract tests."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tests.schema_check import faults_of

if TYPE_CHECKING:
    from tests.conftest import Outcome

STATUS_OF_EXIT = {0: "ok", 3: "findings", 6: "refused", 7: "partial"}  # any other code: error
ENVELOPE = {"kind", "version", "status", "exit_code", "target", "data", "errors"}


def envelope_of(outcome: Outcome, kind: str, exit_code: int = 0) -> Any:
    """The one document on stdout, checked as an envelope."""
    document = json.loads(outcome.stdout)  # a second document would be `Extra data`
    assert outcome.exit_code == exit_code, outcome.stderr + outcome.stdout
    assert set(document) == ENVELOPE
    assert (document["kind"], document["version"], document["exit_code"]) == (kind, 1, exit_code)
    assert document["status"] == STATUS_OF_EXIT.get(exit_code, "error")
    assert isinstance(document["target"], dict)
    assert isinstance(document["data"]["rows"], list)
    assert isinstance(document["data"]["summary"], dict)
    assert all({"code", "message", "hint"} <= set(error) for error in document["errors"])
    assert faults_of(document) == []
    assert "Traceback" not in outcome.stderr
    assert not re.search(r"^\s*[{\[]|\"kind\":", outcome.stderr, re.MULTILINE), outcome.stderr
    return document
