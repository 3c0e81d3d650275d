"""The reports of a rehearsal: its plan, its result, and the result as an HTML page.

The page has no outside references, and is fit to be filed as evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eosctl.core.wording import rfc3339
from eosctl.errors import ExitCode
from eosctl.foreign import html_text
from eosctl.output.cells import duration
from eosctl.output.page import facts_list, page, table, verdict_line
from eosctl.rehearse import codes
from eosctl.rehearse import plan as feed
from eosctl.rehearse.plan import DUPLICATES, LOSS, TRANSACTIONS, RehearsalPlan
from eosctl.rehearse.rows import (
    REHEARSE_PLAN,
    REHEARSE_RESULT,
    WORST_FIRST,
    FaultRow,
    FaultVerdict,
    LeftOut,
    PlannedFault,
    RehearsalPlanSummary,
    RehearsalSummary,
    Surroundings,
)
from eosctl.report import Problem, Report
from eosctl.state.backups import write_blocks
from eosctl.state.journal import Progress

_EXIT_CODES = {
    FaultVerdict.EXACTLY_ONCE: ExitCode.OK,
    FaultVerdict.EXACTLY_ONCE_BY_TRANSACTIONS: ExitCode.OK,
    FaultVerdict.UNPROVEN: ExitCode.PARTIAL,
    FaultVerdict.NOT_RECOVERED: ExitCode.FINDINGS,
    FaultVerdict.NOT_EXACTLY_ONCE: ExitCode.FINDINGS,
}


def show_plan(plan: RehearsalPlan) -> Report:
    """Report what will be started, and the faults in order."""
    rows = [PlannedFault(fault=fault, what=what) for fault, what in plan.first()]
    return Report(
        kind=REHEARSE_PLAN, rows=rows, summary=RehearsalPlanSummary(**_summary(plan)), data=surroundings(plan)
    )


def result_report(
    plan: RehearsalPlan, rows: Sequence[FaultRow], progress: Progress[None], *, problems: Sequence[Problem] = ()
) -> Report:
    """Report the result: exit 3 if a fault failed, 7 if one is unproven or the rehearsal ended early.

    `problems` are those of the sandbox's end: 7, too. So is, with --strict, what only transactions show.
    """
    verdict = worst(rows)
    exit_code = _EXIT_CODES[verdict]
    if plan.request.strict and verdict is FaultVerdict.EXACTLY_ONCE_BY_TRANSACTIONS:
        exit_code = ExitCode.PARTIAL
    if progress.error is not None and exit_code is not ExitCode.FINDINGS:
        exit_code = progress.error.exit_code if progress.interrupted or not rows else ExitCode.PARTIAL
    elif problems and exit_code is ExitCode.OK:
        exit_code = ExitCode.PARTIAL
    if progress.interrupted:
        exit_code = ExitCode.INTERRUPTED
    return Report(
        kind=REHEARSE_RESULT,
        rows=list(rows),
        summary=RehearsalSummary(
            **_summary(plan),
            verdict=verdict,
            exactly_once=sum(row.verdict is FaultVerdict.EXACTLY_ONCE for row in rows),
            exactly_once_by_transactions=sum(row.verdict is FaultVerdict.EXACTLY_ONCE_BY_TRANSACTIONS for row in rows),
            failed=sum(_EXIT_CODES[row.verdict] is ExitCode.FINDINGS for row in rows),
            unproven=sum(row.verdict is FaultVerdict.UNPROVEN for row in rows),
        ),
        data=surroundings(plan),
        problems=[*_problems(progress), *problems],
        exit_code=exit_code,
    )


def worst(rows: Sequence[FaultRow]) -> FaultVerdict:
    """Return the worst verdict of all rows."""
    return min((row.verdict for row in rows), key=WORST_FIRST.index, default=FaultVerdict.UNPROVEN)


def _problems(progress: Progress[None]) -> list[Problem]:
    if progress.error is None:
        return []
    if progress.interrupted or progress.failed is None:
        return [Problem.of(progress.error)]
    message = f"the rehearsal ended at {progress.failed}: {progress.error.message}"
    return [Problem(codes.REHEARSAL_ENDED_EARLY, message, progress.error.hint or codes.REHEARSAL_ENDED_EARLY.next)]


def surroundings(plan: RehearsalPlan) -> Surroundings:
    """Return the surroundings of the connector."""
    request, connector = plan.request, plan.connector
    return Surroundings(
        connector_class=connector.config["connector.class"] if connector else feed.CLASS,
        outside={**request.worker.outside, **(connector.outside if connector else {})},
        shared=dict(connector.shared) if connector else {},
        changed=list(connector.changed) if connector else [],
        taken=sorted(request.worker.taken),
        not_taken=list(request.worker.left_out),
        left_out=[LeftOut(fault=name, why=why) for name, why in plan.left_out.items()],
        minutes=request.minutes,
        repeat=plan.repeat(),
    )


def _summary(plan: RehearsalPlan) -> dict[str, Any]:
    request = plan.request
    return {
        "connector": plan.connector_name,
        "sandbox": plan.sandbox,
        "kafka_version": plan.version,
        "brokers": request.brokers,
        "workers": request.workers,
        "start_mode": request.start_mode.value,
        "seed": request.seed,
        "judged": [each for each in (TRANSACTIONS, DUPLICATES, LOSS) if each not in plan.not_judged()],
        "not_judged": list(plan.not_judged()),
    }


def write_page(report: Report, path: Path) -> None:
    """Write the page; raise EosctlError if that fails, and keep what was there before."""
    write_blocks(path.expanduser(), [page_of(report).encode()])


def page_of(report: Report) -> str:
    """Return the HTML page of a `rehearse-result`."""
    title = f"Rehearsal of {report.summary_of(RehearsalSummary).connector}"
    return "".join(f"{line}\n" for line in page(title, _body(report, title), made_ms=None))


def _body(report: Report, title: str) -> Iterator[str]:
    summary, data = report.summary_of(RehearsalSummary), report.data_of(Surroundings)
    yield f"<h1>{html_text(title)}</h1>"
    yield verdict_line(summary.verdict.value, _words(summary.verdict))
    yield (
        f"<p>{summary.exactly_once} of {len(report.rows)} exactly once, "
        f"{summary.exactly_once_by_transactions} as far as transactions show, {summary.failed} failed, "
        f"{summary.unproven} unproven. Judged: {', '.join(summary.judged)}; not judged: "
        f"{', '.join(summary.not_judged) or 'nothing'}.</p>"
    )
    yield from (f'<p class="bad">{html_text(each.message)}</p>' for each in report.problems)
    yield "<h2>Faults</h2>"
    yield from table(("Fault", "At", "Recovered", "Verdict", "What was seen"), map(_cells, report.rows_of(FaultRow)))
    yield "<h2>What was rehearsed</h2>"
    yield from facts_list(_facts(report))
    yield f"<p>Repeat with: <code>{html_text(data.repeat)}</code></p>"


def _cells(row: FaultRow) -> Iterator[str]:
    recovered = "no" if row.recovered_ms is None else duration(row.recovered_ms)
    found = "".join(f"<br>{html_text(each.severity)}: {html_text(each.message)}" for each in row.findings)
    window = ""
    if row.window is not None:
        since = rfc3339(row.window.since_ms) if row.window.since_ms else "the beginning"
        window = f"<br>audited: {since} to {rfc3339(row.window.until_ms)}"
    yield f"<td>{html_text(row.fault)}</td><td>{rfc3339(row.at_ms)}</td><td>{html_text(recovered)}</td>"
    yield f'<td class="{row.verdict.value}">{_words(row.verdict)}</td>'
    yield f"<td>{html_text(row.evidence)}{window}{found}</td>"


def _words(verdict: FaultVerdict) -> str:
    return verdict.replace("_", " ")


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    summary, data = report.summary_of(RehearsalSummary), report.data_of(Surroundings)
    yield "Connector", f"{summary.connector} ({data.connector_class})"
    yield "Kafka", summary.kafka_version
    yield "Brokers, workers", f"{summary.brokers}, {summary.workers} (started in mode {summary.start_mode})"
    yield "Seed", str(summary.seed)
    yield from (("Outside system", f"{name}: {value}") for name, value in data.outside.items())
    yield from (("Taken there", f"{name}: {value}") for name, value in data.shared.items())
    for label, lines in (
        ("Changed", data.changed),
        ("Taken from the worker", data.taken),
        ("Not taken from it", data.not_taken),
        ("Left out", [f"{each.fault}, which {each.why}" for each in data.left_out]),
    ):
        yield from ((label, line) for line in lines)
