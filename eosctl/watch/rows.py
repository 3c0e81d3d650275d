"""The rows of `watch` without a screen: one per change; at the end one per current line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, cast

from msgspec import structs

from eosctl.core.wording import rfc3339
from eosctl.foreign import printable
from eosctl.output.cells import TOTAL
from eosctl.output.rows import (
    Counts,
    FindingCode,
    FindingEvidence,
    FindingFix,
    FindingMessage,
    FindingSeverity,
    FindingSubject,
    Kind,
    Printed,
    Text,
    Time,
    about_subject,
    finding_row,
)
from eosctl.output.text import finding_lines
from eosctl.report import Report
from eosctl.watch.rules import ChangeWord, WatchLine

Event = Literal["appeared", "changed", "gone", "stands"]
StateWord = Literal["calm", "finding", "unknown"]


class WatchRow(Printed):
    """A line of the watch, and what has just happened to it."""

    at: Annotated[Time, "When it was seen."]
    at_ms: Annotated[int, "The same in milliseconds since the epoch."]
    change: Annotated[Event, "What happened to the line; `stands` in the document at the end."]
    source: Annotated[str, "Where it was found: a check, or what else is collected by itself."]
    code: FindingCode
    severity: FindingSeverity
    subject: FindingSubject
    message: FindingMessage
    evidence: FindingEvidence
    fix: FindingFix
    command: Annotated[str, "What to run about it: the command of the fix, or all of the fix where it has none."]
    stood_ms: Annotated[int, "For how many milliseconds the watch has seen it."]
    age_ms: Annotated[
        int | None,
        "How old what the line says is, in milliseconds: since the last good look at its source; null before one.",
    ]

    def headline(self) -> str:
        """Format code, subject and message in one line."""
        return f"{self.code}  {printable(about_subject(self.subject, self.message))}"

    def line(self) -> str:
        """Format the change as one line of text."""
        at = self.at[:19] + "Z"
        return f"{at}  {self.change:<8}  {self.severity:<7}  {self.headline()}  [{printable(self.command)}]"


class WatchSummary(Printed):
    """The final state of the watch."""

    state: Annotated[
        StateWord, "`finding`, `calm`, or `unknown` where something could not be looked at and nothing else is wrong."
    ]
    for_ms: Annotated[int, "For how many milliseconds that had lasted."]
    counts: Annotated[Counts, "How many lines have each severity."]
    sources: Annotated[int, "How many sources there are.", TOTAL]
    unknown: Annotated[int, "How many of them could not be looked at, not lately, or not as a whole."]


def _lines(report: Report) -> Iterable[str]:
    if not report.rows:
        yield (
            "Nothing is wrong." if report.summary_of(WatchSummary).state == "calm" else "Nothing is known to be wrong."
        )
    yield from finding_lines(report)


WATCH = Kind(
    "watch",
    "What is wrong, as it appears, changes and goes: a row for each change (ndjson), or for each line at the end.",
    row=WatchRow,
    summary=WatchSummary,
    text=Text(columns=(), lines=_lines),
)


def watch_row(change: ChangeWord | Literal["stands"], line: WatchLine, *, now_s: float, now_ms: int) -> WatchRow:
    """Convert a line to a row; `now_s` is on the clock of the line, `now_ms` the time of day."""
    return WatchRow(
        at=cast("str", rfc3339(now_ms)),
        at_ms=now_ms,
        change=change,
        source=line.source,
        **structs.asdict(finding_row(line.finding)),
        command=line.command,
        stood_ms=_ms(now_s - line.since_s),
        age_ms=None if line.looked_s is None else _ms(now_s - line.looked_s),
    )


def _ms(seconds: float) -> int:
    return max(0, int(seconds * 1000))
