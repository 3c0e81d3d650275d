"""Parts of rows that several features print."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, cast

from msgspec import UNSET, UnsetType

from eosctl.core.findings import Finding, is_unseen
from eosctl.foreign import printable
from eosctl.output.rows import Header, Printed
from eosctl.report import Problem

Counts = dict[str, int]
"""A number per name."""
Severity = Literal["error", "warning", "info"]


class Place(Printed):
    """A partition of a topic."""

    topic: Annotated[str, "Its topic."]
    partition: Annotated[int, "Its number."]

    def cell(self) -> str:
        """Format the partition as Kafka does."""
        return f"{self.topic}-{self.partition}"


class KafkaError(Printed):
    """The error that a broker answered with."""

    code: Annotated[str, "Kafka's name of the error."]
    kafka_code: Annotated[int, "Kafka's number of the error."]
    message: Annotated[str, "Why it failed.", Header("ERROR")]


FindingCode = Annotated[str, "The code of the finding; `eosctl explain CODE` says what it means."]
FindingSeverity = Annotated[Severity, "How bad it is."]
FindingSubject = Annotated[str, "What it is about."]
FindingMessage = Annotated[str, "What is wrong."]
FindingEvidence = Annotated[dict[str, object], "What it was found by."]
FindingFix = Annotated[str, "What to do about it."]


class FindingPart(Printed, kw_only=True):
    """A finding inside a row; without a subject if the row itself is the subject."""

    code: FindingCode
    severity: FindingSeverity
    subject: FindingSubject | UnsetType = UNSET
    message: FindingMessage
    evidence: FindingEvidence | UnsetType = UNSET
    fix: FindingFix


class FindingRow(Printed):
    """A finding as a row of its own."""

    code: FindingCode
    severity: FindingSeverity
    subject: FindingSubject
    message: FindingMessage
    evidence: FindingEvidence
    fix: FindingFix

    def headline(self) -> str:
        """Format code, subject and message in one line."""
        return f"{self.code}  {printable(about_subject(self.subject, self.message))}"


class UnseenPart(Printed):
    """Something that the check promises to judge and could not see."""

    what: Annotated[str, "The code that says what it is."]
    subject: Annotated[str, "What it is of; empty for the whole."]
    why: Annotated[str, "Why it could not be seen."]
    would_show: Annotated[str, "The right, or the option, that would show it."]


UnseenParts = Annotated[list[UnseenPart], "What could not be seen: where there is some, the exit code is not 0."]


def unseen_parts(findings: Iterable[Finding], problems: Iterable[Problem] = ()) -> list[UnseenPart]:
    """Return what could not be seen, each once: by findings first, then by problems."""
    unseen = [(str(each.code), each.subject, each.message, each.fix) for each in findings if is_unseen(each)]
    unseen += [(str(each.code), "", each.message, each.hint or each.code.next) for each in problems if each.is_unseen]
    return [
        UnseenPart(what=what, subject=subject, why=why, would_show=would_show)
        for what, subject, why, would_show in dict.fromkeys(unseen)
    ]


def about_subject(subject: str, message: str) -> str:
    """Return the message; prefix the subject unless the message names it."""
    return message if subject in message else f"{subject}: {message}"


def finding_row(finding: Finding) -> FindingRow:
    """Convert a finding to a row of its own."""
    return FindingRow(
        code=str(finding.code),
        severity=cast("Severity", finding.severity),
        subject=finding.subject,
        message=finding.message,
        evidence=dict(finding.evidence),
        fix=finding.fix,
    )
