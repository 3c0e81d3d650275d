"""How `doctor`, `connectors check` and `metrics` look as text: findings in the order in which to act, and what mends
each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from eosctl.output.cells import View, printable, summary_lines
from eosctl.report import Report, Row

_MOST_FOLLOWING = 6
"""So many consequences are shown in full; of more, what they are."""


def _finding_lines(report: Report) -> Iterable[str]:
    """What one can do stands right below what is wrong; then the summary."""
    width = max((len(str(row["severity"])) for row in report.rows), default=0)
    for row in report.rows:
        yield f"{row['severity']!s:<{width}}  {_told(row)}"
        for number, line in enumerate(str(row["fix"]).splitlines()):
            yield f"{'':<{width}}  {'     ' if number else 'fix: '}{printable(line)}"
        yield from (f"{'':<{width}}  follows: {printable(text)}" for text in _following(row))
    yield from ("", *summary_lines(report))


def _told(row: Row) -> str:
    check = f"{row['check']}/" if "check" in row else ""
    message, subject = str(row["message"]), str(row["subject"])
    about = message if subject in message or subject == row.get("check") else f"{subject}: {message}"
    return f"{check}{row['code']}  {printable(about)}"


def _following(row: Row) -> Iterable[str]:
    """What comes of this finding, and is none of its own therefore."""
    evidence = row["evidence"]
    follows = evidence.get("follows") if isinstance(evidence, Mapping) else None
    rows = follows if isinstance(follows, list) else []
    if len(rows) <= _MOST_FOLLOWING:
        yield from (f"{each['code']}: {each['message']}" for each in rows)
        return
    codes = Counter(str(each["code"]) for each in rows)
    names = ", ".join(f"{count} {code}" if count > 1 else code for code, count in codes.items())
    yield f"{len(rows)} findings, which -o json has: {names}"


def findings_view(empty: str) -> View:
    """Two lines a finding, for their sentences are too long for a table; `empty` where there is none."""
    return View((), footer=_finding_lines, empty=empty, prose=False)
