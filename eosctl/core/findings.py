"""What every check answers with: findings, each with a stable code, a severity, its evidence and what mends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)
"""Worst first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person should know; `code` is stable, `severity` error, warning or info.

    Not `certain` is what could not be looked at, or does not tell: a gate then stays unknown.
    """

    code: str
    severity: str
    subject: str
    message: str
    fix: str
    evidence: Mapping[str, object] = field(default_factory=dict)
    certain: bool = True

    def as_row(self) -> dict[str, object]:
        """The finding as plain data."""
        return {
            "code": self.code,
            "severity": self.severity,
            "subject": self.subject,
            "message": self.message,
            "evidence": dict(self.evidence),
            "fix": self.fix,
        }
