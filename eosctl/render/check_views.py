"""How `doctor` and `connectors check` look as text: findings in the order in which to act, each with what mends it."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.render.cells import View, printable, summary_lines
from eosctl.report import Report


def _finding_lines(report: Report) -> Iterable[str]:
    """Two lines a finding; what one can do stands right below what is wrong."""
    width = max((len(str(row["severity"])) for row in report.rows), default=0)
    for row in report.rows:
        check = f"{row['check']}/" if "check" in row else ""
        message, subject = str(row["message"]), str(row["subject"])
        about = message if subject in message or subject == row.get("check") else f"{subject}: {message}"
        yield f"{row['severity']!s:<{width}}  {check}{row['code']}  {printable(about)}"
        for number, line in enumerate(str(row["fix"]).splitlines()):
            yield f"{'':<{width}}  {'     ' if number else 'fix: '}{printable(line)}"
    if not report.rows:
        yield "Nothing is wrong."
    yield from ("", *summary_lines(report))


_FINDINGS = View((), footer=_finding_lines, prose=False)
CHECK_VIEWS = {"connectors-check": _FINDINGS, "doctor": _FINDINGS}
