"""The rows of `rehearse`: the planned faults, and their results."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum, unique
from typing import Annotated

from eosctl.core.wording import rfc3339
from eosctl.output.cells import duration, format_cell, summary_lines
from eosctl.output.rows import Header, Kind, Printed, Text
from eosctl.report import Report


@unique
class FaultVerdict(StrEnum):
    """The verdict on a fault, and on all."""

    EXACTLY_ONCE = "exactly_once"
    EXACTLY_ONCE_BY_TRANSACTIONS = "exactly_once_by_transactions"
    NOT_EXACTLY_ONCE = "not_exactly_once"
    NOT_RECOVERED = "not_recovered"
    UNPROVEN = "unproven"


WORST_FIRST = (
    FaultVerdict.NOT_EXACTLY_ONCE,
    FaultVerdict.NOT_RECOVERED,
    FaultVerdict.UNPROVEN,
    FaultVerdict.EXACTLY_ONCE_BY_TRANSACTIONS,
    FaultVerdict.EXACTLY_ONCE,
)


class PlannedFault(Printed):
    """A fault that is planned."""

    fault: Annotated[str, "The name of the fault."]
    what: Annotated[str, "What will be done."]


class AuditedWindow(Printed):
    """The time that an audit looked at."""

    since_ms: Annotated[int, "Its begin, in milliseconds since the epoch."]
    until_ms: Annotated[int, "Its end."]


class FoundPart(Printed):
    """A finding."""

    code: Annotated[str, "The stable code."]
    severity: Annotated[str, "error, warning or info."]
    subject: Annotated[str, "What it is about."]
    message: Annotated[str, "What was found."]
    evidence: Annotated[object, "The facts it was made from."]


class FaultRow(Printed):
    """A fault, and what came of it."""

    fault: Annotated[str, "The name of the fault, or `upgrade`."]
    at_ms: Annotated[int, "When it began, in milliseconds since the epoch."]
    recovered_ms: Annotated[int | None, "How long until all tasks ran again; null if they did not in time."]
    verdict: Annotated[FaultVerdict, "What the audit of the time around it says, or `not_recovered`."]
    why: Annotated[str, "Why the verdict is what it is."]
    evidence: Annotated[str, "What was done, and what the audit looked at."]
    findings: Annotated[list[FoundPart], "What was found, but for what an earlier row has."]
    window: Annotated[AuditedWindow | None, "The time that was audited; null if it was not."]

    def at(self) -> str | None:
        """Return the time when the fault began."""
        return rfc3339(self.at_ms)

    @Header("RECOVERED")
    def recovered(self) -> str:
        """Return the duration of the recovery."""
        return "no" if self.recovered_ms is None else duration(self.recovered_ms)

    @Header("FINDINGS")
    def found(self) -> str:
        """Return the codes of the findings."""
        return ", ".join(dict.fromkeys(each.code for each in self.findings))


class RehearsalPlanSummary(Printed):
    """The connector to rehearse, and its sandbox."""

    connector: Annotated[str, "The name of the connector."]
    sandbox: Annotated[str, "The name of the sandbox, for `eosctl sandbox down --name`."]
    kafka_version: Annotated[str, "The version of Kafka and Connect."]
    brokers: Annotated[int, "How many brokers are started."]
    workers: Annotated[int, "How many Connect workers are started."]
    start_mode: Annotated[str, "The exactly-once mode that the workers start in."]
    seed: Annotated[int, "What order, moments and victims follow from."]
    judged: Annotated[list[str], "Which of these are judged: transactions, duplicates, loss."]
    not_judged: Annotated[list[str], "Which are not, as no field is named that would show them."]


class RehearsalSummary(RehearsalPlanSummary):
    """The connector, its sandbox, and the result."""

    verdict: Annotated[FaultVerdict, "The worst verdict of all rows; `unproven` without rows."]
    exactly_once: Annotated[int, "How many rows are `exactly_once`."]
    exactly_once_by_transactions: Annotated[int, "How many rows are so as far as transactions show, and no further."]
    failed: Annotated[int, "How many rows are `not_exactly_once` or `not_recovered`."]
    unproven: Annotated[int, "How many rows are `unproven`."]


class LeftOut(Printed):
    """A fault that this sandbox can't have."""

    fault: Annotated[str, "The name of the fault."]
    why: Annotated[str, "What it needs."]


class Surroundings(Printed):
    """The settings and systems that the connector meets."""

    connector_class: Annotated[str, "The class of the connector."]
    outside: Annotated[dict[str, str], "Settings that name systems outside of the sandbox, which are really used."]
    shared: Annotated[dict[str, str], "Settings with names and ids that a connector of production must not have, too."]
    changed: Annotated[list[str], "Settings of the connector that are not as they were given."]
    taken: Annotated[list[str], "Properties of the worker that are taken over."]
    not_taken: Annotated[list[str], "Properties of the worker that are not."]
    left_out: Annotated[list[LeftOut], "Faults that are left out."]
    minutes: Annotated[int | None, "How long the faults are repeated; null: each comes once."]
    repeat: Annotated[str, "The command that repeats it in the same order."]


_NO_SYSTEM = "the config names no system outside of the sandbox that eosctl recognises"


def _surroundings(report: Report) -> Iterator[str]:
    data = report.data_of(Surroundings)
    if data.outside:
        yield "outside of the sandbox, and really used:"
        yield from (f"  {name}: {format_cell(value)}" for name, value in data.outside.items())
    else:
        yield _NO_SYSTEM
    if data.shared:
        yield "taken there; if production uses the same ones, change them, or it is disturbed:"
        yield from (f"  {name}: {format_cell(value)}" for name, value in data.shared.items())
    yield from (f"changed: {format_cell(each)}" for each in data.changed)
    for label, names in (("taken from the worker's file", data.taken), ("not taken from it", data.not_taken)):
        if names:
            yield f"{label}: {', '.join(map(format_cell, names))}"
    yield from (f"left out: {each.fault}, which {each.why}" for each in data.left_out)
    if data.minutes is not None:
        yield f"the faults are repeated, each round in another order, for {data.minutes} min"


def _plan_lines(report: Report) -> Iterator[str]:
    """Render what is started, and what the connector meets."""
    told = report.summary_of(RehearsalPlanSummary)
    brokers, workers = _many(told.brokers, "broker"), _many(told.workers, "worker")
    yield f"will start: Kafka {told.kafka_version}, {brokers}, {workers} in mode {told.start_mode}"
    yield f"connector: {format_cell(told.connector)} ({format_cell(report.data_of(Surroundings).connector_class)})"
    yield from _surroundings(report)
    yield from _judged_lines(told)
    yield f"repeat with: {report.data_of(Surroundings).repeat}"


def _result_lines(report: Report) -> Iterator[str]:
    """Render each finding, and the summary."""
    for row in report.rows_of(FaultRow):
        yield from (f"{row.fault}: {format_cell(each.message)}" for each in row.findings)
        if row.verdict is FaultVerdict.UNPROVEN:
            yield f"{row.fault}: unproven: {format_cell(row.why)}"
    yield from (f"left out: {each.fault}, which {each.why}" for each in report.data_of(Surroundings).left_out)
    yield from _judged_lines(report.summary_of(RehearsalSummary))
    yield from summary_lines(report)
    yield f"repeat with: {report.data_of(Surroundings).repeat}"


def _judged_lines(summary: RehearsalPlanSummary) -> Iterator[str]:
    """Render what is not judged, and which option changes that."""
    options = {"duplicates": "--unique", "loss": "--sequence"}
    for what in summary.not_judged:
        yield f"not judged: {what}; name a field with {options[what]}"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


REHEARSE_PLAN = Kind(
    "rehearse-plan",
    "The sandbox that a rehearsal would start, and its faults in order.",
    row=PlannedFault,
    summary=RehearsalPlanSummary,
    data=Surroundings,
    text=Text(columns=("fault", "what"), lines=_plan_lines),
)
REHEARSE_RESULT = Kind(
    "rehearse-result",
    "What came of each fault of a rehearsal.",
    row=FaultRow,
    summary=RehearsalSummary,
    data=Surroundings,
    text=Text(
        columns=("fault", "at", "recovered", "verdict", "found"),
        wide=("evidence",),
        lines=_result_lines,
        empty="No fault was rehearsed.",
    ),
)
