"""Findings, the results of every check: each with a stable code, a severity, its evidence and what fixes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from eosctl.codes import Code
from eosctl.core.wording import counted

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)
"""The severities, worst first."""


class Finding(Struct, frozen=True):
    """A problem or a fact that a person should know; `code` is stable, `severity` error, warning or info.

    `certain` is false if something could not be observed, or did not respond: a gate then stays unknown, and a check
    has no answer.
    """

    code: Code
    severity: str
    subject: str
    message: str
    fix: str
    evidence: Mapping[str, object] = {}
    certain: bool = True


def each_once(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings without repetitions of the same message about the same subject."""
    return list({(each.code, each.subject, each.message): each for each in findings}.values())


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return each finding once, errors before warnings before the rest, otherwise in their original order."""
    return sorted(each_once(findings), key=lambda each: SEVERITIES.index(each.severity))


def severity_counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Count the findings of each severity, worst first."""
    counts = Counter(each.severity for each in findings)
    return {severity: counts[severity] for severity in SEVERITIES}


def findings_counted(number: int, severity: str) -> str:
    """Format a count of findings of one severity: `1 error`, `2 warnings`, `2 for information`."""
    return f"{number:,} for information" if severity == INFO else counted(number, severity)


def is_unseen(finding: Finding) -> bool:
    """Return whether something that matters could not be seen; a finding that only informs does not matter."""
    return not finding.certain and finding.severity != INFO


def is_bad(findings: Iterable[Finding], *, strict: bool) -> bool:
    """Return whether the answer of a check is no: a certain error among the findings; with `strict` also a warning."""
    counts = severity_counts(each for each in findings if each.certain)
    return bool(counts[ERROR] or (strict and counts[WARNING]))
