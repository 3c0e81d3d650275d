"""What `metrics` prints: how large and how long the transactions of source tasks are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from eosctl.output.cells import printable, summary_lines
from eosctl.output.parts import Counts, FindingRow
from eosctl.output.rows import Header, Kind, Printed, ShownAs, Text
from eosctl.report import Report


def _rounded(value: float) -> str:
    """A size or a rate without more digits than it is worth."""
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
    """How many tasks there are, and what was found."""

    tasks: Annotated[int, "How many tasks there are."]
    counts: Annotated[Counts, "How many findings have each severity."]


def _task_findings(report: Report) -> Iterable[str]:
    """What the numbers of the table say, task by task."""
    for row in report.rows_of(TaskMetricsRow):
        for finding in row.findings:
            yield f"{finding.severity}  {finding.code}  {printable(finding.message)}"
            yield f"  fix: {printable(finding.fix)}"
    yield from summary_lines(report)


METRICS = Kind(
    "metrics",
    "How large the transactions of source tasks are, per task and endpoint.",
    row=TaskMetricsRow,
    summary=MetricsSummary,
    text=Text(
        columns=(
            *("connector", "task", "transaction_size_min", "transaction_size_avg", "transaction_size_max"),
            *("source_record_poll_rate", "source_record_write_rate", "transaction_timeout_ms", "open_ms", "url"),
        ),
        lines=_task_findings,
    ),
)
