"""Rows of `doctor`, `connectors check` and `metrics`.

Findings come in the order in which to act, each with its fix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, cast

from msgspec.structs import asdict, replace

from eosctl.codes import Code
from eosctl.core.findings import Finding
from eosctl.foreign import printable
from eosctl.observation.connectors.commit_age import fold_alike
from eosctl.output.cells import TOTAL, summary_lines
from eosctl.output.rows import (
    Counts,
    FindingCode,
    FindingEvidence,
    FindingFix,
    FindingMessage,
    FindingRow,
    FindingSeverity,
    FindingSubject,
    Header,
    Kind,
    Printed,
    ShownAs,
    Text,
    UnseenParts,
    about_subject,
    finding_row,
)
from eosctl.output.text import finding_lines
from eosctl.report import Report

CheckStatus = Literal["checked", "not_checked"]
SeverityCounts = Annotated[Counts, "How many findings have each severity."]


class ConnectorsSummary(Printed):
    """The number of connectors and tasks checked, and of findings."""

    connectors: Annotated[int, "How many source connectors there are.", TOTAL]
    tasks: Annotated[int, "How many tasks the source connectors have."]
    findings: Annotated[int, "How many findings there are."]
    unseen: Annotated[int, "How much could not be seen."]
    counts: SeverityCounts


class ConnectorsData(Printed):
    """The connectors that were checked."""

    connectors: Annotated[list[str], "The source connectors that were checked."]
    unseen: UnseenParts


class DoctorRow(Printed):
    """A finding of a check."""

    check: Annotated[str, "The check that found it."]
    code: FindingCode
    severity: FindingSeverity
    subject: FindingSubject
    message: FindingMessage
    evidence: FindingEvidence
    fix: FindingFix

    def headline(self) -> str:
        """Return the check, the code, the subject and the message in one line."""
        about = self.message if self.subject == self.check else about_subject(self.subject, self.message)
        return f"{self.check}/{self.code}  {printable(about)}"


def doctor_row(check: str, finding: Finding) -> DoctorRow:
    """Make a row of a check's finding."""
    return DoctorRow(check=check, **asdict(finding_row(finding)))


class DoctorSummary(Printed):
    """The number of checks, and of their findings."""

    checks: Annotated[int, "How many checks there are.", TOTAL]
    not_checked: Annotated[int, "How many checks could not run."]
    findings: Annotated[int, "How many findings there are, without those that are ignored."]
    ignored: Annotated[int, "How many findings are ignored."]
    unseen: Annotated[int, "How much could not be seen."]
    counts: SeverityCounts


class CheckPart(Printed):
    """A check."""

    check: Annotated[str, "The name of the check."]
    status: Annotated[CheckStatus, "Whether the check could run."]
    findings: Annotated[int, "How many findings the check has, without those that are ignored."]


class GroupStatePart(Printed):
    """The group in numbers."""

    workers: Annotated[int, "How many workers the group has."]
    modes: Annotated[Counts, "How many workers have each mode."]
    source_tasks: Annotated[int | None, "How many source tasks there are; null where it is not known."]
    not_exactly_once: Annotated[
        int | None, "How many source tasks are not exactly-once; null where it is not known of each."
    ]
    failed_tasks: Annotated[int | None, "How many source tasks are FAILED; null where it is not known."]
    sentence: Annotated[str, "The same in a sentence."]


class DoctorData(Printed):
    """The group, the checks, and the ignored findings."""

    group: Annotated[GroupStatePart | None, "The group in numbers; null where it could not be looked at."]
    checks: Annotated[list[CheckPart], "Every check."]
    ignored: Annotated[list[DoctorRow], "The findings that are ignored."]
    unseen: UnseenParts


def _doctor_lines(report: Report) -> Iterable[str]:
    """Yield the state of the group, then the findings."""
    data = report.data_of(DoctorData)
    if data.group is not None:
        yield from (f"group {printable(str(report.target.get('group_id')))}: {data.group.sentence}", "")
    if not report.rows:
        yield "Nothing is wrong but what is ignored." if data.ignored else "Nothing is wrong."
    yield from finding_lines(report)


def _ignored_lines(report: Report) -> Iterable[str]:
    """Yield the ignored findings, below the summary that counts them."""
    for row in report.data_of(DoctorData).ignored:
        yield f"ignored {row.severity}  {row.headline()}"


def _rounded(value: float) -> str:
    """Format a size or a rate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


class TaskMetricsRow(Printed):
    """The transactions of a source task, as one endpoint has them."""

    connector: Annotated[str, "The connector."]
    task: Annotated[int, "The number of the task."]
    url: Annotated[str, "The endpoint that the numbers are from."]
    transaction_size_min: Annotated[
        float | None, "How many records the smallest transaction had.", Header("MIN"), ShownAs(_rounded)
    ]
    transaction_size_max: Annotated[
        float | None, "How many records the largest transaction had.", Header("MAX"), ShownAs(_rounded)
    ]
    transaction_size_avg: Annotated[
        float | None, "How many records a transaction has on average.", Header("AVG"), ShownAs(_rounded)
    ]
    source_record_poll_rate: Annotated[
        float | None, "How many records a second the task polls.", Header("POLLED/S"), ShownAs(_rounded)
    ]
    source_record_write_rate: Annotated[
        float | None, "How many records a second the task writes.", Header("WRITTEN/S"), ShownAs(_rounded)
    ]
    longest_ms: Annotated[int | None, "About how long a transaction of the largest size takes, in milliseconds."]
    transaction_timeout_ms: Annotated[
        int | None, "The transaction timeout of the task's producer in milliseconds.", Header("TIMEOUT-MS")
    ]
    open_ms: Annotated[int | None, "For how many milliseconds its transaction has been open; null where none is."]
    findings: Annotated[list[FindingRow], "What the numbers say."]


class MetricsSummary(Printed):
    """The number of tasks, and of findings."""

    tasks: Annotated[int, "How many tasks there are.", TOTAL]
    counts: SeverityCounts


def _task_findings(report: Report) -> Iterable[str]:
    """Yield the findings about the table's numbers, task by task, then the summary."""
    for row in report.rows_of(TaskMetricsRow):
        for finding in row.findings:
            yield f"{finding.severity}  {finding.code}  {printable(finding.message)}"
            yield f"  fix: {printable(finding.fix)}"
    yield from summary_lines(report)


def _alike_once(report: Report) -> Iterable[str]:
    """Yield the lines of findings, similar ones folded as doctor folds them; the other formats have a row for each."""
    rows: Sequence[FindingRow] = report.rows
    found = [
        Finding(cast("Code", row.code), row.severity, row.subject, row.message, row.fix, evidence=row.evidence)
        for row in rows
    ]
    folded = fold_alike(found)
    yield from finding_lines(replace(report, rows=[*map(finding_row, folded)]))
    if len(folded) < len(found):
        yield "-o json has each finding by itself"


CONNECTORS_CHECK = Kind(
    "connectors-check",
    "What keeps source connectors and their tasks from being exactly-once.",
    row=FindingRow,
    summary=ConnectorsSummary,
    data=ConnectorsData,
    text=Text(columns=(), lines=_alike_once, empty="No finding is against exactly-once."),
)
DOCTOR = Kind(
    "doctor",
    "What every check found, worst first.",
    row=DoctorRow,
    summary=DoctorSummary,
    data=DoctorData,
    text=Text(columns=(), lines=_doctor_lines, wide_lines=_ignored_lines),
)
METRICS = Kind(
    "metrics",
    "How large the transactions of source tasks are, per task and endpoint.",
    row=TaskMetricsRow,
    summary=MetricsSummary,
    text=Text(
        columns=(
            *("connector", "task", "transaction_size_min?", "transaction_size_avg?", "transaction_size_max"),
            *("source_record_poll_rate?", "source_record_write_rate?", "transaction_timeout_ms", "open_ms?", "url"),
        ),
        lines=_task_findings,
    ),
)
