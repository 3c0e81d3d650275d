"""The text of findings, in the order in which to act, each with its fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from eosctl.foreign import lines_of, printable
from eosctl.output.cells import summary_lines
from eosctl.output.rows import Text
from eosctl.report import Report

_MOST_FOLLOWING = 6
"""The largest number of consequences that are shown in full; of more, only the codes are."""


class ShownFinding(Protocol):
    """A row that is a finding."""

    @property
    def severity(self) -> str:
        """The severity."""

    @property
    def fix(self) -> str:
        """The remedy."""

    @property
    def evidence(self) -> Mapping[str, object]:
        """The facts that prove the finding."""

    def headline(self) -> str:
        """Format code, subject and message in one line."""


def finding_lines(report: Report) -> Iterable[str]:
    """Yield each finding with its fix right below, then the summary."""
    rows: Sequence[ShownFinding] = report.rows
    width = max((len(row.severity) for row in rows), default=0)
    for row in rows:
        yield f"{row.severity:<{width}}  {row.headline()}"
        for number, line in enumerate(lines_of(row.fix)):
            yield f"{'':<{width}}  {'     ' if number else 'fix: '}{line}"
        yield from (f"{'':<{width}}  follows: {printable(text)}" for text in _following(row))
    yield from ("", *summary_lines(report))


def _following(row: ShownFinding) -> Iterable[str]:
    """Yield the consequences of this finding, which are no findings of their own."""
    follows = row.evidence.get("follows")
    rows: list[Mapping[str, object]] = follows if isinstance(follows, list) else []
    if len(rows) <= _MOST_FOLLOWING:
        yield from (f"{each['code']}: {each['message']}" for each in rows)
        return
    codes = Counter(str(each["code"]) for each in rows)
    names = ", ".join(f"{count} {code}" if count > 1 else code for code, count in codes.items())
    yield f"{len(rows)} findings, which -o json has: {names}"


def findings_text(empty: str) -> Text:
    """Return a text with two lines per finding, as sentences are too long for a table; `empty` is for none."""
    return Text(columns=(), lines=finding_lines, empty=empty, prose=False)
