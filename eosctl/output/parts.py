"""Parts of rows that several features print."""

from __future__ import annotations

from typing import Annotated, Literal, cast

from msgspec import UNSET, UnsetType

from eosctl.core.findings import Finding
from eosctl.output.rows import Header, Printed

Counts = dict[str, int]
"""How many of each."""
Severity = Literal["error", "warning", "info"]


class Place(Printed):
    """A partition of a topic."""

    topic: Annotated[str, "Its topic."]
    partition: Annotated[int, "Its number."]

    def cell(self) -> str:
        """As Kafka itself writes it."""
        return f"{self.topic}-{self.partition}"


class KafkaError(Printed):
    """The error that a broker answered with."""

    code: Annotated[str, "Kafka's name of the error."]
    kafka_code: Annotated[int, "Kafka's number of the error."]
    message: Annotated[str, "Why it failed.", Header("ERROR")]


class FindingPart(Printed):
    """What is wrong, inside a row that says with what."""

    code: Annotated[str, "The code of the finding; `eosctl explain CODE` says what it means."]
    severity: Annotated[Severity, "How bad it is."]
    message: Annotated[str, "What is wrong."]
    fix: Annotated[str, "What to do about it."]
    subject: Annotated[str, "What it is about."] | UnsetType = UNSET
    evidence: Annotated[dict[str, object], "What it was found by."] | UnsetType = UNSET


class FindingRow(Printed):
    """What is wrong, as a row of its own."""

    code: Annotated[str, "The code of the finding; `eosctl explain CODE` says what it means."]
    severity: Annotated[Severity, "How bad it is."]
    subject: Annotated[str, "What it is about."]
    message: Annotated[str, "What is wrong."]
    evidence: Annotated[dict[str, object], "What it was found by."]
    fix: Annotated[str, "What to do about it."]


def finding_row(finding: Finding) -> FindingRow:
    """A finding as a row of its own."""
    return FindingRow(
        code=finding.code,
        severity=cast("Severity", finding.severity),
        subject=finding.subject,
        message=finding.message,
        evidence=dict(finding.evidence),
        fix=finding.fix,
    )
