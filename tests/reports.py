"""What tests read in the report of an operation."""

from __future__ import annotations

import io

from eosctl.output import render_report
from eosctl.report import Report


def codes(report: Report) -> list[str]:
    """The codes of its problems."""
    return [problem.code for problem in report.problems]


def text_of(report: Report) -> str:
    """What a person sees of it in a pipe."""
    stream = io.StringIO()
    render_report(report, output="text", stream=stream, color=False)
    return stream.getvalue()
