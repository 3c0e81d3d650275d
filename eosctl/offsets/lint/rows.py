"""The rows of `offsets lint`: findings about offsets topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from eosctl.output.cells import TOTAL, format_cell, summary_lines
from eosctl.output.rows import Counts, FindingRow, Kind, Printed, Text, UnseenParts
from eosctl.report import Report


class LintSummary(Printed):
    """The numbers of topics and findings."""

    topics: Annotated[int, "Topics that were looked at.", TOTAL]
    findings: Annotated[int, "Findings in all."]
    counts: Annotated[Counts, "Findings by severity."]
    codes: Annotated[Counts, "Findings by code."]


class LintData(Printed):
    """The topics that were read, and the parts that could not be."""

    topics: Annotated[list[str], "The topics that were looked at."]
    rows_per_code: Annotated[int, "At most so many rows of a code are printed; the counts are complete."]
    unseen: UnseenParts


def _lint_lines(report: Report) -> Iterator[str]:
    """Yield the fix of each kind of finding, once, and the numbers of hidden rows; then the summary."""
    for code, fix in dict.fromkeys((row.code, row.fix) for row in report.rows_of(FindingRow)):
        yield f"fix {format_cell(code)}: {format_cell(fix)}"
    limit = report.data_of(LintData).rows_per_code
    for code, count in report.summary_of(LintSummary).codes.items():
        if count > limit:
            yield f"{format_cell(code)}: {limit} of {count:,} are shown"
    yield from summary_lines(report, wide_only=("codes",))


OFFSETS_LINT = Kind(
    "offsets-lint",
    "Findings about offsets topics.",
    row=FindingRow,
    summary=LintSummary,
    data=LintData,
    text=Text(columns=("severity", "code", "subject", "message"), lines=_lint_lines, empty="Nothing is wrong."),
)
