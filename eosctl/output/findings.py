"""How findings look as text, in the order in which to act, and what fixes each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from eosctl.foreign import lines_of, printable
from eosctl.output.cells import summary_lines
from eosctl.output.rows import Text
from eosctl.report import Report

_MOST_FOLLOWING = 6
"""So many consequences are shown in full; of more, what they are."""


class ShownFinding(Protocol):
    """A row that is a finding."""

    @property
    def severity(self) -> str:
        """How bad it is."""

    @property
    def fix(self) -> str:
        """What to do about it."""

    @property
    def evidence(self) -> Mapping[str, object]:
        """What it was found by."""

    def told(self) -> str:
        """What is wrong with what, behind the code."""


def finding_lines(report: Report) -> Iterable[str]:
    """What one can do stands right below what is wrong; then the summary."""
    rows: Sequence[ShownFinding] = report.rows
    width = max((len(row.severity) for row in rows), default=0)
    for row in rows:
        yield f"{row.severity:<{width}}  {row.told()}"
        for number, line in enumerate(lines_of(row.fix)):
            yield f"{'':<{width}}  {'     ' if number else 'fix: '}{line}"
        yield from (f"{'':<{width}}  follows: {printable(text)}" for text in _following(row))
    yield from ("", *summary_lines(report))


def _following(row: ShownFinding) -> Iterable[str]:
    """What comes of this finding, and is none of its own therefore."""
    follows = row.evidence.get("follows")
    rows: list[Mapping[str, object]] = follows if isinstance(follows, list) else []
    if len(rows) <= _MOST_FOLLOWING:
        yield from (f"{each['code']}: {each['message']}" for each in rows)
        return
    codes = Counter(str(each["code"]) for each in rows)
    names = ", ".join(f"{count} {code}" if count > 1 else code for code, count in codes.items())
    yield f"{len(rows)} findings, which -o json has: {names}"


def findings_text(empty: str) -> Text:
    """Two lines a finding, for their sentences are too long for a table; `empty` where there is none."""
    return Text(columns=(), lines=finding_lines, empty=empty, prose=False)
