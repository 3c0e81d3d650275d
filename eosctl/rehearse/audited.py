"""The audit that a rehearsal asks: eosctl's own, in the shape that rows take."""

from __future__ import annotations

from eosctl.app import App
from eosctl.rehearse.proof import Asked, Audited
from eosctl.rehearse.rows import Verdict


def audit_connector(_app: App, _asked: Asked) -> Audited:
    """STUB until the audit is there."""
    return Audited(Verdict.UNPROVEN, "no audit yet")
